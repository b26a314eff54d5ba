// SPDX-License-Identifier: GPL-2.0-only
/* The virtual time of token buckets: its unit, its rate, and how it continues over a reload. */
#include "../lib/claims.h"
#include "base/util.h"
#include "thresholds/token_rates.h"

#define SECOND 1000000000ull
#define DAY (86400 * SECOND)

typedef unsigned __int128 u128;

static struct weir_ruleset_rule rule_of(uint64_t threshold_micro, uint64_t interval_ns, uint64_t burst_micro)
{
	return (struct weir_ruleset_rule){
		.threshold_micro = threshold_micro,
		.interval_ns = interval_ns,
		.burst_micro = burst_micro,
		.window = WEIR_WINDOW_TOKENS,
	};
}

static u128 time_at(const struct weir_token_clock *clock, uint64_t now_ns)
{
	struct weir_token_time time = weir_token_time(clock, now_ns);

	return (u128)time.high << 32 | time.low;
}

static const struct {
	uint64_t threshold_micro, interval_ns, burst_micro;
	bool is_exact;
} samples[] = {
	{1000000, SECOND, 1000000, true},
	{100000000, SECOND, 0, true},
	{2900000, SECOND, 0, true},
	{3000000, SECOND, 1000000000, true},
	{1000000, DAY, 100000000, true},
	{7000000, DAY, 0, true},
	{99999989000000, SECOND, 1000000000000, true},
	{1250000000000000, SECOND, 1000000000000, false}, /* 1.25 tokens a ns: no unit is both */
	{10000000000000000000ull, 10000000, 0, false},
	{123456789012, DAY, 999999999999, false},
	{1, DAY, 1000001, false},
};

CLAIM(a_bucket_and_a_nanosecond_keep_within_their_bounds)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct weir_ruleset_rule rule =
			rule_of(samples[i].threshold_micro, samples[i].interval_ns, samples[i].burst_micro);
		struct weir_tokens tokens;

		weir_tokens_make(&rule, &tokens);
		assert_true(tokens.unit > 0);
		assert_true(tokens.capacity <= WEIR_TOKEN_CAPACITY_MAX);
		assert_true(tokens.clock.rate.whole < 1u << WEIR_TOKEN_RATE_BITS);
		assert_true((u128)tokens.batch_max * tokens.unit <= tokens.capacity);
	}
}

/* Exact where it says so; else less than two units of virtual time from the truth, rounded once. */
CLAIM(virtual_time_is_the_threshold_at_every_nanosecond)
{
	static const uint64_t times_ns[] = {0,	     1,		 2,	     999999999,	      SECOND,
					    DAY + 7, 1ull << 32, 1ull << 40, 3123456789012345};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		struct weir_ruleset_rule rule =
			rule_of(samples[i].threshold_micro, samples[i].interval_ns, samples[i].burst_micro);
		struct weir_tokens tokens;

		weir_tokens_make(&rule, &tokens);
		if (samples[i].is_exact)
			assert_int_equal(tokens.clock.rate.fraction, 0);
		for (size_t t = 0; t < ARRAY_SIZE(times_ns); t++) {
			/* ns * micro * unit / (interval * 10^6), in two steps that fit */
			const u128 den = (u128)rule.interval_ns * WEIR_MICRO,
				   num = (u128)times_ns[t] * rule.threshold_micro;
			const u128 truth =
				num / den * tokens.unit + (u128)((long double)(num % den) / den * tokens.unit);
			const u128 found = time_at(&tokens.clock, times_ns[t]);
			/* long double has 64 bits */
			const u128 slack = 2 + (tokens.unit >> 60);

			assert_true(found + slack >= truth && found <= truth + slack);
			if (samples[i].is_exact && num % den == 0)
				assert_true(found == num / den * tokens.unit);
		}
	}
}

CLAIM(a_threshold_of_nothing_admits_nothing)
{
	struct weir_ruleset_rule rule = rule_of(0, SECOND, 5 * WEIR_MICRO);
	struct weir_tokens tokens;

	weir_tokens_make(&rule, &tokens);
	assert_int_equal(tokens.batch_max, 0);
}

/* Until the controller says how much memory is in use, and when it is gone: as much as can be. */
CLAIM(memory_adaptive_rules_start_as_if_memory_were_full)
{
	struct weir_ruleset_rule rule = rule_of(0, SECOND, 5 * WEIR_MICRO);
	struct weir_token_rate full;
	struct weir_tokens tokens;

	rule.strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	rule.memory = (struct weir_memory_adaptive){1000, 100, 1024, 2048};
	weir_tokens_make(&rule, &tokens);
	weir_tokens_rate(100, 1, SECOND, tokens.unit, &full);
	assert_true(weir_tokens_same_rate(&tokens.clock.rate, &full));
}

