// SPDX-License-Identifier: GPL-2.0-only
/* Rules that count connections: what they become, the tables they need, and what a reload keeps of them. */
#include <string.h>

#include "compile_by_hand.h"

static struct weir_ruleset_rule *add_concurrency(struct weir_ruleset *ruleset, size_t resource, const char *name,
						 uint64_t threshold)
{
	struct weir_ruleset_rule *rule = add_rule(ruleset, resource, name, threshold);

	rule->metric = WEIR_METRIC_CONCURRENCY;
	return rule;
}

CLAIM(a_concurrency_rule_goes_by_connections_and_takes_no_row)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
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
}

CLAIM(a_rate_rule_beside_a_concurrency_rule_is_as_it_is_alone)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_concurrency(ruleset, 0, "connections", 100);
	add_rule(ruleset, 0, "rate", 20);
	image = build(ruleset);
	assert_int_equal(image->rules[1].kind, WEIR_KIND_WINDOW);
	assert_int_equal(image->rules[1].storage, WEIR_STORAGE_NARROW);
	assert_int_equal(image->rules[1].bucket_ns, SECOND / 10);
	assert_int_equal(image->rules[1].asks_all, 0);
	assert_int_equal(image->spec_count, 1);
	assert_int_equal(image->packet_rules_max, 2);
}

CLAIM(tables_of_connections_are_as_large_as_the_settings_say)
{
	static const struct {
		uint32_t connections, flows, sets, flow_sets;
	} sizes[] = {
		{131072, 32768, 65536, 8192},
		{131073, 32769, 131072, 16384},
		{1024, 256, 512, 64},
		{4194304, 4194304, 2097152, WEIR_CONNECTION_FLOW_SETS_MAX},
	};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_image_memory memory;
	struct weir_image *image;

	add_concurrency(ruleset, 0, "keyed", 100);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
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
}

CLAIM(silence_is_measured_in_sixths_rounded_up)
{
	static const uint64_t steps_ns[] = {1666666667, 1240 * SECOND, 20 * SECOND, 1666833334};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_concurrency(ruleset, 0, "keyed", 100);
	image = build(ruleset);
	assert_memory_equal(image->config.connection_step_ns, steps_ns, sizeof(steps_ns));
	assert_memory_equal(image->connection_timeout_ms, ruleset->settings.connection_timeout_ms,
			    sizeof(image->connection_timeout_ms));
}

CLAIM(overrides_of_a_concurrency_rule_are_in_the_trie)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_ruleset_rule *rule = add_concurrency(ruleset, 0, "keyed", 100);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

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
}

CLAIM(a_concurrency_rule_keeps_its_slot_until_it_counts_something_else)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

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
}

CLAIM(a_slot_is_not_given_away_while_its_connections_may_last)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *none = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_concurrency(ruleset, 0, "r", 100);
	image = build(ruleset);
	reload(&image, none, 2000 * SECOND);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	/* Seven steps of 1240 s, and one second. */
	assert_int_equal(image->rule_info[0].free_after_ns, (2000 + 7 * 1240 + 1) * SECOND);
	reload(&image, ruleset, (2000 + 7 * 1240) * SECOND);
	assert_int_equal(image->rules[0].slot, 1);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

CLAIM(the_first_concurrency_rule_of_a_reload_brings_its_tables)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

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
}

CLAIM(connections_in_use_keep_tables_and_time_outs_over_a_reload)
{
	static const char *const expected[] = {"table of connections keeps its 131072 places",
					       "table of flows with connections keeps its 32768 places",
					       "the timeouts of connections stay as they are"};
	static const uint64_t timeouts_ms[] = {10000, 7440000, 120000, 10001};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_compile_options options = plain_options;
	struct weir_image *image, *next = NULL;
	struct weir_previous previous;
	struct weir_diag diag = {};

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
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
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
}

CLAIM(time_outs_of_no_connections_are_not_warned_of)
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
	/* Existing connections still time their silence as they did. */
	assert_int_equal(next->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF], 60000);
	weir_image_free(image);
	weir_image_free(next);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(none);
}

/* Connections of the rule with a key last on in the table, and know their flow by its place. */
CLAIM(the_flows_of_a_rule_that_went_stay_beside_the_connections)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0), *whole = two_resources(WEIR_KEY_SOURCE, 0);
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *none = two_resources(0, 0);
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_concurrency(ruleset, 1, "whole", 100);
	add_concurrency(ruleset, 0, "keyed", 100);
	add_concurrency(whole, 1, "whole", 100);
	image = build(ruleset);
	for (int i = 0; i < 3; i++) {
		reload(&image, whole, (2000 + i) * SECOND);
		assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 65536);
		assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 8192);
	}
	/* The last reload that knew such a rule, and the next. */
	reload(&image, none, 3000 * SECOND);
	reload(&image, none, 3001 * SECOND);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTIONS], 0);
	assert_int_equal(image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS], 0);
	weir_ruleset_free(ruleset);
	weir_ruleset_free(whole);
}

/* ---- rules that share connections ---- */

