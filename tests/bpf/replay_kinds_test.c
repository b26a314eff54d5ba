// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims about what is no plain window, connections apart: thresholds that move, throttling, associated resources,
 * overrides and lists. Each on traffic made for it: the shipped BPF object agrees with the reference model on every
 * packet, and both with the figure that is written down.
 */
#include "../lib/harness_setup.h"
#include "base/util.h"

/* Sentinel's, for a threshold of 100 with a period of 10 s and a cold factor of 3. */
static const unsigned int published_curve[] = {33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100, 100};

HARNESS_CLAIM(a_resource_warms_up_along_the_published_curve)
{
	size_t i;

	setup_resources(setup, 1);
	setup->resource[0].flow = (struct weir_flow){};
	setup_rule(setup, 0, warm_up_of(100, SECOND, 10));
	harness_start(harness, setup);
	for (i = 0; i < ARRAY_SIZE(published_curve); i++)
		assert_int_equal(harness_saturate(harness, i % 2 ? HOST : OTHER_HOST, 5 + i), published_curve[i]);
	/* as cold as ever after 2P / (1 + c) = 5 s, and one more for the tokens that the last second took */
	assert_int_equal(harness_saturate(harness, HOST, 5 + i + 6), published_curve[0]);
}

HARNESS_CLAIM(each_flow_warms_up_along_the_published_curve)
{
	size_t i;

	harness_rule(harness, setup, warm_up_of(100, SECOND, 10));
	for (i = 0; i < ARRAY_SIZE(published_curve); i++) {
		assert_int_equal(harness_saturate(harness, HOST, 5 + i), published_curve[i]);
		if (i >= 4)
			assert_int_equal(harness_saturate(harness, OTHER_HOST, 5 + i), published_curve[i - 4]);
	}
	assert_int_equal(harness_saturate(harness, HOST, 5 + i + 6), published_curve[0]);
}

/* 50 per half a second are 100 a second: half the curve's thresholds, within each half of a second. */
HARNESS_CLAIM(warm_up_goes_by_the_rate_per_second)
{
	for (int keyed = 0; keyed < 2; keyed++) {
		setup_resources(setup, 1);
		if (!keyed)
			setup->resource[0].flow = (struct weir_flow){};
		setup_rule(setup, 0, warm_up_of(50, SECOND / 2, 10));
		harness_start(harness, setup);
		for (int i = 0; i < 20; i++)
			harness_saturate(harness, HOST, 5 + i);
		assert_int_equal(harness_saturate(harness, HOST, 25), 100);
		assert_int_equal(harness_send(harness, HOST, 60 * SECOND, 100), 16);
		harness_finish(harness);
	}
}

HARNESS_CLAIM(a_drop_that_is_only_observed_does_not_warm)
{
	for (int keyed = 0; keyed < 2; keyed++) {
		setup_resources(setup, 1);
		if (!keyed)
			setup->resource[0].flow = (struct weir_flow){};
		setup_rule(setup, 0, warm_up_of(100, SECOND, 10));
		setup->rule[0].observes = true;
		harness_start(harness, setup);
		for (size_t i = 0; i < ARRAY_SIZE(published_curve); i++) {
			assert_int_equal(harness_saturate(harness, HOST, 5 + i), 500);
			assert_int_equal(model_threshold(harness->model, 0), published_curve[i]);
		}
		harness_finish(harness);
	}
}

HARNESS_CLAIM(a_memory_reading_holds_from_its_own_nanosecond_on)
{
	static const struct random_reading readings[] = {
		{5 * SECOND, 1024}, {6 * SECOND, 1536}, {7 * SECOND, 9999}, {7 * SECOND, 1537}};

	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("memory", WEIR_WINDOW_LEAP, 0, 10 * MS, 1));
	setup->rule[0].strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	setup->rule[0].memory = (struct weir_memory_adaptive){1000, 100, 1024, 2048};
	harness_start(harness, setup);
	harness_readings(harness, readings, ARRAY_SIZE(readings));
	assert_int_equal(harness_send(harness, HOST, 4 * SECOND, 1200), 100); /* not known: highMemUsageThreshold */
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND - 1, 1200), 100);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 1200), 1000);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 1200), 550);
	assert_int_equal(harness_send(harness, HOST, 7 * SECOND, 1200),
			 549); /* 549.1...: of two at one time the later */
}

