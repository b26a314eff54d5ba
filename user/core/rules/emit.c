// SPDX-License-Identifier: GPL-2.0-only
#include "rules/emit.h"

#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/breaker.h"
#include "rules/parse.h"
#include "rules/rule.h"
#include "rules/values.h"

#define NSEC_PER_MSEC 1000000ull

/* ---- settings ---- */

static void write_policy(struct weir_writer *writer, enum weir_setting setting, bool drops, bool drops_by_default)
{
	if (drops != drops_by_default)
		weir_write_word(writer, weir_setting_names[setting], drops ? "drop" : "pass");
}

static void write_setting(struct weir_writer *writer, enum weir_setting setting, uint64_t number, uint64_t by_default)
{
	if (number != by_default)
		weir_write_number(writer, weir_setting_names[setting], number);
}

static void write_memory(struct weir_writer *writer, const char *cgroup)
{
	_cleanup_(weir_freep) char *word = NULL;

	if (cgroup && asprintf(&word, "cgroup:%s", cgroup) >= 0)
		weir_write_word(writer, weir_setting_names[SETTING_MEMORY], word);
}

static void write_except(struct weir_writer *writer, const struct weir_settings *settings)
{
	if (!settings->non_ip_except_count)
		return;
	weir_write_inline_list(writer, weir_setting_names[SETTING_NON_IP_EXCEPT]);
	for (size_t i = 0; i < settings->non_ip_except_count; i++) {
		char text[WEIR_ETHERTYPE_TEXT_BYTES];

		weir_write_word(writer, NULL, weir_format_ethertypes(&settings->non_ip_except[i], text));
	}
	weir_write_end(writer);
}

static void write_cluster_settings(struct weir_writer *writer, char *const *fields)
{
	weir_write_map(writer, weir_setting_names[SETTING_CLUSTER]);
	for (size_t i = 0; i < WEIR_CLUSTER_FIELDS; i++)
		if (fields[i])
			weir_write_word(writer, weir_cluster_field_names[i], fields[i]);
	weir_write_end(writer);
}

static void write_settings(struct weir_writer *writer, const struct weir_settings *settings)
{
	const struct weir_settings *usual = &weir_default_settings;

	write_setting(writer, SETTING_FLOWS_PER_CPU, settings->flows_per_cpu, usual->flows_per_cpu);
	write_policy(writer, SETTING_MALFORMED, settings->drop_malformed, usual->drop_malformed);
	write_policy(writer, SETTING_UNSUPPORTED, settings->drop_unsupported, usual->drop_unsupported);
	write_policy(writer, SETTING_NON_IP, settings->drop_non_ip, usual->drop_non_ip);
	write_except(writer, settings);
	write_policy(writer, SETTING_UNMATCHED, settings->drop_unmatched, usual->drop_unmatched);
	if (settings->observes)
		weir_write_word(writer, weir_setting_names[SETTING_MODE], "observe");
	write_memory(writer, settings->memory_cgroup);
	if (settings->paces)
		weir_write_word(writer, weir_setting_names[SETTING_THROTTLING], "pace");
	write_setting(writer, SETTING_CONTROLLER_TIMEOUT, settings->controller_timeout_ms,
		      usual->controller_timeout_ms);
	write_setting(writer, SETTING_OCCUPY_TIMEOUT, settings->occupy_timeout_ms, usual->occupy_timeout_ms);
	write_setting(writer, SETTING_TIMED_ENTRIES, settings->timed_entries, usual->timed_entries);
	write_cluster_settings(writer, settings->cluster);
	write_setting(writer, SETTING_CONNECTIONS, settings->connections, usual->connections);
	if (!settings->derives_connection_flows)
		weir_write_number(writer, weir_setting_names[SETTING_CONNECTION_FLOWS], settings->connection_flows);
	for (unsigned int i = 0; i < WEIR_CONNECTION_CLASSES; i++)
		write_setting(writer, SETTING_CONNECTION_TIMEOUTS + i, settings->connection_timeout_ms[i],
			      usual->connection_timeout_ms[i]);
}

/* ---- matches: the fields that are no ranges of numbers, by their members of struct weir_match ---- */

