/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room exposition: metrics as text, in the two formats that Prometheus reads: its own, 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/), and OpenMetrics 1.0 (RFC draft
 * draft-richih-opsawg-openmetrics-00). Which metrics there are, and what they are worth, is the caller's. Pure.
 *
 * The two differ in the names of counters in their head lines, in the types `info` and UNIT, and in the last line.
 * Samples are the same.
 */
#ifndef WEIR_EXPOSITION_H
#define WEIR_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_metric_type {
	WEIR_METRIC_GAUGE,
	WEIR_METRIC_COUNTER,   /* samples end in _total */
	WEIR_METRIC_HISTOGRAM, /* _bucket, _sum, _count */
	WEIR_METRIC_INFO,      /* _info; its value is 1 */
};

struct weir_metric_family {
	const char *name; /* without the ending of its samples, with that of its unit */
	enum weir_metric_type type;
	const char *unit; /* "seconds", "bytes", "ratio"; NULL: it counts things */
	const char *help; /* one line */
};

/* A text that grows. Out of memory it is cut, and says so. */
struct weir_exposition {
	bool is_openmetrics;
	char *text; /* owned; `bytes` of it are written, and no zero ends it */
	size_t bytes, room;
	bool is_cut;
	const struct weir_metric_family *metric; /* whose samples come */
};

/* Labels of a sample, as they stand between the braces; zeroed it has none. What does not fit is left out whole. */
#define WEIR_LABELS_BYTES 640
struct weir_labels {
	size_t bytes;
	char text[WEIR_LABELS_BYTES];
};

/* `value` may be any bytes: U+FFFD stands for each that is not UTF-8. */
void weir_labels_add(struct weir_labels *labels, const char *name, const char *value);

/* The lines above a metric's samples, which come next, all together. */
void weir_exposition_begin(struct weir_exposition *exposition, const struct weir_metric_family *metric);

/* A sample of the metric begun; NULL: without labels. */
void weir_exposition_count(struct weir_exposition *exposition, const struct weir_labels *labels, uint64_t value);
void weir_exposition_value(struct weir_exposition *exposition, const struct weir_labels *labels, double value);

/*
 * All samples of a histogram whose step n counts what is below 2^(n + 1) millionths of the unit, and at or above 2^n;
 * the last step has no upper bound. sum_micro: all that was observed, in millionths.
 */
void weir_exposition_powers(struct weir_exposition *exposition, const struct weir_labels *labels, const uint64_t *steps,
			    size_t step_count, uint64_t sum_micro);

/* The last line, where there is one. */
void weir_exposition_end(struct weir_exposition *exposition);
void weir_exposition_free(struct weir_exposition *exposition);

/* The value of Content-Type. */
const char *weir_exposition_type(bool is_openmetrics);

/*
 * Does who sends this header `Accept` (RFC 9110, 12.5.1; NULL: none) want OpenMetrics 1.0 rather than the older format?
 * Who asks for neither gets the older one, as a person with curl does.
 */
bool weir_exposition_is_openmetrics(const char *accept);

#endif
