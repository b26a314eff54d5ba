/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * WarmUp of flows with a key, each by itself: the controller cannot do that for a million of them. A flow is
 * brought up to date by its first packet in a new second, as if it had been synced on every one. Its state is shared
 * by all CPUs. Who comes first in a second claims the sync; others do not wait for it, they go by what the flow was
 * allowed until then, or, when it is new, by what a cold one is.
 */
#ifndef WEIR_BPF_WARM_UP_H
#define WEIR_BPF_WARM_UP_H

#include "shared.h"
#include "weir_warm_up.h"

/* The second after which this flow is all cold again if nothing passes; a flow that is cold need not be kept. */
static __always_inline __u64 weir_cold_second(const struct weir_warm_up *params, __u64 stored, __u64 second)
{
	if (stored >= params->max)
		return second;
	if (!params->refill || !params->refill_below)
		return ~0ull; /* it stays as warm as it is */
	return second + (params->max - stored) / params->refill + 1;
}

/* Who a state belongs to: this flow, under the rule as it is now. */
static __always_inline __u64 weir_warming_owner(const struct weir_rule *rule, __u32 tag)
{
	return (rule->threshold & ~WEIR_THRESHOLD_MASK) | WEIR_WARMING_TAG(tag);
}

static __always_inline bool weir_is_of_flow(__u64 state, __u32 tag)
{
	return (state & WEIR_WARMING_TAG_MASK) == WEIR_WARMING_TAG(tag);
}

/* The state is this flow's, and nothing is to be done in this second. */
static __always_inline bool weir_is_synced(__u64 state, __u64 owner, __u64 now_s)
{
	return (state & ~WEIR_WARMING_SECOND_MASK) == owner && (state & WEIR_WARMING_SECOND_MASK) > now_s;
}

/* Whoever has claimed the sync: bring the flow to the present second, and to the rule as it is now. A new flow
 * begins cold, as one that was silent since the load is; `left` is what the place had counted before it was claimed:
 * what is more has passed since then, of this flow, on another CPU.
 */
static __always_inline void weir_sync_warming(struct weir_work *w, const struct weir_rule *rule,
					      struct weir_warming *flow, __u64 state, __u64 claimed, __u64 left,
					      __u64 now_s)
{
	const struct weir_warm_up *params = &rule->warm_up;
	__u64 second = now_s, stored = params->max, passed, units;

	if (weir_is_of_flow(state, w->question.place.tag) && state & WEIR_WARMING_SECOND_MASK) {
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
	if (config.has_throttling && rule->judging == WEIR_JUDGING_THROTTLE)
		weir_warm_up_cost(params, stored, &w->allowed.cost);
	if (READ_ONCE(flow->state) != claimed)
		return; /* the place is another flow's by now */
	WRITE_ONCE(flow->stored, stored);
	WRITE_ONCE(flow->cold_second, weir_cold_second(params, stored, second));
	WRITE_ONCE(flow->units, units);
	flow->cost = w->allowed.cost;
	weir_order(w);
	second = weir_warming_owner(rule, w->question.place.tag) | (second + 1);
	/* Should it have become another's in between, what we wrote is not that flow's: it begins anew. */
	if (__sync_val_compare_and_swap(&flow->state, claimed, second) != claimed)
		WRITE_ONCE(flow->state, 0);
}

/* The place of a flow that is to go: a free one, else the one that will be cold first. What was taken last may not say
 * so yet: it is the last to go of those that are cold. One that is being synced is warm for this second. Else two CPUs
 * with a new flow each would take the same place, and both write into it.
 */
__noinline __u64 weir_warming_victim(const struct weir_warming_set *set, __u64 latest, __u64 now_s)
{
	__u64 coldest = ~0ull >> 1;
	__u32 way;

	if (!set)
		return 0;
	way = weir_shared_way(set->tag, WEIR_WARMING_WAYS, 0);
	if (way < WEIR_WARMING_WAYS)
		return way;
#pragma unroll
	for (__u32 i = 0; i < WEIR_WARMING_WAYS; i++) {
		__u64 is_latest = weir_is_latest_way(latest, i);
		__u64 is_busy = READ_ONCE(set->flow[i].state) / WEIR_WARMING_BUSY & 1;
		__u64 cold_second = READ_ONCE(set->flow[i].cold_second) & ~0ull >> 1;

		cold_second = weir_lesser(cold_second, WEIR_WARMING_SECOND_MASK);
		cold_second = weir_greater(cold_second, now_s * is_latest);
		cold_second = weir_greater(cold_second, (now_s + 1) * is_busy);
		coldest = weir_lesser((cold_second * 2 + is_latest) * 8 + i, coldest); /* behind it the way */
	}
	return (coldest & 7) | (coldest / 16 > now_s ? WEIR_VICTIM_COUNTS : 0);
}

/* Make a place for the flow of w->question, unless another CPU just did. Returns its way, or beyond the last. */
__noinline __u32 weir_insert_warming(struct weir_work *w)
{
	struct weir_warming_set *set;
	__u32 index, way, tag;
	__u64 now_s, victim;

	if (!w)
		return WEIR_WARMING_WAYS;
	index = w->question.place.set;
	tag = w->question.place.tag;
	set = bpf_map_lookup_elem(&warming_flows, &index);
	if (!set)
		return WEIR_WARMING_WAYS;
	now_s = weir_now_ns(w) / WEIR_NSEC_PER_SEC;
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u64 latest = weir_shared_latest(w, &set->inserted, set->tag, WEIR_WARMING_WAYS);

		way = weir_shared_way(set->tag, WEIR_WARMING_WAYS, tag);
		if (way < WEIR_WARMING_WAYS)
			return way;
		victim = weir_warming_victim(set, latest, now_s);
		way = victim & WEIR_VICTIM_WAY;
		if (!weir_shared_take(w, &set->inserted, set->tag, WEIR_WARMING_WAYS, latest, way, tag))
			continue;
		if (victim & WEIR_VICTIM_COUNTS)
			weir_count_eviction(w->question.slot);
		return way;
	}
	return WEIR_WARMING_WAYS;
}

