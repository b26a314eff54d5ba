// SPDX-License-Identifier: GPL-2.0-only
/* The flows that `weir suggest` follows, and which of them when there are too many. */
#include <arpa/inet.h>
#include <string.h>

#include "../lib/claims.h"
#include "peaks/peaks.h"

/* As good as the program's keyed hash. */
static uint64_t hash_of(uint64_t number)
{
	number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ull;
	number = (number ^ (number >> 27)) * 0x94d049bb133111ebull;
	return number ^ (number >> 31);
}

static struct weir_flow_key key_of(uint32_t client)
{
	struct weir_flow_key key = {.family = 4};

	client = htonl(client);
	memcpy(key.source, &client, sizeof(client));
	return key;
}

static uint32_t find(struct weir_flow_table *table, uint32_t group, uint32_t client)
{
	const struct weir_flow_key key = key_of(client);
	uint32_t place;

	assert_int_equal(weir_flow_table_find(table, group, &key, hash_of(client), &place), 0);
	return place;
}

static void count(struct weir_flow_table *table, uint32_t group, uint32_t client)
{
	const uint32_t place = find(table, group, client);

	if (place != WEIR_NOT_FOLLOWED)
		weir_flow_table_at(table, place)->peaks.total.packets++;
}

CLAIM(a_flow_keeps_its_place_and_groups_have_their_own)
{
	struct weir_flow_table *table = weir_flow_table_new(2, 40000);

	for (uint32_t round = 0; round < 3; round++)
		for (uint32_t client = 0; client < 20000; client++)
			count(table, client % 2, client);
	for (uint32_t client = 0; client < 20000; client++) {
		const struct weir_followed *flow = weir_flow_table_at(table, find(table, client % 2, client));
		const struct weir_flow_key key = key_of(client);

		assert_int_equal(flow->peaks.total.packets, 3);
		assert_memory_equal(&flow->key, &key, sizeof(key));
	}
	assert_int_equal(weir_flow_table_count(table), 20000);
	assert_int_equal(weir_flow_table_group_count(table, 1), 10000);
	assert_int_not_equal(find(table, 1, 0), find(table, 0, 0));
	assert_false(weir_flow_table_is_sampled(table));
	weir_flow_table_free(table);
}

/* All its packets: what is followed was followed from its first packet on. */
CLAIM(a_full_table_follows_a_fair_part_of_the_largest_group)
{
	struct weir_flow_table *table = weir_flow_table_new(3, 10000);
	uint32_t one_in, followed;

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t client = 0; client < 500; client++)
			count(table, 2, client);
		for (uint32_t client = 0; client < 100000; client++)
			count(table, 0, client);
	}
	one_in = weir_flow_table_one_in(table, 0);
	followed = weir_flow_table_group_count(table, 0);
	assert_true(weir_flow_table_is_sampled(table));
	assert_true(weir_flow_table_count(table) <= 10000);
	assert_int_equal(weir_flow_table_one_in(table, 2), 1);
	assert_int_equal(weir_flow_table_group_count(table, 2), 500);
	assert_true(one_in >= 16);
	assert_in_range((uint64_t)followed * one_in, 90000, 110000);
	for (uint32_t place = 0; place < weir_flow_table_count(table); place++)
		assert_int_equal(weir_flow_table_at(table, place)->peaks.total.packets, 2);
	weir_flow_table_free(table);
}

CLAIM(places_come_by_group)
{
	struct weir_flow_table *table = weir_flow_table_new(3, 100);
	uint32_t *places;

	for (uint32_t client = 0; client < 30; client++)
		find(table, 2 - client % 3, client);
	places = weir_flow_table_by_group(table);
	for (uint32_t i = 0; i < 30; i++)
		assert_int_equal(weir_flow_table_at(table, places[i])->group, i / 10);
	free(places);
	weir_flow_table_free(table);
}

/* More groups than could each keep thirty flows, as under a port scan of many sources. */
CLAIM(more_groups_than_places_are_thinned_out_as_well)
{
	struct weir_flow_table *table = weir_flow_table_new(5000, 1000);

	for (uint32_t client = 0; client < 20000; client++)
		find(table, client % 5000, client);
	assert_true(weir_flow_table_count(table) <= 1000);
	weir_flow_table_free(table);
}

RUN_CLAIMS(NULL, NULL)
