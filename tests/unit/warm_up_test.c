// SPDX-License-Identifier: GPL-2.0-only
/* WarmUp's numbers against the formulas of docs/semantics.md, 3, checked by multiplication. */
#include <string.h>

#include "../lib/claims.h"
#include "thresholds/control.h"
#include "weir_emission.h"

#define SECOND WEIR_NSEC_PER_SEC
#define DAY (86400 * SECOND)

static uint64_t chance(uint64_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 32 ^ state << 32) % below;
}

/* Numbers of every size are as likely. */
static uint64_t chance_size(uint64_t below)
{
	return chance(below) >> chance(40);
}

static struct weir_ruleset_rule rule_of(uint64_t threshold_micro, uint64_t interval_ns, uint32_t period_s,
					uint32_t cold_factor)
{
	return (struct weir_ruleset_rule){
		.name = (char *)"slow-start",
		.threshold_micro = threshold_micro,
		.interval_ns = interval_ns,
		.strategy = WEIR_STRATEGY_WARM_UP,
		.behavior = WEIR_BEHAVIOR_THROTTLING,
		.warm_up = {period_s, cold_factor},
	};
}

static struct weir_warm_up set_up(const struct weir_ruleset_rule *rule)
{
	struct weir_diag diag = {};
	struct weir_warm_up params;

	assert_int_equal(weir_warm_up_set_up(rule, &params, &diag), 0);
	assert_int_equal(diag.count, 0);
	return params;
}

CLAIM(sentinels_example_is_set_up_as_sentinel_does)
{
	struct weir_ruleset_rule rule = rule_of(100 * WEIR_MICRO, SECOND, 10, 3);
	struct weir_warm_up params = set_up(&rule);

	assert_int_equal(params.warning, 500);
	assert_int_equal(params.max, 1000);
	assert_int_equal(params.ramp, 500);
	assert_int_equal(params.cold_less_one, 2);
	assert_int_equal(params.refill, 100);
	assert_int_equal(params.refill_below, 33);
	assert_int_equal(params.limit_num, 100);
	assert_int_equal(params.limit_den, 1);
	assert_int_equal(params.emission_num, 10000000);
	assert_int_equal(params.emission_den, 1);
}

CLAIM(a_saturated_start_follows_the_published_curve)
{
	static const uint64_t passes[] = {33, 34, 36, 38, 41, 44, 47, 52, 58, 68, 83, 100, 100};
	struct weir_ruleset_rule rule = rule_of(100 * WEIR_MICRO, SECOND, 10, 3);
	struct weir_warm_up params = set_up(&rule);
	uint64_t stored = params.max;

	for (size_t i = 0; i < sizeof(passes) / sizeof(*passes); i++) {
		assert_int_equal(weir_warm_up_units(&params, stored), passes[i]);
		stored = weir_warm_up_sync(&params, stored, passes[i]);
	}
}

CLAIM(a_cold_packet_of_a_hundred_a_second_costs_30_ms)
{
	struct weir_ruleset_rule rule = rule_of(100 * WEIR_MICRO, SECOND, 10, 3);
	struct weir_warm_up params = set_up(&rule);
	struct weir_emission cost = {};

	weir_warm_up_emission(&params, params.max, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 30000000);
	weir_warm_up_emission(&params, params.warning, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 10000000);
}

/* floor(numerator / divisor), by its meaning. */
static void assert_floor(uint64_t value, unsigned __int128 numerator, unsigned __int128 divisor)
{
	assert_true(value * divisor <= numerator);
	assert_true(numerator < (value + (unsigned __int128)1) * divisor);
}

static void assert_set_up(const struct weir_ruleset_rule *rule, const struct weir_warm_up *params)
{
	unsigned __int128 rate_num = (unsigned __int128)rule->threshold_micro * 1000;
	unsigned __int128 tokens = rate_num * rule->warm_up.period_s, interval_ns = rule->interval_ns;
	uint64_t cold_factor = rule->warm_up.cold_factor;

	assert_floor(params->warning, tokens, interval_ns * (cold_factor - 1));
	assert_floor(params->max - params->warning, 2 * tokens, interval_ns * (cold_factor + 1));
	assert_int_equal(params->ramp, params->max - params->warning);
	assert_floor(params->refill, rate_num, interval_ns);
	assert_floor(params->refill_below, params->refill, cold_factor);
	assert_true((unsigned __int128)params->limit_num * WEIR_MICRO ==
		    (unsigned __int128)params->limit_den * rule->threshold_micro);
	if (rule->threshold_micro >= WEIR_MICRO && rule->behavior == WEIR_BEHAVIOR_THROTTLING)
		assert_true((unsigned __int128)params->emission_num * rule->threshold_micro ==
			    interval_ns * WEIR_MICRO * params->emission_den);
}

