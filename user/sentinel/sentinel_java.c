// SPDX-License-Identifier: GPL-2.0-only
/* Lists of Sentinel Java's rules, from its data sources or its dashboard: their fields, and their translation. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "sentinel/sentinel.h"

#define OWN RULE_FIELD_COUNT, NULL
#define AS(field) RULE_##field, NULL
#define NOT(instead) RULE_FIELD_COUNT, instead
#define FIELDS(kind) .fields = kind##_fields, .field_count = ARRAY_SIZE(kind##_fields)

/* ---- flow rules ---- */

enum {
	FLOW_REGEX,
	FLOW_LIMIT_APP,
	FLOW_GRADE,
	FLOW_STRATEGY,
	FLOW_BEHAVIOR,
};

static const struct weir_sentinel_field flow_fields[] = {
	[FLOW_REGEX] = {"regex", OWN},
	[FLOW_LIMIT_APP] = {"limitApp", OWN},
	[FLOW_GRADE] = {"grade", OWN},
	[FLOW_STRATEGY] = {"strategy", OWN},
	[FLOW_BEHAVIOR] = {"controlBehavior", OWN},
	{"clusterMode", AS(CLUSTER_MODE)},
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"count", AS(THRESHOLD)},
	{"refResource", AS(REF_RESOURCE)},
	{"warmUpPeriodSec", AS(WARM_UP_PERIOD)},
	{"maxQueueingTimeMs", AS(MAX_QUEUEING)},
	{"clusterConfig", AS(CLUSTER_CONFIG)},
	{"threshold", NOT("write 'count'")},
	{"metricType", NOT("write 'grade': 0 for threads, 1 for requests a second")},
	{"tokenCalculateStrategy", NOT("write 'controlBehavior': 1 to warm up, 3 to warm up and queue")},
	{"relationStrategy", NOT("write 'strategy': 1 for a refResource")},
	{"statIntervalInMs", NOT("leave it out: Sentinel Java counts by the second")},
	{"warmUpColdFactor", NOT("leave it out: in Sentinel Java it is 3")},
};

enum { GRADE_THREADS, GRADE_QPS };
enum { STRATEGY_DIRECT, STRATEGY_RELATE, STRATEGY_CHAIN };
enum { BEHAVIOR_REJECT, BEHAVIOR_WARM_UP, BEHAVIOR_RATE_LIMITER, BEHAVIOR_BOTH };
#define WARM_UP_PERIOD_DEFAULT 10
#define MAX_QUEUEING_DEFAULT 500

static void say_strategy(struct weir_reader *reader, struct weir_sentinel_rule *rule, bool counts_threads)
{
	const struct weir_node *at = rule->values[FLOW_STRATEGY];
	uint64_t strategy;

	weir_sentinel_read_number(reader, at, "strategy", STRATEGY_DIRECT, STRATEGY_CHAIN, STRATEGY_DIRECT, &strategy);
	if (strategy == STRATEGY_CHAIN)
		weir_complain(reader, at, "write 0, with a resource that matches only those packets",
			      "strategy 2: packets have no call chain");
	if (strategy == STRATEGY_RELATE && !counts_threads)
		weir_sentinel_say(rule, RULE_RELATION, at, "AssociatedResource");
	if (strategy == STRATEGY_RELATE && counts_threads)
		weir_complain(reader, at, "write 'strategy': 0, or 'grade': 1 for requests a second",
			      "strategy 1: connections are counted for their own resource only");
}