static void write_families(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	weir_write_inline_list(writer, key);
	if (match->families & 1)
		weir_write_word(writer, NULL, "ipv4");
	if (match->families & 2)
		weir_write_word(writer, NULL, "ipv6");
	weir_write_end(writer);
}

static void write_fragments(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	static const char *const names[WEIR_FRAGMENT_KINDS] = {"none", "first", "later"};

	weir_write_inline_list(writer, key);
	for (int i = 0; i < WEIR_FRAGMENT_KINDS; i++)
		if (match->fragments >> i & 1)
			weir_write_word(writer, NULL, names[i]);
	weir_write_end(writer);
}

static void write_protocol(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	weir_write_inline_list(writer, key);
	for (unsigned int number = 0; number < 256; number++) {
		const char *name = weir_protocol_name(number);

		if (!(match->protocol[number / 8] >> number % 8 & 1))
			continue;
		if (name)
			weir_write_word(writer, NULL, name);
		else
			weir_write_number(writer, NULL, number);
	}
	weir_write_end(writer);
}

static void write_prefixes(struct weir_writer *writer, const char *key, const struct weir_prefix *prefixes,
			   size_t count)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	weir_write_inline_list(writer, key);
	for (size_t i = 0; i < count; i++)
		weir_write_word(writer, NULL, weir_format_prefix(&prefixes[i], text));
	weir_write_end(writer);
}

static void write_source(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	write_prefixes(writer, key, match->source, match->source_count);
}

static void write_destination(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	write_prefixes(writer, key, match->destination, match->destination_count);
}

static void write_flags(struct weir_writer *writer, const struct weir_tcp_flags *flags)
{
	char text[WEIR_TCP_FLAG_COUNT * 5 + 1], *out = text;

	for (int bit = 0; bit < WEIR_TCP_FLAG_COUNT; bit++)
		if ((flags->set | flags->clear) >> bit & 1)
			out += sprintf(out, "%s%s%s", out == text ? "" : ",", flags->clear >> bit & 1 ? "!" : "",
				       weir_tcp_flag_names[bit]);
	weir_write_word(writer, NULL, text);
}

static void write_tcp_flags(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	weir_write_inline_list(writer, key);
	for (size_t i = 0; i < match->tcp_flags_count; i++)
		write_flags(writer, &match->tcp_flags[i]);
	weir_write_end(writer);
}

static void write_interface(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	weir_write_inline_list(writer, key);
	for (size_t i = 0; i < match->interface_count; i++)
		weir_write_word(writer, NULL, match->interface[i]);
	weir_write_end(writer);
}

static void write_ranges(struct weir_writer *writer, const char *key, const struct weir_range *ranges, size_t count)
{
	char text[24];

	weir_write_inline_list(writer, key);
	for (size_t i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%u-%u", ranges[i].low, ranges[i].high);
		if (ranges[i].low == ranges[i].high)
			weir_write_number(writer, NULL, ranges[i].low);
		else
			weir_write_word(writer, NULL, text);
	}
	weir_write_end(writer);
}

