// SPDX-License-Identifier: GPL-2.0-only
/* weir check: is this file right, what would be loaded, and what would it cost? Needs no root. */
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <string.h>

#include "base/diag.h"
#include "base/util.h"
#include "cmd.h"
#include "compile/compile.h"
#include "host/host.h"
#include "host/memory.h"
#include "kind/kind.h"
#include "options.h"
#include "pace/pace.h"
#include "print.h"
#include "print_breakers.h"
#include "rules/ruleset.h"
#include "rules/values.h"
#include "thresholds/tokens.h"

#define NSEC_PER_MSEC 1000000ull

struct check_options {
	bool wants_json;
	uint32_t cpus; /* 0: as many as this machine can have */
};

static const char *const storage_names[] = {"lone", "narrow", "wide", "medium"};

static const struct weir_option own_options[] = {
	{'c', false, "cpus", "N", "memory on a machine with N possible CPUs (default: this one)"},
	{},
};

const struct weir_command weir_check_command = {
	.name = "check",
	.own_options = own_options,
	.options = "jCh",
	.arguments = "FILE...",
	.about = "Validate rule files, and print what would be loaded and the memory it takes. Loads nothing and\n"
		 "needs no root. Several files merge, in the order given; '-' is standard input." WEIR_ABOUT_FILES,
	.example = "  weir check rules/dns-per-client.yaml",
	.exits = "0 the files are right, 1 the check itself failed, 2 a file or the request is wrong",
};

/* ---- the match and the key, field by field, as words of a rule file ---- */

/* Append a formatted word to the list of that name in `fields`, which is made when it is missing. */
__attribute__((format(printf, 3, 4))) static void add_word(json_t *fields, const char *name, const char *format, ...)
{
	json_t *words = json_object_get(fields, name);
	char text[128];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!words) {
		words = json_array();
		json_object_set_new(fields, name, words);
	}
	json_array_append_new(words, json_string(text));
}

static void add_prefixes(json_t *fields, const char *name, const struct weir_prefix *prefixes, size_t count)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	for (size_t i = 0; i < count; i++)
		add_word(fields, name, "%s", weir_format_prefix(&prefixes[i], text));
}

static void add_ranges(json_t *fields, const char *name, const struct weir_range *ranges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].low == ranges[i].high)
			add_word(fields, name, "%u", ranges[i].low);
		else
			add_word(fields, name, "%u-%u", ranges[i].low, ranges[i].high);
	}
}

/* ---- the fields that are no ranges of numbers, by their members of struct weir_match ---- */

static void add_families(json_t *fields, const struct weir_match *match)
{
	static const char *const names[] = {"ipv4", "ipv6"};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (match->families >> i & 1)
			add_word(fields, "family", "%s", names[i]);
}

static void add_fragments(json_t *fields, const struct weir_match *match)
{
	static const char *const names[] = {"none", "first", "later"};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (match->fragments >> i & 1)
			add_word(fields, "fragment", "%s", names[i]);
}

static void add_protocol(json_t *fields, const struct weir_match *match)
{
	for (unsigned int number = 0; match->has_protocol && number < 256; number++) {
		const char *name = weir_protocol_name(number);

		if (!(match->protocol[number / 8] >> number % 8 & 1))
			continue;
		if (name)
			add_word(fields, "protocol", "%s", name);
		else
			add_word(fields, "protocol", "%u", number);
	}
}

static void add_source(json_t *fields, const struct weir_match *match)
{
	add_prefixes(fields, "source", match->source, match->source_count);
}

static void add_destination(json_t *fields, const struct weir_match *match)
{
	add_prefixes(fields, "destination", match->destination, match->destination_count);
}

static void add_flags(json_t *fields, const struct weir_tcp_flags *flags)
{
	char text[64] = "";

	for (int bit = 0; bit < WEIR_TCP_FLAG_COUNT; bit++) {
		if (!((flags->set | flags->clear) >> bit & 1))
			continue;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s", text[0] ? "," : "",
			 flags->clear >> bit & 1 ? "!" : "", weir_tcp_flag_names[bit]);
	}
	add_word(fields, "tcpFlags", "%s", text);
}

static void add_tcp_flags(json_t *fields, const struct weir_match *match)
{
	for (size_t i = 0; i < match->tcp_flags_count; i++)
		add_flags(fields, &match->tcp_flags[i]);
}

static void add_interface(json_t *fields, const struct weir_match *match)
{
	for (size_t i = 0; i < match->interface_count; i++)
		add_word(fields, "interface", "%s", match->interface[i]);
}

