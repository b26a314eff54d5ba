/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Throttling: packets of a flow are spaced one emission interval apart, and a packet that would have to wait too long
 * is dropped. A flow has one number, the theoretical arrival time (TAT) of its latest admitted packet. All CPUs share
 * it and move it by compare-and-swap. So no two packets get the same time, and a dropped packet takes none.
 * (docs/semantics.md, 4; Sentinel's tc_throttling.go. As a cell-rate algorithm: GCRA, ITU-T I.371.)
 */
#ifndef WEIR_THROTTLE_H
#define WEIR_THROTTLE_H

#include "observe/drops.h"
#include "kinds/ghosts.h"
#include "window/threshold.h"
#include "weir_emission.h"

/* Attempts to move the word. One fails if another CPU moves it meanwhile; eight in a row were never seen. */
#define WEIR_THROTTLE_ATTEMPTS 8

/* ---- the word ---- */

/*
 * A word is the TAT in ns, plus one, with five bits of the tag above it. These bits distinguish most words of an
 * entry's former owner from ours. That is not enough, because one new flow in 32 would wait for another flow's packets.
 * So a CPU that takes over an entry first writes a word without a time, and checks the tag before it overwrites a word
 * that is not its own. The bit between time and tag is that of penalties (penalties.h).
 *
 * The word has only the lowest bits of the time, and means the nearest time that ends in them, so no clock outgrows it.
 * Half of its range is 4.5 years. A queue is at most 50 days long, and in replay no two packets are that far apart
 * (user/core/kinds/throttle.c).
 */
static __always_inline __u64 weir_tat_word(__u64 tat_ns, __u32 tag)
{
	return ((tat_ns + 1) & WEIR_LAST_MASK) | (__u64)tag << WEIR_LAST_TAG_SHIFT;
}

static __always_inline __u64 weir_no_tat_word(__u32 tag)
{
	return (__u64)tag << WEIR_LAST_TAG_SHIFT;
}

/* Does the word have a time, and this flow's five bits? 0 or 1, without a branch. */
static __always_inline __u64 weir_has_tat(__u64 word, __u32 tag)
{
	__u64 other_bits = (word ^ weir_no_tat_word(tag)) >> WEIR_LAST_TAG_SHIFT;

	return (other_bits - 1) >> 63 & -(word & WEIR_LAST_MASK) >> 63;
}

/* How far the TAT lies ahead of now; negative if it is in the past. */
static __always_inline __s64 weir_ahead_ns(__u64 word, __u64 now_ns)
{
	return (__s64)((word - 1 - now_ns) << (64 - WEIR_LAST_BITS)) >> (64 - WEIR_LAST_BITS);
}

/* ---- the flow's entry ---- */

/* The set of the flow of s->view. */
static __always_inline struct weir_throttle_set *weir_throttle_set(const struct weir_scratch *s)
{
	__u32 index = s->view.flow.set;

	return bpf_map_lookup_elem(&throttled_flows, &index);
}

/* The first word of the packet's flow at `way`: the TAT from the flow's ghost. A ghost older than two months seems to
 * lie in the future, but farther ahead than any rule schedules packets, so it is ignored.
 */
static __always_inline __u64 weir_first_word(struct weir_scratch *s, const struct weir_rule *rule,
					     struct weir_throttle_set *set, __u32 way)
{
	__u64 batch = weir_units(s, rule), now_ns = weir_now_ns(s);
	__u64 farthest_ns =
		rule->queueing_ns_max + weir_emission_ns(&s->allowed.emission, rule->counts_bytes ? 65535 : 1);
	__u64 left_ns = weir_find_flow_ghost(s, s->view.flow.tag, s->view.flow.set, WEIR_TABLE_THROTTLED_FLOWS, true);

	if (!left_ns && config.has_overflow && rule->overflow)
		left_ns = weir_join_overflow(s, s->view.flow.set, WEIR_OVERFLOW_TAT,
					     weir_emission_ns(&s->allowed.emission, batch), farthest_ns);
	if (!left_ns || left_ns > farthest_ns + (2 << WEIR_KEEP_STEP_BITS))
		return weir_no_tat_word(s->view.flow.tag);
	weir_keep_until(s, &set->flows, way, now_ns + left_ns);
	return weir_tat_word(now_ns + left_ns - weir_emission_ns(&s->allowed.emission, batch), s->view.flow.tag);
}

/* Insert the flow of s->view. Returns its way, or one beyond the last. */
__noinline __u32 weir_insert_throttled(struct weir_scratch *s, struct weir_throttle_set *set, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 former = 0, *word;
	__u32 way;

	WEIR_GLOBAL(KIND(THROTTLE), s && set, WEIR_FLOW_WAYS);
	way = weir_insert_flow_over(s, &set->flows, s->view.flow.tag, set->last, &former);
	word = WEIR_ELEMENT(set->last, WEIR_WAY(way));
	if (way & WEIR_WAY_EVICTS) {
		weir_count_eviction(rule->slot);
		weir_leave_flow_ghost(s, s->place.tag, s->view.flow.set, WEIR_TABLE_THROTTLED_FLOWS, s->place.keep);
	}
	/* Do not overwrite a time that a packet of the same flow has written here on another CPU. */
	if (way & WEIR_WAY_IS_NEW && word)
		__sync_val_compare_and_swap(word, former, weir_first_word(s, rule, set, WEIR_WAY(way)));
	return WEIR_WAY(way);
}

/* Find or insert the packet's flow in its set; s->row_number then says where it is. */
static __always_inline __u64 *weir_get_tat(struct weir_scratch *s, struct weir_throttle_set *set, __u32 place)
{
	__u32 way = weir_way_of(&set->flows, s->view.flow.tag);

	if (way == WEIR_FLOW_WAYS)
		way = weir_insert_throttled(s, set, place);
	s->row_number = way;
	return WEIR_ELEMENT(set->last, way);
}

/* The one word of a whole resource. */
static __always_inline __u64 *weir_lone_tat(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u32 index = rule->slot;

	s->view.flow.tag = 0;
	return bpf_map_lookup_elem(&throttled_resources, &index);
}

/* Is the entry that weir_get_tat() found still the flow's? */
__noinline int weir_has_throttle_entry(struct weir_scratch *s)
{
	const struct weir_throttle_set *set;
	const __u32 *tag;

	WEIR_GLOBAL(KIND(THROTTLE), s, false);
	if (!s->view.flow.tag)
		return true; /* a whole resource has a word to itself */
	set = weir_throttle_set(s);
	tag = set ? WEIR_ELEMENT(set->flows.tag, s->row_number) : NULL;
	return tag && READ_ONCE(*tag) == s->view.flow.tag;
}

/* ---- the decision ---- */

/* How long this packet would wait: until one emission interval of its own after the previous packet, or not at all. */
static __always_inline __u64 weir_wait_ns(__u64 word, __u32 tag, __u64 now_ns, __u64 emission_ns)
{
	__s64 wait_ns = weir_ahead_ns(word, now_ns) + (__s64)emission_ns;

	return (wait_ns & ~(wait_ns >> 63)) * weir_has_tat(word, tag);
}

/* Schedule the packet: advance the flow's time by the packet's emission interval, and return how long it waits. `set`
 * is the flow's set; NULL for a whole resource.
 */
static __always_inline enum weir_answer weir_advance_tat(struct weir_scratch *s, const struct weir_rule *rule,
							 __u64 *last, struct weir_throttle_set *set, __u64 emission_ns,
							 __u64 *ret_wait_ns)
{
	__u64 now_ns = weir_now_ns(s);
	__u32 tag = s->view.flow.tag;

	for (int attempt = 0; attempt < WEIR_THROTTLE_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(*last);
		__u64 wait_ns = weir_wait_ns(word, tag, now_ns, emission_ns), tat;

		/* This is the flow's first packet, or the flow has just lost its entry; then another flow's time must
		 * not be overwritten. The tag is read after the word, and a new owner changes the tag before it writes
		 * a time.
		 */
		weir_order(s);
		if (!weir_has_tat(word, tag) && !weir_has_throttle_entry(s))
			break;
		if (wait_ns > rule->queueing_ns_max) {
			if (set)
				weir_keep_refused(&set->flows, s->row_number);
			return weir_refuse(s, wait_ns, rule->queueing_ns_max);
		}
		tat = weir_tat_word(now_ns + wait_ns, tag);
		if (__sync_val_compare_and_swap(last, word, tat) == word) {
			if (set)
				weir_keep_until(s, &set->flows, s->row_number, now_ns + wait_ns + emission_ns);
			*ret_wait_ns = wait_ns;
			return WEIR_ANSWER_ADMIT;
		}
	}
	return weir_refuse_stalled(s, rule->slot);
}

/* Evaluate the packet by a rule that throttles; weir_find_allowed() has filled in s->allowed. */
__noinline int weir_evaluate_throttle(struct weir_scratch *s, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_throttle_set *set = NULL;
	__u64 batch, wait_ns = 0, *last;
	enum weir_answer answer;

	WEIR_GLOBAL(KIND(THROTTLE), s && index < WEIR_PACKET_RULES_MAX, WEIR_ANSWER_ERROR);
	s->reservation[index].kind = WEIR_RESERVATION_NONE;
	batch = weir_units(s, rule);
	if (batch > (s->allowed.word & WEIR_THRESHOLD_MASK))
		return weir_refuse(s, WEIR_EVENT_UNKNOWN, rule->queueing_ns_max);
	s->view.slot = rule->slot;
	if (rule->key_fields) {
		s->view.flow = weir_shared_id(weir_flow_hash(s, rule), config.sizes[WEIR_TABLE_THROTTLED_FLOWS]);
		set = weir_throttle_set(s);
		last = set ? weir_get_tat(s, set, place) : NULL;
	} else {
		last = weir_lone_tat(s, rule);
	}
	if (!last)
		return weir_refuse_stalled(s, rule->slot);
	answer = weir_advance_tat(s, rule, last, set, weir_emission_ns(&s->allowed.emission, batch), &wait_ns);
	if (answer != WEIR_ANSWER_ADMIT)
		return answer;
	s->reservation[index].kind = WEIR_RESERVATION_GIVEN;
	if (rule->observes || !wait_ns)
		return answer;
	weir_count_delay(s, rule->slot, wait_ns);
	if (wait_ns > s->wait_ns)
		s->wait_ns = wait_ns;
	return answer;
}

#endif
