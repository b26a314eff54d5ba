// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims about token buckets, each on traffic made for it: the shipped BPF object agrees with the reference model on
 * every packet, and both with the figure that is written down.
 */
#include "../lib/harness_rounds.h"
#include "../lib/harness_setup.h"
#include "base/util.h"

static struct weir_ruleset_rule tokens_of(double threshold, uint64_t interval_ns, double burst)
{
	struct weir_ruleset_rule rule = rule_of("tokens", WEIR_WINDOW_TOKENS, threshold, interval_ns, 10);

	rule.burst_micro = burst * 1e6 + 0.5;
	return rule;
}

static void harness_tokens(struct harness *harness, struct setup *setup, double threshold, uint64_t interval_ns,
			   double burst)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, tokens_of(threshold, interval_ns, burst));
	harness_start(harness, setup);
}

/* Ten tokens at first, then one each 10 ms: not a nanosecond sooner or later. */
HARNESS_CLAIM(a_flow_has_its_burst_and_then_a_token_at_its_nanosecond)
{
	uint64_t i;

	harness_tokens(harness, setup, 100, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 20), 10);
	for (i = 1; i < 5; i++) {
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND + i * 10 * MS - 1, 2), 0);
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND + i * 10 * MS, 2), 1);
	}
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND + i, 20), 10);
	/* full again after 100 ms, and no fuller after an hour */
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 20), 10);
	assert_int_equal(harness_send(harness, HOST, 3000 * SECOND, 20), 10);
}

/* A third of a second is no whole number of ns: tokens come at 333,333,334, 666,666,667 and 1,000,000,000 ns. */
HARNESS_CLAIM(tokens_between_two_nanoseconds_come_with_the_second)
{
	harness_tokens(harness, setup, 3, SECOND, 2);
	assert_int_equal(harness_send(harness, HOST, SECOND, 3), 2);
	for (uint64_t second = 1; second < 10; second++) {
		uint64_t start_ns = second * SECOND;

		assert_int_equal(harness_send(harness, HOST, start_ns + 333333333, 2), 0);
		assert_int_equal(harness_send(harness, HOST, start_ns + 333333334, 2), 1);
		/* what was left of the third is kept, or the second would be over before the third token */
		assert_int_equal(harness_send(harness, HOST, start_ns + 666666667, 2), 1);
		assert_int_equal(harness_send(harness, HOST, start_ns + SECOND - 1, 2), 0);
		assert_int_equal(harness_send(harness, HOST, start_ns + SECOND, 2), 1);
	}
}

/* Without `burst` a bucket holds 2.9: two at once, and a third after a tenth of 1/2.9 s, which is 34,482,758.6 ns. */
HARNESS_CLAIM(the_default_burst_is_the_threshold_with_its_decimals)
{
	harness_tokens(harness, setup, 2.9, SECOND, 0);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 5), 2);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 34482758, 5), 0);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 34482759, 5), 1);
}

/* Half a token a second, and one in the bucket: less than one unit an interval is a rate, and nothing at all is not. */
HARNESS_CLAIM(a_threshold_below_one_admits_a_packet_now_and_then)
{
	harness_tokens(harness, setup, 0.5, SECOND, 0);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 5), 1);
	assert_int_equal(harness_send(harness, HOST, 7 * SECOND - 1, 5), 0);
	assert_int_equal(harness_send(harness, HOST, 7 * SECOND, 5), 1);
	harness_finish(harness);
	harness_tokens(harness, setup, 0, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 5), 0);
}

/* A rule behind that blocks: its packets cost no tokens. */
HARNESS_CLAIM(a_packet_that_a_later_rule_blocks_puts_its_tokens_back)
{
	setup_ports(setup);
	setup_rule(setup, 0, tokens_of(1, SECOND, 5));
	setup_rule(setup, 1, rule_of("shut", WEIR_WINDOW_LEAP, 0, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(harness_send_to(harness, HOST, 55, 5 * SECOND, 30), 0);
	assert_int_equal(harness_send_to(harness, HOST, 53, 5 * SECOND, 10), 5);
	assert_int_equal(harness_send_to(harness, HOST, 55, 6 * SECOND, 30), 0);
	assert_int_equal(harness_send_to(harness, HOST, 53, 6 * SECOND, 10), 1);
}

HARNESS_CLAIM(an_observing_rule_takes_tokens_for_what_it_lets_pass)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, tokens_of(1, SECOND, 5));
	setup->rule[0].observes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 30), 30);
	assert_int_equal(model_would_drop(harness->model, 0), 25);
}

