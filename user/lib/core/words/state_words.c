// SPDX-License-Identifier: GPL-2.0-only
#include "words/state_words.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/scalars.h"
#include "tables/rule_kind.h"
#include "words/json.h"

/* ---- flow keys ---- */

/* Format an address of the key, with its length if that is not the full one. */
static const char *format_address(const uint8_t *address, const uint8_t bits[2], int family,
				  char text[WEIR_PREFIX_TEXT_BYTES])
{
	struct weir_prefix prefix = {.family = family, .bits = bits[family == 6]};

	memcpy(prefix.address, address, sizeof(prefix.address));
	return weir_format_prefix(&prefix, text);
}

/* How the fields of a key are printed, by weir_key_field_names. */
enum form { FORM_ADDRESS, FORM_PORT, FORM_PROTOCOL, FORM_NUMBER, FORM_VLAN = FORM_NUMBER };

#define VALUE_BYTES (WEIR_LABEL_BYTES > WEIR_PREFIX_TEXT_BYTES ? WEIR_LABEL_BYTES : WEIR_PREFIX_TEXT_BYTES)

#define KEY_SHAPE(constant, name, member, part, form)                                                                  \
	{offsetof(struct weir_flow_key, member), sizeof(((struct weir_flow_key *)0)->member), FORM_##form},
static const struct {
	size_t offset, bytes; /* in struct weir_flow_key */
	enum form form;
} key_shapes[WEIR_KEY_FIELD_COUNT] = {WEIR_KEY_FIELDS(KEY_SHAPE)};

/* The value of a field that is not an address. */
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

const char *weir_format_key_field(uint32_t key_fields, int place, const struct weir_key_labels *labels,
				  char text[WEIR_KEY_FIELD_BYTES])
{
	const char *name = weir_key_field_name(key_fields, place);

	if (!(WEIR_KEY_LABEL_ENDS(key_fields) >> place & 1))
		return name;
	snprintf(text, WEIR_KEY_FIELD_BYTES, "%s@%s", name, weir_key_set_name(labels, key_fields, place));
	return text;
}

/* Format the value of one field of a key as text, even if it is a number. */
static void format_field(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			 const char *interface, const struct weir_key_labels *labels, enum weir_key_place place,
			 char text[VALUE_BYTES])
{
	const uint8_t *bits = place == WEIR_KEY_PLACE_SOURCE ? identity->source_bits : identity->destination_bits;
	const uint8_t *at = (const uint8_t *)key + key_shapes[place].offset;
	char label[WEIR_LABEL_BYTES];
	const char *name = NULL;
	uint64_t hash;

	if (WEIR_KEY_LABEL_ENDS(identity->key_fields) >> place & 1) {
		memcpy(&hash, at, sizeof(hash));
		snprintf(text, VALUE_BYTES, "%s", weir_label_text(labels, hash, label));
		return;
	}
	if (key_shapes[place].form == FORM_ADDRESS) {
		format_address(at, bits, key->family, text);
		return;
	}
	if (key_shapes[place].form == FORM_PROTOCOL)
		name = weir_protocol_name(field_number(key, place));
	if (place == WEIR_KEY_PLACE_INTERFACE)
		name = interface;
	if (name)
		snprintf(text, WEIR_PREFIX_TEXT_BYTES, "%s", name);
	else
		snprintf(text, WEIR_PREFIX_TEXT_BYTES, "%s%u", place == WEIR_KEY_PLACE_INTERFACE ? "if" : "",
			 field_number(key, place));
}

const char *weir_format_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key,
			    const char *interface, const struct weir_key_labels *labels, char words[WEIR_WORDS_BYTES])
{
	char text[VALUE_BYTES], field[WEIR_KEY_FIELD_BYTES];
	size_t used = 0;

	words[0] = '\0';
	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT && used < WEIR_WORDS_BYTES; bit++) {
		if (!(identity->key_fields >> bit & 1))
			continue;
		format_field(identity, key, interface, labels, bit, text);
		used += snprintf(words + used, WEIR_WORDS_BYTES - used, "%s%s %s", used ? ", " : "",
				 weir_format_key_field(identity->key_fields, bit, labels, field), text);
	}
	return words;
}

