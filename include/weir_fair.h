/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair shares (docs/fair.md): one threshold, shared by the children of a flow. This header lays out what the program
 * keeps of children and parents, and has the arithmetic that finds the level, for the program and for tests.
 *
 * The level L is the largest for which the sum of min(offered, L) over all children is at most what the parent may
 * admit. That sum is also the number of units whose ordinal within their child is at most L. So each packet of a
 * contended parent is counted at its ordinal, in a histogram with logarithmic buckets, and nobody walks over children.
 */
#ifndef WEIR_FAIR_H
#define WEIR_FAIR_H

#include "weir_state.h"

/* ---- children ---- */

/* weir_fair_child.offered, from the lowest bit: the units offered in an interval, three flags, and the interval's
 * number, cut to 21 bits.
 */
#define WEIR_FAIR_UNITS ((1ull << 40) - 1)
#define WEIR_FAIR_NEW (1ull << 40)     /* it offered nothing in the two intervals before */
#define WEIR_FAIR_COUNTED (1ull << 41) /* its parent's counts of this interval have it */
#define WEIR_FAIR_REFUSED (1ull << 42) /* some of it was above the level */
#define WEIR_FAIR_STAMP_SHIFT 43

/* A child, in map `fair_shares`. CPUs change it without locks; two that do so at once may lose a packet's count. */
struct weir_fair_child {
	__u64 offered;
	__u64 before; /* the last of these words of an earlier interval */
	__u64 tat_ns; /* when what it has been admitted is used up, at the level in force */
	__u32 parent_tag;
	__u32 parent_set;
	__u32 weight; /* it counts as so many children; as of its last interval's first packet */
	__u32 pad;
};

struct weir_fair_set {
	struct weir_flow_set flows;
	struct weir_fair_child child[WEIR_FLOW_WAYS];
	__u64 pad[5];
};
_Static_assert(sizeof(struct weir_fair_set) == 384, "six cache lines");

/* ---- parents ---- */

/* Buckets of ordinals: one for each below eight, then eight for each doubling, up to 2^20. Larger ordinals are shifted
 * down into this range; those above the parent's threshold are not counted, since no level is above it.
 */
#define WEIR_FAIR_ORDINAL_BITS 20
#define WEIR_FAIR_OCTAVES (1 + WEIR_FAIR_ORDINAL_BITS - 3)
#define WEIR_FAIR_BUCKETS (8 * WEIR_FAIR_OCTAVES)

/* What was offered to a contended parent in one interval. */
struct weir_fair_counts {
	__u64 interval; /* its number + 1; 0: none */
	__u64 offered;	/* units */
	__u64 lost;	/* units that the parent's own window dropped */
	__u64 children; /* new ones included */
	__u64 newcomers;
	__u64 newcomer_units;
	__u64 joiners;			/* the sum of joined[] */
	__u64 units[WEIR_FAIR_BUCKETS]; /* by their ordinal, without newcomers' */
	/* Children by what they had offered in this interval before they were first counted. */
	__u32 joined[WEIR_FAIR_BUCKETS];
};

#define WEIR_FAIR_LEVEL_BITS 16 /* of fraction */

struct weir_fair_parent {
	__u64 contended; /* the latest interval in which a packet was dropped, + 1; 0: none */
	__u64 step;	 /* when the level was worked out last, in steps */
	__u64 level;	 /* units of an interval, with WEIR_FAIR_LEVEL_BITS of fraction; 0: children are not limited */
	__u64 since;	 /* the interval in which there began to be a level */
	__u64 limit;	 /* units of an interval, when the level was worked out */
	__u64 margin;	 /* the level aims at so much less */
	__u64 margin_at; /* the interval in which that has changed last */
	__u64 cost;	 /* of a unit under the level, in 1/256 ns */
	__u64 newcomer_cost;
	__u64 newcomer_tat_ns;
	struct weir_flow_key key; /* whose it is, for commands */
	__u32 rule_slot;
	__u32 shift;			   /* of the ordinals that are counted, for commands */
	struct weir_fair_counts counts[2]; /* of an interval with an even number, and an odd one */
};

/* Contended parents, and those that were until their place is needed. */
#define WEIR_FAIR_PARENT_WAYS 12
struct weir_fair_parent_set {
	__u32 tag[WEIR_FAIR_PARENT_WAYS]; /* 0: free */
	struct weir_fair_parent parent[WEIR_FAIR_PARENT_WAYS];
};
#define WEIR_FAIR_PARENT_SETS 256 /* 3,072 parents. Chosen, not derived */