/* 60 bytes each: 1,000 bytes are 16 of them and 40 bytes left, to which 20 more come in 2 ms. */
HARNESS_CLAIM(bytes_cost_as_many_tokens_and_no_frame_larger_than_the_burst_passes)
{
	setup_resources(setup, 1);
	setup_rule(setup, 0, tokens_of(10000, SECOND, 1000));
	setup->rule[0].counts_bytes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 30), 16);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 2 * MS - 1, 2), 0);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 2 * MS, 2), 1);
	harness_finish(harness);
	setup_resources(setup, 1);
	setup_rule(setup, 0, tokens_of(10000, SECOND, 59.999999));
	setup->rule[0].counts_bytes = true;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 30), 0);
}

HARNESS_CLAIM(a_whole_resource_has_one_bucket)
{
	setup_resources(setup, 1);
	setup->resource[0].flow = (struct weir_flow){};
	setup_rule(setup, 0, tokens_of(100, SECOND, 10));
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 6), 6);
	assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND, 6), 4);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 20 * MS, 6), 2);
}

/* An override has a rate of its own, and a burst of its own where the rule has none for all. */
HARNESS_CLAIM(a_flow_under_an_override_gains_by_it)
{
	static struct weir_override overrides[] = {
		{.prefix = {4, 32, {192, 0, 2, 1}}, .threshold_micro = 7 * WEIR_MICRO},
		{.prefix = {4, 32, {192, 0, 2, 2}}, .threshold_micro = 0},
	};

	for (int burst = 0; burst < 2; burst++) {
		setup_resources(setup, 1);
		setup_rule(setup, 0, tokens_of(3, SECOND, burst ? 2 : 0));
		setup->rule[0].override_field = WEIR_KEY_SOURCE;
		setup->rule[0].overrides = overrides;
		setup->rule[0].override_count = ARRAY_SIZE(overrides);
		harness_start(harness, setup);
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 20), burst ? 2 : 7);
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND + SECOND / 7, 20), 0);
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND + SECOND / 7 + 1, 20), 1);
		assert_int_equal(harness_send(harness, OTHER_HOST, 5 * SECOND, 20), 0);
		assert_int_equal(harness_send(harness, "198.51.100.1", 5 * SECOND, 20), burst ? 2 : 3);
		harness_finish(harness);
	}
}

/* A word holds 62 bits of virtual time: what they say of a flow that was silent for longer must not count, at whatever
 * part of their turn it comes back.
 */
HARNESS_CLAIM(a_flow_that_was_silent_for_very_long_has_a_full_bucket)
{
	uint64_t now_ns, i;

	for (int keyed = 0; keyed < 2; keyed++) {
		setup_resources(setup, 1);
		if (!keyed)
			setup->resource[0].flow = (struct weir_flow){};
		setup_rule(setup, 0, tokens_of(99999989, SECOND, 3)); /* a prime: 2^62 of its time last 46 s */
		harness_start(harness, setup);
		for (now_ns = SECOND, i = 0; i < 200; i++, now_ns += (1ull << 36) / 64 * (1 + i))
			assert_int_equal(harness_send(harness, HOST, now_ns, 10), 3);
		harness_finish(harness);
	}
}

/* A capture's clock: the bucket is as much emptier as the clock went back, and no fuller for coming again. */
HARNESS_CLAIM(a_clock_that_goes_back_fills_nothing)
{
	harness_tokens(harness, setup, 100, SECOND, 10);
	assert_int_equal(harness_send(harness, HOST, 50 * SECOND, 5), 5);
	assert_int_equal(harness_send(harness, HOST, 50 * SECOND - 30 * MS, 10), 2);
	assert_int_equal(harness_send(harness, HOST, 40 * SECOND, 10), 0);
	assert_int_equal(harness_send(harness, HOST, 0, 10), 0);
	assert_int_equal(harness_send(harness, HOST, 50 * SECOND, 10), 3);
	assert_int_equal(harness_send(harness, HOST, 50 * SECOND + 20 * MS, 10), 2);
	harness_finish(harness);
	harness_tokens(harness, setup, 99999989, SECOND, 3);
	assert_int_equal(harness_send(harness, HOST, 3000 * SECOND, 5), 3);
	assert_int_equal(harness_send(harness, HOST, 2999 * SECOND, 5), 0);
	assert_int_equal(harness_send(harness, HOST, SECOND, 5), 0);
	assert_int_equal(harness_send(harness, HOST, 3000 * SECOND + 10, 5), 0); /* 10.0000011 ns each */
	assert_int_equal(harness_send(harness, HOST, 3000 * SECOND + 11, 5), 1);
}