static json_t *describe_match(const struct weir_match *match)
{
	json_t *fields = json_object();

#define ADD_SPECIAL(constant, name, member, part) add_##member(fields, match);
#define ADD_RANGES(constant, name, member, highest, none, who)                                                         \
	add_ranges(fields, name, match->member, match->member##_count);
	WEIR_MATCH_FIELDS(ADD_SPECIAL, ADD_RANGES)
	return fields;
}

static json_t *describe_flow(const struct weir_flow *flow)
{
	json_t *fields = json_object(), *words;

	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++) {
		const uint8_t *bits = 1 << bit == WEIR_KEY_SOURCE	 ? flow->source_bits
				      : 1 << bit == WEIR_KEY_DESTINATION ? flow->destination_bits
									 : NULL;

		if (!(flow->fields >> bit & 1))
			continue;
		if (bits && (bits[0] != 32 || bits[1] != 128))
			add_word(fields, "flow", "%s/%u/%u", weir_key_field_names[bit], bits[0], bits[1]);
		else
			add_word(fields, "flow", "%s", weir_key_field_names[bit]);
	}
	words = json_incref(json_object_get(fields, "flow")) ?: json_array();
	json_decref(fields);
	return words;
}

/* ---- the JSON document ---- */

/* Where the window that judges is kept; throttled flows have none, but words that all CPUs share, and so do windows
 * that lend.
 */
static const char *storage_name(const struct weir_image *image, size_t place)
{
	const struct weir_rule *loaded = &image->rules[place];

	if (weir_kinds[loaded->kind]->storage_name)
		return weir_kinds[loaded->kind]->storage_name;
	if (weir_kinds[loaded->kind]->reads_meter)
		loaded = &image->rules[loaded->meter];
	return storage_names[loaded->storage];
}

static void describe_window(const struct weir_ruleset_rule *rule, json_t *fields)
{
	json_object_set_new(fields, "window", json_string(weir_window_names[rule->window]));
	if (weir_kind_of(rule)->has_tokens) {
		json_object_set_new(fields, "burst",
				    weir_json_threshold(weir_tokens_burst_micro(rule, rule->threshold_micro)));
		return;
	}
	json_object_set_new(fields, "sampleCount", json_integer(rule->samples));
}

static void describe_warm_up(const struct weir_warm_up_fields *warm_up, json_t *fields)
{
	json_object_set_new(fields, "warmUpPeriodSec", json_integer(warm_up->period_s));
	json_object_set_new(fields, "warmUpColdFactor", json_integer(warm_up->cold_factor));
}

static void describe_memory_adaptive(const struct weir_memory_fields *memory, json_t *fields)
{
	json_object_set_new(fields, "lowMemUsageThreshold", json_integer(memory->low_units));
	json_object_set_new(fields, "highMemUsageThreshold", json_integer(memory->high_units));
	json_object_set_new(fields, "memLowWaterMarkBytes", json_integer(memory->low_mark_bytes));
	json_object_set_new(fields, "memHighWaterMarkBytes", json_integer(memory->high_mark_bytes));
}

static json_t *describe_overrides(const struct weir_ruleset_rule *rule)
{
	const char *field = rule->override_field == WEIR_KEY_SOURCE ? "source" : "destination";
	char text[WEIR_PREFIX_TEXT_BYTES];
	json_t *list = json_array();

	for (size_t i = 0; i < rule->override_count; i++)
		weir_json_append(&list,
				 json_pack("{s:s, s:o}", field, weir_format_prefix(&rule->overrides[i].prefix, text),
					   "threshold", weir_json_threshold(rule->overrides[i].threshold_micro)));
	return list;
}

static json_t *describe_rate(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t place)
{
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	json_t *fields = json_pack("{s:s, s:s, s:I, s:s, s:s, s:s, s:s, s:s}", "name", rule->name, "unit",
				   rule->counts_bytes ? "bytes" : "packets", "statIntervalInMs",
				   (json_int_t)(rule->interval_ns / NSEC_PER_MSEC), "mode",
				   rule->observes ? "observe" : "enforce", "tokenCalculateStrategy",
				   weir_strategy_names[rule->strategy], "controlBehavior",
				   weir_behavior_names[rule->behavior], "relationStrategy",
				   weir_relation_names[rule->relation], "storage", storage_name(image, place));

	if (rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE)
		json_object_set_new(fields, "threshold", weir_json_threshold(rule->threshold_micro));
	else
		describe_memory_adaptive(&rule->memory, fields);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		describe_warm_up(&rule->warm_up, fields);
	if (!weir_kind_of(rule)->delays || weir_kind_of(rule)->lends)
		describe_window(rule, fields);
	else
		json_object_set_new(fields, "maxQueueingTimeMs", json_integer(rule->queueing_ms_max));
	if (weir_kind_of(rule)->lends)
		json_object_set_new(fields, "lendsForMs",
				    json_integer(image->rules[place].queueing_ns_max / NSEC_PER_MSEC));
	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		json_object_set_new(fields, "refResource", json_string(ruleset->resources[rule->ref_resource].name));
	weir_json_add_penalty(fields, rule->penalty_ms, rule->penalty_ms_max);
	weir_json_add_cluster(fields, rule->cluster, rule->falls_back);
	if (rule->aggregates)
		json_object_set_new(fields, "whenFull", json_string("aggregate"));
	return fields;
}

