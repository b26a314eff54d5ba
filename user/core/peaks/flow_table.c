// SPDX-License-Identifier: GPL-2.0-only
#include "peaks/flow_table.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

#define CHUNK_FLOWS 16384u /* a chunk is allocated when it is needed, and never moves */

struct weir_flow_table {
	struct weir_followed **chunks;
	/* Indexes of flows by hash, open addressing; WEIR_NOT_FOLLOWED: free. */
	uint32_t *index;
	uint32_t index_mask;
	uint32_t count, count_max;
	uint32_t groups;
	uint32_t *group_count;
	bool is_sampled;
	uint8_t *group_shift; /* flows whose hashes begin with at least this many zero bits are tracked */
};

struct weir_flow_table *weir_flow_table_new(uint32_t groups, uint32_t flows_max)
{
	_cleanup_(weir_flow_table_freep) struct weir_flow_table *table = calloc(1, sizeof(*table));
	uint32_t slots = 1;

	while (slots < 2 * flows_max)
		slots *= 2;
	if (!table)
		return NULL;
	table->count_max = flows_max;
	table->groups = groups;
	table->index_mask = slots - 1;
	table->chunks = calloc(flows_max / CHUNK_FLOWS + 1, sizeof(*table->chunks));
	table->index = malloc(slots * sizeof(*table->index));
	table->group_count = calloc(groups, sizeof(*table->group_count));
	table->group_shift = calloc(groups, sizeof(*table->group_shift));
	if (!table->chunks || !table->index || !table->group_count || !table->group_shift)
		return NULL;
	memset(table->index, 0xff, slots * sizeof(*table->index));
	return TAKE_PTR(table);
}

void weir_flow_table_free(struct weir_flow_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; table->chunks && i <= table->count_max / CHUNK_FLOWS; i++)
		free(table->chunks[i]);
	free(table->chunks);
	free(table->index);
	free(table->group_count);
	free(table->group_shift);
	free(table);
}

uint32_t weir_flow_table_count(const struct weir_flow_table *table)
{
	return table->count;
}

struct weir_followed *weir_flow_table_at(const struct weir_flow_table *table, uint32_t place)
{
	return &table->chunks[place / CHUNK_FLOWS][place % CHUNK_FLOWS];
}

bool weir_flow_table_is_sampled(const struct weir_flow_table *table)
{
	return table->is_sampled;
}

uint32_t weir_flow_table_one_in(const struct weir_flow_table *table, uint32_t group)
{
	return 1u << table->group_shift[group];
}

uint32_t weir_flow_table_group_count(const struct weir_flow_table *table, uint32_t group)
{
	return table->group_count[group];
}

/* ---- sampling ---- */

static bool is_followed(const struct weir_flow_table *table, uint32_t group, uint64_t hash)
{
	const uint8_t shift = table->group_shift[group];

	return !shift || hash >> (64 - shift) == 0;
}

/* Halve groups of more than `most` flows until they are within it. Returns how many flows would be left. */
static uint32_t count_left(const struct weir_flow_table *table, uint32_t most)
{
	uint32_t left = 0;

	for (uint32_t group = 0; group < table->groups; group++) {
		uint32_t count = table->group_count[group];

		while (count > most)
			count /= 2;
		left += count;
	}
	return left;
}

static void thin_groups(struct weir_flow_table *table)
{
	uint32_t most = table->count_max;

	do
		most /= 2;
	while (count_left(table, most) > table->count_max / 2);
	for (uint32_t group = 0; group < table->groups; group++)
		for (uint32_t count = table->group_count[group]; count > most; count /= 2)
			table->group_shift[group]++;
}

/* ---- places ---- */

static uint32_t *slot_of(const struct weir_flow_table *table, uint32_t group, const struct weir_flow_key *key,
			 uint64_t hash)
{
	uint32_t slot = (hash ^ (group * 0x9e3779b97f4a7c15ull) >> 32) & table->index_mask;

	for (;; slot = (slot + 1) & table->index_mask) {
		const struct weir_followed *flow;

		if (table->index[slot] == WEIR_NOT_FOLLOWED)
			return &table->index[slot];
		flow = weir_flow_table_at(table, table->index[slot]);
		if (flow->hash == hash && flow->group == group && !memcmp(&flow->key, key, sizeof(*key)))
			return &table->index[slot];
	}
}

/* Sample more sparsely, compact the flows that stay, and rebuild the index. */
static void make_room(struct weir_flow_table *table)
{
	const uint32_t before = table->count;

	thin_groups(table);
	table->is_sampled = true;
	memset(table->index, 0xff, (table->index_mask + (size_t)1) * sizeof(*table->index));
	memset(table->group_count, 0, table->groups * sizeof(*table->group_count));
	table->count = 0;
	for (uint32_t place = 0; place < before; place++) {
		const struct weir_followed *flow = weir_flow_table_at(table, place);

		if (!is_followed(table, flow->group, flow->hash))
			continue;
		*slot_of(table, flow->group, &flow->key, flow->hash) = table->count;
		table->group_count[flow->group]++;
		*weir_flow_table_at(table, table->count++) = *flow;
	}
}

static int add(struct weir_flow_table *table, uint32_t *slot, uint32_t group, const struct weir_flow_key *key,
	       uint64_t hash)
{
	struct weir_followed **chunk = &table->chunks[table->count / CHUNK_FLOWS];

	if (!*chunk)
		*chunk = malloc(CHUNK_FLOWS * sizeof(**chunk));
	if (!*chunk)
		return -ENOMEM;
	*slot = table->count;
	*weir_flow_table_at(table, table->count++) = (struct weir_followed){.key = *key, .hash = hash, .group = group};
	table->group_count[group]++;
	return 0;
}

int weir_flow_table_find(struct weir_flow_table *table, uint32_t group, const struct weir_flow_key *key, uint64_t hash,
			 uint32_t *ret_place)
{
	uint32_t *slot;
	int err = 0;

	*ret_place = WEIR_NOT_FOLLOWED;
	if (!is_followed(table, group, hash))
		return 0;
	slot = slot_of(table, group, key, hash);
	if (*slot == WEIR_NOT_FOLLOWED && table->count == table->count_max) {
		make_room(table);
		if (!is_followed(table, group, hash))
			return 0;
		slot = slot_of(table, group, key, hash);
	}
	if (*slot == WEIR_NOT_FOLLOWED)
		err = add(table, slot, group, key, hash);
	*ret_place = *slot;
	return err;
}

uint32_t *weir_flow_table_by_group(const struct weir_flow_table *table)
{
	_cleanup_(weir_freep) uint32_t *next = calloc(table->groups, sizeof(*next));
	uint32_t *places = malloc((table->count + (size_t)1) * sizeof(*places)), begin = 0;

	if (!next || !places) {
		free(places);
		return NULL;
	}
	for (uint32_t group = 0; group < table->groups; begin += table->group_count[group++])
		next[group] = begin;
	for (uint32_t place = 0; place < table->count; place++)
		places[next[weir_flow_table_at(table, place)->group]++] = place;
	return places;
}
