/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Throttling: packets of a flow are planned one cost apart, and one that would have to wait too long is dropped.
 * One number per flow, the planned time of the latest admitted packet; all CPUs share it and move it by
 * compare-and-swap, so that no two packets are planned for one slot, and a slot is only taken by a packet that uses
 * it. (docs/semantics.md, 4; Sentinel's tc_throttling.go. As a cell-rate algorithm: GCRA, ITU-T I.371.)
 */
#ifndef WEIR_THROTTLE_H
#define WEIR_THROTTLE_H

#include "shared.h"
#include "threshold.h"
#include "weir_cost.h"

/* Tries to move the word; another CPU got in between each time. Eight in a row have not been seen. */
#define WEIR_THROTTLE_ATTEMPTS 8

/* ---- the word ---- */

/*
 * A word is the planned time, one more than ns, under five bits of the tag: what a place's former flow left there is
 * mostly not taken for the new one's. Mostly is not enough (one new flow in 32 would wait for a stranger): who takes a
 * place leaves a word without a time there, and who is about to write over a word that is not its own looks at the
 * tag. Of the time it holds the lowest bits, and means the nearest one that ends in them: no clock that grows outgrows
 * it. A queue is 50 days long at most, and in replay the compiler sees to it that no two packets are farther apart
 * than half a turn (compile.c). Attached, a flow would have to be silent for 4.5 years to be taken for one that is
 * planned ahead. Between the two a bit says that the flow was refused once since it has the place.
 */
static __always_inline __u64 weir_planned_word(__u64 planned_ns, __u32 tag)
{
	return ((planned_ns + 1) & WEIR_LAST_MASK) | (__u64)tag << WEIR_LAST_TAG_SHIFT;
}

static __always_inline __u64 weir_never_word(__u32 tag)
{
	return (__u64)tag << WEIR_LAST_TAG_SHIFT;
}

/* It has this flow's five bits, and a time. 0 or 1, without a branch. */
static __always_inline __u64 weir_is_planned(__u64 word, __u32 tag)
{
	__u64 other_bits = (word ^ weir_never_word(tag)) >> WEIR_LAST_TAG_SHIFT;

	return (other_bits - 1) >> 63 & -(word & WEIR_LAST_MASK) >> 63;
}

/* The same, and it was refused once. */
static __always_inline __u64 weir_was_refused(__u64 word, __u32 tag)
{
	return word >> WEIR_LAST_BITS & weir_is_planned(word, tag);
}

/* How far the planned time lies ahead of now; negative when it is past. */
static __always_inline __s64 weir_ahead_ns(__u64 word, __u64 now_ns)
{
	return (__s64)((word - 1 - now_ns) << (64 - WEIR_LAST_BITS)) >> (64 - WEIR_LAST_BITS);
}

/* ---- where the number is ---- */

/* The place of a planned time that is to go: a free one, else the earliest. Its flow need not be remembered once the
 * next packet of it would not have to wait anyway. Until then those that were refused are the last to go: without a
 * queue the heavy flow's time is soon the earliest among new ones, and it would be forgotten, and admitted, each time.
 *
 * A place that another CPU has just taken has no time yet, or still that of the flow before: it is as good as planned
 * for now. Else two CPUs with a new flow each would take the same place, and one flow would get two slots. Should both
 * flows have the same five bits, that does not show: so the place that was taken last is the last to go of those that
 * are over.
 */
__noinline __u64 weir_throttle_victim(const struct weir_throttle_set *set, __u64 latest, __u64 now_ns)
{
	__u64 least = ~0ull >> 1, turn = 1ull << (WEIR_LAST_BITS - 1), over = turn - config.throttle_horizon_ns;
	__u32 way;

	if (!set)
		return 0;
	way = weir_shared_way(set->tag, WEIR_THROTTLE_WAYS, 0);
	if (way < WEIR_THROTTLE_WAYS)
		return way;
#pragma unroll
	for (__u32 i = 0; i < WEIR_THROTTLE_WAYS; i++) {
		__u64 word = READ_ONCE(set->last[i]);
		__u32 tag = READ_ONCE(set->tag[i]);
		/* how far ahead of half a turn ago */
		__u64 ahead_ns = weir_ahead_ns(word, now_ns) * weir_is_planned(word, tag) + turn, rank;

		ahead_ns = weir_greater(ahead_ns, over * weir_is_latest_way(latest, i));
		rank = ahead_ns / 2 + ((over - ahead_ns) >> 63 & weir_was_refused(word, tag)) * turn;
		least = weir_lesser(rank * 16 + i, least); /* behind it the way */
		OPAQUE(least); /* one place after the other: else clang keeps all of them on the stack */
	}
	return (least & 15) | (least / 16 > over / 2 ? WEIR_VICTIM_COUNTS : 0);
}

/* Make a place for the flow of w->question, unless another CPU just did. Returns its way, or beyond the last. */
__noinline __u32 weir_insert_throttled(struct weir_work *w)
{
	struct weir_throttle_set *set;
	__u32 index, way, tag;
	__u64 now_ns, victim, before;

	if (!w)
		return WEIR_THROTTLE_WAYS;
	index = w->question.place.set;
	tag = w->question.place.tag;
	set = bpf_map_lookup_elem(&throttled_flows, &index);
	if (!set)
		return WEIR_THROTTLE_WAYS;
	now_ns = weir_now_ns(w);
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u64 latest = weir_shared_latest(w, &set->inserted, set->tag, WEIR_THROTTLE_WAYS);

		way = weir_shared_way(set->tag, WEIR_THROTTLE_WAYS, tag);
		if (way < WEIR_THROTTLE_WAYS)
			return way;
		victim = weir_throttle_victim(set, latest, now_ns);
		way = victim & WEIR_VICTIM_WAY;
		OPAQUE(way);
		if (way >= WEIR_THROTTLE_WAYS)
			break;
		before = READ_ONCE(set->last[way]);
		if (!weir_shared_take(w, &set->inserted, set->tag, WEIR_THROTTLE_WAYS, latest, way, tag))
			continue;
		/* Unless another CPU has written it since: a packet of the same flow, which found the place made. */
		__sync_val_compare_and_swap(&set->last[way], before, weir_never_word(tag));
		if (victim & WEIR_VICTIM_COUNTS)
			weir_count_eviction(w->question.slot);
		return way;
	}
	return WEIR_THROTTLE_WAYS;
}