/* Of a rule that counts no units over an interval, but has a metricType. */
static json_t *describe_metric(const struct weir_image *image, const struct weir_ruleset_rule *rule, size_t place)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:s}", "name", rule->name, "metricType", weir_kind_of(rule)->metric_name,
			 "mode", rule->observes ? "observe" : "enforce", "threshold",
			 weir_json_threshold(rule->threshold_micro), "storage", storage_name(image, place));
}

static json_t *describe_system_rules(const struct weir_ruleset *ruleset)
{
	json_t *rules = json_array();

	for (size_t i = 0; i < weir_count_system_rules(ruleset); i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];
		json_t *fields = json_pack("{s:s}", "name", rule->name);

		weir_json_add_system(fields, rule->system, rule->threshold_micro, rule->is_bbr, rule->observes);
		weir_json_append(&rules, fields);
	}
	return rules;
}

static json_t *describe_breaker(const struct weir_image *image, const struct weir_ruleset_rule *rule, size_t place)
{
	const struct weir_breaker_words breaker = weir_breaker_words_of(rule);
	json_t *fields = json_pack("{s:s, s:s, s:s}", "name", rule->name, "mode",
				   rule->observes ? "observe" : "enforce", "storage", storage_name(image, place));

	weir_json_add_breaker(&breaker, fields);
	return fields;
}

/* The fields that the rule uses, by their names in rule files. */
static json_t *describe_rule(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t place)
{
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	const struct weir_kind *kind = weir_kind_of(rule);
	json_t *fields = kind->has_interval ? describe_rate(ruleset, image, place)
			 : kind->is_breaker ? describe_breaker(image, rule, place)
					    : describe_metric(image, rule, place);

	if (rule->has_own_key)
		json_object_set_new(fields, "per", describe_flow(&rule->own_key));
	if (rule->override_count)
		json_object_set_new(fields, "overrides", describe_overrides(rule));
	return fields;
}

static json_t *describe_resource(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t resource)
{
	const struct weir_ruleset_resource *described = &ruleset->resources[resource];
	json_t *rules = json_array();

	for (size_t i = 0; i < ruleset->rule_count; i++)
		if (ruleset->rules[i].resource == resource)
			weir_json_append(&rules, describe_rule(ruleset, image, i));
	return json_pack("{s:s, s:o, s:o, s:o*, s:o}", "name", described->name, "match",
			 describe_match(&described->match), "flow", describe_flow(&described->flow), "prioritized",
			 described->is_prioritized ? json_true() : NULL, "rules", rules);
}

/* Of the tables, what they came to. */
static void describe_connections(const struct weir_image *image, json_t *fields)
{
	json_object_set_new(
		fields, "connections",
		json_integer((json_int_t)image->config.sizes[WEIR_TABLE_CONNECTIONS] * WEIR_CONNECTIONS_PER_SET));
	json_object_set_new(fields, "connectionFlows",
			    json_integer((json_int_t)image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS] *
					 WEIR_CONNECTION_FLOWS_PER_SET));
	for (size_t i = 0; i < WEIR_CONNECTION_CLASSES; i++)
		json_object_set_new(fields, weir_connection_timeout_names[i],
				    json_integer(image->connection_timeout_ms[i]));
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

static json_t *describe_settings(const struct weir_settings *settings, const struct weir_image *image)
{
	static const char *const policies[] = {"pass", "drop"};
	json_t *fields;

	fields = json_pack(
		"{s:I, s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:I, s:I}", "flowsPerCpu", (json_int_t)image->flows_per_cpu,
		"malformed", policies[settings->drop_malformed], "unsupported", policies[settings->drop_unsupported],
		"nonIp", policies[settings->drop_non_ip], "unmatched", policies[settings->drop_unmatched], "mode",
		settings->observes ? "observe" : "enforce", "memory",
		settings->memory_cgroup ? json_sprintf("cgroup:%s", settings->memory_cgroup) : json_string("system"),
		"throttling", settings->paces ? "pace" : "police", "controllerTimeoutInMs",
		(json_int_t)settings->controller_timeout_ms, "occupyTimeoutInMs",
		(json_int_t)settings->occupy_timeout_ms);
	json_object_set_new(fields, "timedEntries", json_integer(image->config.sizes[WEIR_TABLE_TIMED_ADDRESSES]));
	json_object_set_new(fields, "nonIpExcept", describe_except(settings));
	json_object_set_new(fields, "cluster", describe_cluster(settings->cluster));
	describe_connections(image, fields);
	return fields;
}