CLAIM(a_burst_left_out_is_the_threshold_and_at_least_one)
{
	struct weir_ruleset_rule rule = rule_of(2900000, SECOND, 0);

	assert_int_equal(weir_tokens_burst_micro(&rule, rule.threshold_micro), 2900000);
	assert_int_equal(weir_tokens_burst_micro(&rule, 500000), 1000000);
	rule.burst_micro = 7000000;
	assert_int_equal(weir_tokens_burst_micro(&rule, 500000), 7000000);
}

/* SEMANTICS: what comes in 200 ms, rounded up to a byte, and at least 46 frames of 1,514 bytes. */
CLAIM(a_burst_of_bytes_left_out_is_what_comes_in_200_ms)
{
	struct weir_ruleset_rule rule = rule_of(1250000000000, SECOND, 0);

	rule.counts_bytes = true;
	assert_int_equal(weir_tokens_burst_micro(&rule, rule.threshold_micro), 250000000000);
	assert_int_equal(weir_tokens_burst_micro(&rule, 2 * rule.threshold_micro), 500000000000);
	assert_int_equal(weir_tokens_burst_micro(&rule, 1000001000001), 200001000000);
	assert_int_equal(weir_tokens_burst_micro(&rule, 348220000000), 69644000000);
	assert_int_equal(weir_tokens_burst_micro(&rule, 348220000001), 69645000000);
	assert_int_equal(weir_tokens_burst_micro(&rule, 1), 69644000000);
	rule.interval_ns = 100 * SECOND;
	assert_int_equal(weir_tokens_burst_micro(&rule, 100 * rule.threshold_micro), 250000000000);
	/* No more than a burst can be. */
	rule.interval_ns = SECOND / 100;
	assert_true(weir_tokens_burst_micro(&rule, 10000000000000000000ull) == 10000000000000000000ull);
	rule.interval_ns = SECOND;
	rule.has_burst_beyond = true; /* burstCount: 0 */
	assert_int_equal(weir_tokens_burst_micro(&rule, rule.threshold_micro), 1250000000000);
	rule.burst_micro = 7000000;
	assert_int_equal(weir_tokens_burst_micro(&rule, rule.threshold_micro), 7000000);
}

CLAIM(a_burst_of_bytes_that_moves_with_memory_is_of_the_larger_threshold)
{
	struct weir_ruleset_rule rule = rule_of(0, SECOND, 0);

	rule.counts_bytes = true;
	rule.strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	rule.memory = (struct weir_memory_adaptive){1000000, 100, 1024, 2048};
	assert_int_equal(weir_tokens_burst_micro(&rule, 100000000), 200000000000);
}

/* What a bucket lacks, in tokens, is the same before and after: W and the unit stay, and so does V at that moment. */
CLAIM(a_reload_continues_at_the_new_rate)
{
	struct weir_ruleset_rule rule = rule_of(100000000, SECOND, 10000000);
	struct weir_tokens before, after;
	const uint64_t now_ns = 12345 * SECOND + 678;

	weir_tokens_make(&rule, &before);
	before.mark = 7;
	weir_tokens_make(&rule, &after);
	assert_true(weir_tokens_continue(&rule, &before, now_ns, &after));
	assert_memory_equal(&before, &after, sizeof(before));

	rule.threshold_micro = 300000000;
	rule.burst_micro = 20000000;
	weir_tokens_make(&rule, &after);
	assert_true(weir_tokens_continue(&rule, &before, now_ns, &after));
	assert_int_equal(after.mark, 7);
	assert_int_equal(after.unit, before.unit);
	assert_true(after.capacity == 2 * before.capacity);
	assert_true(time_at(&after.clock, now_ns) == time_at(&before.clock, now_ns));
	assert_true(time_at(&after.clock, now_ns + SECOND) - time_at(&after.clock, now_ns) == (u128)300 * after.unit);
	/* and once more */
	before = after;
	rule.threshold_micro = 50000000;
	weir_tokens_make(&rule, &after);
	assert_true(weir_tokens_continue(&rule, &before, now_ns + 9 * SECOND, &after));
	assert_true(time_at(&after.clock, now_ns + 9 * SECOND) == time_at(&before.clock, now_ns + 9 * SECOND));

	/* A burst for which there is no room at that unit. */
	rule.burst_micro = 10000000000000000000ull;
	weir_tokens_make(&rule, &after);
	assert_false(weir_tokens_continue(&rule, &before, now_ns, &after));
}

RUN_CLAIMS(NULL, NULL)
