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
 * So a CPU that takes over an entry first writes a word without a time, and every packet checks the tag after it has
 * read the word that it overwrites. The bit between time and tag is that of penalties (penalties.h).
 *
 * The word has only the lowest bits of the time, and means the nearest time that ends in them, so no clock outgrows it.
 * Half of its range is 4.5 years. A queue is at most 50 days long, and in replay no two packets are that far apart
 * (user/lib/core/kinds/throttle.c).
 */
static __always_inline __u64 weir_tat_word(__u64 tat_ns, __u32 tag)
{
	return ((tat_ns + 1) & WEIR_LAST_MASK) | (__u64)tag << WEIR_LAST_TAG_SHIFT;
}

static __always_inline __u64 weir_no_tat_word(__u32 tag)
{
	return (__u64)tag << WEIR_LAST_TAG_SHIFT;
}

/* The word of an entry that is being rebuilt. It has no time, and differs from that of earlier insertions; otherwise a
 * packet that found the flow's way before the flow was evicted could take it for one of those.
 */
static __always_inline __u64 weir_nobodys_word(const struct weir_scratch *s)
{
	return WEIR_INSERTED_COUNT(s->place.latest) << WEIR_LAST_TAG_SHIFT | 1ull << WEIR_LAST_BITS;
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

/* How long the packet's flow, which has no entry, has to wait because of its ghost, or of the overflow bucket, in ns. A
 * ghost older than two months seems to lie in the future, but farther ahead than any rule schedules packets, so it is
 * ignored.
 */
static __always_inline __u64 weir_left_of_ghost(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u64 farthest_ns =
		rule->queueing_ns_max + weir_emission_ns(&s->allowed.emission, rule->counts_bytes ? 65535 : 1);
	__u64 left_ns = weir_find_flow_ghost(s, s->view.flow.tag, s->view.flow.set, WEIR_TABLE_THROTTLED_FLOWS);

	if (!left_ns && config.has_overflow && rule->overflow)
		left_ns = weir_join_overflow(s, s->view.flow.set, WEIR_OVERFLOW_TAT,
					     weir_emission_ns(&s->allowed.emission, weir_units(s, rule)), farthest_ns);
	if (left_ns > farthest_ns + (2 << WEIR_KEEP_STEP_BITS))
		return 0;
	/* Not later with every return, or it would seem to be two months old. */
	return weir_lesser(left_ns, farthest_ns);
}

/* The flow of s->view has claimed the way s->row_number. Leave a ghost of the former owner, rebuild the flow's TAT from
 * its own ghost, and show it. False: that is not possible now.
 */
__noinline int weir_begin_tat(struct weir_scratch *s, struct weir_throttle_set *set, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 *word, last, left_ns;

	WEIR_GLOBAL(KIND(THROTTLE), s && set, false);
	word = WEIR_ELEMENT(set->last, s->row_number);
	if (!word ||
	    !weir_take_entry(s, &set->flows, word, weir_nobodys_word(s), s->view.flow.set, WEIR_TABLE_THROTTLED_FLOWS))
		return false;
	left_ns = weir_left_of_ghost(s, rule);
	last = weir_no_tat_word(s->view.flow.tag);
	if (left_ns) {
		last = weir_tat_word(weir_now_ns(s) + left_ns -
					     weir_emission_ns(&s->allowed.emission, weir_units(s, rule)),
				     s->view.flow.tag);
		weir_set_keep(s, &set->flows, s->row_number, left_ns);
	}
	WRITE_ONCE(*word, last);
	weir_publish_flow(s, &set->flows);
	weir_remove_flow_ghost(s, s->view.flow.set, WEIR_TABLE_THROTTLED_FLOWS);
	return true;
}

/* Find or insert the packet's flow in its set; s->row_number then says where it is. */
static __always_inline __u64 *weir_get_tat(struct weir_scratch *s, struct weir_throttle_set *set, __u32 place)
{
	__u32 way = weir_way_of(&set->flows, s->view.flow.tag);

	s->row_number = way;
	if (way == WEIR_FLOW_WAYS) {
		way = weir_claim_flow(s, &set->flows, s->view.flow.tag, s->view.slot);
		s->row_number = WEIR_WAY(way);
		if (way & WEIR_WAY_IS_NEW && !weir_begin_tat(s, set, place))
			return NULL;
	}
	return WEIR_ELEMENT(set->last, s->row_number);
}

/* The one word of a whole resource. */
static __always_inline __u64 *weir_lone_tat(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u32 index = rule->slot;

	s->view.flow.tag = 0;
	return bpf_map_lookup_elem(&throttled_resources, &index);
}

/* ---- the decision ---- */

/* How long this packet would wait: until one emission interval of its own after the previous packet, or not at all. */
static __always_inline __u64 weir_wait_ns(__u64 word, __u32 tag, __u64 now_ns, __u64 emission_ns)
{
	__s64 wait_ns = weir_ahead_ns(word, now_ns) + (__s64)emission_ns;

	return (wait_ns & ~(wait_ns >> 63)) * weir_has_tat(word, tag);
}

/* Schedule the packet: advance the flow's time by the packet's emission interval, and return how long it waits. `set`
 * is the flow's set; NULL for a whole resource. AGAIN: the flow has just lost its entry.
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

		if (wait_ns > rule->queueing_ns_max) {
			if (set)
				weir_keep_refused(&set->flows, s->row_number);
			return weir_refuse(s, wait_ns, rule->queueing_ns_max);
		}
		/* The flow may just have lost its entry. One new owner in 32 has the same five bits. */
		if (set && !weir_owns_way(s, &set->flows, s->row_number, tag))
			return WEIR_ANSWER_AGAIN;
		if (set && !weir_raise_keep(s, &set->flows, s->row_number, wait_ns + emission_ns))
			continue;
		tat = weir_tat_word(now_ns + wait_ns, tag);
		if (__sync_val_compare_and_swap(last, word, tat) == word) {
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
		return set ? WEIR_ANSWER_AGAIN : weir_refuse_stalled(s, rule->slot);
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