static json_t *describe_memory(const struct weir_image_memory *memory, uint32_t cpus)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "cpus",
			 (json_int_t)cpus, "narrowTableBytes", (json_int_t)memory->narrow_table, "mediumTableBytes",
			 (json_int_t)memory->medium_table, "wideTableBytes", (json_int_t)memory->wide_table,
			 "presenceBytes", (json_int_t)memory->presence, "remnantsBytes", (json_int_t)memory->remnants,
			 "sharedBytes", (json_int_t)memory->shared, "connectionsBytes", (json_int_t)memory->connections,
			 "breakersBytes", (json_int_t)memory->breakers, "loneRowsBytes", (json_int_t)memory->lone_rows,
			 "countersBytes", (json_int_t)memory->counters, "offendersBytes", (json_int_t)memory->offenders,
			 "eventsBytes", (json_int_t)memory->events, "matchingBytes", (json_int_t)memory->matching,
			 "listsBytes", (json_int_t)memory->lists, "totalBytes", (json_int_t)memory->total);
}

static json_t *describe(const struct weir_ruleset *ruleset, const struct weir_image *image,
			const struct weir_image_memory *memory, uint32_t cpus)
{
	json_t *resources = json_array();

	for (size_t i = 0; i < ruleset->resource_count; i++)
		weir_json_append(&resources, describe_resource(ruleset, image, i));
	return json_pack("{s:o, s:o, s:o, s:i, s:I, s:I, s:i, s:i, s:o}", "settings",
			 describe_settings(&ruleset->settings, image), "systemRules", describe_system_rules(ruleset),
			 "resources", resources, "ruleCount", (int)ruleset->rule_count, "allowCount",
			 (json_int_t)image->allow_count, "denyCount", (json_int_t)image->deny_count, "packetRulesMax",
			 (int)image->packet_rules_max, "packetResourcesMax", (int)image->packet_resources_max, "memory",
			 describe_memory(memory, cpus));
}

/* ---- for people ---- */

/* Of a long list the first few, and how many more there are. */
#define WORDS_SHOWN 8

static void print_words(const json_t *words)
{
	size_t count = json_array_size(words);

	for (size_t i = 0; i < count && i < WORDS_SHOWN; i++)
		printf("%s%s", i ? ", " : "", json_string_value(json_array_get(words, i)));
	if (count > WORDS_SHOWN)
		printf(" and %zu more", count - WORDS_SHOWN);
}

static void print_match(const struct weir_match *match)
{
	_cleanup_(json_decrefp) json_t *fields = describe_match(match);
	const char *name;
	json_t *words;
	int shown = 0;

	printf("  match  ");
	json_object_foreach(fields, name, words)
	{
		printf("%s%s ", shown++ ? "; " : "", name);
		print_words(words);
	}
	puts(shown ? "" : "every IP packet");
}

static void print_flow(const struct weir_flow *flow)
{
	_cleanup_(json_decrefp) json_t *words = describe_flow(flow);

	printf("  flow   ");
	if (flow->fields)
		print_words(words);
	else
		printf("the whole resource is one flow");
	putchar('\n');
}

/* "90 s", "100 ms", "1.25 ms", "24 h": the largest unit in which it is a whole number, else ms. */
static void print_time(uint64_t ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"h", 3600 * WEIR_NSEC_PER_SEC}, {"min", 60 * WEIR_NSEC_PER_SEC}, {"s", WEIR_NSEC_PER_SEC}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (ns % units[i].ns == 0) {
			printf("%llu %s", (unsigned long long)(ns / units[i].ns), units[i].name);
			return;
		}
	}
	printf("%g ms", (double)ns / NSEC_PER_MSEC);
}

static void print_threshold(uint64_t micro)
{
	char decimals[8];
	size_t digits = snprintf(decimals, sizeof(decimals), "%06u", (unsigned int)(micro % WEIR_MICRO));

	while (digits && decimals[digits - 1] == '0')
		decimals[--digits] = '\0';
	printf("%llu%s%s", (unsigned long long)(micro / WEIR_MICRO), digits ? "." : "", decimals);
}

/* " (100 Mbit/s)" of bytes in an interval, as links are measured. */
static void print_bit_rate(uint64_t micro, uint64_t interval_ns)
{
	static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
	double rate = (double)micro / WEIR_MICRO * 8 * WEIR_NSEC_PER_SEC / interval_ns;
	size_t unit = 0;

	for (; rate >= 1000 && unit + 1 < ARRAY_SIZE(units); unit++)
		rate /= 1000;
	printf(" (%.4g %s)", rate, units[unit]);
}

