/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Map `row_ghosts`, shared by all CPUs: the ghosts of rows that were evicted while they counted
 * (bpf/window/row_ghosts.h). A ghost is one word, so that a compare-and-swap changes all of it, and a set of them is a
 * cache line. A flow has two candidate sets, one beside each of its two sets of rows, and may have several ghosts: they
 * add up. So a ghost is mostly in a line that the new flow has had to read anyway. Both sets lie in one page. After the
 * last set come the *heads*, which hold counters, and after them a word for each page, which says until when ghosts in
 * the page may count.
 *
 * A word holds two counts of units, and when they end. `units` were counted in buckets from
 * `start` to `start` + `span`, `before` in earlier ones; all that a row counted is taken for as new as its newest
 * bucket. When `before` has left the window, `units` take its place. So a flow that is evicted again and again is not
 * charged for units that it used long ago.
 *
 * The word of a flow that was evicted in one bucket only has no `before`. There, its bits are a *stamp*: when, within
 * the bucket, the flow was evicted. Words are compared by them if a set is full: in a flood of new flows, all count the
 * same, and a new one must not always replace the same word.
 *
 * Numbers of buckets are cut to WEIR_ROW_GHOST_START_BITS: with buckets of 100 ms a ghost that nobody has replaced
 * looks valid again, for one window, after 27 minutes. Before that, the page's word shows that no ghost of the page
 * counts any more, unless flows are evicted there all the time; but then ghosts are also replaced all the time.
 *
 * Map `overflow_windows`, also shared by all CPUs: with `whenFull: aggregate`, counts that found no slot among ghosts.
 * An eighth of a page's flows are a *group*. For each class of windows, a group has one word, the *overflow window*, to
 * which all such counts are added.
 */
#ifndef WEIR_ABI_ROW_GHOSTS_H
#define WEIR_ABI_ROW_GHOSTS_H

#include <linux/types.h>

#define WEIR_ROW_GHOST_WAYS 8
#define WEIR_ROW_GHOST_PAGE_SETS 64

struct weir_row_ghost_set {
	union {
		__u64 word[WEIR_ROW_GHOST_WAYS];     /* 0: free */
		__u64 until_ns[WEIR_ROW_GHOST_WAYS]; /* of pages: no ghost counts from then on, by CLOCK_MONOTONIC */
		struct {			     /* of a head, by some CPUs */
			__u64 displaced;	     /* ghosts that were lost to newer ones while they counted */
			__u64 joined;		     /* ghosts that found no slot and joined an overflow window */
		};
	};
};
_Static_assert(sizeof(struct weir_row_ghost_set) == 64, "one cache line");

/* CPUs whose numbers differ by a multiple of this share a head. In a flood every packet may count there, and CPUs would
 * wait for each other if all used one head.
 */
#define WEIR_ROW_GHOST_HEADS 64

/* What the map has: sets, heads, and sets of pages' words. */
#define WEIR_ROW_GHOST_PAGES_SET(sets) ((sets) + WEIR_ROW_GHOST_HEADS)
#define WEIR_ROW_GHOST_ALL_SETS(sets)                                                                                  \
	(WEIR_ROW_GHOST_PAGES_SET(sets) +                                                                              \
	 ((sets) / WEIR_ROW_GHOST_PAGE_SETS + WEIR_ROW_GHOST_WAYS - 1) / WEIR_ROW_GHOST_WAYS)

/* Ghosts that there is room for, for each row of one CPU. Chosen: four times as many flows as rows are remembered,
 * and the table is less than a quarter of what an instance takes on two CPUs.
 */
#define WEIR_ROW_GHOSTS_PER_ROW 4
#define WEIR_ROW_GHOSTS_OF_OCCUPY 2 /* twice as many: their tables have nearly two slots for each row */

#define WEIR_ROW_GHOST_COUNT_BITS 11
#define WEIR_ROW_GHOST_COUNT_MASK ((1u << WEIR_ROW_GHOST_COUNT_BITS) - 1)
#define WEIR_ROW_GHOST_SPAN_MASK 15u /* stored plus one; 0: the word has a stamp */
#define WEIR_ROW_GHOST_UNITS_SHIFT 4
#define WEIR_ROW_GHOST_BEFORE_SHIFT (WEIR_ROW_GHOST_UNITS_SHIFT + WEIR_ROW_GHOST_COUNT_BITS)
#define WEIR_ROW_GHOST_START_SHIFT (WEIR_ROW_GHOST_BEFORE_SHIFT + WEIR_ROW_GHOST_COUNT_BITS)
#define WEIR_ROW_GHOST_START_BITS 14
#define WEIR_ROW_GHOST_START_MASK ((1u << WEIR_ROW_GHOST_START_BITS) - 1)
#define WEIR_ROW_GHOST_NAME_SHIFT (WEIR_ROW_GHOST_START_SHIFT + WEIR_ROW_GHOST_START_BITS)
#define WEIR_ROW_GHOST_WORD(name, start, span, units, before)                                                          \
	((__u64)(name) << WEIR_ROW_GHOST_NAME_SHIFT |                                                                  \
	 (__u64)((start)&WEIR_ROW_GHOST_START_MASK) << WEIR_ROW_GHOST_START_SHIFT |                                    \
	 (__u64)(before) << WEIR_ROW_GHOST_BEFORE_SHIFT | (__u64)(units) << WEIR_ROW_GHOST_UNITS_SHIFT |               \
	 (__u64)((span) + 1))