static void write_match(struct weir_writer *writer, const struct weir_match *match)
{
	weir_write_map(writer, "match");
#define WRITE_SPECIAL(constant, name, member, part) write_##member(writer, name, match);
#define WRITE_RANGES(constant, name, member, highest, none, who)                                                       \
	write_ranges(writer, name, match->member, match->member##_count);
	WEIR_MATCH_FIELDS(WRITE_SPECIAL, WRITE_RANGES)
	weir_write_end(writer);
}

/* ---- resources ---- */

static void write_key_field(struct weir_writer *writer, const struct weir_flow *flow, int place)
{
	const uint32_t field = 1u << place;
	const uint8_t *bits = field == WEIR_KEY_SOURCE	      ? flow->source_bits
			      : field == WEIR_KEY_DESTINATION ? flow->destination_bits
							      : NULL;
	char text[64];

	if (bits && (bits[0] != 32 || bits[1] != 128))
		snprintf(text, sizeof(text), "%s/%u/%u", weir_key_field_names[place], bits[0], bits[1]);
	else
		snprintf(text, sizeof(text), "%s", weir_key_field_names[place]);
	weir_write_word(writer, NULL, text);
}

static void write_key(struct weir_writer *writer, const char *field, const struct weir_flow *flow)
{
	weir_write_inline_list(writer, field);
	for (int place = 0; place < WEIR_KEY_FIELD_COUNT; place++)
		if (flow->fields >> place & 1)
			write_key_field(writer, flow, place);
	weir_write_end(writer);
}

static void write_resource(struct weir_writer *writer, const struct weir_ruleset_resource *resource)
{
	weir_write_word(writer, "name", resource->name);
	write_match(writer, &resource->match);
	write_key(writer, "flow", &resource->flow);
	if (resource->is_prioritized)
		weir_write_word(writer, "prioritized", "true");
}

/* ---- rules ---- */

static void write_field(struct weir_writer *writer, enum weir_rule_field field, uint64_t number)
{
	weir_write_number(writer, weir_rule_fields[field], number);
}

/* By their values and not by their use: the compiler sees the values, whatever they are good for. */
static void write_window(struct weir_writer *writer, const struct weir_ruleset_rule *rule)
{
	write_field(writer, RULE_INTERVAL, rule->interval_ns / NSEC_PER_MSEC);
	if (rule->samples != WEIR_SAMPLES_MAX)
		write_field(writer, RULE_SAMPLES, rule->samples);
	if (rule->window != WEIR_WINDOW_LEAP)
		weir_write_word(writer, weir_rule_fields[RULE_WINDOW], weir_window_names[rule->window]);
	if (rule->burst_micro)
		weir_write_micro(writer, weir_rule_fields[RULE_BURST], rule->burst_micro);
	if (rule->has_burst_beyond)
		weir_write_micro(writer, weir_rule_fields[RULE_BURST_COUNT], rule->burst_beyond_micro);
	if (rule->counts_bytes)
		weir_write_word(writer, weir_rule_fields[RULE_UNIT], "bytes");
}

static void write_strategy(struct weir_writer *writer, const struct weir_ruleset_rule *rule)
{
	if (rule->strategy != WEIR_STRATEGY_DIRECT)
		weir_write_word(writer, weir_rule_fields[RULE_STRATEGY], weir_strategy_names[rule->strategy]);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP) {
		write_field(writer, RULE_WARM_UP_PERIOD, rule->warm_up.period_s);
		write_field(writer, RULE_COLD_FACTOR, rule->warm_up.cold_factor);
	}
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE) {
		write_field(writer, RULE_LOW_USAGE, rule->memory.low_units);
		write_field(writer, RULE_HIGH_USAGE, rule->memory.high_units);
		write_field(writer, RULE_LOW_MARK, rule->memory.low_mark_bytes);
		write_field(writer, RULE_HIGH_MARK, rule->memory.high_mark_bytes);
	}
}

static void write_behavior(struct weir_writer *writer, const struct weir_ruleset *ruleset,
			   const struct weir_ruleset_rule *rule)
{
	if (rule->behavior != WEIR_BEHAVIOR_REJECT)
		weir_write_word(writer, weir_rule_fields[RULE_BEHAVIOR], weir_behavior_names[rule->behavior]);
	if (rule->queueing_ms_max)
		write_field(writer, RULE_MAX_QUEUEING, rule->queueing_ms_max);
	if (rule->relation != WEIR_RELATION_CURRENT)
		weir_write_word(writer, weir_rule_fields[RULE_RELATION], weir_relation_names[rule->relation]);
	if (rule->ref_resource != WEIR_NO_RESOURCE)
		weir_write_word(writer, weir_rule_fields[RULE_REF_RESOURCE],
				ruleset->resources[rule->ref_resource].name);
	if (rule->penalty_ms)
		write_field(writer, RULE_BLOCK_DURATION, rule->penalty_ms);
	if (rule->penalty_ms_max != rule->penalty_ms)
		write_field(writer, RULE_BLOCK_DURATION_MAX, rule->penalty_ms_max);
}

static void write_overrides(struct weir_writer *writer, const struct weir_ruleset_rule *rule)
{
	const char *field = rule->override_field == WEIR_KEY_SOURCE ? "source" : "destination";
	char text[WEIR_PREFIX_TEXT_BYTES];

	weir_write_list(writer, weir_rule_fields[RULE_OVERRIDES]);
	for (size_t i = 0; i < rule->override_count; i++) {
		weir_write_map(writer, NULL);
		weir_write_word(writer, field, weir_format_prefix(&rule->overrides[i].prefix, text));
		weir_write_micro(writer, "threshold", rule->overrides[i].threshold_micro);
		weir_write_end(writer);
	}
	weir_write_end(writer);
}

