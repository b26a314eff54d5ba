/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ghosts. A flow that is evicted from a full set while its entry counts leaves a ghost, so that its limit still holds
 * when it returns. A ghost is one word: the flow's name (24 bits), and the time until which the entry would have
 * counted (40 bits of the clock, in steps of 2^13 ns). From this time, a kind rebuilds the flow's entry: a token bucket
 * that is full then, or a packet that is scheduled then. The time is rounded against the flow by less than 6 ms,
 * because of the steps of a set's `keep` and of a bucket's time. A flow takes another flow's ghost for its own once in
 * two million times.
 *
 * With `whenFull: aggregate`, a flow without entry and ghost uses an overflow bucket, which all such flows of its set
 * share, while a ghost that was lost would still count.
 *
 * If nothing was evicted lately, no packet looks for ghosts: one word says until when some ghost may count. (Rows of
 * windows leave more: row_ghosts.h.)
 */
#ifndef WEIR_BPF_GHOSTS_H
#define WEIR_BPF_GHOSTS_H

#include "kinds/flow_set.h"

#define WEIR_OVERFLOW_ATTEMPTS 8 /* another CPU took from the bucket each time */

/* The name, and the set of ghosts, of the flow with this tag in set `number` of the table `table`. */
static __always_inline __u64 weir_ghost_name(__u32 tag, const __u32 table)
{
	return ((__u64)(tag >> 8) ^ table * 0x9e3779u) << WEIR_GHOST_TIME_BITS;
}

static __always_inline struct weir_ghost_set *weir_ghost_set(__u32 number, __u32 table)
{
	__u32 index = weir_ghost_index(number, table == WEIR_TABLE_PENALISED_FLOWS, config.sizes[WEIR_TABLE_GHOSTS]);

	return bpf_map_lookup_elem(&ghosts, &index);
}

/* Behind the sets. */
static __always_inline struct weir_ghost_set *weir_ghost_head(void)
{
	__u32 last = WEIR_GHOST_HEAD(config.sizes[WEIR_TABLE_GHOSTS]);

	return bpf_map_lookup_elem(&ghosts, &last);
}

/* The word of a set of flows that says `what`. */
static __always_inline __u64 *weir_overflow_word(__u32 number, enum weir_overflow what)
{
	__u32 index = WEIR_GHOST_OVERFLOW(config.sizes[WEIR_TABLE_GHOSTS], number);
	struct weir_ghost_set *words = bpf_map_lookup_elem(&ghosts, &index);

	return words ? WEIR_ELEMENT(words->word, number % WEIR_OVERFLOWS * WEIR_OVERFLOW_WORDS + what) : NULL;
}

/* How many more steps of 2^13 ns the ghost counts after `now`; 0: it is over. Without a branch. */
static __always_inline __u64 weir_ghost_left(__u64 word, __u64 now)
{
	__u64 left = (word - now) & WEIR_GHOST_TIME_MASK, is_over = left >> (WEIR_GHOST_TIME_BITS - 1);

	OPAQUE(is_over);
	return left & (is_over - 1);
}

/* The flow with this tag in set `number` was evicted; its entry would have counted until the step of the clock in
 * `keep`. Leave a ghost. In a full set, it replaces the ghost that is over first, if that ghost has at most half as
 * long to go.
 */
