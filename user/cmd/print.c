// SPDX-License-Identifier: GPL-2.0-only
#include "print.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/utf8.h"
#include "base/util.h"
#include "kind/kind.h"
#include "rules/values.h"

const char *const weir_verdict_names[WEIR_VERDICT_COUNT] = {
	[WEIR_VERDICT_PASS] = "pass",
	[WEIR_VERDICT_BLOCK] = "block",
	[WEIR_VERDICT_MALFORMED_PASS] = "malformedPass",
	[WEIR_VERDICT_MALFORMED_DROP] = "malformedDrop",
	[WEIR_VERDICT_UNSUPPORTED_PASS] = "unsupportedPass",
	[WEIR_VERDICT_UNSUPPORTED_DROP] = "unsupportedDrop",
	[WEIR_VERDICT_NON_IP_PASS] = "nonIpPass",
	[WEIR_VERDICT_NON_IP_DROP] = "nonIpDrop",
	[WEIR_VERDICT_UNMATCHED_PASS] = "unmatchedPass",
	[WEIR_VERDICT_UNMATCHED_DROP] = "unmatchedDrop",
	[WEIR_VERDICT_ALLOW] = "allow",
	[WEIR_VERDICT_DENY] = "deny",
	[WEIR_VERDICT_ERROR] = "error",
};

/* ---- tables ---- */

void weir_table_cell(struct weir_table *table, const char *format, ...)
{
	char **cell;
	va_list args;

	cell = table->is_cut ? NULL : weir_array_add((void **)&table->cells, table->cell_count, sizeof(*cell));
	table->is_cut = !cell;
	if (!cell)
		return;
	table->cell_count++;
	va_start(args, format);
	if (vasprintf(cell, format, args) < 0)
		*cell = NULL;
	va_end(args);
}

static int is_right(const struct weir_table *table, size_t column)
{
	return table->headings[column][0] == '>';
}

static const char *heading(const struct weir_table *table, size_t column)
{
	return table->headings[column] + is_right(table, column);
}

/* Characters, not bytes: names are UTF-8. Wide characters are not reckoned with. */
static int text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += !weir_utf8_continues(*text);
	return width;
}

static const char *cell_text(const struct weir_table *table, size_t index)
{
	return table->cells[index] ? table->cells[index] : "";
}

static int column_width(const struct weir_table *table, size_t column)
{
	int widest = text_width(heading(table, column));

	for (size_t i = column; i < table->cell_count; i += table->columns)
		if (text_width(cell_text(table, i)) > widest)
			widest = text_width(cell_text(table, i));
	return widest;
}

static void print_cell(const struct weir_table *table, size_t column, const char *text, int width, FILE *stream)
{
	int padding = width - text_width(text);

	if (is_right(table, column))
		fprintf(stream, "  %*s%s", padding, "", text);
	else if (column + 1 < table->columns)
		fprintf(stream, "  %s%*s", text, padding, "");
	else
		fprintf(stream, "  %s", text);
}

void weir_table_print(const struct weir_table *table, FILE *stream)
{
	int widths[WEIR_TABLE_COLUMNS_MAX] = {};

	assert(table->columns && table->columns <= ARRAY_SIZE(widths));
	for (size_t column = 0; column < table->columns; column++) {
		widths[column] = column_width(table, column);
		print_cell(table, column, heading(table, column), widths[column], stream);
	}
	fputc('\n', stream);
	for (size_t i = 0; i < table->cell_count; i++) {
		size_t column = i % table->columns;

		print_cell(table, column, cell_text(table, i), widths[column], stream);
		if (column + 1 == table->columns)
			fputc('\n', stream);
	}
}

void weir_table_free(struct weir_table *table)
{
	for (size_t i = 0; i < table->cell_count; i++)
		free(table->cells[i]);
	free(table->cells);
	table->cells = NULL;
	table->cell_count = 0;
}

/* ---- words ---- */

