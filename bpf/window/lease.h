/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Leases: how many CPUs share one limit without a lock, and never exceed it.
 *
 * Every CPU counts a flow in a row of its own and admits from a *lease*: units that it has already counted in its
 * present bucket and not yet spent. To take a lease it adds first, then announces itself (a full barrier), then sums
 * the rows of all CPUs that may have counted the flow: the last CPU to announce itself sees all others. A CPU may also
 * stall between any two steps, which is why the code below reads some words twice. docs/internals/lease.md has the
 * proof, and tests/model/lease.pml the model.
 */
#ifndef WEIR_LEASE_H
#define WEIR_LEASE_H

#include "window/cells.h"
#include "window/sharers.h"
#include "window/row_ghosts.h"

/* ---- one CPU's row ---- */

/* The owner has entered bucket `newest`, and may not yet have cleared all the cells that it takes over, which still
 * look counted. Call this before reading the cells: once it returns false, they are cleared.
 */
static __always_inline bool weir_may_be_clearing(const struct weir_view *view, void *row, __u64 newest,
						 const enum weir_width wide)
{
	__u32 cell = newest > view->bucket ? weir_cell_of(newest) : weir_cell_before(view->cell, view->bucket - newest);

	return weir_cell_get(row, cell, wide) & ROW_UNSPENT(wide);
}

/* Some units of another CPU's row are not spent. If it has no lease, it is only evaluating a packet, or clearing cells.
 */
static __always_inline void weir_add_unspent(struct weir_scratch *s, void *row, const enum weir_width wide)
{
	s->sum.has_unspent = 1;
	if (!weir_lease_get(row, wide))
		s->sum.is_in_doubt = 1;
}

/* The cells of a row that count in our window, one bit each. */
static __always_inline __u32 weir_cells_in_window(const struct weir_view *view, __u64 newest)
{
	if (newest > view->bucket) {
		/* Cells of buckets newer than ours count too. By their position they look like the oldest ones. */
		__u64 newer = newest - view->bucket;

		return weir_cells_aged(view->cell, 0, view->window_cells) |
		       weir_cells_aged(view->cell, newer < WEIR_RING_CELLS ? WEIR_RING_CELLS - newer : 0,
				       WEIR_RING_CELLS);
	}
	/* Cells after the newest bucket are left over from the previous round of the ring. */
	return weir_cells_aged(view->cell, view->bucket - newest, view->window_cells);
}

/* Add one CPU's row to s->sum. Unless it is ours, its owner may be writing it. */
static __always_inline void weir_add_row(struct weir_scratch *s, void *row, const bool is_own,
					 const enum weir_width wide)
{
	const struct weir_view *view = &s->view;
	__u64 newest = ROW_GET(row, wide, newest), newest_after;
	__u64 units, flags = 0, oldest = 0;
	__u32 cells;

	weir_order(s);
	if (newest <= view->bucket && view->bucket - newest >= view->window_cells) {
		weir_order(s);
		if (!is_own && ROW_GET(row, wide, tag) != view->flow.tag)
			s->sum.is_behind = s->sum.misses_row = 1;
		return;
	}
	cells = weir_cells_in_window(view, newest);
	if (!is_own && weir_may_be_clearing(view, row, newest, wide))
		weir_add_unspent(s, row, wide);
	weir_order(s);
	if (view->is_smooth) {
		__u32 cell = weir_cell_before(view->cell, view->window_cells - 1);

		if (cells >> cell & 1)
			oldest = weir_cell_get(row, cell, wide);
		cells &= ~(1u << cell);
		flags = oldest;
		oldest &= ~ROW_UNSPENT(wide);
	}
	units = weir_sum_cells(row, cells, &flags, wide);
	if (!is_own) {
		weir_order(s);
		newest_after = ROW_GET(row, wide, newest);
		if (ROW_GET(row, wide, tag) != view->flow.tag) {
			s->sum.is_behind = s->sum.misses_row = 1;
			return; /* evicted, and so counted; the row is another flow's now */
		}
		if (newest_after > view->bucket)
			s->sum.is_behind = 1;
		if (newest_after > view->bucket + WEIR_RING_CELLS - view->window_cells)
			s->sum.ran_ahead = 1;
		if (flags & ROW_UNSPENT(wide))
			weir_add_unspent(s, row, wide);
	}
	s->sum.rest += units;
	s->sum.oldest += oldest;
}

/* ---- those of all CPUs ---- */

static __always_inline void weir_add_row_of(struct weir_scratch *s, __u32 cpu, const enum weir_width wide)
{
	const struct weir_view *view = &s->view;
	__u32 slot = view->slot, number;
	void *row;

	if (wide == WEIR_WIDE && view->is_lone)
		row = bpf_map_lookup_percpu_elem(&lone_rows, &slot, cpu);
	else
		row = weir_find_row(&view->flow, cpu, &number, wide);
	if (row)
		weir_add_row(s, row, false, wide);
	else
		s->sum.is_behind = s->sum.misses_row = 1;
}

/* Both functions are out of line, so that the verifier checks the work for one CPU once, and the loop over the CPUs
 * once.
 */
__noinline int weir_add_cpu(struct weir_scratch *s, __u32 cpu, __u32 wide)
{
	if (!s)
		return 0;
	if (wide == WEIR_WIDE)
		weir_add_row_of(s, cpu, WEIR_WIDE);
	else if (wide == WEIR_MEDIUM)
		weir_add_row_of(s, cpu, WEIR_MEDIUM);
	else
		weir_add_row_of(s, cpu, WEIR_NARROW);
	return 0;
}

