/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tables of metrics are written from, and by whom; private to metrics.c and its parts. */
#ifndef WEIR_SERVE_METRICS_BOOK_H
#define WEIR_SERVE_METRICS_BOOK_H

#include <stddef.h>

#include "serve/metrics.h"

/* What a table of metrics is written from. */
struct book {
	const struct weir_source *source;
	const struct weir_reading *reading;
	const struct weir_instance *instance; /* the reading's */
	struct weir_labels *rule_labels;      /* by place: most samples are of rules */
	struct weir_exposition *out;
};

/* ---- metric_labels.c ---- */

uint64_t weir_metrics_count_at(const void *base, size_t offset);

/* A sample with one more label; `labels` stay as they are. */
void weir_metrics_write_with(struct weir_exposition *out, struct weir_labels *labels, const char *name,
			     const char *value, uint64_t count);
struct weir_labels weir_metrics_label(const char *name, const char *value);

/* A time by CLOCK_MONOTONIC in whole seconds since the epoch: what lies below would differ from scrape to scrape. */
uint64_t weir_metrics_unix_seconds(uint64_t monotonic_ns);

/* ---- instance_metrics.c ---- */

void weir_metrics_write_build(struct book *book);
void weir_metrics_write_instance(struct book *book);
void weir_metrics_write_times(struct book *book);
void weir_metrics_write_reloads(struct book *book);
void weir_metrics_write_controller(struct book *book);
void weir_metrics_write_interfaces(struct book *book);
void weir_metrics_write_lists(struct book *book);

/* What flows left behind that were pushed out of full tables. */
void weir_metrics_write_row_ghosts(struct book *book);
void weir_metrics_write_memory(struct book *book);
void weir_metrics_write_signals(struct book *book);
void weir_metrics_write_cluster(struct book *book);
void weir_metrics_write_shares(struct book *book);

/* ---- rule_metrics.c ---- */

const struct weir_rule_info *weir_metrics_rule_at(const struct book *book, uint32_t place);
void weir_metrics_write_rule_info(struct book *book);
void weir_metrics_write_thresholds(struct book *book);
void weir_metrics_write_rule_counters(struct book *book);
void weir_metrics_write_delays(struct book *book);
void weir_metrics_write_penalties(struct book *book);
void weir_metrics_write_limited(struct book *book);
void weir_metrics_write_connections(struct book *book);
void weir_metrics_write_breakers(struct book *book);

#endif
