/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A row for a flow that has none: a free one of its two sets, or one whose flow is pushed out. An insertion takes no
 * lock, and costs what a look-up costs: all rows in question have been fetched by the search that found none.
 */
#ifndef WEIR_INSERT_H
#define WEIR_INSERT_H

#include "flow.h"

/* Present bucket of a timing, for rows of other rules met in a set. */
__noinline __u64 weir_bucket_now(struct weir_work *w, __u32 timing)
{
	struct weir_timing *t = bpf_map_lookup_elem(&timings, &timing);
	struct weir_clock *clk = bpf_map_lookup_elem(&clocks, &timing);

	if (!w || !t || !clk || !t->bucket_ns)
		return 0;
	if (!weir_clock_covers(clk, weir_now_ns(w)))
		weir_clock_set(w, clk, t->bucket_ns, t->base_bucket, true); /* in line, as the stack is short */
	return clk->bucket;
}

/* How much it would hurt to lose this row. An expired one is free too, but an empty one is better: should
 * the clock go back, as it may in a capture, the expired one counts again. A row that is known to be over its
 * limit is worth more than any count.
 */
#define WEIR_WORTH_EMPTY 0
#define WEIR_WORTH_EXPIRED 1
#define WEIR_WORTH_FULL (1ull << 62)

/* All that a row has counted, in buckets of any age. */
static __always_inline __u64 weir_row_units(void *row, const bool wide)
{
	__u64 units = 0;

	if (wide) {
#pragma unroll
		for (int i = 0; i < WEIR_RING_CELLS; i++)
			units += ROW_GET(row, wide, cell[i]) & ~ROW_UNSPENT(wide);
	} else {
		volatile __u64 *words = weir_cell_words(row);

#pragma unroll
		for (int i = 0; i < WEIR_CELL_WORDS; i++) {
			__u64 lanes = words[i] & ~WEIR_LANES_UNSPENT;

			if (i == WEIR_CELL_WORDS - 1)
				lanes &= WEIR_LANES_OF_LAST;
			units += weir_lane_pairs(lanes);
		}
		units = (units + (units >> 32)) & 0xffffffff;
	}
	return units;
}

static __always_inline bool weir_row_is_full(void *row, const bool wide)
{
	return wide ? ((struct weir_wide_row *)row)->full_until_ns != 0 : ROW_GET(row, wide, lease) / WEIR_NARROW_FULL;
}

static __always_inline __u64 weir_row_worth(struct weir_work *w, void *row, const bool wide)
{
	const struct weir_question *q = &w->question;
	__u64 bucket = q->bucket;
	__u32 cells = q->window_cells, timing;
	__u32 tag = ROW_GET(row, wide, tag);

	if (tag == 0)
		return WEIR_WORTH_EMPTY;
	timing = wide ? ((struct weir_wide_row *)row)->timing : tag & (WEIR_TIMINGS_NARROW - 1);
	if (timing != q->timing) {
		struct weir_timing *t = bpf_map_lookup_elem(&timings, &timing);

		if (!t)
			return WEIR_WORTH_EXPIRED;
		bucket = weir_bucket_now(w, timing);
		if (!wide && bucket > WEIR_NARROW_BUCKET_MAX)
			bucket = WEIR_NARROW_BUCKET_MAX; /* as weir_clock_set() has it */
		cells = t->window_cells;
	}
	if (ROW_GET(row, wide, newest) + cells <= bucket)
		return WEIR_WORTH_EXPIRED;
	return (WEIR_WORTH_EXPIRED + 1 + weir_row_units(row, wide)) |
	       (weir_row_is_full(row, wide) ? WEIR_WORTH_FULL : 0);
}

/* Is this row set aside for an earlier rule of the same packet? Such a row must not be pushed out. */
__noinline int weir_row_is_claimed(struct weir_work *w, __u32 number, __u32 storage)
{
	if (!w)
		return 0;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < w->judged; i++) {
		const struct weir_claim *claim = &w->claim[i];

		if (claim->kind > WEIR_CLAIM_GIVEN && claim->storage == storage && claim->row == number)
			return 1;
	}
	return 0;
}

struct weir_victim {
	__u64 worth;
	__u32 number;
};

#define WEIR_NO_ROW 0xffffffffu

/* Find the least worth of one set's rows; returns how many are free, an empty one counting more than any number of
 * expired ones.
 */
