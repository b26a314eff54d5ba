// SPDX-License-Identifier: GPL-2.0-only
#include "rules/emit.h"

#include <string.h>

#include "base/util.h"
#include "kind/kind.h"
#include "rules/parse.h"
#include "rules/quantity.h"
#include "rules/scalars.h"

/* ---- settings ---- */

static void write_non_ip_except(struct weir_writer *writer, const struct weir_settings *settings)
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

static void write_timed_parts(struct weir_writer *writer, const struct weir_settings *settings)
{
	if (!settings->timed_part_count)
		return;
	weir_write_map(writer, weir_setting_names[SETTING_TIMED_PARTS]);
	for (size_t i = 0; i < settings->timed_part_count; i++)
		weir_write_number(writer, settings->timed_parts[i].by, settings->timed_parts[i].addresses);
	weir_write_end(writer);
}

static void write_memory(struct weir_writer *writer, const struct weir_settings *settings)
{
	_cleanup_(weir_freep) char *word = NULL;

	if (settings->memory_cgroup && asprintf(&word, "cgroup:%s", settings->memory_cgroup) >= 0)
		weir_write_word(writer, weir_setting_names[SETTING_MEMORY], word);
}

static void write_cluster(struct weir_writer *writer, const struct weir_settings *settings)
{
	weir_write_map(writer, weir_setting_names[SETTING_CLUSTER]);
	for (size_t i = 0; i < WEIR_CLUSTER_FIELDS; i++)
		if (settings->cluster[i])
			weir_write_word(writer, weir_cluster_field_names[i], settings->cluster[i]);
	weir_write_end(writer);
}

static void write_answers(struct weir_writer *writer, const struct weir_settings *settings)
{
	char rate[WEIR_RATE_TEXT_BYTES];

	weir_write_map(writer, weir_setting_names[SETTING_ANSWERS]);
	for (unsigned int i = 0; i < WEIR_ANSWER_BUCKETS; i++)
		if (settings->answer_rates[i])
			weir_write_word(writer, weir_answer_field_names[i],
					weir_format_rate(settings->answer_rates[i] * WEIR_MICRO, WEIR_NSEC_PER_SEC,
							 false, rate));
	weir_write_end(writer);
}

/* `drops`: what malformed and unsupported are by default. */
static void write_settings(struct weir_writer *writer, const struct weir_settings *settings, bool drops)
{
	static void (*const write_own[WEIR_SETTING_COUNT])(struct weir_writer *, const struct weir_settings *) = {
		[SETTING_NON_IP_EXCEPT] = write_non_ip_except,
		[SETTING_MEMORY] = write_memory,
		[SETTING_TIMED_PARTS] = write_timed_parts,
		[SETTING_CLUSTER] = write_cluster,
		[SETTING_ANSWERS] = write_answers,
	};
	struct weir_settings usual = weir_default_settings;

	usual.drop_malformed = usual.drop_unsupported = drops;
	if (settings->derives_connection_flows)
		usual.connection_flows = settings->connection_flows;
	for (enum weir_setting setting = 0; setting < WEIR_SETTING_COUNT; setting++) {
		const struct weir_field_row *row = &weir_setting_rows[setting];

		if (write_own[setting])
			write_own[setting](writer, settings);
		else if (weir_member_value(row, settings) != weir_member_value(row, &usual))
			weir_write_member(writer, row, settings);
	}
}

/* ---- matches: fields that are not ranges of numbers, by their members in struct weir_match ---- */

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

