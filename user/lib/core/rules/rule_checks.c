// SPDX-License-Identifier: GPL-2.0-only
/* Which rules are impossible (docs/semantics.md, 3 to 7), and which are legal but surely not intended. */
#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/rule.h"

/* The only kind that has the field; NULL: others may have it. */
static const struct weir_kind *owner_of(enum weir_rule_field field)
{
	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++)
		if (weir_kinds[id]->own_fields >> field & 1)
			return weir_kinds[id];
	return NULL;
}

bool weir_draft_uses(const struct weir_draft *draft, enum weir_rule_field field, const char **ret_condition)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	const struct weir_kind *kind = weir_kind_of(rule), *owner = owner_of(field);
	const char *condition = owner ? owner->own_condition : "";
	bool is_used = !owner || owner == kind;

	switch (field) {
	case RULE_THRESHOLD:
		is_used = rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE;
		condition = "Direct and WarmUp";
		break;
	case RULE_REF_RESOURCE:
		is_used = rule->relation == WEIR_RELATION_ASSOCIATED;
		condition = "relationStrategy AssociatedResource";
		break;
	case RULE_CLUSTER_CONFIG:
		is_used = rule->cluster;
		condition = "clusterMode true";
		break;
	case RULE_FAIR_BY:
	case RULE_CLUSTER_MODE: /* `false` is valid everywhere; what is impossible is refused elsewhere */
		return true;
	case RULE_SAMPLES:
		condition = rule->window == WEIR_WINDOW_TOKENS && rule->behavior == WEIR_BEHAVIOR_REJECT
				    ? "windows with buckets: tokens arrive one by one"
				    : "controlBehavior Reject: Throttling has no window";
		break;
	case RULE_WINDOW:
		condition = "controlBehavior Reject: Throttling has no window";
		break;
	case RULE_BLOCK_DURATION:
	case RULE_BLOCK_DURATION_MAX:
		condition = "controlBehavior Reject";
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
		*ret_condition = kind->others_condition ?: condition;
	return is_used && kind->fields >> field & 1;
}

/* ---- mistakes ---- */

static void check_threshold(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_kind *kind = weir_kind_of(draft->rule);

	if (kind->check_threshold && kind->check_threshold(reader, draft))
		return;
	if (draft->meant & (1u << RULE_THRESHOLD | 1u << RULE_RATE))
		return;
	if (!draft->value[RULE_THRESHOLD] && !draft->is_sentinel)
		weir_complain(reader, draft->node, kind->threshold_hint, "the rule has no threshold");
	else if (!draft->value[RULE_THRESHOLD] && reader->mistakes == draft->mistakes_before)
		weir_warn(reader, draft->node, "as in Sentinel, a missing threshold is 0",
			  "the rule has no threshold: it admits nothing");
}

static void check_warm_up(struct weir_reader *reader, const struct weir_draft *draft)
{
	uint64_t factor = draft->number[RULE_COLD_FACTOR] ?: WEIR_COLD_FACTOR_DEFAULT;
	uint64_t micro = draft->rule->threshold_micro;

	if (!draft->number[RULE_WARM_UP_PERIOD] && !draft->is_misread[RULE_WARM_UP_PERIOD])
		weir_complain(reader, weir_draft_at(draft, RULE_WARM_UP_PERIOD),
			      "write how many seconds warming up takes",
			      "WarmUp needs a warmUpPeriodSec of at least 1");
	if (factor == 1)
		weir_complain(reader, weir_draft_at(draft, RULE_COLD_FACTOR), "write 2 or more, or leave it out for 3",
			      "a warmUpColdFactor of 1 leaves nothing to warm up");
	else if (draft->has_threshold && micro && micro / WEIR_MICRO < factor && !draft->is_misread[RULE_COLD_FACTOR])
		weir_complain(reader, draft->value[RULE_THRESHOLD], "raise the threshold to at least the cold factor",
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
		weir_complain(reader, draft->value[RULE_LOW_MARK], "raise one or lower the other",
			      "memLowWaterMarkBytes must be below memHighWaterMarkBytes");
}

static void check_penalty(struct weir_reader *reader, const struct weir_draft *draft)
{
	const uint64_t *number = draft->number;

	if (!number[RULE_BLOCK_DURATION_MAX] || draft->is_misread[RULE_BLOCK_DURATION])
		return;
	if (!draft->value[RULE_BLOCK_DURATION])
		weir_complain(reader, draft->value[RULE_BLOCK_DURATION_MAX], "write how long the first penalty lasts",
			      "blockDurationMaxInMs needs a blockDurationInMs");
	else if (number[RULE_BLOCK_DURATION_MAX] < number[RULE_BLOCK_DURATION])
		weir_complain(reader, draft->value[RULE_BLOCK_DURATION_MAX],
			      "it is the longest a repeated penalty can become",
			      "blockDurationMaxInMs must be at least blockDurationInMs");
}

static void check_overrides(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_OVERRIDES];
	const struct weir_ruleset_resource *resources = reader->ruleset->resources;
	struct weir_ruleset_rule *rule = draft->rule;

	if (rule->strategy != WEIR_STRATEGY_DIRECT)
		weir_complain(reader, value, "use Direct, or a resource of their own for those flows",
			      "overrides need a threshold that does not move, and that of %s does",
			      weir_strategy_names[rule->strategy]);
	if (rule->ref_resource != WEIR_NO_RESOURCE && !resources[rule->ref_resource].flow.fields)
		weir_complain(reader, value, "give refResource the flow key of the rule",
			      "overrides are for single flows, and refResource '%.*s' has no flow key",
			      WEIR_SHOWN(resources[rule->ref_resource].name));
	weir_read_overrides(reader, value, draft->has_resource ? &resources[rule->resource] : NULL, rule);
}

