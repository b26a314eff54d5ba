// SPDX-License-Identifier: GPL-2.0-only
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* ---- rows ---- */

struct report_row *report_add(struct report *report, const char *row, struct report_bounds must,
			      struct report_bounds aim, const char *what, ...)
{
	struct report_row *added = &report->rows[report->count];
	va_list args;

	if (report->count == REPORT_ROWS_MAX)
		abort();
	report->count++;
	added->row = row;
	added->must = must;
	added->aim = aim;
	va_start(args, what);
	vsnprintf(added->what, sizeof(added->what), what, args);
	va_end(args);
	return added;
}

static bool is_within(double value, struct report_bounds bounds)
{
	return value >= bounds.low && value <= bounds.high;
}

const char *report_evaluate(const struct report_row *row)
{
	if (row->skipped[0])
		return "SKIPPED";
	if (!is_within(row->value, row->must))
		return "MISSED";
	return is_within(row->value, row->aim) ? "ok, aim" : "ok";
}

const char *report_bounds_words(struct report_bounds bounds, char *text, size_t bytes)
{
	if (isinf(bounds.low) && isinf(bounds.high))
		snprintf(text, bytes, "%s", "");
	else if (bounds.low == bounds.high)
		snprintf(text, bytes, "= %g", bounds.low);
	else if (isinf(bounds.low))
		snprintf(text, bytes, "<= %g", bounds.high);
	else if (isinf(bounds.high))
		snprintf(text, bytes, ">= %g", bounds.low);
	else
		snprintf(text, bytes, "%g..%g", bounds.low, bounds.high);
	return text;
}

size_t report_print(const struct report *report, FILE *stream)
{
	const char *const line = "%-4s %-52s %-34s %8s  %-12s %-12s %s\n";
	size_t missed = 0;

	fprintf(stream, line, "row", "what", "measured", "ratio", "must", "aim", "");
	for (size_t i = 0; i < report->count; i++) {
		const struct report_row *row = &report->rows[i];
		char ratio[16] = "", must[32], aim[32];

		if (row->is_ratio && !row->skipped[0])
			snprintf(ratio, sizeof(ratio), "%.3f", row->value);
		fprintf(stream, line, row->row, row->what, row->skipped[0] ? row->skipped : row->measured, ratio,
			report_bounds_words(row->must, must, sizeof(must)),
			report_bounds_words(row->aim, aim, sizeof(aim)), report_evaluate(row));
		missed += report_evaluate(row)[0] == 'M';
	}
	return missed;
}

/* All that is to be reached, in a few words, for what a run has not measured. */
static const struct {
	const char *row, *what;
} promised[] = {
	{"S1", "one flow over its limit"},
	{"S2", "1M random flows"},
	{"S3", "every packet a new source"},
	{"S4", "both CPUs on one flow against one"},
	{"S5", "1,024 and 4,096 resources against one"},
	{"S7", "end to end, beside nftables and hashlimit"},
	{"S8", "each further rule on the same packet"},
	{"S9", "load and reload of 8,192 rules"},
	{"S10", "SYN flood of new sources under a connections rule"},
	{"S10e", "a SYN flood end to end, beside nft ct count"},
	{"S10c", "a SYN flood that is answered with cookies, end to end"},
	{"S11", "bytes, 1M flows"},
	{"S12", "WarmUp and MemoryAdaptive, 1M flows"},
	{"S13", "tokens, 1M flows and one over its limit"},
	{"S14", "legitimate TCP, throughput and requests"},
	{"A1", "strict: the fullest interval anywhere"},
	{"A2", "what each kind's own window holds"},
	{"A3", "saturated for 120 intervals"},
	{"A4", "a lone burst after silence"},
	{"A5", "as much again 60 ms later"},
	{"A6", "a flow below its limit in a flood"},
	{"A7", "a flow at 100 times its limit in a flood"},
	{"A8", "an overfull table"},
};

