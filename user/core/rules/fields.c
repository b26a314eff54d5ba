// SPDX-License-Identifier: GPL-2.0-only
/* Fields, words and lists of a rule file, whatever they mean. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "rules/parse.h"

/* ---- complaints ---- */

/* An anchored value is read wherever an alias names it: its mistake is told once. */
static bool was_told(const struct weir_diag *diag, const struct weir_place *place, const char *message)
{
	for (size_t i = 0; i < diag->count; i++) {
		const struct weir_diag_entry *entry = &diag->entries[i];

		if (entry->line == place->line && entry->column == place->column && entry->file && entry->message &&
		    !strcmp(entry->file, place->file) && !strcmp(entry->message, message))
			return true;
	}
	return false;
}

static void message_of_many(struct weir_diag *diag, bool is_warning)
{
	if (is_warning)
		weir_diag_warning(diag, NULL, NULL, NULL, "more than %d warnings; the rest is not shown",
				  WEIR_MISTAKES_MAX);
	else
		weir_diag_error(diag, NULL, NULL, NULL, "more than %d mistakes; the rest is not shown",
				WEIR_MISTAKES_MAX);
}

/* What a complaint points at. The line is looked for only when it is to be shown: a file has many. */
struct spot {
	const struct weir_place *place;
	const struct weir_document *document; /* or */
	const char *line;
};

__attribute__((format(printf, 5, 0))) static void tell(struct weir_reader *reader, const struct spot *spot,
						       bool is_warning, const char *hint, const char *format,
						       va_list args)
{
	size_t *told = is_warning ? &reader->warnings : &reader->complaints;
	_cleanup_(weir_freep) char *message = NULL;
	const char *line = spot->line;

	reader->mistakes += !is_warning;
	if (*told > WEIR_MISTAKES_MAX)
		return;
	if (vasprintf(&message, format, args) < 0) {
		message = NULL;
		reader->is_out_of_memory = true;
		return;
	}
	if (was_told(reader->diag, spot->place, message))
		return;
	if ((*told)++ == WEIR_MISTAKES_MAX) {
		message_of_many(reader->diag, is_warning);
		return;
	}
	if (spot->document)
		line = weir_document_line(spot->document, spot->place->line);
	if (is_warning)
		weir_diag_warning(reader->diag, spot->place, line, hint, "%s", message);
	else
		weir_diag_error(reader->diag, spot->place, line, hint, "%s", message);
}

void weir_complain(struct weir_reader *reader, const struct weir_node *node, const char *hint, const char *format, ...)
{
	const struct spot spot = {.place = &node->place, .document = node->document};
	va_list args;

	va_start(args, format);
	tell(reader, &spot, false, hint, format, args);
	va_end(args);
}

void weir_warn(struct weir_reader *reader, const struct weir_node *node, const char *hint, const char *format, ...)
{
	const struct spot spot = {.place = &node->place, .document = node->document};
	va_list args;

	va_start(args, format);
	tell(reader, &spot, true, hint, format, args);
	va_end(args);
}

void weir_complain_of_line(struct weir_reader *reader, const struct weir_place *place, const char *line,
			   const char *hint, const char *format, ...)
{
	const struct spot spot = {.place = place, .line = line};
	va_list args;

	va_start(args, format);
	tell(reader, &spot, false, hint, format, args);
	va_end(args);
}

static const char *kind_name(const struct weir_node *node)
{
	static const char *const names[] = {"nothing", "a single value", "a list", "a map of fields"};

	return names[node->kind];
}

/* ---- maps ---- */

/* "name, match or flow", cut where the buffer ends. */
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

/* What other limiters call it, where the nearest of our words would mislead; NULL: none of these. */
static const char *advice_for(const char *word)
{
	static const struct {
		const char *word, *advice;
	} known[] = {
		{"rate", "write 'threshold' units, packets or bytes, per 'statIntervalInMs' milliseconds"},
		{"bits", "write 'bytes', and an eighth of the number of bits as the threshold"},
		{"bit", "write 'bytes', and an eighth of the number of bits as the threshold"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(word, known[i].word))
			return known[i].advice;
	return NULL;
}

static void complain_unknown_field(struct weir_reader *reader, const struct weir_node *key, const char *what,
				   const char *const *fields, size_t count)
{
	char hint[640] = "known fields: ";
	size_t used = strlen(hint);
	const char *nearest;

	if (reader->complaints > WEIR_MISTAKES_MAX)
		return;
	nearest = weir_nearest(key->text, fields, count, sizeof(*fields));
	if (!strcmp(key->text, "<<"))
		snprintf(hint, sizeof(hint), "merge keys are no part of YAML 1.2: write the fields out");
	else if (advice_for(key->text))
		snprintf(hint, sizeof(hint), "%s", advice_for(key->text));
	else if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest);
	else
		join_names(fields, count, hint + used, sizeof(hint) - used);
	weir_complain(reader, key, hint, "%s has no field '%.*s'", what, WEIR_SHOWN(key->text));
}

