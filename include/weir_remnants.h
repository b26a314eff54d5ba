/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Map `remnants`, shared by all CPUs: what rows leave behind that are pushed out while they count (bpf/remnants.h). A
 * remnant is one word, so that a compare-and-swap changes all of it, and a set of them is a cache line. A flow has two
 * candidate sets, one beside each of its two sets of rows, and may have several remnants: they add up. So what a row
 * leaves mostly lies in lines that the newcomer has had to look at. Both sets lie in one page. Behind the last set come
 * the *heads*, in one of which each CPU counts, and behind them a word for each page, which says until when remnants in
 * it may count.
 *
 * A word holds, from the lowest bit, two counts of units, and when they end. `units` were counted in buckets from
 * `start` to `start` + `span`, `before` in earlier ones; all that a row counted is taken for as new as its newest
 * bucket. When `before` has left the window, `units` take its place. So a flow that is pushed out again and again is
 * not charged for what it used long ago.
 *
 * Numbers of buckets are cut to WEIR_REMNANT_START_BITS: with buckets of 100 ms a remnant that nobody has replaced
 * looks valid again, for one window, after 27 minutes. The page's word tells before that that no remnant of the page
 * counts any more, unless flows are pushed out there all the while; then remnants are replaced all the while.
 *
 * Map `strangers`, shared likewise: where rules say `whenFull: aggregate`, what found no place among the remnants. Of
 * an eighth of a page's flows, their *group*, one word for each class of windows counts all of it.
 */
#ifndef WEIR_ABI_REMNANTS_H
#define WEIR_ABI_REMNANTS_H

#include <linux/types.h>

#define WEIR_REMNANT_WAYS 8
#define WEIR_REMNANT_PAGE_SETS 64

struct weir_remnant_set {
	union {
		__u64 word[WEIR_REMNANT_WAYS];	   /* 0: free */
		__u64 until_ns[WEIR_REMNANT_WAYS]; /* of pages: no remnant counts from then on, by CLOCK_MONOTONIC */
		struct {			   /* of a head, by some CPUs */
			__u64 displaced;	   /* remnants that were lost to newer ones while they counted */
			__u64 joined;		   /* remnants that found no place and were added to strangers */
		};
	};
};
_Static_assert(sizeof(struct weir_remnant_set) == 64, "one cache line");

/* CPUs whose numbers differ by a multiple of this share a head. In a flood every packet may count there: on one head
 * for all, CPUs would wait for each other.
 */
#define WEIR_REMNANT_HEADS 64

/* What the map has: sets, heads, and sets of pages' words. */
#define WEIR_REMNANT_PAGES_SET(sets) ((sets) + WEIR_REMNANT_HEADS)
#define WEIR_REMNANT_ALL_SETS(sets)                                                                                    \
	(WEIR_REMNANT_PAGES_SET(sets) + ((sets) / WEIR_REMNANT_PAGE_SETS + WEIR_REMNANT_WAYS - 1) / WEIR_REMNANT_WAYS)

/* Remnants that there is room for, for each row of one CPU. Chosen: four times as many flows as rows are remembered,
 * and the table is less than a quarter of what an instance takes on two CPUs.
 */
#define WEIR_REMNANTS_PER_ROW 4
#define WEIR_REMNANTS_OF_LENDERS 2 /* times as many: their tables have nearly twice as many places as rows */

#define WEIR_REMNANT_COUNT_BITS 11
#define WEIR_REMNANT_COUNT_MASK ((1u << WEIR_REMNANT_COUNT_BITS) - 1)
#define WEIR_REMNANT_SPAN_SHIFT (2 * WEIR_REMNANT_COUNT_BITS)
#define WEIR_REMNANT_SPAN_MASK 15u
#define WEIR_REMNANT_START_SHIFT (WEIR_REMNANT_SPAN_SHIFT + 4)
#define WEIR_REMNANT_START_BITS 14
#define WEIR_REMNANT_START_MASK ((1u << WEIR_REMNANT_START_BITS) - 1)
#define WEIR_REMNANT_NAME_SHIFT (WEIR_REMNANT_START_SHIFT + WEIR_REMNANT_START_BITS)
#define WEIR_REMNANT_WORD(name, start, span, units, before)                                                            \
	((__u64)(name) << WEIR_REMNANT_NAME_SHIFT |                                                                    \
	 (__u64)((start)&WEIR_REMNANT_START_MASK) << WEIR_REMNANT_START_SHIFT |                                        \
	 (__u64)(span) << WEIR_REMNANT_SPAN_SHIFT | (__u64)(before) << WEIR_REMNANT_COUNT_BITS | (units))

/* A name has 24 bits: 20 of the tag that the flow's row has, and the number of its timing, whose buckets are meant. Two
 * flows of one set share a name by a chance of 2^-20: then both are judged by what both have left, which is never too
 * little.
 */
#define WEIR_REMNANT_TIMINGS 15 /* of a timing from this number on, only its own flows know how long a bucket is */
#define WEIR_REMNANT_NAME(tag, timing)                                                                                 \
	((tag) >> 12 << 4 | ((timing) < WEIR_REMNANT_TIMINGS ? (timing) : WEIR_REMNANT_TIMINGS))

/* The set of remnants of a flow beside a set of its rows. Narrow rows' sets have two sets beside each, and the tag says
 * which. Sets of larger rows have smaller pages: of a flow's odd set the tag moves it to another one of their pages, so
 * that the flows of one page have a whole page of remnants. Both sets of a flow lie in one page.
 */
