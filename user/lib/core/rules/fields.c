// SPDX-License-Identifier: GPL-2.0-only
/* Fields, words and lists of a rule file, independent of their meaning. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"
#include "rules/quantity.h"
#include "rules/rule.h"
#include "rules/yaml.h"

/* ---- maps ---- */

/* "name, match or flow", cut to the buffer. */
static void join_names(const char *const *names, size_t count, char *text, size_t text_bytes)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < count && used < text_bytes; i++)
		used += snprintf(text + used, text_bytes - used, "%s%s",
				 i == 0		 ? ""
				 : i + 1 < count ? ", "
						 : " or ",
				 names[i]);
}

/* Advice for fields whose nearest name would be misleading: our name for another limiter's field, or where the field
 * belongs.
 */
static const struct advice {
	const char *where; /* what lacks this field; NULL: anything */
	const char *word, *advice;
	const char *meant; /* the field that it stands for, if the map has this one */
} advices[] = {
	{"rule", "flow", "'flow' is a field of a resource; in a rule, write 'per: source'", NULL},
	{"rule", "match", "it belongs to the resource, which the rule names: 'resource: NAME'", "resource"},
	{"rule", "prioritized", "it belongs to the resource", NULL},
	{"rule", "penalty", "write 'blockDuration: 10s'", NULL},
	{"rule", "ban", "write 'blockDuration: 10s'", NULL},
	{"rule", "duration", "write 'blockDuration: 10s' for how long a blocked flow stays blocked", NULL},
	{"rule", "connections", "write 'metricType: Concurrency' and 'threshold: 100'", NULL},
	{"resource", "rules", WEIR_AT_THE_TOP "; a rule names its resource, 'resource: NAME'", NULL},
	{"resource", "rate", "write rates under 'rules:': '- {resource: NAME, rate: 20/s}'", NULL},
	{"resource", "limit", "write rates under 'rules:': '- {resource: NAME, rate: 20/s}'", NULL},
	{"a rule file", "whitelist", "write 'allow'", NULL},
	{"a rule file", "allowlist", "write 'allow'", NULL},
	{"a rule file", "blacklist", "write 'deny'", NULL},
	{"a rule file", "denylist", "write 'deny'", NULL},
	{"a rule file", "blocklist", "write 'deny'", NULL},
	{"a rule file", "match", "it belongs to a resource, under 'resources:'", NULL},
	{"match", "remote", "a match is about the packet's own fields: write 'source' or 'destination'", NULL},
	{"match", "local", "a match is about the packet's own fields: write 'source' or 'destination'", NULL},
	{"match", "remotePort", "a match is about the packet's own fields: write 'sourcePort' or 'destinationPort'",
	 NULL},
	{"match", "localPort", "a match is about the packet's own fields: write 'sourcePort' or 'destinationPort'",
	 NULL},
	{"match", "not", WEIR_NO_ALL_BUT, NULL},
	{"match", "except", WEIR_NO_ALL_BUT, NULL},
	{NULL, "settings", WEIR_AT_THE_TOP, NULL},
	{NULL, "resources", WEIR_AT_THE_TOP, NULL},
	{NULL, "rules", WEIR_AT_THE_TOP, NULL},
	{NULL, "circuitBreakers", WEIR_AT_THE_TOP, NULL},
	{NULL, "sets", WEIR_AT_THE_TOP, NULL},
	{"a rule file", "rate", "it belongs to a rule, an item under 'rules:': '- {resource: NAME, rate: 20/s}'", NULL},
	{NULL, "rate", "only a rule has it; here, write 'threshold'", "threshold"},
	{NULL, "bits", "write 'rate: 100Mbit/s' instead of threshold and unit", "rate"},
	{NULL, "bit", "write 'rate: 100Mbit/s' instead of threshold and unit", "rate"},
	{NULL, "limit", "write 'rate: 20/s', or 'threshold: 20'", "rate"},
	{NULL, "pps", "write 'rate: 20/s'", "rate"},
	{NULL, "bps", "write 'rate: 100Mbit/s'", "rate"},
	{NULL, "interval", "write 'statInterval: 1m'; or 'rate: 6/min', which includes the interval", NULL},
	{NULL, "per", "only rules under 'rules:' have it; elsewhere, set the resource's 'flow'", NULL},
	{NULL, "action", "leave it out: a rule drops what exceeds its limit; 'mode: observe' only counts it", NULL},
	{NULL, "target", "leave it out: a rule drops what exceeds its limit; 'mode: observe' only counts it", NULL},
	{NULL, "port", "write 'destinationPort' or 'sourcePort'", NULL},
	{NULL, "key", "write 'flow: source'", NULL},
};

