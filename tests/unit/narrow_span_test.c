// SPDX-License-Identifier: GPL-2.0-only
/* How long the bucket numbers of narrow rows last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "tables/narrow_span.h"

#define MS 1000000ull
#define DAY (86400 * WEIR_NSEC_PER_SEC)
#define NUMBERS (1ull << 32)

static const struct weir_window_spec specs[] = {
	{.bucket_ns = 50 * MS, .base_bucket = 1000},
	{.bucket_ns = 100 * MS, .base_bucket = 0},
	{.bucket_ns = DAY, .base_bucket = 0},
};

static uint64_t left(const struct weir_rule_info *rules, uint32_t slots, uint64_t now_ns)
{
	return weir_narrow_left_ns(rules, slots, specs, ARRAY_SIZE(specs), now_ns);
}

static struct weir_rule_info narrow(uint32_t spec)
{
	return (struct weir_rule_info){.state = WEIR_SLOT_USED, .storage = WEIR_STORAGE_NARROW, .spec = spec};
}

/* The last number is 2^32 - 1: weir_narrow_row.newest holds no more. */
static void numbers_last_to_the_end_of_the_last_bucket(void **state)
{
	const struct weir_rule_info rule = narrow(0);
	const uint64_t last = (1000 + NUMBERS - 1) * 50 * MS;

	assert_int_equal(left(&rule, 1, 1000 * 50 * MS), NUMBERS * 50 * MS);
	assert_int_equal(left(&rule, 1, 1001 * 50 * MS), (NUMBERS - 1) * 50 * MS);
	assert_int_equal(left(&rule, 1, last), 50 * MS);
	assert_int_equal(left(&rule, 1, last + 50 * MS - 1), 50 * MS);
	assert_int_equal(left(&rule, 1, last + 50 * MS), 0);
	assert_int_equal(left(&rule, 1, 2 * last), 0);
}

static void warnings_at_50_ms_begin_in_the_fifth_year(void **state)
{
	const struct weir_rule_info rule = narrow(0);
	const uint64_t base_ns = 1000 * 50 * MS;

	assert_true(left(&rule, 1, base_ns + 1755 * DAY) >= WEIR_NARROW_LEFT_NS_LOW);
	assert_true(left(&rule, 1, base_ns + 1756 * DAY) < WEIR_NARROW_LEFT_NS_LOW);
}

static void the_first_to_run_out_counts(void **state)
{
	const struct weir_rule_info rules[] = {narrow(1), narrow(0), narrow(2)};

	assert_int_equal(left(rules, 3, 1000 * 50 * MS), NUMBERS * 50 * MS);
	assert_int_equal(left(rules, 1, 1000 * 50 * MS), (NUMBERS - 500) * 100 * MS);
}

static void numbers_that_outlast_the_clock_do_not_overflow(void **state)
{
	const struct weir_rule_info rule = narrow(2);

	assert_int_equal(left(&rule, 1, 0), UINT64_MAX);
}

static void medium_rows_last_as_long_as_narrow_ones(void **state)
{
	struct weir_rule_info rule = narrow(0);
	uint64_t narrow_ns = left(&rule, 1, 1755 * DAY);

	assert_true(narrow_ns < UINT64_MAX);
	rule.storage = WEIR_STORAGE_MEDIUM;
	assert_int_equal(left(&rule, 1, 1755 * DAY), narrow_ns);
}

static void rules_without_narrow_rows_do_not_count(void **state)
{
	struct weir_rule_info rules[] = {narrow(0), narrow(0), narrow(0), narrow(3)};

	rules[0].storage = WEIR_STORAGE_WIDE;
	rules[1].storage = WEIR_STORAGE_LONE;
	rules[2].state = WEIR_SLOT_COOLING;
	assert_int_equal(left(rules, 4, NUMBERS * 51 * MS), UINT64_MAX);
	assert_int_equal(left(rules, 0, NUMBERS * 51 * MS), UINT64_MAX);
}

static void words_begin_with_the_warning(void **state)
{
	char words[WEIR_NARROW_WORDS_BYTES];

	assert_null(weir_narrow_words(UINT64_MAX, words));
	assert_null(weir_narrow_words(730 * DAY, words));
	assert_string_equal(weir_narrow_words(730 * DAY - 1, words),
			    "attached so long ago that its limits hold for 729 more days");
	assert_string_equal(weir_narrow_words(1, words), "attached so long ago that its limits hold for 0 more days");
	assert_string_equal(weir_narrow_words(0, words),
			    "attached so long ago that flows over their limit stay blocked");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_last_to_the_end_of_the_last_bucket),
		cmocka_unit_test(warnings_at_50_ms_begin_in_the_fifth_year),
		cmocka_unit_test(the_first_to_run_out_counts),
		cmocka_unit_test(numbers_that_outlast_the_clock_do_not_overflow),
		cmocka_unit_test(medium_rows_last_as_long_as_narrow_ones),
		cmocka_unit_test(rules_without_narrow_rows_do_not_count),
		cmocka_unit_test(words_begin_with_the_warning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