static inline __u32 weir_remnant_set_beside(__u32 row_set, __u32 tag, __u32 page_sets, __u32 sets)
{
	const __u32 odd = row_set & 1, among = WEIR_REMNANT_PAGE_SETS / 2 - page_sets;

	row_set ^= (tag >> 4 & among) * odd;
	return (row_set << 1 | (tag >> (9 + odd) & 1)) & (sets - 1);
}

/* Groups of strangers are as many as an eighth of the sets. Chosen: with 16 words for each, they take a quarter of what
 * the sets take. Both of a flow's sets give the same group.
 */
#define WEIR_STRANGERS_SETS 8u
#define WEIR_STRANGERS_GROUP(set, tag)                                                                                 \
	((set) / WEIR_REMNANT_PAGE_SETS * (WEIR_REMNANT_PAGE_SETS / WEIR_STRANGERS_SETS) |                             \
	 ((tag) >> 9 & (WEIR_REMNANT_PAGE_SETS / WEIR_STRANGERS_SETS - 1)))

/* Whose units one word may count: of windows with the same buckets, in narrow rows or in others (so packets and bytes
 * are mostly apart). Of later timings nobody can be judged by strangers.
 */
#define WEIR_STRANGERS_TIMINGS 8u
#define WEIR_STRANGERS_CLASSES (2 * WEIR_STRANGERS_TIMINGS)
#define WEIR_STRANGERS_CLASS(timing, is_narrow) ((timing) | ((is_narrow) ? 0 : WEIR_STRANGERS_TIMINGS))
#define WEIR_STRANGERS_NAME 0xffffffu /* of all their words: which flow, nobody asks */

struct weir_strangers {
	__u64 word[WEIR_STRANGERS_CLASSES];
};
_Static_assert(sizeof(struct weir_strangers) == 128, "two cache lines");

/* `start` of a word lies so many buckets behind, modulo 2^14; from WEIR_REMNANT_AHEAD on it lies ahead. */
#define WEIR_REMNANT_AGE(word, bucket)                                                                                 \
	(((__u32)(bucket) - (__u32)((word) >> WEIR_REMNANT_START_SHIFT)) & WEIR_REMNANT_START_MASK)
#define WEIR_REMNANT_AHEAD (WEIR_REMNANT_START_MASK + 1 - 1024)

/*
 * Counts are written by a mantissa of seven bits, the first of which is left out, and a power of two: to the unit up to
 * 127, above that rounded up by at most a 64th.
 */
#define WEIR_REMNANT_MANTISSA_BITS 6
#define WEIR_REMNANT_MANTISSA (1u << WEIR_REMNANT_MANTISSA_BITS)

#define WEIR_REMNANT_BOUNDLESS (1ull << 60) /* what the largest count stands for: 2^37 and more */

static inline __u64 weir_remnant_units(__u32 count)
{
	__u32 power = count >> WEIR_REMNANT_MANTISSA_BITS, mantissa = count & (WEIR_REMNANT_MANTISSA - 1);

	if (power == 0)
		return mantissa;
	if (count == WEIR_REMNANT_COUNT_MASK)
		return WEIR_REMNANT_BOUNDLESS;
	return (__u64)(mantissa + WEIR_REMNANT_MANTISSA) << (power - 1);
}

/* The least count that stands for at least so many units. */
static inline __u32 weir_remnant_count(__u64 units)
{
	__u32 power = 0, mantissa;

	if (units < 2ull * WEIR_REMNANT_MANTISSA)
		return units;
	for (int step = 16; step; step /= 2)
		if (units >> step >= WEIR_REMNANT_MANTISSA) {
			/* rounded up: what is cut off counts as one more */
			units = (units >> step) + ((units & ((1ull << step) - 1)) != 0);
			power += step;
		}
	if (units >= 2ull * WEIR_REMNANT_MANTISSA) {
		units = (units + 1) / 2;
		power++;
	}
	mantissa = units - WEIR_REMNANT_MANTISSA;
	if (power + 1 > 31)
		return WEIR_REMNANT_COUNT_MASK;
	return (power + 1) << WEIR_REMNANT_MANTISSA_BITS | mantissa;
}

/* ---- words ---- */

static inline __u32 weir_remnant_span(__u64 word)
{
	return word >> WEIR_REMNANT_SPAN_SHIFT & WEIR_REMNANT_SPAN_MASK;
}

/* Does a word still count, if buckets up to `expired` have left the window? */
static inline int weir_remnant_counts(__u64 word, __u64 expired)
{
	__u32 age = WEIR_REMNANT_AGE(word, expired);

	return word && (age < weir_remnant_span(word) || age >= WEIR_REMNANT_AHEAD);
}

/* What a word counts in a window of so many buckets that ends with `bucket`. */
static inline __u64 weir_remnant_in_window(__u64 word, __u64 bucket, __u32 window_cells)
{
	__u32 age = WEIR_REMNANT_AGE(word, bucket);
	__u64 units = 0;

	if (age < weir_remnant_span(word) + window_cells)
		units += weir_remnant_units(word & WEIR_REMNANT_COUNT_MASK);
	if (age + 1 < window_cells)
		units += weir_remnant_units(word >> WEIR_REMNANT_COUNT_BITS & WEIR_REMNANT_COUNT_MASK);
	return units;
}

#endif