HARNESS_CLAIM(one_and_the_quotient_pass_at_one_instant)
{
	harness_rule(harness, setup, throttling_of(100, SECOND, 45));
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 1), 1);
		assert_int_equal(harness->last.wait_ns, i * 10 * MS);
	}
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 10), 0);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 5 * MS - 1, 1), 0);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 5 * MS, 1), 1); /* a wait of the maximum */
	assert_int_equal(harness->last.wait_ns, 45 * MS);
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND + 5 * MS, 10), 5);
	assert_int_equal(harness_send(harness, HOST, 60 * SECOND, 10), 5);
}

/* A TAT is 58 bits of the clock, which may count from 1970 or have run for ten years. */
HARNESS_CLAIM(tats_continue_where_their_bits_end)
{
	for (int keyed = 0; keyed < 2; keyed++) {
		setup_resources(setup, 1);
		if (!keyed)
			setup->resource[0].flow = (struct weir_flow){};
		setup_rule(setup, 0, throttling_of(100, SECOND, 45));
		harness_start(harness, setup);
		for (int turn = 1; turn < 8; turn++) {
			uint64_t edge_ns = (1ull << 57) * turn;

			assert_int_equal(harness_send(harness, HOST, edge_ns - 21 * MS, 10), 5);
			assert_int_equal(harness_send(harness, HOST, edge_ns - 1, 10), 2);
			assert_int_equal(harness_send(harness, HOST, edge_ns, 10), 0);
			assert_int_equal(harness_send(harness, HOST, edge_ns + 20 * MS, 10), 2);
			/* a clock that goes back */
			assert_int_equal(harness_send(harness, HOST, edge_ns - 20 * MS, 10), 0);
			assert_int_equal(harness_send(harness, HOST, edge_ns + SECOND, 10), 5);
		}
		harness_finish(harness);
	}
}

/* 7 units a day: a cost of 12342857142857.142857... ns, a thousand times in a row, and no nanosecond astray. */
HARNESS_CLAIM(waits_are_exact_to_the_nanosecond)
{
	static const double thresholds[] = {1, 3, 7, 2.9, 1.000001, 999.999999, 123456.789};

	for (size_t i = 0; i < ARRAY_SIZE(thresholds); i++) {
		setup_resources(setup, 1);
		setup_rule(setup, 0, throttling_of(thresholds[i], 86400 * SECOND, UINT32_MAX));
		setup_rule(setup, 0, throttling_of(thresholds[i] * 60, SECOND, UINT32_MAX));
		setup->rule[1].counts_bytes = true;
		harness_start(harness, setup);
		harness_send(harness, HOST, 0, 1000);
		harness_send(harness, HOST, 59 * 60 * SECOND, 1000);
		harness_finish(harness);
	}
}

HARNESS_CLAIM(a_slot_once_given_stays_given)
{
	setup_ports(setup);
	setup_rule(setup, 0, throttling_of(10, SECOND, 1000));
	setup_rule(setup, 1, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(harness_send_to(harness, HOST, 55, 5 * SECOND, 3), 0);
	assert_int_equal(harness->last.wait_ns, 0);
	assert_int_equal(harness_send_to(harness, HOST, 53, 5 * SECOND, 1), 1);
	assert_int_equal(harness->last.wait_ns, 300 * MS);
}

HARNESS_CLAIM(an_observing_throttle_takes_its_slot_and_adds_no_wait)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, throttling_of(10, SECOND, 500));
	setup_rule(setup, 0, throttling_of(100, SECOND, 500));
	setup->rule[0].observes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 8), 8);
	assert_int_equal(harness->last.wait_ns, 70 * MS);
	assert_int_equal(model_would_drop(harness->model, 0), 2);
}

HARNESS_CLAIM(an_associated_rule_reads_a_resource_without_rules)
{
	for (int window = WEIR_WINDOW_LEAP; window <= WEIR_WINDOW_SMOOTH; window++) {
		setup_ports(setup);
		setup_rule(setup, 0, associated(rule_of("read", window, 5, SECOND, 10), 1));
		harness_start(harness, setup);
		assert_int_equal(harness_send_to(harness, HOST, 53, 5 * SECOND, 20), 20); /* its own rate is free */
		assert_int_equal(harness_send_to(harness, HOST, 54, 5 * SECOND, 5), 5);
		assert_int_equal(harness_send_to(harness, HOST, 53, 5 * SECOND, 5), 0);
		assert_int_equal(harness_send_to(harness, OTHER_HOST, 53, 5 * SECOND, 5),
				 5); /* the same flow's is read */
		assert_int_equal(harness_send_to(harness, HOST, 53, 7 * SECOND, 5), 5);
		/* of both resources: read first, counted after */
		assert_int_equal(harness_send_to(harness, HOST, 55, 7 * SECOND, 20), 5);
		harness_finish(harness);
	}
}

