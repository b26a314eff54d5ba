// SPDX-License-Identifier: GPL-2.0-only
/*
 * Both directions in the shipped BPF objects: what comes in by XDP or at tc, what goes out at tc, over the same tables.
 * Claims by hand, every packet evaluated by the reference model as well; then random rules and traffic.
 */
#include <linux/in.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <string.h>

#include "../lib/harness_rounds.h"
#include "../lib/harness_setup.h"
#include "../lib/random_directions.h"

/* ---- rule sets and packets ---- */

/* One resource of these directions, keyed by its remote address. */
static void setup_remote(struct setup *setup, uint8_t directions)
{
	setup_resources(setup, 1);
	setup->resource[0].match.directions = directions;
	setup->resource[0].flow.fields |= WEIR_KEY_RELATIVE(WEIR_KEY_SOURCE);
}

static const struct packet_spec received = {.family = 4,
					    .source = {192, 0, 2, 1},
					    .destination = {198, 51, 100, 1},
					    .protocol = 17,
					    .source_port = 4000,
					    .destination_port = 53,
					    .payload_bytes = 18};
static const struct packet_spec answered = {.is_out = true,
					    .family = 4,
					    .source = {198, 51, 100, 1},
					    .destination = {192, 0, 2, 1},
					    .protocol = 17,
					    .source_port = 53,
					    .destination_port = 4000,
					    .payload_bytes = 18};

/* How many of `count` pass, as object and model say. */
static unsigned int send_all(struct harness *harness, struct packet_spec spec, uint64_t time_ns, unsigned int count)
{
	unsigned int passed = 0;

	spec.time_ns = time_ns;
	for (unsigned int i = 0; i < count; i++) {
		assert_true(harness_evaluate(harness, &spec));
		passed += harness->last.rule[0] == '\0';
	}
	return passed;
}

static struct packet_spec merged_of(struct packet_spec spec, uint32_t segments)
{
	spec.segments = segments;
	return spec;
}

/* ---- flows, lists and settings ---- */

HARNESS_CLAIM(a_flow_of_both_directions_has_one_window)
{
	setup_remote(setup, WEIR_MATCHES_BOTH);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(send_all(harness, received, SECOND, 6), 6);
	assert_int_equal(send_all(harness, answered, SECOND, 6), 4);
	assert_int_equal(send_all(harness, received, SECOND, 1), 0);
}

HARNESS_CLAIM(by_its_own_source_each_direction_has_flows_of_its_own)
{
	setup_resources(setup, 1);
	setup->resource[0].match.directions = WEIR_MATCHES_BOTH;
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(send_all(harness, received, SECOND, 12), 10);
	assert_int_equal(send_all(harness, answered, SECOND, 12), 10);
}

HARNESS_CLAIM(a_resource_sees_its_own_direction_alone)
{
	setup_remote(setup, WEIR_MATCHES_OUT);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(send_all(harness, received, SECOND, 5), 5);
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_UNMATCHED_PASS);
	assert_int_equal(send_all(harness, answered, SECOND, 5), 2);
}

HARNESS_CLAIM(lists_look_at_the_remote_end)
{
	static struct weir_listed denied = {.prefix = {.family = 4, .bits = 32, .address = {192, 0, 2, 1}},
					    .denies = true};

	setup_remote(setup, WEIR_MATCHES_BOTH);
	setup->ruleset.listed = &denied;
	setup->ruleset.listed_count = 1;
	harness_start(harness, setup);
	assert_int_equal(send_all(harness, received, SECOND, 1), 0);
	assert_int_equal(send_all(harness, answered, SECOND, 1), 0);
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_DENY);
}

HARNESS_CLAIM(what_goes_out_and_matches_nothing_passes)
{
	struct packet_spec cut = answered, other = answered;

	setup_remote(setup, WEIR_MATCHES_BOTH);
	setup->resource[0].match.families = 2;
	setup->ruleset.settings.drop_unmatched = setup->ruleset.settings.drop_non_ip = true;
	setup->ruleset.settings.drop_malformed = true;
	harness_start(harness, setup);
	other.ethertype = ETHERTYPE_ARP;
	cut.padding_bytes = 60;
	cut.damage[0].offset = 14; /* version and header length */
	cut.damage_count = 1;
	assert_int_equal(send_all(harness, answered, SECOND, 1), 1);
	assert_int_equal(send_all(harness, other, SECOND, 1), 1);
	assert_int_equal(send_all(harness, cut, SECOND, 1), 1);
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_MALFORMED_PASS);
	cut.is_out = other.is_out = false;
	assert_int_equal(send_all(harness, received, SECOND, 1), 0);
	assert_int_equal(send_all(harness, other, SECOND, 1), 0);
	assert_int_equal(send_all(harness, cut, SECOND, 1), 0);
}

