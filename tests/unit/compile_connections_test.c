// SPDX-License-Identifier: GPL-2.0-only
/* Rules that count connections: what they become, the tables they need, and what a reload keeps of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/util.h"
#include "compile_by_hand.h"

static struct weir_ruleset_rule *add_concurrency(struct weir_ruleset *ruleset, size_t resource, const char *name,
						 uint64_t threshold)
{
	struct weir_ruleset_rule *rule = add_rule(ruleset, resource, name, threshold);

	rule->metric = WEIR_METRIC_CONCURRENCY;
	return rule;
}

static void a_concurrency_rule_goes_by_connections_and_takes_no_row(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;
	const struct weir_rule *rule;

	ruleset->settings.flows_per_cpu = 262144;
	add_concurrency(ruleset, 0, "keyed", 100)->threshold_micro += WEIR_MICRO - 1;
	add_concurrency(ruleset, 1, "whole", 7)->observes = true;
	image = build(ruleset);
	rule = &image->rules[0];
	assert_true(image->config.kinds & 1u << WEIR_KIND_CONNECTIONS);
	assert_int_equal(rule->kind, WEIR_KIND_CONNECTIONS);
	assert_int_equal(rule->key_fields, WEIR_KEY_SOURCE);
	assert_int_equal(rule->source_mask4, 0xffffffff);
	assert_int_equal(rule->storage, WEIR_STORAGE_LONE);
	assert_int_equal(rule->threshold, WEIR_THRESHOLD_WORD(100, 1));
	assert_int_equal(rule->bucket_ns, 0);
	assert_int_equal(rule->threshold_moves, 0);
	assert_int_equal(image->rules[1].kind, WEIR_KIND_CONNECTIONS);
	assert_int_equal(image->rules[1].observes, 1);
	assert_int_equal(image->rule_info[0].identity.metric, WEIR_METRIC_CONCURRENCY);
	assert_int_equal(image->spec_count, 0);
	assert_int_equal(image->shadow_count, 0);
	assert_int_equal(image->config.sizes[WEIR_TABLE_NARROW_FLOWS], WEIR_NARROW_SETS_PER_CHUNK);
	assert_int_equal(image->config.sizes[WEIR_TABLE_WIDE_FLOWS], WEIR_WIDE_SETS_PER_CHUNK);
	assert_int_equal(image->config.sizes[WEIR_TABLE_SHARERS], WEIR_SHARERS_LINE_CELLS);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_rate_rule_beside_a_concurrency_rule_is_as_it_is_alone(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "connections", 100);
	add_rule(ruleset, 0, "rate", 20);
	image = build(ruleset);
	assert_int_equal(image->rules[1].kind, WEIR_KIND_WINDOW);
	assert_int_equal(image->rules[1].storage, WEIR_STORAGE_NARROW);
	assert_int_equal(image->rules[1].bucket_ns, SECOND / 10);
	assert_int_equal(image->rules[1].asks_all, 0);
	assert_int_equal(image->spec_count, 1);
	assert_int_equal(image->packet_rules_max, 2);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void tables_of_connections_are_as_large_as_the_settings_say(void **state)
{
	static const struct {
		uint32_t connections, flows, sets, flow_sets;
	} sizes[] = {
		{131072, 32768, 65536, 8192},
		{131073, 32769, 131072, 16384},
		{1024, 256, 512, 64},
		{4194304, 4194304, 2097152, WEIR_CONNECTION_FLOW_SETS_MAX},
	};
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image_memory memory;
	struct weir_image *image;
	size_t i;

	add_concurrency(ruleset, 0, "keyed", 100);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ruleset->settings.connections = sizes[i].connections;
		ruleset->settings.connection_flows = sizes[i].flows;
		image = build(ruleset);
		assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], sizes[i].sets);
		assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], sizes[i].flow_sets);
		weir_image_memory(image, 2, &memory);
		assert_int_equal(memory.connections, 192ull * sizes[i].sets + 3200ull * sizes[i].flow_sets +
							     1024 * 448 +
							     (2 + 2) * 1024 * sizeof(struct weir_connection_total));
		assert_true(memory.total > memory.connections);
		weir_image_free(image);
	}
	/* A whole resource has one count, beside the table; without such rules there are neither. */
	ruleset->rules[0].resource = 1;
	image = build(ruleset);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 2097152);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 0);
	weir_image_free(image);
	ruleset->rules[0].metric = WEIR_METRIC_RATE;
	image = build(ruleset);
	assert_false(image->config.kinds & 1u << WEIR_KIND_CONNECTIONS);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 0);
	weir_image_memory(image, 2, &memory);
	assert_int_equal(memory.connections, 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void silence_is_measured_in_sixths_rounded_up(void **state)
{
	static const uint64_t steps_ns[] = {1666666667, 1240 * SECOND, 20 * SECOND, 1666833334};
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "keyed", 100);
	image = build(ruleset);
	assert_memory_equal(image->config.connection_step_ns, steps_ns, sizeof(steps_ns));
	assert_memory_equal(image->connection_timeout_ms, ruleset->settings.connection_timeout_ms,
			    sizeof(image->connection_timeout_ms));
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void overrides_of_a_concurrency_rule_are_in_the_trie(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_ruleset_rule *rule = add_concurrency(ruleset, 0, "keyed", 100);
	struct weir_image *image;

	rule->override_field = WEIR_KEY_SOURCE;
	rule->overrides = calloc(1, sizeof(*rule->overrides));
	assert_non_null(rule->overrides);
	rule->overrides[0] =
		(struct weir_override){.prefix = {.family = 4, .bits = 8, .address = {10}}, .threshold_micro = 5900000};
	rule->override_count = 1;
	image = build(ruleset);
	assert_int_equal(image->config.has_overrides, 1);
	assert_int_equal(image->rules[0].has_overrides, 1);
	assert_int_equal(image->override_count, 1);
	assert_int_equal(image->overrides[0].key.prefix_bits, WEIR_OVERRIDE_FIXED_BITS + 8);
	assert_int_equal(image->overrides[0].units.units, 5);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_concurrency_rule_keeps_its_slot_until_it_counts_something_else(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "r", 100);
	image = build(ruleset);
	/* What has no effect on it is no change of it. */
	ruleset->rules[0].interval_ns = 5 * SECOND;
	ruleset->rules[0].window = WEIR_WINDOW_STRICT;
	ruleset->rules[0].threshold_micro = 7 * WEIR_MICRO;
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, 0);
	assert_false(image->fresh_rule_slots[0]);
	assert_int_equal(image->rules[0].threshold & WEIR_THRESHOLD_MASK, 7);
	ruleset->rules[0].metric = WEIR_METRIC_RATE;
	reload(&image, ruleset, 3000 * SECOND);
	assert_int_equal(image->kept_rules, 0);
	assert_int_equal(image->rules[0].slot, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void a_slot_is_not_given_away_while_its_connections_may_last(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *none = two_resources(0, 0);
	struct weir_image *image;

	add_concurrency(ruleset, 0, "r", 100);
	image = build(ruleset);
	reload(&image, none, 2000 * SECOND);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	/* Seven steps of 1240 s, and one second. */
	assert_int_equal(image->rule_info[0].free_after_ns, (2000 + 7 * 1240 + 1) * SECOND);
	reload(&image, ruleset, (2000 + 7 * 1240) * SECOND);
	assert_int_equal(image->rules[0].slot, 1);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

static void the_first_concurrency_rule_of_a_reload_brings_its_tables(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image *image;

	add_rule(ruleset, 0, "rate", 20);
	image = build(ruleset);
	ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_OPEN] = 60000;
	add_concurrency(ruleset, 1, "whole", 100);
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 65536);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 0);
	assert_int_equal(image->config.connection_step_ns[WEIR_CONNECTION_CLASS_OPEN], 10 * SECOND);
	/* Another table beside it, later. */
	add_concurrency(ruleset, 0, "keyed", 100);
	reload(&image, ruleset, 3000 * SECOND);
	assert_int_equal(image->kept_rules, 2);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 65536);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 8192);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
}

