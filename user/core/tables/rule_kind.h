/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room tables: what entries of the maps mean to those who read them: descriptions of rules (this header), the words
 * of the connection tables, the span of narrow rows. Pure: entries are copies, and the time is handed in.
 *
 * What a rule is, by its description: said here, once, for the compiler, who reads what is attached, and who prints it.
 */
#ifndef WEIR_TABLES_RULE_KIND_H
#define WEIR_TABLES_RULE_KIND_H

#include <stdbool.h>

#include "kind/kind.h"
#include "rules/ruleset.h"
#include "weir_abi.h"

/* It is of this kind, and has a flow key, or none: who keeps something in the tables of weir_kinds.def. */
#define SHARED_KIND(identifier, name, ...)                                                                             \
	static inline bool weir_has_##name##_flows(const struct weir_rule_info *rule)                                  \
	{                                                                                                              \
		return weir_kind_id_of_info(rule) == WEIR_KIND_##identifier && rule->identity.key_fields;              \
	}                                                                                                              \
	static inline bool weir_has_##name##_resource(const struct weir_rule_info *rule)                               \
	{                                                                                                              \
		return weir_kind_id_of_info(rule) == WEIR_KIND_##identifier && !rule->identity.key_fields;             \
	}
#define KIND(...)
#include "weir_kinds.def"

/* It counts connections, and has no window. */
static inline bool weir_has_connections(const struct weir_rule_info *rule)
{
	return weir_kind_of_info(rule)->counts_connections;
}

/* It is a circuit breaker. */
static inline bool weir_is_breaker(const struct weir_rule_info *rule)
{
	return weir_kind_of_info(rule)->is_breaker;
}

/* It keeps a window; others go by connections, by TATs, or by a shadow window. */
static inline bool weir_has_window(const struct weir_rule_info *rule)
{
	return weir_kind_of_info(rule)->keeps_window;
}

/* It spaces packets evenly. */
static inline bool weir_throttles(const struct weir_rule_info *rule)
{
	return weir_kind_of_info(rule)->delays && !weir_kind_of_info(rule)->occupies;
}

/* Its window can be occupied, and is shared by all CPUs. */
static inline bool weir_occupies(const struct weir_rule_info *rule)
{
	return weir_kind_of_info(rule)->occupies;
}

/* It goes by token buckets. */
static inline bool weir_has_tokens(const struct weir_rule_info *rule)
{
	return weir_kind_of_info(rule)->has_tokens;
}

/* A system rule that compares a signal of the host, and counts nothing. */
static inline bool weir_has_signal(const struct weir_rule_info *rule)
{
	return rule->identity.metric == WEIR_METRIC_SIGNAL;
}

/* The program warms each of its flows by itself: no one threshold is in force. */
static inline bool weir_warms_flows(const struct weir_rule_info *rule)
{
	return rule->strategy == WEIR_STRATEGY_WARM_UP && !rule->moves;
}

/* A threshold of its own is in force at every moment, for all of its flows but those with overrides. */
static inline bool weir_has_one_threshold(const struct weir_rule_info *rule)
{
	return !weir_warms_flows(rule) && !weir_has_signal(rule) && !weir_is_breaker(rule);
}

/* What it blocks it keeps blocking, flow by flow; or all packets of its resource together. */
static inline bool weir_penalises_flows(const struct weir_rule_info *rule)
{
	return rule->penalty_ms && rule->identity.key_fields;
}

static inline bool weir_penalises(const struct weir_rule_info *rule)
{
	return rule->penalty_ms;
}

/* A flow of its that is pushed out of a full table leaves a ghost (bpf/kinds/ghosts.h). */
static inline bool weir_leaves_ghosts(const struct weir_rule_info *rule)
{
	return weir_has_throttle_flows(rule) || weir_has_tokens_flows(rule) || weir_penalises_flows(rule);
}

/* ... a ghost, as windows do (bpf/window/row_ghosts.h). */
static inline bool weir_leaves_row_ghosts(const struct weir_rule_info *rule)
{
	return rule->identity.key_fields && (weir_has_window(rule) || weir_occupies(rule));
}

/* Tables that all CPUs share remember its flows for longer than its slot's rows. */
static inline bool weir_shares_flows(const struct weir_rule_info *rule)
{
	return weir_has_throttle_flows(rule) || weir_has_occupy_flows(rule) || weir_warms_flows(rule);
}

#endif
