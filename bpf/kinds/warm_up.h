/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * WarmUp of each flow of a rule with a key: the controller cannot do that for a million flows. A flow's first packet in
 * a new second brings the flow up to date, as if it had been synced every second. All CPUs share the flow's state. The
 * first of them in a second claims the sync. The others do not wait: they use the flow's previous threshold or, if the
 * flow is new, that of a cold flow.
 */
#ifndef WEIR_BPF_WARM_UP_H
#define WEIR_BPF_WARM_UP_H

#include "kinds/flow_set.h"
#include "weir_warm_up.h"

/* ---- the state ---- */

/* The number of seconds without packets after which the flow is completely cold and need not be remembered. The
 * maximum is longer than can be represented (WEIR_KEEP_NS_MAX).
 */
#define WEIR_COLD_SECONDS_MAX (1ull << 30)
static __always_inline __u64 weir_cold_seconds(const struct weir_warm_up *params, __u64 stored)
{
	if (stored >= params->max)
		return 0;
	if (!params->refill || !params->refill_below)
		return WEIR_COLD_SECONDS_MAX; /* it stays as warm as it is */
	return weir_lesser((params->max - stored) / params->refill + 1, WEIR_COLD_SECONDS_MAX);
}

/* The owner word of this flow's state, under the rule as it is now. */
static __always_inline __u64 weir_warming_owner(const struct weir_rule *rule, __u32 tag)
{
	return (rule->threshold & ~WEIR_THRESHOLD_MASK) | WEIR_WARMING_TAG(tag);
}

static __always_inline bool weir_is_of_flow(__u64 state, __u32 tag)
{
	return (state & WEIR_WARMING_TAG_MASK) == WEIR_WARMING_TAG(tag);
}

/* Does the state belong to this flow, and has it been synced for this second? */
static __always_inline bool weir_is_synced(__u64 state, __u64 owner, __u64 now_s)
{
	return (state & ~WEIR_WARMING_SECOND_MASK) == owner && (state & WEIR_WARMING_SECOND_MASK) > now_s;
}

/* ---- the flow's entry ---- */

/* How far from cold a flow is, in parts of WEIR_WARMTH_MAX, computed from the tokens that it will have after its sync.
 */
#define WEIR_WARMTH_MAX 250ull /* a part of a second is about a step of the clock that `keep` goes by */
static __always_inline __u64 weir_warmth(const struct weir_warm_up *params, const struct weir_warming *flow)
{
	__u64 stored = READ_ONCE(flow->stored), passed = READ_ONCE(flow->passed), left;

	left = weir_lesser((stored - passed) * (1 - weir_top_bit(stored - passed)), params->max);
	return params->max ? (params->max - left) * WEIR_WARMTH_MAX / params->max : 0;
}

/* The set of the flow s->warming. */
static __always_inline struct weir_warming_set *weir_warming_set(struct weir_scratch *s)
{
	__u32 index = s->warming.set;

	return bpf_map_lookup_elem(&warming_flows, &index);
}

/* The set of this packet's flow under `rule`; s->warming then names the flow. */
static __always_inline struct weir_warming_set *weir_find_warming_set(struct weir_scratch *s,
								      const struct weir_rule *rule)
{
	if (s->warming_place != rule->place) {
		s->warming_place = rule->place;
		s->warming = weir_shared_id(weir_flow_hash(s, rule), config.sizes[WEIR_TABLE_WARMING_FLOWS]);
	}
	return weir_warming_set(s);
}

/* Start to fetch the line with the tags of the set. */
static __always_inline void weir_fetch_warming(struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_warming_set *set = weir_find_warming_set(s, rule);

	if (set)
		(void)READ_ONCE(set->flows.tag[0]);
}

/* Find or insert this packet's flow under a rule; s->view then names it, and s->warming_way is its way. A separate call
 * before weir_warm_flow(), because the stack has no room for nested ones.
 */
