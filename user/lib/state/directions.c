// SPDX-License-Identifier: GPL-2.0-only
#include "state/directions.h"

bool weir_limits_out(const struct weir_instance *instance)
{
	for (uint32_t i = 0; i < instance->resource_count; i++)
		if (weir_resource_directions(&instance->resources[instance->resource_order[i]]) & WEIR_MATCHES_OUT)
			return true;
	return false;
}

uint32_t weir_rule_directions(const struct weir_instance *instance, const struct weir_rule_info *rule)
{
	if (rule->resource_slot >= instance->info.resource_slots)
		return WEIR_MATCHES_IN;
	return weir_resource_directions(&instance->resources[rule->resource_slot]);
}
