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
 * share, while a ghost that was lost would still count. The bucket lacks what the lost ghost did, so the flow whose
 * ghost that was gets no more than with it.
 *
 * The ghost of a flow is left before its entry is taken away, and removed after the flow has a new one
 * (weir_take_entry, weir_publish_flow). So at any moment, the entry or the ghost shows all that was admitted.
 *
 * If nothing was evicted lately, no packet looks for ghosts: one word says until when some ghost may count. (Rows of
 * windows leave more: row_ghosts.h.)
 */
#ifndef WEIR_BPF_GHOSTS_H
#define WEIR_BPF_GHOSTS_H

#include "kinds/flow_set.h"

#define WEIR_OVERFLOW_ATTEMPTS 8 /* another CPU took from the bucket each time */
#define WEIR_OVERFLOW_RAISES 2	 /* likewise */
/* Attempts to take an entry away. One fails if its owner sends on another CPU, or another set's ghosts change. */
#define WEIR_TAKE_ATTEMPTS 8

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

/* A ghost that would have counted for this many more steps is lost: flows of the set that have neither entry nor ghost
 * lack as much. It may have been of either kind.
 */
static __always_inline void weir_raise_overflow(__u32 number, __u64 left, __u64 now)
{
#pragma unroll
	for (int what = WEIR_OVERFLOW_LOST; what <= WEIR_OVERFLOW_TAT; what++) {
		__u64 *word = weir_overflow_word(number, what), old;

		for (int attempt = 0; word && attempt < WEIR_OVERFLOW_RAISES; attempt++) {
			old = READ_ONCE(*word);
			if (weir_ghost_left(old, now) >= left ||
			    __sync_val_compare_and_swap(word, old, (now + left) & WEIR_GHOST_TIME_MASK) == old)
				break;
		}
	}
}

/* How much it would hurt to lose this ghost: 0 if it is that of this name, 1 if it is over, otherwise 1 more than the
 * steps that it still counts.
 */
static __always_inline __u64 weir_ghost_rank(__u64 word, __u64 name, __u64 now)
{
	__u64 is_other = -((word ^ name) >> WEIR_GHOST_TIME_BITS) >> 63;

	OPAQUE(is_other);
	return (weir_ghost_left(word, now) + 1) * is_other;
}

/* Among half of a set's ways: the least rank, with its way in the lowest bits. Few ghosts are over in the same step of
 * the clock, since they are dated by the time when their flows were evicted.
 */
static __always_inline __u64 weir_least_ghost(const struct weir_ghost_set *set, __u32 first, __u64 name, __u64 now)
{
	__u64 least = ~0ull >> 1;

#pragma nounroll
	for (__u32 way = first; way < first + WEIR_GHOST_WAYS / 2; way++) {
		least = weir_lesser(weir_ghost_rank(READ_ONCE(set->word[way]), name, now) * WEIR_GHOST_WAYS + way,
				    least);
		OPAQUE(least);
	}
	return least;
}

/* The flow with this tag in set `number` is about to be evicted; its entry would have counted until the step of the
 * clock in `keep`. Leave a ghost, in place of an earlier one of the flow. In a full set, it replaces the ghost that is
 * over first. In one half of the set, it does so only if that ghost has at most half as long to go: otherwise flows
 * that come in turn would lose all ghosts, each just before it is needed. The other half takes all ghosts that count as
 * long as those there: otherwise a flow that begins in a flood of new flows would leave none, as all count as long as
 * its own. False: another CPU has changed the set; try again.
 */
