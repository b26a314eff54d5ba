// SPDX-License-Identifier: GPL-2.0-only
/* The page docs/bench.md: what a run has found, as Markdown. */
#include "picture.h"
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/util.h"

static void write_machine(FILE *stream, json_t *machine)
{
	const char *name;
	json_t *value;

	fputs("## The machine\n\n| | |\n| --- | --- |\n", stream);
	json_object_foreach(machine, name, value) fprintf(stream, "| %s | %s |\n", name, json_string_value(value));
}

static void write_rows(FILE *stream, const struct report *report)
{
	fputs("\n## Targets\n\n"
	      "| row | what | ratio, or count | must | aim | | measured |\n| --- | --- | --- | --- | --- | --- | --- "
	      "|\n",
	      stream);
	for (size_t i = 0; i < report->count; i++) {
		const struct report_row *row = &report->rows[i];
		char value[24] = "", must[32], aim[32];
		const char *result = report_evaluate(row);

		if (!row->skipped[0])
			snprintf(value, sizeof(value), row->is_ratio ? "%.3f" : "%g", row->value);
		fprintf(stream, "| %s | %s | %s | %s | %s | %s%s%s | %s |\n", row->row, row->what, value,
			report_bounds_words(row->must, must, sizeof(must)),
			report_bounds_words(row->aim, aim, sizeof(aim)), result[0] == 'M' ? "**" : "", result,
			result[0] == 'M' ? "**" : "", row->skipped[0] ? row->skipped : row->measured);
	}
}

static void write_cell(FILE *stream, const struct report_column *column, json_t *cell)
{
	if (json_is_string(cell))
		fprintf(stream, " %s |", json_string_value(cell));
	else if (json_is_real(cell))
		fprintf(stream, " %.*f |", column->decimals, json_real_value(cell));
	else
		fputs(" - |", stream);
}

static void write_table(FILE *stream, const struct report_table *table)
{
	json_t *line;
	size_t i;

	fprintf(stream, "\n## %s\n\n", table->title);
	if (table->note)
		fprintf(stream, "%s\n\n", table->note);
	fputs("|", stream);
	for (i = 0; i < table->column_count; i++)
		fprintf(stream, " %s |", table->columns[i].name);
	fputs("\n|", stream);
	for (i = 0; i < table->column_count; i++)
		fputs(table->columns[i].decimals == REPORT_WORDS ? " --- |" : " ---: |", stream);
	fputs("\n", stream);
	json_array_foreach(table->lines, i, line)
	{
		fputs("|", stream);
		for (size_t cell = 0; cell < table->column_count; cell++)
			write_cell(stream, &table->columns[cell], json_array_get(line, cell));
		fputs("\n", stream);
	}
}

/* Beside the page, under its name. A run without what it shows has none. */
static int write_picture(FILE *stream, const struct report *report, const char *page_path)
{
	size_t length = strlen(page_path);
	char path[4096];
	int err;

	if (length > 3 && !strcmp(page_path + length - 3, ".md"))
		length -= 3;
	snprintf(path, sizeof(path), "%.*s.svg", (int)length, page_path);
	err = picture_write(report, path);
	if (err)
		return err == -ENOENT ? 0 : err;
	fprintf(stream, "![what a packet costs, beside other limiters](%s)\n\n",
		strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	return 0;
}

int report_write_page(const struct report *report, json_t *machine, const char *path)
{
	FILE *stream = fopen(path, "we");
	int err;

	if (!stream)
		return -errno;
	fputs("# Speed and accuracy, measured\n\n", stream);
	err = write_picture(stream, report, path);
	fputs("`make bench` writes this page in one run. `docs/bench.json` has the same figures for programs, and the "
	      "accuracy of every run. Nanoseconds\n"
	      "differ from machine to machine, so what counts is the ratio to something measured in the same run.\n"
	      "`docs/internals/bench-method.md`, in the source, describes each part.\n\n",
	      stream);
	write_machine(stream, machine);
	write_rows(stream, report);
	for (size_t i = 0; i < report->table_count; i++)
		if (!report->tables[i].is_only_in_json)
			write_table(stream, &report->tables[i]);
	if (ferror(stream))
		err = -EIO;
	return fclose(stream) ? -EIO : err;
}
