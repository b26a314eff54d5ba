// SPDX-License-Identifier: GPL-2.0-only
/* The words of ghosts (include/weir_row_ghosts.h): counts, names, and how long a word counts. */
#include "../lib/claims.h"
#include "base/util.h"
#include "weir_row_ghosts.h"
#include "weir_state.h"

#define ROUND (WEIR_ROW_GHOST_START_MASK + 1ull) /* buckets after which a word's number comes round */
#define CELLS 10				 /* of a window */

/* ---- counts ---- */

static void a_count_is_the_least_that_stands_for_its_units(uint64_t units)
{
	uint32_t count = weir_row_ghost_count(units);

	assert_true(count <= WEIR_ROW_GHOST_COUNT_MASK);
	assert_true(weir_row_ghost_units(count) >= units);
	if (count)
		assert_true(weir_row_ghost_units(count - 1) < units);
}

CLAIM(counts_never_stand_for_less)
{
	for (uint64_t units = 0; units < 1 << 20; units++)
		a_count_is_the_least_that_stands_for_its_units(units);
	for (int bit = 20; bit < 60; bit++)
		for (uint64_t eighth = 0; eighth < 8; eighth++)
			for (uint64_t near = 0; near < 5; near++)
				a_count_is_the_least_that_stands_for_its_units((1ull << bit) + (eighth << (bit - 3)) +
									       near - 2);
}

CLAIM(counts_are_exact_up_to_127_and_then_within_a_64th)
{
	for (uint64_t units = 0; units < 1 << 20; units++) {
		uint64_t more = weir_row_ghost_units(weir_row_ghost_count(units)) - units;

		assert_true(units < 128 ? more == 0 : more * WEIR_ROW_GHOST_MANTISSA <= units);
	}
}

CLAIM(the_largest_count_has_no_bound)
{
	static const uint64_t large[] = {1ull << 37, 1ull << 40, 1ull << 59, 1ull << 60};

	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		assert_int_equal(weir_row_ghost_count(large[i]), WEIR_ROW_GHOST_COUNT_MASK);
	assert_true(weir_row_ghost_units(WEIR_ROW_GHOST_COUNT_MASK) == WEIR_ROW_GHOST_BOUNDLESS);
	assert_true(weir_row_ghost_units(WEIR_ROW_GHOST_COUNT_MASK - 1) < 1ull << 37);
}

/* ---- words ---- */

CLAIM(parts_of_a_word_do_not_touch_each_other)
{
	const uint64_t name = (1u << 24) - 1, start = WEIR_ROW_GHOST_START_MASK, span = WEIR_ROW_GHOST_SPAN_MASK,
		       count = WEIR_ROW_GHOST_COUNT_MASK;
	assert_true((WEIR_ROW_GHOST_WORD(name, 0, -1, 0, 0) ^ WEIR_ROW_GHOST_WORD(0, start, -1, 0, 0) ^
		     WEIR_ROW_GHOST_WORD(0, 0, span - 1, 0, 0) ^ WEIR_ROW_GHOST_WORD(0, 0, -1, count, 0) ^
		     WEIR_ROW_GHOST_WORD(0, 0, -1, 0, count)) == UINT64_MAX);
	assert_true(WEIR_ROW_GHOST_WORD(name, 0, 0, 0, 0) >> WEIR_ROW_GHOST_NAME_SHIFT == name);
	assert_int_equal(weir_row_ghost_span(WEIR_ROW_GHOST_WORD(name, start, 9, count, count)), 9);
	assert_int_equal(weir_row_ghost_before(WEIR_ROW_GHOST_WORD(name, start, 0, 0, count)), count);
	/* a bucket's number has 64 bits: what does not fit must not get into the name */
	assert_true(WEIR_ROW_GHOST_WORD(0, UINT64_MAX, 0, 0, 0) >> WEIR_ROW_GHOST_NAME_SHIFT == 0);
}

/* A stamp counts nothing, and says which of two words is older: in one bucket, over buckets, and when numbers
 * wrap.
 */
