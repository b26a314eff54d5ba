// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind CONNECTIONS: a rule limits how many connections a flow has open at once (docs/connections.md). It has neither an
 * interval nor a window.
 */
#include <string.h>

#include "base/util.h"
#include "compile/build_steps.h"
#include "kinds/kinds.h"
#include "rules/rule.h"
#include "rules/scalars.h"
#include "tables/connection_counts.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->metric == WEIR_METRIC_CONCURRENCY;
}

/* ---- rule files ---- */

/* A Concurrency rule counts connections, and none of the other choices of Sentinel's flow rules apply to it. Complain
 * about those that the rule names, and continue as if it named none.
 */
static void check_choices(struct weir_reader *reader, struct weir_draft *draft)
{
	static const char *const leave_out = "leave it out, or leave out metricType to limit a rate";
	struct weir_ruleset_rule *rule = draft->rule;

	if (rule->strategy != WEIR_STRATEGY_DIRECT)
		weir_complain(reader, draft->value[RULE_STRATEGY], leave_out,
			      "a limit on connections cannot move: Concurrency has no %s",
			      weir_strategy_names[rule->strategy]);
	if (rule->behavior != WEIR_BEHAVIOR_REJECT)
		weir_complain(reader, draft->value[RULE_BEHAVIOR], leave_out,
			      "a connection is opened or refused and cannot wait: Concurrency has no Throttling");
	if (rule->relation != WEIR_RELATION_CURRENT)
		weir_complain(reader, draft->value[RULE_RELATION], leave_out,
			      "connections are counted for their own resource: Concurrency has no AssociatedResource");
	if (rule->counts_bytes)
		weir_complain(reader, draft->value[RULE_UNIT], leave_out, "Concurrency counts connections, not bytes");
	rule->strategy = WEIR_STRATEGY_DIRECT;
	rule->behavior = WEIR_BEHAVIOR_REJECT;
	rule->relation = WEIR_RELATION_CURRENT;
	rule->counts_bytes = false;
}

/* Sentinel-Go's isolation rules: "zero threshold" (core/isolation/rule_manager.go). */
static bool check_threshold(struct weir_reader *reader, const struct weir_draft *draft)
{
	const bool is_zero = draft->has_threshold || !draft->value[RULE_THRESHOLD];

	if (!draft->is_isolation || draft->rule->threshold_micro || !is_zero)
		return false;
	weir_complain(reader, weir_draft_at(draft, RULE_THRESHOLD),
		      "write 1 or more; to refuse every connection, write the rule in weir's own format",
		      "a Sentinel isolation rule needs a threshold above 0");
	return true;
}

/* A connection is tracked by all packets of its 5-tuple, so a match must take all of them or none. */
static void warn(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = weir_draft_at(draft, RULE_METRIC);
	const struct weir_ruleset_resource *resource;
	const struct weir_match *match;

	if (!draft->has_resource)
		return;
	resource = &reader->ruleset->resources[draft->rule->resource];
	match = &resource->match;
	if (match->fragments == 1 << WEIR_FRAGMENT_LATER)
		weir_warn(reader, value, "use another resource, or leave 'fragment' out of its match",
			  "the rule has no effect: '%.*s' matches only later fragments, which belong to no connection",
			  WEIR_SHOWN(resource->name));
	else if (weir_match_splits_connections(match))
		weir_warn(reader, value,
			  "packets that it does not match cannot keep a connection alive or end it: match by addresses "
			  "and ports",
			  "'%.*s' matches only some packets of a connection: its match has '%s'",
			  WEIR_SHOWN(resource->name), weir_match_splits_connections(match));
}

/* A full table evicts, so a limit beyond its size has no effect. */
static void warn_of_room(struct weir_reader *reader, size_t place)
{
	const struct weir_ruleset *ruleset = reader->ruleset;

	if (ruleset->rules[place].threshold_micro / WEIR_MICRO > ruleset->settings.connections)
		weir_warn(reader, reader->rule_nodes[place], "raise settings.connections, or lower the threshold",
			  "the threshold may never be reached: all rules together have room for %u connections",
			  ruleset->settings.connections);
}

/* ---- tables ---- */

static bool has_flows(const struct weir_rule_info *rule)
{
	return weir_has_connections(rule) && rule->identity.key_fields;
}

/*
 * While a rule's connections are kept, so are the timeouts that measure their silence. Connections refer to their flow
 * by its index, so while there may be such connections, the flow table is kept too. There is no warning if no rule
 * counts connections any more, since other timeouts are not needed then.
 */
