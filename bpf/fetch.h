/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Several rules on a packet: what they will look at is fetched before the first of them looks. Nothing is decided by
 * it.
 */
#ifndef WEIR_FETCH_H
#define WEIR_FETCH_H

#include "at_once.h"

/* Where the flow of rule number `index` is to be looked for. */
static __always_inline void weir_place_rule(struct weir_work *w, __u32 index)
{
	const struct weir_rule *rule = weir_rule(w->rule[index]);

	w->flow[index].tag = 0;
	if (rule->storage == WEIR_STORAGE_NARROW)
		w->flow[index] = weir_flow_place(rule, &w->packet, false);
}

/* Start to fetch the rows and the cells of presence. First all are placed: the processor starts no more than what it
 * sees ahead of the first load that it waits for, which should be nothing but loads.
 */
__noinline int weir_fetch_flows(struct weir_work *w)
{
	const struct weir_rule *first;

	if (!w)
		return 0;
	/* The time first: reading the clock waits for what is under way. */
	first = weir_rule(w->rule[0]);
	if (first->storage == WEIR_STORAGE_NARROW)
		weir_clock_enter(w, weir_narrow_clock(w, first->timing), first, false);
	else
		weir_now_ns(w);
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < w->rule_count; i++)
		weir_place_rule(w, i);
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < w->rule_count; i++) {
		const struct weir_flow_place *flow = &w->flow[i];
		void *chunk = flow->tag ? weir_chunk_of(flow->set, -1, false) : NULL;

		if (!chunk)
			continue;
		weir_touch_set(weir_rows_of(chunk, flow->set, false));
		weir_touch_set(weir_rows_of(chunk, weir_other_set(flow, false), false));
		weir_presence_touch(flow);
	}
	w->placed = w->rule_count;
	return 0;
}

/* Where rules with narrow rows are to be asked behind the first: they lie far apart, and memory fetches them all in
 * little more time than one. Before the first rule, and so only when that is not expected to block.
 */
static __always_inline void weir_fetch_rules(struct weir_work *w)
{
	__u32 further;

	if (likely(w->rule_count < 2))
		return;
	w->placed = 0;
	further = w->narrow_count - (weir_rule(w->rule[0])->storage == WEIR_STORAGE_NARROW);
	if (further && w->expects_admission)
		weir_fetch_flows(w);
}

#endif
