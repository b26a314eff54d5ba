// SPDX-License-Identifier: GPL-2.0-only
/*
 * The level of fair shares (include/weir_fair.h) against water filling by hand: sort what children offered, and divide
 * what is left among those who want more. Packets are counted one by one at their ordinals, as the program does.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/claims.h"
#include "weir_fair.h"

static uint64_t chance(void)
{
	static uint64_t state = 7;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return state >> 33;
}

static int compare_offers(const void *left, const void *right)
{
	const double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

/* The level by hand; 0: everything fits. offers[i] is what a child offered, divided by its weight. */
static double fill_by_hand(const uint64_t *offers, const uint32_t *weights, size_t count, uint64_t aim)
{
	struct {
		double offer, weight; /* a double first, for compare_offers */
	} *children = calloc(count, sizeof(*children));
	double left = aim, weight = 0, level = 0;

	assert_non_null(children);
	for (size_t i = 0; i < count; i++) {
		children[i].weight = weights ? weights[i] : 1;
		children[i].offer = offers[i] / children[i].weight;
		weight += children[i].weight;
	}
	qsort(children, count, sizeof(*children), compare_offers);
	for (size_t i = 0; i < count && !level; i++) {
		if (children[i].offer * weight > left)
			level = left / weight;
		left -= children[i].offer * children[i].weight;
		weight -= children[i].weight;
	}
	free(children);
	return level;
}

/* Count all packets of these children, in chunks of `batch` units, from ordinal `from` on. */
static void count_offers(struct weir_fair_counts *counts, const uint64_t *offers, const uint32_t *weights, size_t count,
			 uint64_t batch, uint32_t shift, uint64_t from)
{
	for (size_t i = 0; i < count; i++) {
		const uint64_t before = from < offers[i] ? from - from % batch : 0;
		const uint32_t weight = weights ? weights[i] : 1;

		if (before && weir_fair_bucket(weir_fair_ordinal(before, weight), shift) < WEIR_FAIR_BUCKETS) {
			counts->joined[weir_fair_bucket(weir_fair_ordinal(before, weight), shift)] += weight;
			counts->joiners += weight;
		}
		counts->children++;
		for (uint64_t sent = before; sent + batch <= offers[i]; sent += batch) {
			const uint64_t ordinal = weir_fair_ordinal(sent + batch - batch / 2, weight);
			const uint32_t bucket = weir_fair_bucket(ordinal, shift);

			if (bucket < WEIR_FAIR_BUCKETS)
				counts->units[bucket] += batch;
		}
	}
}

static uint32_t shift_of(uint64_t limit)
{
	uint32_t shift = 0;

	while (limit >> (shift + WEIR_FAIR_ORDINAL_BITS))
		shift++;
	return shift;
}

static void assert_level(const uint64_t *offers, const uint32_t *weights, size_t count, uint64_t batch, uint64_t limit,
			 uint64_t from)
{
	struct weir_fair_counts *counts = calloc(1, sizeof(*counts));
	struct weir_fair_search search;
	const uint32_t shift = shift_of(limit);
	double by_hand = fill_by_hand(offers, weights, count, limit), level;

	assert_non_null(counts);
	count_offers(counts, offers, weights, count, batch, shift, from);
	level = (double)weir_fair_find_level(counts, limit, shift, &search, weir_fair_search_octave) /
		(1 << WEIR_FAIR_LEVEL_BITS);
	if (!by_hand)
		assert_true(level == 0);
	/* A bucket is up to an eighth wide, and demand within it may be uneven; a packet is counted in its middle. */
	else if (fabs(level - by_hand) > by_hand * 0.07 + batch / 2.0 + 0.51)
		fail_msg("the level is %.2f, by hand %.2f", level, by_hand);
	free(counts);
}

CLAIM(buckets_cover_all_ordinals_in_order)
{
	for (uint32_t shift = 0; shift < 5; shift += 4) {
		uint32_t before = 0;

		for (uint64_t ordinal = 1; ordinal < 1ull << (WEIR_FAIR_ORDINAL_BITS + shift); ordinal++) {
			const uint32_t bucket = weir_fair_bucket(ordinal, shift);

			if (bucket < before || bucket > before + 1 || ordinal > weir_fair_top(bucket, shift) ||
			    (bucket && ordinal <= weir_fair_top(bucket - 1, shift)))
				fail_msg("ordinal %llu is in bucket %u", (unsigned long long)ordinal, bucket);
			before = bucket;
		}
		assert_int_equal(before, WEIR_FAIR_BUCKETS - 1);
		assert_true(weir_fair_bucket(1ull << (WEIR_FAIR_ORDINAL_BITS + shift), shift) >= WEIR_FAIR_BUCKETS);
	}
}

