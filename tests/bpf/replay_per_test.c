// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules with a key of their own (docs/semantics.md, 8): the shipped BPF object agrees with the reference model on every
 * packet, and both with what two resources would do.
 */
#include <stdio.h>
#include <string.h>

#include "../lib/harness_setup.h"
#include "base/util.h"

#define NEIGHBOUR "192.0.2.99"	/* of HOST, in its /24 */
#define STRANGER "198.51.100.1" /* in another */

static const struct weir_flow by_network = {.fields = WEIR_KEY_SOURCE, .source_bits = {24, 56}};

static struct weir_ruleset_rule per(struct weir_ruleset_rule rule, const struct weir_flow *key)
{
	static const struct weir_flow all;

	rule.has_own_key = true;
	rule.own_key = key ? *key : all;
	return rule;
}

static struct weir_ruleset_rule leap_of(char *name, double threshold)
{
	return rule_of(name, WEIR_WINDOW_LEAP, threshold, SECOND, 10);
}

/* ---- the newcomer's rules ---- */

HARNESS_CLAIM(two_rules_of_a_resource_limit_each_network_and_all)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, per(leap_of("net", 20), &by_network));
	setup_rule(setup, 0, per(leap_of("all", 50), NULL));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 15), 15);
	assert_int_equal(harness_send(harness, NEIGHBOUR, 5 * SECOND, 15), 5); /* 20 of their /24 */
	assert_int_equal(harness_send(harness, STRANGER, 5 * SECOND, 30), 20);
	assert_int_equal(harness_send(harness, "203.0.113.1", 5 * SECOND, 30), 10); /* 50 in all */
	assert_int_equal(harness_send(harness, "203.0.112.1", 5 * SECOND, 30), 0);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 30), 20);
}

/* Who is held by all is not counted by its network, and the other way round. */
HARNESS_CLAIM(a_packet_that_one_of_them_blocks_counts_for_none)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, leap_of("each", 5));
	setup_rule(setup, 0, per(rule_of("all", WEIR_WINDOW_LEAP, 8, 100 * MS, 1), NULL));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 30), 5);
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND, 30), 3);
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND + 100 * MS, 30), 2); /* of its five */
}

HARNESS_CLAIM(a_rule_without_a_key_of_its_own_has_the_resources)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, per(leap_of("net", 20), &by_network));
	setup_rule(setup, 0, leap_of("each", 3));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 15), 3);
	assert_int_equal(harness_send(harness, NEIGHBOUR, 5 * SECOND, 15), 3);
}

/* ---- each kind ---- */

static struct weir_ruleset_rule tokens_of(char *name, double threshold)
{
	return rule_of(name, WEIR_WINDOW_TOKENS, threshold, SECOND, 10);
}

/* The resource's key is the source: `rule`, whose threshold is 4, is of each /24. */
static void assert_is_of_the_network(struct weir_ruleset_rule rule)
{
	struct setup setup;
	_cleanup_(harness_finish) struct harness harness = {};

	harness_rule(&harness, &setup, per(rule, &by_network));
	assert_int_equal(harness_send(&harness, HOST, 5 * SECOND, 3), 3);
	assert_int_equal(harness_send(&harness, NEIGHBOUR, 5 * SECOND, 3), 1);
	assert_int_equal(harness_send(&harness, STRANGER, 5 * SECOND, 5), 4);
}

CLAIM(every_window_and_bucket_goes_by_the_rules_key)
{
	struct weir_ruleset_rule penalised = leap_of("penalised", 4);

	penalised.penalty_ms = penalised.penalty_ms_max = 500;
	assert_is_of_the_network(leap_of("leap", 4));
	assert_is_of_the_network(rule_of("strict", WEIR_WINDOW_STRICT, 4, SECOND, 10));
	assert_is_of_the_network(rule_of("smooth", WEIR_WINDOW_SMOOTH, 4, SECOND, 10));
	assert_is_of_the_network(tokens_of("tokens", 4));
	assert_is_of_the_network(penalised);
	/* three wait, as 250 ms is what one costs */
	assert_is_of_the_network(throttling_of(4, SECOND, 750));
}

HARNESS_CLAIM(a_penalty_is_of_the_rules_flow)
{
	struct weir_ruleset_rule rule = leap_of("penalised", 4);

	rule.penalty_ms = rule.penalty_ms_max = 5000;
	harness_rule(harness, setup, per(rule, &by_network));
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 9), 4);
	assert_int_equal(harness_send(harness, NEIGHBOUR, 7 * SECOND, 9), 0);
	assert_int_equal(harness_send(harness, STRANGER, 7 * SECOND, 9), 4);
}

HARNESS_CLAIM(what_warms_up_is_the_rules_flow)
{
	/* cold, a third: once of each network, and once of all, which the controller does */
	harness_rule(harness, setup, per(warm_up_of(30, SECOND, 10), &by_network));
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 6), 6);
	assert_int_equal(harness_send(harness, NEIGHBOUR, 5 * SECOND, 30), 4);
	assert_int_equal(harness_send(harness, STRANGER, 5 * SECOND, 30), 10);
	harness_finish(harness);
	harness_rule(harness, setup, per(warm_up_of(30, SECOND, 10), NULL));
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 6), 6);
	assert_int_equal(harness_send(harness, STRANGER, 5 * SECOND, 30), 4);
}