static void write_cluster(struct weir_writer *writer, const struct weir_ruleset_rule *rule)
{
	if (!rule->cluster)
		return;
	weir_write_word(writer, weir_rule_fields[RULE_CLUSTER_MODE], "true");
	weir_write_map(writer, weir_rule_fields[RULE_CLUSTER_CONFIG]);
	weir_write_word(writer, "thresholdType", weir_cluster_type_names[rule->cluster - WEIR_CLUSTER_AVG_LOCAL]);
	if (!rule->falls_back)
		weir_write_word(writer, "fallbackToLocalWhenFail", "false");
	weir_write_end(writer);
}

static void write_limit(struct weir_writer *writer, const struct weir_ruleset *ruleset,
			const struct weir_ruleset_rule *rule)
{
	const struct weir_kind *kind = weir_kind_of(rule);

	weir_write_word(writer, weir_rule_fields[RULE_NAME], rule->name);
	weir_write_word(writer, weir_rule_fields[RULE_RESOURCE], ruleset->resources[rule->resource].name);
	if (rule->has_own_key && rule->own_key.fields)
		write_key(writer, weir_rule_fields[RULE_PER], &rule->own_key);
	else if (rule->has_own_key)
		weir_write_word(writer, weir_rule_fields[RULE_PER], "all");
	if (kind->metric_name)
		weir_write_word(writer, weir_rule_fields[RULE_METRIC], kind->metric_name);
	if (rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE)
		weir_write_micro(writer, weir_rule_fields[RULE_THRESHOLD], rule->threshold_micro);
	if (kind->has_interval)
		write_window(writer, rule);
	write_strategy(writer, rule);
	write_behavior(writer, ruleset, rule);
	if (rule->observes)
		weir_write_word(writer, weir_rule_fields[RULE_MODE], "observe");
	write_cluster(writer, rule);
	if (rule->aggregates)
		weir_write_word(writer, weir_rule_fields[RULE_WHEN_FULL], "aggregate");
	write_overrides(writer, rule);
}

/* ---- circuit breakers, system rules ---- */

static void write_breaker(struct weir_writer *writer, const struct weir_ruleset *ruleset,
			  const struct weir_ruleset_rule *rule)
{
	const char *const *names = weir_breaker_field_names;
	const struct weir_breaker_fields *fields = &rule->breaker;

	weir_write_word(writer, names[WEIR_BREAKER_NAME], rule->name);
	weir_write_word(writer, names[WEIR_BREAKER_RESOURCE], ruleset->resources[rule->resource].name);
	weir_write_word(writer, names[WEIR_BREAKER_STRATEGY], weir_breaker_strategy_names[fields->strategy]);
	weir_write_micro(writer, names[WEIR_BREAKER_THRESHOLD], rule->threshold_micro);
	weir_write_number(writer, names[WEIR_BREAKER_RETRY], fields->retry_ns / NSEC_PER_MSEC);
	weir_write_number(writer, names[WEIR_BREAKER_MIN_REQUESTS], fields->min_requests);
	weir_write_number(writer, names[WEIR_BREAKER_INTERVAL], fields->interval_ns / NSEC_PER_MSEC);
	if (fields->buckets != 1)
		weir_write_number(writer, names[WEIR_BREAKER_BUCKETS], fields->buckets);
	if (fields->max_rt_ns)
		weir_write_number(writer, names[WEIR_BREAKER_MAX_RT], fields->max_rt_ns / NSEC_PER_MSEC);
	if (fields->probes)
		weir_write_number(writer, names[WEIR_BREAKER_PROBES], fields->probes);
	if (rule->observes)
		weir_write_word(writer, names[WEIR_BREAKER_MODE], "observe");
}