const char *weir_format_age(uint64_t age_ns, char words[WEIR_WORDS_BYTES])
{
	uint64_t age_s = age_ns / WEIR_NSEC_PER_SEC;
	unsigned int days = age_s / 86400, hours = age_s / 3600 % 24, minutes = age_s / 60 % 60, seconds = age_s % 60;

	if (days)
		snprintf(words, WEIR_WORDS_BYTES, "%u d %u h", days, hours);
	else if (hours)
		snprintf(words, WEIR_WORDS_BYTES, "%u h %u min", hours, minutes);
	else if (minutes)
		snprintf(words, WEIR_WORDS_BYTES, "%u min %u s", minutes, seconds);
	else
		snprintf(words, WEIR_WORDS_BYTES, "%u s", seconds);
	return words;
}

void weir_format_interval(uint64_t interval_ns, char *text, size_t text_bytes)
{
	uint64_t ms = interval_ns / 1000000;

	if (ms % 3600000 == 0)
		snprintf(text, text_bytes, "%llu h", (unsigned long long)ms / 3600000);
	else if (ms % 60000 == 0)
		snprintf(text, text_bytes, "%llu min", (unsigned long long)ms / 60000);
	else if (ms % 1000 == 0)
		snprintf(text, text_bytes, "%llu s", (unsigned long long)ms / 1000);
	else
		snprintf(text, text_bytes, "%llu ms", (unsigned long long)ms);
}

void weir_format_micro(uint64_t micro, char *text, size_t text_bytes)
{
	unsigned long long whole = micro / WEIR_MICRO, rest = micro % WEIR_MICRO;
	char decimals[8] = "";

	if (rest) {
		snprintf(decimals, sizeof(decimals), ".%06llu", rest % WEIR_MICRO);
		for (size_t end = strlen(decimals); decimals[end - 1] == '0'; end--)
			decimals[end - 1] = '\0';
	}
	snprintf(text, text_bytes, "%llu%s", whole, decimals);
}

/* The same, or of MemoryAdaptive "1000 to 100". */
static void format_threshold(const struct weir_rule_info *rule, char *text, size_t text_bytes)
{
	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		snprintf(text, text_bytes, "%llu to %llu", (unsigned long long)rule->memory.low_units,
			 (unsigned long long)rule->memory.high_units);
	else
		weir_format_micro(rule->threshold_micro, text, text_bytes);
}

const char *weir_format_count(uint64_t threshold_micro, const char *noun, char words[WEIR_WORDS_BYTES])
{
	char threshold[64];

	weir_format_micro(threshold_micro, threshold, sizeof(threshold));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s%s", threshold, noun, threshold_micro == WEIR_MICRO ? "" : "s");
	return words;
}

/* ", then blocked for 1 min", or nothing. */
static void format_penalty(const struct weir_rule_info *rule, char *text, size_t text_bytes)
{
	char first[32], longest[32];

	text[0] = '\0';
	if (!rule->penalty_ms)
		return;
	weir_format_interval(rule->penalty_ms * 1000000ull, first, sizeof(first));
	weir_format_interval(rule->penalty_ms_max * 1000000ull, longest, sizeof(longest));
	if (rule->penalty_ms == rule->penalty_ms_max)
		snprintf(text, text_bytes, ", then blocked for %s", first);
	else
		snprintf(text, text_bytes, ", then blocked for %s to %s", first, longest);
}

const char *weir_format_system(enum weir_system_metric metric, uint64_t trigger_micro, bool is_bbr,
			       char words[WEIR_WORDS_BYTES])
{
	const bool is_sampled = metric == WEIR_SYSTEM_LOAD || metric == WEIR_SYSTEM_CPU_USAGE;
	char trigger[64];

	weir_format_micro(trigger_micro, trigger, sizeof(trigger));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s %s%s%s",
		 weir_system_metric_names[metric < WEIR_SYSTEM_COUNT ? metric : 0], is_sampled ? "above" : "from",
		 trigger, metric == WEIR_SYSTEM_AVG_RT ? " ms" : "", is_bbr ? ", BBR" : "");
	return words;
}

/* ---- circuit breakers ---- */

struct weir_breaker_words weir_breaker_words_of(const struct weir_ruleset_rule *rule)
{
	const struct weir_breaker_fields *fields = &rule->breaker;

