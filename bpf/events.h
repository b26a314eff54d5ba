/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events (include/weir_events.h): a sample of dropped packets, told while somebody listens; penalties that begin and
 * breakers that change, told always, where they do so. A packet that passes comes by here only under rules that
 * observe. Nothing is decided by any of it. In the lab nobody listens, and nothing is told.
 */
#ifndef WEIR_EVENTS_H
#define WEIR_EVENTS_H

#include "rate.h"

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
 * of the ring is yet writing there.
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

	if (config.is_virtual || !s || !all || !weir_take_turn(s, &all->ring[WEIR_LANE_PENALTIES]))
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

	if (config.is_virtual || !s || !all || !breaker)
		return 0;
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

/* ---- drops ---- */

/* What the rule allows the packet's flow now. */
static __always_inline __u64 weir_told_threshold(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u64 word = rule->threshold;

	if (rule->needs_allowed) {
		weir_find_allowed(s, rule->place);
		word = s->allowed.word;
	} else if (config.has_overrides && rule->has_overrides) {
		word = weir_override_word(s, rule->place);
	}
	return word & WEIR_THRESHOLD_MASK;
}

static __always_inline __u64 weir_told_window_of(struct weir_scratch *s, const struct weir_rule *rule,
						 const enum weir_width wide)
{
	struct weir_flow_id flow = weir_flow_id(s, rule, wide);
	struct weir_judgement j = {.rule = rule};

	if (!weir_open_judgement(s, &j, &flow, wide))
		return WEIR_EVENT_UNKNOWN;
	s->view.cell = j.clk->cell;
	if (s->view.is_smooth)
		j.into_ns = s->view.now_ns - j.clk->start_ns;
	__builtin_memset(&s->sum, 0, sizeof(s->sum));
	for (__u32 cpu = 0; cpu < WEIR_CPUS_MAX && cpu < config.cpus; cpu++)
		weir_add_cpu(s, cpu, wide);
	return weir_window_units(&j, &s->sum);
}

/* What the window counts that the rule goes by, on all CPUs. Rules that have none are not told by it. */
__noinline __u64 weir_told_window(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);

	if (config.is_virtual || !s)
		return WEIR_EVENT_UNKNOWN;
	if (rule->kind == WEIR_KIND_ASSOCIATED)
		rule = weir_rule(rule->meter);
	else if (rule->kind != WEIR_KIND_WINDOW)
		return WEIR_EVENT_UNKNOWN;
	if (rule->storage == WEIR_STORAGE_NARROW)
		return weir_told_window_of(s, rule, WEIR_NARROW);
	if (rule->storage == WEIR_STORAGE_MEDIUM)
		return weir_told_window_of(s, rule, WEIR_MEDIUM);
	return weir_told_window_of(s, rule, WEIR_WIDE);
}

/* The first bytes of the frame: s->packet has only those fields that the rules ask about. */
static __always_inline void weir_tell_frame(struct xdp_md *ctx, struct weir_event *event)
{
	__u64 beyond = bpf_xdp_get_buff_len(ctx) - 1; /* the first */

	if (beyond > WEIR_EVENT_FRAME_BYTES - 1)
		beyond = WEIR_EVENT_FRAME_BYTES - 1;
	/* The verifier of Linux 6.1 wants to see in the very register that it is neither zero nor too much. */
	OPAQUE(beyond);
	if (beyond < WEIR_EVENT_FRAME_BYTES && !bpf_xdp_load_bytes(ctx, 0, event->frame, beyond + 1))
		event->kept_bytes = beyond + 1;
}

/* Tell of the packet in hand, which is dropped, or would be: by the rule at `place`, or WEIR_NO_RULE. */
__noinline int weir_tell_drop(struct xdp_md *ctx, struct weir_scratch *s, __u32 verdict, __u32 place, __u32 flags)
{
	__u64 number, threshold = WEIR_EVENT_UNKNOWN, used = WEIR_EVENT_UNKNOWN;
	struct weir_events *all = weir_events();
	struct weir_event *event;

	if (config.is_virtual || !s || !all || !weir_take_turn(s, &all->ring[WEIR_LANE_DROPS]))
		return 0;
	if (place != WEIR_NO_RULE) {
		weir_hash_key(s, place); /* makes s->key */
		threshold = weir_told_threshold(s, weir_rule(place));
		used = weir_told_window(s, place);
	}
	event = weir_begin_event(s, &all->ring[WEIR_LANE_DROPS], &number);
	if (!event)
		return 0;
	event->threshold = threshold;
	event->used = used;
	event->key = s->key;
	event->rule_slot = place == WEIR_NO_RULE ? WEIR_EVENT_NO_RULE : weir_rule(place)->slot;
	event->ifindex = ctx->ingress_ifindex;
	event->frame_bytes = s->packet.frame_bytes;
	event->verdict = verdict;
	event->flags = flags;
	weir_tell_frame(ctx, event);
	weir_end_event(s, event, number);
	return 0;
}

/* `rule` has blocked the packet for a penalty that is running: only asked when it has blocked it. */
static __always_inline __u32 weir_told_penalised(const struct weir_scratch *s, const struct weir_rule *rule)
{
	return config.penalises && rule->penalty_ms && s->was_penalised ? WEIR_EVENT_PENALISED : 0;
}

/* A rule that observes would have dropped the packet: told, if somebody listens, when the packet is decided. Of several
 * such rules it is the first, as it would be if they were enforced.
 */
static __always_inline void weir_note_would_drop(struct weir_scratch *s, const struct weir_rule *rule)
{
	if (likely(!weir_is_heard(s)) || s->observed_flags)
		return;
	s->observed_rule = rule->place;
	s->observed_flags = WEIR_EVENT_OBSERVED | weir_told_penalised(s, rule);
}

/* The packet is decided: tell what there is to tell. */
static __always_inline void weir_tell(struct xdp_md *ctx, struct weir_scratch *s, enum weir_verdict verdict)
{
	__u32 place = WEIR_NO_RULE, flags = config.observes ? WEIR_EVENT_OBSERVED : 0;

	if (config.has_observers && unlikely(s->observed_flags)) {
		weir_tell_drop(ctx, s, WEIR_VERDICT_BLOCK, s->observed_rule, s->observed_flags);
		s->observed_flags = 0;
	}
	if (weir_verdict_passes(verdict) || likely(!weir_is_heard(s)))
		return;
	if (verdict == WEIR_VERDICT_BLOCK) {
		place = s->blocking_rule;
		flags |= weir_told_penalised(s, weir_rule(place));
	}
	weir_tell_drop(ctx, s, verdict, place, flags);
}

#endif
