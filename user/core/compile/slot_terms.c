// SPDX-License-Identifier: GPL-2.0-only
/* Properties of a rule that all parts of slot allocation need: its terms, its identity, how long its window remembers.
 */
#include <string.h>

#include "compile/build_steps.h"
#include "compile/slotting.h"

#define NSEC_PER_MSEC 1000000ull

const struct weir_terms *weir_slot_terms_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return &slotting->terms[rule - slotting->ruleset->rules];
}

bool weir_slot_has_spec(const struct weir_ruleset_rule *rule)
{
	return weir_kind_of(rule)->has_interval;
}

uint64_t weir_slot_bucket_ns(const struct weir_ruleset_rule *rule)
{
	return rule->interval_ns / rule->samples;
}

uint64_t weir_slot_queueing_ns_max(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	return kind->longest_wait_ns ? kind->longest_wait_ns(rule, &slotting->ruleset->settings) : 0;
}

const struct weir_ruleset_resource *weir_slot_resource_of(const struct slotting *slotting,
							  const struct weir_ruleset_rule *rule)
{
	return weir_resource_of(slotting->ruleset, rule);
}

bool weir_slot_has_flows(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return weir_flow_of(slotting->ruleset, rule)->fields;
}

/* The directions of all packets that the rule evaluates or counts. */
static uint8_t directions_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return weir_match_directions(&weir_slot_resource_of(slotting, rule)->match) |
	       weir_slot_terms_of(slotting, rule)->directions;
}

void weir_identify_key(const struct weir_flow *flow, uint8_t directions, struct weir_rule_identity *identity)
{
	const struct weir_flow key = weir_flow_by_ends(flow, directions);

	identity->key_fields = key.fields;
	if (key.fields & WEIR_KEY_SOURCE)
		memcpy(identity->source_bits, key.source_bits, sizeof(identity->source_bits));
	if (key.fields & WEIR_KEY_DESTINATION)
		memcpy(identity->destination_bits, key.destination_bits, sizeof(identity->destination_bits));
}

struct weir_rule_identity weir_slot_identity_of(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	struct weir_rule_identity identity;

	/* Compared as memory, so no byte may be left unset. */
	memset(&identity, 0, sizeof(identity));
	identity.metric = rule->metric;
	if (weir_kind_of(rule)->has_interval) {
		identity.interval_ns = rule->interval_ns;
		identity.samples = rule->samples;
		identity.window = rule->window;
		identity.counts_bytes = rule->counts_bytes;
	}
	if (weir_kind_of(rule)->is_breaker) {
		identity.interval_ns = rule->breaker.interval_ns;
		identity.samples = rule->breaker.buckets;
	}
	weir_identify_key(weir_flow_of(slotting->ruleset, rule), directions_of(slotting, rule), &identity);
	return identity;
}

bool weir_slot_overrides_local(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	const struct weir_flow *flow = weir_flow_of(slotting->ruleset, rule);
	const bool is_reversed = directions_of(slotting, rule) == WEIR_MATCHES_OUT &&
				 !(flow->fields & WEIR_KEY_RELATIVE(rule->override_field));

	return rule->override_count && (rule->override_field == WEIR_KEY_DESTINATION) != is_reversed;
}

bool weir_slot_may_be_several(const struct slotting *slotting, const struct weir_ruleset_rule *rule)
{
	return slotting->is_at_tc || directions_of(slotting, rule) & WEIR_MATCHES_OUT;
}

uint64_t weir_slot_window_memory_ns(const struct weir_rule_identity *identity)
{
	return identity->interval_ns + (identity->samples ? identity->interval_ns / identity->samples : 0);
}