CLAIM(a_stamp_says_when_and_counts_nothing)
{
	static const uint64_t buckets[] = {100, WEIR_ROW_GHOST_START_MASK, WEIR_ROW_GHOST_START_MASK + 1ull};

	for (size_t i = 0; i < ARRAY_SIZE(buckets); i++) {
		const uint64_t bucket = buckets[i], now = bucket + 2;
		uint32_t before = WEIR_ROW_GHOST_PARTS_BEHIND(WEIR_ROW_GHOST_STAMPED(7, bucket - 1, 40, 2047), now);

		for (uint32_t stamp = 0; stamp <= WEIR_ROW_GHOST_STAMP_MAX; stamp++) {
			const uint64_t word = WEIR_ROW_GHOST_STAMPED(7, bucket, 40, stamp);
			const uint32_t behind = WEIR_ROW_GHOST_PARTS_BEHIND(word, now);

			assert_int_equal(behind, before - 1);
			before = behind;
			assert_int_equal(weir_row_ghost_span(word), 0);
			assert_int_equal(weir_row_ghost_before(word), 0);
			assert_int_equal(weir_row_ghost_in_window(word, bucket, CELLS), 40);
			assert_int_equal(weir_row_ghost_in_window(word, bucket + CELLS - 1, CELLS), 40);
			assert_int_equal(weir_row_ghost_in_window(word, bucket + CELLS, CELLS), 0);
			assert_true(weir_row_ghost_counts(word, bucket - 1));
			assert_false(weir_row_ghost_counts(word, bucket));
		}
	}
}

CLAIM(window_specs_without_a_number_share_the_last_one)
{
	const uint32_t tag = 0xabcdefff;

	assert_int_equal(WEIR_ROW_GHOST_NAME(tag, 14u), 0xabcde << 4 | 14);
	assert_int_equal(WEIR_ROW_GHOST_NAME(tag, 15u), 0xabcde << 4 | 15);
	assert_int_equal(WEIR_ROW_GHOST_NAME(tag, 200u), 0xabcde << 4 | 15);
}

/* A flow has two sets, in one page and with one overflow window, whichever of its sets of rows one begins with. */
CLAIM(a_flow_has_two_sets_in_one_page)
{
	const uint32_t page_sets[] = {WEIR_NARROW_PAGE_SETS, WEIR_MEDIUM_PAGE_SETS, WEIR_WIDE_PAGE_SETS};
	const uint32_t row_sets = 4 * WEIR_NARROW_PAGE_SETS, sets = 2 * row_sets;

	for (size_t i = 0; i < 3; i++)
		for (uint32_t row_set = 0; row_set < row_sets; row_set++)
			for (uint32_t part = 0; part < 512; part++) {
				const uint32_t tag = part << 4, other = WEIR_OTHER_SET(row_set, tag, page_sets[i]);
				const uint32_t one = weir_row_ghost_set_beside(row_set, tag, page_sets[i], sets);
				const uint32_t two = weir_row_ghost_set_beside(other, tag, page_sets[i], sets);

				assert_int_not_equal(one, two);
				assert_int_equal(one / WEIR_ROW_GHOST_PAGE_SETS, row_set / WEIR_NARROW_PAGE_SETS);
				assert_int_equal(two / WEIR_ROW_GHOST_PAGE_SETS, row_set / WEIR_NARROW_PAGE_SETS);
				assert_int_equal(WEIR_OVERFLOW_GROUP(one, tag), WEIR_OVERFLOW_GROUP(two, tag));
				assert_true(WEIR_OVERFLOW_GROUP(one, tag) < sets / WEIR_OVERFLOW_SETS);
				if (page_sets[i] == WEIR_NARROW_PAGE_SETS)
					assert_int_equal(one / 2, row_set);
			}
}

/* Flows of one set of rows have two sets beside it, and 32 others each: the fuller one is seldom as full. */
CLAIM(flows_of_one_set_spread_over_a_page)
{
	const uint32_t page_sets[] = {WEIR_NARROW_PAGE_SETS, WEIR_MEDIUM_PAGE_SETS, WEIR_WIDE_PAGE_SETS};
	const uint32_t row_sets = WEIR_NARROW_PAGE_SETS, sets = 2 * row_sets;

	for (size_t i = 0; i < 3; i++)
		for (uint32_t row_set = 0; row_set < row_sets; row_set += 2) {
			uint64_t beside = 0, others = 0;

			for (uint32_t part = 0; part < 512; part++) {
				const uint32_t tag = part << 4, other = WEIR_OTHER_SET(row_set, tag, page_sets[i]);

				beside |= 1ull << weir_row_ghost_set_beside(row_set, tag, page_sets[i], sets);
				others |= 1ull << weir_row_ghost_set_beside(other, tag, page_sets[i], sets);
			}
			assert_int_equal(__builtin_popcountll(beside), 2);
			assert_int_equal(__builtin_popcountll(others), 32);
		}
}