static void connections_in_use_keep_tables_and_time_outs_over_a_reload(void **state)
{
	static const char *const expected[] = {"table of connections keeps its 131072 places",
					       "table of flows with connections keeps its 32768 places",
					       "the timeouts of connections stay as they are"};
	static const uint64_t timeouts_ms[] = {10000, 7440000, 120000, 10001};
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	struct weir_diag diag = {};
	size_t i;

	add_concurrency(ruleset, 0, "keyed", 100);
	image = build(ruleset);
	previous = previous_of(image);
	options.previous = &previous;
	ruleset->settings.connections = 4096;
	ruleset->settings.connection_flows = 4096;
	ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 60000;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(next->config.sizes[WEIR_TABLE_CONNECTIONS], 65536);
	assert_int_equal(next->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 8192);
	assert_memory_equal(next->connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
	assert_int_equal(next->config.connection_step_ns[WEIR_CONNECTION_CLASS_HALF], 1666666667);
	assert_int_equal(diag.count, ARRAY_SIZE(expected));
	for (i = 0; i < ARRAY_SIZE(expected); i++)
		assert_non_null(strstr(diag.entries[i].message, expected[i]));
	assert_string_equal(diag.entries[0].hint, "detach and attach again to change connections");
	weir_diag_free(&diag);
	weir_image_free(next);
	/* What is worked out from a setting is not named beside it; by itself it is. */
	ruleset->settings.derives_connection_flows = true;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 2);
	assert_non_null(strstr(diag.entries[0].message, expected[0]));
	assert_non_null(strstr(diag.entries[1].message, expected[2]));
	weir_diag_free(&diag);
	weir_image_free(next);
	ruleset->settings.connections = 131072;
	assert_int_equal(weir_image_build(ruleset, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 2);
	assert_non_null(strstr(diag.entries[0].message, expected[1]));
	weir_diag_free(&diag);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
}

static void time_outs_of_no_connections_are_not_warned_of(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *none = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	struct weir_diag diag = {};

	add_concurrency(ruleset, 0, "keyed", 100);
	ruleset->settings.connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] = 60000;
	image = build(ruleset);
	previous = previous_of(image);
	options.previous = &previous;
	assert_int_equal(weir_image_build(none, &options, &next, &diag), 0);
	assert_int_equal(diag.count, 0);
	/* The connections that there are go on to count their silence as they did. */
	assert_int_equal(next->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF], 60000);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

