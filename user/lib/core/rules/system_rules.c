// SPDX-License-Identifier: GPL-2.0-only
/* System rules: limits of the whole host, which have no resource and come before all other rules. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "rules/parse.h"
#include "rules/rule.h"

/* The value that the program compares, in millionths, must fit a threshold word. Chosen, not derived: beyond any host.
 */
#define TRIGGER_MAX_MICRO (10000000000ull * WEIR_MICRO)
_Static_assert(TRIGGER_MAX_MICRO <= WEIR_THRESHOLD_MASK, "");

/* Like Sentinel's inbound node: one second in two buckets. */
#define INBOUND_INTERVAL_NS WEIR_NSEC_PER_SEC
#define INBOUND_SAMPLES 2

/* ---- words ---- */

/* Sentinel-Go numbers its metrics from 0. */
static void read_metric(struct weir_reader *reader, const struct weir_draft *draft)
{
	static const char *const hint = "write Load (0), AvgRT (1), Concurrency (2), InboundQPS (3) or CpuUsage (4)";
	const struct weir_node *value = draft->value[RULE_METRIC];
	const char *word;

	if (!value) {
		weir_complain(reader, draft->node, hint, "the system rule has no metricType");
		return;
	}
	if (!weir_check_unquoted(reader, value) || !weir_read_word(reader, value, "metricType", &word))
		return;
	for (enum weir_system_metric metric = WEIR_SYSTEM_LOAD; metric < WEIR_SYSTEM_COUNT; metric++) {
		const char number[] = {'0' + metric - WEIR_SYSTEM_LOAD, '\0'};

		if (strcasecmp(word, weir_system_metric_names[metric]) && strcmp(word, number))
			continue;
		draft->rule->system = metric;
		return;
	}
	weir_complain(reader, value, hint, "'%.*s' is not a value of 'metricType'", WEIR_SHOWN(word));
}

static bool read_strategy(struct weir_reader *reader, const struct weir_node *node)
{
	const char *word;

	if (!node || !weir_check_unquoted(reader, node) || !weir_read_word(reader, node, "strategy", &word))
		return false;
	if (!strcasecmp(word, "BBR") || !strcmp(word, "1"))
		return true;
	/* Sentinel-Go's only strategy is BBR, and 0 is the value of a rule that does not set one. */
	if (strcasecmp(word, "NoAdaptive") && strcmp(word, "-1") && strcmp(word, "0"))
		weir_complain(reader, node, "write NoAdaptive (-1) or BBR (1)", "'%.*s' is not a value of 'strategy'",
			      WEIR_SHOWN(word));
	return false;
}

static void read_trigger(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *node = draft->value[RULE_THRESHOLD];
	struct weir_ruleset_rule *rule = draft->rule;
	struct weir_refusal refusal;
	const char *word;

	if (!node) {
		weir_complain(reader, draft->node, "write where it begins to drop: 'triggerCount: 100'",
			      "the system rule has no triggerCount");
		return;
	}
	if (!weir_check_unquoted(reader, node) || !weir_read_word(reader, node, "triggerCount", &word))
		return;
	if (word[0] == '-')
		weir_complain(reader, node, "write 0 or more", "triggerCount: '%.*s' is below 0", WEIR_SHOWN(word));
	else if (weir_parse_json_threshold(word, &rule->threshold_micro, &refusal))
		weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "triggerCount: %s", refusal.message);
	else if (rule->threshold_micro > TRIGGER_MAX_MICRO)
		weir_complain(reader, node, "write at most 10000000000", "triggerCount: '%.*s' is too large",
			      WEIR_SHOWN(word));
	else if (rule->system == WEIR_SYSTEM_CPU_USAGE && rule->threshold_micro > WEIR_MICRO)
		weir_complain(reader, node, "write the busy share of all CPUs, 0 to 1: 0.8 is 80 %",
			      "CpuUsage is never above 1: '%.*s' is never reached", WEIR_SHOWN(word));
}

/* ---- the rule ---- */

