// SPDX-License-Identifier: GPL-2.0-only
/* What a rule cannot be (docs/semantics.md, 3 to 7), and what is legal but surely not meant. */
#include <string.h>

#include "parse_rule.h"
#include "util.h"

/* The largest frame of an Ethernet of 1500 bytes MTU, without its checksum, which XDP does not see. */
#define FRAME_BYTES_USUAL 1514

/* Who writes what is the default anyway, such as Direct, means no harm; a unit would be the wrong one. */
static bool is_of_connections(enum weir_rule_field field)
{
	switch (field) {
	case RULE_NAME:
	case RULE_RESOURCE:
	case RULE_METRIC:
	case RULE_THRESHOLD:
	case RULE_STRATEGY:
	case RULE_BEHAVIOR:
	case RULE_RELATION:
	case RULE_MODE:
	case RULE_OVERRIDES:
		return true;
	default:
		return false;
	}
}

bool weir_draft_uses(const struct weir_draft *draft, enum weir_rule_field field, const char **ret_condition)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	const char *condition = "";
	bool is_used = true;

	if (rule->metric == WEIR_METRIC_CONCURRENCY) {
		if (ret_condition)
			*ret_condition = "rules without metricType Concurrency";
		return is_of_connections(field);
	}
	switch (field) {
	case RULE_THRESHOLD:
		is_used = rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE;
		condition = "Direct and WarmUp";
		break;
	case RULE_REF_RESOURCE:
		is_used = rule->relation == WEIR_RELATION_ASSOCIATED;
		condition = "relationStrategy AssociatedResource";
		break;
	case RULE_MAX_QUEUEING:
		is_used = rule->behavior == WEIR_BEHAVIOR_THROTTLING;
		condition = "controlBehavior Throttling";
		break;
	case RULE_SAMPLES:
	case RULE_WINDOW:
		is_used = rule->behavior == WEIR_BEHAVIOR_REJECT;
		condition = "controlBehavior Reject: Throttling has no window";
		break;
	case RULE_WARM_UP_PERIOD:
	case RULE_COLD_FACTOR:
		is_used = rule->strategy == WEIR_STRATEGY_WARM_UP;
		condition = "tokenCalculateStrategy WarmUp";
		break;
	case RULE_LOW_USAGE:
	case RULE_HIGH_USAGE:
	case RULE_LOW_MARK:
	case RULE_HIGH_MARK:
		is_used = rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE;
		condition = "tokenCalculateStrategy MemoryAdaptive";
		break;
	default:
		break;
	}
	if (ret_condition)
		*ret_condition = condition;
	return is_used;
}

/* ---- what cannot be ---- */

