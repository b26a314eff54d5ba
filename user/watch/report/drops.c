// SPDX-License-Identifier: GPL-2.0-only
#include "report/drops.h"

#include "base/util.h"
#include "report/keys.h"
#include "report/times.h"
#include "words/json.h"

static json_t *describe_dropped(const struct weir_instance *instance, const struct weir_dropped_flow *dropped,
				uint64_t now_ns)
{
	const struct weir_rule_info *rule = &instance->rules[dropped->rule_slot];

	return json_pack("{s:s, s:s?, s:o, s:b, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:o, s:o}", "rule", rule->name,
			 "resource", rule->system ? NULL : rule->resource_name, "key",
			 weir_flow_key_describe(instance, rule, &dropped->key), "wouldDrop", dropped->is_observed,
			 "packets", (json_int_t)dropped->packets, "bytes", (json_int_t)dropped->bytes, "isEstimated",
			 dropped->is_estimated, "missedPacketsMax", (json_int_t)dropped->missed, "firstNs",
			 (json_int_t)dropped->first_ns, "lastNs", (json_int_t)dropped->last_ns, "lastAgoMs",
			 (json_int_t)(now_ns > dropped->last_ns ? (now_ns - dropped->last_ns) / 1000000 : 0),
			 "firstTime", weir_json_time(dropped->first_ns), "lastTime", weir_json_time(dropped->last_ns));
}

json_t *weir_drops_describe(const struct weir_instance *instance, const struct weir_drops *drops)
{
	json_t *worst = json_array();

	for (size_t i = 0; i < drops->count; i++)
		weir_json_append(&worst, describe_dropped(instance, &drops->worst[i], drops->now_ns));
	return json_pack("{s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:o}", "instance", instance->name, "nowNs",
			 (json_int_t)drops->now_ns, "nowTime", weir_json_time(drops->now_ns), "dropped",
			 (json_int_t)drops->flows, "packets", (json_int_t)drops->packets, "bytes",
			 (json_int_t)drops->bytes, "missedPacketsMax", (json_int_t)drops->missed, "flows", worst);
}

json_t *weir_drops_describe_most(const struct weir_instance *instance, const struct weir_drops *drops, size_t most)
{
	struct weir_drops part = *drops; /* everything is borrowed from it */

	if (part.count > most)
		part.count = most;
	return weir_drops_describe(instance, &part);
}
