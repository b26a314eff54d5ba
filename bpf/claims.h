/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Claims: what a rule that admitted the packet has set aside for it. When every rule has admitted, claims are
 * committed; when one has blocked, they are rolled back, so that a blocked packet is counted nowhere. Where a
 * shortcut admits by the packet's last rule, it spends at once and leaves no claim.
 */
#ifndef WEIR_CLAIMS_H
#define WEIR_CLAIMS_H

#include "cells.h"

/* The claim of the packet's rule number `nth`, or NULL beyond the last. Opaque, so that the pointer is made where its
 * bound was tested.
 */
static __always_inline struct weir_claim *weir_claim_at(struct weir_scratch *s, __u32 nth)
{
	struct weir_claim *claim;

	OPAQUE(nth);
	if (nth >= WEIR_PACKET_RULES_MAX)
		return NULL;
	claim = &s->claim[nth];
	OPAQUE(claim);
	return claim;
}

static __always_inline void weir_set_claim(struct weir_scratch *s, struct weir_claim *claim, enum weir_claim_kind kind,
					   __u32 tag, __u64 batch, __u32 cell, enum weir_storage storage)
{
	if (kind != WEIR_CLAIM_SPENT)
		s->must_commit = 1;
	claim->row = s->row_number;
	claim->tag = tag;
	claim->batch = batch;
	claim->storage = storage;
	claim->cell = cell;
	claim->kind = kind;
}

static __always_inline void weir_commit_row(const struct weir_claim *claim, void *row, const enum weir_width wide)
{
	__u64 lease = weir_lease_get(row, wide);

	if (claim->kind == WEIR_CLAIM_LEASE && lease >= claim->batch)
		weir_spend(row, claim->cell, lease, claim->batch, wide);
}

/* A claim to a lease needs no undoing: the lease stays a lease. */
static __always_inline void weir_roll_back_row(const struct weir_claim *claim, void *row, const enum weir_width wide)
{
	if (claim->kind == WEIR_CLAIM_SPENT)
		ROW_SET(row, wide, lease, weir_lease_get(row, wide) + claim->batch);
	if (claim->kind == WEIR_CLAIM_BACKDATED)
		weir_cell_set(row, claim->cell, weir_cell_get(row, claim->cell, wide) - claim->batch, wide);
}

/* Commit or roll back a claim to a row, if the row is still its flow's. */
static __always_inline void weir_end_row_claim(const struct weir_claim *claim, bool passes, const enum weir_width wide)
{
	bool is_lone = wide == WEIR_WIDE && claim->storage == WEIR_STORAGE_LONE;
	void *row = is_lone ? weir_lone_row(claim->row) : weir_row_by_number(claim->row, wide);

	if (!row || ROW_GET(row, wide, tag) != claim->tag)
		return;
	if (passes)
		weir_commit_row(claim, row, wide);
	else
		weir_roll_back_row(claim, row, wide);
}

/* The claims of the first `count` rules to rows. Out of line: a packet of one rule has mostly none. */
__noinline int weir_end_row_claims(struct weir_scratch *s, __u32 count, __u32 passes)
{
	if (!s)
		return 0;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < count; i++) {
		const struct weir_claim *claim = &s->claim[i];

		if (claim->kind < WEIR_CLAIM_SPENT)
			continue;
		if (claim->storage == WEIR_STORAGE_NARROW)
			weir_end_row_claim(claim, passes, WEIR_NARROW);
		else if (claim->storage == WEIR_STORAGE_MEDIUM)
			weir_end_row_claim(claim, passes, WEIR_MEDIUM);
		else
			weir_end_row_claim(claim, passes, WEIR_WIDE);
	}
	return 0;
}

#endif
