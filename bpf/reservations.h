/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A reservation is what a rule that admitted the packet has set aside for it. When every rule has admitted, all
 * reservations are committed. When a rule blocks, they are aborted, so that a blocked packet is counted nowhere. If a
 * shortcut admits by the packet's last rule, it spends at once and leaves no reservation.
 */
#ifndef WEIR_RESERVATIONS_H
#define WEIR_RESERVATIONS_H

#include "window/cells.h"

/* The reservation of the packet's rule number `nth`, or NULL beyond the last. Opaque, so that the pointer is made where
 * its bound was tested.
 */
static __always_inline struct weir_reservation *weir_reservation_at(struct weir_scratch *s, __u32 nth)
{
	struct weir_reservation *reservation;

	OPAQUE(nth);
	if (nth >= WEIR_PACKET_RULES_MAX)
		return NULL;
	reservation = &s->reservation[nth];
	OPAQUE(reservation);
	return reservation;
}

static __always_inline void weir_set_reservation(struct weir_scratch *s, struct weir_reservation *reservation,
						 enum weir_reservation_kind kind, __u32 tag, __u64 batch, __u32 cell,
						 enum weir_storage storage)
{
	if (kind != WEIR_RESERVATION_SPENT)
		s->must_commit = 1;
	else
		s->must_abort = 1;
	reservation->row = s->row_number;
	reservation->tag = tag;
	reservation->batch = batch;
	reservation->storage = storage;
	reservation->cell = cell;
	reservation->kind = kind;
}

static __always_inline void weir_commit_row(const struct weir_reservation *reservation, void *row,
					    const enum weir_width wide)
{
	__u64 lease = weir_lease_get(row, wide);

	if (reservation->kind == WEIR_RESERVATION_LEASE && lease >= reservation->batch)
		weir_spend(row, reservation->cell, lease, reservation->batch, wide);
}

/* A reservation in a lease needs no undoing: the lease stays a lease. */
static __always_inline void weir_abort_row(const struct weir_reservation *reservation, void *row,
					   const enum weir_width wide)
{
	if (reservation->kind == WEIR_RESERVATION_SPENT)
		ROW_SET(row, wide, lease, weir_lease_get(row, wide) + reservation->batch);
	if (reservation->kind == WEIR_RESERVATION_BACKDATED)
		weir_cell_set(row, reservation->cell, weir_cell_get(row, reservation->cell, wide) - reservation->batch,
			      wide);
}

/* The row that a reservation is in, if it is still its flow's; else NULL. */
static __always_inline void *weir_reserved_row(const struct weir_reservation *reservation, const enum weir_width wide)
{
	bool is_lone = wide == WEIR_WIDE && reservation->storage == WEIR_STORAGE_LONE;
	void *row = is_lone ? weir_lone_row(reservation->row) : weir_row_by_number(reservation->row, wide);

	return row && ROW_GET(row, wide, tag) == reservation->tag ? row : NULL;
}

/* Commit or abort a reservation in a row, if the row is still its flow's. */
static __always_inline void weir_end_row_reservation(const struct weir_reservation *reservation, bool passes,
						     const enum weir_width wide)
{
	void *row = weir_reserved_row(reservation, wide);

	if (!row)
		return;
	if (passes)
		weir_commit_row(reservation, row, wide);
	else
		weir_abort_row(reservation, row, wide);
}

/* The reservations of the first `count` rules to rows. Out of line: a packet of one rule has mostly none. */
__noinline int weir_end_row_reservations(struct weir_scratch *s, __u32 count, __u32 passes)
{
	if (!s)
		return 0;
	if (WEIR_PART_SEVERAL_RULES)
		s->expects_admission = passes;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < count; i++) {
		const struct weir_reservation *reservation = &s->reservation[i];

		if (reservation->kind < WEIR_RESERVATION_SPENT)
			continue;
		if (WEIR_PART_SEVERAL_RULES && passes && reservation->kind == WEIR_RESERVATION_SPENT)
			continue;
		OF_STORAGE(reservation->storage, weir_end_row_reservation, reservation, passes);
	}
	return 0;
}

#endif
