// SPDX-License-Identifier: GPL-2.0-only
/* Lists of Sentinel Java's rules, of its data sources or its dashboard: their fields, and what becomes of each. */
#include <string.h>

#include "base/util.h"
#include "rules/lists.h"

#define OWN RULE_FIELD_COUNT, NULL
#define AS(field) RULE_##field, NULL
#define NOT(instead) RULE_FIELD_COUNT, instead
#define FIELDS(kind) .fields = kind##_fields, .field_count = ARRAY_SIZE(kind##_fields)

/* ---- flow rules ---- */

static const struct weir_list_field flow_fields[] = {
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"limitApp", OWN},
	{"regex", OWN},
	{"grade", OWN},
	{"count", AS(THRESHOLD)},
	{"strategy", OWN},
	{"refResource", AS(REF_RESOURCE)},
	{"controlBehavior", OWN},
	{"warmUpPeriodSec", AS(WARM_UP_PERIOD)},
	{"maxQueueingTimeMs", AS(MAX_QUEUEING)},
	{"clusterMode", OWN},
	{"clusterConfig", OWN},
};

static const char *const flow_needs[] = {"grade", "count", NULL};

const struct weir_list_kind weir_list_java_flow = {
	.name = "flowRules",
	.title = "flow rules",
	.is_java = true,
	FIELDS(flow),
	.needs = flow_needs,
	.missing = "way to read them",
};

/* ---- hot parameters ---- */

static const struct weir_list_field param_flow_fields[] = {
	{"id", OWN},
	{"resource", AS(RESOURCE)},
	{"limitApp", OWN},
	{"regex", OWN},
	{"grade", OWN},
	{"paramIdx", OWN},
	{"count", AS(THRESHOLD)},
	{"controlBehavior", OWN},
	{"maxQueueingTimeMs", AS(MAX_QUEUEING)},
	{"burstCount", OWN},
	{"durationInSec", OWN},
	{"paramFlowItemList", OWN},
	{"clusterMode", OWN},
	{"clusterConfig", OWN},
};

static const char *const param_flow_needs[] = {"paramIdx", "burstCount", "durationInSec", "paramFlowItemList", NULL};

const struct weir_list_kind weir_list_param_flow = {
	.name = "paramFlowRules",
	.title = "param-flow rules",
	.is_java = true,
	FIELDS(param_flow),
	.needs = param_flow_needs,
	.missing = "hotspot rules",
};

/* ---- authority rules ---- */

static const struct weir_list_field authority_fields[] = {
	{"id", OWN}, {"resource", OWN}, {"limitApp", OWN}, {"regex", OWN}, {"strategy", OWN},
};

static const char *const authority_needs[] = {"limitApp", NULL};

const struct weir_list_kind weir_list_authority = {
	.name = "authorityRules",
	.title = "authority rules",
	.is_java = true,
	FIELDS(authority),
	.needs = authority_needs,
	.missing = "way to read them",
};

/* ---- what weir has not ---- */

static const struct weir_list_field degrade_fields[] = {
	{"id", OWN},
	{"resource", OWN},
	{"limitApp", OWN},
	{"regex", OWN},
	{"grade", OWN},
	{"count", OWN},
	{"timeWindow", OWN},
	{"minRequestAmount", OWN},
	{"slowRatioThreshold", OWN},
	{"statIntervalMs", OWN},
};

static const char *const degrade_needs[] = {"timeWindow", "minRequestAmount", "slowRatioThreshold", "statIntervalMs",
					    NULL};

const struct weir_list_kind weir_list_degrade = {
	.name = "degradeRules",
	.title = "degrade rules",
	.is_java = true,
	FIELDS(degrade),
	.needs = degrade_needs,
	.missing = "circuit breakers",
};

static const struct weir_list_field system_fields[] = {
	{"id", OWN},	{"resource", OWN},  {"limitApp", OWN}, {"regex", OWN},		 {"highestSystemLoad", OWN},
	{"avgRt", OWN}, {"maxThread", OWN}, {"qps", OWN},      {"highestCpuUsage", OWN},
};

static const char *const system_needs[] = {"highestSystemLoad", "avgRt", "maxThread", "qps", "highestCpuUsage", NULL};

const struct weir_list_kind weir_list_java_system = {
	.name = "systemRules",
	.title = "system rules",
	.is_java = true,
	FIELDS(system),
	.needs = system_needs,
	.missing = "system rules",
};
