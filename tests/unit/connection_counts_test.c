// SPDX-License-Identifier: GPL-2.0-only
/* What the words of the connection tables say, of entries made by hand. */
#include "../lib/claims.h"
#include "tables/connection_counts.h"

#define STEP_NS 1000ull
#define TAG 0x12345678u
#define CHECK (TAG & WEIR_CONNECTION_CHECK)

static const __u64 steps_ns[WEIR_CONNECTION_CLASSES] = {STEP_NS, 10 * STEP_NS, 100 * STEP_NS, STEP_NS};

static struct weir_connection_clock at(uint64_t now_ns)
{
	return weir_connection_clock(steps_ns, now_ns);
}

static void count(struct weir_connection_flow *flow, enum weir_connection_class class, uint64_t step, uint32_t tag,
		  uint32_t connections)
{
	flow->cell[class][step % WEIR_CONNECTION_CELLS] = WEIR_CONNECTION_CELL(step, tag) | connections;
}

/* ---- cells ---- */

CLAIM(step_is_a_sixth_of_the_time_out_rounded_up)
{
	assert_int_equal(weir_connection_step_ns(6), 1000000);
	assert_int_equal(weir_connection_step_ns(10000), 1666666667);
	assert_int_equal(weir_connection_step_ns(86400000), 14400000000000);
}

CLAIM(cell_counts_for_seven_steps_and_no_longer)
{
	struct weir_connection_flow flow = {};

	count(&flow, WEIR_CONNECTION_CLASS_HALF, 50, TAG, 3);
	for (uint64_t step = 50; step <= 56; step++) {
		struct weir_connection_clock first = at(step * STEP_NS), last = at((step + 1) * STEP_NS - 1);

		assert_int_equal(weir_connections_in_cells(&flow, TAG, &first), 3);
		assert_int_equal(weir_connections_in_cells(&flow, TAG, &last), 3);
	}
	assert_int_equal(weir_connections_in_cells(&flow, TAG, &(struct weir_connection_clock){{57}}), 0);
}

CLAIM(cell_that_another_cpu_is_ahead_counts)
{
	struct weir_connection_flow flow = {};
	struct weir_connection_clock clock = at(49 * STEP_NS);

	count(&flow, WEIR_CONNECTION_CLASS_HALF, 50, TAG, 3);
	assert_int_equal(weir_connections_in_cells(&flow, TAG, &clock), 3);
}

CLAIM(classes_have_steps_of_their_own_and_are_added)
{
	struct weir_connection_flow flow = {};
	struct weir_connection_clock clock = at(70 * STEP_NS);

	count(&flow, WEIR_CONNECTION_CLASS_HALF, 70, TAG, 1);
	count(&flow, WEIR_CONNECTION_CLASS_HALF, 64, TAG, 10);
	count(&flow, WEIR_CONNECTION_CLASS_HALF, 63, TAG, 100); /* over */
	count(&flow, WEIR_CONNECTION_CLASS_OPEN, 1, TAG, 1000); /* of step 7 */
	count(&flow, WEIR_CONNECTION_CLASS_OPEN, 0, TAG, 10000);
	count(&flow, WEIR_CONNECTION_CLASS_OTHER, 0, TAG, 100000);
	assert_int_equal(weir_connections_in_cells(&flow, TAG, &clock), 101011);
}

CLAIM(cell_that_another_flow_left_counts_nothing)
{
	struct weir_connection_flow flow = {};
	struct weir_connection_clock clock = at(50 * STEP_NS);

	count(&flow, WEIR_CONNECTION_CLASS_HALF, 50, TAG ^ 1, 3);
	assert_int_equal(weir_connections_in_cells(&flow, TAG, &clock), 0);
}

/* Thirty bits of a step of a sixth of a second are over after 5.7 years. */
CLAIM(number_of_a_step_may_wrap)
{
	const uint64_t step = 1ull << 30;
	struct weir_connection_flow flow = {};
	struct weir_connection_clock clock = at((step + 2) * STEP_NS);

	count(&flow, WEIR_CONNECTION_CLASS_HALF, step - 1, TAG, 3);
	assert_int_equal(weir_connections_in_cells(&flow, TAG, &clock), 3);
	clock = at((step + 6) * STEP_NS);
	assert_int_equal(weir_connections_in_cells(&flow, TAG, &clock), 0);
}

/* ---- figures ---- */

