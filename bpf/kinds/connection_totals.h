/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts the connections of a whole rule. The counts are only shown; no packet is evaluated against them. Every CPU
 * counts in a copy of its own without atomics, so that CPUs do not compete for a cache line in a flood.
 */
#ifndef WEIR_CONNECTION_TOTALS_H
#define WEIR_CONNECTION_TOTALS_H

#include "kinds/connection_counts.h"

static __always_inline struct weir_connection_total *weir_total_of(__u32 slot)
{
	return bpf_map_lookup_elem(&connection_totals, &slot);
}

/* Add `change` (1 or -1) to the connections of a keyed rule in a step. False: the step is over. */
static __always_inline bool weir_change_total_cell(struct weir_connection_total *total, __u32 class, __u32 step,
						   __u64 change)
{
	__u64 fresh = (__u64)(step & WEIR_CONNECTION_CELL_STEP_MASK) << WEIR_CONNECTION_CELL_STEP_SHIFT, *cell, old;

	cell = weir_step_cell(total->cell, class, step);
	old = *cell;
	if (weir_cell_step(old ^ fresh)) {
		if (old && weir_is_later_cell(old, step))
			return false;
		old = 0;
	}
	WRITE_ONCE(*cell, fresh | ((old + change) & WEIR_CONNECTION_TOTAL_MASK));
	return true;
}

/* The same of a step that may be over. Returns whether it still counts. */
__noinline int weir_change_total(struct weir_scratch *s, struct weir_connection_total *total, __u32 class, __u32 step,
				 __u64 change)
{
	WEIR_GLOBAL(CONNECTIONS, s && total, 0);
	if (!weir_change_total_cell(total, class, step, change))
		return 0;
	if (weir_step_age(weir_step_now(s, class), step) >= WEIR_STEP_AGE_OVER)
		return 0;
	total->open += change;
	return 1;
}

/* The count of a CPU's cell, which may be negative. */
static __always_inline __u64 weir_total_count(__u64 cell)
{
	const int unused = 64 - WEIR_CONNECTION_CELL_STEP_SHIFT;

	return (__s64)(cell << unused) >> unused;
}

/* A CPU's count for a class, which may be negative. Without branches, for the verifier. */
static __always_inline __u64 weir_sum_class(const struct weir_connection_total *total, __u32 class, __u32 present)
{
	__u64 open = 0;

#pragma nounroll
	for (__u32 i = 0; i < WEIR_CONNECTION_CELLS; i++) {
		__u64 cell = READ_ONCE(total->cell[class][i]);

		open += weir_total_count(cell) &
			weir_mask_if_less(weir_step_age(present, weir_cell_step(cell)), WEIR_STEP_AGE_OVER);
	}
	return open;
}

__noinline __u64 weir_sum_total(struct weir_scratch *s, __u32 slot)
{
	__u64 open = 0;

	WEIR_GLOBAL(CONNECTIONS, s, 0);
	for (__u32 cpu = 0; cpu < WEIR_CPUS_MAX && cpu < config.cpus; cpu++) {
		const struct weir_connection_total *total = bpf_map_lookup_percpu_elem(&connection_totals, &slot, cpu);

		for (__u32 class = 0; total && class < WEIR_CONNECTION_CLASSES_COUNTED; class ++)
			open += weir_sum_class(total, class, weir_step_now(s, class));
	}
	return open;
}

/* A connection of a keyed rule has been counted in. Are there now more than ever before? Other CPUs' counts are read
 * once a tick, and connections that fell silent once a step, if that can matter. `has_steps`: the packet has turned the
 * steps already.
 */
static __always_inline void weir_raise_total(struct weir_scratch *s, struct weir_connection_total *total, __u32 slot,
					     const bool has_steps)
{
	const bool is_known = s->tick == total->open_tick;
	__u64 open = total->open, steps;

	if (is_known && (__s64)(open - total->max) <= 0)
		return;
	steps = has_steps ? s->all_steps.bucket : weir_turn_steps(s);
	if (!is_known || steps != total->open_steps) {
		total->open = open = weir_sum_total(s, slot);
		total->open_tick = s->tick;
		total->open_steps = steps;
	}
	if ((__s64)(open - total->max) > 0)
		total->max = open;
}

#endif
