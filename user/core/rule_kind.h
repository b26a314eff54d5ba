/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a rule is, by its description: said here, once, for the compiler, who reads what is attached, and who prints it.
 */
#ifndef WEIR_RULE_KIND_H
#define WEIR_RULE_KIND_H

#include <stdbool.h>

#include "ruleset.h"
#include "weir_abi.h"

/* It counts connections, and has no window. */
static inline bool weir_has_connections(const struct weir_rule_info *rule)
{
	return rule->identity.metric == WEIR_METRIC_CONCURRENCY;
}

/* It keeps a window; others go by connections, by planned times, or by the window of a meter. */
static inline bool weir_has_window(const struct weir_rule_info *rule)
{
	return rule->is_meter || (!weir_has_connections(rule) && rule->behavior == WEIR_BEHAVIOR_REJECT &&
				  rule->relation == WEIR_RELATION_CURRENT);
}

/* Its flows have planned times, in a table that all CPUs share. */
static inline bool weir_throttles_flows(const struct weir_rule_info *rule)
{
	return rule->behavior == WEIR_BEHAVIOR_THROTTLING && rule->identity.key_fields;
}

/* The program warms each of its flows by itself: no one threshold is in force. */
static inline bool weir_warms_flows(const struct weir_rule_info *rule)
{
	return rule->strategy == WEIR_STRATEGY_WARM_UP && !rule->moves;
}

#endif
