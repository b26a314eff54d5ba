// SPDX-License-Identifier: GPL-2.0-only
#include "state/observe.h"

#include "tables/rule_kind.h"
#include "weir_occupy.h"

struct scan {
	const struct weir_instance *instance;
	weir_observed_add *add;
	void *data;
};

uint64_t weir_occupy_units(const struct weir_occupy_window *flow, uint32_t tag, const struct weir_rule_info *rule,
			   uint64_t bucket)
{
	const uint64_t ring = 2ull * rule->identity.samples, word = flow->cell[bucket % ring];
	const uint8_t unit_bits = weir_occupy_unit_bits(rule->identity.interval_ns);

	if (word >> unit_bits != weir_occupy_mark(bucket / ring, tag, unit_bits))
		return 0;
	return word & weir_occupy_units_max(unit_bits);
}

/* What these cells count, if they belong to this rule. Returns whether they count anything. */
static bool add_up(const struct weir_occupy_window *flow, const struct weir_rule_info *rule, uint64_t now_ns,
		   struct weir_observed *found)
{
	const uint64_t samples = rule->identity.samples, bucket_ns = rule->identity.interval_ns / samples;
	const uint64_t now = now_ns / bucket_ns + 2 * samples;

	found->units = found->occupied = 0;
	for (uint64_t age = 0; age < samples; age++)
		found->units += weir_occupy_units(flow, found->tag, rule, now - age);
	for (uint64_t ahead = 1; ahead <= samples; ahead++)
		found->occupied += weir_occupy_units(flow, found->tag, rule, now + ahead);
	return found->units || found->occupied;
}

/* A cell shows whether it belongs to this flow under a rule with this bucket length, but not to which rule. */
static void look(const void *element, uint64_t now_ns, struct weir_observed *found, void *data)
{
	struct weir_observed use = *found;
	const struct scan *scan = data;
	int rules = 0;

	for (uint32_t i = 0; i < scan->instance->rule_count; i++) {
		const uint32_t slot = scan->instance->rule_order[i];
		const struct weir_rule_info *rule = &scan->instance->rules[slot];

		if (found->tag ? !weir_has_occupy_flows(rule) : slot != found->slot)
			continue;
		if (!add_up(element, rule, now_ns, &use))
			continue;
		use.slot = slot;
		if (!rules++)
			*found = use;
	}
	if (rules > 1)
		found->slot = WEIR_SLOT_UNKNOWN;
	if (rules)
		scan->add(found, scan->data);
}

int weir_observe_occupy(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add,
			void *data)
{
	struct scan scan = {.instance = instance, .add = add, .data = data};

	return weir_observe_tables(instance, WEIR_KIND_OCCUPY, &WEIR_OCCUPY_TABLES, look, &scan);
}
