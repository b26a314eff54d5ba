// SPDX-License-Identifier: GPL-2.0-only
/* Timings: the lengths of buckets, of which the program knows each once. */
#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/slotting.h"
#include "weir_window.h"

/*
 * Sixteen buckets before now, so that the first row looks back into numbers that exist. A clock younger
 * than that starts at 0, and everything since then counts (docs/semantics.md, 1): the program clamps.
 */
static struct weir_timing timing_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	uint64_t bucket = slotting->now_ns / weir_slot_bucket_ns(rule);
	struct weir_timing timing = {
		.bucket_ns = weir_slot_bucket_ns(rule),
		.base_bucket = bucket > 16 ? bucket - 16 : 0,
		.window_cells = weir_window_cells(rule->window, rule->samples),
		.window = rule->window,
		.goes_by_ticks = weir_goes_by_ticks(rule->window, weir_slot_bucket_ns(rule)),
	};

	_Static_assert(WEIR_RING_CELLS <= 16, "a window must not look back beyond the base");
	return timing;
}

/* The number of this rule's timing, which is added when it is new and below `limit`. NONE: it is not to be had. */
static int number_timing(struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t limit,
			 uint32_t *ret_number)
{
	struct weir_timing wanted = timing_of(slotting, rule), *timing;
	struct weir_image *image = slotting->image;
	uint32_t i;

	for (i = 0; i < image->timing_count; i++) {
		timing = &image->timings[i];
		if (timing->bucket_ns == wanted.bucket_ns && timing->window == wanted.window &&
		    timing->window_cells == wanted.window_cells)
			break;
	}
	*ret_number = i < limit ? i : NONE;
	if (i < image->timing_count || i >= limit)
		return 0;
	timing = weir_array_add((void **)&image->timings, image->timing_count, sizeof(*timing));
	if (!timing)
		return weir_compile_no_memory(slotting->diag);
	*timing = wanted;
	image->timing_count++;
	return 0;
}

/* Rows in the tables are evaluated against the timings published before: they stay for ever. */
static int keep_timings(struct slotting *slotting)
{
	struct weir_image *image = slotting->image;
	struct weir_timing *timing;
	uint32_t i;

	for (i = 0; i < slotting->previous->timing_count; i++) {
		timing = weir_array_add((void **)&image->timings, i, sizeof(*timing));
		if (!timing)
			return weir_compile_no_memory(slotting->diag);
		*timing = slotting->previous->timings[i];
		image->timing_count = i + 1;
	}
	return 0;
}

/* The few numbers that narrow and medium rows can name go to the rules that could use them, those with the smallest
 * rows first; who gets none is wide.
 */
static int choose_storage(struct slotting *slotting, enum weir_storage storage)
{
	const struct weir_ruleset_rule *rule;
	struct plan *plan;
	size_t i;
	int err;

	for (i = 0; i < slotting->ruleset->rule_count; i++) {
		rule = &slotting->ruleset->rules[i];
		plan = &slotting->plans[i];
		if (plan->timing != NONE)
			continue;
		if (!weir_slot_has_timing(rule)) {
			plan->storage = WEIR_STORAGE_LONE;
			plan->timing = 0;
			continue;
		}
		plan->storage = weir_slot_has_flows(slotting, rule) && !weir_kind_of(rule)->lends
					? WEIR_STORAGE_WIDE
					: WEIR_STORAGE_LONE; /* of what lends no row is looked for */
		if (!weir_slot_fits(slotting, rule, storage))
			continue;
		err = number_timing(slotting, rule, WEIR_TIMINGS_NARROW, &plan->timing);
		if (err)
			return err;
		if (plan->timing != NONE)
			plan->storage = storage;
	}
	return 0;
}

/* Only the first timings have overflow windows. */
static int check_overflow(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t timing)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	if (!rule->aggregates || timing < WEIR_OVERFLOW_TIMINGS || !weir_slot_has_flows(slotting, rule) ||
	    !(kind->keeps_window || kind->lends))
		return 0;
	return weir_diag_error(
		slotting->diag, &rule->place, NULL,
		slotting->previous->timing_count
			? "detach and attach again: a reload keeps the old ones"
			: "let more rules share statIntervalInMs, sampleCount and window, or put it first",
		"rule '%s' cannot have 'whenFull: aggregate': the rules before it have the %u kinds of "
		"window that it is for",
		rule->name, WEIR_OVERFLOW_TIMINGS);
}

int weir_slot_number_timings(struct slotting *slotting)
{
	const struct weir_ruleset_rule *rule;
	struct plan *plan;
	size_t i;
	int err;

	err = keep_timings(slotting);
	if (!err)
		err = choose_storage(slotting, WEIR_STORAGE_NARROW);
	if (!err)
		err = choose_storage(slotting, WEIR_STORAGE_MEDIUM);
	for (i = 0; !err && i < slotting->ruleset->rule_count; i++) {
		rule = &slotting->ruleset->rules[i];
		plan = &slotting->plans[i];
		if (plan->timing == NONE)
			err = number_timing(slotting, rule, WEIR_TIMINGS_MAX, &plan->timing);
		if (!err && plan->timing != NONE)
			err = check_overflow(slotting, rule, plan->timing);
		if (!err && plan->timing == NONE)
			err = weir_diag_error(
				slotting->diag, &rule->place, NULL,
				slotting->previous->timing_count
					? "detach and attach again: a reload keeps the old ones"
					: "let more rules share statIntervalInMs, sampleCount and window",
				"rule '%s' needs one more kind of window than the %d an instance can hold", rule->name,
				WEIR_TIMINGS_MAX);
	}
	return err;
}
