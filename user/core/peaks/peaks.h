/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room peaks: the mathematics of `weir suggest`. It turns the packets of a flow into the flow's peak (the highest count
 * that its window ever reached), and the peaks of all flows into percentiles, outliers and a threshold. Pure: it
 * handles only numbers, and knows neither rules nor packets.
 *
 * A flow loses packets under a threshold if and only if its peak is above it: until the first packet that would be
 * dropped, every offered packet is admitted.
 */
#ifndef WEIR_PEAKS_H
#define WEIR_PEAKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir_counters.h"
#include "weir_state.h"

/* ---- windows (docs/semantics.md, 1): packets and bytes at once ---- */

struct weir_peak_window {
	uint64_t bucket_ns;
	uint32_t samples;	    /* 1 to WEIR_SAMPLES_MAX */
	enum weir_window_kind kind; /* leap, strict or smooth */
};

/* The window contents of one flow. All zero: nothing counted yet. */
struct weir_window_sums {
	uint64_t bucket; /* number of the newest bucket */
	uint32_t newest; /* index of its cell; the previous bucket is in the previous cell of the ring */
	struct weir_tally cell[WEIR_RING_CELLS];
};

/* The sum of the window at this time, whose bucket is then known. Newer buckets are included. */
struct weir_tally weir_window_look(struct weir_window_sums *sums, const struct weir_peak_window *window,
				   uint64_t time_ns);

/* Count in the bucket of this time, or in the newest bucket if that one is no longer kept (docs/rules.md, when the
 * clock goes back). Call weir_window_look() first. Returns what the bucket holds now.
 */
const struct weir_tally *weir_window_count(struct weir_window_sums *sums, const struct weir_peak_window *window,
					   uint64_t time_ns, const struct weir_tally *batch);

struct weir_flow_peaks {
	struct weir_window_sums sums;
	struct weir_tally peak; /* the fullest window, separately for packets and for bytes */
	struct weir_tally total;
	uint64_t bucket_packets; /* the fullest single bucket */
};

/* Add a batch of packets at this time. */
void weir_peaks_add(struct weir_flow_peaks *peaks, const struct weir_peak_window *window, uint64_t time_ns,
		    const struct weir_tally *batch);

/* ---- percentiles ---- */

#define WEIR_PERCENT_MICRO 1000000u /* percentages in millionths of one: 99.9 is 99,900,000 */

/* The smallest value such that at least this percentage of all values do not exceed it (nearest rank). `sorted` is
 * ascending, count > 0.
 */
uint64_t weir_nearest_rank(const uint64_t *sorted, size_t count, uint32_t percent_micro);

/* Number of outliers among the largest values: those above ten times the 99th percentile, if they are fewer than 1 %;
 * otherwise 0.
 */
size_t weir_count_outliers(const uint64_t *sorted, size_t count);

struct weir_distribution {
	size_t count, outliers;		    /* number of values, and of outliers, which the other fields exclude */
	uint64_t p50, p90, p99, p99_9, max; /* without outliers */
	uint64_t at_percentile;		    /* at the percentile that was asked for */
	uint64_t outlier_min;		    /* values from here up are outliers; UINT64_MAX: there are none */
};

/* The distribution of count > 0 values in ascending order. */
void weir_distribute(const uint64_t *sorted, size_t count, uint32_t percent_micro, struct weir_distribution *ret);

/* With fewer flows or intervals than this, a suggestion is not justified. */
#define WEIR_PEAKS_MIN 30

/* ---- thresholds ---- */

/* Round up to the next number with two significant digits. */
uint64_t weir_round_up_two_digits(uint64_t number);

/* number * margin, rounded up in the same way. The margin is in millionths. */
uint64_t weir_threshold_with_margin(uint64_t number, uint64_t margin_micro);

/*
 * The search for the smallest threshold that drops no more than is allowed. weir_search_next() gives the threshold to
 * try next; weir_search_record() records whether it drops too much. The search ends when `low` equals `high`, which is
 * the result. At the start, `high` is a threshold that drops nothing.
 */
struct weir_threshold_search {
	uint64_t low, high;
};

static inline uint64_t weir_search_next(const struct weir_threshold_search *search)
{
	return search->low + (search->high - search->low) / 2;
}

static inline void weir_search_record(struct weir_threshold_search *search, bool drops_too_much)
{
	if (drops_too_much)
		search->low = weir_search_next(search) + 1;
	else
		search->high = weir_search_next(search);
}

#endif
