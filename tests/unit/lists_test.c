// SPDX-License-Identifier: GPL-2.0-only
/*
 * The compiler of allow and deny lists: what it takes, leaves out and refuses. Whether the answers are right is asked
 * of the program itself (tests/bpf/lists_test).
 */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "compile/build_steps.h"
#include "weir_lists.h"

struct compiled {
	struct weir_config config;
	struct weir_image_lists lists;
};

static void compile(struct compiled *compiled, struct weir_listed *listed, size_t count)
{
	struct weir_ruleset ruleset = {.listed = listed, .listed_count = count};
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	memset(compiled, 0, sizeof(*compiled));
	assert_int_equal(weir_compile_lists(&ruleset, &compiled->config, &compiled->lists, &diag), 0);
	assert_int_equal(diag.count, 0);
}

static uint32_t group_count(const struct compiled *compiled)
{
	uint32_t count = 0;

	for (uint32_t b = 0; b < compiled->lists.bucket_count; b++)
		count += compiled->lists.buckets[b] >> WEIR_LIST_BUCKET_COUNT_SHIFT & WEIR_LIST_BUCKET_COUNT_MASK;
	return count;
}

CLAIM(nothing_listed_takes_nothing)
{
	struct compiled compiled;

	compile(&compiled, NULL, 0);
	assert_int_equal(compiled.config.has_lists, 0);
	assert_int_equal(weir_lists_memory(&compiled.lists), 0);
	weir_lists_free(&compiled.lists);
}

CLAIM(a_level_without_prefixes_is_not_in_use)
{
	struct weir_listed listed[] = {
		{.prefix = {.family = 4, .bits = 24, .address = {192, 0, 2}}, .denies = true},
		{.prefix = {.family = 6, .bits = 64, .address = {0x20, 1, 0xd, 0xb8}}},
	};
	struct compiled compiled;

	compile(&compiled, listed, ARRAY_SIZE(listed));
	assert_int_equal(compiled.config.has_lists, 1);
	assert_int_equal(compiled.config.list_levels, 1 << WEIR_LIST_IPV4_24 | 1 << WEIR_LIST_IPV6_64);
	weir_lists_free(&compiled.lists);
}

/* Prefixes of a root's length and shorter need no groups; nor do hosts of a prefix that says the same. */
CLAIM(prefixes_that_add_nothing_make_no_groups)
{
	struct weir_listed listed[] = {
		{.prefix = {.family = 4, .bits = 8, .address = {10}}, .denies = true},
		{.prefix = {.family = 4, .bits = 16, .address = {10, 1}}, .denies = true},
		{.prefix = {.family = 4, .bits = 32, .address = {10, 1, 2, 3}}, .denies = true},
		{.prefix = {.family = 4, .bits = 32, .address = {10, 1, 2, 4}}, .denies = true},
	};
	struct compiled compiled;

	compile(&compiled, listed, ARRAY_SIZE(listed));
	assert_int_equal(compiled.config.list_levels, 0);
	assert_int_equal(compiled.lists.word_count, 0);
	weir_lists_free(&compiled.lists);
}

/* Adjacent hosts of one answer are one step: two boundaries, however many they are. */
CLAIM(neighbours_of_one_answer_share_boundaries)
{
	struct weir_listed listed[100] = {};
	struct compiled compiled;

	for (int i = 0; i < 100; i++)
		listed[i].prefix = (struct weir_prefix){.family = 4, .bits = 32, .address = {192, 0, 2, 100 + i}};
	compile(&compiled, listed, ARRAY_SIZE(listed));
	assert_int_equal(group_count(&compiled), 1);
	assert_int_equal(compiled.lists.word_count, WEIR_LIST_GROUP_WORDS + 2);
	weir_lists_free(&compiled.lists);
}

/* Hosts that have nothing in common: a group, two boundaries, and their part of a bucket; and the roots. */
CLAIM(a_prefix_takes_at_most_48_bytes)
{
	const uint32_t count = 100000;
	_cleanup_(weir_freep) struct weir_listed *listed = calloc(count, sizeof(*listed));
	struct compiled compiled;

	for (uint32_t i = 0; i < count; i++)
		listed[i].prefix = (struct weir_prefix){
			.family = 4, .bits = 32, .address = {1 + i / 65536, i / 256 % 256, i % 256, 7}};
	compile(&compiled, listed, count);
	assert_true(weir_lists_memory(&compiled.lists) <= count * 48 + WEIR_LIST_ROOT_WORDS * 8);
	assert_int_equal(group_count(&compiled), count);
	weir_lists_free(&compiled.lists);
}

CLAIM(more_prefixes_than_weir_takes_are_refused)
{
	struct weir_ruleset ruleset = {.listed_count = WEIR_LISTED_MAX + 1};
	_cleanup_(weir_lists_free) struct weir_image_lists lists = {};
	struct weir_config config = {};
	_cleanup_(weir_diag_free) struct weir_diag diag = {};

	assert_int_equal(weir_compile_lists(&ruleset, &config, &lists, &diag), -EINVAL);
	assert_string_equal(diag.entries[0].message, "4000001 listed prefixes are too many: at most 4000000");
}

RUN_CLAIMS(NULL, NULL)
