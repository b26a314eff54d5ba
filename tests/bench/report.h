/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table: one line a claim of what to reach, judged against its "must" and its "aim".
 */
#ifndef WEIR_BENCH_REPORT_H
#define WEIR_BENCH_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Both ends included; an end that is not there is -INFINITY or INFINITY. */
struct report_bounds {
	double low, high;
};

struct report_row {
	const char *row; /* "S1", "A3" */
	char what[80];
	char measured[40]; /* for people, with its unit */
	double value;	   /* what is judged: the ratio, or the count */
	bool is_ratio;
	struct report_bounds must, aim;
	char skipped[60]; /* why, when it could not be measured */
};

#define REPORT_ROWS_MAX 64
struct report {
	struct report_row rows[REPORT_ROWS_MAX];
	size_t count;
};

#define AT_MOST(number) ((struct report_bounds){-INFINITY, number})
#define AT_LEAST(number) ((struct report_bounds){number, INFINITY})
#define BETWEEN(from, to) ((struct report_bounds){from, to})
#define EXACTLY(number) ((struct report_bounds){number, number})

/* A line at the end; the caller fills it in. */
struct report_row *report_add(struct report *report, const char *row, struct report_bounds must,
			      struct report_bounds aim, const char *what, ...) __attribute__((format(printf, 5, 6)));

/* Returns how many musts were missed. */
size_t report_print(const struct report *report, FILE *stream);
int report_write_json(const struct report *report, const char *path);

/* Median of count > 0 values; sorts them. */
double report_median(double *values, size_t count);

#endif