__noinline int weir_leave_flow_ghost(struct weir_scratch *s, __u32 tag, __u32 number, __u32 table, __u32 keep)
{
	struct weir_ghost_set *set, *head = weir_ghost_head();
	__u64 now, until, left, least = ~0ull >> 1, seen, until_ns, *lost;
	__u32 steps;

	WEIR_GLOBAL(GHOSTS, s, 0);
	set = weir_ghost_set(number, table);
	steps = (keep - weir_keep_step(weir_now_ns(s))) & WEIR_KEEP_STEP_MASK;
	if (!set || !head || steps > WEIR_KEEP_STEPS_MAX)
		return 0;
	until_ns =
		(weir_now_ns(s) >> WEIR_KEEP_STEP_BITS << WEIR_KEEP_STEP_BITS) + ((__u64)steps << WEIR_KEEP_STEP_BITS);
	/* Written before the ghost is there, and for a second more, so that it is rarely written. */
	seen = READ_ONCE(head->until_ns);
	if (seen < until_ns)
		__sync_val_compare_and_swap(&head->until_ns, seen, until_ns + WEIR_NSEC_PER_SEC);
	now = weir_now_ns(s) >> WEIR_GHOST_STEP_BITS;
	until = ((until_ns >> WEIR_GHOST_STEP_BITS) + 1) & WEIR_GHOST_TIME_MASK;
#pragma nounroll
	for (__u32 way = 0; way < WEIR_GHOST_WAYS; way++) {
		least = weir_lesser(weir_ghost_left(READ_ONCE(set->word[way]), now) * WEIR_GHOST_WAYS + way, least);
		OPAQUE(least);
	}
	left = (until - now) & WEIR_GHOST_TIME_MASK;
	if (least / WEIR_GHOST_WAYS) { /* this ghost is lost, or the one that it replaces */
		__sync_fetch_and_add(&head->displaced, 1);
		lost = config.has_overflow ? weir_overflow_word(number, WEIR_OVERFLOW_LOST) : NULL;
		if (lost && weir_ghost_left(READ_ONCE(*lost), now) < left)
			WRITE_ONCE(*lost, until);
	}
	/* With a smaller factor, flows that come in turn would lose all ghosts, each just before it is needed. */
	if (least / WEIR_GHOST_WAYS * 2 <= left)
		WRITE_ONCE(set->word[least & (WEIR_GHOST_WAYS - 1)], weir_ghost_name(tag, table) | until);
	return 0;
}

/* How much longer the ghost of this flow counts, in ns, which is as long as its entry would have; 0: there is none.
 * With `lays`, the ghost is removed.
 */
__noinline __u64 weir_find_flow_ghost(struct weir_scratch *s, __u32 tag, __u32 number, __u32 table, __u32 lays)
{
	const struct weir_ghost_set *head = weir_ghost_head();
	struct weir_ghost_set *set;
	__u64 now, name;

	WEIR_GLOBAL(GHOSTS, s, 0);
	if (!head || likely(READ_ONCE(head->until_ns) <= weir_now_ns(s)))
		return 0;
	set = weir_ghost_set(number, table);
	if (!set)
		return 0;
	now = weir_now_ns(s) >> WEIR_GHOST_STEP_BITS;
	name = weir_ghost_name(tag, table);
	for (__u32 way = 0; way < WEIR_GHOST_WAYS; way++) {
		__u64 word = READ_ONCE(set->word[way]);

		if ((word ^ name) >> WEIR_GHOST_TIME_BITS || !weir_ghost_left(word, now))
			continue;
		if (lays)
			WRITE_ONCE(set->word[way], 0);
		return weir_ghost_left(word, now) << WEIR_GHOST_STEP_BITS;
	}
	return 0;
}

/*
 * A flow of set `number` has neither entry nor ghost, and its rule aggregates. While a ghost that was lost would still
 * count, the flow shares an overflow bucket with all such flows. Returns what this bucket, and so the flow, lacks, in
 * ns. One packet of the flow takes cost_ns from the bucket at once, if the deficit is then at most most_ns.
 */
__noinline __u64 weir_join_overflow(struct weir_scratch *s, __u32 number, __u32 what, __u64 cost_ns, __u64 most_ns)
{
	__u64 now, word, left_ns, *lost, *bucket;
	struct weir_ghost_set *head = weir_ghost_head();

	WEIR_GLOBAL(OVERFLOW, s && head, 0);
	if (likely(READ_ONCE(head->until_ns) <= weir_now_ns(s)))
		return 0;
	now = weir_now_ns(s) >> WEIR_GHOST_STEP_BITS;
	lost = weir_overflow_word(number, WEIR_OVERFLOW_LOST);
	bucket = weir_overflow_word(number, what == WEIR_OVERFLOW_TOKENS ? WEIR_OVERFLOW_TOKENS : WEIR_OVERFLOW_TAT);
	if (!lost || !bucket || !weir_ghost_left(READ_ONCE(*lost), now))
		return 0;
	for (int attempt = 0; attempt < WEIR_OVERFLOW_ATTEMPTS; attempt++) {
		word = READ_ONCE(*bucket);
		left_ns = weir_ghost_left(word, now) << WEIR_GHOST_STEP_BITS;
		if (left_ns + cost_ns > most_ns)
			break;
		if (__sync_val_compare_and_swap(bucket, word,
						now + ((left_ns + cost_ns) >> WEIR_GHOST_STEP_BITS) + 1) == word) {
			__sync_fetch_and_add(&head->joined, 1);
			return left_ns;
		}
	}
	return most_ns;
}

#endif
