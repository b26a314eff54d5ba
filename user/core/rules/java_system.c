// SPDX-License-Identifier: GPL-2.0-only
/* Sentinel Java's system rules: one rule has a number for each metric; a number below 0 turns the metric off. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/sentinel.h"

#define OWN RULE_FIELD_COUNT, NULL
#define NOT(instead) RULE_FIELD_COUNT, instead

enum {
	SYSTEM_REGEX,
	SYSTEM_LIMIT_APP,
	SYSTEM_LOAD,
	SYSTEM_AVG_RT,
	SYSTEM_THREADS,
	SYSTEM_QPS,
	SYSTEM_CPU_USAGE,
	SYSTEM_METRICS_END,
};
#define SYSTEM_METRICS SYSTEM_LOAD

static const struct weir_sentinel_field system_fields[] = {
	[SYSTEM_REGEX] = {"regex", OWN},
	[SYSTEM_LIMIT_APP] = {"limitApp", OWN},
	[SYSTEM_LOAD] = {"highestSystemLoad", OWN},
	[SYSTEM_AVG_RT] = {"avgRt", OWN},
	[SYSTEM_THREADS] = {"maxThread", OWN},
	[SYSTEM_QPS] = {"qps", OWN},
	[SYSTEM_CPU_USAGE] = {"highestCpuUsage", OWN},
	{"id", OWN},
	{"resource", OWN}, /* every rule of Sentinel Java has one; system rules do not use it */
	{"metricType", NOT("write 'highestSystemLoad', 'avgRt', 'maxThread', 'qps' or 'highestCpuUsage'")},
	{"triggerCount", NOT("write 'highestSystemLoad', 'avgRt', 'maxThread', 'qps' or 'highestCpuUsage'")},
};

static const enum weir_system_metric metrics[SYSTEM_METRICS_END] = {
	[SYSTEM_LOAD] = WEIR_SYSTEM_LOAD,	    [SYSTEM_AVG_RT] = WEIR_SYSTEM_AVG_RT,
	[SYSTEM_THREADS] = WEIR_SYSTEM_CONCURRENCY, [SYSTEM_QPS] = WEIR_SYSTEM_INBOUND_QPS,
	[SYSTEM_CPU_USAGE] = WEIR_SYSTEM_CPU_USAGE,
};

/* The trigger at which weir begins to drop, in millionths. Load and CPU usage must be exceeded in both. Sentinel Java
 * refuses above a time and above a number of threads, while weir drops at the trigger itself. Sentinel Java also
 * refuses the request that would exceed qps, which corresponds to the largest whole number up to qps.
 */
static uint64_t trigger_micro(size_t field, uint64_t micro)
{
	if (field == SYSTEM_AVG_RT)
		return micro + 1;
	if (field == SYSTEM_THREADS)
		return (micro / WEIR_MICRO + 1) * WEIR_MICRO;
	if (field == SYSTEM_QPS)
		return micro / WEIR_MICRO * WEIR_MICRO;
	return micro;
}

/* Read a non-negative decimal in JSON format. Returns false if the metric is off, or after a complaint. */
static bool read_limit(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t *ret_micro)
{
	struct weir_refusal refusal;
	const char *word;
	bool is_off;

	if (!node || !weir_check_unquoted(reader, node) || !weir_read_word(reader, node, field, &word))
		return false;
	is_off = word[0] == '-';
	if (!weir_parse_json_threshold(word + is_off, ret_micro, &refusal))
		return !is_off;
	weir_complain(reader, node, refusal.hint[0] ? refusal.hint : NULL, "%s: %s", field, refusal.message);
	return false;
}

static void add(struct weir_reader *reader, const struct weir_sentinel_rule *rule, size_t field, uint64_t micro)
{
	const struct weir_node *at = rule->values[field];
	struct weir_node trigger = {.kind = WEIR_NODE_WORD, .document = at->document, .place = at->place};
	struct weir_node strategy = trigger;
	struct weir_system_draft draft = {.node = rule->node, .trigger = &trigger, .is_metric = metrics[field]};
	char text[32];

	micro = trigger_micro(field, micro);
	snprintf(text, sizeof(text), "%llu.%06llu", (unsigned long long)(micro / WEIR_MICRO),
		 (unsigned long long)(micro % WEIR_MICRO));
	trigger.text = text;
	strategy.text = "BBR";
	/* In Sentinel Java, load always uses BBR; CPU usage does not. */
	if (field == SYSTEM_LOAD)
		draft.strategy = &strategy;
	weir_read_system_rule(reader, &draft);
}

static void read_system(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	const size_t mistakes = reader->mistakes;
	bool has_any = false;
	uint64_t micro;

	weir_sentinel_check_regex(reader, rule->values[SYSTEM_REGEX]);
	weir_sentinel_check_caller(reader, rule->values[SYSTEM_LIMIT_APP]);
	for (size_t field = SYSTEM_METRICS; field < SYSTEM_METRICS_END; field++) {
		if (!read_limit(reader, rule->values[field], system_fields[field].name, &micro))
			continue;
		add(reader, rule, field, micro);
		has_any = true;
	}
	if (!has_any && reader->mistakes == mistakes)
		weir_warn(reader, rule->node, "write one of its numbers, 0 or more", "the system rule limits nothing");
}

static const char *const system_needs[] = {"highestSystemLoad", "avgRt", "maxThread", "qps", "highestCpuUsage", NULL};

const struct weir_sentinel_kind weir_sentinel_java_system = {
	.name = "systemRules",
	.title = "system rules",
	.is_java = true,
	.fields = system_fields,
	.field_count = ARRAY_SIZE(system_fields),
	.needs = system_needs,
	.read = read_system,
};
