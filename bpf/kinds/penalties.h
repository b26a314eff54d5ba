/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Penalties: when a rule with blockDurationInMs blocks a packet, it blocks the packet's flow for some time. During that
 * time its window is neither asked nor changed. All CPUs share a flow's word with the end of the penalty, so a penalty
 * holds on all CPUs from the instruction that begins it. (docs/semantics.md, 11.)
 */
#ifndef WEIR_BPF_PENALTIES_H
#define WEIR_BPF_PENALTIES_H

#include "observe/events.h"
#include "window/shortcuts.h"
#include "kinds/fair.h"
#include "kinds/throttle.h"

#define WEIR_NSEC_PER_MSEC 1000000ull

/* Attempts to change a word. One fails if another CPU changes it meanwhile. */
#define WEIR_PENALTY_ATTEMPTS 4

/* ---- is it over? ---- */

/* Words have the format of throttling's TATs (throttle.h). The bit between time and tag says which of the two durations
 * beside the word belongs to it.
 */
#define WEIR_PENALTY_COPY_SHIFT WEIR_LAST_BITS

/* Is the word's time later than this packet's? Exact, by CLOCK_MONOTONIC. The clock is read only in the last tick of a
 * penalty and the first tick after it, when the tick alone cannot decide.
 */
static __always_inline bool weir_is_running(struct weir_scratch *s, __u64 word)
{
	__s64 ahead_ns = weir_ahead_ns(word, s->tick_ns), tick_ns = config.tick_ns;

	if (ahead_ns >= tick_ns)
		return true;
	return ahead_ns > -tick_ns && weir_ahead_ns(word, weir_now_ns(s)) > 0;
}

/* ---- is the packet's flow penalised? ---- */

/* A CPU remembers a penalised source for at most this long, so that it notices a release. `weir release` returns only
 * after this time.
 */
#define WEIR_PENALTY_REMEMBERED_NS WEIR_RELEASE_NS

static __always_inline void weir_remember_penalised(struct weir_scratch *s, const struct weir_rule *rule, __u64 word)
{
	__u64 ahead_ns = weir_ahead_ns(word, s->tick_ns);

	if (!weir_takes(WEIR_SHORTCUT_SOURCE) || s->nth || rule->key_fields != WEIR_KEY_SOURCE)
		return;
	if ((__s64)ahead_ns < 0)
		return;
	ahead_ns = weir_lesser(ahead_ns, WEIR_PENALTY_REMEMBERED_NS);
	/* While jiffies show n more, it is earlier than (n + 1) ticks after the tick's time. */
	weir_remember_source(s, rule, s->penalised.tag, s->tick, ahead_ns / config.tick_ns);
}

static __always_inline struct weir_penalty_set *weir_penalty_set(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u32 index;

	s->penalised = weir_shared_id(weir_flow_hash(s, rule), config.sizes[WEIR_TABLE_PENALISED_FLOWS]);
	index = s->penalised.set;
	return bpf_map_lookup_elem(&penalised_flows, &index);
}

static __always_inline bool weir_is_penalised_flow(struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_penalty_set *set = weir_penalty_set(s, rule);
	__u32 tag = s->penalised.tag, way;
	const __u64 *until;
	__u64 word;

	if (!set)
		return false;
	way = weir_way_of(&set->flows, tag);
	FORGET(s->forgotten, way);
	until = WEIR_ELEMENT(set->until, way);
	word = until ? READ_ONCE(*until) : 0;
	/* Is the entry still the flow's? A flow that is being evicted, or was, is penalised by its ghost, and needs no
	 * entry. The ghost is there before the word or the tag changes.
	 */
	weir_order(s);
	if (!weir_has_tat(word, tag) || weir_way_of(&set->flows, tag) != way)
		return weir_find_flow_ghost(s, tag, s->penalised.set, WEIR_TABLE_PENALISED_FLOWS);
	if (!weir_is_running(s, word))
		return false;
	weir_remember_penalised(s, rule, word);
	return true;
}

