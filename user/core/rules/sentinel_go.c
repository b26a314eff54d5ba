// SPDX-License-Identifier: GPL-2.0-only
/* Lists of Sentinel-Go's rules: their fields, and what becomes of each. */
#include <string.h>

#include "base/util.h"
#include "rules/lists.h"

#define OWN RULE_FIELD_COUNT, NULL
#define AS(field) RULE_##field, NULL
#define NOT(instead) RULE_FIELD_COUNT, instead
#define FIELDS(kind) .fields = kind##_fields, .field_count = ARRAY_SIZE(kind##_fields)

/* Of Sentinel Java's flow rules, and what a flow rule of Sentinel-Go's has in their place. */
#define JAVA_IN_FLOW                                                                                                   \
	{"count", NOT("write 'threshold'")},                                                                           \
		{"limitApp", NOT("leave it out: the resource's match says whose packets it takes")},                   \
		{"strategy", NOT("write 'relationStrategy': 1 for a refResource")},                                    \
		{"clusterMode", NOT("leave it out: a rule of Sentinel-Go's limits its own host")},                     \
	{                                                                                                              \
		"clusterConfig", NOT("leave it out: a rule of Sentinel-Go's limits its own host")                      \
	}

/* ---- flow rules, and isolation rules ---- */

enum { FLOW_REGEX, ISOLATION_METRIC = 1 };

static const struct weir_list_field flow_fields[] = {
	[FLOW_REGEX] = {"regex", OWN},
	{"id", OWN}, /* rules may share one: it names nothing here */
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

static void read_flow(struct weir_reader *reader, struct weir_list_rule *rule)
{
	weir_list_check_regex(reader, rule->values[FLOW_REGEX]);
	rule->draft.is_isolation = true;
	weir_read_draft(reader, &rule->draft);
}

const struct weir_list_kind weir_list_flow = {
	.name = "flowRules",
	.title = "flow rules",
	FIELDS(flow),
	.read = read_flow,
};

static const struct weir_list_field isolation_fields[] = {
	[FLOW_REGEX] = {"regex", OWN},
	[ISOLATION_METRIC] = {"metricType", OWN},
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"threshold", AS(THRESHOLD)},
	{"grade", NOT("leave it out: isolation rules are of what is open at once")},
	JAVA_IN_FLOW,
};

static void read_isolation(struct weir_reader *reader, struct weir_list_rule *rule)
{
	static const char *const metrics[] = {"Concurrency"};
	const struct weir_node *metric = rule->values[ISOLATION_METRIC];
	unsigned int choice;

	if (metric && weir_check_unquoted(reader, metric))
		weir_read_choice(reader, metric, "metricType", metrics, ARRAY_SIZE(metrics), true, &choice);
	weir_list_say(rule, RULE_METRIC, metric ?: rule->node, metrics[0]);
	read_flow(reader, rule);
}

const struct weir_list_kind weir_list_isolation = {
	.name = "isolationRules",
	.title = "isolation rules",
	FIELDS(isolation),
	.read = read_isolation,
};

/* ---- hotspot rules ---- */

static const struct weir_list_field hotspot_fields[] = {
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"metricType", OWN},
	{"controlBehavior", OWN},
	{"paramIndex", OWN},
	{"paramKey", OWN},
	{"threshold", AS(THRESHOLD)},
	{"maxQueueingTimeMs", AS(MAX_QUEUEING)},
	{"burstCount", OWN},
	{"durationInSec", OWN},
	{"paramsMaxCapacity", OWN},
	{"specificItems", OWN},
};

static const char *const hotspot_needs[] = {"paramIndex",	 "paramKey",	  "burstCount", "durationInSec",
					    "paramsMaxCapacity", "specificItems", NULL};

const struct weir_list_kind weir_list_hotspot = {
	.name = "hotspotRules",
	.title = "hotspot rules",
	FIELDS(hotspot),
	.needs = hotspot_needs,
	.missing = "hotspot rules",
};

/* ---- what weir has not ---- */

static const struct weir_list_field breaker_fields[] = {
	{"id", OWN},
	{"resource", OWN},
	{"strategy", OWN},
	{"retryTimeoutMs", OWN},
	{"minRequestAmount", OWN},
	{"statIntervalMs", OWN},
	{"statSlidingWindowBucketCount", OWN},
	{"maxAllowedRtMs", OWN},
	{"threshold", OWN},
	{"probeNum", OWN},
};

static const char *const breaker_needs[] = {"retryTimeoutMs",
					    "minRequestAmount",
					    "statIntervalMs",
					    "statSlidingWindowBucketCount",
					    "maxAllowedRtMs",
					    "probeNum",
					    NULL};

const struct weir_list_kind weir_list_breaker = {
	.name = "circuitBreakers",
	.title = "circuit breakers",
	FIELDS(breaker),
	.needs = breaker_needs,
	.missing = "circuit breakers",
};

static const struct weir_list_field system_fields[] = {
	{"id", OWN},
	{"metricType", OWN},
	{"triggerCount", OWN},
	{"strategy", OWN},
};

static const char *const system_needs[] = {"triggerCount", "strategy", NULL};

const struct weir_list_kind weir_list_system = {
	.name = "systemRules",
	.title = "system rules",
	FIELDS(system),
	.needs = system_needs,
	.missing = "system rules",
};