/* ---- fields without effect, or with an unintended one ---- */

static void warn_of_unused_fields(struct weir_reader *reader, const struct weir_draft *draft)
{
	const char *condition;

	for (enum weir_rule_field field = 0; field < RULE_FIELD_COUNT; field++)
		if (draft->value[field] && !weir_draft_uses(draft, field, &condition))
			weir_warn(reader, draft->value[field],
				  field == RULE_BURST && draft->rule->behavior == WEIR_BEHAVIOR_REJECT
					  ? "add 'window: tokens', or leave it out"
					  : "leave it out",
				  "'%s' has no effect: it is for %s",
				  weir_written_name(draft->value[field], weir_rule_fields[field]), condition);
}

/* Chosen, not derived: a file with thousands of rules must not be compared pair by pair. */
#define RULES_LOOKED_BACK_MAX 256

static bool counts_the_same(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *left,
			    const struct weir_ruleset_rule *right)
{
	return left->resource == right->resource && left->interval_ns == right->interval_ns &&
	       left->window == right->window && left->samples == right->samples &&
	       left->counts_bytes == right->counts_bytes && left->burst_micro == right->burst_micro &&
	       left->burst_beyond_micro == right->burst_beyond_micro &&
	       !memcmp(weir_flow_of(ruleset, left), weir_flow_of(ruleset, right), sizeof(struct weir_flow));
}

/* Does the rule have a threshold and a window, and nothing that moves the threshold or lets packets past the window? */
static bool is_plain(const struct weir_ruleset_rule *rule)
{
	return !rule->system && rule->metric == WEIR_METRIC_RATE && rule->strategy == WEIR_STRATEGY_DIRECT &&
	       !rule->fair_by.fields && rule->behavior == WEIR_BEHAVIOR_REJECT &&
	       rule->ref_resource == WEIR_NO_RESOURCE && !rule->cluster && !rule->override_count && !rule->observes &&
	       !rule->occupies;
}

/* Warn about a rule that can never block a packet: an earlier rule counts the same, and admits no more. */
static void warn_of_idle_rule(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset *ruleset = reader->ruleset;
	const size_t own = ruleset->rule_count - 1;
	const struct weir_ruleset_rule *rule = &ruleset->rules[own], *earlier;

	/* A mistake may concern a field that makes the other rule stricter or different. */
	if (reader->mistakes || !draft->has_resource || !is_plain(rule))
		return;
	for (size_t back = 1; back <= own && back <= RULES_LOOKED_BACK_MAX; back++) {
		earlier = &ruleset->rules[own - back];
		/* If both have the same name, the name is the mistake to report. */
		if (!strcmp(earlier->name, rule->name) || !is_plain(earlier) ||
		    !counts_the_same(ruleset, earlier, rule) || rule->threshold_micro < earlier->threshold_micro)
			continue;
		weir_warn(reader, weir_draft_at(draft, RULE_NAME),
			  "leave it out, or give it another key, a longer interval or a lower threshold",
			  "rule '%.*s' never blocks: '%.*s' before it has the same key and interval, and blocks first",
			  WEIR_SHOWN(rule->name), WEIR_SHOWN(earlier->name));
		return;
	}
}