static void read_field(struct weir_reader *reader, const struct weir_node *key, const struct weir_node *value,
		       const char *what, const char *const *fields, size_t count, const struct weir_node **keys,
		       const struct weir_node **values)
{
	size_t i = 0;

	if (key->kind != WEIR_NODE_WORD && key->kind != WEIR_NODE_NULL) {
		weir_complain(reader, key, NULL, "the name of a field must be a word, not %s", kind_name(key));
		return;
	}
	while (i < count && strcmp(key->text, fields[i]))
		i++;
	if (i == count) {
		complain_unknown_field(reader, key, what, fields, count);
	} else if (keys[i]) {
		weir_complain(reader, key, "leave one of them out", "'%s' is given twice: first in line %d", fields[i],
			      keys[i]->place.line);
	} else {
		keys[i] = key;
		values[i] = value;
	}
}

#define FIELDS_MAX 32

void weir_complain_no_map(struct weir_reader *reader, const struct weir_node *node, const char *what,
			  const char *const *fields, size_t count)
{
	char hint[640] = "write fields such as 'name: value': ";
	size_t used = strlen(hint);

	join_names(fields, count, hint + used, sizeof(hint) - used);
	weir_complain(reader, node, hint, "%s must be a map of fields, not %s", what, kind_name(node));
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
	for (size_t i = 0; i + 1 < node->count; i += 2)
		read_field(reader, node->items[i], node->items[i + 1], what, fields, count, keys, values);
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

bool weir_read_word(struct weir_reader *reader, const struct weir_node *node, const char *field, const char **ret_word)
{
	if (node->kind != WEIR_NODE_WORD) {
		weir_complain(reader, node, NULL, "'%s' must be a single value, not %s", field, kind_name(node));
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
	weir_complain(reader, node, hint, "\"%.*s\" is a text, not a number", WEIR_SHOWN(text));
	return false;
}

static void complain_refused(struct weir_reader *reader, const struct weir_node *node, const char *field,
			     const struct weir_refusal *refusal)
{
	weir_complain(reader, node, refusal->hint[0] ? refusal->hint : NULL, "%s: %s", field, refusal->message);
}

bool weir_read_number(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
		      uint64_t high, uint64_t *ret_number)
{
	return weir_read_number_of(reader, node, field, low, high, NULL, ret_number);
}

bool weir_read_number_of(struct weir_reader *reader, const struct weir_node *node, const char *field, uint64_t low,
			 uint64_t high, const char *advice, uint64_t *ret_number)
{
	struct weir_refusal refusal;
	const char *word;

	if (!weir_read_word(reader, node, field, &word))
		return false;
	if (!weir_parse_number(word, low, high, ret_number, &refusal))
		return true;
	/* Not in place of what is said of leading zeros. */
	if (advice && !strncmp(refusal.hint, "write ", strlen("write ")))
		snprintf(refusal.hint, sizeof(refusal.hint), "%s", advice);
	complain_refused(reader, node, field, &refusal);
	return false;
}

bool weir_read_choice(struct weir_reader *reader, const struct weir_node *node, const char *field,
		      const char *const *names, size_t count, bool has_numbers, unsigned int *ret_choice)
{
	char hint[256] = "write ";
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
	nearest = isalpha((unsigned char)word[0]) ? weir_nearest(word, names, count, sizeof(*names)) : NULL;
	if (advice_for(word))
		snprintf(hint, sizeof(hint), "%s", advice_for(word));
	else if (nearest)
		snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest);
	else
		join_names(names, count, hint + used, sizeof(hint) - used);
	used = strlen(hint);
	if (has_numbers)
		snprintf(hint + used, sizeof(hint) - used, "%s its number, 0 to %zu, will do too", nearest ? "" : ";",
			 count - 1);
	weir_complain(reader, node, hint, "'%.*s' is no value of '%s'", WEIR_SHOWN(word), field);
	return false;
}

/* ---- lists ---- */

static void read_item(struct weir_reader *reader, const struct weir_node *node, const char *field,
		      weir_item_parser parse, const void *context, size_t item_bytes, void **items, size_t *count)
{
	struct weir_refusal refusal;
	const char *word;
	void *item;

	if (node->kind == WEIR_NODE_NULL) {
		weir_complain(reader, node, "write a value, or leave the item out", "'%s' has an item without a value",
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