/* " per source/24", " in all" */
static void print_whose(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	char words[WEIR_WORDS_BYTES];

	printf(" %s", weir_format_whose_rule(ruleset, rule, words));
}

/* "20/s per source/24", and how that moves. */
static void print_limit(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule)
{
	const struct weir_memory_fields *memory = &rule->memory;
	const uint64_t micro = rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? memory->low_units * WEIR_MICRO
									       : rule->threshold_micro;
	char words[WEIR_WORDS_BYTES];

	fputs(weir_format_rate(micro, rule->interval_ns, rule->counts_bytes, words), stdout);
	print_whose(ruleset, rule);
	if (rule->counts_bytes && rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE)
		print_bit_rate(rule->threshold_micro, rule->interval_ns);
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		printf(" (down to %llu as memory in use grows from %llu to %llu bytes)",
		       (unsigned long long)memory->high_units, (unsigned long long)memory->low_mark_bytes,
		       (unsigned long long)memory->high_mark_bytes);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		printf(" (1/%u of it when cold, warm in %u s)", rule->warm_up.cold_factor, rule->warm_up.period_s);
	if (rule->cluster)
		printf("%s", rule->cluster == WEIR_CLUSTER_GLOBAL ? " for all hosts together"
								  : " times the number of hosts, together");
}

/* By what the packets are judged: planned times, or a window and where it is kept. */
static void print_judging(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t place)
{
	static const char *const rows[] = {"one row a CPU", "narrow rows", "wide rows", "medium rows"};
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	const struct weir_rule *loaded = &image->rules[place];

	if (rule->relation == WEIR_RELATION_ASSOCIATED)
		printf(", by the traffic of %s", ruleset->resources[rule->ref_resource].name);
	if (weir_kind_of(rule)->delays && !weir_kind_of(rule)->lends) {
		printf(", spaced evenly, ");
		if (rule->queueing_ms_max)
			printf("waits of up to %llu ms", (unsigned long long)rule->queueing_ms_max);
		else
			printf("none waits");
		return;
	}
	if (weir_kinds[loaded->kind]->has_tokens) {
		printf(", token buckets of ");
		print_threshold(weir_tokens_burst_micro(rule, rule->threshold_micro));
		return;
	}
	if (weir_kinds[loaded->kind]->reads_meter)
		loaded = &image->rules[loaded->meter];
	printf(", %s, %u bucket%s of ", weir_window_names[rule->window], rule->samples, weir_plural(rule->samples));
	print_time(rule->interval_ns / rule->samples);
	if (!weir_kind_of(rule)->lends) {
		printf(", %s", rows[loaded->storage]);
		return;
	}
	printf(", lends for waits below ");
	print_time(loaded->queueing_ns_max);
}

static void print_penalty(const struct weir_ruleset_rule *rule)
{
	if (!rule->penalty_ms)
		return;
	printf(", then blocked for ");
	print_time(rule->penalty_ms * NSEC_PER_MSEC);
	if (rule->penalty_ms == rule->penalty_ms_max)
		return;
	printf(" to ");
	print_time(rule->penalty_ms_max * NSEC_PER_MSEC);
}

static void print_breaker(const struct weir_ruleset_rule *rule)
{
	const struct weir_breaker_words breaker = weir_breaker_words_of(rule);
	char words[WEIR_WORDS_BYTES];

	printf("%s", weir_format_breaker(&breaker, words));
	if (breaker.buckets > 1)
		printf(", %u buckets", breaker.buckets);
	if (breaker.probes > 1)
		printf(", %u good probes close it", breaker.probes);
}

static void print_rule(const struct weir_ruleset *ruleset, const struct weir_image *image, size_t place)
{
	const struct weir_ruleset_rule *rule = &ruleset->rules[place];
	const struct weir_kind *kind = weir_kind_of(rule);

	printf("  %s %s: ", kind->is_breaker ? "breaker" : "rule  ", rule->name);
	if (kind->has_interval) {
		print_limit(ruleset, rule);
		print_judging(ruleset, image, place);
	} else if (kind->is_breaker) {
		print_breaker(rule);
		putchar(',');
		print_whose(ruleset, rule);
	} else {
		print_threshold(rule->threshold_micro);
		printf(" %s%s open at once", kind->noun, rule->threshold_micro == WEIR_MICRO ? "" : "s");
		print_whose(ruleset, rule);
	}
	print_penalty(rule);
	if (rule->aggregates)
		fputs(", aggregate when full", stdout);
	if (rule->override_count)
		printf(", %zu override%s", rule->override_count, weir_plural(rule->override_count));
	puts(rule->observes ? ", only observes" : "");
}