/* Is this packet's flow penalised under `rule`? While none of the rule's flows is, this takes one read of a line that
 * is rarely written.
 */
__noinline int weir_is_penalised(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	const struct weir_rule_penalty *of_rule;
	__u32 slot = rule->slot;
	__u64 word;

	WEIR_GLOBAL(PENALTIES, s, false);
	of_rule = bpf_map_lookup_elem(&penalised_rules, &slot);
	if (!of_rule)
		return false;
	word = READ_ONCE(of_rule->until);
	if (!weir_has_tat(word, 0) || !weir_is_running(s, word))
		return false;
	return !rule->key_fields || weir_is_penalised_flow(s, rule);
}

/* ---- the flow's entry ---- */

/* Record which flow has the entry, for commands to show. The tag is written last, when the rest is complete. */
static __always_inline void weir_note_penalised(struct weir_scratch *s, const struct weir_rule *rule, __u32 way)
{
	__u32 index = s->penalised.set * WEIR_FLOW_WAYS + way;
	struct weir_penalised *noted = bpf_map_lookup_elem(&penalty_keys, &index);

	if (!noted)
		return;
	WRITE_ONCE(noted->tag, 0);
	weir_order(s);
	weir_make_key(&noted->key, rule, s);
	noted->rule_slot = rule->slot;
	weir_order(s);
	WRITE_ONCE(noted->tag, s->penalised.tag);
}

/* The flow s->penalised has claimed this way. Leave a ghost of the former owner, and show the flow. Returns the flow's
 * way; one beyond the last if that is not possible now.
 */
__noinline __u32 weir_begin_penalised(struct weir_scratch *s, struct weir_penalty_set *set, __u32 way, __u32 place)
{
	__u64 *word;

	WEIR_GLOBAL(PENALTIES, s && set, WEIR_FLOW_WAYS);
	word = WEIR_ELEMENT(set->until, way);
	if (!word ||
	    !weir_take_entry(s, &set->flows, word, weir_nobodys_word(s), s->penalised.set, WEIR_TABLE_PENALISED_FLOWS))
		return WEIR_FLOW_WAYS;
	WRITE_ONCE(*word, weir_no_tat_word(s->penalised.tag));
	weir_publish_flow(s, &set->flows);
	weir_note_penalised(s, weir_rule(place), way);
	return way;
}

/* ---- beginning one ---- */

/* The end of a rule's latest penalty is rounded up to a multiple of this, so that penalties that begin within the same
 * second need not all write it. Chosen, not derived.
 */
#define WEIR_PENALTY_BOUND_NS (1ull << 30)

/* Raise the rule's word in penalised_rules, so that no penalty of the rule in `slot` ends later than the word says. The
 * word never falls. False: other CPUs were faster at every attempt.
 */
__noinline int weir_raise_bound(__u32 slot, __u64 until_ns, __u64 now_ns)
{
	struct weir_rule_penalty *of_rule = bpf_map_lookup_elem(&penalised_rules, &slot);
	__u64 word = weir_tat_word(until_ns | (WEIR_PENALTY_BOUND_NS - 1), 0);

	WEIR_GLOBAL(PENALTIES, of_rule, false);
	for (int attempt = 0; attempt < WEIR_PENALTY_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(of_rule->until);

		if (weir_has_tat(old, 0) && weir_ahead_ns(old, now_ns) >= weir_ahead_ns(word, now_ns))
			return true;
		if (__sync_val_compare_and_swap(&of_rule->until, old, word) == old)
			return true;
	}
	return false;
}

/* The duration of a penalty that begins now: twice that of the previous penalty, if that ended no longer ago than it
 * lasted.
 */
static __always_inline __u64 weir_penalty_ms(const struct weir_rule *rule, __u64 word, __u32 tag, __u64 lasted_ms,
					     __u64 now_ns)
{
	__s64 ahead_ns = weir_ahead_ns(word, now_ns);
	__u64 ms = rule->penalty_ms;

	if (!weir_has_tat(word, tag) || -ahead_ns > (__s64)(lasted_ms * WEIR_NSEC_PER_MSEC))
		return ms;
	if (2 * lasted_ms > ms)
		ms = 2 * lasted_ms;
	return ms < rule->penalty_ms_max ? ms : rule->penalty_ms_max;
}