/* The word of this packet's flow. */
static __always_inline __u64 *weir_throttle_word(struct weir_work *w, const struct weir_rule *rule)
{
	struct weir_throttle_set *set;
	__u32 index = rule->slot, way;

	w->question.slot = rule->slot;
	w->question.place.tag = 0;
	if (!rule->key_fields)
		return bpf_map_lookup_elem(&throttled_resources, &index);
	w->question.place = weir_shared_place(rule, &w->packet, config.throttle_sets);
	index = w->question.place.set;
	set = bpf_map_lookup_elem(&throttled_flows, &index);
	if (!set)
		return NULL;
	way = weir_shared_way(set->tag, WEIR_THROTTLE_WAYS, w->question.place.tag);
	if (way == WEIR_THROTTLE_WAYS)
		way = weir_insert_throttled(w);
	w->located = way;
	OPAQUE(way);
	return way < WEIR_THROTTLE_WAYS ? &set->last[way] : NULL;
}

/* The place found for the flow of w->question is still its own. */
__noinline int weir_has_throttle_place(struct weir_work *w)
{
	const struct weir_throttle_set *set;
	__u32 index, way;

	if (!w)
		return false;
	if (!w->question.place.tag)
		return true; /* a whole resource has a place of its own */
	index = w->question.place.set;
	way = w->located;
	set = bpf_map_lookup_elem(&throttled_flows, &index);
	OPAQUE(way);
	return set && way < WEIR_THROTTLE_WAYS && READ_ONCE(set->tag[way]) == w->question.place.tag;
}

/* ---- the decision ---- */

/* How long this packet would wait: not at all, or until its own cost after the one before it. */
static __always_inline __u64 weir_wait_ns(__u64 word, __u32 tag, __u64 now_ns, __u64 cost_ns)
{
	__s64 wait_ns = weir_ahead_ns(word, now_ns) + (__s64)cost_ns;

	return (wait_ns & ~(wait_ns >> 63)) * weir_is_planned(word, tag);
}

/* Take the next slot, and say how long to wait for it. */
static __always_inline enum weir_answer weir_take_slot(struct weir_work *w, const struct weir_rule *rule, __u64 *last,
						       __u64 cost_ns, __u64 *ret_wait_ns)
{
	__u64 now_ns = weir_now_ns(w);
	__u32 tag = w->question.place.tag;

	for (int attempt = 0; attempt < WEIR_THROTTLE_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(*last);
		__u64 wait_ns = weir_wait_ns(word, tag, now_ns, cost_ns), planned;

		/* The flow's first, or it has just lost its place: another's time is not to be overwritten. The tag is
		 * looked at after the word, which changes before the place has a time of another's.
		 */
		weir_order(w);
		if (!weir_is_planned(word, tag) && !weir_has_throttle_place(w))
			break;
		if (wait_ns > rule->queueing_ns_max) {
			if (tag && !(word & WEIR_LAST_REFUSED))
				__sync_val_compare_and_swap(last, word, word | WEIR_LAST_REFUSED);
			return WEIR_ANSWER_BLOCK;
		}
		planned = weir_planned_word(now_ns + wait_ns, tag) | weir_was_refused(word, tag) << WEIR_LAST_BITS;
		if (__sync_val_compare_and_swap(last, word, planned) == word) {
			*ret_wait_ns = wait_ns;
			return WEIR_ANSWER_ADMIT;
		}
	}
	weir_count_stall(rule->slot);
	return WEIR_ANSWER_BLOCK;
}

/* Judge the packet by a rule that throttles; w->allowed is found. */
__noinline int weir_judge_throttle(struct weir_work *w, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	enum weir_answer answer;
	__u64 batch, wait_ns = 0;
	__u64 *last;

	if (!w || index >= WEIR_PACKET_RULES_MAX)
		return WEIR_ANSWER_ERROR;
	w->claim[index].kind = WEIR_CLAIM_NONE;
	batch = rule->counts_bytes ? w->packet.frame_bytes : 1;
	if (batch > (w->allowed.word & WEIR_THRESHOLD_MASK))
		return WEIR_ANSWER_BLOCK;
	last = weir_throttle_word(w, rule);
	if (!last) {
		weir_count_stall(rule->slot);
		return WEIR_ANSWER_BLOCK;
	}
	answer = weir_take_slot(w, rule, last, weir_cost_ns(&w->allowed.cost, batch), &wait_ns);
	if (answer != WEIR_ANSWER_ADMIT)
		return answer;
	w->claim[index].kind = WEIR_CLAIM_GIVEN;
	if (rule->observes || !wait_ns)
		return answer;
	weir_count_delay(rule->slot, wait_ns);
	if (wait_ns > w->wait_ns)
		w->wait_ns = wait_ns;
	return answer;
}

#endif