/* Speed first. */
static int compare_rows(const void *a, const void *b)
{
	const struct report_row *left = a, *right = b;

	if (left->row[0] != right->row[0])
		return right->row[0] - left->row[0];
	return atoi(left->row + 1) - atoi(right->row + 1);
}

/* Stable, unlike qsort: rows of one name stay in the order in which they were measured. */
static void sort_rows(struct report *report)
{
	for (size_t i = 1; i < report->count; i++) {
		struct report_row row = report->rows[i];
		size_t at = i;

		for (; at > 0 && compare_rows(&report->rows[at - 1], &row) > 0; at--)
			report->rows[at] = report->rows[at - 1];
		report->rows[at] = row;
	}
}

static bool has_row(const struct report *report, const char *name)
{
	for (size_t i = 0; i < report->count; i++)
		if (!strcmp(report->rows[i].row, name))
			return true;
	return false;
}

void report_complete(struct report *report)
{
	for (size_t i = 0; i < ARRAY_SIZE(promised); i++) {
		struct report_row *row;

		if (has_row(report, promised[i].row))
			continue;
		row = report_add(report, promised[i].row, BETWEEN(-INFINITY, INFINITY), BETWEEN(-INFINITY, INFINITY),
				 "%s", promised[i].what);
		snprintf(row->skipped, sizeof(row->skipped), "not measured");
	}
	sort_rows(report);
}

/* ---- tables ---- */

struct report_table *report_table(struct report *report, const char *name, const char *title, const char *note,
				  const struct report_column *columns, size_t column_count)
{
	struct report_table *table = &report->tables[report->table_count];

	if (report->table_count == REPORT_TABLES_MAX)
		abort();
	report->table_count++;
	*table = (struct report_table){.name = name,
				       .title = title,
				       .note = note,
				       .columns = columns,
				       .column_count = column_count,
				       .lines = json_array()};
	return table;
}

void report_line(struct report_table *table, json_t *cells)
{
	if (json_array_size(cells) != table->column_count || json_array_append_new(table->lines, cells))
		abort();
}

json_t *report_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

void report_free(struct report *report)
{
	for (size_t i = 0; i < report->table_count; i++)
		json_decref(report->tables[i].lines);
	report->table_count = 0;
}

/* ---- JSON ---- */

static json_t *json_bounds(struct report_bounds bounds)
{
	return json_pack("[o,o]", report_number(bounds.low), report_number(bounds.high));
}

static json_t *json_row(const struct report_row *row)
{
	bool is_skipped = row->skipped[0];

	return json_pack("{ss,ss,ss,so,sb,sb,so,so,ss}", "row", row->row, "what", row->what, "measured",
			 is_skipped ? row->skipped : row->measured, "value",
			 is_skipped ? json_null() : report_number(row->value), "isRatio", row->is_ratio, "isTime",
			 row->is_time, "must", json_bounds(row->must), "aim", json_bounds(row->aim), "result",
			 report_evaluate(row));
}

static json_t *json_table(const struct report_table *table)
{
	json_t *columns = json_array();

	for (size_t i = 0; i < table->column_count; i++)
		json_array_append_new(columns, json_string(table->columns[i].name));
	return json_pack("{ss,ss,so,sO}", "name", table->name, "title", table->title, "columns", columns, "lines",
			 table->lines);
}

int report_write_json(const struct report *report, json_t *machine, const char *path)
{
	json_t *rows = json_array(), *tables = json_array(), *root;
	int err;

	for (size_t i = 0; i < report->count; i++)
		json_array_append_new(rows, json_row(&report->rows[i]));
	for (size_t i = 0; i < report->table_count; i++)
		json_array_append_new(tables, json_table(&report->tables[i]));
	root = json_pack("{sO,so,so}", "machine", machine, "targets", rows, "tables", tables);
	err = json_dump_file(root, path, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) ? -EIO : 0;

	json_decref(root);
	return err;
}

/* ---- arithmetic ---- */

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

double report_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}
