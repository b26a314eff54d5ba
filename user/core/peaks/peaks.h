/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room peaks: the mathematics of `weir suggest`. From the packets of a flow to its peak, which is the fullest that its
 * window ever was; from the peaks of all flows to percentiles, to flows that are far from all others, and to a
 * threshold. Pure: numbers only, it knows neither rules nor packets.
 *
 * A flow loses packets under a threshold if and only if its peak is above it: until the first packet that would be
 * dropped, what is admitted is what was offered.
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

/* What one flow has in its window. Zeros: nothing yet. */
struct weir_window_sums {
	uint64_t bucket; /* number of the newest bucket */
	uint32_t newest; /* its cell; the bucket before it has the cell before, around the ring */
	struct weir_tally cell[WEIR_RING_CELLS];
};

/* The window at this time, whose bucket becomes known. Buckets that are newer belong to it, too. */
struct weir_tally weir_window_look(struct weir_window_sums *sums, const struct weir_peak_window *window,
				   uint64_t time_ns);

/* Count in the bucket of this time, or in the newest where that one is forgotten (docs/rules.md, when the clock goes
 * back). Look first. Returns what is in the bucket now.
 */
const struct weir_tally *weir_window_count(struct weir_window_sums *sums, const struct weir_peak_window *window,
					   uint64_t time_ns, const struct weir_tally *batch);

struct weir_flow_peaks {
	struct weir_window_sums sums;
	struct weir_tally peak; /* the fullest window, of packets and of bytes each */
	struct weir_tally total;
	uint64_t bucket_packets; /* the fullest single bucket */
};

/* A batch of packets at this time. */
void weir_peaks_add(struct weir_flow_peaks *peaks, const struct weir_peak_window *window, uint64_t time_ns,
		    const struct weir_tally *batch);

/* ---- percentiles ---- */

#define WEIR_PERCENT_MICRO 1000000u /* percentages in millionths of one: 99.9 is 99,900,000 */

/* The smallest value that at least so many percent of all are not above (nearest rank). `sorted` ascends, count > 0. */
uint64_t weir_nearest_rank(const uint64_t *sorted, size_t count, uint32_t percent_micro);

/* How many of the largest are far from all others: above ten times the 99th percentile, and fewer than 1 %; or 0. */
size_t weir_count_outliers(const uint64_t *sorted, size_t count);

struct weir_distribution {
	size_t count, outliers;		    /* all; those left out of the rest */
	uint64_t p50, p90, p99, p99_9, max; /* without outliers */
	uint64_t at_percentile;		    /* that was asked for */
	uint64_t outlier_min;		    /* values from here on are outliers; UINT64_MAX: there are none */
};

/* Of count > 0 values that ascend. */
void weir_distribute(const uint64_t *sorted, size_t count, uint32_t percent_micro, struct weir_distribution *ret);

/* Fewer flows, or intervals, than this say too little. */
#define WEIR_PEAKS_MIN 30

/* ---- thresholds ---- */

/* The next number of two significant digits that is not below. */
uint64_t weir_round_up_two_digits(uint64_t number);

/* number * margin, rounded up so. The margin is in millionths. */
uint64_t weir_threshold_with_margin(uint64_t number, uint64_t margin_micro);

/*
 * The search for the smallest threshold that drops no more than is allowed. The threshold to try next is
 * weir_search_next(); weir_search_tell() says whether it drops too much. It has ended when `low` is `high`: that is it.
 * `high` at the start is a threshold that drops nothing.
 */
struct weir_threshold_search {
	uint64_t low, high;
};

static inline uint64_t weir_search_next(const struct weir_threshold_search *search)
{
	return search->low + (search->high - search->low) / 2;
}

static inline void weir_search_tell(struct weir_threshold_search *search, bool drops_too_much)
{
	if (drops_too_much)
		search->low = weir_search_next(search) + 1;
	else
		search->high = weir_search_next(search);
}

#endif
