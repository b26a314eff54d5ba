// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes and warnings at the nodes of a rule file, each reported once. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "rules/parse.h"

/* An anchored value is read again for each alias, but its mistake must be reported only once. */
static bool was_reported(const struct weir_diag *diag, const struct weir_place *place, const char *message)
{
	for (size_t i = 0; i < diag->count; i++) {
		const struct weir_diag_entry *entry = &diag->entries[i];

		if (entry->line == place->line && entry->column == place->column && entry->file && entry->message &&
		    !strcmp(entry->file, place->file) && !strcmp(entry->message, message))
			return true;
	}
	return false;
}

/* What a complaint points at. The line is looked up only when it is shown, since a file has many. */
struct spot {
	const struct weir_place *place;
	const struct weir_document *document; /* or */
	const char *line;
};

__attribute__((format(printf, 5, 0))) static void report(struct weir_reader *reader, const struct spot *spot,
							 bool is_warning, const char *hint, const char *format,
							 va_list args)
{
	size_t *count = is_warning ? &reader->warnings : &reader->complaints;
	_cleanup_(weir_freep) char *message = NULL;
	const char *line = spot->line;

	reader->mistakes += !is_warning;
	if (*count > WEIR_MISTAKES_MAX)
		return;
	if (vasprintf(&message, format, args) < 0) {
		message = NULL;
		reader->is_out_of_memory = true;
		return;
	}
	if (was_reported(reader->diag, spot->place, message))
		return;
	if ((*count)++ == WEIR_MISTAKES_MAX) {
		if (is_warning)
			weir_diag_warning(reader->diag, NULL, NULL, NULL,
					  "more than %d warnings; the rest is not shown", WEIR_MISTAKES_MAX);
		else
			weir_diag_error(reader->diag, NULL, NULL, NULL, "more than %d mistakes; the rest is not shown",
					WEIR_MISTAKES_MAX);
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
	report(reader, &spot, false, hint, format, args);
	va_end(args);
}

void weir_warn(struct weir_reader *reader, const struct weir_node *node, const char *hint, const char *format, ...)
{
	const struct spot spot = {.place = &node->place, .document = node->document};
	va_list args;

	va_start(args, format);
	report(reader, &spot, true, hint, format, args);
	va_end(args);
}

void weir_complain_of_line(struct weir_reader *reader, const struct weir_place *place, const char *line,
			   const char *hint, const char *format, ...)
{
	const struct spot spot = {.place = place, .line = line};
	va_list args;

	va_start(args, format);
	report(reader, &spot, false, hint, format, args);
	va_end(args);
}

const char *weir_kind_name(const struct weir_node *node)
{
	static const char *const names[] = {"nothing", "a single value", "a list", "a map of fields"};

	return names[node->kind];
}

/* ---- lists of other programs, while nobody reads them ---- */

static void refuse_list(struct weir_reader *reader, const struct weir_node *list, const char *name)
{
	weir_complain(reader, list, "write 'rules:' on a line of its own before it", "this list has no name");
}

static bool knows_no_envelope(struct weir_reader *reader, const struct weir_document *document)
{
	return false;
}

static const char *const no_names[] = {NULL};
static const struct weir_foreign_reader nobody = {
	.names = no_names,
	.read_list = refuse_list,
	.complain_of_envelope = knows_no_envelope,
};
static const struct weir_foreign_reader *in_use = &nobody;

void weir_use_foreign_reader(const struct weir_foreign_reader *reader)
{
	in_use = reader;
}

const struct weir_foreign_reader *weir_foreign_reader(void)
{
	return in_use;
}
