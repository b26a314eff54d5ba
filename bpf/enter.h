/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A packet enters: the scratch is brought to its load, its tick and, in the harness, the clock that replay and tests
 * set.
 */
#ifndef WEIR_ENTER_H
#define WEIR_ENTER_H

#include "kinds/connection_state.h"
#include "observe/count.h"
#include "observe/events.h"
#include "observe/top_drops.h"

/* This is the load's first packet on this CPU, or its first after a packet of another load. While a reload changes one
 * interface after the other, both loads are at work.
 */
__noinline int weir_begin_load(struct weir_scratch *s)
{
	volatile __u64 *word = (volatile __u64 *)s;

	if (!s)
		return 0;
#pragma unroll 1
	for (__u32 i = __builtin_offsetof(struct weir_scratch, entry) / sizeof(*word); i < sizeof(*s) / sizeof(*word);
	     i++)
		word[i] = 0;
	/* The run of the load before, on another interface or until now. */
	if (!config.is_virtual && config.counts_flow_drops)
		weir_settle_run(s);
	/* Notes survive this, and must not be valid in another bucket. So salts begin at a random number. */
	for (__u32 i = 0; i < WEIR_SPECS_NARROW; i++)
		s->narrow_clock[i].salt = bpf_get_prandom_u32();
	return 0;
}

/* A new tick has begun, or another load was at work: compute once what depends on the tick alone. */
__noinline int weir_enter_tick(struct weir_scratch *s, __u64 tick)
{
	const struct weir_events *all = config.is_virtual ? NULL : weir_events();
	bool begins;

	if (!s)
		return 0;
	begins = (s->entry ^ s->entry_tick) != config.load;
	if (begins || s->alike & WEIR_ALIKE_RUN)
		weir_turn_count_run(0);
	if (unlikely(begins)) {
		weir_begin_load(s);
		s->load_tick = tick;
	}
	s->alike = 0;
	s->entry = tick ^ config.load;
	s->entry_tick = tick;
	/* In a capture, the clock may go back to a bucket in which the flow is remembered as over its limit, although
	 * its row has a newer one.
	 */
	if (config.is_virtual && tick < s->tick)
		s->over_source.sure_jiffies = 0;
	weir_set_tick(s, tick);
	s->has_listener = all && READ_ONCE(all->listens_until_ns) > s->tick_ns;
	s->noted[WEIR_NOTED_OBSERVED].is_noted &= s->has_listener; /* only the current packet's note counts */
	weir_allot_drops(s);
	return 0;
}

/* A packet begins. Its tick is read before CLOCK_MONOTONIC: weir_clock_limit() relies on that. */
static __always_inline void weir_enter(struct weir_scratch *s)
{
	const __u64 tick = weir_tick_now();

	s->has_now = 0;
	if (unlikely((tick ^ config.load) != s->entry))
		weir_enter_tick(s, tick);
}

/* The harness says when a frame arrives, where, how long it was on the wire, and how many packets it stands for. */
static __always_inline void weir_enter_harness(struct weir_scratch *s, struct weir_cursor *cur)
{
	struct weir_harness *l = weir_harness();

	s->blocking_rule = WEIR_NO_RULE;
	if (!l)
		return;
	if (l->frame_bytes)
		cur->frame_bytes = l->frame_bytes;
	s->packet.ifindex = l->ifindex;
#ifdef WEIR_TC
	s->segments = l->segments ?: 1;
#endif
	/* In a capture the clock may go back, but for connections it never does, whatever the packet. */
	weir_monotonic_ns(s);
}

#endif