/* refResource (port 54) has the key that `per` says, and the rule's resource (port 53) another. */
HARNESS_CLAIM(an_associated_rule_reads_and_penalises_the_flow_of_its_key)
{
	struct weir_ruleset_rule rule = associated(leap_of("reads", 10), 1);

	rule.penalty_ms = rule.penalty_ms_max = 5000;
	setup_ports(setup);
	setup->resource[1].flow = by_network;
	setup_rule(setup, 0, per(rule, &by_network));
	harness_start(harness, setup);
	assert_int_equal(harness_send_to(harness, NEIGHBOUR, 54, 5 * SECOND, 10), 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 10), 0);
	assert_int_equal(harness_send(harness, STRANGER, 5 * SECOND, 10), 10);
	assert_int_equal(harness_send(harness, NEIGHBOUR, 7 * SECOND, 10), 0); /* the penalty of HOST's network */
}

HARNESS_CLAIM(an_override_is_of_the_rules_flows)
{
	struct weir_override override = {
		.prefix = {.family = 4, .bits = 24, .address = {192, 0, 2}},
		.threshold_micro = 2 * WEIR_MICRO,
	};
	struct weir_ruleset_rule rule = leap_of("net", 20);

	rule.overrides = &override;
	rule.override_count = 1;
	rule.override_field = WEIR_KEY_SOURCE;
	setup_resources(setup, 1);
	setup->resource[0].flow = (struct weir_flow){};
	setup_rule(setup, 0, per(rule, &by_network));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 9), 2);
	assert_int_equal(harness_send(harness, NEIGHBOUR, 5 * SECOND, 9), 0);
	assert_int_equal(harness_send(harness, STRANGER, 5 * SECOND, 30), 20);
}

/* Each of two sources of a network takes what another of its packets left to occupy. */
HARNESS_CLAIM(what_is_occupied_is_the_rules_flow)
{
	struct weir_ruleset_rule rule = rule_of("occupied", WEIR_WINDOW_LEAP, 4, SECOND, 2);

	rule.occupies = true;
	setup_resources(setup, 1);
	setup->ruleset.settings.occupy_timeout_ms = 1000;
	setup->resource[0].is_prioritized = true;
	setup_rule(setup, 0, per(rule, &by_network));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 4), 4);
	/* the next bucket frees none of them, the one after that all: too far */
	assert_int_equal(harness_send(harness, NEIGHBOUR, 5 * SECOND + 600 * MS, 9), 4);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 600 * MS, 9), 0);
	assert_int_equal(harness_send(harness, STRANGER, 5 * SECOND + 600 * MS, 4), 4);
}

/* ---- as two resources ---- */

/* Another resource for each rule with a key of its own, with the same match and that key. Shares all but the two arrays
 * with `ruleset`.
 */
static struct weir_ruleset split(const struct weir_ruleset *ruleset)
{
	struct weir_ruleset made = *ruleset;

	made.resources = calloc(ruleset->resource_count + ruleset->rule_count, sizeof(*made.resources));
	made.rules = calloc(ruleset->rule_count + 1, sizeof(*made.rules));
	assert_non_null(made.resources);
	assert_non_null(made.rules);
	memcpy(made.resources, ruleset->resources, ruleset->resource_count * sizeof(*made.resources));
	memcpy(made.rules, ruleset->rules, ruleset->rule_count * sizeof(*made.rules));
	for (size_t i = 0; i < made.rule_count; i++) {
		struct weir_ruleset_resource *resource = &made.resources[made.resource_count];

		if (!made.rules[i].has_own_key)
			continue;
		*resource = made.resources[made.rules[i].resource];
		resource->name = made.rules[i].name;
		resource->flow = made.rules[i].own_key;
		made.rules[i].has_own_key = false;
		made.rules[i].resource = made.resource_count++;
	}
	return made;
}

static void keep_no_resources(struct weir_ruleset *made)
{
	free(made->resources);
	free(made->rules);
}

static size_t compare_with_resources(uint64_t seed, size_t packets)
{
	struct random random = {seed};
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = random_ruleset(&random);
	_cleanup_(weir_freep) struct packet_spec *specs = random_packets(&random, ruleset, packets);
	_cleanup_(keep_no_resources) struct weir_ruleset two = split(ruleset);
	uint64_t earliest_ns = UINT64_MAX, latest_ns = 0;
	size_t dropped = 0;
	struct harness one_harness, two_harness;

	for (size_t i = 0; i < packets; i++) {
		earliest_ns = specs[i].time_ns < earliest_ns ? specs[i].time_ns : earliest_ns;
		latest_ns = specs[i].time_ns > latest_ns ? specs[i].time_ns : latest_ns;
	}
	if (two.resource_count == ruleset->resource_count ||
	    harness_open(&one_harness, ruleset, earliest_ns, latest_ns))
		return 0;
	if (harness_open(&two_harness, &two, earliest_ns, latest_ns)) {
		harness_close(&one_harness);
		return 0;
	}
	for (size_t i = 0; i < packets; i++) {
		enum weir_verdict verdict;

		verdict = harness_verdict(&one_harness, &specs[i]);
		if (verdict != harness_verdict(&two_harness, &specs[i]))
			fail_msg("seed %llu, packet %zu", (unsigned long long)seed, i);
		dropped += verdict == WEIR_VERDICT_BLOCK;
	}
	assert_true(harness_agrees(&one_harness));
	harness_close(&one_harness);
	harness_close(&two_harness);
	return dropped;
}

CLAIM(rules_with_keys_evaluate_as_resources_with_them)
{
	size_t dropped = 0;

	for (uint64_t seed = 1; seed <= 15; seed++)
		dropped += compare_with_resources(seed, 3000);
	assert_true(dropped > 500);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