json_t *weir_json_key(const struct weir_rule_identity *identity, const struct weir_flow_key *key, const char *interface,
		      const struct weir_key_labels *labels)
{
	json_t *fields = json_object();
	char text[VALUE_BYTES], field[WEIR_KEY_FIELD_BYTES];

	for (int bit = 0; bit < WEIR_KEY_FIELD_COUNT; bit++) {
		const enum form form = key_shapes[bit].form;
		const bool is_number = form == FORM_PORT || (form == FORM_NUMBER && bit != WEIR_KEY_PLACE_INTERFACE);

		if (!(identity->key_fields >> bit & 1))
			continue;
		format_field(identity, key, interface, labels, bit, text);
		json_object_set_new(fields, weir_format_key_field(identity->key_fields, bit, labels, field),
				    is_number ? json_integer(field_number(key, bit)) : weir_json_text(text));
	}
	return fields;
}

/* ---- circuit breakers ---- */

static const char *format_value(const struct weir_breaker_view *view, char words[WEIR_WORDS_BYTES])
{
	if (!view->requests)
		return "-"; /* it has not been evaluated yet */
	snprintf(words, WEIR_WORDS_BYTES, "%g (%llu of %llu)", weir_breaker_value_micro(view) / (double)WEIR_MICRO,
		 (unsigned long long)view->bad, (unsigned long long)view->requests);
	return words;
}

void weir_describe_breaker(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_breaker_view *view = record;
	char words[WEIR_WORDS_BYTES];

	WEIR_FIGURE(line, "state", "state", json_string(weir_breaker_kind_names[view->kind]), "%s",
		    weir_format_breaker_state(view, words));
	WEIR_FIELD(line, "leftSeconds", json_real(view->left_ns / 1e9));
	WEIR_FIELD(line, "requests", json_integer(view->requests));
	WEIR_FIELD(line, "bad", json_integer(view->bad));
	WEIR_FIGURE(line, "value", ">value",
		    view->requests ? weir_json_threshold(weir_breaker_value_micro(view)) : json_null(), "%s",
		    format_value(view, words));
	WEIR_COUNT(line, "changes", ">changes", view->changes);
}

void weir_describe_breaker_sum(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_breaker_sum *sum = record;
	char words[WEIR_WORDS_BYTES];

	if (!sum->has_flows) {
		weir_describe_breaker(line, context, &sum->lone);
		return;
	}
	WEIR_FIELD(line, "closed", json_integer(sum->count[WEIR_BREAKER_CLOSED]));
	WEIR_FIELD(line, "open", json_integer(sum->count[WEIR_BREAKER_OPEN]));
	WEIR_FIELD(line, "halfOpen", json_integer(sum->count[WEIR_BREAKER_HALF_OPEN]));
	WEIR_CELL(line, "state", "%s", weir_format_breaker_sum(sum, words));
	WEIR_CELL(line, ">value", "-");
	WEIR_COUNT(line, "changes", ">changes", sum->changes);
}

const char *weir_breaker_kind_word(enum weir_breaker_kind kind)
{
	return kind == WEIR_BREAKER_HALF_OPEN ? "half-open" : weir_breaker_kind_names[kind];
}

const char *weir_format_breaker_state(const struct weir_breaker_view *view, char words[WEIR_WORDS_BYTES])
{
	if (view->kind == WEIR_BREAKER_OPEN && view->left_ns)
		snprintf(words, WEIR_WORDS_BYTES, "open, retry in %.3f s", view->left_ns / 1e9);
	else if (view->kind == WEIR_BREAKER_OPEN)
		snprintf(words, WEIR_WORDS_BYTES, "open, the next request probes");
	else
		snprintf(words, WEIR_WORDS_BYTES, "%s", weir_breaker_kind_word(view->kind));
	return words;
}

const char *weir_format_breaker_sum(const struct weir_breaker_sum *sum, char words[WEIR_WORDS_BYTES])
{
	const unsigned long long open = sum->count[WEIR_BREAKER_OPEN], half_open = sum->count[WEIR_BREAKER_HALF_OPEN];

	if (!sum->has_flows)
		return weir_format_breaker_state(&sum->lone, words);
	snprintf(words, WEIR_WORDS_BYTES, "%llu open, %llu half-open of %llu", open, half_open,
		 sum->count[WEIR_BREAKER_CLOSED] + open + half_open);
	return words;
}

