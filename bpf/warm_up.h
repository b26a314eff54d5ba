/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * WarmUp of each flow of a rule with a key: the controller cannot do that for a million flows. A flow's first packet in
 * a new second brings the flow up to date, as if it had been synced every second. All CPUs share the flow's state. The
 * first of them in a second claims the sync; the others do not wait, and go by what the flow was allowed until then,
 * or, when it is new, by what a cold flow is allowed.
 */
#ifndef WEIR_BPF_WARM_UP_H
#define WEIR_BPF_WARM_UP_H

#include "shared_set.h"
#include "weir_warm_up.h"

/* ---- the state ---- */

/* The second after which the flow is all cold again if nothing passes: it need not be remembered then. */
static __always_inline __u64 weir_cold_second(const struct weir_warm_up *params, __u64 stored, __u64 second)
{
	if (stored >= params->max)
		return second;
	if (!params->refill || !params->refill_below)
		return ~0ull; /* it stays as warm as it is */
	return second + (params->max - stored) / params->refill + 1;
}

/* Whose a state is: this flow's, under the rule as it is now. */
static __always_inline __u64 weir_warming_owner(const struct weir_rule *rule, __u32 tag)
{
	return (rule->threshold & ~WEIR_THRESHOLD_MASK) | WEIR_WARMING_TAG(tag);
}

static __always_inline bool weir_is_of_flow(__u64 state, __u32 tag)
{
	return (state & WEIR_WARMING_TAG_MASK) == WEIR_WARMING_TAG(tag);
}

/* Is the state this flow's, and is nothing left to do in this second? */
static __always_inline bool weir_is_synced(__u64 state, __u64 owner, __u64 now_s)
{
	return (state & ~WEIR_WARMING_SECOND_MASK) == owner && (state & WEIR_WARMING_SECOND_MASK) > now_s;
}

/* ---- the flow's entry ---- */

/* So many bits tell apart flows that will be cold in the same second, and so many seconds are told. */
#define WEIR_WARMTH_BITS 20
#define WEIR_COLD_SECOND_MAX (1ull << 38)

/* How far from cold a flow is, roughly: by the tokens that it will have stored when its second is synced. */
static __always_inline __u64 weir_warmth(const struct weir_warming *flow)
{
	__u64 stored = READ_ONCE(flow->stored), passed = READ_ONCE(flow->passed), left;

	left = (stored - passed) * (1 - weir_top_bit(stored - passed));
	return (1ull << WEIR_WARMTH_BITS) - 1 - weir_lesser(left, (1ull << WEIR_WARMTH_BITS) - 1);
}

/*
 * The victim: the flow that will be cold first, and of those that will be in the same second the coldest: under a rule
 * that cools within a second, a flow at its limit and one that was seen once differ in nothing else. An entry that is
 * being synced is warm for this second, and the latest way taken goes last of those that are cold: otherwise two CPUs
 * with a new flow each would both write into one entry.
 */
__noinline __u32 weir_choose_warming(const struct weir_warming_set *set, __u64 latest, __u64 now_s)
{
	__u64 coldest = ~0ull >> 1, rank;

	WEIR_GLOBAL(WARM_UP, set, 0);
#pragma unroll
	for (__u32 way = 0; way < WEIR_WARMING_WAYS; way++) {
		__u64 is_latest = weir_is_latest_way(latest, way);
		__u64 is_busy = READ_ONCE(set->flow[way].state) / WEIR_WARMING_BUSY & 1;
		__u64 cold_second = READ_ONCE(set->flow[way].cold_second) & ~0ull >> 1;

		cold_second = weir_lesser(cold_second, WEIR_COLD_SECOND_MAX);
		cold_second = weir_greater(cold_second, now_s * is_latest);
		cold_second = weir_greater(cold_second, (now_s + 1) * is_busy);
		rank = (cold_second * 2 + is_latest) << WEIR_WARMTH_BITS | weir_warmth(&set->flow[way]);
		coldest = weir_lesser(rank * 8 + way, coldest);
	}
	return (coldest & 7) | ((coldest >> WEIR_WARMTH_BITS) / 16 > now_s ? WEIR_WAY_EVICTS : 0);
}

static __always_inline __u32 weir_warming_victim(struct weir_scratch *s, void *set, __u64 latest, void *context)
{
	return weir_choose_warming(set, latest, weir_now_ns(s) / WEIR_NSEC_PER_SEC);
}

/* Insert the flow of s->view. Returns its way, or one beyond the last. */
__noinline __u32 weir_insert_warming(struct weir_scratch *s, struct weir_warming_set *set)
{
	__u32 way;

	WEIR_GLOBAL(WARM_UP, s && set, WEIR_WARMING_WAYS);
	way = weir_insert_tag(s, set, WEIR_WARMING_WAYS, s->view.flow.tag, weir_warming_victim, NULL);
	if (way & WEIR_WAY_EVICTS)
		weir_count_eviction(s->view.slot);
	return WEIR_WAY(way);
}

