// SPDX-License-Identifier: GPL-2.0-only
/*
 * Both directions in the shipped BPF objects: what comes in by XDP or at tc, what goes out at tc, over the same tables.
 * Claims by hand, every packet evaluated by the reference model as well; then random rules and traffic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/in.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <stdlib.h>
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
		assert_true(harness_evaluate(harness, &spec, &harness->last));
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

static void a_flow_of_both_directions_has_one_window(void **state)
{
	struct harness harness;
	struct setup setup;

	setup_remote(&setup, WEIR_MATCHES_BOTH);
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	harness_start(&harness, &setup);
	assert_int_equal(send_all(&harness, received, SECOND, 6), 6);
	assert_int_equal(send_all(&harness, answered, SECOND, 6), 4);
	assert_int_equal(send_all(&harness, received, SECOND, 1), 0);
	harness_finish(&harness);
}

static void by_its_own_source_each_direction_has_flows_of_its_own(void **state)
{
	struct harness harness;
	struct setup setup;

	setup_resources(&setup, 1);
	setup.resource[0].match.directions = WEIR_MATCHES_BOTH;
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	harness_start(&harness, &setup);
	assert_int_equal(send_all(&harness, received, SECOND, 12), 10);
	assert_int_equal(send_all(&harness, answered, SECOND, 12), 10);
	harness_finish(&harness);
}

static void a_resource_sees_its_own_direction_alone(void **state)
{
	struct harness harness;
	struct setup setup;

	setup_remote(&setup, WEIR_MATCHES_OUT);
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	harness_start(&harness, &setup);
	assert_int_equal(send_all(&harness, received, SECOND, 5), 5);
	assert_int_equal(harness.last.verdict, WEIR_VERDICT_UNMATCHED_PASS);
	assert_int_equal(send_all(&harness, answered, SECOND, 5), 2);
	harness_finish(&harness);
}

static void lists_look_at_the_remote_end(void **state)
{
	static struct weir_listed denied = {.prefix = {.family = 4, .bits = 32, .address = {192, 0, 2, 1}},
					    .denies = true};
	struct harness harness;
	struct setup setup;

	setup_remote(&setup, WEIR_MATCHES_BOTH);
	setup.ruleset.listed = &denied;
	setup.ruleset.listed_count = 1;
	harness_start(&harness, &setup);
	assert_int_equal(send_all(&harness, received, SECOND, 1), 0);
	assert_int_equal(send_all(&harness, answered, SECOND, 1), 0);
	assert_int_equal(harness.last.verdict, WEIR_VERDICT_DENY);
	harness_finish(&harness);
}

static void what_goes_out_and_matches_nothing_passes(void **state)
{
	struct packet_spec cut = answered, other = answered;
	struct harness harness;
	struct setup setup;

	setup_remote(&setup, WEIR_MATCHES_BOTH);
	setup.resource[0].match.families = 2;
	setup.ruleset.settings.drop_unmatched = setup.ruleset.settings.drop_non_ip = true;
	setup.ruleset.settings.drop_malformed = true;
	harness_start(&harness, &setup);
	other.ethertype = ETHERTYPE_ARP;
	cut.padding_bytes = 60;
	cut.damage[0].offset = 14; /* version and header length */
	cut.damage_count = 1;
	assert_int_equal(send_all(&harness, answered, SECOND, 1), 1);
	assert_int_equal(send_all(&harness, other, SECOND, 1), 1);
	assert_int_equal(send_all(&harness, cut, SECOND, 1), 1);
	assert_int_equal(harness.last.verdict, WEIR_VERDICT_MALFORMED_PASS);
	cut.is_out = other.is_out = false;
	assert_int_equal(send_all(&harness, received, SECOND, 1), 0);
	assert_int_equal(send_all(&harness, other, SECOND, 1), 0);
	assert_int_equal(send_all(&harness, cut, SECOND, 1), 0);
	harness_finish(&harness);
}

/* ---- super-frames ---- */

