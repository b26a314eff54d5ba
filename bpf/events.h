/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events (include/weir_events.h): how one is written; and penalties that begin and breakers that change, told always,
 * where they do so. drops.h tells of drops. Nothing is decided by any of it. In the lab nobody listens, and nothing is
 * told.
 */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

#include "shared_set.h"

static __always_inline struct weir_events *weir_events(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&events, &zero);
}

/* Does anybody listen for drops? All that a drop costs when nobody does. */
static __always_inline bool weir_is_heard(const struct weir_scratch *s)
{
	const struct weir_events *all = config.is_virtual ? NULL : weir_events();

	return all && READ_ONCE(all->heard_until_ns) > weir_tick_time_ns(s->tick);
}

/* ---- writing one ---- */

/* One more in this slice of time, if it may have one. When another CPU takes its own meanwhile, this one is let go. */
static __always_inline bool weir_take_turn(const struct weir_scratch *s, struct weir_event_ring *ring)
{
	__u64 slice = weir_tick_time_ns(s->tick) >> WEIR_EVENT_SLICE_SHIFT, old = READ_ONCE(ring->slice),
	      next = old + 1;

	/* The tick of another CPU may have been a newer one. */
	if (slice > old >> 8)
		next = slice << 8 | 1;
	else if ((old & 0xff) >= WEIR_EVENTS_A_SLICE)
		return false;
	return __sync_val_compare_and_swap(&ring->slice, old, next) == old;
}

/* The ring's next event, to be written, and then given its number. NULL: a CPU that has been stopped for a whole round
 * of the ring is yet writing there. The mark is a compare-and-swap that has succeeded, and so a full barrier: who reads
 * anything that is written now sees the mark, or the new number.
 */
static __always_inline struct weir_event *weir_begin_event(struct weir_scratch *s, struct weir_event_ring *ring,
							   __u64 *ret_number)
{
	__u64 number = __sync_fetch_and_add(&ring->last, 1) + 1, old;
	struct weir_event *event = WEIR_ELEMENT(ring->event, number & (WEIR_RING_EVENTS - 1));

	if (!event)
		return NULL;
	old = READ_ONCE(event->number);
	if (old == WEIR_EVENT_BUSY || __sync_val_compare_and_swap(&event->number, old, WEIR_EVENT_BUSY) != old)
		return NULL;
	event->time_ns = weir_now_ns(s);
	event->flags = 0;
	event->kept_bytes = 0;
	*ret_number = number;
	return event;
}

static __always_inline void weir_end_event(struct weir_scratch *s, struct weir_event *event, __u64 number)
{
	weir_order(s);
	WRITE_ONCE(event->number, number);
}

/* ---- changes of state ---- */

/* A penalty begins for the packet's flow. */
__noinline int weir_tell_penalty(struct weir_scratch *s, __u32 place, __u64 until_ns)
{
	struct weir_events *all = weir_events();
	struct weir_event *event;
	__u64 number;

	WEIR_GLOBAL(PENALTIES, !config.is_virtual && s && all, 0);
	if (!weir_take_turn(s, &all->ring[WEIR_LANE_PENALTIES]))
		return 0;
	weir_hash_key(s, place); /* makes s->key */
	event = weir_begin_event(s, &all->ring[WEIR_LANE_PENALTIES], &number);
	if (!event)
		return 0;
	event->value = until_ns;
	event->key = s->key;
	event->rule_slot = weir_rule(place)->slot;
	weir_end_event(s, event, number);
	return 0;
}

/* A breaker is in this state now (enum weir_breaker_kind). Whose it is stands in it: the packet may be an answer. */
__noinline int weir_tell_breaker(struct weir_scratch *s, const struct weir_breaker *breaker, __u32 kind)
{
	struct weir_events *all = weir_events();
	struct weir_event *event;
	__u64 number;

	WEIR_GLOBAL(BREAKERS, !config.is_virtual && s && all && breaker, 0);
	event = weir_begin_event(s, &all->ring[WEIR_LANE_BREAKERS], &number);
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
