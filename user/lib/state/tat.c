// SPDX-License-Identifier: GPL-2.0-only
#include "state/observe.h"

#include "base/util.h"
#include "host/host.h"
#include "program/array.h"
#include "tables/entry_state.h"
#include "tables/rule_kind.h"

#define NSEC_PER_USEC 1000ull

struct scan {
	const struct weir_instance *instance;
	const uint64_t *allowed;
	uint64_t now_ns;     /* read after the words; otherwise flows would seem fuller than they ever were */
	uint32_t keyed_slot; /* the slot of the only rule that throttles flows, or WEIR_SLOT_UNKNOWN */
	weir_observed_add *add;
	void *data;
};

static bool throttles(const struct weir_rule_info *rule)
{
	return rule->state == WEIR_SLOT_USED && !rule->is_shadow && weir_throttles(rule);
}

/* The minimum distance between two packets. Under an override it may differ: then a flow is shown slightly too long, or
 * too short.
 */
static uint64_t emission_ns(const struct scan *scan, uint32_t slot)
{
	const struct weir_rule_info *rule;

	if (slot == WEIR_SLOT_UNKNOWN)
		return 0;
	rule = &scan->instance->rules[slot];
	if (rule->place >= scan->instance->rule_count || !scan->allowed[rule->place])
		return 0;
	return rule->identity.interval_ns / scan->allowed[rule->place];
}

/* The words of TATs and of penalties have the same layout. */
static void add_word(const struct scan *scan, uint64_t word, struct weir_observed *use)
{
	if (!weir_penalty_left_ns(word, use->tag, scan->now_ns - emission_ns(scan, use->slot)))
		return;
	use->units = (weir_penalty_left_ns(word, use->tag, scan->now_ns) + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
	use->is_wait = true;
	scan->add(use, scan->data);
}

static int add_resource(uint32_t slot, const void *values, int cpus, void *data)
{
	struct scan *scan = data;
	const struct weir_rule_info *rule = &scan->instance->rules[slot];
	struct weir_observed use = {.slot = slot};

	scan->now_ns = weir_host_now_ns();
	if (throttles(rule) && !rule->identity.key_fields)
		add_word(scan, *(const uint64_t *)values, &use);
	return 0;
}

static int add_set(uint32_t index, const void *values, int cpus, void *data)
{
	const struct weir_throttle_set *set = values;
	struct scan *scan = data;

	scan->now_ns = weir_host_now_ns();
	for (int way = 0; way < WEIR_FLOW_WAYS; way++) {
		struct weir_observed use = {.slot = scan->keyed_slot, .tag = set->flows.tag[way], .set = index};

		if (use.tag)
			add_word(scan, set->last[way], &use);
	}
	return 0;
}

static uint32_t find_keyed_slot(const struct weir_instance *instance)
{
	uint32_t found = WEIR_SLOT_UNKNOWN;

	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const uint32_t slot = instance->rule_order[i];

		if (!throttles(&instance->rules[slot]) || !instance->rules[slot].identity.key_fields)
			continue;
		if (found != WEIR_SLOT_UNKNOWN)
			return WEIR_SLOT_UNKNOWN;
		found = slot;
	}
	return found;
}

/* Show flows with packets that are still due, or were due so recently that the next packet would have to wait. */
int weir_observe_throttle(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add,
			  void *data)
{
	struct scan scan = {
		.instance = instance,
		.allowed = allowed,
		.keyed_slot = find_keyed_slot(instance),
		.add = add,
		.data = data,
	};
	int err;

	err = weir_instance_scan(instance, WEIR_TABLE_THROTTLED_RESOURCES, add_resource, &scan);
	if (!err)
		err = weir_instance_scan(instance, WEIR_TABLE_THROTTLED_FLOWS, add_set, &scan);
	return err;
}