static void write_directions(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	if (match->directions == WEIR_MATCHES_BOTH)
		weir_write_word(writer, key, "both");
	else if (match->directions)
		weir_write_word(writer, key, match->directions & WEIR_MATCHES_OUT ? "out" : "in");
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

static void write_addresses(struct weir_writer *writer, const char *key, const struct weir_prefix *prefixes,
			    size_t count, const struct weir_set_use *uses, size_t use_count)
{
	char text[WEIR_PREFIX_TEXT_BYTES], use[WEIR_SET_USE_BYTES];

	weir_write_inline_list(writer, key);
	for (size_t i = 0; i < count; i++)
		weir_write_word(writer, NULL, weir_format_prefix(&prefixes[i], text));
	for (size_t i = 0; i < use_count; i++)
		weir_write_word(writer, NULL, weir_format_set_use(&uses[i], use));
	weir_write_end(writer);
}

static void write_source(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	write_addresses(writer, key, match->source, match->source_count, match->source_sets, match->source_set_count);
}

static void write_destination(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	write_addresses(writer, key, match->destination, match->destination_count, match->destination_sets,
			match->destination_set_count);
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

static void write_except(struct weir_writer *writer, const char *key, const struct weir_match *match)
{
	weir_write_inline_list(writer, key);
	for (size_t i = 0; i < match->except_count; i++)
		weir_write_word(writer, NULL, match->except[i].name);
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

void weir_write_match(struct weir_writer *writer, const struct weir_match *match)
{
#define WRITE_SPECIAL(constant, name, member, part) write_##member(writer, name, match);
#define WRITE_RANGES(constant, name, member, highest, none, who)                                                       \
	write_ranges(writer, name, match->member, match->member##_count);
	WEIR_MATCH_FIELDS(WRITE_SPECIAL, WRITE_RANGES)
}

/* ---- resources ---- */

static void write_resource(struct weir_writer *writer, const struct weir_ruleset_resource *resource)
{
	weir_write_word(writer, "name", resource->name);
	weir_write_map(writer, "match");
	weir_write_match(writer, &resource->match);
	weir_write_end(writer);
	weir_write_key(writer, "flow", &resource->flow);
	if (resource->is_prioritized)
		weir_write_word(writer, "prioritized", "true");
}

/* ---- lists of them ---- */

enum section { SECTION_SYSTEM, SECTION_RULES, SECTION_BREAKERS };

static enum section section_of(const struct weir_ruleset_rule *rule)
{
	if (rule->system)
		return SECTION_SYSTEM;
	return rule->metric == WEIR_METRIC_REQUESTS ? SECTION_BREAKERS : SECTION_RULES;
}

static void write_rule(struct weir_writer *writer, const struct weir_ruleset *ruleset,
		       const struct weir_ruleset_rule *rule)
{
	const struct weir_shown_rule shown = weir_shown_rule_of(ruleset, rule);

	weir_write_rule(writer, &shown, WEIR_RULE_FILE);
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

/* Its prefixes, or else the sets in it; other prefixes are then in no text. */
static void write_listed(struct weir_writer *writer, const struct weir_ruleset *ruleset, bool denies,
			 bool with_prefixes)
{
	char text[WEIR_PREFIX_TEXT_BYTES], use[WEIR_SET_USE_BYTES];

	weir_write_list(writer, denies ? "deny" : "allow");
	for (size_t i = 0; with_prefixes && i < ruleset->listed_count; i++)
		if (ruleset->listed[i].denies == denies)
			weir_write_word(writer, NULL, weir_format_prefix(&ruleset->listed[i].prefix, text));
	for (size_t i = 0; !with_prefixes && i < ruleset->listed_set_count; i++)
		if (ruleset->listed_sets[i].denies == denies)
			weir_write_word(writer, NULL, weir_format_set_use(&ruleset->listed_sets[i].use, use));
	weir_write_end(writer);
}

/* With its prefixes, or else with the name of its file; what is in the rule file is then in no text. */
static void write_set(struct weir_writer *writer, const struct weir_set *set, bool with_prefixes)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	weir_write_map(writer, set->name);
	if (!with_prefixes && set->file)
		weir_write_word(writer, "file", set->file);
	if (set->has_labels)
		weir_write_truth(writer, "labels", true);
	weir_write_list(writer, "prefixes");
	for (size_t i = 0; with_prefixes && i < set->entry_count; i++) {
		const struct weir_set_entry *entry = &set->entries[i];

		weir_format_prefix(&entry->prefix, text);
		if (entry->label == WEIR_NO_LABEL) {
			weir_write_word(writer, NULL, text);
			continue;
		}
		weir_write_map(writer, NULL);
		weir_write_word(writer, "prefix", text);
		weir_write_word(writer, "label", set->labels[entry->label].text);
		if (set->labels[entry->label].weight)
			weir_write_number(writer, "weight", set->labels[entry->label].weight);
		weir_write_end(writer);
	}
	weir_write_end(writer);
	if (with_prefixes ? !set->entry_count : !set->file)
		weir_write_empty_list(writer, "prefixes");
	weir_write_end(writer);
}

/* ---- the exported functions ---- */

void weir_ruleset_emit(const struct weir_ruleset *ruleset, enum weir_form form, bool with_lists, FILE *stream)
{
	struct weir_writer writer = {.stream = stream, .form = form, .names_sets = !with_lists};

	weir_write_document(&writer);
	weir_write_map(&writer, "settings");
	write_settings(&writer, &ruleset->settings, !weir_ruleset_is_out_only(ruleset));
	weir_write_end(&writer);
	weir_write_map(&writer, "sets");
	for (size_t i = 0; i < ruleset->set_count; i++)
		write_set(&writer, &ruleset->sets[i], with_lists);
	weir_write_end(&writer);
	for (int denies = 0; denies <= 1; denies++)
		write_listed(&writer, ruleset, denies, with_lists);
	weir_write_list(&writer, "resources");
	for (size_t i = 0; i < ruleset->resource_count; i++) {
		weir_write_map(&writer, NULL);
		write_resource(&writer, &ruleset->resources[i]);
		weir_write_end(&writer);
	}
	weir_write_end(&writer);
	for (enum section section = SECTION_SYSTEM; section <= SECTION_BREAKERS; section++)
		write_section(&writer, ruleset, section);
	if (!ruleset->rule_count) /* an empty file is a mistake */
		weir_write_empty_list(&writer, "rules");
	weir_write_document_end(&writer);
}

void weir_emit_part(const struct weir_ruleset *ruleset, enum weir_part part, size_t place, FILE *stream)
{
	struct weir_writer writer = {.stream = stream};

	weir_write_document(&writer);
	if (part == WEIR_PART_SETTINGS)
		write_settings(&writer, &ruleset->settings, true);
	else if (part == WEIR_PART_RESOURCE)
		write_resource(&writer, &ruleset->resources[place]);
	else
		write_rule(&writer, ruleset, &ruleset->rules[place]);
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
