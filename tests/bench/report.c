// SPDX-License-Identifier: GPL-2.0-only
#include "report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "util.h"

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

static const char *judge(const struct report_row *row)
{
	if (row->skipped[0])
		return "SKIPPED";
	if (!is_within(row->value, row->must))
		return "MISSED";
	return is_within(row->value, row->aim) ? "ok, aim" : "ok";
}

static const char *words_of(struct report_bounds bounds, char *text, size_t bytes)
{
	if (bounds.low == bounds.high)
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
			words_of(row->must, must, sizeof(must)), words_of(row->aim, aim, sizeof(aim)), judge(row));
		missed += judge(row)[0] == 'M';
	}
	return missed;
}

static json_t *json_bounds(struct report_bounds bounds)
{
	return json_pack("[o,o]", isinf(bounds.low) ? json_null() : json_real(bounds.low),
			 isinf(bounds.high) ? json_null() : json_real(bounds.high));
}

int report_write_json(const struct report *report, const char *path)
{
	json_t *rows = json_array();
	int err;

	for (size_t i = 0; i < report->count; i++) {
		const struct report_row *row = &report->rows[i];

		json_array_append_new(rows, json_pack("{ss,ss,ss,so,sb,so,so,ss}", "row", row->row, "what", row->what,
						      "measured", row->skipped[0] ? row->skipped : row->measured,
						      "value", row->skipped[0] ? json_null() : json_real(row->value),
						      "isRatio", row->is_ratio, "must", json_bounds(row->must), "aim",
						      json_bounds(row->aim), "result", judge(row)));
	}
	err = json_dump_file(rows, path, JSON_INDENT(2)) ? -EIO : 0;
	json_decref(rows);
	return err;
}

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