void weir_check_concurrency(struct weir_reader *reader, struct weir_draft *draft)
{
	static const char *const leave_out = "leave it out, or leave out metricType to limit a rate";
	struct weir_ruleset_rule *rule = draft->rule;

	if (rule->strategy != WEIR_STRATEGY_DIRECT)
		weir_complain(reader, draft->value[RULE_STRATEGY], leave_out,
			      "a limit of connections does not move: Concurrency has no %s",
			      weir_strategy_names[rule->strategy]);
	if (rule->behavior != WEIR_BEHAVIOR_REJECT)
		weir_complain(reader, draft->value[RULE_BEHAVIOR], leave_out,
			      "a connection is opened or refused, it cannot wait: Concurrency has no Throttling");
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

/* What the rule's threshold counts, in the words of a mistake's hint. */
static const char *threshold_hint(const struct weir_ruleset_rule *rule)
{
	return rule->metric == WEIR_METRIC_CONCURRENCY
		       ? "say how many connections may be open at once: 'threshold: 100'"
		       : "say how many packets an interval may hold: 'threshold: 1000'";
}

/* Sentinel-Go's isolation rules: "zero threshold" (core/isolation/rule_manager.go). */
static bool lacks_isolation_threshold(const struct weir_draft *draft)
{
	return draft->is_sentinel && draft->rule->metric == WEIR_METRIC_CONCURRENCY &&
	       draft->rule->threshold_micro == 0 && (draft->has_threshold || !draft->value[RULE_THRESHOLD]);
}

static void check_threshold(struct weir_reader *reader, const struct weir_draft *draft)
{
	if (lacks_isolation_threshold(draft))
		weir_complain(reader, weir_draft_at(draft, RULE_THRESHOLD),
			      "write 1 or more; to refuse every connection, write the rule in a file of weir's own",
			      "an isolation rule of Sentinel's needs a threshold above 0");
	else if (!draft->value[RULE_THRESHOLD] && !draft->is_sentinel)
		weir_complain(reader, draft->node, threshold_hint(draft->rule), "the rule has no threshold");
	else if (!draft->value[RULE_THRESHOLD])
		weir_warn(reader, draft->node, "as in Sentinel, no threshold is a threshold of 0",
			  "the rule has no threshold: it admits nothing");
}

static void check_warm_up(struct weir_reader *reader, const struct weir_draft *draft)
{
	uint64_t factor = draft->number[RULE_COLD_FACTOR] ?: WEIR_COLD_FACTOR_DEFAULT;
	uint64_t micro = draft->rule->threshold_micro;

	if (!draft->number[RULE_WARM_UP_PERIOD] && !draft->is_misread[RULE_WARM_UP_PERIOD])
		weir_complain(reader, weir_draft_at(draft, RULE_WARM_UP_PERIOD),
			      "write the seconds that warming up takes",
			      "WarmUp needs a warmUpPeriodSec of at least 1");
	if (factor == 1)
		weir_complain(reader, weir_draft_at(draft, RULE_COLD_FACTOR), "write 2 or more, or leave it out for 3",
			      "a warmUpColdFactor of 1 leaves nothing to warm up");
	else if (draft->has_threshold && micro && micro / WEIR_MICRO < factor && !draft->is_misread[RULE_COLD_FACTOR])
		weir_complain(reader, draft->value[RULE_THRESHOLD], "raise the threshold to the cold factor at least",
			      "cold, this rule would admit less than one unit and never warm up");
}

static void check_memory_adaptive(struct weir_reader *reader, const struct weir_draft *draft)
{
	static const enum weir_rule_field needed[] = {RULE_LOW_USAGE, RULE_HIGH_USAGE, RULE_LOW_MARK, RULE_HIGH_MARK};
	const uint64_t *number = draft->number;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!number[needed[i]] && !draft->is_misread[needed[i]])
			weir_complain(reader, weir_draft_at(draft, needed[i]), "write a number above 0",
				      "MemoryAdaptive needs a %s above 0", weir_rule_fields[needed[i]]);
	if (number[RULE_LOW_USAGE] && number[RULE_HIGH_USAGE] && number[RULE_HIGH_USAGE] >= number[RULE_LOW_USAGE])
		weir_complain(reader, draft->value[RULE_HIGH_USAGE], "the threshold shrinks as memory fills",
			      "highMemUsageThreshold must be below lowMemUsageThreshold");
	if (number[RULE_LOW_MARK] && number[RULE_HIGH_MARK] && number[RULE_LOW_MARK] >= number[RULE_HIGH_MARK])
		weir_complain(reader, draft->value[RULE_LOW_MARK], "raise the one or lower the other",
			      "memLowWaterMarkBytes must be below memHighWaterMarkBytes");
}

static void check_reference(struct weir_reader *reader, const struct weir_draft *draft, size_t index)
{
	const struct weir_node *value = draft->value[RULE_REF_RESOURCE];
	const struct weir_ruleset_resource *reference = &reader->ruleset->resources[index];
	const struct weir_ruleset_resource *own = &reader->ruleset->resources[draft->rule->resource];

	if (reference == own)
		weir_complain(reader, value, "name another, or use CurrentResource",
			      "refResource is the rule's own resource");
	else if (reference->flow.fields && memcmp(&reference->flow, &own->flow, sizeof(own->flow)))
		weir_complain(reader, value, "give both resources the same flow key, or refResource none",
			      "refResource '%.*s' has another flow key than the rule's resource",
			      WEIR_SHOWN(reference->name));
	else
		draft->rule->ref_resource = index;
}

static void check_association(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_REF_RESOURCE];
	const char *name;
	size_t index;

	if (draft->rule->behavior == WEIR_BEHAVIOR_THROTTLING && draft->rule->strategy != WEIR_STRATEGY_WARM_UP)
		weir_complain(reader, weir_draft_at(draft, RULE_RELATION), "use Reject, or CurrentResource",
			      "AssociatedResource has no effect with Throttling, unless the strategy is WarmUp");
	if (!value || (value->kind == WEIR_NODE_WORD && !value->text[0]))
		weir_complain(reader, weir_draft_at(draft, value ? RULE_REF_RESOURCE : RULE_RELATION),
			      "say whose traffic counts: 'refResource: NAME'",
			      "AssociatedResource needs a refResource");
	else if (weir_look_up_resource(reader, value, "refResource", &name, &index) && draft->has_resource)
		check_reference(reader, draft, index);
}