/* Stored as a span of -1 after the next bucket, so that the same sum says of all words when they are over. */
#define WEIR_ROW_GHOST_STAMPED(name, bucket, units, stamp) WEIR_ROW_GHOST_WORD(name, (bucket) + 1, -1, units, stamp)
#define WEIR_ROW_GHOST_IS_STAMPED(word) (!((word)&WEIR_ROW_GHOST_SPAN_MASK))

/* What a word is worth, in 15 bits: its units, and of two words with as many, one without a stamp, as it has `before`,
 * or units of several buckets.
 */
#define WEIR_ROW_GHOST_WORTH(word) ((word) & ((1u << WEIR_ROW_GHOST_BEFORE_SHIFT) - 1))

/* Stamps: parts of a bucket. */
#define WEIR_ROW_GHOST_STAMP_BITS WEIR_ROW_GHOST_COUNT_BITS
#define WEIR_ROW_GHOST_STAMP_MAX ((1u << WEIR_ROW_GHOST_STAMP_BITS) - 1)

/* How far a word's start and stamp, as they are stored, lie behind the end of this bucket, in parts of a bucket. (In
 * whole buckets it is right without a stamp, too.)
 */
#define WEIR_ROW_GHOST_PARTS_MASK ((1u << (WEIR_ROW_GHOST_START_BITS + WEIR_ROW_GHOST_STAMP_BITS)) - 1)
#define WEIR_ROW_GHOST_PARTS_BEHIND(word, bucket)                                                                      \
	((((__u32)(bucket) << WEIR_ROW_GHOST_STAMP_BITS | WEIR_ROW_GHOST_STAMP_MAX) -                                  \
	  (__u32)((word) >> WEIR_ROW_GHOST_BEFORE_SHIFT)) &                                                            \
	 WEIR_ROW_GHOST_PARTS_MASK)

/* A name has 24 bits: 20 bits of the tag of the flow's row, and the number of its window spec, which defines the
 * buckets. Two flows of one set have the same name with a chance of 2^-20. Then each is evaluated against the ghosts of
 * both, which is never too little.
 */
#define WEIR_ROW_GHOST_SPECS 15 /* of a window spec from this number on, only its own flows know how long a bucket is */
#define WEIR_ROW_GHOST_NAME_SPEC_BITS 4
#define WEIR_ROW_GHOST_NAME(tag, spec)                                                                                 \
	((tag) >> 12 << WEIR_ROW_GHOST_NAME_SPEC_BITS | ((spec) < WEIR_ROW_GHOST_SPECS ? (spec) : WEIR_ROW_GHOST_SPECS))

/* The set of ghosts of a flow beside a set of its rows. Narrow rows' sets have two sets beside each, and the tag says
 * which. Sets of larger rows have smaller pages: of a flow's odd set the tag moves it to another one of their pages, so
 * that the flows of one page have a whole page of ghosts. Both sets of a flow lie in one page.
 */
static inline __u32 weir_row_ghost_set_beside(__u32 row_set, __u32 tag, __u32 page_sets, __u32 sets)
{
	const __u32 odd = row_set & 1, among = WEIR_ROW_GHOST_PAGE_SETS / 2 - page_sets;

	row_set ^= (tag >> 4 & among) * odd;
	return (row_set << 1 | (tag >> (9 + odd) & 1)) & (sets - 1);
}

/* There are an eighth as many groups as sets. Chosen: with 16 words for each, they take a quarter of what
 * the sets take. Both of a flow's sets give the same group.
 */
#define WEIR_OVERFLOW_SETS 8u
#define WEIR_OVERFLOW_GROUP(set, tag)                                                                                  \
	((set) / WEIR_ROW_GHOST_PAGE_SETS * (WEIR_ROW_GHOST_PAGE_SETS / WEIR_OVERFLOW_SETS) |                          \
	 ((tag) >> 9 & (WEIR_ROW_GHOST_PAGE_SETS / WEIR_OVERFLOW_SETS - 1)))

/* Whose units one word may count: of windows with the same buckets, in narrow rows or in others (so packets and bytes
 * are mostly apart). Later window specs have no overflow window.
 */
#define WEIR_OVERFLOW_SPECS 8u
#define WEIR_OVERFLOW_CLASSES (2 * WEIR_OVERFLOW_SPECS)
#define WEIR_OVERFLOW_CLASS(spec, is_narrow) ((spec) | ((is_narrow) ? 0 : WEIR_OVERFLOW_SPECS))
#define WEIR_OVERFLOW_NAME 0xffffffu /* the name in all their words: they belong to no single flow */