static void a_super_frame_is_admitted_whole_or_not_at_all(void **state)
{
	struct harness harness;
	struct setup setup;

	setup_remote(&setup, WEIR_MATCHES_OUT);
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 10, SECOND, 10));
	harness_start(&harness, &setup);
	assert_int_equal(send_all(&harness, merged_of(answered, 11), SECOND, 1), 0);
	assert_int_equal(send_all(&harness, merged_of(answered, 6), SECOND, 2), 1);
	assert_int_equal(send_all(&harness, merged_of(answered, 5), SECOND, 1), 0);
	assert_int_equal(send_all(&harness, merged_of(answered, 4), SECOND, 1), 1);
	assert_int_equal(send_all(&harness, answered, SECOND, 1), 0);
	harness_finish(&harness);
}

static void what_comes_in_at_tc_counts_as_its_segments(void **state)
{
	struct harness harness;
	struct setup setup;

	setup_remote(&setup, WEIR_MATCHES_IN);
	setup_rule(&setup, 0, rule_of("limit", WEIR_WINDOW_TOKENS, 10, SECOND, 10));
	assert_int_equal(harness_open_at_tc(&harness, &setup.ruleset, 0, 3600 * SECOND), 0);
	assert_int_equal(send_all(&harness, merged_of(received, 7), SECOND, 2), 1);
	assert_int_equal(send_all(&harness, merged_of(received, 3), SECOND, 2), 1);
	assert_int_equal(send_all(&harness, received, SECOND, 1), 0);
	harness_finish(&harness);
}

/* ---- connections ---- */

/* By the packets' own source, those of one connection name two flows. */
static void a_connection_counts_in_the_flow_that_it_opened_in(void **state)
{
	static const uint64_t timeouts_ms[WEIR_CONNECTION_CLASSES] = {10000, 600000, 120000, 10000};
	struct weir_ruleset_rule limit = rule_of("open", WEIR_WINDOW_LEAP, 1, SECOND, 10);
	struct packet_spec opened = answered, other = received;
	struct harness harness;
	struct setup setup;

	setup_resources(&setup, 1);
	setup.resource[0].match.directions = WEIR_MATCHES_BOTH;
	setup.ruleset.settings.connections = 4096;
	setup.ruleset.settings.connection_flows = 1024;
	memcpy(setup.ruleset.settings.connection_timeout_ms, timeouts_ms, sizeof(timeouts_ms));
	limit.metric = WEIR_METRIC_CONCURRENCY;
	limit.ref_resource = WEIR_NO_RESOURCE;
	setup_rule(&setup, 0, limit);
	harness_start(&harness, &setup);
	other.source_port = 4001;
	opened.destination[3] = 9;
	assert_int_equal(send_all(&harness, received, SECOND, 1), 1);
	assert_int_equal(send_all(&harness, answered, 50 * SECOND, 1), 1);
	assert_int_equal(send_all(&harness, other, 51 * SECOND, 1), 0);
	assert_int_equal(send_all(&harness, opened, 51 * SECOND, 1), 1);
	harness_finish(&harness);
}

/* ---- random rules and traffic ---- */

static void agrees_with_the_model_on_random_directions(void **state)
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

static void agrees_with_the_model_on_random_breakers_of_what_goes_out(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flow_of_both_directions_has_one_window),
		cmocka_unit_test(by_its_own_source_each_direction_has_flows_of_its_own),
		cmocka_unit_test(a_resource_sees_its_own_direction_alone),
		cmocka_unit_test(lists_look_at_the_remote_end),
		cmocka_unit_test(what_goes_out_and_matches_nothing_passes),
		cmocka_unit_test(a_super_frame_is_admitted_whole_or_not_at_all),
		cmocka_unit_test(what_comes_in_at_tc_counts_as_its_segments),
		cmocka_unit_test(a_connection_counts_in_the_flow_that_it_opened_in),
		cmocka_unit_test(agrees_with_the_model_on_random_directions),
		cmocka_unit_test(agrees_with_the_model_on_random_breakers_of_what_goes_out),
	};

	cmocka_set_test_filter(getenv("WEIR_CLAIMS"));
	return cmocka_run_group_tests_name("direction", tests, harness_stay_on_one_cpu, NULL);
}
