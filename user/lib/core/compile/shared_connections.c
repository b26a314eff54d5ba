// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules that share connections (docs/connections.md): which rules count the same ones, and at which slot. Such a slot
 * outlives its rule for as long as others count there, so their connections stay whichever of the rules come and go.
 */
#include <string.h>

#include "compile/build_steps.h"
#include "compile/slotting.h"
#include "rules/ruleset.h"

/* ---- which rules ---- */

/* A rule that observes remembers connections that it would have refused, so its count may be another one. */
static bool may_share(const struct weir_ruleset_rule *rule)
{
	return rule->resource != WEIR_NO_RESOURCE && !rule->observes && rule->metric == WEIR_METRIC_CONCURRENCY;
}

static bool share(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *a,
		  const struct weir_ruleset_rule *b)
{
	return a->resource == b->resource && may_share(a) && may_share(b) &&
	       weir_is_same_key(weir_flow_of(ruleset, a), weir_flow_of(ruleset, b),
				weir_match_directions(&weir_resource_of(ruleset, a)->match));
}

size_t weir_shares_with(const struct weir_ruleset *ruleset, size_t place)
{
	size_t first = may_share(&ruleset->rules[place]) ? 0 : place;

	while (first < place && !share(ruleset, &ruleset->rules[first], &ruleset->rules[place]))
		first++;
	return first;
}

/* ---- at which slot ---- */

static bool is_taken(const struct slotting *slotting, uint32_t slot)
{
	for (size_t i = 0; i < slotting->ruleset->rule_count; i++)
		if (slotting->plans[i].flows_slot == slot)
			return true;
	return false;
}

/* The slot where one of the rules that share with the one at `first` counted before, while it observed or not. NONE:
 * none did, or other rules continue there.
 */
static uint32_t find_earlier_slot(const struct slotting *slotting, size_t first, bool observed)
{
	for (size_t i = first; i < slotting->ruleset->rule_count; i++) {
		const struct plan *plan = &slotting->plans[i];
		const struct weir_rule_info *before;
		uint32_t slot;

		if (plan->shares_with != first || plan->slot == NONE)
			continue;
		before = &slotting->previous->rules[plan->slot];
		slot = weir_connections_slot(before, plan->slot);
		if (!before->observes != observed && slot < slotting->image->rule_slots && !is_taken(slotting, slot))
			return slot;
	}
	return NONE;
}

/* The rule begins at a slot of its own. At the one that it has, its earlier count may not be over yet. */
static void start_empty(struct slotting *slotting, size_t place)
{
	struct plan *plan = &slotting->plans[place];

	if (plan->slot == NONE)
		return;
	*plan = (struct plan){
		.slot = NONE,
		.spec = NONE,
		.version = 1,
		.shares_with = place,
		.flows_slot = NONE,
		.why_empty = "rules that enforce keep the count that it shared with them",
	};
	slotting->image->kept_rules--;
}

void weir_slot_share_connections(struct slotting *slotting)
{
	const struct weir_ruleset *ruleset = slotting->ruleset;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		slotting->plans[i].shares_with = weir_shares_with(ruleset, i);
		slotting->plans[i].flows_slot = NONE;
	}
	/* First those that enforce: where rules no longer share, they keep the count, or would admit too much. */
	for (int observes = 0; observes <= 1; observes++)
		for (size_t i = 0; i < ruleset->rule_count; i++) {
			struct plan *plan = &slotting->plans[i];

			if (plan->shares_with != i || may_share(&ruleset->rules[i]) == observes ||
			    ruleset->rules[i].metric != WEIR_METRIC_CONCURRENCY)
				continue;
			/* What a rule has counted that enforced comes first, too. */
			plan->flows_slot = find_earlier_slot(slotting, i, false);
			if (plan->flows_slot == NONE)
				plan->flows_slot = find_earlier_slot(slotting, i, true);
			if (plan->flows_slot == NONE)
				start_empty(slotting, i);
		}
}
