/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Breakers: which one is a packet's, making one, and who leaves a full set. A resource without a flow key has one
 * breaker, which is "lone". Breakers are found by number: what functions hand on, and requests remember.
 */
#ifndef WEIR_BREAKER_TABLE_H
#define WEIR_BREAKER_TABLE_H

#include "connection_state.h"
#include "flow_set.h"

#define WEIR_NO_BREAKER (~0u)

static __always_inline struct weir_breaker_set *weir_breaker_set(__u32 index)
{
	return bpf_map_lookup_elem(&breakers, &index);
}

static __always_inline struct weir_breaker *weir_breaker_by_number(__u32 number)
{
	__u32 slot = number & (WEIR_BREAKER_LONE - 1);
	struct weir_breaker_set *set;

	if (number & WEIR_BREAKER_LONE)
		return bpf_map_lookup_elem(&lone_breakers, &slot);
	set = weir_breaker_set(number / 8);
	return set ? WEIR_ELEMENT(set->breaker, number & 7) : NULL;
}

/* ---- the state word ---- */

static __always_inline __u64 weir_breaker_word(enum weir_breaker_kind kind, __u32 tag, __u64 rest)
{
	return (__u64)kind << WEIR_BREAKER_KIND_SHIFT | WEIR_BREAKER_CHECK(tag) | (rest & WEIR_BREAKER_TIME_MASK);
}

/* Not before `until` of an open breaker? The word has its lowest bits, and means the nearest time that ends in them. */
static __always_inline bool weir_is_retry_due(__u64 word, __u64 now_ns)
{
	return (__s64)((now_ns - word) << (64 - WEIR_BREAKER_TIME_BITS)) >= 0;
}

/* ---- making one ---- */

/* Begin anew: closed, with an empty window, and nobody waits. The ring goes on from where it was, so that requests of a
 * former owner find that their groups are gone.
 */
__noinline int weir_make_breaker(struct weir_scratch *s, struct weir_breaker *breaker, __u32 place)
{
	WEIR_GLOBAL(BREAKERS, s && breaker, 0);
	WRITE_ONCE(breaker->state, weir_breaker_word(WEIR_BREAKER_CLOSED, s->breaker_tag, 0));
	WRITE_ONCE(breaker->head, READ_ONCE(breaker->tail));
	breaker->newest = 0;
	breaker->good = 0;
	breaker->last = 0;
	breaker->changes = 0;
	breaker->shared = 0;
#pragma unroll
	for (int i = 0; i < WEIR_BREAKER_BUCKETS_MAX; i++)
		WRITE_ONCE(breaker->cell[i], 0);
	weir_make_key(&breaker->key, weir_rule(place), &s->packet);
	breaker->slot = weir_rule(place)->slot;
	WRITE_ONCE(breaker->made_ns, weir_monotonic_ns(s) + 1);
	return 0;
}

/*
 * The victim. First one that nothing is left of; then the one that was closed and not heard of for longest; then, in
 * the same order, the others: an open breaker is what a flood of new flows must not push out. A way that was just
 * taken comes last of all.
 */
#define WEIR_BREAKER_RANK_BUSY (1ull << 60)
#define WEIR_BREAKER_RANK_SHUT (1ull << 61)

__noinline __u64 weir_choose_breaker(struct weir_scratch *s, const struct weir_breaker_set *set, __u64 latest)
{
	__u64 least = ~0ull >> 1, now_ns;

	WEIR_GLOBAL(BREAKERS, s && set, 0);
	now_ns = weir_monotonic_ns(s);
#pragma unroll
	for (__u32 way = 0; way < WEIR_BREAKER_WAYS; way++) {
		const struct weir_breaker *breaker = &set->breaker[way];
		/* half a turn of 58 bits before now is 0 */
		__u64 rank = ((READ_ONCE(set->over_ns[way]) - now_ns + (1ull << 56)) & ((1ull << 57) - 1));
		__u64 is_over = (rank - (1ull << 56) - 1) >> 63;
		__u64 waits = READ_ONCE(breaker->tail) - READ_ONCE(breaker->head);
		__u64 is_shut = -(READ_ONCE(breaker->state) >> WEIR_BREAKER_KIND_SHIFT) >> 63;

		is_shut |= weir_is_latest_way(latest, way);
		rank += ((1 - is_over) | -waits >> 63) * WEIR_BREAKER_RANK_BUSY + is_shut * WEIR_BREAKER_RANK_SHUT;
		least = weir_lesser(((rank >> 3) & ~7ull) + way, least);
		OPAQUE(least);
	}
	return WEIR_WAY(least & 7) | (least >= WEIR_BREAKER_RANK_BUSY >> 3 ? WEIR_WAY_EVICTS : 0);
}