static void check_overrides(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_OVERRIDES];
	const struct weir_ruleset_resource *resources = reader->ruleset->resources;
	struct weir_ruleset_rule *rule = draft->rule;

	if (rule->strategy != WEIR_STRATEGY_DIRECT)
		weir_complain(reader, value, "use Direct, or a resource of their own for those flows",
			      "overrides need a threshold that does not move, and %s has none",
			      weir_strategy_names[rule->strategy]);
	if (rule->ref_resource != WEIR_NO_RESOURCE && !resources[rule->ref_resource].flow.fields)
		weir_complain(reader, value, "give refResource the flow key of the rule's resource",
			      "overrides are for single flows, and refResource '%.*s' has no flow key",
			      WEIR_SHOWN(resources[rule->ref_resource].name));
	weir_read_overrides(reader, value, draft->has_resource ? &resources[rule->resource] : NULL, rule);
}

/* ---- what has no effect, or not the one that is meant ---- */

static void warn_of_unused_fields(struct weir_reader *reader, const struct weir_draft *draft)
{
	const char *condition;

	for (enum weir_rule_field field = 0; field < RULE_FIELD_COUNT; field++)
		if (draft->value[field] && !weir_draft_uses(draft, field, &condition))
			weir_warn(reader, draft->value[field], "leave it out", "'%s' has no effect: it is for %s",
				  weir_rule_fields[field], condition);
}

void weir_warn_of_small_threshold(struct weir_reader *reader, const struct weir_node *node, uint64_t micro,
				  const struct weir_ruleset_rule *rule)
{
	if (micro < WEIR_MICRO && rule->metric == WEIR_METRIC_CONCURRENCY)
		weir_warn(reader, node, "what is open already goes on", "a threshold below 1 admits no new connection");
	else if (micro < WEIR_MICRO)
		weir_warn(reader, node, "a packet is admitted whole or not at all",
			  "a threshold below 1 admits nothing");
	else if (rule->counts_bytes && micro < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, node,
			  "a frame larger than the threshold is never admitted; a full one has 1514 bytes",
			  "this threshold is smaller than a frame can be");
}

static void warn_of_small_thresholds(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	uint64_t high_micro = rule->memory.high_units * WEIR_MICRO;

	if (draft->has_threshold && !lacks_isolation_threshold(draft))
		weir_warn_of_small_threshold(reader, draft->value[RULE_THRESHOLD], rule->threshold_micro, rule);
	if (high_micro)
		weir_warn_of_small_threshold(reader, draft->value[RULE_HIGH_USAGE], high_micro, rule);
	/* What is too large for a cold flow would also never warm it up. */
	if (draft->has_threshold && rule->counts_bytes && rule->warm_up.cold_factor > 1 &&
	    rule->threshold_micro >= FRAME_BYTES_USUAL * WEIR_MICRO &&
	    rule->threshold_micro / rule->warm_up.cold_factor < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, draft->value[RULE_THRESHOLD],
			  "a frame larger than that is not admitted before smaller ones have warmed it up",
			  "cold, this threshold is smaller than a frame can be: threshold / warmUpColdFactor is below "
			  "1514");
}

/* A connection is told by all packets of its 5-tuple: a match must take all of them or none. */
static void warn_of_partial_match(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = weir_draft_at(draft, RULE_METRIC);
	const struct weir_ruleset_resource *resource;
	const struct weir_match *match;

	if (draft->rule->metric != WEIR_METRIC_CONCURRENCY || !draft->has_resource)
		return;
	resource = &reader->ruleset->resources[draft->rule->resource];
	match = &resource->match;
	if (match->fragments == 1 << WEIR_FRAGMENT_LATER)
		weir_warn(reader, value, "use another resource, or leave 'fragment' out of its match",
			  "the rule has no effect: '%.*s' takes only later fragments, which belong to no connection",
			  WEIR_SHOWN(resource->name));
	else if (match->tcp_flags_count || match->length_count || match->fragments & 1 << WEIR_FRAGMENT_FIRST)
		weir_warn(reader, value,
			  "what it does not see neither keeps a connection alive nor ends it: match by addresses and "
			  "ports",
			  "'%.*s' takes only some packets of a connection: its match has '%s'",
			  WEIR_SHOWN(resource->name),
			  match->tcp_flags_count ? "tcpFlags"
			  : match->length_count	 ? "length"
						 : "fragment");
}

void weir_check_rule(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;

	if (rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE)
		check_threshold(reader, draft);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		check_warm_up(reader, draft);
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		check_memory_adaptive(reader, draft);
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		check_association(reader, draft);
	if (draft->value[RULE_OVERRIDES])
		check_overrides(reader, draft);
	/* What a mistake left out must not be blamed for what remains. */
	if (reader->mistakes != draft->mistakes_before)
		return;
	if (!draft->is_sentinel)
		warn_of_unused_fields(reader, draft);
	warn_of_small_thresholds(reader, draft);
	warn_of_partial_match(reader, draft);
}