/* One that enforces by the same window beside it counts all of them. */
HARNESS_CLAIM(an_observing_associated_rule_reads_what_it_would_have_let_pass)
{
	for (int strategy = WEIR_STRATEGY_DIRECT; strategy <= WEIR_STRATEGY_WARM_UP; strategy++) {
		setup_ports(setup);
		setup_rule(setup, 0, associated(rule_of("observes", WEIR_WINDOW_LEAP, 5, SECOND, 10), 1));
		setup_rule(setup, 0, associated(rule_of("enforces", WEIR_WINDOW_LEAP, 12, SECOND, 10), 1));
		setup->rule[0].observes = true;
		if (strategy == WEIR_STRATEGY_WARM_UP) {
			setup->rule[0].strategy = strategy;
			setup->rule[0].warm_up = (struct weir_warm_up_fields){.period_s = 4, .cold_factor = 3};
		}
		harness_start(harness, setup);
		assert_int_equal(harness_send_to(harness, HOST, 55, 5 * SECOND, 10), 10);
		assert_int_equal(harness_send_to(harness, HOST, 55, 5 * SECOND + 500 * MS, 10), 2);
		assert_int_equal(harness_send_to(harness, HOST, 54, 6 * SECOND, 3), 3);
		assert_int_equal(harness_send_to(harness, HOST, 55, 6 * SECOND, 4), 4);
		harness_send_to(harness, HOST, 55, 7 * SECOND, 20);
		harness_send_to(harness, HOST, 55, 8 * SECOND, 20);
		if (strategy == WEIR_STRATEGY_DIRECT)
			assert_int_equal(model_would_drop(harness->model, 0), 5 + 10 + 2 + 15 + 15);
		harness_finish(harness);
	}
}

HARNESS_CLAIM(a_reference_without_a_key_is_read_as_a_whole)
{
	setup_ports(setup);
	setup->resource[1].flow = (struct weir_flow){};
	setup_rule(setup, 0, associated(rule_of("read", WEIR_WINDOW_LEAP, 5, SECOND, 10), 1));
	harness_start(harness, setup);
	assert_int_equal(harness_send_to(harness, HOST, 54, 5 * SECOND, 4), 4);
	assert_int_equal(harness_send_to(harness, OTHER_HOST, 53, 5 * SECOND, 1), 1);
	assert_int_equal(harness_send_to(harness, HOST, 54, 5 * SECOND, 1), 1);
	assert_int_equal(harness_send_to(harness, OTHER_HOST, 53, 5 * SECOND, 1), 0);
}

HARNESS_CLAIM(the_longest_override_wins)
{
	static struct weir_override overrides[] = {
		{.prefix = {4, 0, {0}}, .threshold_micro = 9 * WEIR_MICRO},
		{.prefix = {4, 24, {192, 0, 2, 0}}, .threshold_micro = 7 * WEIR_MICRO},
		{.prefix = {4, 32, {192, 0, 2, 2}}, .threshold_micro = 0},
		{.prefix = {6, 32, {0x20, 0x01, 0x0d, 0xb8}}, .threshold_micro = 100000 * WEIR_MICRO},
	};

	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10));
	setup->rule[0].override_field = WEIR_KEY_SOURCE;
	setup->rule[0].overrides = overrides;
	setup->rule[0].override_count = ARRAY_SIZE(overrides);
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 20), 7);
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND, 20), 0);
	assert_int_equal(harness_send(harness, "198.51.100.1", 5 * SECOND, 20), 9);
}

HARNESS_CLAIM(lists_come_before_every_rule_and_the_longest_prefix_wins)
{
	static struct weir_listed listed[] = {
		{.prefix = {4, 24, {192, 0, 2, 0}}, .denies = true},
		{.prefix = {4, 32, {192, 0, 2, 1}}},
	};

	setup_resources(setup, 1);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 3, SECOND, 10));
	setup->ruleset.listed = listed;
	setup->ruleset.listed_count = ARRAY_SIZE(listed);
	harness_start(harness, setup);
	harness_send(harness, HOST, 5 * SECOND, 20);
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_ALLOW);
	harness_send(harness, OTHER_HOST, 5 * SECOND, 20);
	assert_int_equal(harness->last.verdict, WEIR_VERDICT_DENY);
	assert_int_equal(harness_send(harness, "198.51.100.1", 5 * SECOND, 20), 3);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
