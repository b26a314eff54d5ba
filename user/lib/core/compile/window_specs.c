// SPDX-License-Identifier: GPL-2.0-only
/* Window specs: the bucket lengths in use, of which the program knows each only once. */
#include "base/util.h"
#include "compile/build_steps.h"
#include "compile/slotting.h"
#include "weir_window.h"

/*
 * The base is sixteen buckets before now, so that the first row looks back at numbers that exist. If the clock is
 * younger than that, the base is 0 and everything since then counts (docs/semantics.md, 1): the program clamps.
 */
static struct weir_window_spec spec_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	uint64_t bucket = slotting->now_ns / weir_slot_bucket_ns(rule);
	struct weir_window_spec spec = {
		.bucket_ns = weir_slot_bucket_ns(rule),
		.base_bucket = bucket > 16 ? bucket - 16 : 0,
		.window_cells = weir_window_cells(rule->window, rule->samples),
		.window = rule->window,
		.goes_by_ticks = weir_goes_by_ticks(rule->window, weir_slot_bucket_ns(rule)),
	};

	_Static_assert(WEIR_RING_CELLS <= 16, "a window must not look back beyond the base");
	return spec;
}

/* The number of this rule's window spec, which is added if it is new and its number would be below `limit`. Otherwise
 * NONE.
 */
static int number_spec(struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t limit,
		       uint32_t *ret_number)
{
	struct weir_window_spec wanted = spec_of(slotting, rule), *spec;
	struct weir_image *image = slotting->image;
	uint32_t i;

	for (i = 0; i < image->spec_count; i++) {
		spec = &image->specs[i];
		if (spec->bucket_ns == wanted.bucket_ns && spec->window == wanted.window &&
		    spec->window_cells == wanted.window_cells)
			break;
	}
	*ret_number = i < limit ? i : NONE;
	if (i < image->spec_count || i >= limit)
		return 0;
	spec = weir_array_add((void **)&image->specs, image->spec_count, sizeof(*spec));
	if (!spec)
		return weir_compile_no_memory(slotting->diag);
	*spec = wanted;
	image->spec_count++;
	return 0;
}

/* Rows in the tables are evaluated against window specs of earlier loads, so those are kept for ever. */
static int keep_specs(struct slotting *slotting)
{
	struct weir_image *image = slotting->image;
	struct weir_window_spec *spec;
	uint32_t i;

	for (i = 0; i < slotting->previous->spec_count; i++) {
		spec = weir_array_add((void **)&image->specs, i, sizeof(*spec));
		if (!spec)
			return weir_compile_no_memory(slotting->diag);
		*spec = slotting->previous->specs[i];
		image->spec_count = i + 1;
	}
	return 0;
}

/* Narrow and medium rows can name only a few spec numbers. These go to the rules that can use them, those with the
 * smallest rows first; rules that get none use wide rows.
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
		if (plan->spec != NONE)
			continue;
		if (!weir_slot_has_spec(rule)) {
			plan->storage = WEIR_STORAGE_LONE;
			plan->spec = 0;
			continue;
		}
		plan->storage = weir_slot_has_flows(slotting, rule) && !rule->occupies
					? WEIR_STORAGE_WIDE
					: WEIR_STORAGE_LONE; /* occupy windows have no rows */
		if (!weir_slot_fits(slotting, rule, storage))
			continue;
		err = number_spec(slotting, rule, WEIR_SPECS_NARROW, &plan->spec);
		if (err)
			return err;
		if (plan->spec != NONE)
			plan->storage = storage;
	}
	return 0;
}

/* Only the first window specs have overflow windows. */
static int check_overflow(const struct slotting *slotting, const struct weir_ruleset_rule *rule, uint32_t spec)
{
	if (!rule->aggregates || spec < WEIR_OVERFLOW_SPECS || !weir_slot_has_flows(slotting, rule) ||
	    !(weir_kind_of(rule)->keeps_window || rule->occupies))
		return 0;
	return weir_diag_error(
		slotting->diag, &rule->place, NULL,
		slotting->previous->spec_count
			? "detach and attach again: a reload keeps the old ones"
			: "give more rules the same statIntervalInMs, sampleCount and window, or put this rule first",
		"rule '%s' cannot have 'whenFull: aggregate': the rules before it use all %u kinds of window that can",
		rule->name, WEIR_OVERFLOW_SPECS);
}

int weir_slot_number_specs(struct slotting *slotting)
{
	const struct weir_ruleset_rule *rule;
	struct plan *plan;
	size_t i;
	int err;

	err = keep_specs(slotting);
	if (!err)
		err = choose_storage(slotting, WEIR_STORAGE_NARROW);
	if (!err)
		err = choose_storage(slotting, WEIR_STORAGE_MEDIUM);
	for (i = 0; !err && i < slotting->ruleset->rule_count; i++) {
		rule = &slotting->ruleset->rules[i];
		plan = &slotting->plans[i];
		if (plan->spec == NONE)
			err = number_spec(slotting, rule, WEIR_WINDOW_SPECS_MAX, &plan->spec);
		if (!err && plan->spec != NONE)
			err = check_overflow(slotting, rule, plan->spec);
		if (!err && plan->spec == NONE)
			err = weir_diag_error(
				slotting->diag, &rule->place, NULL,
				slotting->previous->spec_count
					? "detach and attach again: a reload keeps the old ones"
					: "give more rules the same statIntervalInMs, sampleCount and window",
				"rule '%s' needs one more kind of window than the %d an instance can hold", rule->name,
				WEIR_WINDOW_SPECS_MAX);
	}
	return err;
}