__noinline int weir_enter_warming(struct weir_scratch *s, __u32 place)
{
	struct weir_warming_set *set;
	__u32 way;

	WEIR_GLOBAL(WARM_UP, s, 0);
	set = weir_find_warming_set(s, weir_rule(place));
	if (!set)
		return 0;
	way = weir_way_of(&set->flows, s->warming.tag);
	s->view.slot = weir_rule(place)->slot;
	s->view.flow = s->warming;
	if (way == WEIR_FLOW_WAYS)
		way = WEIR_WAY(weir_insert_flow(s, &set->flows, s->view.flow.tag, s->view.slot));
	s->warming_way = way;
	return 0;
}

/* The entry that was found or inserted; NULL: there is none. */
static __always_inline struct weir_warming *weir_entered_warming(struct weir_scratch *s, const struct weir_rule *rule)
{
	struct weir_warming_set *set = weir_warming_set(s);

	s->view.slot = rule->slot;
	s->view.flow = s->warming;
	return set ? WEIR_ELEMENT(set->flow, s->warming_way) : NULL;
}

/*
 * Record when the flow, with this many tokens stored in this second, will be completely cold and may be forgotten.
 * Among flows that will be cold in the same second, the coldest is evicted first. Under a rule that cools within a
 * second, nothing else distinguishes a flow at its limit from one that sent a single packet.
 *
 * `goes_on`: it has sent more than one packet, so it is evicted after flows of a single packet. By time alone, those of
 * the present second would stay longer than a flow that has not sent in it yet, or is over its limit, and a flood of
 * them would cool all flows.
 */
static __always_inline void weir_keep_warming(struct weir_scratch *s, const struct weir_rule *rule,
					      const struct weir_warming *flow, __u64 stored, __u64 second, bool goes_on)
{
	struct weir_warming_set *set = weir_warming_set(s);
	__u64 cold_s = second + weir_cold_seconds(&rule->warm_up, stored);

	if (!set)
		return;
	weir_keep_until(s, &set->flows, s->warming_way,
			cold_s * WEIR_NSEC_PER_SEC +
				weir_warmth(&rule->warm_up, flow) * (WEIR_NSEC_PER_SEC / WEIR_WARMTH_MAX));
	if (goes_on)
		weir_keep_refused(&set->flows, s->warming_way);
}

/* ---- what a flow is allowed, and what has passed ---- */

/*
 * Bring a flow whose sync we have claimed to the present second, and to the rule as it is now. A new flow begins cold.
 * `left` is what the entry had counted before it was claimed; anything beyond that has passed since, and belongs to
 * this flow.
 */
static __always_inline void weir_sync_warming(struct weir_scratch *s, const struct weir_rule *rule,
					      struct weir_warming *flow, __u64 state, __u64 claimed, __u64 left,
					      __u64 now_s)
{
	const struct weir_warm_up *params = &rule->warm_up;
	__u64 second = now_s, stored = params->max, passed, units;

	if (weir_is_of_flow(state, s->view.flow.tag) && state & WEIR_WARMING_SECOND_MASK) {
		passed = __sync_lock_test_and_set(&flow->passed, 0);
		second = (state & WEIR_WARMING_SECOND_MASK) - 1;
		stored = flow->stored;
		if (now_s > second) {
			stored = weir_warm_up_sync(params, stored, passed);
			stored = weir_warm_up_idle(params, stored, now_s - second - 1);
			second = now_s;
		} else {
			__sync_fetch_and_add(&flow->passed, passed); /* only the rule has changed */
		}
		if (stored > params->max)
			stored = params->max;
	} else {
		__sync_fetch_and_add(&flow->passed, -left);
	}
	units = weir_warm_up_units(params, stored);
	if (WEIR_PART_KIND(THROTTLE) && params->emission_num) /* a rule that spaces its packets */
		weir_warm_up_emission(params, stored, &s->allowed.emission);
	if (READ_ONCE(flow->state) != claimed)
		return; /* another flow has taken the entry */
	WRITE_ONCE(flow->stored, stored);
	weir_keep_warming(s, rule, flow, stored, second, false);
	WRITE_ONCE(flow->units, units);
	flow->emission = s->allowed.emission;
	weir_order(s);
	second = weir_warming_owner(rule, s->view.flow.tag) | (second + 1);
	/* If another flow has taken the entry meanwhile, what we wrote is not its own: it starts over. */
	if (__sync_val_compare_and_swap(&flow->state, claimed, second) != claimed)
		WRITE_ONCE(flow->state, 0);
}