struct weir_overflow_windows {
	__u64 word[WEIR_OVERFLOW_CLASSES];
};
_Static_assert(sizeof(struct weir_overflow_windows) == 128, "two cache lines");

/* How many buckets the word's `start` lies behind, modulo 2^14; from WEIR_ROW_GHOST_AHEAD on, it lies ahead. */
#define WEIR_ROW_GHOST_START(word) (((word) >> WEIR_ROW_GHOST_START_SHIFT) - WEIR_ROW_GHOST_IS_STAMPED(word))
#define WEIR_ROW_GHOST_AGE(word, bucket)                                                                               \
	(((__u32)(bucket) - (__u32)WEIR_ROW_GHOST_START(word)) & WEIR_ROW_GHOST_START_MASK)
#define WEIR_ROW_GHOST_AHEAD_MAX 1024
#define WEIR_ROW_GHOST_AHEAD (WEIR_ROW_GHOST_START_MASK + 1 - WEIR_ROW_GHOST_AHEAD_MAX)

/*
 * Counts are stored as a power of two and a mantissa of seven bits, whose first bit is implied. They are exact up to
 * 127, and rounded up by at most a 64th above that.
 */
#define WEIR_ROW_GHOST_MANTISSA_BITS 6
#define WEIR_ROW_GHOST_MANTISSA (1u << WEIR_ROW_GHOST_MANTISSA_BITS)

#define WEIR_ROW_GHOST_BOUNDLESS (1ull << 60) /* what the largest count stands for: 2^37 and more */

static inline __u64 weir_row_ghost_units(__u32 count)
{
	__u32 power = count >> WEIR_ROW_GHOST_MANTISSA_BITS, mantissa = count & (WEIR_ROW_GHOST_MANTISSA - 1);

	if (power == 0)
		return mantissa;
	if (count == WEIR_ROW_GHOST_COUNT_MASK)
		return WEIR_ROW_GHOST_BOUNDLESS;
	return (__u64)(mantissa + WEIR_ROW_GHOST_MANTISSA) << (power - 1);
}

/* The smallest stored count that stands for at least this many units. */
static inline __u32 weir_row_ghost_count(__u64 units)
{
	__u32 power = 0, mantissa;

	if (units < 2ull * WEIR_ROW_GHOST_MANTISSA)
		return units;
	for (int step = 16; step; step /= 2)
		if (units >> step >= WEIR_ROW_GHOST_MANTISSA) {
			/* rounded up: a remainder counts as one more */
			units = (units >> step) + ((units & ((1ull << step) - 1)) != 0);
			power += step;
		}
	if (units >= 2ull * WEIR_ROW_GHOST_MANTISSA) {
		units = (units + 1) / 2;
		power++;
	}
	mantissa = units - WEIR_ROW_GHOST_MANTISSA;
	if (power + 1 > 31)
		return WEIR_ROW_GHOST_COUNT_MASK;
	return (power + 1) << WEIR_ROW_GHOST_MANTISSA_BITS | mantissa;
}

/* ---- words ---- */

static inline __u32 weir_row_ghost_span(__u64 word)
{
	return (word & WEIR_ROW_GHOST_SPAN_MASK) - !WEIR_ROW_GHOST_IS_STAMPED(word);
}

/* `units` and `before`, as they are stored. */
static inline __u32 weir_row_ghost_stored(__u64 word)
{
	return word >> WEIR_ROW_GHOST_UNITS_SHIFT & WEIR_ROW_GHOST_COUNT_MASK;
}

static inline __u32 weir_row_ghost_before(__u64 word)
{
	return WEIR_ROW_GHOST_IS_STAMPED(word) ? 0 : word >> WEIR_ROW_GHOST_BEFORE_SHIFT & WEIR_ROW_GHOST_COUNT_MASK;
}

/* Does a word still count, if buckets up to `expired` have left the window? */
static inline int weir_row_ghost_counts(__u64 word, __u64 expired)
{
	return word && WEIR_ROW_GHOST_AGE(word, expired + WEIR_ROW_GHOST_AHEAD_MAX) <
			       WEIR_ROW_GHOST_AHEAD_MAX + weir_row_ghost_span(word);
}

/* The units of a word in a window of this many buckets that ends with `bucket`. */
static inline __u64 weir_row_ghost_in_window(__u64 word, __u64 bucket, __u32 window_cells)
{
	__u32 age = WEIR_ROW_GHOST_AGE(word, bucket);
	__u64 units = 0;

	if (age < weir_row_ghost_span(word) + window_cells)
		units += weir_row_ghost_units(weir_row_ghost_stored(word));
	if (age + 1 < window_cells)
		units += weir_row_ghost_units(weir_row_ghost_before(word));
	return units;
}

#endif