static const struct advice *advice_for(const char *where, const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++)
		if (!strcmp(word, advices[i].word) && (!advices[i].where || !strcmp(where, advices[i].where)))
			return &advices[i];
	return NULL;
}

bool weir_is_one_of(const char *word, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(word, names[i]))
			return true;
	return false;
}

/* Advice for a field that belongs in another part of the file: where to put it. NULL: it is not such a field. */
static const char *advice_of_place(const char *where, const char *word)
{
	if (!strcmp(where, "resource") && weir_is_one_of(word, weir_match_field_names, weir_match_field_count))
		return "it belongs to the resource's match: write it under 'match:', indented further";
	if (!strcmp(where, "resource") && weir_is_one_of(word, weir_rule_fields, RULE_FIELD_COUNT))
		return "it belongs to a rule: write rules under 'rules:', at the top of the file";
	if (!strcmp(where, "rule") && weir_is_one_of(word, weir_match_field_names, weir_match_field_count))
		return "it belongs to the resource's match; the rule names the resource: 'resource: NAME'";
	if (!strcmp(where, "a rule file") && weir_is_one_of(word, weir_setting_names, WEIR_SETTING_COUNT))
		return "it is a setting: write it under 'settings:', indented further";
	if (!strcmp(where, "override") && weir_is_one_of(word, weir_key_field_names, WEIR_KEY_FIELD_COUNT))
		return "an override is for an address: write 'source' or 'destination'";
	return NULL;
}

/* A resource that is written as a field of the file, "dns: {rate: 20/s}" or "dns: 20/s", is no typing mistake. */
static bool is_limit(const struct weir_node *value)
{
	struct weir_refusal ignored;
	struct weir_rate rate;

	if (value->kind == WEIR_NODE_WORD)
		return !weir_parse_rate(value->text, &rate, &ignored);
	if (value->kind == WEIR_NODE_LIST && value->count)
		value = value->items[0];
	for (size_t i = 0; value->kind == WEIR_NODE_MAP && i + 1 < value->count; i += 2)
		if (value->items[i]->kind == WEIR_NODE_WORD &&
		    (advice_of_place("resource", value->items[i]->text) || !strcmp(value->items[i]->text, "match") ||
		     !strcmp(value->items[i]->text, "flow") || !strcmp(value->items[i]->text, "limit")))
			return true;
	return false;
}

/* For "destinationPort:53", which YAML reads as one word: the known field before the ':', or NULL. */
static const char *unspaced_field(const struct weir_node *key, const char *const *fields, size_t count)
{
	const char *colon = key->is_quoted ? NULL : strchr(key->text, ':');

	for (size_t i = 0; colon && colon[1] && i < count; i++)
		if (strlen(fields[i]) == (size_t)(colon - key->text) &&
		    !strncmp(fields[i], key->text, colon - key->text))
			return fields[i];
	return NULL;
}

/* Record the field that an unknown one stands for, so that it is not reported as missing too. */
static void note_meant(struct weir_reader *reader, const char *meant, const char *const *fields, size_t count)
{
	for (size_t i = 0; meant && i < count; i++)
		if (!strcmp(meant, fields[i]))
			reader->meant |= 1u << i;
}