CLAIM(all_other_connections_end_by_silence)
{
	struct weir_connection_flow flow = {.owner = WEIR_CONNECTION_OWNER(WEIR_CONNECTION_USES_COUNTS, TAG),
					    .max = 9,
					    .opened = 100,
					    .counts = {.learned = 1000,
						       .returned = 10,
						       .closed_by_fin = 20,
						       .closed_by_reset = 5,
						       .reused = 4,
						       .evicted = 1}};
	struct weir_connection_clock clock = at(50 * STEP_NS);
	struct weir_connection_figures figures;

	count(&flow, WEIR_CONNECTION_CLASS_HALF, 50, TAG, 3);
	weir_connection_figures(&flow, TAG, &clock, &figures);
	assert_int_equal(figures.now, 3);
	assert_int_equal(figures.max, 9);
	assert_int_equal(figures.closed_by_idle, 110 - 20 - 5 - 4 - 1 - 3);
}

CLAIM(counts_that_the_owner_has_not_used_are_nothing)
{
	struct weir_connection_flow flow = {.max = 3, .opened = 3, .counts = {.learned = 10, .evicted = 1}};
	struct weir_connection_clock clock = at(50 * STEP_NS);
	struct weir_connection_figures figures;

	weir_connection_figures(&flow, TAG, &clock, &figures);
	assert_int_equal(figures.learned, 0);
	assert_int_equal(figures.evicted, 0);
	assert_int_equal(figures.closed_by_idle, 3);
}

static void count_total(struct weir_connection_total *total, uint64_t step, int64_t connections)
{
	total->cell[WEIR_CONNECTION_CLASS_HALF][step % WEIR_CONNECTION_CELLS] =
		step << WEIR_CONNECTION_CELL_STEP_SHIFT | (connections & WEIR_CONNECTION_TOTAL_MASK);
}

/* One CPU counts out what another has counted in; the third has seen no packet of the rule. */
CLAIM(rule_has_what_all_cpus_count)
{
	struct weir_connection_total totals[3] = {
		{.opened = 7,
		 .max = 4,
		 .counts = {.refused = 70, .handshakes = 1, .handshake_less_us = (1ull << 32) - 9}},
		{.opened = 2,
		 .max = 6,
		 .counts = {.refused = 7, .handshakes = 2, .handshake_less_us = (1ull << 32) - 5}},
	};
	struct weir_connection_clock clock = at(50 * STEP_NS);
	struct weir_connection_flow lone = {};
	struct weir_connection_figures figures;

	count_total(&totals[0], 50, 5);
	count_total(&totals[0], 43, 100); /* fell silent */
	count_total(&totals[1], 50, -2);
	weir_connection_rule_figures(totals, 3, &lone, &clock, &figures);
	assert_int_equal(figures.now, 3);
	assert_int_equal(figures.max, 6);
	assert_int_equal(figures.opened, 9);
	assert_int_equal(figures.refused, 77);
	assert_int_equal(figures.shortest_us, 5);
	assert_int_equal(figures.closed_by_idle, 6);

	count_total(&totals[1], 50, -9);
	weir_connection_rule_figures(totals, 3, &lone, &clock, &figures);
	assert_int_equal(figures.now, 0);
}

CLAIM(rule_without_a_flow_key_has_what_its_only_flow_has)
{
	struct weir_connection_total total = {.opened = 8, .max = 8};
	struct weir_connection_clock clock = at(50 * STEP_NS);
	struct weir_connection_flow lone = {};
	struct weir_connection_figures figures;

	count(&lone, WEIR_CONNECTION_CLASS_HALF, 50, WEIR_CONNECTION_LONE_TAG, 5);
	weir_connection_rule_figures(&total, 1, &lone, &clock, &figures);
	assert_int_equal(figures.now, 5);
	assert_int_equal(figures.closed_by_idle, 3);
}

CLAIM(figures_read_between_two_changes_are_never_below_zero)
{
	struct weir_connection_flow flow = {.max = 5, .opened = 4};
	struct weir_connection_clock clock = at(50 * STEP_NS);
	struct weir_connection_figures figures;

	count(&flow, WEIR_CONNECTION_CLASS_HALF, 50, TAG, 5); /* counted, and not yet opened */
	weir_connection_figures(&flow, TAG, &clock, &figures);
	assert_int_equal(figures.now, 5);
	assert_int_equal(figures.closed_by_idle, 0);
}