static void write_system(struct weir_writer *writer, const struct weir_ruleset_rule *rule)
{
	weir_write_word(writer, "name", rule->name);
	weir_write_word(writer, "metricType", weir_system_metric_names[rule->system]);
	weir_write_micro(writer, "triggerCount", rule->threshold_micro);
	if (rule->is_bbr)
		weir_write_word(writer, "strategy", "BBR");
	if (rule->observes)
		weir_write_word(writer, "mode", "observe");
}

/* ---- lists of them ---- */

enum section { SECTION_SYSTEM, SECTION_RULES, SECTION_BREAKERS };

static enum section section_of(const struct weir_ruleset_rule *rule)
{
	if (rule->system)
		return SECTION_SYSTEM;
	return weir_kind_of(rule)->is_breaker ? SECTION_BREAKERS : SECTION_RULES;
}

static void write_rule(struct weir_writer *writer, const struct weir_ruleset *ruleset,
		       const struct weir_ruleset_rule *rule)
{
	if (section_of(rule) == SECTION_SYSTEM)
		write_system(writer, rule);
	else if (section_of(rule) == SECTION_BREAKERS)
		write_breaker(writer, ruleset, rule);
	else
		write_limit(writer, ruleset, rule);
}

static void write_section(struct weir_writer *writer, const struct weir_ruleset *ruleset, enum section section)
{
	static const char *const names[] = {"systemRules", "rules", "circuitBreakers"};

	weir_write_list(writer, names[section]);
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		if (section_of(&ruleset->rules[i]) != section)
			continue;
		weir_write_map(writer, NULL);
		write_rule(writer, ruleset, &ruleset->rules[i]);
		weir_write_end(writer);
	}
	weir_write_end(writer);
}

static void write_listed(struct weir_writer *writer, const struct weir_ruleset *ruleset, bool denies)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	weir_write_list(writer, denies ? "deny" : "allow");
	for (size_t i = 0; i < ruleset->listed_count; i++)
		if (ruleset->listed[i].denies == denies)
			weir_write_word(writer, NULL, weir_format_prefix(&ruleset->listed[i].prefix, text));
	weir_write_end(writer);
}

/* ---- the contract ---- */

void weir_ruleset_emit(const struct weir_ruleset *ruleset, enum weir_form form, bool with_lists, FILE *stream)
{
	struct weir_writer writer = {.stream = stream, .form = form};

	weir_write_document(&writer);
	weir_write_map(&writer, "settings");
	write_settings(&writer, &ruleset->settings);
	weir_write_end(&writer);
	for (int denies = 0; with_lists && denies <= 1; denies++)
		write_listed(&writer, ruleset, denies);
	weir_write_list(&writer, "resources");
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		weir_write_map(&writer, NULL);
		write_resource(&writer, &ruleset->resources[i]);
		weir_write_end(&writer);
	}
	weir_write_end(&writer);
	for (enum section section = SECTION_SYSTEM; section <= SECTION_BREAKERS; section++)
		write_section(&writer, ruleset, section);
	if (!ruleset->rule_count) /* a file without any word is a mistake */
		weir_write_empty_list(&writer, "rules");
	weir_write_document_end(&writer);
}

void weir_emit_settings(const struct weir_settings *settings, FILE *stream)
{
	struct weir_writer writer = {.stream = stream};

	weir_write_document(&writer);
	write_settings(&writer, settings);
	weir_write_document_end(&writer);
}

void weir_emit_resource(const struct weir_ruleset_resource *resource, FILE *stream)
{
	struct weir_writer writer = {.stream = stream};

	weir_write_document(&writer);
	write_resource(&writer, resource);
	weir_write_document_end(&writer);
}

void weir_emit_rule(const struct weir_ruleset *ruleset, const struct weir_ruleset_rule *rule, FILE *stream)
{
	struct weir_writer writer = {.stream = stream};

	weir_write_document(&writer);
	write_rule(&writer, ruleset, rule);
	weir_write_document_end(&writer);
}

char *weir_ruleset_text(const struct weir_ruleset *ruleset, bool with_lists)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);
	bool is_whole;

	if (!stream)
		return NULL;
	weir_ruleset_emit(ruleset, WEIR_FORM_YAML, with_lists, stream);
	is_whole = !ferror(stream);
	if (fclose(stream) || !is_whole) {
		free(text);
		return NULL;
	}
	return text;
}