void weir_complain_unknown_field(struct weir_reader *reader, const struct weir_node *key, const struct weir_node *value,
				 const char *what, const char *const *fields, size_t count)
{
	const bool is_resource = !strcmp(what, "a rule file") && is_limit(value);
	char hint[640] = "known fields: ";
	size_t used = strlen(hint);
	const struct advice *advice = advice_for(what, key->text);
	const char *ours = weir_our_word(key->text, strlen(key->text)), *meant = NULL;
	const char *of_place = advice_of_place(what, key->text), *unspaced = unspaced_field(key, fields, count);

	if (reader->complaints > WEIR_MISTAKES_MAX)
		return;
	if (ours && !weir_is_one_of(ours, fields, count))
		ours = NULL;
	if (unspaced)
		meant = unspaced;
	else if (!advice && !ours && !of_place && !is_resource)
		meant = weir_nearest(key->text, fields, count, sizeof(*fields));
	if (!strcmp(key->text, "<<"))
		snprintf(hint, sizeof(hint), "merge keys are not part of YAML 1.2: write the fields out");
	else if (key->text[0] == '/' && (key->text[1] == '/' || key->text[1] == '*'))
		snprintf(hint, sizeof(hint), "in YAML, a comment begins with '#'");
	else if (unspaced)
		snprintf(hint, sizeof(hint), "write a space after the ':': '%s: %.*s'", unspaced,
			 WEIR_SHOWN(key->text + strlen(unspaced) + 1));
	else if (advice)
		snprintf(hint, sizeof(hint), "%s", advice->advice);
	else if (ours)
		snprintf(hint, sizeof(hint), "write '%s'", ours);
	else if (of_place)
		snprintf(hint, sizeof(hint), "%s", of_place);
	else if (is_resource)
		snprintf(hint, sizeof(hint),
			 "write what it matches under 'resources:', '- {name: %.*s, match: ...}', and its limit under "
			 "'rules:', '- {resource: %.*s, rate: 20/s}'",
			 WEIR_SHOWN(key->text), WEIR_SHOWN(key->text));
	else if (meant)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", meant);
	else
		join_names(fields, count, hint + used, sizeof(hint) - used);
	note_meant(reader, advice ? advice->meant : ours ?: meant, fields, count);
	if (of_place && !strcmp(what, "override"))
		note_meant(reader, "source", fields, count);
	weir_complain(reader, key, hint, "%s has no field '%.*s'", what, WEIR_SHOWN(key->text));
}

/* ---- fields without their unit of time ---- */

static const struct {
	const char *suffix;
	uint64_t ns;
} time_suffixes[] = {{"InMs", 1000000}, {"Ms", 1000000}, {"Sec", WEIR_NSEC_PER_SEC}};

/* The unit of time at the end of a field's name, and the length of that suffix; 0: none. */
static uint64_t time_unit_ns(const char *field, size_t *ret_suffix_bytes)
{
	for (size_t i = 0; i < ARRAY_SIZE(time_suffixes); i++) {
		*ret_suffix_bytes = strlen(time_suffixes[i].suffix);
		if (strlen(field) > *ret_suffix_bytes &&
		    !strcmp(field + strlen(field) - *ret_suffix_bytes, time_suffixes[i].suffix))
			return time_suffixes[i].ns;
	}
	return 0;
}

/* Is this, for example, "statInterval" for statIntervalInMs? */
static bool is_timed_name(const char *name, const char *field)
{
	size_t suffix_bytes;

	return time_unit_ns(field, &suffix_bytes) && strlen(name) == strlen(field) - suffix_bytes &&
	       !strncmp(name, field, strlen(name));
}

/* An anchored value may also be the value of another field, so this one gets a node of its own. */
static const struct weir_node *make_timed(struct weir_reader *reader, const struct weir_node *value, const char *name)
{
	struct weir_node **slot, *timed = malloc(sizeof(*timed));

	slot = weir_array_add((void **)&reader->timed, reader->timed_count, sizeof(*slot));
	if (!slot || !timed) {
		free(timed);
		reader->is_out_of_memory = true;
		return NULL;
	}
	*timed = *value;
	timed->timed_name = name;
	*slot = timed;
	reader->timed_count++;
	return timed;
}

static void read_field(struct weir_reader *reader, const struct weir_node *key, const struct weir_node *value,
		       const char *what, const char *const *fields, size_t count, const struct weir_node **keys,
		       const struct weir_node **values)
{
	size_t i = 0;

	if (key->kind != WEIR_NODE_WORD && key->kind != WEIR_NODE_NULL) {
		weir_complain(reader, key, NULL, "the name of a field must be a word, not %s", weir_kind_name(key));
		return;
	}
	while (i < count && strcmp(key->text, fields[i]) && !is_timed_name(key->text, fields[i]))
		i++;
	if (i == count) {
		weir_complain_unknown_field(reader, key, value, what, fields, count);
	} else if (keys[i]) {
		weir_complain(reader, key, "leave one of them out", "'%s' is given twice: first in line %d", fields[i],
			      keys[i]->place.line);
	} else {
		keys[i] = key;
		values[i] = strcmp(key->text, fields[i]) ? make_timed(reader, value, key->text) : value;
	}
}

#define FIELDS_MAX 32