/* Connections of the rule with a key last on in the table, and know their flow by its place. */
static void the_flows_of_a_rule_that_went_stay_beside_the_connections(void **state)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *whole = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_ruleset *none = two_resources(0, 0);
	struct weir_image *image;
	int i;

	add_concurrency(ruleset, 1, "whole", 100);
	add_concurrency(ruleset, 0, "keyed", 100);
	add_concurrency(whole, 1, "whole", 100);
	image = build(ruleset);
	for (i = 0; i < 3; i++) {
		reload(&image, whole, (2000 + i) * SECOND);
		assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 65536);
		assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 8192);
	}
	/* The last reload that knew such a rule, and the next. */
	reload(&image, none, 3000 * SECOND);
	reload(&image, none, 3001 * SECOND);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 0);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 0);
	weir_image_free(image);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(whole);
	weir_ruleset_free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_concurrency_rule_goes_by_connections_and_takes_no_row),
		cmocka_unit_test(a_rate_rule_beside_a_concurrency_rule_is_as_it_is_alone),
		cmocka_unit_test(tables_of_connections_are_as_large_as_the_settings_say),
		cmocka_unit_test(silence_is_measured_in_sixths_rounded_up),
		cmocka_unit_test(overrides_of_a_concurrency_rule_are_in_the_trie),
		cmocka_unit_test(a_concurrency_rule_keeps_its_slot_until_it_counts_something_else),
		cmocka_unit_test(a_slot_is_not_given_away_while_its_connections_may_last),
		cmocka_unit_test(the_first_concurrency_rule_of_a_reload_brings_its_tables),
		cmocka_unit_test(connections_in_use_keep_tables_and_time_outs_over_a_reload),
		cmocka_unit_test(time_outs_of_no_connections_are_not_warned_of),
		cmocka_unit_test(the_flows_of_a_rule_that_went_stay_beside_the_connections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
