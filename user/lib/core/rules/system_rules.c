// SPDX-License-Identifier: GPL-2.0-only
/* System rules: limits of the whole host, which have no resource and come before all other rules. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "rules/parse.h"

/* The value that the program compares, in millionths, must fit a threshold word. Chosen, not derived: beyond any host.
 */
#define TRIGGER_MAX_MICRO (10000000000ull * WEIR_MICRO)
_Static_assert(TRIGGER_MAX_MICRO <= WEIR_THRESHOLD_MASK, "");

/* Like Sentinel's inbound node: one second in two buckets. */
#define INBOUND_INTERVAL_NS WEIR_NSEC_PER_SEC
#define INBOUND_SAMPLES 2

/* ---- words ---- */

/* Sentinel-Go numbers its metrics from 0. */
static bool read_metric(struct weir_reader *reader, const struct weir_system_draft *draft,
			enum weir_system_metric *ret_metric)
{
	static const char *const hint = "write Load (0), AvgRT (1), Concurrency (2), InboundQPS (3) or CpuUsage (4)";
	const char *word;

	if (draft->is_metric) {
		*ret_metric = draft->is_metric;
		return true;
	}
	if (!draft->metric) {
		weir_complain(reader, draft->node, hint, "the system rule has no metricType");
		return false;
	}
	if (!weir_check_unquoted(reader, draft->metric) || !weir_read_word(reader, draft->metric, "metricType", &word))
		return false;
	for (enum weir_system_metric metric = WEIR_SYSTEM_LOAD; metric < WEIR_SYSTEM_COUNT; metric++) {
		const char number[] = {'0' + metric - WEIR_SYSTEM_LOAD, '\0'};

		if (strcasecmp(word, weir_system_metric_names[metric]) && strcmp(word, number))
			continue;
		*ret_metric = metric;
		return true;
	}
	weir_complain(reader, draft->metric, hint, "'%.*s' is not a value of 'metricType'", WEIR_SHOWN(word));
	return false;
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

static bool read_mode(struct weir_reader *reader, const struct weir_node *node)
{
	static const char *const modes[] = {"enforce", "observe"};
	unsigned int choice = 0;

	if (node)
		weir_read_choice(reader, node, "mode", modes, ARRAY_SIZE(modes), false, &choice);
	return choice;
}

static void read_trigger(struct weir_reader *reader, const struct weir_system_draft *draft,
			 struct weir_ruleset_rule *rule)
{
	const struct weir_node *node = draft->trigger;
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

static void read_name(struct weir_reader *reader, const struct weir_node *node, struct weir_ruleset_rule *rule)
{
	size_t number = 0;
	struct weir_refusal refusal;
	const char *word = "";

	for (size_t i = 0; i < reader->ruleset->rule_count; i++)
		number += reader->ruleset->rules[i].system != WEIR_SYSTEM_NONE;
	if (!node) {
		if (asprintf(&rule->name, "system#%zu", number) < 0)
			rule->name = NULL;
	} else {
		if (weir_read_word(reader, node, "name", &word) && weir_check_name(word, &refusal))
			weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s", refusal.message);
		rule->name = strdup(word);
	}
	if (!rule->name)
		reader->is_out_of_memory = true;
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

static void warn(struct weir_reader *reader, const struct weir_system_draft *draft, struct weir_ruleset_rule *rule)
{
	const struct weir_node *trigger = draft->trigger;

	if (rule->is_bbr && !weir_goes_by_samples(rule)) {
		weir_warn(reader, draft->strategy, "leave it out",
			  "'strategy' has no effect: only Load and CpuUsage have BBR");
		rule->is_bbr = false;
	}
	if (trigger && !rule->threshold_micro &&
	    (rule->system == WEIR_SYSTEM_INBOUND_QPS || rule->system == WEIR_SYSTEM_CONCURRENCY))
		weir_warn(reader, trigger, NULL, "a triggerCount of 0 admits no %s",
			  rule->system == WEIR_SYSTEM_INBOUND_QPS ? "inbound work" : "new connection");
}

void weir_read_system_rule(struct weir_reader *reader, const struct weir_system_draft *draft)
{
	struct weir_ruleset *ruleset = reader->ruleset;
	const size_t mistakes = reader->mistakes;
	const struct weir_node **pointed_at;
	struct weir_ruleset_rule *rule;

	rule = weir_array_add((void **)&ruleset->rules, ruleset->rule_count, sizeof(*rule));
	pointed_at = weir_array_add((void **)&reader->rule_nodes, ruleset->rule_count, sizeof(*pointed_at));
	if (!rule || !pointed_at) {
		reader->is_out_of_memory = true;
		return;
	}
	ruleset->rule_count++;
	*pointed_at = draft->name ?: draft->node;
	rule->place = (*pointed_at)->place;
	rule->resource = rule->ref_resource = WEIR_NO_RESOURCE;
	rule->system = WEIR_SYSTEM_LOAD; /* it counts as a system rule, even if it has mistakes */
	read_metric(reader, draft, &rule->system);
	rule->is_bbr = read_strategy(reader, draft->strategy);
	rule->observes = read_mode(reader, draft->mode);
	choose(rule);
	read_name(reader, draft->name, rule);
	read_trigger(reader, draft, rule);
	if (reader->mistakes == mistakes)
		warn(reader, draft, rule);
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
