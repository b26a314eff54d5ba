// SPDX-License-Identifier: GPL-2.0-only
#include "words/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/util.h"
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

/* jansson escapes only characters below U+0020. Outside strings a document has none of these characters, and all of
 * them are below U+10000, so one escape is enough for each.
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

json_t *weir_json_shown_rule(const struct weir_shown_rule *shown, enum weir_rule_document document)
{
	struct weir_writer writer = {.form = WEIR_FORM_TREE};

	weir_write_document(&writer);
	weir_write_rule(&writer, shown, document);
	return weir_write_tree_end(&writer);
}

json_t *weir_json_rule(const struct weir_rule_info *rule, const struct weir_key_labels *labels)
{
	const struct weir_shown_rule shown = weir_shown_rule_of_info(rule);
	char words[WEIR_WORDS_BYTES];
	json_t *fields = weir_json_shown_rule(&shown, WEIR_RULE_LOADED);

	json_object_set_new(fields, "limit", json_string(weir_format_limit(rule, labels, words)));
	return fields;
}