/* A connection is counted before it is known whether it is refused. */
CLAIM(now_is_never_above_the_maximum)
{
	struct weir_connection_flow flow = {.max = 10, .opened = 10};
	struct weir_connection_clock clock = at(50 * STEP_NS);
	struct weir_connection_figures figures;

	count(&flow, WEIR_CONNECTION_CLASS_HALF, 50, TAG, 11);
	weir_connection_figures(&flow, TAG, &clock, &figures);
	assert_int_equal(figures.now, 10);
}

CLAIM(shortest_handshake_is_reported_also_when_it_took_no_time)
{
	struct weir_connection_flow flow = {
		.owner = WEIR_CONNECTION_OWNER(WEIR_CONNECTION_USES_COUNTS, TAG),
		.counts = {.handshakes = 2, .handshake_us = 30, .handshake_step = {1, [4] = 1}}};
	struct weir_connection_clock clock = at(0);
	struct weir_connection_figures figures;

	flow.counts.handshake_less_us = 1ull << 32;
	weir_connection_figures(&flow, TAG, &clock, &figures);
	assert_int_equal(figures.shortest_us, 0);
	assert_int_equal(figures.handshake_step[0], 1);
	assert_int_equal(figures.handshake_step[4], 1);
	flow.counts.handshake_less_us = (1ull << 32) - 12;
	weir_connection_figures(&flow, TAG, &clock, &figures);
	assert_int_equal(figures.shortest_us, 12);
}

/* ---- connections ---- */

static uint64_t word(uint64_t step, enum weir_connection_state state, uint32_t tag)
{
	return (step & WEIR_CONNECTION_STEP_MASK) | (uint64_t)state << WEIR_CONNECTION_STATE_SHIFT |
	       (uint64_t)(tag & WEIR_CONNECTION_TAG_MASK) << WEIR_CONNECTION_TAG_SHIFT |
	       (uint64_t)CHECK << WEIR_CONNECTION_FLOW_TAG_SHIFT | 777ull << WEIR_CONNECTION_FLOW_SHIFT;
}

static bool is_counted(uint64_t a_word, uint64_t now_ns)
{
	struct weir_connection_set set = {.flows.tag = {0, 0x9abcdef0u}, .word = {0, a_word}};
	struct weir_connection_clock clock = at(now_ns);
	struct weir_connection_owner owner;

	if (!weir_connection_is_counted(&set, 1, &clock, &owner))
		return false;
	assert_int_equal(owner.flow, 777);
	assert_int_equal(owner.check, CHECK);
	return true;
}

CLAIM(connection_counts_by_its_state)
{
	static const bool counts[] = {
		[WEIR_CONNECTION_NONE] = false,	   [WEIR_CONNECTION_HALF_OPEN] = true,
		[WEIR_CONNECTION_LEARNED] = false, [WEIR_CONNECTION_OPEN] = true,
		[WEIR_CONNECTION_OTHER] = true,	   [WEIR_CONNECTION_OTHER_ONCE] = true,
		[WEIR_CONNECTION_CLOSED] = false,  [WEIR_CONNECTION_REFUSED] = false,
	};

	for (int i = 0; i < 8; i++)
		assert_int_equal(is_counted(word(0, i, 0x9abcdef0u), 0), counts[i]);
}

CLAIM(connection_counts_until_the_time_out_of_its_state)
{
	assert_true(is_counted(word(0, WEIR_CONNECTION_HALF_OPEN, 0x9abcdef0u), 7 * STEP_NS - 1));
	assert_false(is_counted(word(0, WEIR_CONNECTION_HALF_OPEN, 0x9abcdef0u), 7 * STEP_NS));
	assert_true(is_counted(word(0, WEIR_CONNECTION_OPEN, 0x9abcdef0u), 70 * STEP_NS - 1));
	assert_false(is_counted(word(0, WEIR_CONNECTION_OPEN, 0x9abcdef0u), 70 * STEP_NS));
	assert_true(is_counted(word(0, WEIR_CONNECTION_OTHER_ONCE, 0x9abcdef0u), 700 * STEP_NS - 1));
	assert_false(is_counted(word(0, WEIR_CONNECTION_OTHER_ONCE, 0x9abcdef0u), 700 * STEP_NS));
}

CLAIM(word_that_another_flow_left_is_no_connection)
{
	assert_false(is_counted(word(0, WEIR_CONNECTION_OPEN, 0x9abcdef1u), 0));
}

RUN_CLAIMS(NULL, NULL)
