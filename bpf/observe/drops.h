/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports drops while a reader is attached (include/weir_events.h): which rule dropped the packet, and the state of the
 * packet's flow under that rule. The rule's kind passes this state to weir_refuse() when it refuses a packet, so this
 * file does not depend on kinds. Without a reader, a drop costs one comparison. Packets that pass come here only under
 * rules that observe. No verdict depends on this file.
 */
#ifndef WEIR_DROPS_H
#define WEIR_DROPS_H

#include "observe/events.h"

/* ---- the state of the flow ---- */

/* A kind blocks the packet. `used` and `threshold` are the state of its flow, in the units of events, or
 * WEIR_EVENT_UNKNOWN.
 */
static __always_inline enum weir_answer weir_refuse(struct weir_scratch *s, __u64 used, __u64 threshold)
{
	s->refusal.used = used;
	s->refusal.threshold = threshold;
	s->refusal.unit = 1;
	return WEIR_ANSWER_BLOCK;
}

/* The kind found no answer, because other CPUs interfered or an entry is missing. */
static __always_inline enum weir_answer weir_refuse_stalled(struct weir_scratch *s, __u32 slot)
{
	weir_count_stall(slot);
	return weir_refuse(s, WEIR_EVENT_UNKNOWN, WEIR_EVENT_UNKNOWN);
}

/* ---- noting ---- */

/* Returns the flag for a drop by a running penalty, or 0. Call this only if `rule` has blocked the packet. */
static __always_inline __u32 weir_penalised_flag(const struct weir_scratch *s, const struct weir_rule *rule)
{
	return config.penalises && rule->penalty_ms && s->was_barred ? WEIR_EVENT_PENALISED : 0;
}

/* Would a drop be reported now? */
static __always_inline bool weir_may_note_drop(const struct weir_scratch *s)
{
	const struct weir_events *all = weir_events();

	return s->has_listener && all && weir_has_turn(s, &all->drops.head);
}

/* A reader is attached, and the rule at `place` drops the packet, or would. Note this drop; it is reported once the
 * verdict is final. If several observing rules would drop the packet, only the first is noted, as if they were
 * enforced. Returns whether the drop was noted.
 */
__noinline int weir_note_drop(struct weir_scratch *s, __u32 place, __u32 flags)
{
	struct weir_events *all = weir_events();
	struct weir_noted_drop *noted;

	WEIR_GLOBAL(EVENTS, s && all, 0);
	noted = &s->noted[place != WEIR_NO_RULE && weir_rule(place)->observes ? WEIR_NOTED_OBSERVED
									      : WEIR_NOTED_BLOCKED];
	if (noted->is_noted || !weir_take_turn(s, &all->drops.head))
		return 0;
	noted->is_noted = 1;
	noted->place = place;
	noted->flags = flags;
	noted->refusal = s->refusal;
	if (flags & WEIR_EVENT_PENALISED)
		noted->refusal.used = noted->refusal.threshold = WEIR_EVENT_UNKNOWN;
	return 1;
}

/* ---- reporting ---- */

/* Copy the first bytes of the packet to event->frame, from this offset on. */
static __always_inline void weir_copy_packet_bytes(weir_context *ctx, struct weir_event *event, const __u64 from)
{
	__u64 beyond = weir_context_bytes(ctx) - 1; /* the first */

	if (beyond > WEIR_EVENT_FRAME_BYTES - from - 1)
		beyond = WEIR_EVENT_FRAME_BYTES - from - 1;
	/* The verifier of Linux 6.1 requires both bounds to be tested in this same register. */
	OPAQUE(beyond);
	if (beyond < WEIR_EVENT_FRAME_BYTES - from && !weir_load_bytes(ctx, 0, event->frame + from, beyond + 1))
		event->kept_bytes = beyond + 1 + from;
}

/* Copy the first bytes of the frame, because s->packet has only the fields that rules use. */
static __always_inline void weir_copy_frame(weir_context *ctx, const struct weir_scratch *s, struct weir_event *event)
{
	if (weir_make_ethernet(ctx, s, (struct ethhdr *)event->frame))
		weir_copy_packet_bytes(ctx, event, sizeof(struct ethhdr));
	else
		weir_copy_packet_bytes(ctx, event, 0);
}

/* What is different of a packet at tc. */
static __always_inline __u32 weir_note_hook(const struct weir_scratch *s, struct weir_event *event)
{
	__u32 flags = WEIR_IS_OUT(&s->packet) ? WEIR_EVENT_OUT : 0;

	if (WEIR_SEGMENTS(s) == 1)
		return flags;
	event->value = WEIR_SEGMENTS(s);
	return flags | WEIR_EVENT_SEVERAL;
}

/* In units, rounded up. */
static __always_inline __u64 weir_event_units(__u64 parts, __u64 unit)
{
	return parts == WEIR_EVENT_UNKNOWN || !unit ? parts : parts / unit + (parts % unit != 0);
}

/* Report the current packet, which is dropped or would be, as it was noted. */
__noinline int weir_emit_drop_event(weir_context *ctx, struct weir_scratch *s, __u32 verdict, __u32 nth)
{
	struct weir_events *all = weir_events();
	struct weir_noted_drop *noted;
	struct weir_event *event;
	__u64 number;

	WEIR_GLOBAL(EVENTS, s && all && nth < WEIR_NOTED_DROPS, 0);
	noted = &s->noted[nth];
	noted->is_noted = 0;
	if (noted->place != WEIR_NO_RULE)
		weir_hash_key(s, noted->place); /* makes s->key */
	number = weir_take_number(&all->drops.head);
	event = WEIR_ELEMENT(all->drops.event, number & (WEIR_RING_EVENTS - 1));
	if (!weir_begin_event(s, event))
		return 0;
	event->threshold = weir_event_units(noted->refusal.threshold, noted->refusal.unit);
	event->used = weir_event_units(noted->refusal.used, noted->refusal.unit);
	event->key = s->key;
	event->rule_slot = noted->place == WEIR_NO_RULE ? WEIR_EVENT_NO_RULE : weir_rule(noted->place)->slot;
	event->ifindex = weir_context_ifindex(ctx);
	event->frame_bytes = s->packet.frame_bytes;
	event->verdict = verdict;
	event->flags = noted->flags | (config.observes ? WEIR_EVENT_OBSERVED : 0) | weir_note_hook(s, event);
	weir_copy_frame(ctx, s, event);
	weir_end_event(s, event, number);
	return 0;
}

/* The verdict is final, and a reader is attached: report what was noted, or a drop that no rule decided. */
static __always_inline void weir_emit_noted_drops(weir_context *ctx, struct weir_scratch *s, enum weir_verdict verdict)
{
	if (config.has_observers && unlikely(s->noted[WEIR_NOTED_OBSERVED].is_noted))
		weir_emit_drop_event(ctx, s, WEIR_VERDICT_BLOCK, WEIR_NOTED_OBSERVED);
	if (verdict == WEIR_VERDICT_BLOCK) {
		if (unlikely(s->noted[WEIR_NOTED_BLOCKED].is_noted))
			weir_emit_drop_event(ctx, s, verdict, WEIR_NOTED_BLOCKED);
	} else if (!weir_verdict_passes(verdict)) {
		weir_refuse(s, WEIR_EVENT_UNKNOWN, WEIR_EVENT_UNKNOWN);
		if (weir_note_drop(s, WEIR_NO_RULE, 0))
			weir_emit_drop_event(ctx, s, verdict, WEIR_NOTED_BLOCKED);
	}
}

#endif
