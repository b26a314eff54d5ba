// SPDX-License-Identifier: GPL-2.0-only
#include "base/diag.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/printable.h"
#include "base/util.h"

/* From a long line (such as JSON on one line), keep this many characters before the place, and at most this many bytes
 * in all: what fits a terminal. Chosen, not derived.
 */
#define EXCERPT_CHARACTERS_BEFORE 60
#define EXCERPT_BYTES_MAX 160

/* The start of the next character; stays at the end of the string. */
static const char *next_character(const char *text)
{
	if (*text)
		text++;
	while (weir_utf8_continues(*text))
		text++;
	return text;
}

/* Keep the part of the line that is worth showing, and the caret's position in it. */
static void set_excerpt(struct weir_diag_entry *entry, const char *line)
{
	size_t bytes = strcspn(line, "\n");
	const char *end = line + bytes, *from = line, *place = line;
	int before = entry->column - 1;
	const char *cut_left = "", *cut_right = "";

	if (bytes && end[-1] == '\r')
		end--;
	for (int i = 0; i < before && place < end; i++)
		place = next_character(place);
	/* Indentation has no meaning here, and would only push the caret to the right. */
	while (from < place && (*from == ' ' || *from == '\t')) {
		from++;
		before--;
	}
	if (from == end)
		return;
	if (end - from > EXCERPT_BYTES_MAX && before > EXCERPT_CHARACTERS_BEFORE) {
		for (; before > EXCERPT_CHARACTERS_BEFORE; before--)
			from = next_character(from);
		cut_left = "... ";
		before += strlen(cut_left);
	}
	if (end - from > EXCERPT_BYTES_MAX) {
		for (end = from + EXCERPT_BYTES_MAX; weir_utf8_continues(*end);)
			end--;
		cut_right = " ...";
	}
	if (asprintf(&entry->source_line, "%s%.*s%s", cut_left, (int)(end - from), from, cut_right) < 0)
		entry->source_line = NULL;
	weir_make_printable(entry->source_line, "\t");
	entry->caret = before;
}

__attribute__((format(printf, 6, 0))) static void add(struct weir_diag *diag, bool is_warning,
						      const struct weir_place *place, const char *source_line,
						      const char *hint, const char *format, va_list args)
{
	struct weir_diag_entry *entry;

	/* Counted even if memory is out: a mistake must never become a success. */
	diag->errors += !is_warning;
	entry = weir_array_add((void **)&diag->entries, diag->count, sizeof(*entry));
	if (!entry)
		return;
	diag->count++;
	entry->is_warning = is_warning;
	if (vasprintf(&entry->message, format, args) < 0)
		entry->message = NULL;
	weir_make_printable(entry->message, "");
	if (hint)
		entry->hint = strdup(hint);
	weir_make_printable(entry->hint, "\n\t");
	if (!place || !place->file)
		return;
	entry->file = strdup(place->file);
	weir_make_printable(entry->file, "");
	entry->line = place->line;
	entry->column = place->column;
	entry->width = place->width > 0 ? place->width : 1;
	if (source_line)
		set_excerpt(entry, source_line);
}

int weir_diag_error(struct weir_diag *diag, const struct weir_place *place, const char *source_line, const char *hint,
		    const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(diag, false, place, source_line, hint, format, args);
	va_end(args);
	return -EINVAL;
}

void weir_diag_warning(struct weir_diag *diag, const struct weir_place *place, const char *source_line,
		       const char *hint, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	add(diag, true, place, source_line, hint, format, args);
	va_end(args);
}

void weir_diag_note(struct weir_diag *diag, const char *format, ...)
{
	const size_t count = diag->count;
	va_list args;

	va_start(args, format);
	add(diag, true, NULL, NULL, NULL, format, args);
	va_end(args);
	if (diag->count > count)
		diag->entries[count].is_note = true;
}

int weir_diag_fail(struct weir_diag *diag, int err, const char *hint, const char *format, ...)
{
	_cleanup_(weir_freep) char *message = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&message, format, args) < 0)
		message = NULL;
	va_end(args);
	if (!err)
		return weir_diag_error(diag, NULL, NULL, hint, "%s", message ? message : format);
	weir_diag_error(diag, NULL, NULL, hint, "%s: %s", message ? message : format, strerror(err));
	return -err;
}

/* ---- lines that come later ---- */

const char *weir_text_line(const char *text, int line)
{
	const char *at = text;

	for (; at && line > 1; line--) {
		at = strchr(at, '\n');
		if (!at)
			return NULL;
		at++;
	}
	return at;
}

void weir_diag_quote(struct weir_diag *diag, const char *file, const char *text)
{
	for (size_t i = 0; i < diag->count; i++) {
		struct weir_diag_entry *entry = &diag->entries[i];
		const char *line;

		if (!entry->file || entry->source_line || strcmp(entry->file, file))
			continue;
		line = weir_text_line(text, entry->line);
		if (line)
			set_excerpt(entry, line);
	}
}

/* ---- printing ---- */

/* Escape sequences that start and end a colour (ECMA-48, SGR), or empty strings. The background is not changed. */
struct ink {
	const char *place, *mistake, *warning, *note, *end;
};
static const struct ink plain_ink = {"", "", "", "", ""};
static const struct ink coloured_ink = {"\033[1m", "\033[1;31m", "\033[1;33m", "\033[1;32m", "\033[0m"};

static const char *kind_ink(const struct weir_diag_entry *entry, const struct ink *ink)
{
	if (entry->is_note)
		return ink->note;
	return entry->is_warning ? ink->warning : ink->mistake;
}

/* The sort key for printing. All entries of a file use the index of the file's first entry. */
struct rank {
	const struct weir_diag_entry *entry;
	size_t file, order;
};

