/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes events (include/weir_events.h), and reports penalties that begin and breakers that change state. These are
 * always reported; drops.h reports drops, only while there is a reader. No verdict depends on this file. In the test
 * harness, there is no reader, and nothing is reported.
 */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

#include "kinds/flow_set.h"

static __always_inline struct weir_events *weir_events(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&events, &zero);
}

/* ---- writing one ---- */

/* The ring's slice word after one more event in this slice of time; 0: no more events are allowed in this slice. */
static __always_inline __u64 weir_next_turn(const struct weir_scratch *s, __u64 old)
{
	__u64 slice = s->tick_ns >> WEIR_EVENT_SLICE_SHIFT;

	/* Another CPU may have read a newer tick. */
	if (slice > old >> 8)
		return slice << 8 | 1;
	return (old & 0xff) < WEIR_EVENTS_A_SLICE ? old + 1 : 0;
}

static __always_inline bool weir_has_turn(const struct weir_scratch *s, const struct weir_ring_head *ring)
{
	return weir_next_turn(s, READ_ONCE(ring->slice));
}

/* Take one more event in this slice of time, if allowed. If another CPU takes one at the same time, ours is dropped. */
static __always_inline bool weir_take_turn(const struct weir_scratch *s, struct weir_ring_head *ring)
{
	__u64 old = READ_ONCE(ring->slice), next = weir_next_turn(s, old);

	return next && __sync_val_compare_and_swap(&ring->slice, old, next) == old;
}

static __always_inline __u64 weir_take_number(struct weir_ring_head *ring)
{
	return __sync_fetch_and_add(&ring->last, 1) + 1;
}

/* Reserve the event for writing; weir_end_event() stores the number. False: a CPU that was stopped for a whole round of
 * the ring is still writing it. The mark is set by a successful compare-and-swap, a full barrier, so a reader that sees
 * anything written from here on also sees the mark or the new number.
 */
static __always_inline bool weir_begin_event(struct weir_scratch *s, struct weir_event *event)
{
	__u64 old;

	if (!event)
		return false;
	old = READ_ONCE(event->number);
	if (old == WEIR_EVENT_BUSY || __sync_val_compare_and_swap(&event->number, old, WEIR_EVENT_BUSY) != old)
		return false;
	event->time_ns = weir_now_ns(s);
	event->flags = 0;
	event->kept_bytes = 0;
	return true;
}

static __always_inline void weir_end_event(struct weir_scratch *s, struct weir_event *event, __u64 number)
{
	weir_order(s);
	WRITE_ONCE(event->number, number);
}

/* ---- changes of state ---- */

/* Attempts; if other CPUs interfere with each, the event is not reported. */
#define WEIR_CHANGE_ATTEMPTS 3

/* Take one more event in this slice of time, if allowed. */
static __always_inline bool weir_take_change(const struct weir_scratch *s, struct weir_ring_head *ring)
{
	__u64 slice = s->tick_ns >> WEIR_CHANGE_SLICE_SHIFT;
	__u64 end_ns = (slice + 1) << WEIR_CHANGE_SLICE_SHIFT;

	for (int attempt = 0; attempt < WEIR_CHANGE_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(ring->slice), halvings = old >> 8 & 7, next = old + 1;

		if (slice > old >> 16) {
			if (READ_ONCE(ring->flooded_until_ns) == ((old >> 16) + 1) << WEIR_CHANGE_SLICE_SHIFT)
				halvings += halvings < WEIR_CHANGE_HALVINGS;
			else
				halvings -= halvings > 0;
			next = slice << 16 | halvings << 8 | 1;
		} else if ((old & 0xff) >= WEIR_CHANGES_A_SLICE >> halvings) {
			break;
		}
		if (__sync_val_compare_and_swap(&ring->slice, old, next) == old)
			return true;
	}
	if (READ_ONCE(ring->flooded_until_ns) != end_ns)
		WRITE_ONCE(ring->flooded_until_ns, end_ns);
	return false;
}

/* The next event of the rule in `slot` in this lane, for the caller to write. NULL: the ring accepts no more, and the
 * event is only counted.
 */
static __always_inline struct weir_event *weir_begin_change(struct weir_scratch *s, __u32 lane, __u32 slot,
							    __u64 *ret_number)
{
	struct weir_events *all = weir_events();
	struct weir_change_ring *ring;
	struct weir_event *event;

	weir_count_rule_change(slot);
	if (config.is_virtual || !all)
		return NULL;
	ring = WEIR_ELEMENT(all->changes[lane - WEIR_LANE_PENALTIES], slot & (WEIR_CHANGE_RINGS - 1));
	if (!ring || !weir_take_change(s, &ring->head))
		return NULL;
	*ret_number = weir_take_number(&ring->head);
	event = WEIR_ELEMENT(ring->event, *ret_number & (WEIR_CHANGE_EVENTS - 1));
	return weir_begin_event(s, event) ? event : NULL;
}

/* A penalty begins for the packet's flow. Or, under a rule with fairBy, it becomes contended (1) or calm (0): one
 * function for both, because the verifier looks at each.
 */
__noinline int weir_emit_penalty_event(struct weir_scratch *s, __u32 place, __u64 until_ns)
{
	__u32 slot = weir_rule(place)->slot;
	struct weir_event *event;
	__u64 number;

	WEIR_GLOBAL(BARS, s, 0);
	event = weir_begin_change(s, WEIR_LANE_PENALTIES, slot, &number);
	if (!event)
		return 0;
	weir_hash_key(s, place); /* makes s->key */
	event->value = until_ns;
	if (weir_rule(place)->bar == WEIR_BAR_LEVEL)
		event->flags = WEIR_EVENT_SHARES;
	event->key = s->key;
	event->rule_slot = slot;
	weir_end_event(s, event, number);
	return 0;
}

/* A breaker has changed to this state (enum weir_breaker_kind). The breaker itself says which flow it belongs to,
 * because the current packet may be an answer.
 */
__noinline int weir_emit_breaker_event(struct weir_scratch *s, const struct weir_breaker *breaker, __u32 kind)
{
	struct weir_event *event;
	__u64 number;

	WEIR_GLOBAL(BREAKERS, s && breaker, 0);
	event = weir_begin_change(s, WEIR_LANE_BREAKERS, breaker->slot, &number);
	if (!event)
		return 0;
	event->used = breaker->last;
	event->value = kind;
	event->key = breaker->key;
	event->rule_slot = breaker->slot;
	weir_end_event(s, event, number);
	return 0;
}

#endif
