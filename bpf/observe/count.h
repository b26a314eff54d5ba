/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts each packet when its verdict is final: for the verdict, for its resources, and for the rule that blocked it.
 *
 * Most packets count where the packet before did: verdict, direction, resource and rule are the same, whatever the
 * flow. After some of them a run begins (struct weir_count_run), and such a packet only adds to one pair of counters,
 * beside the scratch. The run is settled when a packet counts elsewhere, when the tick ends, and before all else when a
 * load begins, as it may be that of the load before. It lies where no load clears anything.
 */
#ifndef WEIR_COUNT_H
#define WEIR_COUNT_H

#include "window/rows.h"

/* A run begins after so many packets. If it ends with the next, it has cost as much as two packets save; so packets
 * that alternate, in whatever pattern, pay at most a fiftieth more. Chosen, not derived.
 */
#define WEIR_ALIKE_PACKETS 16

/* In scratch.alike, beside the places of resource and rule: a run counts there. */
#define WEIR_ALIKE_RUN (1u << 30)
#define WEIR_ALIKE (1u << 29)
#define WEIR_ALIKE_SHIFT 16 /* of the verdict and the direction */

/* ---- runs ---- */

/* Note what the counter is when a run begins, or add the run to it. */
static __always_inline void weir_turn_tally(struct weir_count_run *run, __u32 nth, struct weir_tally *tally,
					    __u64 number, bool begins)
{
	struct weir_tally *base = &run->base[nth];

	if (begins) {
		WRITE_ONCE(base->packets, number | (tally->packets & WEIR_RUN_SUM_MASK));
		WRITE_ONCE(base->bytes, number | (tally->bytes & WEIR_RUN_SUM_MASK));
		return;
	}
	/* If it is less than it was, its slot was given to another owner, who has none of these packets. They are added
	 * and not stored, because a version that knows no runs may have counted here in the meantime.
	 */
	if ((__s64)((tally->packets - base->packets) << (64 - WEIR_DROP_RUN_SHIFT)) < 0)
		return;
	tally->packets += run->counted.packets & WEIR_RUN_SUM_MASK;
	tally->bytes += run->counted.bytes & WEIR_RUN_SUM_MASK;
}

/* Begin a run that counts in what these words name, or settle the present one if `what` is 0. While it is being settled
 * it is marked: before, its counters lack it; thereafter, they have it (docs/internals/ordering.md, "Runs").
 */
__noinline int weir_turn_count_run(__u64 what)
{
	__u32 zero = 0, slot, now_s;
	struct weir_cpu_state *state = bpf_map_lookup_elem(&totals, &zero);
	struct weir_scratch *s = (struct weir_scratch *)state;
	struct weir_resource_counters *resource;
	struct weir_rule_counters *rule;
	const bool begins = what;
	struct weir_count_run *run;
	struct weir_second *second;
	__u64 number;
	__u32 *count;

	if (!state)
		return 0;
	run = &state->count_run;
	number = run->what & ~WEIR_RUN_SUM_MASK;
	if (begins) {
		number += WEIR_RUN_SUM_MASK + 1;
		WRITE_ONCE(run->counted.packets, number);
		WRITE_ONCE(run->counted.bytes, number);
		WRITE_ONCE(run->base[WEIR_RUN_OF_RULE].packets, number); /* also without a rule: all words have it */
		WRITE_ONCE(run->base[WEIR_RUN_OF_RULE].bytes, number);
	} else {
		what = run->what;
		if (!(what & WEIR_RUN_PENDING))
			return 0;
		WRITE_ONCE(run->what, what ^ (WEIR_RUN_PENDING | WEIR_RUN_SETTLING));
		weir_order(s);
	}
	slot = WEIR_RUN_VERDICT(what);
	if (slot < WEIR_VERDICT_COUNT)
		weir_turn_tally(run, WEIR_RUN_OF_VERDICT,
				&(what & WEIR_RUN_OUT ? &state->out : &state->totals)->verdict[slot], number, begins);
	if (slot == WEIR_VERDICT_BLOCK) {
		rule = weir_rule_counters(WEIR_RUN_RULE(what));
		if (rule)
			weir_turn_tally(run, WEIR_RUN_OF_RULE, &rule->blocked, number, begins);
	}
	slot = WEIR_RUN_RESOURCE(what);
	resource = bpf_map_lookup_elem(&resource_counters, &slot);
	if (resource) {
		const bool passes = weir_verdict_passes(WEIR_RUN_VERDICT(what));

		weir_turn_tally(run, WEIR_RUN_OF_RESOURCE, passes ? &resource->passed : &resource->blocked, number,
				begins);
		now_s = begins ? s->tick_s : run->second >> 32;
		second = &resource->second[now_s & (WEIR_SECONDS - 1)];
		count = passes ? &second->passed : &second->blocked;
		if (begins)
			WRITE_ONCE(run->second, number | (__u64)(now_s & 0xffff) << 32 | *count);
		else if (!((second->second ^ now_s) & 0xffff)) /* else it is over for longer than a minute */
			*count += run->counted.packets;
	}
	weir_order(s);
	WRITE_ONCE(run->what, begins ? number | what : number);
	return 0;
}

