// SPDX-License-Identifier: GPL-2.0-only
#include "words/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "base/util.h"
#include "kind/kind.h"
#include "rules/values.h"
#include "words/words.h"

json_t *weir_json_text(const char *text)
{
	static const char replacement[] = "\xef\xbf\xbd";
	_cleanup_(weir_freep) char *kept = malloc(strlen(text) * strlen(replacement) + 1);
	char *end = kept;
	uint32_t code;

	if (!kept)
		return NULL;
	while (*text) {
		size_t bytes = weir_utf8_character(text, strlen(text), &code);

		end = bytes ? mempcpy(end, text, bytes) : stpcpy(end, replacement);
		text += bytes ? bytes : 1;
	}
	*end = '\0';
	return json_string(kept);
}

/* jansson escapes what is below U+0020, and nothing else. Outside of strings a document has none of these characters,
 * and all of them are below U+10000: one escape each.
 */
static char *escape_controls(const char *text)
{
	static const size_t escape_bytes = sizeof("\\u202e") - 1;
	char *escaped = malloc(strlen(text) * escape_bytes + 1), *end = escaped;
	uint32_t code = 0;

	while (escaped && *text) {
		const size_t bytes = weir_utf8_character(text, strnlen(text, 4), &code) ?: 1;

		if ((unsigned char)*text >= 0x7f && weir_is_control(code))
			end += sprintf(end, "\\u%04x", code);
		else
			end = mempcpy(end, text, bytes);
		text += bytes;
	}
	if (escaped)
		*end = '\0';
	return escaped;
}

char *weir_json_dump(const json_t *document, size_t flags)
{
	_cleanup_(weir_freep) char *text = document ? json_dumps(document, flags) : NULL;

	return text ? escape_controls(text) : NULL;
}

void weir_json_append(json_t **list, json_t *item)
{
	if (!json_array_append_new(*list, item))
		return;
	json_decref(*list);
	*list = NULL;
}

static json_t *json_entry(const struct weir_diag_entry *entry)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "file", entry->file ? weir_json_text(entry->file) : json_null(),
			 "line", entry->file ? json_integer(entry->line) : json_null(), "column",
			 entry->file ? json_integer(entry->column) : json_null(), "message",
			 weir_json_text(entry->message ?: "out of memory"), "advice",
			 entry->hint ? weir_json_text(entry->hint) : json_null());
}

void weir_json_add_diag(const struct weir_diag *diag, json_t *fields)
{
	json_t *mistakes = json_array(), *warnings = json_array(), *notes = json_array();

	for (size_t i = 0; i < diag->count; i++) {
		const struct weir_diag_entry *entry = &diag->entries[i];

		weir_json_append(entry->is_note	     ? &notes
				 : entry->is_warning ? &warnings
						     : &mistakes,
				 json_entry(entry));
	}
	json_object_set_new(fields, "mistakes", mistakes);
	json_object_set_new(fields, "warnings", warnings);
	json_object_set_new(fields, "notes", notes);
}

json_t *weir_json_tally(const struct weir_tally *tally)
{
	return json_pack("{s:I, s:I}", "packets", (json_int_t)tally->packets, "bytes", (json_int_t)tally->bytes);
}

json_t *weir_json_threshold(uint64_t micro)
{
	return micro % WEIR_MICRO ? json_real((double)micro / WEIR_MICRO) : json_integer(micro / WEIR_MICRO);
}

static void add_memory_adaptive(const struct weir_memory_adaptive *memory, json_t *fields)
{
	json_object_set_new(fields, "lowMemUsageThreshold", json_integer(memory->low_units));
	json_object_set_new(fields, "highMemUsageThreshold", json_integer(memory->high_units));
	json_object_set_new(fields, "memLowWaterMarkBytes", json_integer(memory->low_mark_bytes));
	json_object_set_new(fields, "memHighWaterMarkBytes", json_integer(memory->high_mark_bytes));
}

static json_t *json_rate_rule(const struct weir_rule_info *rule)
{
	json_t *fields =
		json_pack("{s:s, s:s, s:s, s:I, s:s, s:s, s:s, s:s}", "name", rule->name, "resource",
			  rule->resource_name, "unit", rule->identity.counts_bytes ? "bytes" : "packets",
			  "statIntervalInMs", (json_int_t)(rule->identity.interval_ns / 1000000), "mode",
			  rule->observes ? "observe" : "enforce", "tokenCalculateStrategy",
			  weir_strategy_names[rule->strategy], "controlBehavior", weir_behavior_names[rule->behavior],
			  "relationStrategy", weir_relation_names[rule->relation]);

	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		add_memory_adaptive(&rule->memory, fields);
	else
		json_object_set_new(fields, "threshold", weir_json_threshold(rule->threshold_micro));
	if (weir_kind_of_info(rule)->lends)
		json_object_set_new(fields, "lendsForMs", json_integer(rule->queueing_ns_max / 1000000));
	if (weir_kind_of_info(rule)->delays && !weir_kind_of_info(rule)->lends) {
		json_object_set_new(fields, "maxQueueingTimeMs", json_integer(rule->queueing_ns_max / 1000000));
	} else if (weir_kind_of_info(rule)->has_tokens) {
		json_object_set_new(fields, "window", json_string(weir_window_names[rule->identity.window]));
		json_object_set_new(fields, "burst", weir_json_threshold(rule->burst_micro));
	} else {
		json_object_set_new(fields, "sampleCount", json_integer(rule->identity.samples));
		json_object_set_new(fields, "window", json_string(weir_window_names[rule->identity.window]));
	}
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		json_object_set_new(fields, "refResource", json_string(rule->ref_resource_name));
	weir_json_add_penalty(fields, rule->penalty_ms, rule->penalty_ms_max);
	weir_json_add_cluster(fields, rule->cluster, rule->falls_back);
	if (rule->aggregates)
		json_object_set_new(fields, "whenFull", json_string("aggregate"));
	return fields;
}

