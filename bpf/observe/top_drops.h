/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Top drops are the flows with the most drops: how many packets of each flow a rule has blocked, or would have blocked
 * if it did not observe. Every CPU has a table of its own, with sets of 14 flows; each flow belongs to one set. While a
 * set has room, its counts are exact. When it is full, a flow without a slot replaces a flow that has no more drops
 * than the set has missed. If there is no such flow, the drop is missed. So no flow's count is too low by more than its
 * set has missed, and that is at most a fifteenth of the set's drops (Misra and Gries, "Finding repeated elements",
 * 1982; the bound is that of space-saving, as Agarwal et al. show in "Mergeable summaries", 2012).
 *
 * A run of drops of one flow is counted in its slot when it ends; until then, readers add it (weir_drop_run). It lies
 * outside of what begins with a load, so a load settles the run of the one before.
 *
 * A flow without drops for an hour gives its slot to another flow, and starts from zero if it returns. Otherwise
 * yesterday's flood would keep out today's. No verdict depends on this file. It takes no lock, and reads no clock but
 * the tick.
 */
#ifndef WEIR_TOP_DROPS_H
#define WEIR_TOP_DROPS_H

#include "kinds/flow_set.h"

/* How often a full set is searched for flows that have been quiet for an hour. Chosen, not derived. */
#define WEIR_TOP_DROPS_SEARCH_NS WEIR_NSEC_PER_SEC

/* How many drops of a tick are counted one by one: 20,000 a second on each CPU. Beyond that, a run of drops of one flow
 * is counted when it ends, and other drops are sampled, which costs a line of the table for one drop in sixteen.
 * Chosen, not derived.
 */
#define WEIR_DROP_BUDGET_NS 50000

static __always_inline struct weir_top_drops_set *weir_top_drops_at(__u32 index)
{
	return bpf_map_lookup_elem(&top_drops, &index);
}

/* The packet's time, in the unit of slots. */
static __always_inline __u32 weir_drop_time(const struct weir_scratch *s)
{
	return s->tick_ns >> WEIR_TOP_DROPS_TIME_SHIFT;
}

/* Is this time that long ago? In a capture, the clock may go back. */
static __always_inline bool weir_is_drop_past(__u32 now, __u32 then, __u64 ns)
{
	return (__s32)(now - then) >= (__s32)(ns >> WEIR_TOP_DROPS_TIME_SHIFT);
}

/* ---- a place for a flow that has none ---- */

/* The way with the lowest sum of packets, and that sum times 16; that of a free way counts as 0. Among equal sums it is
 * the first. The flow that replaces it has more than the set has missed, so the next one replaces another.
 */
static __always_inline __u64 weir_least_dropped(const struct weir_top_drops_set *set)
{
	__u64 least = ~0ull >> 1;

#pragma unroll
	for (__u32 way = 0; way < WEIR_TOP_DROPS_WAYS; way++) {
		__u64 packets = set->sum[way].packets * weir_top_bit(-(__u64)set->tag[way]);

		least = weir_lesser(packets * 16 + way, least);
		OPAQUE(least); /* one way after the other: otherwise clang keeps all of them on the stack */
	}
	return least;
}

/* The way of a flow that has been quiet long enough to be forgotten, or WEIR_TOP_DROPS_WAYS. */
static __always_inline __u32 weir_find_quiet_dropped(struct weir_top_drops_set *set, __u32 now)
{
	if (!weir_is_drop_past(now, set->searched_at, WEIR_TOP_DROPS_SEARCH_NS))
		return WEIR_TOP_DROPS_WAYS;
	set->searched_at = now;
#pragma unroll
	for (__u32 way = 0; way < WEIR_TOP_DROPS_WAYS; way++)
		if (weir_is_drop_past(now, set->last[way], WEIR_TOP_DROPS_QUIET_NS))
			return way;
	return WEIR_TOP_DROPS_WAYS;
}

