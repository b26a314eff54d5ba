// SPDX-License-Identifier: GPL-2.0-only
#include "trace.h"

#include <errno.h>

#include "base/util.h"
#include "rig.h"

void trace_add(struct trace *trace, uint64_t time_ns)
{
	uint64_t *added = weir_array_add((void **)&trace->time_ns, trace->count, sizeof(*trace->time_ns));

	if (!added)
		rig_fail(ENOMEM, "cannot keep the admissions");
	*added = time_ns;
	trace->count++;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

void trace_sort(struct trace *trace)
{
	if (trace->count)
		qsort(trace->time_ns, trace->count, sizeof(*trace->time_ns), compare);
}

void trace_free(struct trace *trace)
{
	free(trace->time_ns);
	trace->time_ns = NULL;
	trace->count = 0;
}

uint64_t trace_fullest_interval(const struct trace *trace)
{
	uint64_t fullest = 0;
	size_t first = 0;

	for (size_t i = 0; i < trace->count; i++) {
		while (trace->time_ns[i] - trace->time_ns[first] >= TRACE_INTERVAL_NS)
			first++;
		if (i - first + 1 > fullest)
			fullest = i - first + 1;
	}
	return fullest;
}

static uint64_t bucket_of(uint64_t time_ns)
{
	return time_ns / TRACE_BUCKET_NS;
}

uint64_t trace_fullest_window(const struct trace *trace, enum weir_window_kind kind)
{
	uint32_t looked_at = kind == WEIR_WINDOW_LEAP ? TRACE_SAMPLES : TRACE_SAMPLES + 1;
	size_t first = 0, second = 0; /* where the oldest bucket, and the one after it, begin */
	uint64_t fullest = 0;

	for (size_t i = 0; i < trace->count; i++) {
		uint64_t bucket = bucket_of(trace->time_ns[i]), held;

		while (bucket_of(trace->time_ns[first]) + looked_at <= bucket)
			first++;
		while (bucket_of(trace->time_ns[second]) + looked_at - 1 <= bucket)
			second++;
		held = i - first + 1;
		if (kind == WEIR_WINDOW_SMOOTH) {
			uint64_t left_ns = TRACE_BUCKET_NS - trace->time_ns[i] % TRACE_BUCKET_NS;

			held = i - second + 1 + ((second - first) * left_ns + TRACE_BUCKET_NS - 1) / TRACE_BUCKET_NS;
		}
		if (held > fullest)
			fullest = held;
	}
	return fullest;
}

/* Verdicts that had been heard of before end_ns, less those that were not sent before start_ns, walking forward. */
struct certain {
	const struct trace *sent, *heard;
	size_t sent_before, heard_before;
};

static uint64_t certain_between(struct certain *certain, uint64_t start_ns, uint64_t end_ns)
{
	const struct trace *sent = certain->sent, *heard = certain->heard;

	while (certain->sent_before < sent->count && sent->time_ns[certain->sent_before] < start_ns)
		certain->sent_before++;
	while (certain->heard_before < heard->count && heard->time_ns[certain->heard_before] < end_ns)
		certain->heard_before++;
	return certain->heard_before > certain->sent_before ? certain->heard_before - certain->sent_before : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t trace_certain_interval(const struct trace *sent, const struct trace *heard)
{
	struct certain certain = {.sent = sent, .heard = heard};
	uint64_t fullest = 0;

	for (size_t i = 0; i < sent->count; i++)
		fullest = larger(fullest,
				 certain_between(&certain, sent->time_ns[i], sent->time_ns[i] + TRACE_INTERVAL_NS));
	return fullest;
}

uint64_t trace_certain_window(const struct trace *sent, const struct trace *heard, uint32_t buckets)
{
	struct certain certain = {.sent = sent, .heard = heard};
	uint64_t fullest = 0, first, last;

	if (!sent->count)
		return 0;
	first = bucket_of(sent->time_ns[0]);
	last = bucket_of(heard->time_ns[heard->count - 1]);
	for (uint64_t bucket = first; bucket <= last; bucket++)
		fullest = larger(fullest, certain_between(&certain, bucket * TRACE_BUCKET_NS,
							  (bucket + buckets) * TRACE_BUCKET_NS));
	return fullest;
}

uint64_t trace_between(const struct trace *trace, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t count = 0;

	for (size_t i = 0; i < trace->count; i++)
		count += trace->time_ns[i] >= from_ns && trace->time_ns[i] < to_ns;
	return count;
}