/* ---- super-frames ---- */

HARNESS_CLAIM(a_super_frame_is_admitted_whole_or_not_at_all)
{
	setup_remote(setup, WEIR_MATCHES_OUT);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(send_all(harness, merged_of(answered, 11), SECOND, 1), 0);
	assert_int_equal(send_all(harness, merged_of(answered, 6), SECOND, 2), 1);
	assert_int_equal(send_all(harness, merged_of(answered, 5), SECOND, 1), 0);
	assert_int_equal(send_all(harness, merged_of(answered, 4), SECOND, 1), 1);
	assert_int_equal(send_all(harness, answered, SECOND, 1), 0);
}

HARNESS_CLAIM(what_comes_in_at_tc_counts_as_its_segments)
{
	setup_remote(setup, WEIR_MATCHES_IN);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_TOKENS, 10, SECOND, 10));
	assert_int_equal(harness_open_at_tc(harness, &setup->ruleset, 0, 3600 * SECOND), 0);
	assert_int_equal(send_all(harness, merged_of(received, 7), SECOND, 2), 1);
	assert_int_equal(send_all(harness, merged_of(received, 3), SECOND, 2), 1);
	assert_int_equal(send_all(harness, received, SECOND, 1), 0);
}

/* docs/replay.md: what is larger than the threshold is blocked without being evaluated. */
HARNESS_CLAIM(a_super_frame_above_a_system_rule_makes_no_bucket_known)
{
	struct weir_ruleset_rule inbound = {
		.name = "inbound",
		.resource = WEIR_NO_RESOURCE,
		.ref_resource = WEIR_NO_RESOURCE,
		.metric = WEIR_METRIC_RATE,
		.system = WEIR_SYSTEM_INBOUND_QPS,
		.threshold_micro = 3000000,
		.interval_ns = SECOND,
		.samples = 2,
	};

	setup_remote(setup, WEIR_MATCHES_IN);
	setup_rule(setup, WEIR_NO_RESOURCE, inbound);
	assert_int_equal(harness_open_at_tc(harness, &setup->ruleset, 0, 3600 * SECOND), 0);
	assert_int_equal(send_all(harness, received, 10 * SECOND, 1), 1);
	assert_int_equal(send_all(harness, merged_of(received, 4), 20 * SECOND, 1), 0);
	assert_int_equal(send_all(harness, received, 10 * SECOND, 3), 2);
	assert_int_equal(send_all(harness, merged_of(received, 3), 20 * SECOND, 1), 1);
	assert_int_equal(send_all(harness, received, 10 * SECOND, 1), 0);
}

/* ---- connections ---- */

/* By the packets' own source, those of one connection name two flows. */
HARNESS_CLAIM(a_connection_counts_in_the_flow_that_it_opened_in)
{
	static const uint64_t timeouts_ms[WEIR_CONNECTION_CLASSES] = {10000, 600000, 120000, 10000};
	struct weir_ruleset_rule limit = rule_of("open", WEIR_WINDOW_LEAP, 1, SECOND, 10);
	struct packet_spec opened = answered, other = received;

	setup_resources(setup, 1);
	setup->resource[0].match.directions = WEIR_MATCHES_BOTH;
	setup->ruleset.settings.connections = 4096;
	setup->ruleset.settings.connection_flows = 1024;
	memcpy(setup->ruleset.settings.connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
	limit.metric = WEIR_METRIC_CONCURRENCY;
	limit.ref_resource = WEIR_NO_RESOURCE;
	setup_rule(setup, 0, limit);
	harness_start(harness, setup);
	other.source_port = 4001;
	opened.destination[3] = 9;
	assert_int_equal(send_all(harness, received, SECOND, 1), 1);
	assert_int_equal(send_all(harness, answered, 50 * SECOND, 1), 1);
	assert_int_equal(send_all(harness, other, 51 * SECOND, 1), 0);
	assert_int_equal(send_all(harness, opened, 51 * SECOND, 1), 1);
}

/* ---- random rules and traffic ---- */

CLAIM(agrees_with_the_model_on_random_directions)
{
	const struct harness_rounds rounds = {
		.rounds = 60,
		.packets = 4000,
		.has_directions = true,
		.rules = random_directed_ruleset,
		.traffic = random_directed_packets,
	};

	harness_rounds_agree(&rounds);
}

CLAIM(agrees_with_the_model_on_random_breakers_of_what_goes_out)
{
	const struct harness_rounds rounds = {
		.rounds = 60,
		.packets = 4000,
		.has_directions = true,
		.rules = random_directed_breaker_ruleset,
		.traffic = random_directed_breaker_packets,
	};

	harness_rounds_agree(&rounds);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
