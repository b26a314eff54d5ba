// SPDX-License-Identifier: GPL-2.0-only
#include "state/occupy_windows.h"

#include "host/host.h"
#include "program/array.h"
#include "tables/rule_kind.h"
#include "state/observe.h"
#include "weir_occupy.h"

struct scan {
	const struct weir_instance *instance;
	uint64_t now_ns; /* read after the windows; otherwise these would seem fuller than they ever were */
	weir_observed_add *add;
	void *data;
};

static bool occupies(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow && weir_occupies(rule);
}

bool weir_occupy_is_used(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->rule_count; i++)
		if (occupies(&instance->rules[instance->rule_order[i]]))
			return true;
	return false;
}

uint64_t weir_occupy_units(const struct weir_occupy_window *flow, uint32_t tag, const struct weir_rule_info *rule,
			   uint64_t bucket)
{
	const uint64_t ring = 2ull * rule->identity.samples, word = flow->cell[bucket % ring];
	const uint8_t unit_bits = weir_occupy_unit_bits(rule->identity.interval_ns);

	if (word >> unit_bits != weir_occupy_mark(bucket / ring, tag, unit_bits))
		return 0;
	return word & weir_occupy_units_max(unit_bits);
}

/* Add what these cells count, if they belong to this rule. */
static void add_up(const struct scan *scan, const struct weir_occupy_window *flow, const struct weir_rule_info *rule,
		   struct weir_observed *use)
{
	const uint64_t samples = rule->identity.samples, bucket_ns = rule->identity.interval_ns / samples;
	const uint64_t now = scan->now_ns / bucket_ns + 2 * samples;

	use->units = use->occupied = 0;
	for (uint64_t age = 0; age < samples; age++)
		use->units += weir_occupy_units(flow, use->tag, rule, now - age);
	for (uint64_t ahead = 1; ahead <= samples; ahead++)
		use->occupied += weir_occupy_units(flow, use->tag, rule, now + ahead);
}

/* A cell shows whether it belongs to this flow under a rule with this bucket length, but not to which rule. */
static int add_set(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_occupy_set *set = values;
	struct scan *scan = data;

	scan->now_ns = weir_host_now_ns();
	for (int way = 0; way < WEIR_FLOW_WAYS; way++) {
		struct weir_observed use = {.tag = set->flows.tag[way], .set = index}, found = {};
		int rules = 0;

		for (uint32_t i = 0; set->flows.tag[way] && i < scan->instance->rule_count; i++) {
			const struct weir_rule_info *rule = &scan->instance->rules[scan->instance->rule_order[i]];

			if (!occupies(rule) || !rule->identity.key_fields)
				continue;
			add_up(scan, &set->flow[way], rule, &use);
			if (!use.units && !use.occupied)
				continue;
			if (!rules++) {
				found = use;
				found.slot = scan->instance->rule_order[i];
			}
		}
		if (rules > 1)
			found.slot = WEIR_SLOT_UNKNOWN;
		if (rules)
			scan->add(&found, scan->data);
	}
	return 0;
}

static int add_resource(uint32_t slot, const void *values, int cpus, void *data)
{
	struct scan *scan = data;
	const struct weir_rule_info *rule = &scan->instance->rules[slot];
	struct weir_observed use = {.slot = slot};

	scan->now_ns = weir_host_now_ns();
	if (!occupies(rule) || rule->identity.key_fields)
		return 0;
	add_up(scan, values, rule, &use);
	if (use.units || use.occupied)
		scan->add(&use, scan->data);
	return 0;
}

int weir_observe_occupy(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add,
			void *data)
{
	struct scan scan = {.instance = instance, .add = add, .data = data};
	int err;

	err = weir_instance_scan(instance, WEIR_TABLE_OCCUPY_RESOURCES, add_resource, &scan);
	if (!err)
		err = weir_instance_scan(instance, WEIR_TABLE_OCCUPY_FLOWS, add_set, &scan);
	return err;
}