/* "name:dns", "name = dns": YAML reads these as one word. */
static bool is_unspaced(const struct weir_node *node)
{
	return node->kind == WEIR_NODE_WORD && !node->is_quoted && strpbrk(node->text, ":=") &&
	       isalpha((unsigned char)node->text[0]);
}

void weir_complain_no_map(struct weir_reader *reader, const struct weir_node *node, const char *what,
			  const char *const *fields, size_t count)
{
	char hint[640] = "write fields, 'name: value'; their names are ";
	size_t used = strlen(hint);

	if (is_unspaced(node))
		snprintf(hint, sizeof(hint), "write a ':' and a space between name and value: 'name: value'");
	else
		join_names(fields, count, hint + used, sizeof(hint) - used);
	weir_complain(reader, node, hint, "%s must be a map of fields, not %s", what, weir_kind_name(node));
}

static bool is_child(const struct weir_node *key, const struct weir_node *parent)
{
	if (key->kind != WEIR_NODE_WORD)
		return false;
	if (!strcmp(parent->text, "match"))
		return weir_is_one_of(key->text, weir_match_field_names, weir_match_field_count);
	return !strcmp(parent->text, "settings") && weir_is_one_of(key->text, weir_setting_names, WEIR_SETTING_COUNT);
}

/* For 'match:' without a value, whose content is in the same column below: the number of fields to indent. */
static size_t count_unindented(const struct weir_node *node, size_t parent)
{
	size_t at = parent + 2;

	if (node->items[parent]->kind != WEIR_NODE_WORD || node->items[parent + 1]->kind != WEIR_NODE_NULL)
		return 0;
	while (at + 1 < node->count && is_child(node->items[at], node->items[parent]))
		at += 2;
	return at / 2 - parent / 2 - 1;
}

static void complain_of_unindented(struct weir_reader *reader, const struct weir_node *node, size_t parent,
				   const char *const *fields, size_t count, const struct weir_node **keys)
{
	const struct weir_node *key = node->items[parent], *child = node->items[parent + 2];
	char hint[64];

	for (size_t i = 0; i < count; i++)
		if (!strcmp(key->text, fields[i]))
			keys[i] = key;
	snprintf(hint, sizeof(hint), "indent it under '%s:'", key->text);
	weir_complain(reader, child, hint, "'%s' is beside '%s', not under it", child->text, key->text);
}

void weir_read_fields(struct weir_reader *reader, const struct weir_node *node, const char *what,
		      const char *const *fields, size_t count, bool may_be_empty, const struct weir_node **values)
{
	const struct weir_node *keys[FIELDS_MAX] = {};

	for (size_t i = 0; i < count; i++)
		values[i] = NULL;
	if (node->kind != WEIR_NODE_MAP) {
		weir_complain_no_map(reader, node, what, fields, count);
		return;
	}
	reader->meant = 0;
	for (size_t i = 0; i + 1 < node->count; i += 2) {
		const size_t children = count_unindented(node, i);

		if (children)
			complain_of_unindented(reader, node, i, fields, count, keys);
		else
			read_field(reader, node->items[i], node->items[i + 1], what, fields, count, keys, values);
		i += 2 * children;
	}
	for (size_t i = 0; i < count; i++) {
		if (!values[i] || values[i]->kind != WEIR_NODE_NULL)
			continue;
		values[i] = NULL;
		if (!may_be_empty)
			weir_complain(reader, keys[i], "write a value after the ':', or leave the field out",
				      "'%s' has no value", fields[i]);
	}
}

/* ---- words ---- */

/* Explain why a value was read as a map: '2001:db8::' before a comma, or an attempt at a negated condition. */
static void complain_of_several(struct weir_reader *reader, const struct weir_node *node, const char *field)
{
	const char *text = node->kind == WEIR_NODE_MAP && node->count ? node->items[0]->text : NULL;
	const size_t bytes = text ? strlen(text) : 0;
	char hint[256] = "";

	if (bytes > 1 && text[bytes - 1] == ':' && !text[strspn(text, "0123456789abcdefABCDEF:")])
		snprintf(hint, sizeof(hint), "put an address that ends in '::' in quotes: \"%.*s:\"", WEIR_SHOWN(text));
	else if (text && (!strcmp(text, "not") || !strcmp(text, "except")))
		snprintf(hint, sizeof(hint), "%s", WEIR_NO_ALL_BUT);
	weir_complain(reader, node, hint[0] ? hint : NULL, "'%s' must be a single value, not %s", field,
		      weir_kind_name(node));
}