/* ---- rates that move ---- */

/* 100 a second all cold are 33 and a third: a token each 30 ms, to the nanosecond. */
HARNESS_CLAIM(a_resource_that_warms_up_gains_at_the_rate_of_each_second)
{
	setup_resources(setup, 1);
	setup->resource[0].flow = (struct weir_flow){};
	setup_rule(setup, 0, warm_up_of(100, SECOND, 10));
	setup->rule[0].window = WEIR_WINDOW_TOKENS;
	setup->rule[0].burst_micro = 10 * WEIR_MICRO;
	harness_start(harness, setup);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 20), 10);
	for (uint64_t i = 1; i < 34; i++) {
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND + i * 30 * MS - 1, 2), 0);
		assert_int_equal(harness_send(harness, HOST, 5 * SECOND + i * 30 * MS, 2), 1);
	}
	for (uint64_t i = 6; i < 40; i++)
		harness_saturate(harness, HOST, i);
	/* warm: a token each 10 ms */
	harness_send(harness, HOST, 40 * SECOND, 2);
	for (uint64_t i = 1; i < 9; i++)
		assert_int_equal(harness_send(harness, HOST, 40 * SECOND + i * 100 * MS, 20), 10);
}

/* 1000 a second, then 100: what is in the bucket stays, and comes no faster than it was to come. */
HARNESS_CLAIM(memory_moves_the_rate_and_not_the_tokens)
{
	static const struct random_reading readings[] = {
		{5 * SECOND, 1024}, {6 * SECOND + 5 * MS, 9999}, {8 * SECOND, 1024}};

	setup_resources(setup, 1);
	setup_rule(setup, 0, tokens_of(0, SECOND, 20));
	setup->rule[0].strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	setup->rule[0].memory = (struct weir_memory_adaptive){1000, 100, 1024, 2048};
	harness_start(harness, setup);
	harness_readings(harness, readings, ARRAY_SIZE(readings));
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND, 30), 20);
	assert_int_equal(harness_send(harness, HOST, 5 * SECOND + 3 * MS, 30), 3);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND, 30), 20);
	/* five ms at the old rate, then one token each ten */
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 15 * MS - 1, 30), 5);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 15 * MS, 30), 1);
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 5 * MS - 1, 30),
			 0); /* no reading of before comes back */
	assert_int_equal(harness_send(harness, HOST, 6 * SECOND + 115 * MS, 30), 10);
	assert_int_equal(harness_send(harness, HOST, 8 * SECOND, 30), 20);
	assert_int_equal(harness_send(harness, HOST, 8 * SECOND + MS, 30), 1);
}

/* ---- random rules and traffic ---- */

/* Buckets wherever there can be some; many whose blocked flows are penalised, and some that hold more than the
 * threshold, as a hotspot rule's do.
 */
static struct weir_ruleset *random_buckets(struct random *random)
{
	struct weir_ruleset *ruleset = random_ruleset(random);

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (rule->metric != WEIR_METRIC_RATE || rule->occupies || rule->behavior != WEIR_BEHAVIOR_REJECT ||
		    rule->relation != WEIR_RELATION_CURRENT || random_percent(random, 10) ||
		    (rule->strategy == WEIR_STRATEGY_WARM_UP && weir_flow_of(ruleset, rule)->fields))
			continue;
		rule->window = WEIR_WINDOW_TOKENS;
		if (!rule->burst_micro && rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE &&
		    random_percent(random, 50)) {
			rule->burst_beyond_micro = random_below(random, 20 * WEIR_MICRO);
			rule->has_burst_beyond = true;
		} else if (!rule->burst_micro && random_percent(random, 50))
			rule->burst_micro = random_between(random, WEIR_MICRO, 50 * WEIR_MICRO);
		if (!rule->penalty_ms && random_percent(random, 30))
			rule->penalty_ms = rule->penalty_ms_max = random_between(random, 1, 400);
	}
	return ruleset;
}

CLAIM(agrees_with_the_model_on_random_buckets)
{
	const struct harness_rounds rounds = {
		.rounds = 60,
		.packets = 4000,
		.rules = random_buckets,
		.traffic = random_packets,
	};

	harness_rounds_agree(&rounds);
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
