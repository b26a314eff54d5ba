/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Meters: what passed on a resource, counted for rules that go by it. An associated rule reads the window of another
 * resource, which may have no rule of its own; warm-up goes by what passed in the second before. Nothing is
 * leased here: a meter counts packets that have passed.
 */
#ifndef WEIR_METER_H
#define WEIR_METER_H

#include "threshold.h"
#include "window.h"

/* ---- counting ---- */

/* The window of a meter: its row moves on, and the packet is counted as one that a rule admitted. */
__noinline int weir_count_window(struct weir_work *w, __u32 place)
{
	struct weir_judgement j = {.rule = weir_rule(place)};
	struct weir_flow_place flow;

	if (!w || !weir_open_judgement(w, &j, true))
		return 0;
	j.row = weir_locate_wide(w, j.rule, &flow);
	weir_ask_about(w, j.rule, &flow, true);
	weir_clock_update(w, j.clk, j.rule->bucket_ns, j.rule->base_bucket, true);
	if (!j.row)
		weir_insert(w, &j, true);
	if (!j.row) {
		/* It has passed, and is not counted: say so at least, where it is shown. */
		weir_count_stall(weir_rule(j.rule->meter)->slot);
		return 0;
	}
	weir_settle(w, &j, true);
	/* weir_enter_bucket() has marked the cell; nothing is leased here that could come back. */
	weir_cell_set(j.row, j.own_cell, (weir_cell_get(j.row, j.own_cell, true) & ~ROW_UNSPENT(true)) + j.batch, true);
	return 0;
}

/* Seconds for the controller's warm-up. */
__noinline int weir_count_second(struct weir_work *w, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_rule_seconds *seconds;
	__u32 slot = rule->slot, index;
	struct weir_rule_second *at;
	__u64 now_s, batch;

	if (!w)
		return 0;
	seconds = bpf_map_lookup_elem(&rule_seconds, &slot);
	if (!seconds)
		return 0;
	now_s = weir_now_ns(w) / WEIR_NSEC_PER_SEC;
	batch = rule->counts_bytes ? w->packet.frame_bytes : 1;
	index = now_s;
	OPAQUE(index);
	at = &seconds->at[index & (WEIR_RULE_SECONDS - 1)];
	/* The clock went back by so much that a newer second has this place: that one is still to be told. */
	if (at->second > now_s)
		return 0;
	if (at->second != now_s) {
		at->units = 0;
		at->second = now_s;
	}
	at->units += batch;
	seconds->total += batch;
	return 0;
}

/* A rule that observes and would have dropped the packet does not see it pass. */
static __always_inline bool weir_would_drop(const struct weir_work *w, __u32 place)
{
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < w->rule_count; i++)
		if (w->rule[i] == place)
			return w->claim[i].kind == WEIR_CLAIM_NONE;
	return false;
}

__noinline int weir_count_meter(struct weir_work *w, __u32 kind, __u32 skips_dropped, __u32 place)
{
	if (!w)
		return 0;
	if (skips_dropped && weir_would_drop(w, kind == WEIR_METER_WINDOW ? weir_rule(place)->meter : place))
		return 0;
	if (kind == WEIR_METER_WINDOW)
		return config.has_associated ? weir_count_window(w, place) : 0;
	if (kind == WEIR_METER_SECONDS)
		return weir_count_second(w, place);
	return config.warms_flows ? weir_count_warming(w, place) : 0;
}

__noinline int weir_count_resource_meters(struct weir_work *w, __u32 index)
{
	const struct weir_resource *resource;

	if (!w || index >= WEIR_PACKET_RESOURCES_MAX)
		return 0;
	resource = weir_resource(w->resource[index]);
	for (__u32 i = 0; i < WEIR_RESOURCE_METERS_MAX && i < resource->meter_count; i++) {
		const struct weir_meter *meter = &resource->meter[i];

		weir_count_meter(w, meter->kind, meter->skips_dropped, meter->rule);
	}
	return 0;
}

/* The packet passes: tell all meters of all its resources. */
static __always_inline void weir_count_meters(struct weir_work *w)
{
	for (__u32 i = 0; i < WEIR_PACKET_RESOURCES_MAX && i < w->resource_count; i++)
		weir_count_resource_meters(w, i);
}

/* ---- judging ---- */

/* All that the rows of all CPUs hold, as seen from the present bucket, or a newer one that is known. */
static __always_inline void weir_read_meter(struct weir_work *w, struct weir_judgement *j)
{
	struct weir_question *q = &w->question;
	void *row = j->row;
	__u64 newest = row ? ROW_GET(row, true, newest) : 0;

	q->bucket = j->clk->bucket;
	q->cell = j->clk->cell;
	j->into_ns = weir_now_ns(w) - j->clk->start_ns;
	if (newest > q->bucket) { /* the clock went back: weir_settle() says what that means */
		q->bucket = newest;
		q->cell = weir_cell_of(newest);
		j->into_ns = 0;
	}
	__builtin_memset(&w->sum, 0, sizeof(w->sum));
	OPAQUE(row); /* else clang adds to it before it is tested, which the verifier refuses */
	if (row)
		weir_add_row(w, row, true, true);
	w->present = WEIR_PRESENT_ALL;
	if (config.cpus > 1)
		weir_add_others_wide(w);
}

/* Judge the packet by the window of another resource; w->allowed is found. Nothing is set aside: the packet
 * counts, if at all, when it has passed.
 */
__noinline int weir_judge_associated(struct weir_work *w, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_judgement j = {.rule = weir_rule(rule->meter)};
	struct weir_flow_place flow;
	__u64 units;

	if (!w || index >= WEIR_PACKET_RULES_MAX || !weir_open_judgement(w, &j, true))
		return WEIR_ANSWER_ERROR;
	w->claim[index].kind = WEIR_CLAIM_NONE;
	units = w->allowed.word & WEIR_THRESHOLD_MASK;
	if (j.batch > units)
		return WEIR_ANSWER_BLOCK;
	j.row = weir_locate_wide(w, j.rule, &flow);
	weir_ask_about(w, j.rule, &flow, true);
	for (int attempt = 0; attempt < WEIR_ATTEMPTS; attempt++) {
		weir_clock_update(w, j.clk, j.rule->bucket_ns, j.rule->base_bucket, true);
		weir_read_meter(w, &j);
		if (!w->sum.ran_ahead) {
			if (weir_window_units(&j, &w->sum) + j.batch > units)
				return WEIR_ANSWER_BLOCK;
			w->claim[index].kind = WEIR_CLAIM_GIVEN;
			return WEIR_ANSWER_ADMIT;
		}
		w->has_now = 0;
	}
	weir_count_stall(rule->slot);
	return WEIR_ANSWER_BLOCK;
}

#endif