static void print_system_rules(const struct weir_ruleset *ruleset)
{
	char words[WEIR_WORDS_BYTES];

	for (size_t i = 0; i < weir_count_system_rules(ruleset); i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (i == 0)
			puts("the whole host, before all other rules: openings of TCP, and other protocols");
		printf("  rule   %s: drops at %s%s\n", rule->name,
		       weir_format_system(rule->system, rule->threshold_micro, rule->is_bbr, words),
		       rule->observes ? ", only observes" : "");
	}
}

static void print_memory(const struct weir_image *image, const struct weir_image_memory *memory, uint32_t cpus)
{
	const struct {
		const char *what;
		uint64_t bytes;
	} parts[] = {
		{"narrow rows", memory->narrow_table},
		{"medium rows", memory->medium_table},
		{"wide rows", memory->wide_table},
		{"who has seen a flow", memory->presence},
		{"what rows leave behind", memory->remnants},
		{"flows all CPUs share", memory->shared},
		{"connections", memory->connections},
		{"circuit breakers", memory->breakers},
		{"rows of whole resources", memory->lone_rows},
		{"counters", memory->counters},
		{"drops by flow", memory->offenders},
		{"events", memory->events},
		{"matching", memory->matching},
		{"allow and deny lists", memory->lists},
	};

	printf("memory with %u possible CPU%s and %u flows each: %.1f MB\n", cpus, weir_plural(cpus),
	       image->flows_per_cpu, memory->total / 1e6);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].bytes)
			printf("  %-24s %10.1f MB\n", parts[i].what, parts[i].bytes / 1e6);
}

static void print_policies(const struct weir_settings *settings)
{
	static const char *const policies[] = {"pass", "drop"};

	printf("malformed %s, unsupported %s, nonIp %s", policies[settings->drop_malformed],
	       policies[settings->drop_unsupported], policies[settings->drop_non_ip]);
	for (size_t i = 0; i < settings->non_ip_except_count; i++) {
		char text[WEIR_ETHERTYPE_TEXT_BYTES];

		printf("%s%s", i ? ", " : " but ", weir_format_ethertypes(&settings->non_ip_except[i], text));
	}
	printf("%s unmatched %s\n", settings->non_ip_except_count ? ";" : ",", policies[settings->drop_unmatched]);
	if (settings->observes)
		puts("mode observe: all is judged and counted, and nothing dropped");
}

static void print_breakers(const struct weir_image *image)
{
	printf("circuit breakers: room for %u requests",
	       image->config.sizes[WEIR_TABLE_REQUESTS] * WEIR_REQUESTS_PER_SET);
	if (image->config.sizes[WEIR_TABLE_BREAKERS])
		printf(" of %u flows", image->config.sizes[WEIR_TABLE_BREAKERS] * WEIR_BREAKERS_PER_SET);
	printf("; a request fails after silence of ");
	print_time(image->connection_timeout_ms[WEIR_CONNECTION_CLASS_HALF] * NSEC_PER_MSEC);
	putchar('\n');
}

static void print_connections(const struct weir_image *image)
{
	static const char *const states[WEIR_CONNECTION_CLASSES] = {"half-open", "open TCP", "other", "closed"};

	printf("connections: %u", image->config.sizes[WEIR_TABLE_CONNECTIONS] * WEIR_CONNECTIONS_PER_SET);
	if (image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS])
		printf(" of %u flows",
		       image->config.sizes[WEIR_TABLE_CONNECTION_FLOWS] * WEIR_CONNECTION_FLOWS_PER_SET);
	printf("; over after silence of");
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		printf("%s ", i ? "," : "");
		print_time(image->connection_timeout_ms[i] * NSEC_PER_MSEC);
		printf(" (%s)", states[i]);
	}
	putchar('\n');
}

/* The settings that matter only to some rules, when there are such. */
static void print_special_settings(const struct weir_ruleset *ruleset, const struct weir_image *image)
{
	const struct weir_settings *settings = &ruleset->settings;
	bool delays = false, has_memory = false, has_moving = false, counts_connections = false, has_samples = false,
	     has_breakers = false, is_shared = false;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		delays |= weir_kind_of(&ruleset->rules[i])->delays;
		counts_connections |= weir_kind_of(&ruleset->rules[i])->counts_connections;
		has_breakers |= weir_kind_of(&ruleset->rules[i])->is_breaker;
		has_memory |= ruleset->rules[i].strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE;
		has_moving |= ruleset->rules[i].strategy != WEIR_STRATEGY_DIRECT;
		is_shared |= ruleset->rules[i].cluster;
		has_samples |= weir_goes_by_samples(&ruleset->rules[i]);
	}
	counts_connections |= weir_tracks_connections(ruleset);
	if (delays)
		printf("throttling: %s\n", settings->paces ? "packets that must wait are held back (pace)"
							   : "packets that would have to wait pass at once (police)");
	if (has_memory)
		printf("memory in use: %s%s\n", settings->memory_cgroup ? "of cgroup " : "of the system",
		       settings->memory_cgroup ?: "");
	if (has_moving)
		printf("moving thresholds: stale when no controller was heard of for %u ms\n",
		       settings->controller_timeout_ms);
	if (is_shared)
		printf("shared by hosts: those of cluster %s, through the store %s\n",
		       settings->cluster[WEIR_CLUSTER_NAME], settings->cluster[WEIR_CLUSTER_REDIS]);
	if (has_samples)
		printf("load and CPU usage: sampled by 'weir run' or 'weir control'; rules admit when none was heard "
		       "of "
		       "for %u ms\n",
		       settings->controller_timeout_ms);
	if (counts_connections)
		print_connections(image);
	if (has_breakers)
		print_breakers(image);
	if (ruleset->listed_count)
		printf("before any rule: allowed prefixes: %u, denied: %u\n", image->allow_count, image->deny_count);
	putchar('\n');
}

