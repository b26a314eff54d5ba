// SPDX-License-Identifier: GPL-2.0-only
#include "report/drops.h"

#include "base/util.h"
#include "report/keys.h"
#include "words/json.h"

static uint64_t age_ns(const struct weir_drops *drops, uint64_t then_ns)
{
	return drops->now_ns > then_ns ? drops->now_ns - then_ns : 0;
}

// NOLINTNEXTLINE(readability-function-size): a list, a figure a statement
void weir_describe_dropped(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_dropped_view *view = context;
	const struct weir_dropped_flow *dropped = record;
	const struct weir_rule_info *rule = &view->instance->rules[dropped->rule_slot];
	char words[WEIR_WORDS_BYTES];

	WEIR_FIGURE(line, "rule", "rule", json_string(rule->name), "%s%s", rule->name,
		    dropped->is_observed ? " (would drop)" : "");
	WEIR_FIELD(line, "resource", rule->system ? json_null() : json_string(rule->resource_name));
	WEIR_FIELD(line, "key", weir_flow_key_describe(view->instance, rule, &dropped->key));
	WEIR_FIELD(line, "wouldDrop", json_boolean(dropped->is_observed));
	WEIR_FIGURE(line, "packets", ">packets", json_integer(dropped->packets), "%s%llu%s",
		    dropped->is_estimated ? "~" : "", (unsigned long long)dropped->packets, dropped->missed ? "+" : "");
	WEIR_FIGURE(line, "bytes", ">bytes", json_integer(dropped->bytes), "%s%llu", dropped->is_estimated ? "~" : "",
		    (unsigned long long)dropped->bytes);
	WEIR_FIELD(line, "isEstimated", json_boolean(dropped->is_estimated));
	WEIR_FIELD(line, "missedPacketsMax", json_integer(dropped->missed));
	WEIR_FIGURE(line, "firstNs", ">first drop", json_integer(dropped->first_ns), "%s ago",
		    weir_format_age(age_ns(view->drops, dropped->first_ns), words));
	WEIR_FIGURE(line, "lastNs", ">last drop", json_integer(dropped->last_ns), "%s ago",
		    weir_format_age(age_ns(view->drops, dropped->last_ns), words));
	WEIR_FIELD(line, "lastAgoMs", json_integer(age_ns(view->drops, dropped->last_ns) / 1000000));
	WEIR_FIELD(line, "firstTime", weir_json_time(dropped->first_ns));
	WEIR_FIELD(line, "lastTime", weir_json_time(dropped->last_ns));
	WEIR_CELL(line, "dropped flow", "%s", weir_flow_key_words(view->instance, rule, &dropped->key, words));
}

json_t *weir_drops_describe(const struct weir_instance *instance, const struct weir_drops *drops)
{
	const struct weir_dropped_view view = {instance, drops};

	return json_pack("{s:s, s:I, s:o, s:I, s:I, s:I, s:I, s:o}", "instance", instance->name, "nowNs",
			 (json_int_t)drops->now_ns, "nowTime", weir_json_time(drops->now_ns), "dropped",
			 (json_int_t)drops->flows, "packets", (json_int_t)drops->packets, "bytes",
			 (json_int_t)drops->bytes, "missedPacketsMax", (json_int_t)drops->missed, "flows",
			 weir_figures_list(weir_describe_dropped, &view, drops->worst, drops->count,
					   sizeof(*drops->worst)));
}

json_t *weir_drops_describe_most(const struct weir_instance *instance, const struct weir_drops *drops, size_t most)
{
	struct weir_drops part = *drops; /* everything is borrowed from it */

	if (part.count > most)
		part.count = most;
	return weir_drops_describe(instance, &part);
}