static int compare_ranks(const void *left, const void *right)
{
	const struct rank *a = left, *b = right;

	if (a->entry->is_note != b->entry->is_note)
		return a->entry->is_note ? 1 : -1;
	if (a->entry->is_warning != b->entry->is_warning)
		return a->entry->is_warning ? 1 : -1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->entry->line != b->entry->line)
		return a->entry->line < b->entry->line ? -1 : 1;
	if (a->entry->column != b->entry->column)
		return a->entry->column < b->entry->column ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static struct rank *rank_entries(const struct weir_diag *diag)
{
	struct rank *ranks = calloc(diag->count + 1, sizeof(*ranks));

	for (size_t i = 0; ranks && i < diag->count; i++) {
		const char *file = diag->entries[i].file;
		size_t first = 0;

		ranks[i] = (struct rank){.entry = &diag->entries[i], .order = i};
		while (first < i && file && (!diag->entries[first].file || strcmp(diag->entries[first].file, file)))
			first++;
		ranks[i].file = file ? first : i;
	}
	if (ranks)
		qsort(ranks, diag->count, sizeof(*ranks), compare_ranks);
	return ranks;
}

void weir_diag_sort(struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct rank *ranks = rank_entries(diag);
	struct weir_diag_entry *sorted = ranks ? calloc(diag->count + 1, sizeof(*sorted)) : NULL;

	if (!sorted)
		return;
	for (size_t i = 0; i < diag->count; i++)
		sorted[i] = *ranks[i].entry;
	memcpy(diag->entries, sorted, diag->count * sizeof(*sorted));
	free(sorted);
}

/* Print the line, and below it a caret and tildes under the token. Tabs are copied, so that they have the same width in
 * both lines.
 */
static void print_source(const struct weir_diag_entry *entry, const struct ink *ink, FILE *stream)
{
	const char *at = entry->source_line;

	fprintf(stream, "    %s\n    ", entry->source_line);
	for (int i = 0; i < entry->caret; i++) {
		fputc(*at == '\t' ? '\t' : ' ', stream);
		at = next_character(at);
	}
	fprintf(stream, "%s^", kind_ink(entry, ink));
	at = next_character(at);
	for (int i = 1; i < entry->width && *at; i++) {
		fputc('~', stream);
		at = next_character(at);
	}
	fprintf(stream, "%s\n", ink->end);
}

static void print_entry(const struct weir_diag_entry *entry, const struct ink *ink, FILE *stream)
{
	const char *kind = entry->is_note ? "note: " : entry->is_warning ? "warning: " : "";

	if (entry->file)
		fprintf(stream, "%s%s:%d:%d:%s ", ink->place, entry->file, entry->line, entry->column, ink->end);
	if (kind[0])
		fprintf(stream, "%s%s%s", kind_ink(entry, ink), kind, ink->end);
	fprintf(stream, "%s\n", entry->message ? entry->message : "out of memory");
	if (entry->source_line)
		print_source(entry, ink, stream);
	for (const char *line = entry->hint; line && *line;) {
		int bytes = strcspn(line, "\n");

		fprintf(stream, "    %.*s\n", bytes, line);
		line += bytes + (line[bytes] == '\n');
	}
}

/* If there is no memory, print the entry without the prefix. */
static void print_entry_prefixed(const struct weir_diag_entry *entry, const char *prefix, FILE *stream)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes;
	FILE *lines = prefix[0] ? open_memstream(&text, &bytes) : NULL;

	print_entry(entry, &plain_ink, lines ? lines : stream);
	if (!lines || fclose(lines) || !text)
		return;
	for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		fprintf(stream, "%s%.*s\n", prefix, (int)(end - line), line);
}

void weir_diag_print_prefixed(const struct weir_diag *diag, const char *mistake, const char *warning, FILE *stream)
{
	_cleanup_(weir_freep) struct rank *ranks = rank_entries(diag);

	for (size_t i = 0; i < diag->count; i++) {
		const struct weir_diag_entry *entry = ranks ? ranks[i].entry : &diag->entries[i];

		print_entry_prefixed(entry, entry->is_warning ? warning : mistake, stream);
	}
	if (diag->errors && !diag->count)
		fprintf(stream, "%sout of memory\n", mistake);
}

void weir_diag_print(const struct weir_diag *diag, FILE *stream)
{
	weir_diag_print_prefixed(diag, "", "", stream);
}

void weir_diag_print_coloured(const struct weir_diag *diag, FILE *stream)
{
	_cleanup_(weir_freep) struct rank *ranks = rank_entries(diag);

	for (size_t i = 0; i < diag->count; i++)
		print_entry(ranks ? ranks[i].entry : &diag->entries[i], &coloured_ink, stream);
	if (diag->errors && !diag->count)
		fputs("out of memory\n", stream);
}

void weir_diag_free(struct weir_diag *diag)
{
	for (size_t i = 0; i < diag->count; i++) {
		free(diag->entries[i].file);
		free(diag->entries[i].source_line);
		free(diag->entries[i].message);
		free(diag->entries[i].hint);
	}
	free(diag->entries);
	*diag = (struct weir_diag){};
}

void weir_diag_move(struct weir_diag *diag, struct weir_diag *from, bool as_warnings)
{
	diag->errors += as_warnings ? 0 : from->errors;
	for (size_t i = 0; i < from->count; i++) {
		struct weir_diag_entry *entry = weir_array_add((void **)&diag->entries, diag->count, sizeof(*entry));

		if (!entry)
			break;
		*entry = from->entries[i];
		from->entries[i] = (struct weir_diag_entry){};
		entry->is_warning |= as_warnings;
		diag->count++;
	}
	weir_diag_free(from);
}
