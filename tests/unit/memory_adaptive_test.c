// SPDX-License-Identifier: GPL-2.0-only
/* The line between two water marks, against its formula, checked by multiplication. */
#include <string.h>

#include "../lib/claims.h"
#include "compile/build_steps.h"
#include "thresholds/control.h"
#include "weir_emission.h"

#define SECOND WEIR_NSEC_PER_SEC

/* The example of docs/semantics.md. */
static const struct weir_memory_adaptive example = {
	.low_units = 1000,
	.high_units = 100,
	.low_mark_bytes = 1024,
	.high_mark_bytes = 2048,
};

static uint64_t chance(uint64_t below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (state >> 32 ^ state << 32) % below;
}

CLAIM(half_way_between_the_marks_is_half_way_between_the_thresholds)
{
	assert_int_equal(weir_memory_adaptive_units(&example, 1536), 550);
}

CLAIM(the_marks_themselves_and_all_beyond_give_the_ends)
{
	assert_int_equal(weir_memory_adaptive_units(&example, 0), 1000);
	assert_int_equal(weir_memory_adaptive_units(&example, 1024), 1000);
	assert_int_equal(weir_memory_adaptive_units(&example, 1025), 999);
	assert_int_equal(weir_memory_adaptive_units(&example, 2047), 100);
	assert_int_equal(weir_memory_adaptive_units(&example, 2048), 100);
	assert_int_equal(weir_memory_adaptive_units(&example, UINT64_MAX), 100);
}

CLAIM(a_throttled_packet_takes_time_by_the_exact_point_of_the_line)
{
	struct weir_emission cost;

	weir_memory_adaptive_emission(&example, 1024, SECOND, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 1000000);
	/* 100 + 900 / 1024 a second, not 100. */
	weir_memory_adaptive_emission(&example, 2047, SECOND, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 9912876);
	weir_memory_adaptive_emission(&example, 2048, SECOND, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 10000000);
}

/* Points of random lines: floor(allowed), and ceil(interval / allowed). */
/* With a second's nanoseconds for a token, virtual time grows by the threshold in a nanosecond. */
CLAIM(tokens_come_as_fast_as_the_exact_point_of_the_line_allows)
{
	struct weir_token_rate rate;

	weir_memory_adaptive_token_rate(&example, 1536, SECOND, SECOND, &rate);
	assert_int_equal(rate.whole, 550);
	assert_int_equal(rate.fraction, 0);
	/* 999 + 124 / 1024 */
	weir_memory_adaptive_token_rate(&example, 1025, SECOND, SECOND, &rate);
	assert_int_equal(rate.whole, 999);
	assert_int_equal(rate.fraction, 124ull << 54);
	weir_memory_adaptive_token_rate(&example, 2048, SECOND, SECOND, &rate);
	assert_int_equal(rate.whole, 100);
	assert_int_equal(rate.fraction, 0);
}

CLAIM(random_lines_are_exact_everywhere)
{
	for (uint32_t i = 0; i < 200000; i++) {
		uint64_t units, cost_ns, used_bytes, interval_ns = 10000000 * (1 + chance(8640000));
		struct weir_memory_adaptive line;
		unsigned __int128 span, num;
		struct weir_emission cost;

		line.high_units = 1 + (chance(1ull << 42) >> chance(42));
		line.low_units = line.high_units + 1 + (chance(1ull << 42) >> chance(42));
		line.low_mark_bytes = 1 + (chance(1ull << 62) >> chance(62));
		line.high_mark_bytes = line.low_mark_bytes + 1 + (chance(1ull << 62) >> chance(62));
		span = line.high_mark_bytes - line.low_mark_bytes;
		used_bytes = line.low_mark_bytes + chance((uint64_t)span + 1);
		/* The other way round than the code: up from the stricter end. */
		num = line.high_units * span +
		      (unsigned __int128)(line.low_units - line.high_units) * (line.high_mark_bytes - used_bytes);

		units = weir_memory_adaptive_units(&line, used_bytes);
		assert_true(units * span <= num && num < (units + 1) * span);
		if (interval_ns * span >> 64 || num >> 90)
			continue;
		weir_memory_adaptive_emission(&line, used_bytes, interval_ns, &cost);
		cost_ns = weir_emission_ns(&cost, 1);
		assert_int_equal(cost_ns, interval_ns * span / num + (interval_ns * span % num != 0));
	}
}

/* The largest thresholds and marks that a rule may have. */
CLAIM(the_steepest_line_does_not_overflow)
{
	static const struct weir_memory_adaptive line = {
		.low_units = 10000000000000,
		.high_units = 1,
		.low_mark_bytes = 1,
		.high_mark_bytes = INT64_MAX,
	};
	struct weir_emission cost;

	assert_int_equal(weir_memory_adaptive_units(&line, (uint64_t)1 << 62), 5000000000000);
	assert_int_equal(weir_memory_adaptive_units(&line, INT64_MAX - 1), 1);
	weir_memory_adaptive_emission(&line, INT64_MAX, 86400 * SECOND, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 86400 * SECOND);
	weir_memory_adaptive_emission(&line, 2, 86400 * SECOND, &cost);
	assert_int_equal(weir_emission_ns(&cost, 1), 9);
}

CLAIM(a_threshold_beyond_the_largest_is_refused)
{
	struct weir_ruleset_rule rule = {
		.name = (char *)"ingress",
		.strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE,
		.memory = {10000000000000, 100, 1024, 2048},
		.interval_ns = SECOND,
	};
	const struct weir_ruleset ruleset = {};
	struct weir_terms terms;
	struct weir_diag diag = {};

	assert_int_equal(weir_terms_make(&ruleset, &rule, &terms, &diag), 0);
	assert_int_equal(terms.units_max, 10000000000000);
	rule.memory.low_units++;
	assert_int_equal(weir_terms_make(&ruleset, &rule, &terms, &diag), -EINVAL);
	assert_int_equal(diag.errors, 1);
	assert_non_null(strstr(diag.entries[0].message, "rule 'ingress' has a lowMemUsageThreshold that is too large"));
	weir_diag_free(&diag);
}

RUN_CLAIMS(NULL, NULL)
