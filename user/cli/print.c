// SPDX-License-Identifier: GPL-2.0-only
#include "cli/print.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/printable.h"
#include "base/util.h"
#include "cli/terminal.h"
#include "instance/instance.h"
#include "report/status.h"

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
	weir_make_printable(*cell, "");
}

/* No record is larger. */
#define WEIR_RECORD_BYTES_MAX 4096

static void put_heading(void *data, const char *heading)
{
	struct weir_table *table = data;

	assert(table->columns < WEIR_TABLE_COLUMNS_MAX);
	table->headings[table->columns++] = heading;
}

static void put_cell(void *table, const char *text)
{
	weir_table_cell(table, "%s", text);
}

void weir_table_head(struct weir_table *table, weir_describer *describe, const void *context)
{
	static const max_align_t zeros[WEIR_RECORD_BYTES_MAX / sizeof(max_align_t)];
	struct weir_figures line = {.is_heading = true, .put = put_heading, .table = table};

	describe(&line, context, zeros);
}

void weir_table_add(struct weir_table *table, weir_describer *describe, const void *context, const void *record)
{
	struct weir_figures line = {.put = put_cell, .table = table};

	describe(&line, context, record);
}

void weir_table_list(struct weir_table *table, weir_describer *describe, const void *context, const void *records,
		     size_t count, size_t record_bytes)
{
	weir_table_head(table, describe, context);
	for (size_t i = 0; i < count; i++)
		weir_table_add(table, describe, context, (const char *)records + i * record_bytes);
}

/* Take a column out of the headings and out of each line. */
static void take_out(struct weir_table *table, size_t column)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->cell_count; i++) {
		if (i % table->columns == column)
			free(table->cells[i]);
		else
			table->cells[kept++] = table->cells[i];
	}
	table->cell_count = kept;
	for (table->columns--; column < table->columns; column++)
		table->headings[column] = table->headings[column + 1];
}

void weir_table_leave_out(struct weir_table *table, const char *heading)
{
	for (size_t column = 0; column < table->columns; column++)
		if (!strcmp(table->headings[column], heading))
			take_out(table, column--);
}

static int is_right(const struct weir_table *table, size_t column)
{
	return table->headings[column][0] == '>';
}

static const char *heading(const struct weir_table *table, size_t column)
{
	return table->headings[column] + is_right(table, column);
}

/* Width in characters, not bytes: names are UTF-8. Double-width characters are not supported. */
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

#define COLUMN_GAP 2

/* The remaining part of a cut word still distinguishes most words. Chosen, not derived. */
#define CUT_WIDTH_MIN 12

/* The widest column that may be cut further; table->columns if there is none. */
static size_t find_widest(const struct weir_table *table, const int *widths)
{
	size_t widest = table->columns;

	for (size_t column = 0; column < table->columns; column++) {
		if (is_right(table, column) || widths[column] <= CUT_WIDTH_MIN ||
		    widths[column] <= text_width(heading(table, column)))
			continue;
		if (widest == table->columns || widths[column] > widths[widest])
			widest = column;
	}
	return widest;
}

/* Shorten columns one character at a time, so that they share the loss. 0 columns: no limit. */
static void fit_widths(const struct weir_table *table, int columns, int *widths)
{
	int excess = -columns;

	for (size_t column = 0; column < table->columns; column++)
		excess += COLUMN_GAP + widths[column];
	for (; columns && excess > 0; excess--) {
		size_t widest = find_widest(table, widths);

		if (widest == table->columns)
			return; /* the terminal wraps the lines */
		widths[widest]--;
	}
}

static void print_cell(const struct weir_table *table, size_t column, const char *text, int width, FILE *stream)
{
	const int padding = width - text_width(text);

	fprintf(stream, "%*s", COLUMN_GAP, "");
	if (padding < 0) {
		for (int left = width - 1; *text && left > 0; text++) { /* characters */
			left -= !weir_utf8_continues(text[1]);
			fputc(*text, stream);
		}
		fputs("…", stream);
	} else if (is_right(table, column)) {
		fprintf(stream, "%*s%s", padding, "", text);
	} else {
		fprintf(stream, "%s%*s", text, column + 1 < table->columns ? padding : 0, "");
	}
}

static bool is_empty(const struct weir_table *table, size_t column)
{
	for (size_t i = column; i < table->cell_count; i += table->columns)
		if (strtod(cell_text(table, i), NULL) != 0)
			return false;
	return true;
}