/* A count below 1: Sentinel Java's rate limiter admits one in round(1000 / count) ms, though no whole one a second. */
static void say_less_than_one(struct weir_sentinel_rule *rule)
{
	const struct weir_node *count = rule->draft.value[RULE_THRESHOLD];
	struct weir_refusal ignored;
	uint64_t micro, cost_ms;

	if (!count || count->kind != WEIR_NODE_WORD || weir_parse_json_threshold(count->text, &micro, &ignored) ||
	    !micro || micro >= WEIR_MICRO)
		return;
	cost_ms = (1000 * WEIR_MICRO + micro / 2) / micro;
	if (cost_ms > WEIR_INTERVAL_MS_MAX)
		return;
	weir_sentinel_say(rule, RULE_THRESHOLD, count, "1");
	weir_sentinel_say_number(rule, RULE_INTERVAL, count, cost_ms);
}

static void say_rate_limiter(struct weir_reader *reader, struct weir_sentinel_rule *rule, const struct weir_node *at)
{
	const struct weir_node *queueing = rule->draft.value[RULE_MAX_QUEUEING];

	weir_sentinel_say(rule, RULE_BEHAVIOR, at, "Throttling");
	if (!queueing)
		weir_sentinel_say_number(rule, RULE_MAX_QUEUEING, at, MAX_QUEUEING_DEFAULT);
	else if (queueing->kind == WEIR_NODE_WORD && !strcmp(queueing->text, "0"))
		weir_complain(reader, queueing, "write the longest wait in milliseconds, or leave it out for 500",
			      "a Sentinel Java rate limiter needs a maxQueueingTimeMs above 0");
}

static void say_behavior(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	const struct weir_node *at = rule->values[FLOW_BEHAVIOR];
	uint64_t behavior;

	weir_sentinel_read_number(reader, at, "controlBehavior", BEHAVIOR_REJECT, BEHAVIOR_BOTH, BEHAVIOR_REJECT,
				  &behavior);
	if (behavior == BEHAVIOR_WARM_UP || behavior == BEHAVIOR_BOTH) {
		weir_sentinel_say(rule, RULE_STRATEGY, at, "WarmUp");
		if (!rule->draft.value[RULE_WARM_UP_PERIOD])
			weir_sentinel_say_number(rule, RULE_WARM_UP_PERIOD, at, WARM_UP_PERIOD_DEFAULT);
	}
	if (behavior == BEHAVIOR_RATE_LIMITER)
		say_less_than_one(rule);
	if (behavior == BEHAVIOR_RATE_LIMITER || behavior == BEHAVIOR_BOTH)
		say_rate_limiter(reader, rule, at);
}

static void read_flow(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	const struct weir_node *grade_at = rule->values[FLOW_GRADE];
	uint64_t grade;

	weir_sentinel_check_regex(reader, rule->values[FLOW_REGEX]);
	weir_sentinel_check_caller(reader, rule->values[FLOW_LIMIT_APP]);
	weir_sentinel_read_number(reader, grade_at, "grade", GRADE_THREADS, GRADE_QPS, GRADE_QPS, &grade);
	say_strategy(reader, rule, grade == GRADE_THREADS);
	/* As in Sentinel Java, whose only behavior for threads is to refuse. */
	if (grade == GRADE_THREADS)
		weir_sentinel_say(rule, RULE_METRIC, grade_at, "Concurrency");
	else
		say_behavior(reader, rule);
	weir_read_draft(reader, &rule->draft);
}

static const char *const flow_needs[] = {"grade", "count", NULL};

const struct weir_sentinel_kind weir_sentinel_java_flow = {
	.name = "flowRules",
	.title = "flow rules",
	.is_java = true,
	FIELDS(flow),
	.needs = flow_needs,
	.read = read_flow,
};

/* ---- hot parameters ---- */

enum {
	PARAM_REGEX,
	PARAM_LIMIT_APP,
	PARAM_GRADE,
	PARAM_INDEX,
	PARAM_COUNT,
	PARAM_BEHAVIOR,
	PARAM_BURST,
	PARAM_DURATION,
	PARAM_ITEMS,
	PARAM_CLUSTER_MODE,
};