bool weir_read_word(struct weir_reader *reader, const struct weir_node *node, const char *field, const char **ret_word)
{
	if (node->kind != WEIR_NODE_WORD) {
		complain_of_several(reader, node, field);
		return false;
	}
	*ret_word = node->text;
	return true;
}

bool weir_check_unquoted(struct weir_reader *reader, const struct weir_node *node)
{
	const char *text = node->text;
	char hint[96];

	if (node->kind != WEIR_NODE_WORD || !node->is_quoted || !strpbrk(text, "0123456789") ||
	    text[strspn(text, "0123456789+-.eE")])
		return true;
	snprintf(hint, sizeof(hint), "leave out the quotes: %.*s", WEIR_SHOWN(text));
	if (reader->takes_quoted_numbers)
		weir_warn(reader, node, hint, "\"%.*s\" is a string, read as a number", WEIR_SHOWN(text));
	else
		weir_complain(reader, node, hint, "\"%.*s\" is a string, not a number", WEIR_SHOWN(text));
	return reader->takes_quoted_numbers;
}

static void complain_refused(struct weir_reader *reader, const struct weir_node *node, const char *field,
			     const struct weir_refusal *refusal)
{
	weir_complain(reader, node, refusal->hint[0] ? refusal->hint : NULL, "%s: %s", field, refusal->message);
}

const char *weir_written_name(const struct weir_node *node, const char *field)
{
	return node->timed_name ?: field;
}

bool weir_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
		      uint64_t high, uint64_t *ret_number)
{
	return weir_read_number_of(reader, node, field, low, high, NULL, ret_number);
}

/* For "1m" where milliseconds are expected: the field has a name that accepts it. */
static void advise_timed_name(const char *field, const char *word, uint64_t low, uint64_t high,
			      struct weir_refusal *refusal)
{
	size_t suffix_bytes;
	uint64_t unit_ns = time_unit_ns(field, &suffix_bytes), number;
	struct weir_refusal ignored;

	if (unit_ns && isdigit((unsigned char)word[0]) && word[strspn(word, "0123456789")] &&
	    !weir_parse_time(word, unit_ns, low, high, &number, &ignored))
		weir_advise(refusal, "write %llu, or '%.*s: %.*s'", (unsigned long long)number,
			    (int)(strlen(field) - suffix_bytes), field, WEIR_SHOWN(word));
}

/* Replace the advice about the range, which is incomplete, but not the advice about leading zeros. */
static void take_advice(const char *advice, struct weir_refusal *refusal)
{
	if (advice && !strncmp(refusal->hint, "write ", strlen("write ")))
		weir_advise(refusal, "%s", advice);
}

bool weir_read_number_of(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
			 uint64_t high, const char *advice, uint64_t *ret_number)
{
	static const char or_not[] = ", or leave it out";
	struct weir_refusal refusal;
	size_t suffix_bytes;
	const char *word;

	if (!weir_read_word(reader, node, field, &word))
		return false;
	if (node->timed_name) {
		if (!weir_parse_time(word, time_unit_ns(field, &suffix_bytes), low, high, ret_number, &refusal))
			return true;
		if (advice && strstr(advice, or_not))
			strncat(refusal.hint, or_not, sizeof(refusal.hint) - strlen(refusal.hint) - 1);
	} else {
		if (!weir_parse_number(word, low, high, ret_number, &refusal))
			return true;
		take_advice(advice, &refusal);
		advise_timed_name(field, word, low, high, &refusal);
	}
	complain_refused(reader, node, weir_written_name(node, field), &refusal);
	return false;
}

bool weir_read_count(struct weir_reader *reader, const struct weir_node *node, const char *field, bool counts_bytes,
		     uint64_t low, uint64_t high, const char *advice, uint64_t *ret_number)
{
	struct weir_refusal refusal;
	const char *word;

	if (!weir_read_word(reader, node, field, &word))
		return false;
	if (!weir_parse_count(word, counts_bytes, low, high, ret_number, &refusal))
		return true;
	if (!isdigit((unsigned char)word[0]) || !word[strspn(word, "0123456789")])
		take_advice(advice, &refusal);
	complain_refused(reader, node, field, &refusal);
	return false;
}

