// SPDX-License-Identifier: GPL-2.0-only
/* How long the bucket numbers of narrow rows last. */
#include "../lib/claims.h"
#include "base/util.h"
#include "tables/entry_state.h"

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
CLAIM(numbers_last_to_the_end_of_the_last_bucket)
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

CLAIM(warnings_at_50_ms_begin_in_the_fifth_year)
{
	const struct weir_rule_info rule = narrow(0);
	const uint64_t base_ns = 1000 * 50 * MS;

	assert_true(left(&rule, 1, base_ns + 1755 * DAY) >= WEIR_NARROW_LEFT_NS_LOW);
	assert_true(left(&rule, 1, base_ns + 1756 * DAY) < WEIR_NARROW_LEFT_NS_LOW);
}

CLAIM(the_first_to_run_out_counts)
{
	const struct weir_rule_info rules[] = {narrow(1), narrow(0), narrow(2)};

	assert_int_equal(left(rules, 3, 1000 * 50 * MS), NUMBERS * 50 * MS);
	assert_int_equal(left(rules, 1, 1000 * 50 * MS), (NUMBERS - 500) * 100 * MS);
}

CLAIM(numbers_that_outlast_the_clock_do_not_overflow)
{
	const struct weir_rule_info rule = narrow(2);

	assert_int_equal(left(&rule, 1, 0), UINT64_MAX);
}

CLAIM(medium_rows_last_as_long_as_narrow_ones)
{
	struct weir_rule_info rule = narrow(0);
	uint64_t narrow_ns = left(&rule, 1, 1755 * DAY);

	assert_true(narrow_ns < UINT64_MAX);
	rule.storage = WEIR_STORAGE_MEDIUM;
	assert_int_equal(left(&rule, 1, 1755 * DAY), narrow_ns);
}

CLAIM(rules_without_narrow_rows_do_not_count)
{
	struct weir_rule_info rules[] = {narrow(0), narrow(0), narrow(0), narrow(3)};

	rules[0].storage = WEIR_STORAGE_WIDE;
	rules[1].storage = WEIR_STORAGE_LONE;
	rules[2].state = WEIR_SLOT_COOLING;
	assert_int_equal(left(rules, 4, NUMBERS * 51 * MS), UINT64_MAX);
	assert_int_equal(left(rules, 0, NUMBERS * 51 * MS), UINT64_MAX);
}

CLAIM(words_begin_with_the_warning)
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

RUN_CLAIMS(NULL, NULL)
