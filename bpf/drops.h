/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drops, told while somebody listens (include/weir_events.h): which rule, and how the packet's flow stood under it.
 * That is read once more when the packet is decided, so that a drop which nobody listens to costs a comparison. A
 * packet that passes comes by here only under rules that observe. Nothing is decided by any of it.
 */
#ifndef WEIR_DROPS_H
#define WEIR_DROPS_H

#include "events.h"
#include "kinds.h"

/* ---- how the flow stands: s->told, which is unknown at first ---- */

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

	if (wide == WEIR_WIDE && rule->storage == WEIR_STORAGE_LONE)
		flow.tag = flow.set = 0; /* as its rows have */
	if (!weir_open_judgement(s, &j, &flow, wide))
		return WEIR_EVENT_UNKNOWN;
	s->view.cell = j.clk->cell;
	if (s->view.is_smooth)
		j.into_ns = s->view.now_ns - j.clk->start_ns;
	__builtin_memset(&s->sum, 0, sizeof(s->sum));
	for (__u32 cpu = 0; cpu < WEIR_CPUS_MAX && cpu < config.cpus; cpu++)
		weir_add_cpu(s, cpu, wide);
	weir_add_remnants(s);
	return weir_window_units(&j, &s->sum);
}

/* What the window counts that the rule goes by, on all CPUs. */
__noinline int weir_find_told_window(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);

	WEIR_GLOBAL(EVENTS, s, 0);
	if (rule->kind == WEIR_KIND_ASSOCIATED)
		rule = weir_rule(rule->meter);
	if (rule->storage == WEIR_STORAGE_NARROW)
		s->told.used = weir_told_window_of(s, rule, WEIR_NARROW);
	else if (rule->storage == WEIR_STORAGE_MEDIUM)
		s->told.used = weir_told_window_of(s, rule, WEIR_MEDIUM);
	else
		s->told.used = weir_told_window_of(s, rule, WEIR_WIDE);
	return 0;
}

/* What a window that lends has in its present buckets. */
static __always_inline void weir_find_told_lending(struct weir_scratch *s, const struct weir_rule *rule)
{
	struct weir_borrowing *flow = weir_find_borrowing(s, rule);

	if (!flow)
		s->told.used = 0;
	else if (weir_enter_lending(s, flow, rule) && weir_look_at_cells(s, flow, rule->place))
		s->told.used = s->lending.current;
}

/* How long the packet would wait, and may. One that is larger than what is allowed waits in vain: not told. */
static __always_inline void weir_find_told_wait(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u64 batch = rule->counts_bytes ? s->packet.frame_bytes : 1;
	const __u64 *last;

	s->told.threshold = rule->queueing_ns_max;
	if (batch > (s->allowed.word & WEIR_THRESHOLD_MASK))
		return;
	last = weir_find_planned(s, rule);
	if (last)
		s->told.used = weir_wait_ns(READ_ONCE(*last), s->view.flow.tag, weir_now_ns(s),
					    weir_cost_ns(&s->allowed.cost, batch));
}

/* How many tokens the bucket lacks of being full, rounded up, and how many it holds then. */
static __always_inline void weir_find_told_tokens(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u64 unit = rule->tokens.unit, lacks;

	if (!unit || !weir_find_tokens(s, rule->place))
		return;
	lacks = weir_bucket_lacks(s, rule);
	s->told.threshold = s->tokens.capacity / unit;
	s->told.used = lacks / unit + (lacks % unit != 0);
}

/* How many connections the flow has open. */
static __always_inline void weir_find_told_connections(struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_connection_flow *flow = weir_find_connection_flow(s, rule);

	s->told.used = flow ? weir_open_connections(s, flow, s->counted_tag) : 0;
}

/* What the breaker was judged by when it opened. */
static __always_inline void weir_find_told_breaker(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u32 number = weir_get_breaker(s, rule->place, false);
	const struct weir_breaker *breaker = number == WEIR_NO_BREAKER ? NULL : weir_breaker_by_number(number);

	s->told.threshold = rule->breaker.threshold_micro;
	if (breaker)
		s->told.used = READ_ONCE(breaker->last);
}

/* Fill in s->told for the packet's flow under a rule, by the rule's kind. */
__noinline int weir_find_told(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);

	WEIR_GLOBAL(EVENTS, s, 0);
	s->told.used = WEIR_EVENT_UNKNOWN;
	s->told.threshold = weir_told_threshold(s, rule);
	if (rule->kind == WEIR_KIND_WINDOW || rule->kind == WEIR_KIND_ASSOCIATED)
		weir_find_told_window(s, place);
	else if (weir_is_kind(rule, WEIR_KIND_THROTTLE))
		weir_find_told_wait(s, rule);
	else if (weir_is_kind(rule, WEIR_KIND_TOKENS))
		weir_find_told_tokens(s, rule);
	else if (weir_is_kind(rule, WEIR_KIND_BORROWING))
		weir_find_told_lending(s, rule);
	else if (weir_is_kind(rule, WEIR_KIND_CONNECTIONS))
		weir_find_told_connections(s, rule);
	else if (weir_is_kind(rule, WEIR_KIND_BREAKER))
		weir_find_told_breaker(s, rule);
	else if (weir_is_kind(rule, WEIR_KIND_SYSTEM))
		s->told.used = weir_read_signal(s, rule);
	return 0;
}

/* ---- telling ---- */

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
	struct weir_events *all = weir_events();
	struct weir_event *event;
	__u64 number;

	WEIR_GLOBAL(EVENTS, s && all, 0);
	if (!weir_take_turn(s, &all->drops.head))
		return 0;
	if (place != WEIR_NO_RULE) {
		weir_find_told(s, place);
		weir_hash_key(s, place); /* makes s->key */
	}
	number = weir_take_number(&all->drops.head);
	event = WEIR_ELEMENT(all->drops.event, number & (WEIR_RING_EVENTS - 1));
	if (!weir_begin_event(s, event))
		return 0;
	event->threshold = place == WEIR_NO_RULE ? WEIR_EVENT_UNKNOWN : s->told.threshold;
	event->used = place == WEIR_NO_RULE ? WEIR_EVENT_UNKNOWN : s->told.used;
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