/* A user who asks for this where it is impossible must not believe that the limit holds. */
static void check_when_full(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;

	if (!(weir_kind_of(rule)->fields >> RULE_WHEN_FULL & 1))
		weir_complain(reader, draft->value[RULE_WHEN_FULL],
			      "leave it out: docs/windows.md says what happens to such flows",
			      "'whenFull' is for windows, token buckets and Throttling of the rule's own resource");
	else if (draft->has_resource && !weir_flow_of(reader->ruleset, rule)->fields)
		weir_warn(reader, draft->value[RULE_WHEN_FULL], "leave it out",
			  "'whenFull' has no effect: %s '%.*s' has no flow key",
			  rule->has_own_key ? "rule" : "resource",
			  WEIR_SHOWN(rule->has_own_key ? rule->name : weir_resource_of(reader->ruleset, rule)->name));
}

/* Does one key have an end by its address or a set, and the other by another set? No key can have both. */
static bool ends_clash(const struct weir_flow *key, const struct weir_flow *fair_by)
{
	for (int place = WEIR_KEY_PLACE_SOURCE; place <= WEIR_KEY_PLACE_DESTINATION; place++) {
		const char *set = weir_flow_set(key, place), *other = weir_flow_set(fair_by, place);

		if (key->fields & fair_by->fields & 1u << place && (set || other) &&
		    (!set || !other || strcmp(set, other)))
			return true;
	}
	return false;
}

/* A user who asks for fair shares where they are impossible must not believe in them. */
static void check_fair_by(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *value = draft->value[RULE_FAIR_BY];
	const struct weir_ruleset_rule *rule = draft->rule;
	const size_t name_max = WEIR_NAME_BYTES - 1 - strlen(WEIR_FAIR_PREFIX);
	struct weir_flow children;

	if (!draft->has_resource || reader->mistakes != draft->mistakes_before)
		return;
	children = weir_child_flow_of(reader->ruleset, rule);
	if (!weir_kind_of(rule)->keeps_window || rule->strategy == WEIR_STRATEGY_WARM_UP || rule->system)
		weir_complain(
			reader, value, "use Direct or MemoryAdaptive, Reject, and 'window: leap', strict or smooth",
			"'fairBy' needs a window of the rule's own resource, and a threshold that does not warm up");
	else if (!rule->fair_by.fields)
		weir_complain(reader, value, "name at least one field, as 'fairBy: source'",
			      "'fairBy' does not say who shares the threshold");
	else if (ends_clash(weir_flow_of(reader->ruleset, rule), &rule->fair_by))
		weir_complain(reader, value, "write 'per: all', or another field",
			      "the rule's key has that end of a packet already, in another way");
	else if (!memcmp(&children, weir_flow_of(reader->ruleset, rule), sizeof(children)))
		weir_complain(
			reader, value,
			rule->has_own_key ? "leave it out of 'per': 'per: all' shares one threshold"
					  : "write 'per: all' to share one threshold, or leave it out of 'flow'",
			"each flow of the rule has a threshold of its own, and 'fairBy' does not divide it further");
	else if (draft->value[RULE_OVERRIDES])
		weir_complain(reader, draft->value[RULE_OVERRIDES], "leave one of them out",
			      "a rule with 'fairBy' cannot have overrides");
	else if (draft->value[RULE_BLOCK_DURATION])
		weir_complain(reader, draft->value[RULE_BLOCK_DURATION], "leave one of them out",
			      "a rule with 'fairBy' cannot have penalties: they would block all who share it");
	else if (rule->name && strlen(rule->name) > name_max)
		weir_complain(reader, weir_draft_at(draft, RULE_NAME), NULL,
			      "the name of a rule with 'fairBy' has at most %zu bytes", name_max);
}

void weir_check_rule(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	const struct weir_kind *kind = weir_kind_of(rule);

	if (rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE)
		check_threshold(reader, draft);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		check_warm_up(reader, draft);
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		check_memory_adaptive(reader, draft);
	if (kind->check)
		kind->check(reader, draft);
	if (weir_draft_uses(draft, RULE_BLOCK_DURATION, NULL))
		check_penalty(reader, draft);
	if (draft->value[RULE_OVERRIDES])
		check_overrides(reader, draft);
	if (rule->cluster)
		weir_check_cluster(reader, draft);
	if (draft->value[RULE_WHEN_FULL])
		check_when_full(reader, draft);
	if (draft->value[RULE_FAIR_BY])
		check_fair_by(reader, draft);
	if (draft->has_resource)
		weir_check_on_block(reader, draft->value[RULE_ON_BLOCK], rule, weir_resource_of(reader->ruleset, rule));
	/* If a mistake left a value out, the remaining values must not be blamed. */
	if (reader->mistakes != draft->mistakes_before)
		return;
	if (!draft->is_sentinel) {
		warn_of_unused_fields(reader, draft);
		warn_of_idle_rule(reader, draft);
	}
	weir_warn_of_small_thresholds(reader, draft);
	if (kind->warn)
		kind->warn(reader, draft);
}