/* Overflow windows: each one is some flow's. */
CLAIM(each_overflow_window_belongs_to_a_group)
{
	uint32_t met[4 * WEIR_ROW_GHOST_PAGE_SETS / WEIR_OVERFLOW_SETS] = {};

	for (uint32_t set = 0; set < 4 * WEIR_ROW_GHOST_PAGE_SETS; set++)
		for (uint32_t part = 0; part < 64; part++)
			met[WEIR_OVERFLOW_GROUP(set, part << 9)]++;
	for (size_t i = 0; i < sizeof(met) / sizeof(met[0]); i++)
		assert_int_equal(met[i], met[0]);
}

/* Every page has a word of its own, behind the heads. */
CLAIM(every_page_has_a_word)
{
	for (uint32_t sets = WEIR_ROW_GHOST_PAGE_SETS; sets <= 1u << 20; sets *= 2) {
		const uint32_t last_page = sets / WEIR_ROW_GHOST_PAGE_SETS - 1;

		assert_int_equal(WEIR_ROW_GHOST_PAGES_SET(sets), sets + WEIR_ROW_GHOST_HEADS);
		assert_int_equal(WEIR_ROW_GHOST_PAGES_SET(sets) + last_page / WEIR_ROW_GHOST_WAYS + 1,
				 WEIR_ROW_GHOST_ALL_SETS(sets));
	}
}

/* ---- what counts, and until when ---- */

/* By adding up, one after the other: `units` are as new as `start` + `span`, and `before` as new as `start`. */
static uint64_t expected(uint64_t start, uint32_t span, uint64_t bucket)
{
	return (bucket < start + span + CELLS ? 40 : 0) + (bucket + 1 < start + CELLS ? 2 : 0);
}

/* Starts lie around the bucket at which numbers wrap, and far from it. */
static const uint64_t starts[] = {100, ROUND - CELLS, ROUND - 1, ROUND, 5 * ROUND - 3, (1ull << 32) - 5, 1ull << 40};

CLAIM(a_word_counts_until_its_newest_bucket_has_left_the_window)
{
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		for (uint32_t span = 0; span < CELLS; span++) {
			const uint64_t word = WEIR_ROW_GHOST_WORD(7, starts[i], span, 40, 2);

			for (uint64_t bucket = starts[i]; bucket < starts[i] + 3ull * CELLS; bucket++) {
				uint64_t units = weir_row_ghost_in_window(word, bucket, CELLS);

				assert_int_equal(units, expected(starts[i], span, bucket));
				/* room is made only for what counts nothing any more */
				if (units)
					assert_true(weir_row_ghost_counts(word, bucket - CELLS));
			}
			assert_false(weir_row_ghost_counts(word, starts[i] + span));
		}
}

CLAIM(a_free_word_counts_nothing)
{
	for (uint64_t bucket = 0; bucket < ROUND; bucket++) {
		assert_false(weir_row_ghost_counts(0, bucket));
		assert_int_equal(weir_row_ghost_in_window(0, bucket, CELLS), 0);
	}
}

/* One that nobody replaced: silent for a whole round but for its last 1024 buckets, in which it lies ahead and so is
 * not taken for expired; and it is back for one window when its number has come round.
 */
CLAIM(a_word_that_was_left_comes_back_after_a_round)
{
	const uint64_t start = 100, word = WEIR_ROW_GHOST_WORD(7, start, 0, 40, 0);

	for (uint64_t bucket = start + CELLS; bucket < start + ROUND; bucket++)
		assert_int_equal(weir_row_ghost_in_window(word, bucket, CELLS), 0);
	for (uint64_t bucket = start; bucket < start + WEIR_ROW_GHOST_AHEAD; bucket++)
		assert_false(weir_row_ghost_counts(word, bucket));
	assert_true(weir_row_ghost_counts(word, start + WEIR_ROW_GHOST_AHEAD));
	assert_true(weir_row_ghost_counts(word, start + ROUND - 1));
	assert_int_equal(weir_row_ghost_in_window(word, start + ROUND, CELLS), 40);
	assert_int_equal(weir_row_ghost_in_window(word, start + ROUND + CELLS, CELLS), 0);
}

RUN_CLAIMS(NULL, NULL)