static void keep_connections(const struct weir_previous *previous, struct weir_image *image, struct weir_diag *diag)
{
	uint64_t *timeout_ms = image->connection_timeout_ms;

	if (image->config.kinds & 1u << WEIR_KIND_CONNECTIONS &&
	    memcmp(timeout_ms, previous->connection_timeout_ms, sizeof(image->connection_timeout_ms)))
		weir_diag_warning(diag, NULL, NULL, "detach and attach again to change them",
				  "the timeouts of connections stay as they are: a reload does not change them");
	memcpy(timeout_ms, previous->connection_timeout_ms, sizeof(image->connection_timeout_ms));
	if (previous->sizes[WEIR_TABLE_CONNECTION_FLOWS])
		image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS] = previous->sizes[WEIR_TABLE_CONNECTION_FLOWS];
}

static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing connections = {
		.keeps = weir_has_connections,
		.sets = weir_sets_for(settings->connections, WEIR_CONNECTIONS_PER_SET),
		.table = WEIR_TABLE_CONNECTIONS,
		.ways = WEIR_CONNECTIONS_PER_SET,
		.keeping = "table of connections keeps its",
		.what = "places",
		.setting = "connections",
	};
	const struct weir_sizing flows = {
		.keeps = has_flows,
		.sets = weir_sets_for(settings->connection_flows, WEIR_CONNECTION_FLOWS_PER_SET),
		.table = WEIR_TABLE_CONNECTION_FLOWS,
		.ways = WEIR_CONNECTION_FLOWS_PER_SET,
		.keeping = "table of flows with connections keeps its",
		.what = "places",
		.setting = "connectionFlows",
		.is_reported = settings->derives_connection_flows &&
			       connections.sets != previous->sizes[WEIR_TABLE_CONNECTIONS],
	};
	struct weir_config *config = &image->config;

	weir_size_table(image, previous, &connections, diag);
	weir_size_table(image, previous, &flows, diag);
	if (config->sizes[WEIR_TABLE_CONNECTIONS])
		config->sizes[WEIR_TABLE_LONE_CONNECTIONS] = config->sizes[WEIR_TABLE_CONNECTION_TOTALS] =
			image->rule_slots;
	memcpy(image->connection_timeout_ms, settings->connection_timeout_ms, sizeof(image->connection_timeout_ms));
	if (previous->sizes[WEIR_TABLE_CONNECTIONS] &&
	    weir_any_rule(weir_has_connections, previous->rules, previous->rule_slots))
		keep_connections(previous, image, diag);
	for (unsigned int i = 0; i < WEIR_CONNECTION_CLASSES; i++)
		config->connection_step_ns[i] = weir_connection_step_ns(image->connection_timeout_ms[i]);
}

/* The longest possible silence (seven steps, docs/connections.md), plus a second for readers that work in whole
 * seconds.
 */
static uint64_t rule_memory_ns(const struct weir_previous *previous)
{
	uint64_t longest_ms = 0;

	for (unsigned int i = 0; i < WEIR_CONNECTION_CLASSES; i++)
		if (previous->connection_timeout_ms[i] > longest_ms)
			longest_ms = previous->connection_timeout_ms[i];
	return weir_connection_step_ns(longest_ms) * (WEIR_CONNECTION_STEPS + 1) + WEIR_NSEC_PER_SEC;
}

const struct weir_kind weir_kind_connections = {
	.is_chosen = is_chosen,
	.metric_name = "Concurrency",
	.metric_number = "0",
	.metric = WEIR_METRIC_CONCURRENCY,
	.check_choices = check_choices,
	/* Values that are the default anyway, such as Direct, are accepted; a unit would be wrong. */
	.fields = 1u << RULE_NAME | 1u << RULE_RESOURCE | 1u << RULE_PER | 1u << RULE_METRIC | 1u << RULE_THRESHOLD |
		  1u << RULE_ON_BLOCK | 1u << RULE_STRATEGY | 1u << RULE_BEHAVIOR | 1u << RULE_RELATION |
		  1u << RULE_MODE | 1u << RULE_OVERRIDES,
	.others_condition = "rules without metricType Concurrency",
	.threshold_hint = "write how many connections may be open at once: 'threshold: 100'",
	.check_threshold = check_threshold,
	.below_one = "a threshold below 1 admits no new connection",
	.below_one_hint = "connections already open stay open",
	.warn = warn,
	.warn_of_room = warn_of_room,
	.packet_fields = WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION | WEIR_MATCH_SOURCE_PORT |
			 WEIR_MATCH_DESTINATION_PORT | WEIR_MATCH_TCP_FLAGS,
	.size_tables = size_tables,
	.rule_memory_ns = rule_memory_ns,
	.noun = "connection",
	.storage_name = "connections",
};