/* The flow of a way; NULL beyond the last. Opaque, so that the pointer is made where the bound was tested. */
static __always_inline struct weir_warming *weir_warming_at(struct weir_warming_set *set, __u64 way)
{
	struct weir_warming *flow;

	OPAQUE(way);
	if (way >= WEIR_WARMING_WAYS)
		return NULL;
	flow = &set->flow[way];
	OPAQUE(flow);
	return flow;
}

/* The place of this packet's flow under `rule`, or NULL. */
static __always_inline struct weir_warming *weir_find_warming(struct weir_work *w, const struct weir_rule *rule)
{
	struct weir_warming_set *set;
	__u32 index, way;

	w->question.slot = rule->slot;
	w->question.place = weir_shared_place(rule, &w->packet, config.warming_sets);
	index = w->question.place.set;
	set = bpf_map_lookup_elem(&warming_flows, &index);
	if (!set)
		return NULL;
	way = weir_shared_way(set->tag, WEIR_WARMING_WAYS, w->question.place.tag);
	if (way == WEIR_WARMING_WAYS)
		way = weir_insert_warming(w);
	FORGET(w->forgotten, way);
	return weir_warming_at(set, way);
}

/* Bring a flow up to date, unless another CPU is at it. Returns the state as it is then. */
static __always_inline __u64 weir_update_warming(struct weir_work *w, const struct weir_rule *rule,
						 struct weir_warming *flow)
{
	__u64 now_s = weir_now_ns(w) / WEIR_NSEC_PER_SEC;
	__u64 owner = weir_warming_owner(rule, w->question.place.tag);
	__u64 left = READ_ONCE(flow->passed), state = READ_ONCE(flow->state), claimed = state | WEIR_WARMING_BUSY;

	if (weir_is_synced(state, owner, now_s))
		return state;
	if (!weir_is_of_flow(state, w->question.place.tag))
		claimed = owner | WEIR_WARMING_BUSY; /* another flow's, of which nothing is left */
	else if (state & WEIR_WARMING_BUSY)
		return state;
	if (__sync_val_compare_and_swap(&flow->state, state, claimed) != state)
		return READ_ONCE(flow->state);
	weir_sync_warming(w, rule, flow, state, claimed, left, now_s);
	return READ_ONCE(flow->state);
}

/* Fill in w->allowed with what this packet's flow is allowed now. */
__noinline int weir_warm_flow(struct weir_work *w, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_warming *flow;
	__u64 state = 0;

	if (!w)
		return 0;
	w->allowed.word = rule->threshold & ~WEIR_THRESHOLD_MASK;
	flow = weir_find_warming(w, rule);
	if (flow)
		state = weir_update_warming(w, rule, flow);
	if (flow && weir_is_of_flow(state, w->question.place.tag) && state & WEIR_WARMING_SECOND_MASK) {
		weir_order(w); /* the state was written after the units and the cost */
		w->allowed.word |= READ_ONCE(flow->units) & WEIR_THRESHOLD_MASK;
		w->allowed.cost = flow->cost;
		/* Who takes the place over claims it first. */
		weir_order(w);
		if (weir_is_of_flow(READ_ONCE(flow->state), w->question.place.tag))
			return 0;
	}
	/* Another CPU is making it just now, or has just taken its place. */
	w->allowed.word =
		(rule->threshold & ~WEIR_THRESHOLD_MASK) | weir_warm_up_units(&rule->warm_up, rule->warm_up.max);
	weir_warm_up_cost(&rule->warm_up, rule->warm_up.max, &w->allowed.cost);
	return 0;
}

/* Units of this packet's flow have passed. */
__noinline int weir_count_warming(struct weir_work *w, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 now_s, units, passed, stored, state;
	struct weir_warming *flow;

	if (!w)
		return 0;
	flow = weir_find_warming(w, rule);
	if (!flow)
		return 0;
	now_s = weir_now_ns(w) / WEIR_NSEC_PER_SEC;
	state = weir_update_warming(w, rule, flow);
	/* A clock that went back: its second has been synced, and is no second's before any more. */
	if (!weir_is_of_flow(state, w->question.place.tag) || (state & WEIR_WARMING_SECOND_MASK) > now_s + 1)
		return 0;
	units = rule->counts_bytes ? w->packet.frame_bytes : 1;
	passed = __sync_fetch_and_add(&flow->passed, units) + units;
	/* It will be warmer than it is: not to be forgotten as cold before that has shown. */
	stored = READ_ONCE(flow->stored);
	WRITE_ONCE(flow->cold_second,
		   weir_cold_second(&rule->warm_up, stored > passed ? stored - passed : 0, now_s + 1));
	return 0;
}

#endif
