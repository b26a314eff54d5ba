// SPDX-License-Identifier: GPL-2.0-only
/* Lists of Sentinel-Go's rules: their fields, and their translation. */
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"
#include "sentinel/sentinel.h"

#define OWN RULE_FIELD_COUNT, NULL
#define AS(field) RULE_##field, NULL
#define NOT(instead) RULE_FIELD_COUNT, instead
#define FIELDS(kind) .fields = kind##_fields, .field_count = ARRAY_SIZE(kind##_fields)

/* Fields of Sentinel Java's flow rules, and the corresponding fields of Sentinel-Go's. */
#define JAVA_IN_FLOW                                                                                                   \
	{"count", NOT("write 'threshold'")},                                                                           \
		{"limitApp", NOT("leave it out: the resource's match selects the packets")},                           \
		{"strategy", NOT("write 'relationStrategy': 1 for a refResource")},                                    \
		{"clusterMode", NOT("leave it out: a Sentinel-Go rule limits its own host")},                          \
	{                                                                                                              \
		"clusterConfig", NOT("leave it out: a Sentinel-Go rule limits its own host")                           \
	}

/* ---- flow rules, and isolation rules ---- */

enum { FLOW_REGEX, ISOLATION_METRIC = 1 };

static const struct weir_sentinel_field flow_fields[] = {
	[FLOW_REGEX] = {"regex", OWN},
	{"id", OWN}, /* ignored here, since several rules may share an id */
	{"resource", AS(RESOURCE)},
	{"metricType", AS(METRIC)},
	{"threshold", AS(THRESHOLD)},
	{"tokenCalculateStrategy", AS(STRATEGY)},
	{"controlBehavior", AS(BEHAVIOR)},
	{"relationStrategy", AS(RELATION)},
	{"refResource", AS(REF_RESOURCE)},
	{"statIntervalInMs", AS(INTERVAL)},
	{"maxQueueingTimeMs", AS(MAX_QUEUEING)},
	{"warmUpPeriodSec", AS(WARM_UP_PERIOD)},
	{"warmUpColdFactor", AS(COLD_FACTOR)},
	{"lowMemUsageThreshold", AS(LOW_USAGE)},
	{"highMemUsageThreshold", AS(HIGH_USAGE)},
	{"memLowWaterMarkBytes", AS(LOW_MARK)},
	{"memHighWaterMarkBytes", AS(HIGH_MARK)},
	{"grade", NOT("leave it out for requests a second (1); for threads (0) write 'metricType': 0")},
	JAVA_IN_FLOW,
	{"durationInSec", NOT("write 'statIntervalInMs', in milliseconds")},
};

static void read_flow(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	weir_sentinel_check_regex(reader, rule->values[FLOW_REGEX]);
	rule->draft.is_isolation = true;
	weir_read_draft(reader, &rule->draft);
}

const struct weir_sentinel_kind weir_sentinel_flow = {
	.name = "flowRules",
	.title = "flow rules",
	FIELDS(flow),
	.read = read_flow,
};

static const struct weir_sentinel_field isolation_fields[] = {
	[FLOW_REGEX] = {"regex", OWN},
	[ISOLATION_METRIC] = {"metricType", OWN},
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"threshold", AS(THRESHOLD)},
	{"grade", NOT("leave it out: isolation rules limit how many are open at once")},
	JAVA_IN_FLOW,
};

static void read_isolation(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	static const char *const metrics[] = {"Concurrency"};
	const struct weir_node *metric = rule->values[ISOLATION_METRIC];
	unsigned int choice;

	if (metric && weir_check_unquoted(reader, metric))
		weir_read_choice(reader, metric, "metricType", metrics, ARRAY_SIZE(metrics), true, &choice);
	weir_sentinel_say(rule, RULE_METRIC, metric ?: rule->node, metrics[0]);
	read_flow(reader, rule);
}

const struct weir_sentinel_kind weir_sentinel_isolation = {
	.name = "isolationRules",
	.title = "isolation rules",
	FIELDS(isolation),
	.read = read_isolation,
};

/* ---- hotspot rules ---- */

enum {
	HOTSPOT_METRIC,
	HOTSPOT_BEHAVIOR,
	HOTSPOT_PARAM_INDEX,
	HOTSPOT_PARAM_KEY,
	HOTSPOT_BURST,
	HOTSPOT_DURATION,
	HOTSPOT_CAPACITY,
	HOTSPOT_ITEMS,
};