CLAIM(five_heavy_children_of_fifty_share_what_the_others_leave)
{
	uint64_t offers[50];

	for (size_t i = 0; i < 50; i++)
		offers[i] = i < 45 ? 10 : 1000;
	assert_true(fill_by_hand(offers, NULL, 50, 1000) == 110);
	assert_level(offers, NULL, 50, 1, 1000, 0);
	assert_level(offers, NULL, 45, 1, 1000, 0); /* fits */
}

CLAIM(a_level_below_one_packet_is_a_fraction)
{
	static uint64_t offers[100000];

	for (size_t i = 0; i < 100000; i++)
		offers[i] = 1 + i % 2;
	assert_level(offers, NULL, 100000, 1, 23000, 0);
}

CLAIM(random_demands_have_the_level_of_water_filling)
{
	uint64_t offers[300];
	uint32_t weights[300];

	for (unsigned int run = 0; run < 300; run++) {
		const size_t count = 1 + chance() % 300;
		const uint64_t limit = 10 + chance() % 100000;

		for (size_t i = 0; i < count; i++) {
			offers[i] = chance() % (1ull << chance() % 17);
			weights[i] = 1 + chance() % 50;
		}
		assert_level(offers, NULL, count, 1, limit, 0);
		assert_level(offers, weights, count, 1, limit, 0);
	}
}

/* Zipf's law, in frames of 1,514 bytes, at a gigabit and more. */
CLAIM(bytes_have_the_level_of_water_filling)
{
	uint64_t offers[1000];

	for (uint64_t limit = 10000000; limit <= 1250000000; limit *= 5) {
		for (size_t i = 0; i < 1000; i++)
			offers[i] = limit / (i + 1) / 1514 * 1514;
		assert_level(offers, NULL, 1000, 1514, limit, 0);
	}
}

/* Contention was found in the middle of the interval, when each child had sent so much. */
CLAIM(children_that_join_late_count_with_what_they_had_offered)
{
	uint64_t offers[50];

	for (size_t i = 0; i < 50; i++)
		offers[i] = i < 45 ? 10 : 1000;
	for (uint64_t from = 1; from <= 64; from *= 2)
		assert_level(offers, NULL, 50, 1, 1000, from);
}

/* 20,000 sources with a packet each, beside 50 children that have been there: as 1,250 children, and no more. */
CLAIM(a_spoofed_flood_counts_for_a_sixteenth_of_its_sources)
{
	uint64_t offers[50];
	struct weir_fair_counts counts = {};
	struct weir_fair_search search;

	for (size_t i = 0; i < 50; i++)
		offers[i] = 1000;
	count_offers(&counts, offers, NULL, 50, 1, 0, 0);
	counts.children += 20000;
	counts.newcomers = counts.newcomer_units = 20000;
	assert_int_equal(
		weir_fair_find_level(&counts, 13000, 0, &search, weir_fair_search_octave) >> WEIR_FAIR_LEVEL_BITS, 10);
	/* A few count one by one. */
	assert_int_equal(weir_fair_groups(0), 0);
	assert_int_equal(weir_fair_groups(5), 5);
	assert_int_equal(weir_fair_groups(100), 8);
	assert_int_equal(weir_fair_groups(129), 9);
	assert_int_equal(weir_fair_groups(10000), 625);
}

CLAIM(a_cost_is_what_divides_an_interval_into_the_level)
{
	const uint64_t second = 1000000000;

	for (uint64_t units = 1; units < 1ull << 34; units *= 3) {
		const uint64_t cost = weir_fair_cost(units << WEIR_FAIR_LEVEL_BITS, second);

		assert_true(fabs((double)cost * units / (1 << WEIR_FAIR_COST_BITS) - second) < second * 0.07);
	}
	assert_int_equal(weir_fair_cost(1ull << (WEIR_FAIR_LEVEL_BITS - 2), second) >> WEIR_FAIR_COST_BITS, 4 * second);
	assert_int_equal(weir_fair_cost(1, 86400 * second), WEIR_FAIR_COST_MAX);
}

RUN_CLAIMS(NULL, NULL)
