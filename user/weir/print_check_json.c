// SPDX-License-Identifier: GPL-2.0-only
#include <string.h>

#include "compile/compile.h"
#include "kind/kind.h"
#include "rules/emit.h"
#include "rules/field_rows.h"
#include "rules/scalars.h"
#include "thresholds/token_rates.h"
#include "weir/print_check.h"
#include "words/json.h"

#define NSEC_PER_MSEC 1000000ull

static const char *const storage_names[] = {"lone", "narrow", "wide", "medium"};

json_t *weir_json_match(const struct weir_match *match)
{
	struct weir_writer writer = {.form = WEIR_FORM_TREE};

	weir_write_document(&writer);
	weir_write_match(&writer, match);
	return weir_write_tree_end(&writer);
}

json_t *weir_json_flow(const struct weir_flow *flow)
{
	struct weir_writer writer = {.form = WEIR_FORM_TREE};
	json_t *fields, *words;

	weir_write_document(&writer);
	weir_write_key(&writer, "flow", flow);
	fields = weir_write_tree_end(&writer);
	words = json_incref(json_object_get(fields, "flow")) ?: json_array();
	json_decref(fields);
	return words;
}

/* Where the rule's window is kept. Throttled flows have no window, but words that all CPUs share; the same is true for
 * occupy windows.
 */
static const char *storage_name(const struct weir_image *image, size_t place)
{
	return weir_kinds[image->rules[place].kind]->storage_name ?: storage_names[weir_rows_of(image, place)->storage];
}

/* The fields that a rule uses, by their names in rule files. */
static json_t *describe_rule(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t place)
{
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	struct weir_shown_rule shown = weir_shown_rule_of(ruleset, rule);

	shown.storage = storage_name(image, place);
	shown.bucket_micro = weir_tokens_burst_micro(rule, rule->threshold_micro);
	if (rule->occupies)
		shown.wait_ms = image->rules[place].queueing_ns_max / NSEC_PER_MSEC;
	return weir_json_shown_rule(&shown, WEIR_RULE_CHECKED);
}

static json_t *describe_resource(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t resource)
{
	const struct weir_ruleset_resource *described = &ruleset->resources[resource];
	json_t *rules = json_array();

	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].resource == resource)
			weir_json_append(&rules, describe_rule(ruleset, image, i));
	return json_pack("{s:s, s:o, s:o, s:o*, s:o}", "name", described->name, "match",
			 weir_json_match(&described->match), "flow", weir_json_flow(&described->flow), "prioritized",
			 described->is_prioritized ? json_true() : NULL, "rules", rules);
}

static json_t *describe_except(const struct weir_settings *settings)
{
	json_t *list = json_array();

	for (size_t i = 0; i < settings->non_ip_except_count; i++) {
		char text[WEIR_ETHERTYPE_TEXT_BYTES];

		json_array_append_new(list, json_string(weir_format_ethertypes(&settings->non_ip_except[i], text)));
	}
	return list;
}

/* null: there is none */
static json_t *describe_cluster(char *const *fields)
{
	if (!fields[WEIR_CLUSTER_REDIS])
		return json_null();
	return json_pack("{s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s, s:s}", "redis", fields[WEIR_CLUSTER_REDIS], "name",
			 fields[WEIR_CLUSTER_NAME], "host", fields[WEIR_CLUSTER_HOST], "passwordFile",
			 fields[WEIR_CLUSTER_PASSWORD_FILE], "keyFile", fields[WEIR_CLUSTER_KEY_FILE], "caFile",
			 fields[WEIR_CLUSTER_CA_FILE], "silentFor", fields[WEIR_CLUSTER_SILENT_FOR] ?: "1h",
			 "afterSilence", fields[WEIR_CLUSTER_AFTER_SILENCE] ?: "keep");
}

/* Add settings that are single values, from one to another. */
static void add_settings(json_t *fields, const struct weir_settings *settings, enum weir_setting first,
			 enum weir_setting last)
{
	struct weir_writer writer = {.form = WEIR_FORM_TREE};
	json_t *added;

	weir_write_document(&writer);
	for (enum weir_setting setting = first; setting <= last; setting++)
		if (weir_setting_rows[setting].form != WEIR_FIELD_OWN)
			weir_write_member(&writer, &weir_setting_rows[setting], settings);
	added = weir_write_tree_end(&writer);
	json_object_update(fields, added);
	json_decref(added);
}