	return (struct weir_breaker_words){
		.strategy = fields->strategy,
		.threshold_micro = rule->threshold_micro,
		.interval_ns = fields->interval_ns,
		.retry_ns = fields->retry_ns,
		.max_rt_ns = fields->max_rt_ns,
		.buckets = fields->buckets,
		.min_requests = fields->min_requests,
		.probes = fields->probes,
	};
}

/* Maps are not to be trusted with the place of a name. */
static enum weir_breaker_strategy strategy_of(const struct weir_breaker_terms *terms)
{
	return terms->strategy < WEIR_BREAKER_STRATEGIES ? terms->strategy : WEIR_BREAKER_ERROR_COUNT;
}

struct weir_breaker_words weir_breaker_words_of_info(const struct weir_rule_info *info)
{
	const struct weir_breaker_terms *terms = &info->breaker;

	return (struct weir_breaker_words){
		.strategy = strategy_of(terms),
		.threshold_micro = info->threshold_micro,
		.interval_ns = info->identity.interval_ns,
		.retry_ns = terms->retry_ns,
		.max_rt_ns = terms->max_rt_ns,
		.buckets = terms->buckets,
		.min_requests = terms->min_requests,
		.probes = terms->probes,
	};
}

const char *weir_format_breaker(const struct weir_breaker_words *breaker, char words[WEIR_WORDS_BYTES])
{
	char threshold[WEIR_WORDS_BYTES], interval[32], retry[32], slow[32] = "";

	weir_format_micro(breaker->threshold_micro, threshold, 32);
	weir_format_interval(breaker->interval_ns, interval, sizeof(interval));
	weir_format_interval(breaker->retry_ns, retry, sizeof(retry));
	if (breaker->strategy == WEIR_BREAKER_SLOW_RATIO)
		snprintf(slow, sizeof(slow), " over %llu ms", (unsigned long long)(breaker->max_rt_ns / 1000000));
	snprintf(words, WEIR_WORDS_BYTES, "%s %.32s%s of %u in %s, retry after %s",
		 weir_breaker_strategy_names[breaker->strategy], threshold, slow, breaker->min_requests, interval,
		 retry);
	return words;
}

/* ---- rules ---- */

const char *weir_format_limit(const struct weir_rule_info *rule, char words[WEIR_WORDS_BYTES])
{
	const struct weir_kind *kind = weir_kind_of_info(rule);
	bool is_associated = rule->relation == WEIR_RELATION_ASSOCIATED;
	char threshold[64], interval[32], penalty[96];

	if (rule->system)
		return weir_format_system(rule->system, rule->threshold_micro, rule->is_bbr, words);
	if (kind->is_breaker) {
		const struct weir_breaker_words breaker = weir_breaker_words_of_info(rule);

		return weir_format_breaker(&breaker, words);
	}
	if (kind->noun)
		return weir_format_count(rule->threshold_micro, kind->noun, words);
	format_threshold(rule, threshold, sizeof(threshold));
	weir_format_interval(rule->identity.interval_ns, interval, sizeof(interval));
	format_penalty(rule, penalty, sizeof(penalty));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s per %s%s%s%s%s%s", threshold,
		 rule->identity.counts_bytes ? "bytes" : "packets", interval,
		 rule->strategy == WEIR_STRATEGY_WARM_UP ? ", warming up" : "",
		 kind->lends	? ", lends"
		 : kind->delays ? ", spaced"
				: "",
		 is_associated ? ", of " : "", is_associated ? rule->ref_resource_name : "", penalty);
	return words;
}

/* An address of the key, with its length when that is not whole. */
static const char *format_address(const uint8_t *address, const uint8_t bits[2], int family,
				  char text[WEIR_PREFIX_TEXT_BYTES])
{
	struct weir_prefix prefix = {.family = family, .bits = bits[family == 6]};

	memcpy(prefix.address, address, sizeof(prefix.address));
	return weir_format_prefix(&prefix, text);
}