__noinline int weir_leave_flow_ghost(struct weir_scratch *s, __u32 tag, __u32 number, __u32 table, __u32 keep)
{
	struct weir_ghost_set *set, *head = weir_ghost_head();
	__u64 now, left, least, kept, rank, cost, seen, until_ns, name, *at, old;
	__u32 steps;

	WEIR_GLOBAL(GHOSTS, s, true);
	set = weir_ghost_set(number, table);
	steps = (keep - weir_keep_step(weir_now_ns(s))) & WEIR_KEEP_STEP_MASK;
	if (!set || !head || steps - 1 >= WEIR_KEEP_STEPS_MAX)
		return true;
	until_ns =
		(weir_now_ns(s) >> WEIR_KEEP_STEP_BITS << WEIR_KEEP_STEP_BITS) + ((__u64)steps << WEIR_KEEP_STEP_BITS);
	/* Written before the ghost is there, and for a second more, so that it is rarely written. */
	seen = READ_ONCE(head->until_ns);
	if (seen < until_ns && __sync_val_compare_and_swap(&head->until_ns, seen, until_ns + WEIR_NSEC_PER_SEC) != seen)
		return false;
	now = weir_now_ns(s) >> WEIR_GHOST_STEP_BITS;
	left = (((until_ns >> WEIR_GHOST_STEP_BITS) + 1) - now) & WEIR_GHOST_TIME_MASK;
	name = weir_ghost_name(tag, table);
	least = weir_least_ghost(set, 0, name, now);
	kept = weir_least_ghost(set, WEIR_GHOST_WAYS / 2, name, now);
	rank = kept / WEIR_GHOST_WAYS;
	cost = rank ? 2 * rank - 1 : 0; /* twice as long to go */
	if (cost < least / WEIR_GHOST_WAYS)
		least = kept;
	else
		cost = least / WEIR_GHOST_WAYS;
	rank = least / WEIR_GHOST_WAYS;
	at = &set->word[least & (WEIR_GHOST_WAYS - 1)];
	old = READ_ONCE(*at);
	if (weir_ghost_rank(old, name, now) != rank)
		return false;
	if (rank > 1) { /* this ghost is lost, or the one that it replaces */
		const bool is_kept = cost - 1 <= left;

		if (config.has_overflow)
			weir_raise_overflow(number, is_kept ? rank - 1 : left, now);
		__sync_fetch_and_add(&head->displaced, 1);
		if (!is_kept)
			return true;
	} else if (!rank) {
		/* Never the same word again: the CPU that inserted the flow last may be about to remove that. */
		left = weir_greater(weir_ghost_left(old, now) + 1, left);
	}
	return __sync_val_compare_and_swap(at, old, name | ((now + left) & WEIR_GHOST_TIME_MASK)) == old;
}

/*
 * Take what the way that we have claimed still counts for its owner out of its entry, which is the word `at`, and leave
 * a ghost of it; `at` then becomes `fresh`, a word by which no packet is admitted, and which only we change. The ghost
 * is left first, and says all that the word does: `keep` is raised before the word is swapped in, and read here after
 * the word; if the word has changed meanwhile, this starts over. False: it did each time, and the claim is released.
 */
static __always_inline bool weir_take_entry(struct weir_scratch *s, struct weir_flow_set *set, __u64 *at, __u64 fresh,
					    __u32 number, const __u32 table)
{
	__u32 way = WEIR_INSERTED_WAY(s->place.latest);
	const __u32 *owner = WEIR_ELEMENT(set->tag, way), *keep = WEIR_ELEMENT(set->keep, way);

	for (int attempt = 0; owner && keep && attempt < WEIR_TAKE_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(*at);
		__u32 tag, until;

		weir_order(s);
		tag = READ_ONCE(*owner);
		until = READ_ONCE(*keep);
		if (tag && !weir_leave_flow_ghost(s, tag, number, table, until))
			continue;
		if (__sync_val_compare_and_swap(at, word, fresh) == word) {
			weir_reset_keep(s, set, way, until);
			return true;
		}
	}
	weir_release_flow_claim(s, set);
	return false;
}

/* How much longer the ghost of this flow counts, in ns, which is as long as its entry would have; 0: there is none.
 * s->place.ghost then is the ghost.
 */
__noinline __u64 weir_find_flow_ghost(struct weir_scratch *s, __u32 tag, __u32 number, __u32 table)
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
		s->place.ghost = word;
		s->place.ghost_way = way;
		return weir_ghost_left(word, now) << WEIR_GHOST_STEP_BITS;
	}
	return 0;
}

/* The entry of the flow is published, and continues with s->place.ghost: remove that, unless the flow was evicted again
 * and its ghost has changed.
 */
__noinline int weir_remove_flow_ghost(struct weir_scratch *s, __u32 number, __u32 table)
{
	struct weir_ghost_set *set;
	__u64 *at;

	WEIR_GLOBAL(GHOSTS, s && s->place.ghost, 0);
	set = weir_ghost_set(number, table);
	at = set ? WEIR_ELEMENT(set->word, s->place.ghost_way) : NULL;
	if (at)
		__sync_val_compare_and_swap(at, s->place.ghost, 0);
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
