/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room exposition: metrics as text, in the two formats that Prometheus reads: its own, 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/), and OpenMetrics 1.0 (RFC draft
 * draft-richih-opsawg-openmetrics-00). The caller decides which metrics there are and what their values are. Pure.
 *
 * The formats differ in the names of counters in their head lines, in the types `info` and UNIT, and in the last line.
 * Their samples are the same.
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
	const char *name; /* without the suffix of its samples, with the suffix of its unit */
	enum weir_metric_type type;
	const char *unit; /* "seconds", "bytes", "ratio"; NULL: it counts things */
	const char *help; /* one line of text */
};

/* A text that grows. If memory runs out, it is truncated, and is_cut says so. */
struct weir_exposition {
	bool is_openmetrics;
	char *text; /* owned; `bytes` of it are used, without a terminating zero */
	size_t bytes, room;
	bool is_cut;
	const struct weir_metric_family *metric; /* the metric whose samples are being written */
};

/* Labels of a sample, as they appear between the braces; a zeroed struct has none. A label that does not fit is omitted
 * entirely.
 */
#define WEIR_LABELS_BYTES 640
struct weir_labels {
	size_t bytes;
	char text[WEIR_LABELS_BYTES];
};

/* `value` may be any bytes: each byte that is not UTF-8 becomes U+FFFD. */
void weir_labels_add(struct weir_labels *labels, const char *name, const char *value);

/* Write the head lines of a metric. All its samples must follow, without those of others in between. */
void weir_exposition_begin(struct weir_exposition *exposition, const struct weir_metric_family *metric);

/* Write a sample of the current metric. labels may be NULL: no labels. */
void weir_exposition_count(struct weir_exposition *exposition, const struct weir_labels *labels, uint64_t value);
void weir_exposition_value(struct weir_exposition *exposition, const struct weir_labels *labels, double value);

/*
 * Write all samples of a histogram. Step n counts values from 2^n to below 2^(n + 1) millionths of the unit; the last
 * step has no upper bound. sum_micro is the sum of all observed values, in millionths.
 */
void weir_exposition_powers(struct weir_exposition *exposition, const struct weir_labels *labels, const uint64_t *steps,
			    size_t step_count, uint64_t sum_micro);

/* Write the last line, if the format has one. */
void weir_exposition_end(struct weir_exposition *exposition);
void weir_exposition_free(struct weir_exposition *exposition);

/* The value of the Content-Type header. */
const char *weir_exposition_type(bool is_openmetrics);

/*
 * Does this `Accept` header (RFC 9110, 12.5.1; NULL: none was sent) prefer OpenMetrics 1.0 to the older format? A
 * client that asks for neither, such as a person with curl, gets the older one.
 */
bool weir_exposition_is_openmetrics(const char *accept);

#endif
