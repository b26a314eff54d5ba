/* SPDX-License-Identifier: GPL-2.0-only */
/* The data and functions for writing the tables of metrics; private to metrics.c and its parts. */
#ifndef WEIR_SERVE_METRICS_BOOK_H
#define WEIR_SERVE_METRICS_BOOK_H

#include <stddef.h>

#include "serve/metrics.h"

/* The data from which a table of metrics is written. */
struct book {
	const struct weir_source *source;
	const struct weir_reading *reading;
	const struct weir_instance *instance; /* the instance of the reading */
	struct weir_labels *rule_labels;      /* by place, since most samples belong to rules */
	struct weir_exposition *out;
};

/* ---- rule_metrics.c: labels and samples, for all tables ---- */

uint64_t weir_metrics_count_at(const void *base, size_t offset);

/* Write a sample with one more label; `labels` is unchanged. */
void weir_metrics_write_with(struct weir_exposition *out, struct weir_labels *labels, const char *name,
			     const char *value, uint64_t count);
struct weir_labels weir_metrics_label(const char *name, const char *value);

/* Convert a CLOCK_MONOTONIC time to whole seconds since the epoch: smaller parts would differ from scrape to scrape. */
uint64_t weir_metrics_unix_seconds(uint64_t monotonic_ns);

/* ---- instance_metrics.c ---- */

void weir_metrics_write_build(struct book *book);
void weir_metrics_write_instance(struct book *book);
void weir_metrics_write_times(struct book *book);
void weir_metrics_write_reloads(struct book *book);
void weir_metrics_write_controller(struct book *book);
void weir_metrics_write_interfaces(struct book *book);
void weir_metrics_write_lists(struct book *book);
void weir_metrics_write_sets(struct book *book);

/* Ghosts of flows that were evicted from full tables. */
void weir_metrics_write_ghosts(struct book *book);
void weir_metrics_write_memory(struct book *book);
void weir_metrics_write_signals(struct book *book);
void weir_metrics_write_cluster(struct book *book);
void weir_metrics_write_shares(struct book *book);

/* ---- rule_metrics.c ---- */

const struct weir_rule_info *weir_metrics_rule_at(const struct book *book, uint32_t place);
void weir_metrics_write_rule_info(struct book *book);
void weir_metrics_write_thresholds(struct book *book);
void weir_metrics_write_rule_counters(struct book *book);
void weir_metrics_write_penalties(struct book *book);
void weir_metrics_write_fair(struct book *book);
void weir_metrics_write_limited(struct book *book);
void weir_metrics_write_connections(struct book *book);
void weir_metrics_write_breakers(struct book *book);

#endif