static const struct weir_sentinel_field hotspot_fields[] = {
	[HOTSPOT_METRIC] = {"metricType", OWN},
	[HOTSPOT_BEHAVIOR] = {"controlBehavior", OWN},
	[HOTSPOT_PARAM_INDEX] = {"paramIndex", OWN},
	[HOTSPOT_PARAM_KEY] = {"paramKey", OWN},
	[HOTSPOT_BURST] = {"burstCount", OWN},
	[HOTSPOT_DURATION] = {"durationInSec", OWN},
	[HOTSPOT_CAPACITY] = {"paramsMaxCapacity", OWN},
	[HOTSPOT_ITEMS] = {"specificItems", OWN},
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"threshold", AS(THRESHOLD)},
	{"maxQueueingTimeMs", AS(MAX_QUEUEING)},
	{"grade", NOT("write 'metricType': 0 for how many are open at once, 1 for requests")},
	{"count", NOT("write 'threshold'")},
	{"paramIdx", NOT("write 'paramIndex'")},
	{"paramFlowItemList", NOT("write 'specificItems'")},
	{"limitApp", NOT("leave it out: the resource's match selects the packets")},
	{"clusterMode", NOT("leave it out: a Sentinel-Go rule limits its own host")},
	{"clusterConfig", NOT("leave it out: a Sentinel-Go rule limits its own host")},
	{"statIntervalInMs", NOT("write 'durationInSec', in seconds")},
};

/* An item in the form of its data sources (ext/datasource): {"valKind": 1, "valStr": "192.0.2.1", "threshold": 5}. An
 * address is a text, which is kind 1.
 */
static bool read_specific_item(struct weir_reader *reader, const struct weir_node *item,
			       struct weir_hotspot_item *ret_item)
{
	static const char *const names[] = {"valStr", "threshold", "valKind"};
	const struct weir_node *values[ARRAY_SIZE(names)] = {};

	if (item->kind != WEIR_NODE_MAP) {
		weir_complain_no_map(reader, item, "a specific item", names, ARRAY_SIZE(names));
		return false;
	}
	weir_sentinel_read_item(reader, item, false, names, ARRAY_SIZE(names), values);
	if (values[2] && !weir_check_unquoted(reader, values[2]))
		return false;
	if (values[2] && values[2]->kind == WEIR_NODE_WORD && strcmp(values[2]->text, "1") &&
	    strcmp(values[2]->text, "KindString")) {
		weir_complain(reader, values[2], "write \"valKind\": 1, a text: values are addresses",
			      "'%.*s' is not the kind of an address", WEIR_SHOWN(values[2]->text));
		return false;
	}
	if (!values[0] || !values[1]) {
		weir_complain(reader, item, "write {\"valKind\": 1, \"valStr\": \"192.0.2.1\", \"threshold\": 5}",
			      "a specific item needs a valStr and a threshold");
		return false;
	}
	*ret_item = (struct weir_hotspot_item){values[0], values[1]};
	return true;
}

static void read_hotspot(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	static const char *const metrics[] = {"Concurrency", "QPS"};
	const struct weir_node *const *values = rule->values;
	const struct weir_node *index = values[HOTSPOT_PARAM_INDEX], *key = values[HOTSPOT_PARAM_KEY];
	struct weir_hotspot hotspot = {
		.metric = values[HOTSPOT_METRIC],
		.behavior = values[HOTSPOT_BEHAVIOR],
		.duration = values[HOTSPOT_DURATION],
		.burst_at = values[HOTSPOT_BURST],
		.items = values[HOTSPOT_ITEMS],
		.may_map_items = true, /* the form in core/hotspot */
	};

	/* Sentinel-Go calls these "mutually exclusive"; in both cases the parameter is the flow key. */
	if (index && key && key->kind == WEIR_NODE_WORD && key->text[0] && index->kind == WEIR_NODE_WORD &&
	    index->text[0] != '-' && strcmp(index->text, "0"))
		weir_complain(reader, key, "leave one of them out: the flow key of the resource is the parameter",
			      "paramKey and a paramIndex above 0 exclude each other");
	if (values[HOTSPOT_CAPACITY])
		weir_warn(reader, values[HOTSPOT_CAPACITY], "settings.flowsPerCpu sets how many flows fit",
			  "'paramsMaxCapacity' has no effect");
	hotspot.counts_open =
		!weir_sentinel_read_choice(reader, hotspot.metric, "metricType", metrics, ARRAY_SIZE(metrics));
	hotspot.throttles = weir_sentinel_read_choice(reader, hotspot.behavior, "controlBehavior", weir_behavior_names,
						      WEIR_BEHAVIOR_COUNT);
	weir_sentinel_read_number(reader, rule->draft.value[RULE_THRESHOLD], "threshold", 0, WEIR_HOTSPOT_UNITS_MAX, 0,
				  &hotspot.threshold);
	if (!hotspot.counts_open && !hotspot.duration)
		weir_complain(reader, rule->node, "write the seconds in which 'threshold' requests may arrive",
			      "a hotspot rule for requests needs a durationInSec above 0");
	if (!hotspot.counts_open)
		weir_sentinel_read_number(reader, hotspot.duration, "durationInSec", 1, WEIR_HOTSPOT_DURATION_S_MAX, 1,
					  &hotspot.duration_s);
	if (!hotspot.counts_open && !hotspot.throttles)
		weir_sentinel_read_number(reader, values[HOTSPOT_BURST], "burstCount", 0, WEIR_HOTSPOT_UNITS_MAX, 0,
					  &hotspot.burst);
	weir_read_hotspot(reader, rule, &hotspot, read_specific_item);
}