static void print_text(const struct weir_ruleset *ruleset, const struct weir_image *image,
		       const struct weir_image_memory *memory, uint32_t cpus)
{
	print_system_rules(ruleset);
	for (size_t resource = 0; resource < ruleset->resource_count; resource++) {
		printf("resource %s\n", ruleset->resources[resource].name);
		print_match(&ruleset->resources[resource].match);
		print_flow(&ruleset->resources[resource].flow);
		for (size_t i = 0; i < ruleset->rule_count; i++)
			if (ruleset->rules[i].resource == resource)
				print_rule(ruleset, image, i);
	}
	printf("%s%zu resource%s, %zu rule%s; at most %u of the rules meet on one packet\n",
	       ruleset->resource_count ? "\n" : "", ruleset->resource_count, weir_plural(ruleset->resource_count),
	       ruleset->rule_count, weir_plural(ruleset->rule_count), image->packet_rules_max);
	print_policies(&ruleset->settings);
	print_special_settings(ruleset, image);
	print_memory(image, memory, cpus);
}

/* ---- the command ---- */

/* A check is about the file, not about this host: every interface counts as being there, each with a number of
 * its own, and those that are not here are told.
 */
struct fake_interfaces {
	char (*names)[IF_NAMESIZE];
	size_t count;
	struct weir_diag *diag;
};

static uint32_t number_interface(const char *name, void *data)
{
	struct fake_interfaces *interfaces = data;
	char(*slot)[IF_NAMESIZE];

	for (size_t i = 0; i < interfaces->count; i++)
		if (!strcmp(interfaces->names[i], name))
			return i + 1;
	slot = weir_array_add((void **)&interfaces->names, interfaces->count, IF_NAMESIZE);
	if (!slot)
		return 0;
	snprintf(*slot, IF_NAMESIZE, "%s", name);
	interfaces->count++;
	if (!weir_host_find_ifindex(name, NULL))
		weir_diag_warning(interfaces->diag, NULL, NULL, NULL, "there is no interface '%s' on this host now",
				  name);
	return interfaces->count;
}

static int compile(const struct weir_ruleset *ruleset, uint32_t cpus, struct weir_image **ret_image,
		   struct weir_diag *diag)
{
	struct fake_interfaces interfaces = {.diag = diag};
	struct weir_compile_options options = {
		.cpus = cpus,
		.ifindex = number_interface,
		.ifindex_data = &interfaces,
	};
	int err = weir_image_build(ruleset, &options, ret_image, diag);

	free(interfaces.names);
	return err;
}

/* The file is right; whether this host can do it is another question. */
static void warn_of_pace(struct weir_diag *diag)
{
	struct weir_pace_ability ability;

	weir_pace_probe(&ability);
	if (ability.answer != WEIR_PACE_YES)
		weir_diag_warning(diag, NULL, NULL, ability.advice, "%s", ability.text);
}

/* It need not be there where rules are checked, but a slip of the pen would show only when memory is short. */
static void warn_of_memory(const struct weir_settings *settings, struct weir_diag *diag)
{
	uint64_t used_bytes;
	int err = settings->memory_cgroup ? weir_memory_read_once(settings->memory_cgroup, &used_bytes) : 0;

	if (err)
		weir_diag_warning(diag, NULL, NULL,
				  "as long as it cannot, MemoryAdaptive rules are at highMemUsageThreshold",
				  "the memory of cgroup '%s' cannot be read here: %s", settings->memory_cgroup,
				  weir_memory_explain(settings->memory_cgroup, err));
}

/* Of a resource whose packets are TCP's, and more than openings. */
static bool limits_tcp(const struct weir_match *match)
{
	return weir_match_holds_tcp(match) && !match->tcp_flags_count && match->fragments != 1 << WEIR_FRAGMENT_LATER;
}