void weir_json_add_cluster(json_t *fields, enum weir_cluster cluster, bool falls_back)
{
	if (!cluster)
		return;
	json_object_set_new(fields, "clusterMode", json_true());
	json_object_set_new(fields, "clusterConfig",
			    json_pack("{s:s, s:b}", "thresholdType",
				      cluster == WEIR_CLUSTER_GLOBAL ? "GLOBAL" : "AVG_LOCAL",
				      "fallbackToLocalWhenFail", falls_back));
}

void weir_json_add_penalty(json_t *fields, uint32_t penalty_ms, uint32_t penalty_ms_max)
{
	if (!penalty_ms)
		return;
	json_object_set_new(fields, "blockDurationInMs", json_integer(penalty_ms));
	json_object_set_new(fields, "blockDurationMaxInMs", json_integer(penalty_ms_max));
}

void weir_json_add_system(json_t *fields, enum weir_system_metric metric, uint64_t trigger_micro, bool is_bbr,
			  bool observes)
{
	json_object_set_new(fields, "metricType",
			    json_string(weir_system_metric_names[metric < WEIR_SYSTEM_COUNT ? metric : 0]));
	json_object_set_new(fields, "triggerCount", weir_json_threshold(trigger_micro));
	if (metric == WEIR_SYSTEM_LOAD || metric == WEIR_SYSTEM_CPU_USAGE)
		json_object_set_new(fields, "strategy", json_string(is_bbr ? "BBR" : "NoAdaptive"));
	json_object_set_new(fields, "mode", json_string(observes ? "observe" : "enforce"));
}

void weir_json_add_breaker(const struct weir_breaker_words *breaker, json_t *fields)
{
	json_object_set_new(fields, "strategy", json_string(weir_breaker_strategy_names[breaker->strategy]));
	json_object_set_new(fields, "threshold", weir_json_threshold(breaker->threshold_micro));
	json_object_set_new(fields, "retryTimeoutMs", json_integer(breaker->retry_ns / 1000000));
	json_object_set_new(fields, "minRequestAmount", json_integer(breaker->min_requests));
	json_object_set_new(fields, "statIntervalMs", json_integer(breaker->interval_ns / 1000000));
	json_object_set_new(fields, "statSlidingWindowBucketCount", json_integer(breaker->buckets));
	if (breaker->strategy == WEIR_BREAKER_SLOW_RATIO)
		json_object_set_new(fields, "maxAllowedRtMs", json_integer(breaker->max_rt_ns / 1000000));
	json_object_set_new(fields, "probeNum", json_integer(breaker->probes));
}

static json_t *json_breaker_rule(const struct weir_rule_info *rule)
{
	const struct weir_breaker_words breaker = weir_breaker_words_of_info(rule);
	json_t *fields = json_pack("{s:s, s:s, s:s}", "name", rule->name, "resource", rule->resource_name, "mode",
				   rule->observes ? "observe" : "enforce");

	weir_json_add_breaker(&breaker, fields);
	return fields;
}

static json_t *json_rule(const struct weir_rule_info *rule)
{
	const struct weir_kind *kind = weir_kind_of_info(rule);

	if (rule->system) {
		json_t *fields = json_pack("{s:s, s:n}", "name", rule->name, "resource");

		weir_json_add_system(fields, rule->system, rule->threshold_micro, rule->is_bbr, rule->observes);
		return fields;
	}
	if (kind->has_interval)
		return json_rate_rule(rule);
	if (kind->is_breaker)
		return json_breaker_rule(rule);
	return json_pack("{s:s, s:s, s:s, s:s, s:o}", "name", rule->name, "resource", rule->resource_name, "metricType",
			 kind->metric_name, "mode", rule->observes ? "observe" : "enforce", "threshold",
			 weir_json_threshold(rule->threshold_micro));
}

json_t *weir_json_rule(const struct weir_rule_info *rule)
{
	char words[WEIR_WORDS_BYTES];
	json_t *fields = json_rule(rule);

	json_object_set_new(fields, "limit", json_string(weir_format_limit(rule, words)));
	return fields;
}
