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

/* Count in the bucket of this time, or in the newest bucket if that one is no longer kept (docs/semantics.md, 1, of a
 * clock that goes back). Call weir_window_look() first. Returns what the bucket holds now.
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

/* Values from *ret_min up are outliers: those above ten times the 90th percentile, if they are at most 5 %, or if there
 * is a single one. With three to nine values, the second largest is the 90th percentile for this. UINT64_MAX: there are
 * none. Returns whether there are too many above it to be outliers.
 */
bool weir_find_outliers(const uint64_t *sorted, size_t count, uint64_t *ret_min);

struct weir_distribution {
	size_t count;
	uint64_t p50, p90, p99, p99_9, max;
	uint64_t at_percentile; /* at the percentile that was asked for */
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

/* ---- the flows that are tracked ---- */

/* In bounded memory. Each flow belongs to a group (a series, or a service). When the table is full, the groups with the
 * most flows keep only every second flow, chosen by hash, then every fourth, and so on: percentiles remain those of a
 * fair sample, and every flow that is still tracked has all its packets.
 */
struct weir_followed {
	struct weir_flow_key key;
	uint64_t hash; /* of its key */
	uint32_t group;
	uint32_t capture; /* the capture that its window belongs to */
	struct weir_flow_peaks peaks;
};

struct weir_flow_table;

/* Most flows that are tracked, at some 300 bytes each. Chosen so that a million flows need no sampling, and fit into
 * 500 MB.
 */
#define WEIR_FOLLOWED_MAX 1100000u

/* NULL: no memory. Group numbers are below `groups`. */
struct weir_flow_table *weir_flow_table_new(uint32_t groups, uint32_t flows_max);
void weir_flow_table_free(struct weir_flow_table *table);

static inline void weir_flow_table_freep(struct weir_flow_table **table)
{
	weir_flow_table_free(*table);
}

#define WEIR_NOT_FOLLOWED UINT32_MAX

/* Returns 0 and the index of this key's flow, which is added if it is new; or WEIR_NOT_FOLLOWED, or -ENOMEM. */
int weir_flow_table_find(struct weir_flow_table *table, uint32_t group, const struct weir_flow_key *key, uint64_t hash,
			 uint32_t *ret_place);

uint32_t weir_flow_table_count(const struct weir_flow_table *table);
struct weir_followed *weir_flow_table_at(const struct weir_flow_table *table, uint32_t place);

/* True if some flows have been dropped from the table, so that earlier indexes are no longer valid. */
bool weir_flow_table_is_sampled(const struct weir_flow_table *table);

/* Indexes of all flows, ordered by group: those of one group follow directly after those of the previous one. The
 * caller frees the array; NULL: no memory.
 */
uint32_t *weir_flow_table_by_group(const struct weir_flow_table *table);

/* The sampling ratio of the group: one in 1, 2, 4 ... of its flows is tracked. */
uint32_t weir_flow_table_one_in(const struct weir_flow_table *table, uint32_t group);

/* Number of tracked flows in the group. */
uint32_t weir_flow_table_group_count(const struct weir_flow_table *table, uint32_t group);

#endif
