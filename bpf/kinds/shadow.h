/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shadow windows count what passed on a resource, for rules that depend on it. A rule with relationStrategy
 * AssociatedResource reads the window of another resource, which may have no rule of its own. WarmUp depends on what
 * passed in the previous second. A shadow window needs no leases, because it only counts packets that have passed.
 */
#ifndef WEIR_SHADOW_H
#define WEIR_SHADOW_H

#include "window/rate.h"
#include "kinds/warm_up.h"

/* ---- its window ---- */

/* Find the flow of a shadow window (a rule with wide or lone rows), and its row: in s->flow and s->row_number. */
static __always_inline void *weir_find_shadow_row(struct weir_scratch *s, const struct weir_rule *rule)
{
	if (rule->storage == WEIR_STORAGE_LONE) {
		s->flow.tag = s->flow.set = 0;
		return weir_lone_row(rule->slot);
	}
	s->flow = weir_flow_id(s, rule, WEIR_WIDE);
	return weir_find_row(&s->flow, -1, &s->row_number, WEIR_WIDE);
}

/* Count the packet in a shadow window, as one that a rule admitted. */
__noinline int weir_count_window(struct weir_scratch *s, __u32 place)
{
	struct weir_evaluation j = {.rule = weir_rule(place)};

	WEIR_GLOBAL(KIND(ASSOCIATED), s, 0);
	j.row = weir_find_shadow_row(s, j.rule);
	if (!weir_open_evaluation(s, &j, &s->flow, WEIR_WIDE))
		return 0;
	if (!j.row)
		j.row = weir_insert_row(s, &j, 0, WEIR_WIDE);
	if (!j.row) {
		/* The packet has passed but is not counted. At least show that. */
		weir_count_stall(weir_rule(j.rule->shadow)->slot);
		return 0;
	}
	weir_advance_row(s, &j, WEIR_WIDE);
	/* weir_enter_bucket() has marked the cell; nothing is leased here that could come back. */
	weir_cell_set(j.row, j.own_cell,
		      (weir_cell_get(j.row, j.own_cell, WEIR_WIDE) & ~ROW_UNSPENT(WEIR_WIDE)) + j.batch, WEIR_WIDE);
	return 0;
}

/* Sum the rows of all CPUs, for the window that ends with the present bucket or, if one is known, a newer one. */
static __always_inline void weir_read_shadow(struct weir_scratch *s, struct weir_evaluation *j)
{
	struct weir_view *view = &s->view;
	void *row = j->row;
	__u64 newest = row ? ROW_GET(row, WEIR_WIDE, newest) : 0;

	view->bucket = j->clk->bucket;
	view->cell = j->clk->cell;
	j->into_ns = weir_rule_time_ns(s, j->rule) - j->clk->start_ns;
	if (newest > view->bucket) { /* the clock went back: weir_advance_row() says what that means */
		view->bucket = newest;
		view->cell = weir_cell_of(newest);
		j->into_ns = 0;
	}
	__builtin_memset(&s->sum, 0, sizeof(s->sum));
	OPAQUE(row); /* else clang adds to it before it is tested, which the verifier refuses */
	if (row)
		weir_add_row(s, row, true, WEIR_WIDE);
	s->present = WEIR_PRESENT_ALL;
	if (config.cpus > 1)
		weir_add_others(s, WEIR_WIDE);
	weir_add_row_ghosts(s);
}

/* Evaluate the packet by the window of another resource; s->allowed has been filled in. No units are reserved: if the
 * packet counts there at all, it is counted when it has passed.
 */
__noinline int weir_evaluate_associated(struct weir_scratch *s, __u32 place, __u32 nth)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_evaluation j = {.rule = weir_rule(rule->shadow)};
	struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;
	__u64 allowed, units;

	WEIR_GLOBAL(KIND(ASSOCIATED), reservation, WEIR_ANSWER_ERROR);
	allowed = s->allowed.word & WEIR_THRESHOLD_MASK;
	if (weir_batch(s, j.rule, WEIR_WIDE) > allowed)
		return weir_refuse(s, WEIR_EVENT_UNKNOWN, allowed);
	j.row = weir_find_shadow_row(s, j.rule);
	if (!weir_open_evaluation(s, &j, &s->flow, WEIR_WIDE))
		return WEIR_ANSWER_ERROR;
	weir_read_shadow(s, &j);
	if (s->sum.ran_ahead)
		return WEIR_ANSWER_AGAIN;
	units = weir_window_units(&j, &s->sum);
	if (units + j.batch > allowed)
		return weir_refuse(s, units, allowed);
	reservation->kind = WEIR_RESERVATION_GIVEN;
	return WEIR_ANSWER_ADMIT;
}

/* ---- counting what passed ---- */

__noinline int weir_count_second(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_rule_seconds *seconds;
	__u32 slot = rule->slot, index;
	struct weir_rule_second *at;
	__u64 now_s, batch;

	WEIR_GLOBAL(SHADOWS, s, 0);
	seconds = bpf_map_lookup_elem(&rule_seconds, &slot);
	if (!seconds)
		return 0;
	now_s = weir_now_ns(s) / WEIR_NSEC_PER_SEC;
	batch = weir_units(s, rule);
	index = now_s;
	OPAQUE(index);
	at = &seconds->at[index & (WEIR_RULE_SECONDS - 1)];
	/* The clock went back so far that a newer second is stored here, which the controller has yet to read. */
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

/* A rule that observes does not count a packet that it would have dropped. */
static __always_inline bool weir_would_drop(const struct weir_scratch *s, __u32 place)
{
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < s->rule_count; i++)
		if (s->rule[i] == place)
			return s->reservation[i].kind == WEIR_RESERVATION_NONE;
	return false;
}

__noinline int weir_count_shadow(struct weir_scratch *s, __u32 kind, __u32 skips_dropped, __u32 place)
{
	WEIR_GLOBAL(SHADOWS, s, 0);
	if (skips_dropped && weir_would_drop(s, kind == WEIR_SHADOW_WINDOW ? weir_rule(place)->shadow : place))
		return 0;
	if (kind == WEIR_SHADOW_WINDOW)
		return weir_count_window(s, place);
	if (kind == WEIR_SHADOW_SECONDS)
		return weir_count_second(s, place);
	return config.warms_flows ? weir_count_warming(s, place) : 0;
}

__noinline int weir_count_resource_shadows(struct weir_scratch *s, __u32 nth)
{
	const struct weir_resource *resource;

	WEIR_GLOBAL(SHADOWS, s && nth < WEIR_PACKET_RESOURCES_MAX, 0);
	resource = weir_resource(s->resource[nth]);
	for (__u32 i = 0; i < WEIR_RESOURCE_SHADOWS_MAX && i < resource->shadow_count; i++) {
		const struct weir_shadow *shadow = &resource->shadow[i];

		weir_count_shadow(s, shadow->kind, shadow->skips_dropped, shadow->rule);
	}
	return 0;
}

static __always_inline void weir_count_shadows(struct weir_scratch *s)
{
	for (__u32 i = 0; i < WEIR_PACKET_RESOURCES_MAX && i < s->resource_count; i++)
		weir_count_resource_shadows(s, i);
}

#endif