/* Choose what the rule becomes: a window, a limit of connections, or a signal. */
static void choose(struct weir_ruleset_rule *rule)
{
	rule->metric = WEIR_METRIC_SIGNAL;
	rule->interval_ns = INBOUND_INTERVAL_NS;
	rule->samples = INBOUND_SAMPLES;
	rule->window = WEIR_WINDOW_LEAP;
	if (rule->system == WEIR_SYSTEM_INBOUND_QPS)
		rule->metric = WEIR_METRIC_RATE;
	else if (rule->system == WEIR_SYSTEM_CONCURRENCY)
		rule->metric = WEIR_METRIC_CONCURRENCY;
}

static void warn(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_node *trigger = draft->value[RULE_THRESHOLD];
	struct weir_ruleset_rule *rule = draft->rule;

	if (rule->is_bbr && !weir_goes_by_samples(rule)) {
		weir_warn(reader, draft->value[RULE_STRATEGY], "leave it out",
			  "'strategy' has no effect: only Load and CpuUsage have BBR");
		rule->is_bbr = false;
	}
	if (trigger && !rule->threshold_micro &&
	    (rule->system == WEIR_SYSTEM_INBOUND_QPS || rule->system == WEIR_SYSTEM_CONCURRENCY))
		weir_warn(reader, trigger, NULL, "a triggerCount of 0 admits no %s",
			  rule->system == WEIR_SYSTEM_INBOUND_QPS ? "inbound work" : "new connection");
}

void weir_read_system_rule(struct weir_reader *reader, struct weir_draft *draft)
{
	static const enum weir_rule_field choices[] = {RULE_MODE, RULE_ON_BLOCK};
	const size_t mistakes = reader->mistakes;
	uint64_t choice;

	if (!weir_begin_rule(reader, draft))
		return;
	draft->rule->resource = WEIR_NO_RESOURCE;
	draft->rule->system = WEIR_SYSTEM_LOAD; /* it counts as a system rule, even if it has mistakes */
	read_metric(reader, draft);
	draft->rule->is_bbr = read_strategy(reader, draft->value[RULE_STRATEGY]);
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
		if (draft->value[choices[i]] && weir_read_value(reader, &weir_rule_rows[choices[i]],
								draft->value[choices[i]], false, false, &choice))
			weir_set_member(&weir_rule_rows[choices[i]], draft->rule, choice);
	choose(draft->rule);
	weir_read_identity(reader, draft);
	read_trigger(reader, draft);
	if (reader->mistakes == mistakes)
		warn(reader, draft);
}

/* ---- order ---- */

/* Is there a resource for incoming packets? System rules apply only to those. */
static bool has_resource(const struct weir_ruleset *ruleset)
{
	for (size_t i = 0; i < ruleset->resource_count; i++)
		if (weir_match_directions(&ruleset->resources[i].match) & WEIR_MATCHES_IN)
			return true;
	return false;
}

/* Stable: system rules and others both keep their order. */
void weir_put_system_rules_first(struct weir_reader *reader)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	size_t first = 0;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule rule = ruleset->rules[i];
		const struct weir_node *node = reader->rule_nodes[i];

		if (!rule.system)
			continue;
		memmove(&ruleset->rules[first + 1], &ruleset->rules[first], (i - first) * sizeof(rule));
		memmove(&reader->rule_nodes[first + 1], &reader->rule_nodes[first], (i - first) * sizeof(node));
		ruleset->rules[first] = rule;
		reader->rule_nodes[first] = node;
		first++;
	}
	if (first && !has_resource(ruleset) && !reader->is_incomplete && !reader->complaints)
		weir_warn(reader, reader->rule_nodes[0], "define a resource: one without a match takes every IP packet",
			  ruleset->resource_count
				  ? "system rules have no effect: they apply to incoming packets, and all resources "
				    "are 'out'"
				  : "system rules have no effect: they apply to packets of resources, and there are "
				    "none");
	if (first > WEIR_SYSTEM_RULES_MAX)
		weir_complain(reader, reader->rule_nodes[WEIR_SYSTEM_RULES_MAX],
			      "remove some: every packet is evaluated against all of them",
			      "%zu system rules are too many: write at most %d", first, WEIR_SYSTEM_RULES_MAX);
}
