/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room tables: what map entries mean to code that reads them: descriptions of rules (this header), the words of
 * entries, and where a flow's entry is. Pure: entries are copies, and the time is passed in.
 *
 * This header derives a rule's properties from its description, in one place for the compiler, for readers of attached
 * instances, and for printing.
 */
#ifndef WEIR_TABLES_RULE_KIND_H
#define WEIR_TABLES_RULE_KIND_H

#include <stdbool.h>

#include "kind/kind.h"
#include "rules/field_rows.h"
#include "rules/ruleset.h"
#include "weir_abi.h"

/* Is the rule of this kind, with a flow key (_flows) or without one (_resource)? These are the rules with state in the
 * tables of weir_kinds.def.
 */
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

/* Does it count connections? Such a rule has no window. */
static inline bool weir_has_connections(const struct weir_rule_info *rule)
{
	return weir_kind_id_of_info(rule) == WEIR_KIND_CONNECTIONS;
}

/* The slot at which the rule in `slot` counts connections: its own, or that of rules that share them
 * (compile/shared_connections.c). An older version left 0.
 */
static inline uint32_t weir_connections_slot(const struct weir_rule_info *rule, uint32_t slot)
{
	return rule->flows_slot_and_one ? rule->flows_slot_and_one - 1 : slot;
}

/* Is it a circuit breaker? */
static inline bool weir_is_breaker(const struct weir_rule_info *rule)
{
	return weir_kind_id_of_info(rule) == WEIR_KIND_BREAKER;
}

/* Does it keep a window? Others use connections, TATs, or a shadow window. */
static inline bool weir_has_window(const struct weir_rule_info *rule)
{
	return weir_kind_id_of_info(rule) == WEIR_KIND_WINDOW;
}

/* Does it space packets evenly? */
static inline bool weir_throttles(const struct weir_rule_info *rule)
{
	return weir_kind_id_of_info(rule) == WEIR_KIND_THROTTLE;
}

/* Does it go by a shadow window, of what passed on another resource? */
static inline bool weir_reads_shadow(const struct weir_rule_info *rule)
{
	return weir_kind_id_of_info(rule) == WEIR_KIND_ASSOCIATED;
}

/* Does it count over an interval? Others count what is open, or go by outcomes or signals. */
static inline bool weir_has_interval(const struct weir_rule_info *rule)
{
	return weir_kind_has(weir_kind_of_info(rule), RULE_INTERVAL);
}

/* Can its window be occupied? Such a window is shared by all CPUs. */
static inline bool weir_occupies(const struct weir_rule_info *rule)
{
	return weir_kind_id_of_info(rule) == WEIR_KIND_OCCUPY;
}

/* Does it use token buckets? */
static inline bool weir_has_tokens(const struct weir_rule_info *rule)
{
	return weir_kind_id_of_info(rule) == WEIR_KIND_TOKENS;
}

/* Is it a system rule that compares a signal of the host, and counts nothing? */
static inline bool weir_has_signal(const struct weir_rule_info *rule)
{
	return rule->identity.metric == WEIR_METRIC_SIGNAL;
}

/* Does the program warm up each of its flows separately? Then no single threshold is in force. */
static inline bool weir_warms_flows(const struct weir_rule_info *rule)
{
	return rule->strategy == WEIR_STRATEGY_WARM_UP && !rule->moves;
}

/* Is a single threshold in force at any moment, for all of its flows except those with overrides? */
static inline bool weir_has_one_threshold(const struct weir_rule_info *rule)
{
	return !weir_warms_flows(rule) && !weir_has_signal(rule) && !weir_is_breaker(rule);
}

/* Does it penalise single flows after a drop? weir_penalises() is also true if it penalises all packets of its resource
 * together.
 */
static inline bool weir_penalises_flows(const struct weir_rule_info *rule)
{
	return rule->penalty_ms && rule->identity.key_fields;
}

static inline bool weir_penalises(const struct weir_rule_info *rule)
{
	return rule->penalty_ms;
}

/* Are senders of packets that it blocks answered, while it enforces? */
static inline bool weir_answers(const struct weir_rule_info *rule)
{
	return rule->on_block;
}

/* What senders of packets get that these rules block: one bit for each enum weir_on_block but DROP. observes: all rules
 * do.
 */
static inline uint32_t weir_answers_of(const struct weir_rule_info *rules, uint32_t count, bool observes)
{
	uint32_t answers = 0;

	for (uint32_t i = 0; !observes && i < count; i++)
		if (rules[i].state == WEIR_SLOT_USED && !rules[i].observes)
			answers |= 1u << rules[i].on_block;
	return answers & ~(1u << WEIR_ON_BLOCK_DROP);
}

/* Does a flow of this rule leave a ghost when it is evicted from a full table (bpf/kinds/ghosts.h)? */
static inline bool weir_leaves_ghosts(const struct weir_rule_info *rule)
{
	return weir_has_throttle_flows(rule) || weir_has_tokens_flows(rule) || weir_penalises_flows(rule);
}

/* Does it leave a row ghost, as windows do (bpf/window/row_ghosts.h)? */
static inline bool weir_leaves_row_ghosts(const struct weir_rule_info *rule)
{
	return rule->identity.key_fields && (weir_has_window(rule) || weir_occupies(rule));
}

/* Do tables shared by all CPUs remember its flows for longer than the rows of its slot? */
static inline bool weir_shares_flows(const struct weir_rule_info *rule)
{
	return weir_has_throttle_flows(rule) || weir_has_occupy_flows(rule) || weir_warms_flows(rule);
}

#endif