/*
 * Begin a penalty for the flow of this word, unless one is running. Exact: if several CPUs block packets of a flow at
 * once, one of them changes the word, and the others find the penalty running. The duration is written to the copy that
 * is not in use; the word then names that copy. (Two CPUs that both write it compute the same duration, unless the
 * flow's past is forgotten between the times of their packets.)
 */
static __always_inline bool weir_begin_penalty(struct weir_scratch *s, const struct weir_rule *rule, __u64 *until,
					       __u32 *lasted_ms, struct weir_flow_set *set, __u32 way)
{
	__u64 now_ns = weir_now_ns(s), until_ns, ms;
	__u32 tag = set ? s->penalised.tag : 0;

	for (int attempt = 0; attempt < WEIR_PENALTY_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(*until), copy = word >> WEIR_PENALTY_COPY_SHIFT & 1;

		if (set && !weir_owns_way(s, set, way, tag))
			break; /* just evicted: another flow's time must not be overwritten */
		s->penalty_until_ns = now_ns + weir_ahead_ns(word, now_ns);
		if (weir_has_tat(word, tag) && weir_ahead_ns(word, now_ns) > 0)
			return true;
		ms = weir_penalty_ms(rule, word, tag, READ_ONCE(lasted_ms[0]) * !copy + READ_ONCE(lasted_ms[1]) * copy,
				     now_ns);
		until_ns = now_ns + ms * WEIR_NSEC_PER_MSEC;
		if (set && !weir_raise_bound(rule->slot, until_ns, now_ns))
			break;
		if (set && !weir_raise_keep(s, set, way, until_ns - now_ns))
			continue;
		if (copy)
			WRITE_ONCE(lasted_ms[0], ms);
		else
			WRITE_ONCE(lasted_ms[1], ms);
		weir_order(s);
		if (__sync_val_compare_and_swap(until, word,
						weir_tat_word(until_ns, tag) |
							(__u64)!copy << WEIR_PENALTY_COPY_SHIFT) != word)
			continue;
		s->penalty_until_ns = until_ns;
		weir_emit_penalty_event(s, rule->place, until_ns);
		return true;
	}
	return false;
}

/* A rule with a bar has blocked this packet by its window. So begin a penalty for its flow, or count the drop for the
 * level of its children.
 */
__noinline int weir_begin_bar(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_rule_penalty *of_rule;
	struct weir_penalty_set *set;
	__u32 slot = rule->slot, way, *lasted_ms;
	bool is_known = false;
	__u64 *until;

	WEIR_GLOBAL(BARS, s, 0);
	if (rule->bar == WEIR_BAR_LEVEL)
		return weir_note_fair_drop(s, place);
	if (!rule->key_fields) {
		of_rule = bpf_map_lookup_elem(&penalised_rules, &slot);
		is_known = of_rule && weir_begin_penalty(s, rule, &of_rule->until, of_rule->lasted_ms, NULL, 0);
	} else {
		set = weir_penalty_set(s, rule);
		if (!set)
			return 0;
		way = weir_way_of(&set->flows, s->penalised.tag);
		if (way == WEIR_FLOW_WAYS)
			way = weir_claim_flow(s, &set->flows, s->penalised.tag, slot);
		if (way & WEIR_WAY_IS_NEW)
			way = weir_begin_penalised(s, set, WEIR_WAY(way), place);
		FORGET(s->forgotten, way);
		until = WEIR_ELEMENT(set->until, way);
		lasted_ms = (__u32 *)WEIR_ELEMENT(set->lasted_ms, way);
		is_known = until && lasted_ms && weir_begin_penalty(s, rule, until, lasted_ms, &set->flows, way);
	}
	/* No penalty could be begun. The packet is blocked all the same, and the flow's next blocked packet will begin
	 * one.
	 */
	if (!is_known)
		weir_count_stall(slot);
	return 0;
}

#endif