static __always_inline __u32 weir_scan_set(struct weir_work *w, void *chunk, __u32 set, struct weir_victim *best,
					   const bool wide)
{
	void *rows = weir_rows_of(chunk, set, wide);
	__u32 free_rows = 0;

#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		__u64 worth = weir_row_worth(w, weir_row_of_set(rows, way, wide), wide);

		if (worth <= WEIR_WORTH_EXPIRED) {
			free_rows += worth == WEIR_WORTH_EMPTY ? WEIR_WAYS + 1 : 1;
			FORGET(w->forgotten, free_rows);
		}
		if (worth >= best->worth)
			continue;
		if (w->judged && worth > WEIR_WORTH_EXPIRED &&
		    weir_row_is_claimed(w, set * WEIR_WAYS + way, WEIR_STORAGE(wide)))
			continue;
		best->worth = worth;
		best->number = set * WEIR_WAYS + way;
		FORGET(w->forgotten, best->worth);
		FORGET(w->forgotten, best->number);
	}
	return free_rows;
}

/* The free rows of a set, empty or expired, one bit a way. Rows of other timings are not looked into: they may have
 * expired as well, but that is found out only when no other is free.
 */
static __always_inline __u32 weir_free_ways(void *rows, __u64 oldest, __u64 asked, const bool wide)
{
	__u32 ways = 0;

#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		void *row = weir_row_of_set(rows, way, wide);
		__u64 tag = ROW_GET(row, wide, tag), newest = ROW_GET(row, wide, newest);
		__u64 timing = wide ? ((struct weir_wide_row *)row)->timing : tag & (WEIR_TIMINGS_NARROW - 1);

		/* Differences below zero have their top bit set. */
		ways |= ((tag - 1) | ((newest - oldest) & ((timing ^ asked) - 1))) >> 63 << way;
		OPAQUE(ways); /* one row after the other: else clang keeps all of them on the stack */
	}
	return ways;
}

static __always_inline __u32 weir_empty_ways(void *rows, const bool wide)
{
	__u32 ways = 0;

#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++)
		ways |= (ROW_GET(weir_row_of_set(rows, way, wide), wide, tag) - 1) >> 63 << way;
	return ways;
}

/* Of each number of four bits, how many are set, and which is the lowest (of 0: the fourth): a hex digit each. */
#define WEIR_NIBBLE_ONES 0x4332322132212110ull
#define WEIR_NIBBLE_LOWEST 0x0102010301020104ull
#define WEIR_NIBBLE(table, bits) ((table) >> 4 * ((bits)&15) & 15)
_Static_assert(WEIR_WAYS == 4, "the ways of a set are a nibble");

/*
 * A free row in the emptier of the flow's two sets, and its number, or NULL: the first empty one, else the first that
 * expired, as who had it may come back. A first set with one flow at most is as good as the other: sets that overflow
 * stay as few, and most rows are found where they are looked for first. Which set it is nobody could guess: so without
 * a branch.
 *
 * In replay an expired row may count again, as the clock may go back: so one that is empty is worth more than any
 * number of those.
 */
static __always_inline void *weir_choose_free(struct weir_work *w, void *chunk, __u32 *ret_number, const bool wide)
{
	const struct weir_question *q = &w->question;
	__u32 set = q->place.set, other = weir_other_set(&q->place, wide), free, other_free, empty, way;
	__u64 oldest = q->bucket + 1 - q->window_cells, asked = q->timing, freedom, other_freedom, less;
	void *rows = weir_rows_of(chunk, set, wide), *other_rows = weir_rows_of(chunk, other, wide);

	*ret_number = WEIR_NO_ROW;
	free = weir_free_ways(rows, oldest, asked, wide);
	other_free = weir_free_ways(other_rows, oldest, asked, wide);
	freedom = WEIR_NIBBLE(WEIR_NIBBLE_ONES, free);
	other_freedom = WEIR_NIBBLE(WEIR_NIBBLE_ONES, other_free);
	if (config.is_virtual) {
		freedom += WEIR_NIBBLE(WEIR_NIBBLE_ONES, weir_empty_ways(rows, wide)) * WEIR_WAYS;
		other_freedom += WEIR_NIBBLE(WEIR_NIBBLE_ONES, weir_empty_ways(other_rows, wide)) * WEIR_WAYS;
		less = freedom - other_freedom;
	} else {
		less = (freedom - other_freedom) & (freedom - (WEIR_WAYS - 1));
	}
	less = -(less >> 63); /* all ones, or none */
	free ^= (free ^ other_free) & less;
	set ^= (set ^ other) & less;
	if (!free)
		return NULL;
	rows = weir_rows_of(chunk, set, wide);
	empty = weir_empty_ways(rows, wide);
	way = WEIR_NIBBLE(WEIR_NIBBLE_LOWEST, empty ? empty : free);
	*ret_number = set * WEIR_WAYS + way;
	OPAQUE(way);
	return weir_row_of_set(rows, way & (WEIR_WAYS - 1), wide);
}

