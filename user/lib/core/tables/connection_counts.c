// SPDX-License-Identifier: GPL-2.0-only
#include "tables/connection_counts.h"

struct weir_connection_clock weir_connection_clock(const __u64 step_ns[WEIR_CONNECTION_CLASSES], uint64_t now_ns)
{
	struct weir_connection_clock clock = {};

	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		clock.step[class] = step_ns[class] ? now_ns / step_ns[class] : 0;
	return clock;
}

uint64_t weir_connection_step_ns(uint64_t timeout_ms)
{
	return (timeout_ms * 1000000 + WEIR_CONNECTION_STEPS - 1) / WEIR_CONNECTION_STEPS;
}

/* How far a clock that was read later than ours may be ahead, if the table was copied slowly. Chosen, not derived. */
#define STEPS_AHEAD 1024

/* Step numbers are stored modulo a power of two. */
static bool is_within_steps(uint64_t present, uint64_t step, uint64_t mask)
{
	return ((present + STEPS_AHEAD - step) & mask) <= STEPS_AHEAD + WEIR_CONNECTION_STEPS;
}

uint64_t weir_connections_in_cells(const struct weir_connection_flow *flow, uint32_t tag,
				   const struct weir_connection_clock *clock)
{
	uint64_t sum = 0;

	for (int class = 0; class < WEIR_CONNECTION_CLASSES_COUNTED; class ++)
		for (int i = 0; i < WEIR_CONNECTION_CELLS; i++) {
			uint64_t cell = flow->cell[class][i];
			uint64_t check = cell >> WEIR_CONNECTION_COUNT_BITS & WEIR_CONNECTION_CHECK;

			if (check == (tag & WEIR_CONNECTION_CHECK) &&
			    is_within_steps(clock->step[class], cell >> WEIR_CONNECTION_CELL_STEP_SHIFT,
					    WEIR_CONNECTION_CELL_STEP_MASK))
				sum += cell & WEIR_CONNECTION_COUNT_MASK;
		}
	return sum;
}

static uint64_t less(uint64_t from, uint64_t amount)
{
	return from > amount ? from - amount : 0;
}

static void add_counts(const struct weir_connection_counts *counts, struct weir_connection_figures *figures)
{
	uint64_t shortest_us = counts->handshake_less_us ? (1ull << 32) - counts->handshake_less_us : 0;

	figures->learned += counts->learned;
	figures->returned += counts->returned;
	figures->refused += counts->refused;
	figures->closed_by_fin += counts->closed_by_fin;
	figures->closed_by_reset += counts->closed_by_reset;
	figures->reused += counts->reused;
	figures->evicted += counts->evicted;
	figures->handshakes += counts->handshakes;
	figures->handshake_us += counts->handshake_us;
	if (counts->handshakes && (figures->handshakes == counts->handshakes || shortest_us < figures->shortest_us))
		figures->shortest_us = shortest_us;
	for (int i = 0; i < WEIR_HANDSHAKE_STEPS; i++)
		figures->handshake_step[i] += counts->handshake_step[i];
}

static void finish(struct weir_connection_figures *figures)
{
	/* A connection is counted before it is known whether there is room, and may briefly be in two cells. */
	if (figures->now > figures->max)
		figures->now = figures->max;
	figures->closed_by_idle =
		less(figures->opened + figures->returned, figures->closed_by_fin + figures->closed_by_reset +
								  figures->reused + figures->evicted + figures->now);
}

void weir_connection_figures(const struct weir_connection_flow *flow, uint32_t tag,
			     const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures)
{
	struct weir_connection_figures figures = {
		.now = weir_connections_in_cells(flow, tag, clock),
		.max = flow->max,
		.opened = flow->opened,
	};

	if (flow->owner & WEIR_CONNECTION_USES_COUNTS)
		add_counts(&flow->counts, &figures);
	finish(&figures);
	*ret_figures = figures;
}

/* May be negative. */
static int64_t sum_of_cells(const struct weir_connection_total *total, const struct weir_connection_clock *clock)
{
	const int unused = 64 - WEIR_CONNECTION_CELL_STEP_SHIFT;
	int64_t sum = 0;

	for (int class = 0; class < WEIR_CONNECTION_CLASSES_COUNTED; class ++)
		for (int i = 0; i < WEIR_CONNECTION_CELLS; i++) {
			uint64_t cell = total->cell[class][i];

			if (is_within_steps(clock->step[class], cell >> WEIR_CONNECTION_CELL_STEP_SHIFT,
					    WEIR_CONNECTION_CELL_STEP_MASK))
				sum += (int64_t)(cell << unused) >> unused;
		}
	return sum;
}

void weir_connection_rule_figures(const struct weir_connection_total *totals, int cpus,
				  const struct weir_connection_flow *lone, const struct weir_connection_clock *clock,
				  struct weir_connection_figures *ret_figures)
{
	struct weir_connection_figures figures = {.has_refused = true};
	int64_t now = (int64_t)weir_connections_in_cells(lone, WEIR_CONNECTION_LONE_TAG, clock);

	for (int cpu = 0; cpu < cpus; cpu++) {
		now += sum_of_cells(&totals[cpu], clock);
		figures.opened += totals[cpu].opened;
		if (totals[cpu].max > figures.max)
			figures.max = totals[cpu].max;
		add_counts(&totals[cpu].counts, &figures);
	}
	figures.now = now > 0 ? (uint64_t)now : 0;
	/* A CPU looks at the counts of others once per tick, so the total may have been higher than any CPU has seen.
	 */
	if (cpus > 1 && figures.now > figures.max)
		figures.max = figures.now;
	finish(&figures);
	*ret_figures = figures;
}

/* The class of a state in which connections count; WEIR_CONNECTION_CLASSES_COUNTED for other states. */
static uint32_t counted_class(uint32_t state)
{
	switch (state) {
	case WEIR_CONNECTION_HALF_OPEN:
		return WEIR_CONNECTION_CLASS_HALF;
	case WEIR_CONNECTION_OPEN:
		return WEIR_CONNECTION_CLASS_OPEN;
	case WEIR_CONNECTION_OTHER_ONCE:
	case WEIR_CONNECTION_OTHER:
		return WEIR_CONNECTION_CLASS_OTHER;
	}
	return WEIR_CONNECTION_CLASSES_COUNTED;
}

bool weir_connection_is_counted(const struct weir_connection_set *set, uint32_t way,
				const struct weir_connection_clock *clock, struct weir_connection_owner *ret_owner)
{
	uint64_t word = set->word[way], tag = set->flows.tag[way];
	uint32_t class = counted_class(word >> WEIR_CONNECTION_STATE_SHIFT & 7);

	if (!tag || class == WEIR_CONNECTION_CLASSES_COUNTED ||
	    ((word >> WEIR_CONNECTION_TAG_SHIFT ^ tag) & WEIR_CONNECTION_TAG_MASK) ||
	    !is_within_steps(clock->step[class], word, WEIR_CONNECTION_STEP_MASK))
		return false;
	*ret_owner = (struct weir_connection_owner){
		.flow = word >> WEIR_CONNECTION_FLOW_SHIFT,
		.check = word >> WEIR_CONNECTION_FLOW_TAG_SHIFT & WEIR_CONNECTION_CHECK,
	};
	return true;
}