/* How the fields of a key are printed, by weir_key_field_names. */
enum form { FORM_ADDRESS, FORM_PORT, FORM_PROTOCOL, FORM_NUMBER, FORM_VLAN = FORM_NUMBER };

#define KEY_SHAPE(constant, name, member, part, form)                                                                  \
	{offsetof(struct weir_flow_key, member), sizeof(((struct weir_flow_key *)0)->member), FORM_##form},
static const struct {
	size_t offset, bytes; /* in struct weir_flow_key */
	enum form form;
} key_shapes[WEIR_KEY_FIELD_COUNT] = {WEIR_KEY_FIELDS(KEY_SHAPE)};

/* One that is no address. */
static unsigned int field_number(const struct weir_flow_key *key, enum weir_key_place place)
{
	const uint8_t *at = (const uint8_t *)key + key_shapes[place].offset;
	uint16_t half;
	uint32_t word;

	switch (key_shapes[place].bytes) {
	case sizeof(word):
		memcpy(&word, at, sizeof(word));
		return word;
	case sizeof(half):
		memcpy(&half, at, sizeof(half));
		return key_shapes[place].form == FORM_PORT ? ntohs(half) : half;
	default:
		return *at;
	}
}

/* The value of one field of a key, as text; numbers too. */
static void format_field(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			 enum weir_key_place place, char text[WEIR_PREFIX_TEXT_BYTES])
{
	const uint8_t *bits = place == WEIR_KEY_PLACE_SOURCE ? identity->source_bits : identity->destination_bits;
	const uint8_t *at = (const uint8_t *)key + key_shapes[place].offset;
	const char *name = NULL;

	if (key_shapes[place].form == FORM_ADDRESS) {
		format_address(at, bits, key->family, text);
		return;
	}
	if (key_shapes[place].form == FORM_PROTOCOL)
		name = weir_protocol_name(field_number(key, place));
	if (name)
		snprintf(text, WEIR_PREFIX_TEXT_BYTES, "%s", name);
	else
		snprintf(text, WEIR_PREFIX_TEXT_BYTES, "%u", field_number(key, place));
}

const char *weir_format_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			    char words[WEIR_WORDS_BYTES])
{
	char text[WEIR_PREFIX_TEXT_BYTES];
	size_t used = 0;

	words[0] = '\0';
	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT && used < WEIR_WORDS_BYTES; bit++) {
		if (!(identity->key_fields >> bit & 1))
			continue;
		format_field(identity, key, bit, text);
		used += snprintf(words + used, WEIR_WORDS_BYTES - used, "%s%s %s", used ? ", " : "",
				 weir_key_field_names[bit], text);
	}
	return words;
}

/* ---- JSON ---- */

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

void weir_json_append(json_t **list, json_t *item)
{
	if (!json_array_append_new(*list, item))
		return;
	json_decref(*list);
	*list = NULL;
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
	return fields;
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

json_t *weir_json_rule(const struct weir_rule_info *rule)
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

json_t *weir_json_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key)
{
	json_t *fields = json_object();
	char text[WEIR_PREFIX_TEXT_BYTES];

	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++) {
		const enum form form = key_shapes[bit].form;
		const bool is_number = form == FORM_PORT || form == FORM_NUMBER;

		if (!(identity->key_fields >> bit & 1))
			continue;
		format_field(identity, key, bit, text);
		json_object_set_new(fields, weir_key_field_names[bit],
				    is_number ? json_integer(field_number(key, bit)) : json_string(text));
	}
	return fields;
}

int weir_flush_results(struct weir_diag *diag)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return weir_diag_fail(diag, errno ? errno : EIO, NULL, "cannot print the result");
}

int weir_json_print(json_t *document, struct weir_diag *diag)
{
	/* Six decimals of 2^29 at least, and 2.9 is not 2.8999999999999999. */
	int err = document ? 0 : ENOMEM;

	errno = 0;
	if (document && json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15)))
		err = errno ? errno : ENOMEM;
	json_decref(document);
	if (err)
		return weir_diag_fail(diag, err, NULL, "cannot print the result");
	putchar('\n');
	return weir_flush_results(diag);
}
