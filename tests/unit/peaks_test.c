// SPDX-License-Identifier: GPL-2.0-only
/* The mathematics of `weir suggest`, against oracles that are slow and obvious. */
#include "../lib/claims.h"
#include "../lib/random.h"
#include "base/util.h"
#include "peaks/peaks.h"

#define MS 1000000ull

/* ---- peaks ---- */

#define PACKETS 400

struct packet {
	uint64_t time_ns;
	struct weir_tally batch;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* By docs/semantics.md, also for a clock that goes back: from a list of all packets and their buckets. */
static struct weir_tally slow_peak(const struct weir_peak_window *window, const struct packet *packets, size_t count)
{
	const uint64_t length = window->bucket_ns, n = window->samples;
	struct weir_tally peak = {};
	uint64_t bucket[PACKETS], newest = 0;

	for (size_t last = 0; last < count; last++) {
		const uint64_t own = packets[last].time_ns / length;
		const uint64_t looks_back = window->kind == WEIR_WINDOW_LEAP ? n - 1 : n;
		uint64_t whole[2] = {}, oldest[2] = {}, part = window->kind == WEIR_WINDOW_LEAP ? 0 : length;

		newest = larger(newest, own);
		bucket[last] = newest - own <= looks_back ? own : newest;
		if (window->kind == WEIR_WINDOW_SMOOTH && own == newest)
			part = length - packets[last].time_ns % length;
		for (size_t i = 0; i <= last; i++) {
			uint64_t *sum = newest - bucket[i] < n ? whole : oldest;

			if (newest - bucket[i] > n)
				continue;
			sum[0] += packets[i].batch.packets;
			sum[1] += packets[i].batch.bytes;
		}
		/* A packet in the oldest bucket counts whole when it is evaluated. */
		if (newest - bucket[last] == n) {
			oldest[0] -= packets[last].batch.packets;
			oldest[1] -= packets[last].batch.bytes;
			whole[0] += packets[last].batch.packets;
			whole[1] += packets[last].batch.bytes;
		}
		peak.packets = larger(peak.packets, whole[0] + (oldest[0] * part + length - 1) / length);
		peak.bytes = larger(peak.bytes, whole[1] + (oldest[1] * part + length - 1) / length);
	}
	return peak;
}

static void random_packets_of_a_flow(struct random *random, uint64_t bucket_ns, struct packet packets[PACKETS])
{
	uint64_t time_ns = random_below(random, 3) ? 1700000000000 * MS : 0;
	const bool goes_back = random_percent(random, 50);

	for (size_t i = 0; i < PACKETS; i++) {
		/* Mostly within a bucket, at times beyond all of them. */
		time_ns += random_percent(random, 5) ? random_below(random, 30 * bucket_ns)
						     : random_below(random, bucket_ns / 2);
		if (goes_back && random_percent(random, 20) && time_ns > 12 * bucket_ns)
			time_ns -= random_below(random, 12 * bucket_ns);
		packets[i] = (struct packet){time_ns, {1, 60 + random_below(random, 1454)}};
	}
}

CLAIM(a_peak_is_the_fullest_window_of_every_kind)
{
	static const uint64_t buckets_ns[] = {MS, 100 * MS, 7 * MS, 60000 * MS};
	struct random random = {.state = 39};
	static struct packet packets[PACKETS];

	for (int round = 0; round < 120; round++) {
		const struct weir_peak_window window = {
			.bucket_ns = buckets_ns[round % 4],
			.samples = 1 + random_below(&random, WEIR_SAMPLES_MAX),
			.kind = round / 4 % 3,
		};
		struct weir_flow_peaks peaks = {};
		struct weir_tally slow;

		random_packets_of_a_flow(&random, window.bucket_ns, packets);
		for (size_t i = 0; i < PACKETS; i++)
			weir_peaks_add(&peaks, &window, packets[i].time_ns, &packets[i].batch);
		slow = slow_peak(&window, packets, PACKETS);
		assert_int_equal(peaks.peak.packets, slow.packets);
		assert_int_equal(peaks.peak.bytes, slow.bytes);
		assert_int_equal(peaks.total.packets, PACKETS);
	}
}

CLAIM(a_peak_counts_on_a_grid_of_buckets)
{
	const struct weir_peak_window leap = {100 * MS, 10, WEIR_WINDOW_LEAP};
	const struct weir_tally one = {1, 100};
	struct weir_flow_peaks peaks = {};

	/* 5 in the last ns of a bucket, 5 in the first ns after ten buckets: no window holds both. */
	for (int i = 0; i < 5; i++)
		weir_peaks_add(&peaks, &leap, 5000 * MS - 1, &one);
	for (int i = 0; i < 5; i++)
		weir_peaks_add(&peaks, &leap, 5900 * MS, &one);
	assert_int_equal(peaks.peak.packets, 5);
	/* And one that is one ns older than that bucket is in the window of the first. */
	peaks = (struct weir_flow_peaks){};
	for (int i = 0; i < 5; i++)
		weir_peaks_add(&peaks, &leap, 5000 * MS - 1, &one);
	for (int i = 0; i < 5; i++)
		weir_peaks_add(&peaks, &leap, 5900 * MS - 1, &one);
	assert_int_equal(peaks.peak.packets, 10);
	assert_int_equal(peaks.peak.bytes, 1000);
	assert_int_equal(peaks.bucket_packets, 5);
}

CLAIM(a_packet_from_a_bucket_that_is_forgotten_counts_in_the_newest)
{
	const struct weir_peak_window leap = {100 * MS, 10, WEIR_WINDOW_LEAP};
	const struct weir_tally one = {1, 100};
	struct weir_flow_peaks peaks = {};

	weir_peaks_add(&peaks, &leap, 9000 * MS, &one);
	weir_peaks_add(&peaks, &leap, 8000 * MS, &one); /* ten buckets before: forgotten */
	assert_int_equal(peaks.bucket_packets, 2);
	peaks = (struct weir_flow_peaks){};
	weir_peaks_add(&peaks, &leap, 9000 * MS, &one);
	weir_peaks_add(&peaks, &leap, 8100 * MS, &one);
	assert_int_equal(peaks.bucket_packets, 1);
	assert_int_equal(peaks.peak.packets, 2);
	/* It leaves before the newer one. */
	weir_peaks_add(&peaks, &leap, 9100 * MS, &one);
	assert_int_equal(peaks.peak.packets, 2);
}

/* ---- percentiles ---- */

/* By counting: the smallest value that so many are not above. */
static uint64_t slow_rank(const uint64_t *sorted, size_t count, uint32_t percent_micro)
{
	for (size_t i = 0; i < count; i++) {
		size_t not_above = 0;

		for (size_t j = 0; j < count; j++)
			not_above += sorted[j] <= sorted[i];
		if ((unsigned __int128)not_above * 100 * WEIR_PERCENT_MICRO >= (unsigned __int128)count * percent_micro)
			return sorted[i];
	}
	return sorted[count - 1];
}

static int compare(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

CLAIM(a_percentile_is_the_nearest_rank)
{
	struct random random = {.state = 3900};
	uint64_t values[250];

	for (size_t count = 1; count <= 250; count++) {
		for (size_t i = 0; i < count; i++)
			values[i] = random_below(&random, count);
		qsort(values, count, sizeof(*values), compare);
		for (uint32_t tenth = 1; tenth <= 1000; tenth += tenth < 990 ? 37 : 1)
			assert_int_equal(weir_nearest_rank(values, count, tenth * WEIR_PERCENT_MICRO / 10),
					 slow_rank(values, count, tenth * WEIR_PERCENT_MICRO / 10));
	}
}

/* count values of 5, and behind them some that stand out: how many are outliers; -1: too many for that. */
static int outliers_of(size_t count, size_t odd, uint64_t odd_value)
{
	_cleanup_(weir_freep) uint64_t *values = malloc((count + odd) * sizeof(*values));
	uint64_t least;
	int outliers = 0;
	bool are_many;

	for (size_t i = 0; i < count + odd; i++)
		values[i] = i < count ? 5 : odd_value;
	are_many = weir_find_outliers(values, count + odd, &least);
	for (size_t i = 0; i < count + odd; i++)
		outliers += values[i] >= least;
	assert_false(are_many && outliers);
	return are_many ? -1 : outliers;
}

CLAIM(what_is_above_ten_times_p90_and_at_most_five_percent_is_left_out)
{
	assert_int_equal(outliers_of(100, 1, 51), 1);
	assert_int_equal(outliers_of(100, 1, 50), 0); /* just ten times */
	assert_int_equal(outliers_of(95, 5, 51), 5);  /* just 5 % */
	assert_int_equal(outliers_of(94, 5, 51), -1);
	assert_int_equal(outliers_of(60, 1, 3000), 1);
	assert_int_equal(outliers_of(60, 4, 3000), -1);
	assert_int_equal(outliers_of(9, 1, 51), 1); /* one is always allowed */
	assert_int_equal(outliers_of(9, 2, 51), 0); /* of these, one is p90 */
	/* of fewer than ten, p90 would be the one that stands out */
	assert_int_equal(outliers_of(8, 1, 51), 1);
	assert_int_equal(outliers_of(8, 1, 50), 0);
	assert_int_equal(outliers_of(2, 1, 51), 1);
	assert_int_equal(outliers_of(7, 2, 51), 0); /* but two are compared with each other */
	assert_int_equal(outliers_of(1, 1, 51), 0); /* and of two, either may be the usual one */
	assert_int_equal(outliers_of(28, 2, 51), -1);
	assert_int_equal(outliers_of(1, 0, 0), 0);
}

CLAIM(a_flood_is_distinguished_from_busy_clients)
{
	struct weir_distribution calm, half;
	uint64_t values[1001], least;

	for (size_t i = 0; i < 1000; i++)
		values[i] = 1 + i / 10;
	values[1000] = 50000;
	assert_false(weir_find_outliers(values, 1000, &least));
	assert_int_equal(least, UINT64_MAX);
	assert_false(weir_find_outliers(values, 1001, &least));
	assert_int_equal(least, 50000);
	weir_distribute(values, 1000, 999 * WEIR_PERCENT_MICRO / 10, &calm);
	weir_distribute(values, 1000, 50 * WEIR_PERCENT_MICRO, &half);
	assert_int_equal(calm.count, 1000);
	assert_int_equal(calm.p50, 50);
	assert_int_equal(calm.p99_9, 100);
	assert_int_equal(calm.max, 100);
	assert_int_equal(calm.at_percentile, 100);
	assert_int_equal(half.at_percentile, 50);
}

/* ---- thresholds ---- */

CLAIM(a_threshold_has_two_significant_digits_and_is_not_below)
{
	const uint64_t cases[][2] = {{0, 0},	       {1, 1},	       {99, 99},       {100, 100},
				     {101, 110},       {110, 110},     {991, 1000},    {1000, 1000},
				     {123456, 130000}, {99000, 99000}, {99001, 100000}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(weir_round_up_two_digits(cases[i][0]), cases[i][1]);
	assert_int_equal(weir_threshold_with_margin(20, 1500000), 30);
	assert_int_equal(weir_threshold_with_margin(1, 1500000), 2);
	assert_int_equal(weir_threshold_with_margin(7, 1000000), 7);
	assert_int_equal(weir_threshold_with_margin(67, 1500000), 110); /* 100.5 */
}

CLAIM(the_search_ends_at_the_smallest_threshold_that_will_do)
{
	for (uint64_t high = 0; high < 40; high++)
		for (uint64_t right = 0; right <= high; right++) {
			struct weir_threshold_search search = {0, high};

			while (search.low < search.high)
				weir_search_record(&search, weir_search_next(&search) < right);
			assert_int_equal(search.high, right);
		}
}

RUN_CLAIMS(NULL, NULL)