/* Allowed is limit * ramp / above, where above is what the stored tokens make of the ramp. */
static void assert_curve(const struct weir_warm_up *params, uint64_t stored, uint64_t batch)
{
	unsigned __int128 above = params->ramp ?: 1, ramp = params->ramp ?: 1;
	struct weir_emission cost = {};
	uint64_t cost_ns;

	if (params->ramp && stored > params->warning)
		above += (unsigned __int128)(stored - params->warning) * params->cold_less_one;
	assert_floor(weir_warm_up_units(params, stored), params->limit_num * ramp, params->limit_den * above);
	if (!params->emission_num)
		return;
	weir_warm_up_emission(params, stored, &cost);
	/* A ceiling, unless the numbers are too large to multiply here. */
	if (params->emission_num >> 47 || above >> 62)
		return;
	cost_ns = weir_emission_ns(&cost, batch);
	assert_true(cost_ns * ramp * params->emission_den >= batch * above * params->emission_num);
	assert_true((cost_ns - 1) * ramp * params->emission_den < batch * above * params->emission_num);
}

static bool chance_rule(struct weir_ruleset_rule *rule, struct weir_warm_up *params)
{
	uint32_t cold_factor = 2 + (chance(8) ? chance(9) : chance_size(1u << 20));
	uint64_t micro = chance_size(10000000000000000000ull);
	struct weir_diag diag = {};
	int err;

	micro = chance(3) ? micro / WEIR_MICRO * WEIR_MICRO : micro;
	*rule = rule_of(micro, (10 + chance(3) * chance(86399990)) * (SECOND / 1000), 1 + chance_size(31536000),
			cold_factor);
	rule->behavior = chance(2);
	err = weir_warm_up_set_up(rule, params, &diag);
	weir_diag_free(&diag);
	return err == 0;
}

CLAIM(random_rules_are_set_up_exactly)
{
	uint32_t accepted = 0;

	for (uint32_t i = 0; i < 200000; i++) {
		struct weir_ruleset_rule rule;
		struct weir_warm_up params;

		if (!chance_rule(&rule, &params))
			continue;
		accepted++;
		assert_set_up(&rule, &params);
	}
	assert_true(accepted > 100000);
}

CLAIM(random_curves_are_exact_everywhere)
{
	for (uint32_t i = 0; i < 20000; i++) {
		struct weir_ruleset_rule rule;
		struct weir_warm_up params;

		if (!chance_rule(&rule, &params) || rule.threshold_micro < rule.warm_up.cold_factor * WEIR_MICRO)
			continue;
		assert_curve(&params, params.max, 1 + chance(9000));
		assert_curve(&params, params.warning, 1);
		for (uint32_t at = 0; at < 4; at++)
			assert_curve(&params, chance(params.max + 1), 1 + chance(9000));
	}
}

CLAIM(idle_seconds_are_syncs_of_nothing)
{
	for (uint32_t i = 0; i < 20000; i++) {
		uint64_t seconds = chance(60), stored, expected;
		struct weir_ruleset_rule rule;
		struct weir_warm_up params;

		if (!chance_rule(&rule, &params))
			continue;
		stored = expected = chance(params.max + 1);
		for (uint64_t second = 0; second < seconds; second++)
			expected = weir_warm_up_sync(&params, expected, 0);
		assert_int_equal(weir_warm_up_idle(&params, stored, seconds), expected);
	}
}

/* 50 in 100 ms is 500 a second: the arithmetic runs on that, and the result is for 100 ms again. */
CLAIM(another_interval_warms_up_by_its_rate_per_second)
{
	struct weir_ruleset_rule rule = rule_of(50 * WEIR_MICRO, SECOND / 10, 10, 3);
	struct weir_warm_up params = set_up(&rule);

	assert_int_equal(params.warning, 2500);
	assert_int_equal(params.max, 5000);
	assert_int_equal(params.refill, 500);
	assert_int_equal(params.refill_below, 166);
	assert_int_equal(weir_warm_up_units(&params, params.max), 16);
	assert_int_equal(weir_warm_up_units(&params, params.warning), 50);
	/* Sixty a minute is one a second. */
	rule = rule_of(60 * WEIR_MICRO, 60 * SECOND, 10, 3);
	params = set_up(&rule);
	assert_int_equal(params.max, 10);
	assert_int_equal(params.refill, 1);
	assert_int_equal(weir_warm_up_units(&params, params.max), 20);
}

