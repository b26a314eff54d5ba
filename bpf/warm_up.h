/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * WarmUp of flows with a key, each by itself: the controller cannot do that for a million of them. A flow is
 * brought up to date by its first packet in a new second, as if it had been synced on every one. Its state is shared
 * by all CPUs; the sync, once a second and flow, is done under the lock of the flow's set.
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

/* What follows from the tokens stored. */
static __always_inline void weir_publish_warming(struct weir_work *w, const struct weir_rule *rule,
						 struct weir_warming *flow, __u64 stored, __u64 second)
{
	const struct weir_warm_up *params = &rule->warm_up;

	flow->stored = stored;
	flow->cold_second = weir_cold_second(params, stored, second);
	WRITE_ONCE(flow->units, weir_warm_up_units(params, stored));
	if (config.has_throttling && rule->judging == WEIR_JUDGING_THROTTLE)
		weir_warm_up_cost(params, stored, &flow->cost);
	weir_order(w);
	WRITE_ONCE(flow->second, (rule->threshold & ~WEIR_THRESHOLD_MASK) | (second & WEIR_THRESHOLD_MASK));
}

/* Under the lock: bring a flow to the present second, and to the rule as it is now. */
static __always_inline void weir_sync_warming(struct weir_work *w, const struct weir_rule *rule,
					      struct weir_warming *flow, __u64 now_s)
{
	const struct weir_warm_up *params = &rule->warm_up;
	__u64 second = flow->second & WEIR_THRESHOLD_MASK;
	__u64 stored = flow->stored;

	if (now_s > second) {
		stored = weir_warm_up_sync(params, stored, __sync_lock_test_and_set(&flow->passed, 0));
		stored = weir_warm_up_idle(params, stored, now_s - second - 1);
		second = now_s;
	}
	if (stored > params->max)
		stored = params->max; /* a reload made it smaller */
	weir_publish_warming(w, rule, flow, stored, second);
}

/* The place of a flow that is to go: a free one, else the one that will be cold first. */
static __always_inline __u32 weir_warming_victim(const struct weir_warming_set *set, __u64 now_s, bool *ret_counts)
{
	__u32 way = weir_shared_way(set->tag, WEIR_WARMING_WAYS, 0);
	__u64 coldest = ~0ull;

	*ret_counts = false;
	if (way < WEIR_WARMING_WAYS)
		return way;
	way = 0;
	for (__u32 i = 0; i < WEIR_WARMING_WAYS; i++) {
		__u64 cold_second = set->flow[i].cold_second;

		if (cold_second < coldest) {
			coldest = cold_second;
			way = i;
		}
	}
	*ret_counts = coldest > now_s;
	return way;
}

/* Under the lock: the flow's way. A new flow begins cold, as one that was silent since the load is. */
static __always_inline __u32 weir_warming_way(struct weir_work *w, const struct weir_rule *rule,
					      struct weir_warming_set *set, __u64 now_s, bool *ret_counts)
{
	__u32 way = weir_shared_way(set->tag, WEIR_WARMING_WAYS, w->question.place.tag);

	*ret_counts = false;
	if (way < WEIR_WARMING_WAYS)
		return way;
	way = weir_warming_victim(set, now_s, ret_counts);
	OPAQUE(way);
	if (way >= WEIR_WARMING_WAYS)
		return WEIR_WARMING_WAYS;
	WRITE_ONCE(set->tag[way], 0);
	weir_order(w);
	set->flow[way].second = now_s;
	set->flow[way].stored = rule->warm_up.max;
	WRITE_ONCE(set->flow[way].passed, 0);
	weir_order(w);
	WRITE_ONCE(set->tag[way], w->question.place.tag);
	return way;
}

/* The flow of w->question is new, or a second or a reload has passed since its last packet. Returns its way. */
__noinline __u32 weir_update_warming(struct weir_work *w, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_warming_set *set;
	bool counts = false;
	__u32 index, way;
	__u64 now_s;

	if (!w)
		return WEIR_WARMING_WAYS;
	index = w->question.place.set;
	set = bpf_map_lookup_elem(&warming_flows, &index);
	if (!set)
		return WEIR_WARMING_WAYS;
	now_s = weir_now_ns(w) / WEIR_NSEC_PER_SEC;
	bpf_spin_lock(&set->lock);
	way = weir_warming_way(w, rule, set, now_s, &counts);
	OPAQUE(way);
	if (way < WEIR_WARMING_WAYS)
		weir_sync_warming(w, rule, &set->flow[way], now_s);
	bpf_spin_unlock(&set->lock);
	if (counts)
		weir_count_eviction(rule->slot);
	return way;
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

/* The state of this packet's flow under `rule`, up to date, or NULL. */
static __always_inline struct weir_warming *weir_find_warming(struct weir_work *w, const struct weir_rule *rule,
							      __u32 place)
{
	struct weir_warming_set *set;
	struct weir_warming *flow;
	__u32 index, way;
	__u64 second;

	w->question.place = weir_shared_place(rule, &w->packet, config.warming_sets);
	index = w->question.place.set;
	set = bpf_map_lookup_elem(&warming_flows, &index);
	if (!set)
		return NULL;
	way = weir_shared_way(set->tag, WEIR_WARMING_WAYS, w->question.place.tag);
	FORGET(w->forgotten, way);
	flow = weir_warming_at(set, way);
	if (flow) {
		second = READ_ONCE(flow->second);
		if (second >> WEIR_THRESHOLD_BITS == rule->threshold >> WEIR_THRESHOLD_BITS &&
		    (second & WEIR_THRESHOLD_MASK) >= weir_now_ns(w) / WEIR_NSEC_PER_SEC)
			return flow;
	}
	return weir_warming_at(set, weir_update_warming(w, place));
}

/* Fill in w->allowed with what this packet's flow is allowed now. */
__noinline int weir_warm_flow(struct weir_work *w, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	const struct weir_warming *flow;

	if (!w)
		return 0;
	flow = weir_find_warming(w, rule, place);
	if (!flow)
		return 0;
	w->allowed.word = (rule->threshold & ~WEIR_THRESHOLD_MASK) | (READ_ONCE(flow->units) & WEIR_THRESHOLD_MASK);
	w->allowed.cost = flow->cost;
	return 0;
}

/* Units of this packet's flow have passed. */
__noinline int weir_count_warming(struct weir_work *w, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_warming *flow;
	__u64 now_s, units, passed, stored;

	if (!w)
		return 0;
	flow = weir_find_warming(w, rule, place);
	now_s = weir_now_ns(w) / WEIR_NSEC_PER_SEC;
	/* A clock that went back: its second has been synced, and is no second's before any more. */
	if (!flow || (READ_ONCE(flow->second) & WEIR_THRESHOLD_MASK) > now_s)
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