/* Bring a flow up to date, unless another CPU is doing so. Returns its state after that. */
static __always_inline __u64 weir_update_warming(struct weir_scratch *s, const struct weir_rule *rule,
						 struct weir_warming *flow)
{
	__u64 now_s = weir_rule_time_ns(s, rule) / WEIR_NSEC_PER_SEC;
	__u64 owner = weir_warming_owner(rule, s->view.flow.tag);
	__u64 left = READ_ONCE(flow->passed), state = READ_ONCE(flow->state), claimed = state | WEIR_WARMING_BUSY;

	if (weir_is_synced(state, owner, now_s) && owner >> WEIR_THRESHOLD_BITS != WEIR_VERSION_NONE)
		return state;
	if (!weir_is_of_flow(state, s->view.flow.tag))
		claimed = owner | WEIR_WARMING_BUSY; /* nothing of the former owner counts */
	else if (state & WEIR_WARMING_BUSY)
		return state;
	if (__sync_val_compare_and_swap(&flow->state, state, claimed) != state)
		return READ_ONCE(flow->state);
	weir_sync_warming(s, rule, flow, state, claimed, left, now_s);
	return READ_ONCE(flow->state);
}

/* Fill in s->allowed, the threshold of this packet's flow now; the flow has an entry. */
__noinline int weir_warm_flow(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 version = rule->threshold & ~WEIR_THRESHOLD_MASK, state = 0;
	struct weir_warming *flow;

	WEIR_GLOBAL(WARM_UP, s, 0);
	flow = weir_entered_warming(s, rule);
	if (flow)
		state = weir_update_warming(s, rule, flow);
	if (flow && weir_is_of_flow(state, s->view.flow.tag) && state & WEIR_WARMING_SECOND_MASK) {
		weir_order(s); /* the state was written after the units and the emission interval */
		s->allowed.word = version | (READ_ONCE(flow->units) & WEIR_THRESHOLD_MASK);
		s->allowed.emission = flow->emission;
		/* A flow that takes the entry over claims its state first. */
		weir_order(s);
		if (weir_is_of_flow(READ_ONCE(flow->state), s->view.flow.tag))
			return 0;
	}
	/* Another CPU is making the entry, or has just taken it over. */
	s->allowed.word = version | weir_warm_up_units(&rule->warm_up, rule->warm_up.max);
	weir_warm_up_emission(&rule->warm_up, rule->warm_up.max, &s->allowed.emission);
	return 0;
}

__noinline int weir_count_warming(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 now_s, units, passed, stored, state;
	struct weir_warming *flow;

	WEIR_GLOBAL(WARM_UP, s, 0);
	weir_enter_warming(s, place);
	flow = weir_entered_warming(s, rule);
	if (!flow)
		return 0;
	now_s = weir_rule_time_ns(s, rule) / WEIR_NSEC_PER_SEC;
	state = weir_update_warming(s, rule, flow);
	/* The clock went back, and the packet's second has been synced already. */
	if (!weir_is_of_flow(state, s->view.flow.tag) || (state & WEIR_WARMING_SECOND_MASK) > now_s + 1)
		return 0;
	units = weir_units(s, rule);
	passed = __sync_fetch_and_add(&flow->passed, units) + units;
	/* The flow is about to become warmer, so it must not be forgotten as cold before its next sync. */
	stored = READ_ONCE(flow->stored);
	weir_keep_warming(s, rule, flow, stored > passed ? stored - passed : 0, now_s + 1, passed > units);
	return 0;
}

#endif