/* ---- connections ---- */

#define FIGURE(member) offsetof(struct weir_connection_figures, member)

const struct weir_column weir_connection_columns[] = {
	{"now",
	 ">now",
	 FIGURE(now),
	 {"weir_rule_connections", WEIR_METRIC_GAUGE, NULL, "Connections that are open now."},
	 NULL,
	 false},
	{"max", ">max", FIGURE(max), {}, NULL, false},
	{"opened",
	 ">opened",
	 FIGURE(opened),
	 {"weir_rule_opened_connections", WEIR_METRIC_COUNTER, NULL, "Connections that were opened and admitted."},
	 NULL,
	 false},
	{"learned",
	 ">learned",
	 FIGURE(learned),
	 {"weir_rule_learned_connections", WEIR_METRIC_COUNTER, NULL,
	  "Connections whose opening was not seen; they do not count."},
	 NULL,
	 false},
	{"returned",
	 NULL,
	 FIGURE(returned),
	 {"weir_rule_returned_connections", WEIR_METRIC_COUNTER, NULL,
	  "Connections that count again: they sent packets after an eviction or a timeout."},
	 NULL,
	 false},
	{"refused",
	 ">refused",
	 FIGURE(refused),
	 {"weir_rule_refused_connections", WEIR_METRIC_COUNTER, NULL, "Openings refused because of the threshold."},
	 NULL,
	 false},
	{},
};

static const struct weir_column end_columns[] = {
	{"closedByFin", ">FIN", FIGURE(closed_by_fin), {}, NULL, false},
	{"closedByReset", ">RST", FIGURE(closed_by_reset), {}, NULL, false},
	{"closedByIdle", ">idle", FIGURE(closed_by_idle), {}, NULL, false},
	{"reused", ">reused", FIGURE(reused), {}, NULL, false},
	{"evicted", ">evicted", FIGURE(evicted), {}, NULL, false},
	{},
};

void weir_describe_connections(struct weir_figures *line, const void *context, const void *record)
{
	weir_line_counters(line, weir_connection_columns, NULL, record);
}

static double mean_us(const struct weir_connection_figures *figures)
{
	return figures->handshakes ? (double)figures->handshake_us / figures->handshakes : 0;
}

static const char *format_ms(const struct weir_connection_figures *figures, double us, char words[WEIR_WORDS_BYTES])
{
	snprintf(words, WEIR_WORDS_BYTES, "%.3f", us / 1e3);
	return figures->handshakes ? words : "-";
}

static json_t *describe_histogram(const uint64_t *steps)
{
	json_t *histogram = json_array();

	for (int i = 0; i < WEIR_HANDSHAKE_STEPS; i++)
		weir_json_append(&histogram, json_integer(steps[i]));
	return histogram;
}

/* Times are null if nothing was timed. */
void weir_describe_connection_ends(struct weir_figures *line, const void *context, const void *record)
{
	const struct weir_connection_figures *figures = record;
	char words[WEIR_WORDS_BYTES];

	weir_line_counters(line, end_columns, NULL, record);
	WEIR_FIELD(line, "handshake.count", json_integer(figures->handshakes));
	WEIR_FIGURE(line, "handshake.meanUs", ">handshake ms",
		    figures->handshakes ? json_real(mean_us(figures)) : json_null(), "%s",
		    format_ms(figures, mean_us(figures), words));
	WEIR_FIGURE(line, "handshake.minimumUs", ">least ms",
		    figures->handshakes ? json_integer(figures->shortest_us) : json_null(), "%s",
		    format_ms(figures, figures->shortest_us, words));
	WEIR_FIELD(line, "handshake.histogram", describe_histogram(figures->handshake_step));
}

json_t *weir_json_connections(const struct weir_connection_figures *figures)
{
	json_t *fields = json_object();

	weir_figures_add(weir_describe_connections, NULL, figures, &fields);
	weir_figures_add(weir_describe_connection_ends, NULL, figures, &fields);
	if (!figures->has_refused)
		json_object_del(fields, "refused");
	return fields;
}