/* The set of this packet's flow under `rule`; s->warming says which flow it is. */
static __always_inline struct weir_warming_set *weir_warming_set(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u32 index;

	if (s->warming_place != rule->place) {
		s->warming_place = rule->place;
		s->warming = weir_shared_id(weir_flow_hash(s, rule), config.sizes[WEIR_TABLE_WARMING_FLOWS]);
	}
	index = s->warming.set;
	return bpf_map_lookup_elem(&warming_flows, &index);
}

/* Start to fetch the line that says where in the set the flow is. */
static __always_inline void weir_fetch_warming(struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_warming_set *set = weir_warming_set(s, rule);

	if (set)
		(void)READ_ONCE(set->tag[0]);
}

/* Find or insert this packet's flow under `rule`; s->view then says which it is. */
static __always_inline struct weir_warming *weir_get_warming(struct weir_scratch *s, const struct weir_rule *rule)
{
	struct weir_warming_set *set = weir_warming_set(s, rule);
	__u32 way;

	s->view.slot = rule->slot;
	s->view.flow = s->warming;
	if (!set)
		return NULL;
	way = weir_find_tag(set, WEIR_WARMING_WAYS, s->view.flow.tag);
	if (way == WEIR_WARMING_WAYS)
		way = weir_insert_warming(s, set);
	FORGET(s->forgotten, way);
	return WEIR_ELEMENT(set->flow, way);
}

/* ---- what a flow is allowed, and what has passed ---- */

/*
 * Bring a flow whose sync we have claimed to the present second, and to the rule as it is now. A new flow begins cold.
 * `left` is what the entry had counted before it was claimed; what is more has passed since, of this flow.
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
	if (config.throttle_horizon_ns && params->cost_num) /* a rule that spaces its packets */
		weir_warm_up_cost(params, stored, &s->allowed.cost);
	if (READ_ONCE(flow->state) != claimed)
		return; /* another flow has taken the entry */
	WRITE_ONCE(flow->stored, stored);
	WRITE_ONCE(flow->cold_second, weir_cold_second(params, stored, second));
	WRITE_ONCE(flow->units, units);
	flow->cost = s->allowed.cost;
	weir_order(s);
	second = weir_warming_owner(rule, s->view.flow.tag) | (second + 1);
	/* If another flow has taken the entry meanwhile, what we wrote is not its own: it begins anew. */
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
		claimed = owner | WEIR_WARMING_BUSY; /* nothing is left of the former owner */
	else if (state & WEIR_WARMING_BUSY)
		return state;
	if (__sync_val_compare_and_swap(&flow->state, state, claimed) != state)
		return READ_ONCE(flow->state);
	weir_sync_warming(s, rule, flow, state, claimed, left, now_s);
	return READ_ONCE(flow->state);
}

/* Fill in s->allowed: what this packet's flow is allowed now. */
__noinline int weir_warm_flow(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 version = rule->threshold & ~WEIR_THRESHOLD_MASK, state = 0;
	struct weir_warming *flow;

	WEIR_GLOBAL(WARM_UP, s, 0);
	flow = weir_get_warming(s, rule);
	if (flow)
		state = weir_update_warming(s, rule, flow);
	if (flow && weir_is_of_flow(state, s->view.flow.tag) && state & WEIR_WARMING_SECOND_MASK) {
		weir_order(s); /* the state was written after the units and the cost */
		s->allowed.word = version | (READ_ONCE(flow->units) & WEIR_THRESHOLD_MASK);
		s->allowed.cost = flow->cost;
		/* A flow that takes the entry over claims its state first. */
		weir_order(s);
		if (weir_is_of_flow(READ_ONCE(flow->state), s->view.flow.tag))
			return 0;
	}
	/* Another CPU is making the entry just now, or has just taken it. */
	s->allowed.word = version | weir_warm_up_units(&rule->warm_up, rule->warm_up.max);
	weir_warm_up_cost(&rule->warm_up, rule->warm_up.max, &s->allowed.cost);
	return 0;
}

__noinline int weir_count_warming(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 now_s, units, passed, stored, state;
	struct weir_warming *flow;

	WEIR_GLOBAL(WARM_UP, s, 0);
	flow = weir_get_warming(s, rule);
	if (!flow)
		return 0;
	now_s = weir_rule_time_ns(s, rule) / WEIR_NSEC_PER_SEC;
	state = weir_update_warming(s, rule, flow);
	/* A clock that went back: the packet's second has been synced already. */
	if (!weir_is_of_flow(state, s->view.flow.tag) || (state & WEIR_WARMING_SECOND_MASK) > now_s + 1)
		return 0;
	units = rule->counts_bytes ? s->packet.frame_bytes : 1;
	passed = __sync_fetch_and_add(&flow->passed, units) + units;
	/* The flow will be warmer than it is: it must not be forgotten as cold before that shows. */
	stored = READ_ONCE(flow->stored);
	WRITE_ONCE(flow->cold_second,
		   weir_cold_second(&rule->warm_up, stored > passed ? stored - passed : 0, now_s + 1));
	return 0;
}

#endif