static json_t *describe_settings(const struct weir_settings *settings, const struct weir_image *image)
{
	const uint32_t *sizes = image->config.sizes;
	struct weir_settings loaded = *settings; /* the sizes of tables are those that they really have */
	json_t *fields = json_object();

	loaded.flows_per_cpu = image->flows_per_cpu;
	loaded.timed_entries = sizes[WEIR_TABLE_TIMED_ADDRESSES];
	loaded.connections = sizes[WEIR_TABLE_CONNECTIONS] * WEIR_CONNECTIONS_PER_SET;
	loaded.connection_flows = sizes[WEIR_TABLE_CONNECTION_FLOWS] * WEIR_CONNECTION_FLOWS_PER_SET;
	memcpy(loaded.connection_timeout_ms, image->connection_timeout_ms, sizeof(loaded.connection_timeout_ms));
	add_settings(fields, &loaded, SETTING_FLOWS_PER_CPU, SETTING_MODE);
	json_object_set_new(fields, "memory",
			    settings->memory_cgroup ? json_sprintf("cgroup:%s", settings->memory_cgroup)
						    : json_string("system"));
	add_settings(fields, &loaded, SETTING_THROTTLING, SETTING_TIMED_ENTRIES);
	json_object_set_new(fields, "nonIpExcept", describe_except(settings));
	json_object_set_new(fields, "cluster", describe_cluster(settings->cluster));
	json_object_set_new(fields, "answers",
			    json_pack("{s:I, s:I}", "rate", (json_int_t)weir_answer_rate(settings, 0), "cookieRate",
				      (json_int_t)weir_answer_rate(settings, 1)));
	add_settings(fields, &loaded, SETTING_CONNECTIONS, SETTING_CLOSED_TIMEOUT);
	return fields;
}

static json_t *describe_memory(const struct weir_image_memory *memory, uint32_t cpus)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpus",
			 (json_int_t)cpus, "narrowTableBytes", (json_int_t)memory->narrow_table, "mediumTableBytes",
			 (json_int_t)memory->medium_table, "wideTableBytes", (json_int_t)memory->wide_table,
			 "sharersBytes", (json_int_t)memory->sharers, "rowGhostsBytes", (json_int_t)memory->row_ghosts,
			 "sharedBytes", (json_int_t)memory->shared, "connectionsBytes", (json_int_t)memory->connections,
			 "breakersBytes", (json_int_t)memory->breakers, "loneRowsBytes", (json_int_t)memory->lone_rows,
			 "countersBytes", (json_int_t)memory->counters, "topDropsBytes", (json_int_t)memory->top_drops,
			 "eventsBytes", (json_int_t)memory->events, "matchingBytes", (json_int_t)memory->matching,
			 "listsBytes", (json_int_t)memory->lists, "totalBytes", (json_int_t)memory->total);
}

/* Of each direction: whether there is one, and what needs it, in words for people. */
static json_t *describe_hooks(const struct weir_ruleset *ruleset)
{
	const uint8_t hooks = weir_ruleset_hooks(ruleset);
	char in[WEIR_NEEDS_BYTES], out[WEIR_NEEDS_BYTES];

	return json_pack("{s:{s:b, s:s}, s:{s:b, s:s}}", "in", "isAttached", hooks & WEIR_MATCHES_IN, "for",
			 weir_needs_words(weir_ruleset_needs(ruleset, WEIR_DIRECTION_IN), in), "out", "isAttached",
			 hooks & WEIR_MATCHES_OUT, "for",
			 weir_needs_words(weir_ruleset_needs(ruleset, WEIR_DIRECTION_OUT), out));
}

static json_t *describe_sets(const struct weir_ruleset *ruleset)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ruleset->set_count; i++) {
		const struct weir_set *set = &ruleset->sets[i];

		weir_json_append(&list,
				 json_pack("{s:o, s:o, s:I, s:I}", "name", weir_json_text(set->name), "file",
					   set->file ? weir_json_text(set->file) : json_null(), "prefixCount",
					   (json_int_t)set->entry_count, "labelCount", (json_int_t)set->label_count));
	}
	return list;
}

json_t *weir_json_checked(const struct weir_ruleset *ruleset, const struct weir_image *image,
			  const struct weir_image_memory *memory, uint32_t cpus)
{
	json_t *system_rules = json_array(), *resources = json_array();

	for (size_t i = 0; i < weir_count_system_rules(ruleset); i++)
		weir_json_append(&system_rules, describe_rule(ruleset, image, i));
	for (size_t i = 0; i < ruleset->resource_count; i++)
		weir_json_append(&resources, describe_resource(ruleset, image, i));
	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:I, s:I, s:o, s:i, s:i, s:o}", "settings",
			 describe_settings(&ruleset->settings, image), "hooks", describe_hooks(ruleset), "systemRules",
			 system_rules, "resources", resources, "ruleCount", (int)ruleset->rule_count, "allowCount",
			 (json_int_t)image->allow_count, "denyCount", (json_int_t)image->deny_count, "sets",
			 describe_sets(ruleset), "packetRulesMax", (int)image->packet_rules_max, "packetResourcesMax",
			 (int)image->packet_resources_max, "memory", describe_memory(memory, cpus));
}
