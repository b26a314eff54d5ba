// SPDX-License-Identifier: GPL-2.0-only
#include "peaks/peaks.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

/* ---- windows ---- */

/* Buckets between the newest one and the current one are empty. */
static void advance(struct weir_window_sums *sums, uint64_t bucket)
{
	uint64_t steps = bucket > sums->bucket ? bucket - sums->bucket : 0;

	sums->bucket += steps;
	if (steps > WEIR_RING_CELLS)
		steps = WEIR_RING_CELLS;
	for (; steps > 0; steps--) {
		sums->newest = (sums->newest + 1) % WEIR_RING_CELLS;
		sums->cell[sums->newest] = (struct weir_tally){};
	}
}

/* ceil(count * left / whole) */
static uint64_t weigh(uint64_t count, uint64_t left_ns, uint64_t whole_ns)
{
	return ((unsigned __int128)count * left_ns + whole_ns - 1) / whole_ns;
}

/* How much of its length the window's oldest bucket still counts for. */
static uint64_t left_of_oldest(const struct weir_window_sums *sums, const struct weir_peak_window *window,
			       uint64_t time_ns)
{
	if (window->kind == WEIR_WINDOW_LEAP)
		return 0;
	if (window->kind == WEIR_WINDOW_STRICT || time_ns / window->bucket_ns < sums->bucket)
		return window->bucket_ns;
	return window->bucket_ns - time_ns % window->bucket_ns;
}

struct weir_tally weir_window_look(struct weir_window_sums *sums, const struct weir_peak_window *window,
				   uint64_t time_ns)
{
	struct weir_tally sum = {};
	const struct weir_tally *cell;
	uint64_t left_ns;

	advance(sums, time_ns / window->bucket_ns);
	for (uint32_t back = 0; back < window->samples; back++) {
		cell = &sums->cell[(sums->newest + WEIR_RING_CELLS - back) % WEIR_RING_CELLS];
		sum.packets += cell->packets;
		sum.bytes += cell->bytes;
	}
	left_ns = left_of_oldest(sums, window, time_ns);
	cell = &sums->cell[(sums->newest + WEIR_RING_CELLS - window->samples) % WEIR_RING_CELLS];
	sum.packets += weigh(cell->packets, left_ns, window->bucket_ns);
	sum.bytes += weigh(cell->bytes, left_ns, window->bucket_ns);
	return sum;
}

const struct weir_tally *weir_window_count(struct weir_window_sums *sums, const struct weir_peak_window *window,
					   uint64_t time_ns, const struct weir_tally *batch)
{
	const uint32_t remembered = window->samples + (window->kind != WEIR_WINDOW_LEAP);
	const uint64_t back = sums->bucket - time_ns / window->bucket_ns;
	struct weir_tally *cell =
		&sums->cell[(sums->newest + WEIR_RING_CELLS - (back < remembered ? back : 0)) % WEIR_RING_CELLS];

	cell->packets += batch->packets;
	cell->bytes += batch->bytes;
	return cell;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void weir_peaks_add(struct weir_flow_peaks *peaks, const struct weir_peak_window *window, uint64_t time_ns,
		    const struct weir_tally *batch)
{
	struct weir_window_sums *sums = &peaks->sums;
	const struct weir_tally before = weir_window_look(sums, window, time_ns);
	const struct weir_tally *bucket = weir_window_count(sums, window, time_ns, batch);

	peaks->peak.packets = larger(peaks->peak.packets, before.packets + batch->packets);
	peaks->peak.bytes = larger(peaks->peak.bytes, before.bytes + batch->bytes);
	peaks->bucket_packets = larger(peaks->bucket_packets, bucket->packets);
	peaks->total.packets += batch->packets;
	peaks->total.bytes += batch->bytes;
}

/* ---- percentiles ---- */

/* With p99 and 1 %, as it was, a flood among 60 clients was itself the 99th percentile. Chosen, not derived. */
#define OUTLIER_FACTOR 10 /* times the 90th percentile */
#define OUTLIER_SHARE 20  /* at most one in this many, but always one */

uint64_t weir_nearest_rank(const uint64_t *sorted, size_t count, uint32_t percent_micro)
{
	const unsigned __int128 hundred = 100 * (unsigned __int128)WEIR_PERCENT_MICRO;
	const size_t rank = (count * (unsigned __int128)percent_micro + hundred - 1) / hundred;

	return sorted[rank ? rank - 1 : 0];
}

bool weir_find_outliers(const uint64_t *sorted, size_t count, uint64_t *ret_min)
{
	/* With fewer than ten values, the 90th percentile is the largest. A flood would then be compared with itself,
	 * so the second largest stands for it; with one or two values, none says what is usual.
	 */
	const uint64_t p90 = count >= 3 && count < 10 ? sorted[count - 2]
						      : weir_nearest_rank(sorted, count, 90 * WEIR_PERCENT_MICRO);
	size_t outliers = 0;

	while (outliers < count && sorted[count - 1 - outliers] > OUTLIER_FACTOR * p90)
		outliers++;
	*ret_min = UINT64_MAX;
	if (outliers > 1 && outliers * OUTLIER_SHARE > count)
		return true;
	if (outliers)
		*ret_min = sorted[count - outliers];
	return false;
}

void weir_distribute(const uint64_t *sorted, size_t count, uint32_t percent_micro, struct weir_distribution *ret)
{
	*ret = (struct weir_distribution){
		.count = count,
		.p50 = weir_nearest_rank(sorted, count, 50 * WEIR_PERCENT_MICRO),
		.p90 = weir_nearest_rank(sorted, count, 90 * WEIR_PERCENT_MICRO),
		.p99 = weir_nearest_rank(sorted, count, 99 * WEIR_PERCENT_MICRO),
		.p99_9 = weir_nearest_rank(sorted, count, 99 * WEIR_PERCENT_MICRO + 9 * WEIR_PERCENT_MICRO / 10),
		.max = sorted[count - 1],
		.at_percentile = weir_nearest_rank(sorted, count, percent_micro),
	};
}

uint64_t weir_round_up_two_digits(uint64_t number)
{
	uint64_t unit = 1;

	while (number / unit >= 100)
		unit *= 10;
	/* Two digits, rounded up: 99.5 becomes 100, which has two significant digits as well. */
	return (number / unit + (number % unit != 0)) * unit;
}

uint64_t weir_threshold_with_margin(uint64_t number, uint64_t margin_micro)
{
	const unsigned __int128 micro = (unsigned __int128)number * margin_micro;

	return weir_round_up_two_digits((micro + 999999) / 1000000);
}

/* ---- the flows that are tracked ---- */

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