/* So many packets in a row were counted alike: this one is the first of a run, if one begins. None does in the tick in
 * which the load began: where it takes turns with a version that knows no runs.
 */
static __noinline int weir_begin_count_run(struct weir_scratch *s, __u32 index)
{
	s->alike_left = WEIR_ALIKE_PACKETS;
	if (s->tick == s->load_tick)
		return 0;
	weir_turn_count_run(WEIR_RUN_PENDING | WEIR_RUN_WHAT(index, s->first_slot, weir_rule(s->blocking_rule)->slot));
	s->alike |= WEIR_ALIKE_RUN;
	weir_tally(&((struct weir_cpu_state *)s)->count_run.counted, s, s->packet.frame_bytes);
	return 1;
}

/* A packet counts elsewhere that no run can count. */
static __noinline int weir_forget_alike(struct weir_scratch *s)
{
	if (s->alike & WEIR_ALIKE_RUN)
		weir_turn_count_run(0);
	s->alike = 0;
	return 0;
}

/* ---- packets ---- */

/* Count a packet of one resource that passes, or that a rule blocks. */
static __always_inline void weir_count_usual(struct weir_scratch *s, const enum weir_verdict verdict)
{
	const __u32 index = verdict | (WEIR_IS_OUT(&s->packet) ? WEIR_RUN_OUT : 0);
	const __u64 mark = WEIR_ALIKE | index << WEIR_ALIKE_SHIFT;
	__u64 where;

	if (likely((s->slot_and_rule ^ mark ^ WEIR_ALIKE_RUN) == s->alike)) {
		weir_tally(&((struct weir_cpu_state *)s)->count_run.counted, s, s->packet.frame_bytes);
		return;
	}
	OPAQUE(s); /* else clang works out first what is needed here alone */
	where = s->slot_and_rule ^ mark;
	if (where != s->alike) {
		if (unlikely(s->alike & WEIR_ALIKE_RUN))
			weir_turn_count_run(0);
		s->alike = where;
		s->alike_left = WEIR_ALIKE_PACKETS;
	} else if (unlikely(!--s->alike_left) && weir_begin_count_run(s, index)) {
		return;
	}
	weir_tally(&weir_totals_of(s)->verdict[verdict], s, s->packet.frame_bytes);
	if (verdict == WEIR_VERDICT_BLOCK)
		weir_count_block(s, weir_rule(s->blocking_rule)->slot, false);
	weir_count_resource(s, s->first_slot, verdict == WEIR_VERDICT_PASS);
}

/* Count the current packet. Every packet comes here exactly once. Returns whether it passes. */
static __always_inline __u32 weir_count(struct weir_scratch *s, enum weir_verdict verdict)
{
	__u32 passes;

	OPAQUE(s); /* else clang keeps addresses in it on the stack from the packet's start on */
	if (likely(s->resource_count == 1)) {
		if (verdict == WEIR_VERDICT_PASS) {
			weir_count_usual(s, WEIR_VERDICT_PASS);
			return 1;
		}
		if (!config.observes && verdict == WEIR_VERDICT_BLOCK) {
			weir_count_usual(s, WEIR_VERDICT_BLOCK);
			return 0;
		}
	}
	/* It has no resource or several, or neither passes nor is blocked by rules, or is observed. */
	if (unlikely(s->alike))
		weir_forget_alike(s);
	passes = config.observes | weir_verdict_passes(verdict);
	if (likely(verdict < WEIR_VERDICT_COUNT)) {
		struct weir_tally *tally = &weir_totals_of(s)->verdict[verdict];

		if (config.observes && !weir_verdict_passes(verdict)) {
			tally += WEIR_VERDICT_COUNT; /* would_drop */
			OPAQUE(tally);		     /* else clang works out first what is seldom asked for */
		}
		weir_tally(tally, s, s->packet.frame_bytes);
	}
	if (verdict == WEIR_VERDICT_BLOCK)
		weir_count_block(s, weir_rule(s->blocking_rule)->slot, config.observes);
	if (s->resource_count == 1)
		weir_count_resource(s, s->first_slot, passes);
	else
		weir_count_resources(s, passes);
	return passes;
}

#endif