static __always_inline __u32 weir_breaker_victim(struct weir_scratch *s, void *set, __u64 latest, void *context)
{
	return weir_choose_breaker(s, set, latest);
}

/* Out of line, so that the verifier looks at one attempt and not at each. */
__noinline __u32 weir_try_insert_breaker(struct weir_scratch *s, struct weir_breaker_set *set)
{
	WEIR_GLOBAL(BREAKERS, s && set, WEIR_WAY_BUSY);
	return weir_try_insert_tag(s, set, WEIR_BREAKER_WAYS, s->breaker_tag, weir_breaker_victim, NULL);
}

/* Insert the breaker of s->breaker_tag. Returns its way, or one beyond the last. */
__noinline __u32 weir_insert_breaker(struct weir_scratch *s, struct weir_breaker_set *set, __u32 place)
{
	struct weir_breaker *breaker;
	__u32 way = WEIR_WAY_BUSY;

	WEIR_GLOBAL(BREAKERS, s && set, WEIR_BREAKER_WAYS);
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS && way & WEIR_WAY_BUSY; attempt++)
		way = weir_try_insert_breaker(s, set);
	if (way & WEIR_WAY_BUSY)
		return WEIR_BREAKER_WAYS;
	breaker = WEIR_ELEMENT(set->breaker, WEIR_WAY(way));
	if (way & WEIR_WAY_IS_NEW && breaker)
		weir_make_breaker(s, breaker, place);
	if (way & WEIR_WAY_EVICTS)
		weir_count_eviction(weir_rule(place)->slot);
	return WEIR_WAY(way);
}

/* ---- finding one ---- */

/* The number of this packet's breaker, and with `makes` of a new one if it has none; else WEIR_NO_BREAKER.
 * s->breaker_tag is then its flow's.
 */
__noinline __u32 weir_get_breaker(struct weir_scratch *s, __u32 place, __u32 makes)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_breaker_set *set;
	struct weir_breaker *breaker;
	struct weir_flow_id id;
	__u32 number, way;

	WEIR_GLOBAL(BREAKERS, s, WEIR_NO_BREAKER);
	s->breaker_tag = 0;
	number = WEIR_BREAKER_LONE | rule->slot;
	if (rule->key_fields) {
		id = weir_shared_id(weir_flow_hash(s, rule), config.sizes[WEIR_TABLE_BREAKERS]);
		s->breaker_tag = id.tag;
		set = weir_breaker_set(id.set);
		if (!set)
			return WEIR_NO_BREAKER;
		way = weir_find_tag(set, WEIR_BREAKER_WAYS, id.tag);
		FORGET(s->forgotten, way);
		if (way >= WEIR_BREAKER_WAYS && makes)
			way = weir_insert_breaker(s, set, place);
		if (way >= WEIR_BREAKER_WAYS)
			return WEIR_NO_BREAKER;
		number = id.set * 8 + way;
	}
	breaker = weir_breaker_by_number(number);
	if (!breaker)
		return WEIR_NO_BREAKER;
	/* Zeros; or another rule had the slot when this was made. */
	if (unlikely(READ_ONCE(breaker->made_ns) <= rule->breaker.since_ns))
		weir_make_breaker(s, breaker, place);
	return number;
}

/* Write until when what the breaker of a flow has counted by now may matter. */
static __always_inline void weir_extend_breaker(struct weir_scratch *s, __u32 number, const struct weir_rule *rule)
{
	__u64 interval_ns = rule->breaker.bucket_ns * rule->breaker.buckets, *over_ns;
	struct weir_breaker_set *set;

	if (number & WEIR_BREAKER_LONE)
		return;
	set = weir_breaker_set(number / 8);
	over_ns = set ? WEIR_ELEMENT(set->over_ns, number & 7) : NULL;
	if (over_ns)
		WRITE_ONCE(*over_ns, weir_monotonic_ns(s) + config.request_timeout_ns + interval_ns);
}

#endif