void weir_table_print(struct weir_table *table, FILE *stream)
{
	int widths[WEIR_TABLE_COLUMNS_MAX] = {};
	bool is_bold;

	for (size_t column = 0; column < table->columns; column++) {
		if (table->headings[column][0] != '?')
			continue;
		table->headings[column]++;
		if (is_empty(table, column))
			take_out(table, column--);
	}
	assert(table->columns && table->columns <= ARRAY_SIZE(widths));
	for (size_t column = 0; column < table->columns; column++)
		widths[column] = text_width(heading(table, column));
	for (size_t i = 0; i < table->cell_count; i++)
		if (text_width(cell_text(table, i)) > widths[i % table->columns])
			widths[i % table->columns] = text_width(cell_text(table, i));
	fit_widths(table, weir_terminal_columns(stream), widths);
	is_bold = weir_terminal_has_colours(stream);
	fputs(is_bold ? "\033[1m" : "", stream);
	for (size_t column = 0; column < table->columns; column++)
		print_cell(table, column, heading(table, column), widths[column], stream);
	fprintf(stream, "%s\n", is_bold ? "\033[0m" : "");
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

/* ---- text ---- */

#define TOPIC_MARGIN 2
/* With less space than this, wrapping is left to the terminal. Chosen, not derived. */
#define TEXT_COLUMNS_MIN 30

/* The number of bytes of `text`, up to a space, that fit into `columns`; a longer word counts in full. */
static size_t line_bytes(const char *text, int columns)
{
	size_t fits = 0, at = 0;
	int width = 0;

	for (;;) {
		size_t word = at + strcspn(text + at, " ");

		for (size_t i = at; i < word; i++)
			width += !weir_utf8_continues(text[i]);
		if (fits && width > columns)
			return fits;
		fits = word;
		if (!text[word])
			return fits;
		at = word + 1;
		width++;
	}
}

void weir_print_topic(const char *topic, int topic_columns, const char *text, FILE *stream)
{
	const int indent = TOPIC_MARGIN + topic_columns + COLUMN_GAP, columns = weir_terminal_columns(stream) - indent;

	fprintf(stream, "%*s%-*s", TOPIC_MARGIN, "", topic_columns + COLUMN_GAP, topic);
	while (columns >= TEXT_COLUMNS_MIN) {
		size_t bytes = line_bytes(text, columns);

		if (!text[bytes])
			break;
		fprintf(stream, "%.*s\n%*s", (int)bytes, text, indent, "");
		text += bytes + 1;
	}
	fprintf(stream, "%s\n", text);
}

/* ---- results ---- */

/* If the reader has closed the pipe because it has seen enough, as 'head' does, this is not an error. */
int weir_flush_results(struct weir_diag *diag)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	if (errno == EPIPE)
		return -EPIPE;
	return weir_diag_fail(diag, errno ? errno : EIO, NULL, "cannot print the result");
}

void weir_print_clean(FILE *stream, const char *format, va_list args)
{
	_cleanup_(weir_freep) char *text = NULL;

	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	weir_make_printable(text, "");
	fputs(text ?: "out of memory", stream);
}

int weir_json_print(json_t *document, struct weir_diag *diag)
{
	_cleanup_(weir_freep) char *text = weir_json_dump(document, WEIR_JSON_FLAGS);
	int err = text ? 0 : ENOMEM;

	errno = 0;
	if (text && puts(text) < 0)
		err = errno ? errno : EIO;
	json_decref(document);
	if (err == EPIPE)
		return -EPIPE;
	if (err)
		return weir_diag_fail(diag, err, NULL, "cannot print the result");
	return weir_flush_results(diag);
}

#define FAIR_LINES_MAX 10u

void weir_print_fair(const struct weir_instance *instance, const struct weir_fair_uses *uses)
{
	char words[WEIR_WORDS_BYTES];

	for (size_t i = 0; i < uses->count && i < FAIR_LINES_MAX; i++)
		printf("  %s: contended: %s\n", instance->rules[uses->uses[i].rule_slot].name,
		       weir_fair_words(instance, &uses->uses[i], words));
	if (uses->count > FAIR_LINES_MAX)
		printf("  and %zu more contended flow%s\n", uses->count - FAIR_LINES_MAX,
		       weir_plural(uses->count - FAIR_LINES_MAX));
}

static const char *directions_words(const struct weir_instance *instance, const struct weir_link *link)
{
	if (weir_hook_is_out(link->hook))
		return ", only outgoing packets";
	return weir_instance_link_on(instance, link->ifindex, true) ? ", both directions" : "";
}

bool weir_limits_words(const char *name, char words[WEIR_LIMITS_BYTES])
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_diag ignored = {}; /* only the words are needed */
	char interfaces[256] = "";
	size_t used = 0;

	if (weir_instance_open_now(name, &instance, &ignored)) {
		weir_diag_free(&ignored);
		return false;
	}
	for (size_t i = 0; i < instance->link_count && used < sizeof(interfaces); i++)
		if (weir_link_stands(instance->links, instance->link_count, i))
			used += snprintf(interfaces + used, sizeof(interfaces) - used, "%s'%s' (%s%s)",
					 used ? ", " : "", instance->links[i].interface,
					 weir_link_mode_name(&instance->links[i]),
					 directions_words(instance, &instance->links[i]));
	snprintf(words, WEIR_LIMITS_BYTES, "%s %s by %u rule%s", instance->info.observes ? "observes" : "limits",
		 interfaces, instance->rule_count, weir_plural(instance->rule_count));
	weir_make_printable(words, "");
	return true;
}