CLAIM(rules_of_one_key_that_enforce_share_their_connections)
{
	static const struct {
		uint32_t first, flows_slot, mark;
	} expected[] = {
		{0, 0, 0}, {1, 1, 0}, {0, 0, 2}, {3, 3, 1}, {4, 4, 0}, {0, 0, 4}, {6, 6, 0}, {6, 6, 2},
	};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);
	struct weir_ruleset_rule *other_key;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	add_concurrency(ruleset, 0, "a", 100);
	add_rule(ruleset, 0, "rate", 20);
	add_concurrency(ruleset, 0, "b", 50);
	add_concurrency(ruleset, 0, "observer", 50)->observes = true;
	other_key = add_concurrency(ruleset, 0, "networks", 50);
	other_key->has_own_key = true;
	other_key->own_key = (struct weir_flow){.fields = WEIR_KEY_SOURCE, .source_bits = {24, 56}};
	add_concurrency(ruleset, 0, "c", 70);
	add_concurrency(ruleset, 1, "w", 100);
	add_concurrency(ruleset, 1, "x", 90);
	image = build(ruleset);
	assert_int_equal(image->config.shares_connections, 1);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		assert_int_equal(image->rules[i].shares_with, expected[i].first);
		assert_int_equal(image->rules[i].slot, i);
		assert_int_equal(image->rules[i].flows_slot, expected[i].flows_slot);
		assert_int_equal(image->rules[i].drops_mark, expected[i].mark);
	}
}

static struct weir_ruleset *rules_of_one_key(const char *names)
{
	struct weir_ruleset *ruleset = two_resources(WEIR_KEY_SOURCE, 0);

	for (; *names; names++)
		add_concurrency(ruleset, 0, (char[]){*names, '\0'}, 100);
	return ruleset;
}

static void reload_rules(struct weir_image **image, const char *names, uint64_t now_ns)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = rules_of_one_key(names);

	reload(image, ruleset, now_ns);
}

static void assert_counts_at(const struct weir_image *image, uint32_t flows_slot)
{
	for (uint32_t i = 0; i < image->rule_count; i++) {
		assert_int_equal(image->rules[i].flows_slot, flows_slot);
		assert_int_equal(image->rules[i].shares_with, 0);
		assert_int_equal(image->rule_info[image->rules[i].slot].flows_slot_and_one, flows_slot + 1);
		assert_false(image->fresh_rule_slots[flows_slot]);
	}
}

/* 100,000 s: longer than connections last. */
CLAIM(shared_connections_stay_whichever_of_the_rules_come_and_go)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = rules_of_one_key("ab");
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	reload_rules(&image, "cab", 100000 * SECOND);
	assert_counts_at(image, 0);
	assert_int_equal(image->rules[0].slot, 2);
	reload_rules(&image, "cb", 200000 * SECOND);
	assert_counts_at(image, 0);
	assert_int_equal(image->rule_info[0].state, WEIR_SLOT_COOLING);
	/* Its slot is not given away while another rule counts there. */
	reload_rules(&image, "cbde", 300000 * SECOND);
	assert_counts_at(image, 0);
	assert_int_equal(image->rules[2].slot, 3);
	reload_rules(&image, "d", 400000 * SECOND);
	assert_counts_at(image, 0);
	assert_int_equal(image->rules[0].slot, 3);
	assert_int_equal(image->config.shares_connections, 0);
	/* When nobody does any more, it cools like any other. */
	reload_rules(&image, "", 500000 * SECOND);
	assert_int_equal(image->rule_info[0].free_after_ns, (500000 + 7 * 1240 + 1) * SECOND);
	reload_rules(&image, "f", 600000 * SECOND);
	assert_int_equal(image->rules[0].slot, 0);
}

CLAIM(rules_that_enforce_keep_the_count_when_one_begins_to_observe)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = rules_of_one_key("abc");
	_cleanup_(weir_image_freep) struct weir_image *image = build(ruleset);

	ruleset->rules[0].observes = true;
	reload(&image, ruleset, 2000 * SECOND);
	assert_int_equal(image->kept_rules, 2);
	assert_non_null(image->why_empty[0]);
	assert_int_equal(image->rules[0].slot, 3);
	assert_int_equal(image->rules[0].flows_slot, 3);
	assert_int_equal(image->rules[1].shares_with, 1);
	assert_int_equal(image->rules[1].flows_slot, 0);
	assert_int_equal(image->rules[2].flows_slot, 0);
	/* It enforces again: what it has seen meanwhile is not what the others have admitted. */
	ruleset->rules[0].observes = false;
	reload(&image, ruleset, 3000 * SECOND);
	assert_int_equal(image->kept_rules, 3);
	assert_counts_at(image, 0);
	/* Alone, it keeps what all have counted. */
	ruleset->rules[0].observes = true;
	ruleset->rule_count = 1;
	reload(&image, ruleset, 4000 * SECOND);
	assert_int_equal(image->kept_rules, 1);
	assert_int_equal(image->rules[0].slot, 3);
	assert_counts_at(image, 0);
	ruleset->rule_count = 3;
}

/* Two rules that observed have counts of their own, and then one. If that is undone, each has its own again. */
CLAIM(a_load_that_is_taken_back_leaves_each_rule_its_count)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = rules_of_one_key("ab");
	struct weir_image *first, *second = NULL, *third = NULL;
	struct weir_compile_options options = plain_options;
	struct weir_previous previous;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	ruleset->rules[0].observes = ruleset->rules[1].observes = true;
	first = build(ruleset);
	assert_int_equal(first->rules[1].flows_slot, 1);
	ruleset->rules[0].observes = ruleset->rules[1].observes = false;
	previous = previous_of(first);
	options.previous = &previous;
	assert_int_equal(weir_image_build(ruleset, &options, &second, &diag), 0);
	assert_counts_at(second, 0);
	previous = previous_of(second);
	weir_previous_take_back(&previous, first->rule_info, first->resource_info, 2000 * SECOND);
	ruleset->rules[0].observes = ruleset->rules[1].observes = true;
	assert_int_equal(weir_image_build(ruleset, &options, &third, &diag), 0);
	assert_int_equal(third->kept_rules, 2);
	assert_int_equal(third->rules[0].flows_slot, 0);
	assert_int_equal(third->rules[1].flows_slot, 1);
	weir_image_free(first);
	weir_image_free(second);
	weir_image_free(third);
}

RUN_CLAIMS(NULL, NULL)