/*
 * Map `fair_shares`: first the children, in chunks of sets, then the sets of parents. One map, because a program can
 * use 64 of them (MAX_USED_MAPS of the kernel), and ours uses as many.
 */
#define WEIR_FAIR_SETS_PER_CHUNK 128
struct weir_fair_chunk {
	union {
		struct weir_fair_set children[WEIR_FAIR_SETS_PER_CHUNK];
		struct weir_fair_parent_set parents;
	};
};
_Static_assert(sizeof(struct weir_fair_chunk) == WEIR_FAIR_SETS_PER_CHUNK * sizeof(struct weir_fair_set),
	       "parents fit into a chunk");
/* Where the parents begin, and all elements, for so many sets of children. */
#define WEIR_FAIR_FIRST_PARENTS(sets) (((sets) + WEIR_FAIR_SETS_PER_CHUNK - 1) / WEIR_FAIR_SETS_PER_CHUNK)
#define WEIR_FAIR_CHUNKS(sets) (WEIR_FAIR_FIRST_PARENTS(sets) + WEIR_FAIR_PARENT_SETS)

/* ---- what a rule says: weir_rule.fair, of the hidden rule that describes its children ---- */

struct weir_fair_terms {
	__u64 interval_ns; /* over which offers are counted: the rule's interval, or so many that they last 100 ms */
	__u64 step_ns;	   /* how often the level is worked out */
	__u32 aim_num;	   /* what may be admitted in such an interval: the threshold, times num / den */
	__u32 aim_den;
	__u32 scale;  /* intervals of the rule */
	__u16 shift;  /* of ordinals */
	__u16 weighs; /* ends whose labels have weights: 1 the source, 2 the destination, both multiply */
};

/* Offers are counted over at least this long, in whole intervals of the rule: so many. Chosen, not derived. */
#define WEIR_FAIR_INTERVAL_NS_MIN (WEIR_NSEC_PER_SEC / 10)
static inline __u32 weir_fair_scale(__u64 interval_ns)
{
	return (WEIR_FAIR_INTERVAL_NS_MIN + interval_ns - 1) / interval_ns;
}

/* ---- the level ---- */

/* The bucket of an ordinal; WEIR_FAIR_BUCKETS or more: it is not counted. Without branches, because the verifier would
 * follow each side.
 */
static inline __u32 weir_fair_bucket(__u64 ordinal, __u32 shift)
{
	__u64 left, step, exponent;

	ordinal >>= shift;
	if (ordinal >> WEIR_FAIR_ORDINAL_BITS)
		return WEIR_FAIR_BUCKETS;
	if (ordinal < 8)
		return ordinal;
	left = ordinal;
	exponent = (0xffffull - left) >> 63 << 4;
	left >>= exponent;
	step = (0xffull - left) >> 63 << 3;
	left >>= step;
	exponent += step;
	step = (0xfull - left) >> 63 << 2;
	left >>= step;
	exponent += step;
	step = (0x3ull - left) >> 63 << 1;
	left >>= step;
	exponent += step + (left >> 1);
	return 8 * (exponent - 2) + (ordinal >> (exponent - 3) & 7);
}

/* The ordinal of a unit of a child that counts as `weight` children: so many of its units have each. */
static inline __u64 weir_fair_ordinal(__u64 units, __u32 weight)
{
	return (units + weight - 1) / weight;
}

/* The largest ordinal of a bucket. */
static inline __u64 weir_fair_top(__u32 bucket, __u32 shift)
{
	__u64 next = bucket < 8 ? bucket + 1 : (8ull + (bucket & 7) + 1) << (bucket / 8 - 1);

	return (next << shift) - 1;
}

/* For how many children newcomers are taken, whose level they share: one for each 16. Otherwise each source of a
 * spoofed flood, with its one packet, would lower the level as much as a child that has been there. But a few count one
 * by one: they may be heavy, and will have been there in the next interval, whose level would be too high until then.
 */
#define WEIR_FAIR_NEWCOMERS 16
#define WEIR_FAIR_NEWCOMERS_ALONE 8 /* chosen, not derived */
static inline __u64 weir_fair_groups(__u64 newcomers)
{
	__u64 groups = (newcomers + WEIR_FAIR_NEWCOMERS - 1) / WEIR_FAIR_NEWCOMERS;

	if (newcomers < WEIR_FAIR_NEWCOMERS_ALONE)
		return newcomers;
	return groups < WEIR_FAIR_NEWCOMERS_ALONE ? WEIR_FAIR_NEWCOMERS_ALONE : groups;
}