static __always_inline __u32 weir_choose_free_number(struct weir_work *w, const bool wide)
{
	void *chunk = weir_chunk_of(w->question.place.set, -1, wide);
	__u32 number = WEIR_NO_ROW;

	if (chunk)
		weir_choose_free(w, chunk, &number, wide);
	return number;
}

__noinline __u32 weir_choose_free_narrow(struct weir_work *w)
{
	return w ? weir_choose_free_number(w, false) : WEIR_NO_ROW;
}

__noinline __u32 weir_choose_free_wide(struct weir_work *w)
{
	return w ? weir_choose_free_number(w, true) : WEIR_NO_ROW;
}

/*
 * Choose a row for the flow of w->question, which has none: a free one in the emptier of its two sets (two
 * choices keep even well filled tables from overflowing), else the row that counts least; evicting
 * that is counted. Returns its number, or WEIR_NO_ROW when every candidate is held by other rules of this
 * very packet.
 */
static __always_inline __u32 weir_choose_row(struct weir_work *w, const bool wide)
{
	struct weir_victim first = {~0ull, WEIR_NO_ROW}, second = {~0ull, WEIR_NO_ROW}, *best;
	const struct weir_question *q = &w->question;
	void *chunk = weir_chunk_of(q->place.set, -1, wide);
	__u32 free_first, free_second;

	if (!chunk)
		return WEIR_NO_ROW;
	free_first = weir_scan_set(w, chunk, q->place.set, &first, wide);
	free_second = weir_scan_set(w, chunk, weir_other_set(&q->place, wide), &second, wide);
	if (free_first || free_second)
		return free_second > free_first ? second.number : first.number;
	best = second.worth < first.worth ? &second : &first;
	if (best->number != WEIR_NO_ROW)
		weir_count_eviction(q->slot);
	return best->number;
}

__noinline __u32 weir_choose_narrow_row(struct weir_work *w)
{
	return w ? weir_choose_row(w, false) : WEIR_NO_ROW;
}

__noinline __u32 weir_choose_wide_row(struct weir_work *w)
{
	return w ? weir_choose_row(w, true) : WEIR_NO_ROW;
}

struct weir_least {
	__u64 row;    /* the least worth so far, then 3 bits: second set or not, and the way */
	__u32 timing; /* bits in which a row's differs from that of the question */
};

#define WEIR_LEAST_FULL 24 /* no row counts as many units as 2^24 */

static __always_inline void weir_least_of_set(const struct weir_question *q, void *rows, __u32 number,
					      struct weir_least *least)
{
#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		void *row = weir_row_of_set(rows, way, false);
		__u64 worth = weir_row_units(row, false) | (__u64)weir_row_is_full(row, false) << WEIR_LEAST_FULL;
		__u64 less = (worth << 3 | (number + way)) - least->row;

		least->row += less & -(less >> 63);
		least->timing |= (ROW_GET(row, false, tag) ^ q->timing) & (WEIR_TIMINGS_NARROW - 1);
		OPAQUE(least->row);
	}
}

/* As weir_choose_narrow_row() where none is free, all rows are of one timing, and the one to go is not claimed; else
 * WEIR_NO_ROW. A flood of spoofed sources comes here with every packet: so without branches that nobody could guess.
 */
__noinline __u32 weir_choose_least_narrow(struct weir_work *w)
{
	struct weir_least least = {.row = ~0ull >> 1};
	const struct weir_question *q;
	__u32 set, number;
	void *chunk;

	if (!w)
		return WEIR_NO_ROW;
	q = &w->question;
	set = q->place.set;
	chunk = weir_chunk_of(set, -1, false);
	if (!chunk)
		return WEIR_NO_ROW;
	weir_least_of_set(q, weir_rows_of(chunk, set, false), 0, &least);
	weir_least_of_set(q, weir_rows_of(chunk, weir_other_set(&q->place, false), false), WEIR_WAYS, &least);
	if (least.timing)
		return WEIR_NO_ROW;
	if (least.row & WEIR_WAYS)
		set = weir_other_set(&q->place, false);
	number = set * WEIR_WAYS + (least.row & (WEIR_WAYS - 1));
	if (w->judged && weir_row_is_claimed(w, number, WEIR_STORAGE_NARROW))
		return WEIR_NO_ROW;
	weir_count_eviction(q->slot);
	return number;
}

#endif
