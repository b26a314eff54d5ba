/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts a flow's open connections. For each class of states there is a ring of cells, one for each step of time; a
 * cell counts the connections whose last packet came in that step. The number of open connections is the sum of the
 * cells that are not over, so a connection that falls silent drops out by itself.
 *
 * A cell contains the number of its step and its flow's turn (its *name*), and changes by compare-and-swap. A CPU that
 * takes a connection out too late finds another name and changes nothing. So counts neither leak nor fall below zero.
 * (docs/internals/connections.md, tests/model/connections.pml)
 */
#ifndef WEIR_CONNECTION_COUNTS_H
#define WEIR_CONNECTION_COUNTS_H

#include "kinds/connection_state.h"

/* Attempts to change one cell. One fails if another CPU changes it meanwhile; more than a few were never seen. */
#define WEIR_CELL_ATTEMPTS 16
#define WEIR_USE_ATTEMPTS 5   /* other CPUs can mark each of the three classes and the figures once */
#define WEIR_DRAIN_ATTEMPTS 4 /* only a CPU that had already read the owner can interfere */

/* How many steps another CPU's clock may be ahead of ours if we were stalled: eleven minutes at the shortest time-out.
 * A cell that is farther ahead is a leftover from the previous wrap of the numbers.
 */
#define WEIR_STEPS_AHEAD (1u << 12)

/* ---- one cell ---- */

/* The cell of a step, of an entry's or a total's. */
static __always_inline __u64 *weir_step_cell(__u64 cell[][WEIR_CONNECTION_CELLS], __u32 class, __u32 step)
{
	__u32 index = class * WEIR_CONNECTION_CELLS + (step & (WEIR_CONNECTION_CELLS - 1));

	OPAQUE(index);
	if (index >= WEIR_CONNECTION_CLASSES_COUNTED * WEIR_CONNECTION_CELLS)
		index = 0;
	return &cell[0][0] + index;
}

static __always_inline __u32 weir_cell_step(__u64 cell)
{
	return cell >> WEIR_CONNECTION_CELL_STEP_SHIFT;
}

static __always_inline __u32 weir_cell_turn(__u64 cell)
{
	return cell >> WEIR_CONNECTION_COUNT_BITS & WEIR_CONNECTION_CHECK;
}

/* Record that the owner with this mark uses a part of its entry (WEIR_CONNECTION_USES_...). False: it has lost the
 * entry.
 */
static __always_inline bool weir_use_entry(struct weir_connection_flow *flow, __u32 mark, __u64 part)
{
	for (int attempt = 0; attempt < WEIR_USE_ATTEMPTS; attempt++) {
		__u64 owner = READ_ONCE(flow->owner);

		if (owner >> 32 != mark)
			return false;
		if (owner & part || __sync_val_compare_and_swap(&flow->owner, owner, owner | part) == owner)
			return true;
	}
	return false;
}

/* Does this owner have the entry? Words and cells contain only the turn of a tag, so at least the turn is compared. */
static __always_inline bool weir_is_owner(const struct weir_connection_flow *flow, __u32 tag)
{
	return !((READ_ONCE(flow->owner) >> 32 ^ tag) & WEIR_CONNECTION_CHECK);
}

/* Does the cell belong to a later step than `step`, but not so much later that the numbers have wrapped? */
static __always_inline bool weir_is_later_cell(__u64 cell, __u32 step)
{
	return ((weir_cell_step(cell) - step - 1) & WEIR_CONNECTION_CELL_STEP_MASK) < WEIR_STEPS_AHEAD;
}

/* Does the cell still count, in the same step, for a flow that was evicted? The CPU that added this is about to undo
 * it.
 */
static __always_inline bool weir_is_being_emptied(__u64 cell, __u64 fresh)
{
	return cell & WEIR_CONNECTION_COUNT_MASK && weir_cell_turn(cell ^ fresh) && !weir_cell_step(cell ^ fresh);
}

/* Does the cell belong to a flow that had the entry before this turn? */
static __always_inline bool weir_is_left_over(__u64 cell, __u32 turn)
{
	__u32 age = (turn - weir_cell_turn(cell)) & WEIR_CONNECTION_CHECK;

	return age && age <= WEIR_CONNECTION_CHECK / 2;
}

/* Take `count` connections out of the cell with this name. False: they had dropped out already. */
static __always_inline bool weir_subtract_from_cell(struct weir_connection_flow *flow, __u64 name, __u32 class,
						    __u32 count)
{
	__u64 *cell = weir_step_cell(flow->cell, class, weir_cell_step(name));

	for (int attempt = 0; attempt < WEIR_CELL_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(*cell);

		if ((old ^ name) >> WEIR_CONNECTION_COUNT_BITS || (old & WEIR_CONNECTION_COUNT_MASK) < count)
			return false;
		if (__sync_val_compare_and_swap(cell, old, old - count) == old)
			return true;
	}
	return false;
}

__noinline int weir_remove_from_cell(struct weir_connection_flow *flow, __u32 tag, __u32 class, __u32 step)
{
	WEIR_GLOBAL(CONNECTIONS, flow, false);
	return weir_subtract_from_cell(flow, WEIR_CONNECTION_CELL(step, tag), class, 1);
}

