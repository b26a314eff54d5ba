/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a flow's packets were admitted, and what windows over those times hold, by counting: nothing
 * here is shared with what it checks. Limits of rig_load: an interval of a second in ten buckets.
 */
#ifndef WEIR_BENCH_TRACE_H
#define WEIR_BENCH_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "weir_abi.h"

#define TRACE_INTERVAL_NS WEIR_NSEC_PER_SEC
#define TRACE_SAMPLES 10u
#define TRACE_BUCKET_NS (TRACE_INTERVAL_NS / TRACE_SAMPLES)

struct trace {
	uint64_t *time_ns;
	size_t count;
};

/* Ends the process when memory is out. */
void trace_add(struct trace *trace, uint64_t time_ns);
void trace_sort(struct trace *trace);
void trace_free(struct trace *trace);

/* The functions below want it sorted. */

/* Most admissions in any interval of a second, wherever it starts. */
uint64_t trace_fullest_interval(const struct trace *trace);

/* Most that the window of this kind ever held right after an admission. */
uint64_t trace_fullest_window(const struct trace *trace, enum weir_window_kind kind);

/*
 * The same of verdicts whose time is only known to lie between sent[i] and heard[i], each sorted by itself: as many as
 * are certain, whatever the times were. In any interval of a second, and in the last `buckets` of the grid.
 */
uint64_t trace_certain_interval(const struct trace *sent, const struct trace *heard);
uint64_t trace_certain_window(const struct trace *sent, const struct trace *heard, uint32_t buckets);

/* Admissions from from_ns on, before to_ns. */
uint64_t trace_between(const struct trace *trace, uint64_t from_ns, uint64_t to_ns);

#endif
