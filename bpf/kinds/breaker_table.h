/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds a packet's breaker, makes one, and chooses which breaker a full set loses. A resource without a flow key has
 * one breaker, called "lone". Functions pass breakers by number, and requests remember that number.
 */
#ifndef WEIR_BREAKER_TABLE_H
#define WEIR_BREAKER_TABLE_H

#include "kinds/connection_state.h"
#include "kinds/flow_set.h"

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

/* Has the time `until` of an open breaker come? The word has only its lowest bits, and means the nearest time that ends
 * in them.
 */
static __always_inline bool weir_is_retry_due(__u64 word, __u64 now_ns)
{
	return (__s64)((now_ns - word) << (64 - WEIR_BREAKER_TIME_BITS)) >= 0;
}

/* ---- making one ---- */

/* Start over: closed, with an empty window and no waiting requests. The ring keeps its position, so that requests of a
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
	weir_make_key(&breaker->key, weir_rule(place), s);
	breaker->slot = weir_rule(place)->slot;
	WRITE_ONCE(breaker->made_ns, weir_monotonic_ns(s) + 1);
	return 0;
}

/* Make the breaker of the way that s->breaker_tag has claimed, and show it. What is evicted leaves nothing. */
static __always_inline void weir_begin_breaker(struct weir_scratch *s, struct weir_breaker_set *set, __u32 way,
					       __u32 place)
{
	struct weir_breaker *breaker = WEIR_ELEMENT(set->breaker, way);
	const __u32 *keep = WEIR_ELEMENT(set->flows.keep, way);
	__u32 before;

	if (!breaker || !keep)
		return;
	before = READ_ONCE(*keep);
	weir_make_breaker(s, breaker, place);
	weir_reset_keep(s, &set->flows, way, before);
	weir_publish_flow(s, &set->flows);
}

/* ---- finding one ---- */

/* The number of this packet's breaker, or WEIR_NO_BREAKER. With `makes`, a missing breaker is made. Also sets
 * s->breaker_tag to the tag of its flow.
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
		way = weir_way_of(&set->flows, id.tag);
		if (way == WEIR_FLOW_WAYS && makes)
			way = weir_claim_flow(s, &set->flows, id.tag, rule->slot);
		FORGET(s->forgotten, way);
		if (way & WEIR_WAY_IS_NEW)
			weir_begin_breaker(s, set, WEIR_WAY(way), place);
		way = WEIR_WAY(way);
		if (way >= WEIR_FLOW_WAYS)
			return WEIR_NO_BREAKER;
		number = id.set * 8 + way;
	}
	breaker = weir_breaker_by_number(number);
	if (!breaker)
		return WEIR_NO_BREAKER;
	/* The entry is all zeros, or was made when another rule had the slot. */
	if (unlikely(READ_ONCE(breaker->made_ns) <= rule->breaker.since_ns))
		weir_make_breaker(s, breaker, place);
	return number;
}

/* A flow's breaker is over when its counts no longer matter. Until then, its latest request may fail by its time-out
 * and open the breaker. A flood of new flows must not evict breakers that are not closed. So these are evicted last,
 * like refused flows in other tables, and are over WEIR_KEEP_NS_MAX after their latest opening.
 */
static __always_inline void weir_keep_breaker(struct weir_scratch *s, __u32 number, const struct weir_breaker *breaker,
					      const struct weir_rule *rule)
{
	__u64 matters_ns = weir_greater(rule->breaker.bucket_ns * rule->breaker.buckets, rule->breaker.retry_ns);
	bool is_shut = READ_ONCE(breaker->state) >> WEIR_BREAKER_KIND_SHIFT;
	struct weir_breaker_set *set;

	if (number & WEIR_BREAKER_LONE)
		return;
	set = weir_breaker_set(number / 8);
	if (!set)
		return;
	matters_ns = is_shut ? WEIR_KEEP_NS_MAX : matters_ns + config.request_timeout_ns;
	weir_keep_until(s, &set->flows, number & 7, weir_monotonic_ns(s) + matters_ns);
	if (is_shut)
		weir_keep_refused(&set->flows, number & 7);
}

#endif