/* Count one connection more in a step. False: the flow has lost its entry meanwhile, or the step is over. */
__noinline int weir_add_to_cell(struct weir_connection_flow *flow, __u32 tag, __u32 class, __u32 step)
{
	__u64 fresh = WEIR_CONNECTION_CELL(step, tag);
	bool is_added = false;
	__u64 *cell;

	WEIR_GLOBAL(CONNECTIONS, flow, false);
	/* Mark before counting, because a CPU that takes the entry over drains only the cells that are marked. */
	if (!weir_use_entry(flow, tag, WEIR_CONNECTION_USES_CLASS(class & 3)))
		return false;
	cell = weir_step_cell(flow->cell, class, step);
	for (int attempt = 0; attempt < WEIR_CELL_ATTEMPTS && !is_added; attempt++) {
		__u64 old = READ_ONCE(*cell), count = 0;

		if (READ_ONCE(flow->owner) >> 32 != tag)
			return false;
		if (!((old ^ fresh) >> WEIR_CONNECTION_COUNT_BITS))
			count = old & WEIR_CONNECTION_COUNT_MASK;
		else if (weir_is_being_emptied(old, fresh) && attempt < WEIR_CELL_ATTEMPTS / 2)
			continue;
		else if (old && weir_is_later_cell(old, step))
			return false;
		is_added = __sync_val_compare_and_swap(cell, old, fresh | (count + 1)) == old;
	}
	if (!is_added || READ_ONCE(flow->owner) >> 32 == tag)
		return is_added;
	/* The flow was evicted meanwhile. Take the connection out, unless the evicting CPU has done so after it was
	 * counted.
	 */
	return !weir_subtract_from_cell(flow, fresh, class, 1);
}

/* Empty a cell and return its count, unless it is of this turn or a later one, because another CPU may have been
 * faster.
 */
static __always_inline __u64 weir_drain_cell(__u64 *at, __u32 turn)
{
	for (int attempt = 0; attempt < WEIR_DRAIN_ATTEMPTS; attempt++) {
		__u64 cell = READ_ONCE(*at);

		if (!cell || !weir_is_left_over(cell, turn))
			return 0;
		if (__sync_val_compare_and_swap(at, cell, 0) == cell)
			return cell;
	}
	return 0;
}

/* ---- all cells ---- */

/* The age of a step, plus WEIR_STEPS_AHEAD. From WEIR_STEP_AGE_OVER on, connections last heard in it are over. */
#define WEIR_STEP_AGE_OVER (WEIR_CONNECTION_STEPS + WEIR_STEPS_AHEAD + 1ull)

static __always_inline __u64 weir_step_age(__u32 present, __u32 step)
{
	return (present + WEIR_STEPS_AHEAD - step) & WEIR_CONNECTION_CELL_STEP_MASK;
}

/* All bits if one number is less than another, both below 2^63; else none. */
static __always_inline __u64 weir_mask_if_less(__u64 one, __u64 other)
{
	return (__s64)(one - other) >> 63;
}

/*
 * The number of the flow's connections that are not over. Connections move between cells while we add up, and none may
 * be missed. So half-open ones are read before open ones, and in each class the oldest step first. A connection that
 * sends a packet never moves the other way (weir_step_to_move_to). One that is opened again does, but it is evaluated
 * against a sum that leaves it out. A connection that is found in both cells counts twice (unless we stall for a whole
 * step meanwhile). Whether the flow uses a class is read after the cells of the class before, because a connection that
 * moves marks its new class first.
 */
__noinline __u32 weir_sum_open(struct weir_scratch *s, const struct weir_connection_flow *flow, __u32 tag)
{
	__u32 open = 0;

	WEIR_GLOBAL(CONNECTIONS, s && flow, 0);
	weir_turn_steps(s);
#pragma nounroll /* three copies of it would take more stack */
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES_COUNTED; class ++) {
		__u32 present;

		if (!(READ_ONCE(flow->owner) & WEIR_CONNECTION_USES_CLASS(class)))
			continue;
		weir_order(s);
		present = s->connection_clock[class].bucket;
#pragma unroll
		for (__u32 i = 0; i < WEIR_CONNECTION_CELLS; i++) {
			__u32 oldest_first = (present + 2 + i) & (WEIR_CONNECTION_CELLS - 1);
			__u64 cell = READ_ONCE(flow->cell[class][oldest_first]);
			bool is_own = !((cell >> WEIR_CONNECTION_COUNT_BITS ^ tag) & WEIR_CONNECTION_CHECK);

			weir_order(s); /* before the next cell is read; correctness depends on this order */
			/* Branches are better here: without them the verifier of Linux 6.1 would follow 270,000 more
			 * instructions.
			 */
			if (is_own && weir_step_age(present, weir_cell_step(cell)) < WEIR_STEP_AGE_OVER)
				open += cell & WEIR_CONNECTION_COUNT_MASK;
		}
	}
	return open;
}

/* The same, read twice, because a connection that another CPU is moving counts double for a moment. */
static __always_inline __u32 weir_open_connections(struct weir_scratch *s, const struct weir_connection_flow *flow,
						   __u32 tag)
{
	__u32 open = weir_sum_open(s, flow, tag), again = weir_sum_open(s, flow, tag);

	return again < open ? again : open;
}

#endif
