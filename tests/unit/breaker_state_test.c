// SPDX-License-Identifier: GPL-2.0-only
/* What commands show of a circuit breaker, by the words that the program keeps of it. */
#include "../lib/claims.h"
#include "rules/ruleset.h"
#include "tables/entry_state.h"

#define NOW_NS (1000 * WEIR_NSEC_PER_SEC)

static const struct weir_breaker_terms terms = {.since_ns = NOW_NS - 100};

static struct weir_breaker breaker_of(enum weir_breaker_kind kind, uint64_t until_ns)
{
	return (struct weir_breaker){
		.state = (uint64_t)kind << WEIR_BREAKER_KIND_SHIFT | (until_ns & WEIR_BREAKER_TIME_MASK),
		.made_ns = terms.since_ns + 1,
	};
}

CLAIM(one_that_another_rule_had_made_is_not_shown)
{
	struct weir_breaker breaker = breaker_of(WEIR_BREAKER_OPEN, NOW_NS);
	struct weir_breaker_view view;

	assert_true(weir_breaker_view(&breaker, &terms, NOW_NS, &view));
	breaker.made_ns = terms.since_ns;
	assert_false(weir_breaker_view(&breaker, &terms, NOW_NS, &view));
	breaker.made_ns = 0;
	assert_false(weir_breaker_view(&breaker, &terms, NOW_NS, &view));
}

/* The word keeps the time's lowest bits: at any time, those of half a turn before or after are distinguishable. */
CLAIM(an_open_one_says_how_long_it_stays_so)
{
	const uint64_t half_turn_ns = (WEIR_BREAKER_TIME_MASK + 1) / 2;
	const uint64_t times[] = {NOW_NS, half_turn_ns - 5, half_turn_ns, 2 * half_turn_ns - 5, 2 * half_turn_ns};

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct weir_breaker breaker = breaker_of(WEIR_BREAKER_OPEN, times[i] + 10);
		struct weir_breaker_view view;

		assert_true(weir_breaker_view(&breaker, &terms, times[i], &view));
		assert_int_equal(view.left_ns, 10);
		assert_true(weir_breaker_view(&breaker, &terms, times[i] + 10, &view));
		assert_int_equal(view.left_ns, 0);
		assert_true(weir_breaker_view(&breaker, &terms, times[i] + 500, &view));
		assert_int_equal(view.left_ns, 0);
	}
}

CLAIM(only_an_open_one_has_a_time_left)
{
	struct weir_breaker closed = breaker_of(WEIR_BREAKER_CLOSED, NOW_NS + 10);
	struct weir_breaker half_open = breaker_of(WEIR_BREAKER_HALF_OPEN, NOW_NS + 10);
	struct weir_breaker_view view;

	assert_true(weir_breaker_view(&closed, &terms, NOW_NS, &view));
	assert_int_equal(view.left_ns, 0);
	assert_true(weir_breaker_view(&half_open, &terms, NOW_NS, &view));
	assert_int_equal(view.left_ns, 0);
}

CLAIM(its_value_is_a_ratio_or_a_number_of_errors)
{
	const struct weir_breaker_view none = {.strategy = WEIR_BREAKER_ERROR_RATIO};
	struct weir_breaker_view some = {.strategy = WEIR_BREAKER_ERROR_RATIO, .requests = 8, .bad = 3};

	assert_int_equal(weir_breaker_value_micro(&none), 0);
	assert_int_equal(weir_breaker_value_micro(&some), 375000);
	some.strategy = WEIR_BREAKER_ERROR_COUNT;
	assert_int_equal(weir_breaker_value_micro(&some), 3 * WEIR_MICRO);
}

CLAIM(breakers_of_a_rule_are_counted_by_their_kind)
{
	static const enum weir_breaker_kind kinds[] = {WEIR_BREAKER_OPEN, WEIR_BREAKER_HALF_OPEN, WEIR_BREAKER_OPEN};
	struct weir_breaker_sum sum = {};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct weir_breaker breaker = breaker_of(kinds[i], NOW_NS);
		struct weir_breaker_view view;

		breaker.changes = 1 + i;
		breaker.shared = 10 * i;
		assert_true(weir_breaker_view(&breaker, &terms, NOW_NS, &view));
		weir_breaker_add(&view, &sum);
	}
	assert_int_equal(sum.count[WEIR_BREAKER_CLOSED], 0);
	assert_int_equal(sum.count[WEIR_BREAKER_OPEN], 2);
	assert_int_equal(sum.count[WEIR_BREAKER_HALF_OPEN], 1);
	assert_int_equal(sum.changes, 6);
	assert_int_equal(sum.shared, 30);
}

RUN_CLAIMS(NULL, NULL)