/* Where a window is full, all of a connection's packets drop until its buckets leave it, and TCP starts anew: the limit
 * holds, and TCP does not come near it (docs/rules.md, Token buckets). That is no mistake: a note, and here alone.
 */
static void note_bytes_of_tcp(const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	const struct weir_ruleset_rule *first = NULL;
	size_t others = 0;

	for (size_t i = 0; i < ruleset->rule_count; i++) {
		const struct weir_ruleset_rule *rule = &ruleset->rules[i];

		if (!rule->counts_bytes || !weir_kind_of(rule)->keeps_window || rule->system ||
		    !limits_tcp(&ruleset->resources[rule->resource].match))
			continue;
		others += first != NULL;
		first = first ?: rule;
	}
	if (first)
		weir_diag_note(diag,
			       "rule '%s'%s limits bytes of TCP by a '%s' window, of which TCP gets 63 to 79 %%; with "
			       "'window: tokens' it gets 92 to 99 %%",
			       first->name, others ? ", as others do," : "", weir_window_names[first->window]);
}

/* What would be loaded goes to stdout, or, for JSON, to *ret_document. */
static int check(char **files, int file_count, const struct check_options *options, json_t **ret_document,
		 struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_image_memory memory;
	int cpus = options->cpus ? (int)options->cpus : weir_host_cpus();
	int err;

	if (cpus < 1)
		return weir_diag_fail(diag, -cpus, "say how many with --cpus", "cannot tell the number of CPUs");
	err = weir_ruleset_read((const char *const *)files, file_count, &ruleset, diag);
	if (err)
		return err;
	/* Both tell all their mistakes. */
	err = compile(ruleset, cpus, &image, diag);
	if (weir_ruleset_check_memory(ruleset, weir_memory_total_bytes(ruleset->settings.memory_cgroup), diag) && !err)
		err = -EINVAL;
	if (err)
		return err;
	if (image->config.paces)
		warn_of_pace(diag);
	warn_of_memory(&ruleset->settings, diag);
	note_bytes_of_tcp(ruleset, diag);
	weir_image_memory(image, cpus, &memory);
	if (options->wants_json) {
		*ret_document = describe(ruleset, image, &memory, cpus);
		return *ret_document ? 0 : weir_diag_fail(diag, ENOMEM, NULL, "cannot describe the rules");
	}
	print_text(ruleset, image, &memory, cpus);
	return weir_flush_results(diag);
}

/* 0 to go on, or the exit code plus one. */
static int parse_options(int argc, char **argv, struct check_options *options)
{
	struct option long_options[WEIR_OPTIONS_MAX + 1];
	char short_options[WEIR_SHORT_OPTIONS_BYTES];
	struct weir_refusal refusal;
	uint64_t cpus;
	int option, exit_code;

	weir_command_list_options(&weir_check_command, long_options, short_options);
	optind = 1;
	while ((option = weir_options_next(&weir_check_command, argc, argv, short_options, long_options)) != -1) {
		exit_code = weir_options_take_terminal(&weir_check_command, option, optarg);
		if (exit_code > 0)
			return exit_code;
		if (exit_code != WEIR_OPTION_IS_ANOTHER)
			continue;
		if (option == 'j') {
			options->wants_json = true;
		} else if (option == 'c' && !weir_parse_number(optarg, 1, WEIR_CPUS_MAX, &cpus, &refusal)) {
			options->cpus = cpus;
		} else if (option == 'c') {
			fprintf(stderr, "weir check: --cpus: %s: %s\n", refusal.message, refusal.hint);
			return WEIR_EXIT_WRONG + 1;
		} else if (option == 'h') {
			weir_command_print_help(&weir_check_command, stdout);
			return WEIR_EXIT_OK + 1;
		} else {
			return WEIR_EXIT_WRONG + 1; /* weir_options_next() has said why */
		}
	}
	if (optind < argc)
		return 0;
	fputs("weir check: which file? 'weir check --help' shows an example\n", stderr);
	return WEIR_EXIT_WRONG + 1;
}

/* The document with all that is to be said of the files, which is then not said on stderr as well. Takes it. */
static int print_json(json_t *document, int err, struct weir_diag *diag)
{
	int printed;

	weir_diag_sort(diag);
	weir_json_add_diag(diag, document);
	weir_diag_free(diag);
	printed = weir_json_print(document, diag);
	return err ?: printed;
}

int weir_cmd_check(int argc, char **argv)
{
	struct check_options options = {};
	struct weir_diag diag = {};
	json_t *document = NULL;
	int err, exit_code = parse_options(argc, argv, &options);

	if (exit_code)
		return exit_code - 1;
	err = check(argv + optind, argc - optind, &options, &document, &diag);
	if (options.wants_json)
		err = print_json(document ?: json_object(), err, &diag);
	return weir_exit_code(err, &diag);
}
