// SPDX-License-Identifier: GPL-2.0-only
#include "peaks/peaks.h"

/* Buckets between the newest one and the current one are empty. */
static void advance(struct weir_window_sums *sums, uint64_t bucket)
{
	uint64_t steps = bucket > sums->bucket ? bucket - sums->bucket : 0;

	sums->bucket += steps;
	if (steps > WEIR_RING_CELLS)
		steps = WEIR_RING_CELLS;
	for (; steps > 0; steps--) {
		sums->newest = (sums->newest + 1) % WEIR_RING_CELLS;
		sums->cell[sums->newest] = (struct weir_tally){};
	}
}

/* ceil(count * left / whole) */
static uint64_t weigh(uint64_t count, uint64_t left_ns, uint64_t whole_ns)
{
	return ((unsigned __int128)count * left_ns + whole_ns - 1) / whole_ns;
}

/* How much of its length the window's oldest bucket still counts for. */
static uint64_t left_of_oldest(const struct weir_window_sums *sums, const struct weir_peak_window *window,
			       uint64_t time_ns)
{
	if (window->kind == WEIR_WINDOW_LEAP)
		return 0;
	if (window->kind == WEIR_WINDOW_STRICT || time_ns / window->bucket_ns < sums->bucket)
		return window->bucket_ns;
	return window->bucket_ns - time_ns % window->bucket_ns;
}

struct weir_tally weir_window_look(struct weir_window_sums *sums, const struct weir_peak_window *window,
				   uint64_t time_ns)
{
	struct weir_tally sum = {};
	const struct weir_tally *cell;
	uint64_t left_ns;

	advance(sums, time_ns / window->bucket_ns);
	for (uint32_t back = 0; back < window->samples; back++) {
		cell = &sums->cell[(sums->newest + WEIR_RING_CELLS - back) % WEIR_RING_CELLS];
		sum.packets += cell->packets;
		sum.bytes += cell->bytes;
	}
	left_ns = left_of_oldest(sums, window, time_ns);
	cell = &sums->cell[(sums->newest + WEIR_RING_CELLS - window->samples) % WEIR_RING_CELLS];
	sum.packets += weigh(cell->packets, left_ns, window->bucket_ns);
	sum.bytes += weigh(cell->bytes, left_ns, window->bucket_ns);
	return sum;
}

const struct weir_tally *weir_window_count(struct weir_window_sums *sums, const struct weir_peak_window *window,
					   uint64_t time_ns, const struct weir_tally *batch)
{
	const uint32_t remembered = window->samples + (window->kind != WEIR_WINDOW_LEAP);
	const uint64_t back = sums->bucket - time_ns / window->bucket_ns;
	struct weir_tally *cell =
		&sums->cell[(sums->newest + WEIR_RING_CELLS - (back < remembered ? back : 0)) % WEIR_RING_CELLS];

	cell->packets += batch->packets;
	cell->bytes += batch->bytes;
	return cell;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void weir_peaks_add(struct weir_flow_peaks *peaks, const struct weir_peak_window *window, uint64_t time_ns,
		    const struct weir_tally *batch)
{
	struct weir_window_sums *sums = &peaks->sums;
	const struct weir_tally before = weir_window_look(sums, window, time_ns);
	const struct weir_tally *bucket = weir_window_count(sums, window, time_ns, batch);

	peaks->peak.packets = larger(peaks->peak.packets, before.packets + batch->packets);
	peaks->peak.bytes = larger(peaks->peak.bytes, before.bytes + batch->bytes);
	peaks->bucket_packets = larger(peaks->bucket_packets, bucket->packets);
	peaks->total.packets += batch->packets;
	peaks->total.bytes += batch->bytes;
}