#define NSEC_PER_USEC 1000u
#define NSEC_PER_MSEC 1000000u

/* The unit of whole numbers, if none of the special cases below applies to the rule. */
static const char *unit_of(const struct weir_rule_info *rule)
{
	if (weir_has_connections(rule))
		return "connections";
	return rule->identity.counts_bytes ? "bytes" : "packets";
}

/* Is this a system rule that uses a signal of the host? Its figures are in millionths. */
static bool has_signal(const struct weir_rule_info *rule)
{
	return rule->system == WEIR_SYSTEM_AVG_RT || weir_needs_samples(rule);
}

/* For a circuit breaker. */
static unsigned long long requests_of(uint64_t used)
{
	return used >> 32;
}

static unsigned long long bad_of(uint64_t used)
{
	return used & UINT32_MAX;
}

/* ---- dropped packets, in words ---- */

static void format_signal(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold,
			  char words[WEIR_WORDS_BYTES])
{
	const char *unit = rule->system == WEIR_SYSTEM_AVG_RT ? " ms" : "";
	char is[32], may_be[32];

	weir_format_micro(used, is, sizeof(is));
	weir_format_micro(threshold, may_be, sizeof(may_be));
	snprintf(words, WEIR_WORDS_BYTES, "%s %s%s, threshold %s%s", weir_system_metric_names[rule->system], is, unit,
		 may_be, unit);
}

const char *weir_format_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold,
				     char words[WEIR_WORDS_BYTES])
{
	const unsigned long long is = used, may_be = threshold;

	if (has_signal(rule))
		format_signal(rule, used, threshold, words);
	else if (weir_is_breaker(rule)) {
		char opens_at[32];

		weir_format_micro(threshold, opens_at, sizeof(opens_at));
		snprintf(words, WEIR_WORDS_BYTES, "%llu of %llu requests were bad, threshold %s", bad_of(used),
			 requests_of(used), opens_at);
	} else if (weir_has_connections(rule))
		snprintf(words, WEIR_WORDS_BYTES, "%llu of %llu connections open", is, may_be);
	else if (weir_has_tokens(rule))
		snprintf(words, WEIR_WORDS_BYTES, "%llu of %llu %s left", is < may_be ? may_be - is : 0, may_be,
			 unit_of(rule));
	else if (weir_throttles(rule))
		snprintf(words, WEIR_WORDS_BYTES, "would wait %llu.%llu ms, may wait %llu ms", is / NSEC_PER_MSEC,
			 is % NSEC_PER_MSEC / (NSEC_PER_MSEC / 10), may_be / NSEC_PER_MSEC);
	else
		snprintf(words, WEIR_WORDS_BYTES, "used %llu of %llu %s", is, may_be, unit_of(rule));
	return words;
}

/* ---- dropped packets, in JSON ---- */

static void add(json_t *fields, json_t *used, json_t *threshold, const char *unit)
{
	json_object_set_new(fields, "used", used);
	json_object_set_new(fields, "threshold", threshold);
	json_object_set_new(fields, "unit", unit ? json_string(unit) : json_null());
}

void weir_json_add_drop_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold, json_t *fields)
{
	if (has_signal(rule)) {
		add(fields, weir_json_threshold(used), weir_json_threshold(threshold),
		    rule->system == WEIR_SYSTEM_AVG_RT ? "ms" : NULL);
	} else if (weir_is_breaker(rule)) {
		json_object_set_new(fields, "requests", json_integer((json_int_t)requests_of(used)));
		json_object_set_new(fields, "bad", json_integer((json_int_t)bad_of(used)));
		json_object_set_new(fields, "threshold", weir_json_threshold(threshold));
	} else if (weir_throttles(rule)) {
		add(fields, json_integer((json_int_t)(used / NSEC_PER_USEC)),
		    json_integer((json_int_t)(threshold / NSEC_PER_USEC)), "us");
	} else {
		add(fields, json_integer((json_int_t)used), json_integer((json_int_t)threshold), unit_of(rule));
	}
}