/* The way for a new flow, or WEIR_TOP_DROPS_WAYS if its drop is to be missed. */
static __always_inline __u32 weir_choose_dropped(struct weir_top_drops_set *set, __u32 now, __u32 weight)
{
	__u64 least = weir_least_dropped(set);
	__u32 way;

	if (weir_is_drop_past(now, set->missed_at, WEIR_TOP_DROPS_QUIET_NS))
		set->missed = 0;
	if (least < 16)
		return least;
	way = least & 15;
	if (least / 16 > set->missed) {
		way = weir_find_quiet_dropped(set, now);
		if (way < WEIR_TOP_DROPS_WAYS)
			return way;
		set->missed += weight;
	}
	set->missed_at = now;
	return way;
}

/* Give slot `way` of set `index` to the packet's flow. */
static __always_inline void weir_place_dropped(struct weir_scratch *s, const struct weir_rule *rule,
					       struct weir_top_drops_set *set, __u32 index, __u32 way, __u32 tag,
					       __u64 hash)
{
	__u32 *at = WEIR_ELEMENT(set->tag, way);
	struct weir_top_drop_key *whose;

	index = index * WEIR_TOP_DROPS_WAYS + way;
	whose = bpf_map_lookup_elem(&top_drop_keys, &index);
	if (!whose || !at || way >= WEIR_TOP_DROPS_WAYS)
		return;
	/* Readers take a slot to be valid if both tags are equal before and after they have read it. So everything that
	 * follows, including *at, is written between two values of whose->tag, and needs no order among itself.
	 */
	WRITE_ONCE(whose->tag, 0);
	weir_order(s);
	WRITE_ONCE(*at, tag);
	set->sum[way].packets = whose->missed = set->missed;
	set->sum[way].bytes = 0;
	whose->hash = hash;
	whose->first = weir_drop_time(s);
	whose->rule_slot = rule->slot;
	whose->observed = config.observes || rule->observes;
	weir_make_key(&whose->key, rule, s);
	weir_order(s);
	WRITE_ONCE(whose->tag, tag);
}

/* ---- counting ---- */

/* Count the run of the last dropped flow in its slot, if it still has it. The sums are those of the run, so settling it
 * again changes nothing.
 */
static __always_inline void weir_settle_run(struct weir_scratch *s)
{
	const __u64 slot = s->drop_run.slot, packets = s->drop_run.packets;
	struct weir_top_drops_set *set;
	__u32 way = WEIR_DROP_RUN_WAY(slot);

	s->last_dropped.began = packets;
	set = weir_top_drops_at(weir_this_cpu(s) * WEIR_TOP_DROPS_SETS + WEIR_DROP_RUN_SET(slot));
	OPAQUE(way);
	if (!set || way >= WEIR_TOP_DROPS_WAYS || !(__u32)slot || set->tag[way] != (__u32)slot)
		return;
	set->sum[way].packets += weir_drop_run_ahead(packets, set->sum[way].packets);
	set->sum[way].bytes += weir_drop_run_ahead(s->drop_run.bytes, set->sum[way].bytes);
	set->last[way] = weir_drop_time(s);
}

/* Count the packet, and those that it stands for, in its flow's slot. A run begins with the slot's sums. False: the
 * flow has no slot.
 */
static __always_inline bool weir_begin_run(struct weir_scratch *s, struct weir_top_drops_set *set, __u32 index,
					   __u32 way, __u32 tag, __u32 weight)
{
	const __u64 number = ((s->drop_run.slot >> WEIR_DROP_RUN_SHIFT) + 1) << WEIR_DROP_RUN_SHIFT;
	__u64 packets, bytes;

	OPAQUE(way);
	if (way >= WEIR_TOP_DROPS_WAYS || set->tag[way] != tag)
		return false;
	if (weight > 1)
		WRITE_ONCE(set->sum[way].bytes, set->sum[way].bytes | WEIR_TOP_DROPS_ESTIMATED);
	packets = set->sum[way].packets + (__u64)weight * WEIR_SEGMENTS(s);
	bytes = READ_ONCE(set->sum[way].bytes) + (__u64)s->packet.frame_bytes * weight;
	set->sum[way].packets = packets;
	set->sum[way].bytes = bytes;
	set->last[way] = weir_drop_time(s);
	packets = number | (packets & WEIR_DROP_RUN_SUM_MASK);
	s->last_dropped.began = packets;
	WRITE_ONCE(s->drop_run.slot, number | WEIR_DROP_RUN_SLOT(index & (WEIR_TOP_DROPS_SETS - 1), way, tag));
	WRITE_ONCE(s->drop_run.packets, packets);
	WRITE_ONCE(s->drop_run.bytes, number | (bytes & WEIR_DROP_RUN_SUM_MASK));
	return true;
}