static const struct weir_sentinel_field param_flow_fields[] = {
	[PARAM_REGEX] = {"regex", OWN},
	[PARAM_LIMIT_APP] = {"limitApp", OWN},
	[PARAM_GRADE] = {"grade", OWN},
	[PARAM_INDEX] = {"paramIdx", OWN},
	[PARAM_COUNT] = {"count", AS(THRESHOLD)},
	[PARAM_BEHAVIOR] = {"controlBehavior", OWN},
	[PARAM_BURST] = {"burstCount", OWN},
	[PARAM_DURATION] = {"durationInSec", OWN},
	[PARAM_ITEMS] = {"paramFlowItemList", OWN},
	[PARAM_CLUSTER_MODE] = {"clusterMode", OWN},
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"maxQueueingTimeMs", AS(MAX_QUEUEING)},
	{"clusterConfig", OWN},
	{"threshold", NOT("write 'count'")},
	{"metricType", NOT("write 'grade': 0 for threads, 1 for requests")},
	{"paramIndex", NOT("write 'paramIdx'")},
	{"paramKey", NOT("write 'paramIdx'; the flow key of the resource is the parameter")},
	{"specificItems", NOT("write 'paramFlowItemList'")},
	{"paramsMaxCapacity", NOT("leave it out: settings.flowsPerCpu sets how many flows fit")},
	{"statIntervalInMs", NOT("write 'durationInSec', in seconds")},
};

/* An item such as {"object": "192.0.2.1", "classType": "java.lang.String", "count": 5}. Whatever the class is, an
 * address is a text.
 */
static bool read_param_item(struct weir_reader *reader, const struct weir_node *item,
			    struct weir_hotspot_item *ret_item)
{
	static const char *const names[] = {"object", "count", "classType"};
	const struct weir_node *values[ARRAY_SIZE(names)] = {};

	if (item->kind != WEIR_NODE_MAP) {
		weir_complain_no_map(reader, item, "an item of paramFlowItemList", names, 2);
		return false;
	}
	weir_sentinel_read_item(reader, item, true, names, ARRAY_SIZE(names), values);
	if (!values[0] || !values[1]) {
		weir_complain(reader, item, "write {\"object\": \"192.0.2.1\", \"count\": 5}",
			      "an item of paramFlowItemList needs an object and a count");
		return false;
	}
	*ret_item = (struct weir_hotspot_item){values[0], values[1]};
	return true;
}

/* Sentinel Java truncates a count to a whole number. */
static uint64_t cut_count(struct weir_sentinel_rule *rule)
{
	const struct weir_node *node = rule->values[PARAM_COUNT];
	struct weir_refusal refusal;
	uint64_t micro;

	if (!node || node->kind != WEIR_NODE_WORD || weir_parse_json_threshold(node->text, &micro, &refusal))
		return 0;
	weir_sentinel_say_number(rule, RULE_THRESHOLD, node, micro / WEIR_MICRO);
	return micro / WEIR_MICRO;
}

static void check_cluster(struct weir_reader *reader, const struct weir_node *node)
{
	const char *word;

	if (!node || !weir_read_word(reader, node, "clusterMode", &word) || !strcmp(word, "false"))
		return;
	if (!strcmp(word, "true"))
		weir_complain(reader, node, "write false: the rule limits this host alone",
			      "hosts cannot share this rule: what a token bucket holds is this host's own");
	else
		weir_complain(reader, node, "write true or false", "'%.*s' is not a value of 'clusterMode'",
			      WEIR_SHOWN(word));
}