static const char *const hotspot_needs[] = {"paramIndex",	 "paramKey",	  "burstCount", "durationInSec",
					    "paramsMaxCapacity", "specificItems", NULL};

const struct weir_sentinel_kind weir_sentinel_hotspot = {
	.name = "hotspotRules",
	.title = "hotspot rules",
	FIELDS(hotspot),
	.needs = hotspot_needs,
	.read = read_hotspot,
};

/* ---- circuit breakers ---- */

#define BREAKER_FIELDS                                                                                                 \
	{"id", OWN}, {"resource", OWN}, {"strategy", OWN}, {"retryTimeoutMs", OWN}, {"minRequestAmount", OWN},         \
		{"statIntervalMs", OWN}, {"statSlidingWindowBucketCount", OWN}, {"maxAllowedRtMs", OWN},               \
		{"threshold", OWN},                                                                                    \
	{                                                                                                              \
		"probeNum", OWN                                                                                        \
	}

static const struct weir_sentinel_field breaker_fields[] = {
	BREAKER_FIELDS,
	{"grade", NOT("write 'strategy': 0 for slow requests, 1 for a ratio of errors, 2 for their number")},
	{"count", NOT("write 'threshold'")},
	{"timeWindow", NOT("write 'retryTimeoutMs', in milliseconds")},
	{"slowRatioThreshold", NOT("write 'threshold', with strategy 0 and maxAllowedRtMs")},
	{"limitApp", NOT("leave it out: the resource's match selects the packets")},
};

static void read_breaker(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	const struct weir_node *values[WEIR_BREAKER_FIELD_COUNT] = {};

	for (size_t i = 0; i < ARRAY_SIZE(breaker_fields); i++)
		for (enum weir_breaker_field field = 0; field < WEIR_BREAKER_FIELD_COUNT; field++)
			if (!strcmp(breaker_fields[i].name, weir_breaker_field_names[field]))
				values[field] = rule->values[i];
	for (enum weir_breaker_field field = WEIR_BREAKER_STRATEGY; field <= WEIR_BREAKER_PROBES; field++)
		if (values[field] && !weir_check_unquoted(reader, values[field]))
			return;
	weir_read_breaker_of(reader, rule->node, values, true);
}

static const char *const breaker_needs[] = {"retryTimeoutMs",
					    "minRequestAmount",
					    "statIntervalMs",
					    "statSlidingWindowBucketCount",
					    "maxAllowedRtMs",
					    "probeNum",
					    NULL};

const struct weir_sentinel_kind weir_sentinel_breaker = {
	.name = "circuitBreakers",
	.title = "circuit breakers",
	FIELDS(breaker),
	.needs = breaker_needs,
	.read = read_breaker,
};

/* ---- system rules ---- */

static const struct weir_sentinel_field system_fields[] = {
	{"metricType", RULE_METRIC, NULL},
	{"triggerCount", RULE_THRESHOLD, NULL},
	{"strategy", RULE_STRATEGY, NULL},
	{"id", OWN},
};

static const char *const weirs_system_fields[] = {"metricType", "triggerCount", "strategy", "name",
						  "mode",	"onBlock",	"id",	    NULL};

static const char *const system_needs[] = {"triggerCount", "strategy", NULL};

static void read_system(struct weir_reader *reader, struct weir_sentinel_rule *rule)
{
	weir_read_system_rule(reader, &rule->draft);
}

const struct weir_sentinel_kind weir_sentinel_system = {
	.name = "systemRules",
	.title = "system rules",
	.weirs_fields = weirs_system_fields,
	FIELDS(system),
	.needs = system_needs,
	.read = read_system,
};

static const struct weir_sentinel_field outlier_fields[] = {
	BREAKER_FIELDS,
	{"enableActiveRecovery", OWN},
	{"maxEjectionPercent", OWN},
	{"recoveryIntervalMs", OWN},
	{"recycleIntervalS", OWN},
	{"maxRecoveryAttempts", OWN},
};

static const char *const outlier_needs[] = {"enableActiveRecovery", "maxEjectionPercent",  "recoveryIntervalMs",
					    "recycleIntervalS",	    "maxRecoveryAttempts", NULL};

const struct weir_sentinel_kind weir_sentinel_outlier = {
	.title = "outlier rules",
	FIELDS(outlier),
	.needs = outlier_needs,
	.reason = "weir does not choose between servers",
};
