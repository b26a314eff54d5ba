// SPDX-License-Identifier: GPL-2.0-only
#include "state/observe.h"

#include "tables/entry_state.h"
#include "tables/rule_kind.h"

#define NSEC_PER_USEC 1000ull

struct scan {
	const struct weir_instance *instance;
	const uint64_t *allowed;
	uint32_t keyed_slot; /* the slot of the only rule that throttles flows, or WEIR_SLOT_UNKNOWN */
	weir_observed_add *add;
	void *data;
};

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
static void look(const void *element, uint64_t now_ns, struct weir_observed *found, void *data)
{
	const uint64_t word = *(const uint64_t *)element;
	const struct scan *scan = data;

	if (found->tag)
		found->slot = scan->keyed_slot;
	if (!weir_penalty_left_ns(word, found->tag, now_ns - emission_ns(scan, found->slot)))
		return;
	found->units = (weir_penalty_left_ns(word, found->tag, now_ns) + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
	found->is_wait = true;
	scan->add(found, scan->data);
}

static uint32_t find_keyed_slot(const struct weir_instance *instance)
{
	uint32_t found = WEIR_SLOT_UNKNOWN;

	for (uint32_t i = 0; i < instance->rule_count; i++) {
		const uint32_t slot = instance->rule_order[i];

		if (!weir_has_throttle_flows(&instance->rules[slot]))
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

	return weir_observe_tables(instance, WEIR_KIND_THROTTLE, &WEIR_TAT_TABLES, look, &scan);
}