/* A tick begins. */
static __always_inline void weir_allot_drops(struct weir_scratch *s)
{
	if (s->drop_run.packets != s->last_dropped.began)
		weir_settle_run(s);
	s->drops_left = config.is_virtual ? ~0u : config.tick_ns / WEIR_DROP_BUDGET_NS;
}

/* How many packets this one stands for, including earlier ones that were not counted. The gaps are random, so that no
 * sender's packets can fit them, and on average every flow gets its own count.
 */
static __always_inline __u32 weir_drop_weight(struct weir_scratch *s)
{
	__u32 weight = s->drops_skipped + 1;

	if (s->drops_left) {
		s->drops_left--;
		return 1;
	}
	s->drops_skipped = 0;
	s->drops_random = s->drops_random * 1664525u + 1013904223u; /* Knuth, TAOCP 2, 3.3.4 */
	s->drops_gap = s->drops_random >> 27;
	return weight;
}

/* Count the current packet, and those that it stands for. Out of line, because most drops of a flood do not come here.
 */
__noinline int weir_note_dropped(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_last_dropped *last;
	struct weir_top_drops_set *set;
	__u32 tag, way, index, weight;
	__u64 hash;

	if (!s || !config.counts_flow_drops)
		return 0;
	weight = weir_drop_weight(s);
	hash = weir_flow_hash(s, rule);
	tag = hash >> 32 ^ rule->drops_mark;
	if (!tag)
		tag = 2;
	index = weir_this_cpu(s) * WEIR_TOP_DROPS_SETS + (hash & (WEIR_TOP_DROPS_SETS - 1));
	set = weir_top_drops_at(index);
	if (!set)
		return 0;
	last = &s->last_dropped;
	if (s->drop_run.packets != last->began)
		weir_settle_run(s);
	way = weir_find_tag(set->tag, WEIR_TOP_DROPS_WAYS, tag);
	FORGET(s->forgotten, way);
	if (way >= WEIR_TOP_DROPS_WAYS) {
		way = weir_choose_dropped(set, weir_drop_time(s), weight);
		FORGET(s->forgotten, way);
		weir_place_dropped(s, rule, set, index, way, tag, hash);
	}
	if (!weir_begin_run(s, set, index, way, tag, weight))
		return 0;
	last->flow_tag = s->flow.tag;
	last->rule = rule->place + 1;
	last->is_ipv6 = s->packet.is_ipv6;
	weir_mask_address((__u8 *)last->source, s->packet.source, rule->source_mask6, rule->source_mask4,
			  s->packet.is_ipv6);
	return 0;
}

/* Does the packet belong to the flow that this CPU counted last, under that rule? False if that is not known cheaply.
 */
static __always_inline bool weir_is_last_dropped(const struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_last_dropped *last = &s->last_dropped;

	if (last->rule != rule->place + 1u)
		return false;
	/* Other kinds do not look for rows; nor is a row looked for where a bar blocks. */
	if (weir_keeps_rows(rule) && !rule->bar)
		return last->flow_tag == s->flow.tag;
	if (rule->key_fields == WEIR_KEY_SOURCE)
		return last->is_ipv6 == s->packet.is_ipv6 && weir_is_source(&s->packet, rule, last->source);
	return !rule->key_fields;
}

/* Count a packet that this rule blocks, or would block, for its flow. */
static __always_inline void weir_note_block(struct weir_scratch *s, const struct weir_rule *rule)
{
	if (likely(!s->drops_left)) {
		if (weir_is_last_dropped(s, rule)) {
			s->drop_run.packets += WEIR_SEGMENTS(s);
			s->drop_run.bytes += s->packet.frame_bytes;
			return;
		}
		if (s->drops_skipped < s->drops_gap) {
			s->drops_skipped++;
			return;
		}
	}
	weir_note_dropped(s, rule->place);
}

#endif