CLAIM(a_ramp_too_small_to_exist_is_the_plain_threshold)
{
	/* Three an hour: neither line is a whole token away. */
	struct weir_ruleset_rule rule = rule_of(3900000, 3600 * SECOND, 10, 3);
	struct weir_warm_up params = set_up(&rule);
	struct weir_emission cost = {};

	assert_int_equal(params.ramp, 0);
	assert_int_equal(weir_warm_up_units(&params, params.max), 3);
	weir_warm_up_emission(&params, params.max, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 923076923077);
}

CLAIM(a_threshold_of_zero_admits_nothing)
{
	struct weir_ruleset_rule rule = rule_of(0, SECOND, 10, 3);
	struct weir_warm_up params = set_up(&rule);

	assert_int_equal(weir_warm_up_units(&params, params.max), 0);
	assert_int_equal(params.emission_num, 0);
	assert_int_equal(params.emission_den, 1);
}

CLAIM(only_throttling_has_an_emission_interval)
{
	struct weir_ruleset_rule rule = rule_of(100 * WEIR_MICRO, SECOND, 10, 3);
	struct weir_warm_up params;

	rule.behavior = WEIR_BEHAVIOR_REJECT;
	params = set_up(&rule);
	assert_int_equal(params.emission_num, 0);
	assert_int_equal(params.emission_den, 1);
}

/* With a second's nanoseconds for a token, virtual time grows by the threshold in a nanosecond. */
CLAIM(tokens_come_as_fast_as_the_curve_allows)
{
	static const struct {
		uint64_t stored;
		uint32_t whole;
		uint64_t fraction; /* rounded up */
	} samples[] = {{1000, 33, UINT64_MAX / 3 + 1}, {750, 50, 0}, {500, 100, 0}, {0, 100, 0}};
	struct weir_ruleset_rule rule = rule_of(100 * WEIR_MICRO, SECOND, 10, 3);
	struct weir_warm_up params = set_up(&rule);

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct weir_token_rate rate;

		weir_warm_up_token_rate(&params, samples[i].stored, SECOND, SECOND, &rate);
		assert_int_equal(rate.whole, samples[i].whole);
		assert_int_equal(rate.fraction, samples[i].fraction);
	}
}

static void assert_refused(const struct weir_ruleset_rule *rule, const char *hint)
{
	struct weir_warm_up params = {.max = 12345};
	struct weir_diag diag = {};

	assert_int_equal(weir_warm_up_set_up(rule, &params, &diag), -EINVAL);
	assert_int_equal(diag.errors, 1);
	assert_non_null(strstr(diag.entries[0].message, "rule 'slow-start'"));
	assert_non_null(strstr(diag.entries[0].hint, hint));
	assert_int_equal(params.max, 12345);
	weir_diag_free(&diag);
}

CLAIM(numbers_beyond_64_bits_are_refused_by_the_rules_name)
{
	struct weir_ruleset_rule rule;

	/* limit_den * ramp * cold factor: a year of 10^12 a second. */
	rule = rule_of(1000000000000 * WEIR_MICRO, SECOND, 31536000, 3);
	assert_refused(&rule, "lower warmUpPeriodSec");
	/* emission_den * ramp: a prime number of bytes a second, which shares no factor with the interval. */
	rule = rule_of(1999999973 * WEIR_MICRO, SECOND, 10, 3);
	assert_refused(&rule, "lower warmUpPeriodSec, or write a rounder threshold");
	rule.behavior = WEIR_BEHAVIOR_REJECT;
	set_up(&rule);
	/* emission_num: a day in ns times 10^6 is more than 2^64. */
	rule = rule_of(33333333, DAY, 10, 3);
	assert_refused(&rule, "fewer decimals");
	rule.threshold_micro = 33 * WEIR_MICRO;
	set_up(&rule);
}

/* 10 Gbit/s, warming up for an hour: what people have is far from the bounds. */
CLAIM(ten_gigabits_warm_up_for_an_hour)
{
	struct weir_ruleset_rule rule = rule_of(1250000000 * WEIR_MICRO, SECOND, 3600, 3);
	struct weir_warm_up params = set_up(&rule);

	assert_set_up(&rule, &params);
	assert_curve(&params, params.max, 65535);
}

RUN_CLAIMS(NULL, NULL)
