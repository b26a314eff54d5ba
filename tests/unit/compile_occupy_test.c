// SPDX-License-Identifier: GPL-2.0-only
/* Rules with occupy windows, compiled: the longest wait, their cells and tables, and what a reload keeps. */
#include "compile_by_hand.h"
#include "weir_occupy.h"

static struct weir_ruleset *occupy_ruleset(uint32_t key_fields)
{
	struct weir_ruleset *ruleset = two_resources(key_fields, 0);

	ruleset->settings.occupy_timeout_ms = 500;
	ruleset->resources[0].is_prioritized = true;
	add_kind(ruleset, "occupier", DIRECT, REJECT, CURRENT)->occupies = true;
	return ruleset;
}

CLAIM(no_wait_to_occupy_is_longer_than_the_interval)
{
	static const struct {
		uint64_t interval_ns;
		uint32_t timeout_ms;
		uint64_t longest_ns;
	} cases[] = {
		{SECOND, 500, SECOND / 2},	 {SECOND, 1000, SECOND}, {SECOND, 86400000, SECOND},
		{SECOND / 10, 500, SECOND / 10}, {SECOND, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = occupy_ruleset(WEIR_KEY_SOURCE);
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;

		ruleset->settings.occupy_timeout_ms = cases[i].timeout_ms;
		ruleset->rules[0].interval_ns = cases[i].interval_ns;
		image = build(ruleset);
		assert_int_equal(image->rules[0].queueing_ns_max, cases[i].longest_ns);
		assert_int_equal(image->rule_info[0].queueing_ns_max, cases[i].longest_ns);
	}
}

/* Whatever the clock says, a cell has bits for the round; and for a packet each ns, up to 2^40 of them. */
CLAIM(a_cell_holds_every_round_and_a_packet_each_nanosecond)
{
	static const uint64_t intervals_ms[] = {10, 11, 16, 1000, 60000, 3600000, 86400000};

	for (size_t i = 0; i < ARRAY_SIZE(intervals_ms); i++) {
		uint64_t interval_ns = intervals_ms[i] * 1000000, rounds = UINT64_MAX / (2 * interval_ns) + 1;
		uint8_t bits = weir_occupy_unit_bits(interval_ns);

		assert_true(rounds >> (64 - bits) == 0);
		assert_in_range(bits, 24, 40);
		assert_true(bits == 40 || 2ull << bits > interval_ns);
		assert_int_equal(weir_occupy_word(weir_occupy_mark(rounds, 0, bits), 5, bits) >> bits, rounds);
	}
}

CLAIM(tables_are_made_when_a_rule_occupies_and_for_its_flows)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = occupy_ruleset(0);
	struct weir_image *image;

	ruleset->settings.flows_per_cpu = 262144;
	image = build(ruleset);
	assert_int_equal(image->config.kinds, 1 << WEIR_KIND_OCCUPY);
	assert_int_equal(image->config.sizes[WEIR_TABLE_OCCUPY_FLOWS], 1);
	assert_int_equal(image->config.sizes[WEIR_TABLE_OCCUPY_RESOURCES], image->rule_slots);
	assert_int_equal(image->config.sizes[WEIR_TABLE_THROTTLED_FLOWS], 1);
	weir_image_free(image);

	ruleset->resources[0].flow.fields = WEIR_KEY_SOURCE;
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_OCCUPY_FLOWS], 65536);
	assert_int_equal(image->config.sizes[WEIR_TABLE_THROTTLED_FLOWS], 1);
	weir_image_free(image);

	ruleset->rules[0].occupies = false;
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_OCCUPY_FLOWS], 0);
	assert_int_equal(image->config.sizes[WEIR_TABLE_OCCUPY_RESOURCES], 0);
	weir_image_free(image);
}

/* Its counters continue; its windows are in another table. */
CLAIM(a_rule_that_begins_to_occupy_keeps_its_slot)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = occupy_ruleset(WEIR_KEY_SOURCE);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	ruleset->rules[0].occupies = false;
	image = build(ruleset);
	previous = previous_of(image);
	options.previous = &previous;
	ruleset->rules[0].occupies = true;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(next->rules[0].slot, image->rules[0].slot);
	assert_int_equal(next->rules[0].kind, WEIR_KIND_OCCUPY);
	assert_true(next->rule_info[0].occupies);
	weir_image_free(image);
	weir_image_free(next);
}

RUN_CLAIMS(NULL, NULL)