static void read_param_flow(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	const struct weir_node *const *values = rule->values;
	struct weir_hotspot hotspot = {
		.metric = values[PARAM_GRADE],
		.behavior = values[PARAM_BEHAVIOR],
		.duration = values[PARAM_DURATION],
		.burst_at = values[PARAM_BURST],
		.items = values[PARAM_ITEMS],
		.threshold = cut_count(rule),
	};
	uint64_t grade, behavior;

	weir_sentinel_check_regex(reader, values[PARAM_REGEX]);
	weir_sentinel_check_caller(reader, values[PARAM_LIMIT_APP]);
	check_cluster(reader, values[PARAM_CLUSTER_MODE]);
	if (!values[PARAM_INDEX])
		weir_complain(reader, rule->node, "write 'paramIdx': 0; the flow key of the resource is the parameter",
			      "a Sentinel Java param-flow rule needs a paramIdx");
	weir_sentinel_read_number(reader, hotspot.metric, "grade", GRADE_THREADS, GRADE_QPS, GRADE_QPS, &grade);
	weir_sentinel_read_number(reader, hotspot.behavior, "controlBehavior", BEHAVIOR_REJECT, BEHAVIOR_BOTH,
				  BEHAVIOR_REJECT, &behavior);
	/* In Sentinel Java's param-flow rules, the behaviors 1 and 3, which elsewhere warm up, mean 0. */
	hotspot.counts_open = grade == GRADE_THREADS;
	hotspot.throttles = behavior == BEHAVIOR_RATE_LIMITER;
	weir_sentinel_read_number(reader, hotspot.duration, "durationInSec", 1, WEIR_HOTSPOT_DURATION_S_MAX, 1,
				  &hotspot.duration_s);
	weir_sentinel_read_number(reader, values[PARAM_BURST], "burstCount", 0, WEIR_HOTSPOT_UNITS_MAX, 0,
				  &hotspot.burst);
	weir_read_hotspot(reader, rule, &hotspot, read_param_item);
}

static const char *const param_flow_needs[] = {"paramIdx", "burstCount", "durationInSec", "paramFlowItemList", NULL};

const struct weir_sentinel_kind weir_sentinel_param_flow = {
	.name = "paramFlowRules",
	.title = "param-flow rules",
	.is_java = true,
	FIELDS(param_flow),
	.needs = param_flow_needs,
	.read = read_param_flow,
};

/* ---- rules without an equivalent in weir ---- */

/* Fields of GatewayFlowRule, and of the dashboard's entity, which has `interval` and `intervalUnit` instead of
 * `intervalSec`. Both also have `burst`, but that does not identify them: in weir's own rules it is the size of a token
 * bucket.
 */
static const struct weir_sentinel_field gateway_fields[] = {
	{"id", OWN},
	{"resource", OWN},
	{"resourceMode", OWN},
	{"grade", OWN},
	{"count", OWN},
	{"intervalSec", OWN},
	{"interval", OWN},
	{"intervalUnit", OWN},
	{"controlBehavior", OWN},
	{"maxQueueingTimeoutMs", OWN},
	{"paramItem", OWN},
};

static const char *const gateway_needs[] = {"resourceMode",	    "intervalSec", "intervalUnit",
					    "maxQueueingTimeoutMs", "paramItem",   NULL};

const struct weir_sentinel_kind weir_sentinel_gateway = {
	.title = "gateway flow rules",
	.is_java = true,
	FIELDS(gateway),
	.needs = gateway_needs,
	.reason = "packets have no routes and no request parameters",
};

/* ---- system rules ---- */

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
	struct weir_node strategy = trigger, metric = trigger;
	struct weir_draft draft = {
		.node = rule->node,
		.value = {[RULE_THRESHOLD] = &trigger, [RULE_METRIC] = &metric},
	};
	char text[32];

	micro = trigger_micro(field, micro);
	snprintf(text, sizeof(text), "%llu.%06llu", (unsigned long long)(micro / WEIR_MICRO),
		 (unsigned long long)(micro % WEIR_MICRO));
	trigger.text = text;
	metric.text = (char *)weir_system_metric_names[metrics[field]]; /* nodes are not written to */
	strategy.text = "BBR";
	/* In Sentinel Java, load always uses BBR; CPU usage does not. */
	if (field == SYSTEM_LOAD)
		draft.value[RULE_STRATEGY] = &strategy;
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
