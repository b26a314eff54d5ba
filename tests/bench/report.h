/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a run has found: rows, each a claim of what to reach, evaluated against its "must" and its "aim"; and
 * tables of figures that nobody has promised. Kept in memory, then shown on a terminal, written as JSON, or
 * as the page docs/bench.md (page.c). Measures nothing itself.
 */
#ifndef WEIR_BENCH_REPORT_H
#define WEIR_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct json_t;

/* Both ends included; an end that is not there is -INFINITY or INFINITY. */
struct report_bounds {
	double low, high;
};

struct report_row {
	const char *row; /* "S1", "A3" */
	char what[80];
	char measured[40]; /* for people, with its unit */
	double value;	   /* what is evaluated: the ratio, or the count */
	bool is_ratio;
	bool is_time; /* in seconds: means nothing on another kind of machine */
	struct report_bounds must, aim;
	char skipped[60]; /* why, when it could not be measured */
};

/* One column of a table: words, or numbers with so many decimals. */
#define REPORT_WORDS (-1)
struct report_column {
	const char *name;
	int decimals;
};

struct report_table {
	const char *name;  /* in JSON */
	const char *title; /* on the page */
	const char *note;  /* below the title; may be NULL */
	const struct report_column *columns;
	size_t column_count;
	bool is_only_in_json;
	struct json_t *lines; /* arrays of strings, numbers and nulls, as many as columns */
};

#define REPORT_ROWS_MAX 96
#define REPORT_TABLES_MAX 20
struct report {
	struct report_row rows[REPORT_ROWS_MAX];
	size_t count;
	struct report_table tables[REPORT_TABLES_MAX];
	size_t table_count;
};

#define AT_MOST(number) ((struct report_bounds){-INFINITY, number})
#define AT_LEAST(number) ((struct report_bounds){number, INFINITY})
#define BETWEEN(from, to) ((struct report_bounds){from, to})
#define EXACTLY(number) ((struct report_bounds){number, number})

/* A line at the end; the caller fills it in. */
struct report_row *report_add(struct report *report, const char *row, struct report_bounds must,
			      struct report_bounds aim, const char *what, ...) __attribute__((format(printf, 5, 6)));

/* An empty table at the end. `columns` must outlive the report. */
struct report_table *report_table(struct report *report, const char *name, const char *title, const char *note,
				  const struct report_column *columns, size_t column_count);

/* A line at the end of a table. Its cells are taken over: strings, reals, or nulls for what was not measured. */
void report_line(struct report_table *table, struct json_t *cells);

/* A real, or a null of what is no number. */
struct json_t *report_number(double value);

/* Sort the rows by name, and add one that says "not measured" for each of S1 to S14 and A1 to A8 that has none. */
void report_complete(struct report *report);

/* "MISSED", "ok", "ok, aim" or "SKIPPED". */
const char *report_evaluate(const struct report_row *row);

/* "<= 0.5", "= 0", "0.9..1.1". */
const char *report_bounds_words(struct report_bounds bounds, char *text, size_t bytes);

/* The rows, for a terminal. Returns how many musts were missed. */
size_t report_print(const struct report *report, FILE *stream);

/* {"machine": ..., "targets": [...], "tables": [...]}; `machine` is not taken over. */
int report_write_json(const struct report *report, struct json_t *machine, const char *path);

/* The page: a picture (a file beside it, .svg for .md), the machine, the rows and the tables. */
int report_write_page(const struct report *report, struct json_t *machine, const char *path);

void report_free(struct report *report);

/* Median of count > 0 values; sorts them. */
double report_median(double *values, size_t count);

#endif