__noinline int weir_add_others(struct weir_scratch *s, __u32 wide)
{
	__u32 this_cpu;

	if (!s)
		return 0;
	/* The helper gives the CPU's number. With a number read from memory, the verifier gives up at a thousand CPUs.
	 */
	this_cpu = bpf_get_smp_processor_id();
	for (__u32 cpu = 0; cpu < WEIR_CPUS_MAX && cpu < config.cpus; cpu++)
		if (cpu != this_cpu && weir_is_present(s->present, cpu))
			weir_add_cpu(s, cpu, wide);
	return 0;
}

/* Announce that this CPU has counted s->view.flow, and set s->present to the other CPUs that have. A full barrier; call
 * it after adding units to the own row. Returns true if no other CPU has counted the flow.
 */
static __always_inline bool weir_announce(struct weir_scratch *s)
{
	__u32 cpu = weir_this_cpu(s);

	if (config.cpus == 1)
		return true;
	s->present = weir_announce_cpu(s, cpu);
	return weir_is_alone(s->present, cpu);
}

/* The same for any window, and for callers with little stack left. */
__noinline int weir_announce_or_ask_all(struct weir_scratch *s)
{
	if (!s)
		return false;
	if (s->view.asks_all && config.cpus > 1) {
		weir_fence(s);
		s->present = WEIR_PRESENT_ALL;
		return false;
	}
	return weir_announce(s);
}

/* Add the ghosts of evicted rows. Call this after summing the rows, so that a row evicted meanwhile is counted as a row
 * or as a ghost, at least. If another CPU's row was evicted without a ghost, its units are in the overflow window. (Our
 * own row took over the overflow window's count when it began.)
 */
static __always_inline void weir_add_row_ghosts(struct weir_scratch *s)
{
	if (s->view.is_lone)
		return;
	weir_order(s);
	if (!weir_row_ghosts_count(s, &s->view.flow))
		return;
	s->sum.rest += weir_left_units(s);
	if (config.overflow_classes && s->view.overflow && s->sum.misses_row)
		s->sum.rest += weir_units_of_overflow(s);
	s->sum.is_behind = 1; /* a ghost may have been removed because it expired by another CPU's clock */
}

/* Fill s->sum with what the flow has used in the window: the counts in the rows of all CPUs that may have counted it,
 * plus its ghosts.
 */
static __always_inline void weir_sum_rows(struct weir_scratch *s, void *own_row, const enum weir_width wide)
{
	__builtin_memset(&s->sum, 0, sizeof(s->sum));
	weir_add_row(s, own_row, true, wide);
	if (!weir_announce_or_ask_all(s)) {
		weir_count_lease(s->view.slot);
		if (s->present == WEIR_PRESENT_LOST)
			s->sum.ran_ahead = 1;
		else
			weir_add_others(s, wide);
	}
	weir_add_row_ghosts(s);
}

/* ---- how large a lease ---- */

/* A flow that one CPU sees takes leases as on a machine with two CPUs, so that it costs the same on larger machines. If
 * the flow moves to another CPU, at most such a share of the free units stays unused, and only once, because the flow
 * then counts as seen by two CPUs for some seconds. Chosen, not derived.
 */
#define WEIR_ALONE_PARTS 4

/* How many of `units` free units one CPU may set aside, given the other CPUs in s->present. */
__noinline __u64 weir_fair_part(struct weir_scratch *s, __u64 units)
{
	if (!s)
		return 0;
	if (config.cpus > 1 && weir_is_alone(s->present, weir_this_cpu(s)))
		return units / WEIR_ALONE_PARTS;
	return units / (2 * config.cpus);
}

/* A lease of a wide row is at most this many packets like the current one, for each CPU that is asked. So with a large
 * limit, only a small part of it can stay unused, and the cost of taking the lease is spread over many packets. (In
 * narrow and medium rows, the size of the field limits the lease.) Chosen, not derived.
 */
#define WEIR_WIDE_LEASE_PACKETS 64

static __always_inline __u64 weir_lease_max(struct weir_scratch *s, __u64 batch, const enum weir_width wide)
{
	__u64 most = batch * WEIR_WIDE_LEASE_PACKETS;

	if (!wide)
		return WEIR_NARROW_LEASE_MAX;
	if (config.cpus > 1 && !weir_is_alone(s->present, weir_this_cpu(s)))
		most *= config.cpus;
	if (wide == WEIR_MEDIUM && most > WEIR_MEDIUM_LEASE_MAX)
		most = WEIR_MEDIUM_LEASE_MAX;
	return most;
}

/* How many units to try to lease. Few, so that few stay unused if the flow moves to another CPU: at most what this CPU
 * has spent in this bucket, and at least the packet's batch.
 */
static __always_inline __u64 weir_lease_wanted(struct weir_scratch *s, __u64 threshold, __u64 spent, __u64 batch,
					       const enum weir_width wide)
{
	__u32 *cell = s->view.asks_all || config.cpus == 1 ? NULL : weir_sharers_cell(&s->view.flow);
	__u64 wanted, most;

	s->present = cell ? READ_ONCE(*cell) & WEIR_SHARERS_FIELDS : WEIR_PRESENT_ALL;
	wanted = weir_fair_part(s, threshold);
	if (wanted > spent)
		wanted = spent;
	most = weir_lease_max(s, batch, wide);
	if (wanted > most)
		wanted = most;
	return wanted < batch ? batch : wanted;
}

#endif
