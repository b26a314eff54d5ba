/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flows in tables that all CPUs share: throttling's planned times, warm-up per flow. A flow has one set; its words in
 * it are changed by atomics, and no packet takes a lock.
 *
 * A flow must never get two places, though two CPUs may meet a new one at once. An insertion is therefore one
 * compare-and-swap of one word a set, which says who takes which way. Only then is the way's tag written, by
 * whoever comes by first: who wants to insert another completes the last insertion before. So a CPU that finds no tag
 * of its flow, having read the word before it looked, and whose compare-and-swap then succeeds, knows that nobody
 * else has inserted the flow meanwhile (helping: Herlihy, "A methodology for implementing highly concurrent data
 * objects", 1993).
 *
 * Three things are left to the words themselves. A way that has just been taken still has its former flow's word: who
 * looks for a way to take must not go by that. A CPU may still hold the place of a flow whose way has been taken:
 * words carry bits of the tag, by which it is told from the new flow's. And one that is stalled while it
 * completes an insertion may do so when the way has had two owners since, and has its first one back: that flow
 * then loses its place, as if it had been evicted.
 */
#ifndef WEIR_SHARED_H
#define WEIR_SHARED_H

#include "flow.h"

/* Insertions by others that may get in between before ours is given up. More than a few have not been seen. */
#define WEIR_INSERT_ATTEMPTS 16

static __always_inline struct weir_flow_place weir_shared_place(const struct weir_rule *rule,
								const struct weir_packet *pkt, __u32 sets)
{
	__u64 hash = weir_hash_key(rule, pkt);
	struct weir_flow_place place = {.tag = hash >> 32, .set = hash & (sets - 1)};

	if (place.tag == 0)
		place.tag = 1;
	return place;
}

/* Who is to go from a set: a way, and whether that is an eviction. Found out of line: the verifier would look at it
 * again for each attempt.
 */
#define WEIR_VICTIM_WAY 15ull
#define WEIR_VICTIM_COUNTS 16ull

/* The lesser of two, whose difference is below 2^63. Without a branch: the verifier would follow every one, way after
 * way.
 */
static __always_inline __u64 weir_lesser(__u64 one, __u64 other)
{
	__s64 less = one - other;

	return other + (less & less >> 63);
}

static __always_inline __u64 weir_greater(__u64 one, __u64 other)
{
	return one + other - weir_lesser(one, other);
}

/* Is this the way that the insertion `word` took? 0 or 1, without a branch. */
static __always_inline __u64 weir_is_latest_way(__u64 word, __u64 way)
{
	return ((way ^ (__u64)WEIR_INSERTED_WAY(word)) - 1) >> 63;
}

/* The way with this tag, or `ways`. Also to find a free one: tag 0. */
static __always_inline __u32 weir_shared_way(const __u32 *tags, const __u32 ways, __u32 tag)
{
#pragma unroll
	for (__u32 way = 0; way < ways; way++)
		if (READ_ONCE(tags[way]) == tag)
			return way;
	return ways;
}

/* Write the tag of the insertion `word`, unless that is done, or another has come after it. */
static __always_inline void weir_shared_complete(struct weir_work *w, const __u64 *inserted, __u32 *tags,
						 const __u32 ways, __u64 word)
{
	__u32 tag = word, old;
	__u64 way = WEIR_INSERTED_WAY(word);

	OPAQUE(way);
	if (way >= ways)
		return;
	tags += way;
	OPAQUE(tags); /* made where its bound was tested */
	old = READ_ONCE(*tags);
	weir_order(w);
	/* The word is looked at after the tag: if it has not changed, neither has the way's owner. */
	if (tag && old != tag && READ_ONCE(*inserted) == word)
		__sync_val_compare_and_swap(tags, old, tag);
}

/* The latest insertion, completed: the tags read after this are not older. */
static __always_inline __u64 weir_shared_latest(struct weir_work *w, const __u64 *inserted, __u32 *tags,
						const __u32 ways)
{
	__u64 word = READ_ONCE(*inserted);

	weir_order(w);
	weir_shared_complete(w, inserted, tags, ways, word);
	return word;
}

/* Take a way for a flow that had none when `word` was the latest insertion. False: there was another since. */
static __always_inline bool weir_shared_take(struct weir_work *w, __u64 *inserted, __u32 *tags, const __u32 ways,
					     __u64 word, __u32 way, __u32 tag)
{
	__u64 mine = WEIR_INSERTED(tag, way, WEIR_INSERTED_COUNT(word) + 1);

	if (__sync_val_compare_and_swap(inserted, word, mine) != word)
		return false;
	weir_shared_complete(w, inserted, tags, ways, mine);
	return true;
}

#endif