static bool peek_number(const struct weir_node *node, const char *field, uint64_t *ret_number)
{
	struct weir_refusal ignored;
	size_t suffix_bytes;

	if (node->timed_name)
		return !weir_parse_time(node->text, time_unit_ns(field, &suffix_bytes), 0, UINT32_MAX, ret_number,
					&ignored);
	return !weir_parse_count(node->text, false, 0, UINT64_MAX, ret_number, &ignored);
}

bool weir_is_same_value(const struct weir_node *left, const struct weir_node *right, const char *field)
{
	uint64_t one, other;

	if (left->kind != WEIR_NODE_WORD || right->kind != WEIR_NODE_WORD)
		return true;
	return (!left->timed_name == !right->timed_name && !strcmp(left->text, right->text)) ||
	       (peek_number(left, field, &one) && peek_number(right, field, &other) && one == other);
}

bool weir_read_choice(struct weir_reader *reader, const struct weir_node *node, const char *field,
		      const char *const *names, size_t count, bool has_numbers, unsigned int *ret_choice)
{
	char hint[256] = "write ";
	const struct advice *advice;
	struct weir_refusal refusal;
	const char *word, *nearest;
	size_t used = strlen(hint);
	uint64_t number;

	if (!weir_read_word(reader, node, field, &word))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(word, names[i])) {
			*ret_choice = i;
			return true;
		}
	}
	if (has_numbers && !weir_parse_number(word, 0, count - 1, &number, &refusal)) {
		*ret_choice = number;
		return true;
	}
	advice = advice_for(field, word);
	nearest = isalpha((unsigned char)word[0]) ? weir_nearest(word, names, count, sizeof(*names)) : NULL;
	if (advice)
		snprintf(hint, sizeof(hint), "%s", advice->advice);
	else if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest);
	else
		join_names(names, count, hint + used, sizeof(hint) - used);
	used = strlen(hint);
	if (has_numbers)
		snprintf(hint + used, sizeof(hint) - used, "%s its number, 0 to %zu, works too", nearest ? "" : ";",
			 count - 1);
	weir_complain(reader, node, hint, "'%.*s' is not a value of '%s'", WEIR_SHOWN(word), field);
	return false;
}

bool weir_read_value(struct weir_reader *reader, const struct weir_field_row *row, const struct weir_node *node,
		     bool is_plain, bool counts_bytes, uint64_t *ret_value)
{
	unsigned int choice;

	if (row->form == WEIR_FIELD_CHOICE) {
		if (!weir_read_choice(reader, node, row->name, row->words, row->word_count, row->has_numbers, &choice))
			return false;
		*ret_value = choice;
		return true;
	}
	return is_plain || row->form == WEIR_FIELD_NUMBER
		       ? weir_read_number_of(reader, node, row->name, row->low, row->high, row->advice, ret_value)
		       : weir_read_count(reader, node, row->name, counts_bytes || row->form == WEIR_FIELD_BYTES,
					 row->low, row->high, row->advice, ret_value);
}

/* ---- lists ---- */

static void read_item(struct weir_reader *reader, const struct weir_node *node, const char *field,
		      weir_item_parser parse, const void *context, size_t item_bytes, void **items, size_t *count)
{
	struct weir_refusal refusal;
	const char *word;
	void *item;

	if (node->kind == WEIR_NODE_NULL) {
		weir_complain(reader, node, "write a value, or remove the item", "'%s' has an item without a value",
			      field);
		return;
	}
	if (!weir_read_word(reader, node, field, &word))
		return;
	item = weir_array_add(items, *count, item_bytes);
	if (!item)
		reader->is_out_of_memory = true;
	else if (parse(word, item, context, &refusal))
		complain_refused(reader, node, field, &refusal);
	else
		(*count)++;
}

void weir_read_items(struct weir_reader *reader, const struct weir_node *node, const char *field,
		     weir_item_parser parse, const void *context, size_t item_bytes, void **items, size_t *count)
{
	if (node->kind != WEIR_NODE_LIST) {
		read_item(reader, node, field, parse, context, item_bytes, items, count);
		return;
	}
	if (!node->count)
		weir_complain(reader, node, "write at least one value, or leave the field out", "'%s' is an empty list",
			      field);
	for (size_t i = 0; i < node->count; i++)
		read_item(reader, node->items[i], field, parse, context, item_bytes, items, count);
}