/* Looking for the level, from the lowest bucket on. */
struct weir_fair_search {
	__u64 aim;	 /* what the level may admit */
	__u64 groups;	 /* for how many children newcomers are taken */
	__u64 newcomers; /* their units */
	__u64 joined;	 /* children that joined above the bucket */
	__u64 units;	 /* of ordinals up to its top */
	__u64 last;	 /* its top */
	__u64 last_sum;	 /* what that as a level would admit */
	__u64 level;
};

/* Look in the next eight buckets, of an octave below WEIR_FAIR_OCTAVES. Returns whether the level is there. */
static inline int weir_fair_search_octave(const struct weir_fair_counts *counts, struct weir_fair_search *search,
					  __u32 octave, __u32 shift)
{
	__u64 width = 1ull << ((octave ? octave - 1 : 0) + shift), top = octave ? search->last : -1ull, sum,
	      of_newcomers;

	for (__u32 i = 0; i < 8; i++) {
		const __u32 bucket = octave * 8 + i;
		__u64 joined;

		__asm__ volatile("" ::: "memory"); /* else clang keeps all of *search on the stack */
		top += width;
		joined = counts->joined[bucket];
		if (joined > search->joined) /* another CPU has counted since `joiners` was read */
			joined = search->joined;
		search->joined -= joined;
		/* Those that joined in this bucket, in its middle. */
		search->units += counts->units[bucket] + joined * ((search->last + top + 1) / 2);
		of_newcomers = search->groups * top;
		if (of_newcomers > search->newcomers)
			of_newcomers = search->newcomers;
		sum = search->units + search->joined * top + of_newcomers;
		if (sum > search->aim) {
			search->level = search->last << WEIR_FAIR_LEVEL_BITS;
			search->level += ((search->aim - search->last_sum) << WEIR_FAIR_LEVEL_BITS) /
					 (sum - search->last_sum) * (top - search->last);
			search->level += !search->level;
			return 1;
		}
		search->last = top;
		search->last_sum = sum;
	}
	return 0;
}

/* The level of what these counts have; 0: all of it is at most `aim`, or nobody offered anything. The program's
 * search_octave is out of line, so that the verifier looks at eight buckets, not at all of them; `search` is not on its
 * stack.
 */
static __always_inline __u64 weir_fair_find_level(const struct weir_fair_counts *counts, __u64 aim, __u32 shift,
						  struct weir_fair_search *search,
						  int (*search_octave)(const struct weir_fair_counts *,
								       struct weir_fair_search *, __u32, __u32))
{
	search->aim = aim;
	search->groups = weir_fair_groups(counts->newcomers);
	search->newcomers = counts->newcomer_units;
	search->joined = counts->joiners;
	search->units = search->last = search->last_sum = search->level = 0;
	for (__u32 octave = 0; octave < WEIR_FAIR_OCTAVES; octave++)
		if (search_octave(counts, search, octave, shift))
			break;
	return search->level;
}

/* How many children want more than this level, each as many as its weight. New ones are left out. */
static inline __u64 weir_fair_above(const struct weir_fair_counts *counts, __u64 level_units, __u32 shift)
{
	const __u32 bucket = weir_fair_bucket(level_units, shift);
	__u64 above, before;

	if (bucket >= WEIR_FAIR_BUCKETS)
		return 0;
	/* Who wants more has all units of the level's bucket. */
	before = bucket ? weir_fair_top(bucket - 1, shift) : 0;
	above = counts->units[bucket] / (weir_fair_top(bucket, shift) - before ?: 1);
	for (__u32 i = bucket + 1; i < WEIR_FAIR_BUCKETS; i++)
		above += counts->joined[i];
	return above;
}

/* How much of an interval a unit takes, in 1/256 ns, if `level` units may be admitted in one. At most so much that the
 * product with the largest packet fits into 64 bits.
 */
#define WEIR_FAIR_COST_BITS 8
#define WEIR_FAIR_COST_MAX (1ull << 47)
static inline __u64 weir_fair_cost(__u64 level, __u64 interval_ns)
{
	const __u32 bits = WEIR_FAIR_LEVEL_BITS + WEIR_FAIR_COST_BITS;
	__u64 cost = interval_ns >> (64 - bits) ? ((interval_ns << WEIR_FAIR_LEVEL_BITS) / level) << WEIR_FAIR_COST_BITS
						: (interval_ns << bits) / level;

	return cost < WEIR_FAIR_COST_MAX ? cost : WEIR_FAIR_COST_MAX;
}

#endif
