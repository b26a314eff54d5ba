// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows A1 to A8 under the virtual clock, on one CPU: every packet is evaluated at a time that we set, and
 * its own verdict is looked at.
 */
#include "parts.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "trace.h"

#define LIMIT 1000u
#define START_NS (1000 * SECOND) /* any; later than the longest interval */
#define SATURATED_INTERVALS 120
#define SATURATED_PER_MS 5 /* offered: five times the limit */

static const char *const kind_names[] = {"leap", "strict", "smooth"};

struct harness {
	struct weir_object *object;
	volatile struct weir_harness *harness;
	struct trace trace; /* of harness_send */
	uint64_t random;
};

static void harness_open_limit(struct harness *harness, uint64_t threshold, enum weir_window_kind kind,
			       uint32_t flows_per_cpu)
{
	const struct rig_limit limit = {.threshold = threshold, .window = kind, .is_keyed = true};

	*harness = (struct harness){.random = 88172645463325252ull};
	harness->object = rig_load(&limit, 1, flows_per_cpu, true, START_NS);
	harness->harness = weir_object_harness(harness->object);
}

static void harness_open(struct harness *harness, enum weir_window_kind kind, uint32_t flows_per_cpu)
{
	harness_open_limit(harness, LIMIT, kind, flows_per_cpu);
}

static void harness_close(struct harness *harness)
{
	weir_object_free(harness->object);
	trace_free(&harness->trace);
}

static uint64_t harness_random(struct harness *harness, uint64_t below)
{
	harness->random ^= harness->random << 13;
	harness->random ^= harness->random >> 7;
	harness->random ^= harness->random << 17;
	return harness->random % below;
}

/* Send `count` packets at one instant; returns how many were admitted. */
static uint32_t harness_send_unnoted(struct harness *harness, const struct rig_frame *frame, uint64_t time_ns,
				     uint32_t count)
{
	uint32_t admitted = 0;

	harness->harness->clock_ns = time_ns;
	for (uint32_t i = 0; i < count; i++) {
		int action = weir_object_evaluate(harness->object, frame->bytes, frame->byte_count);

		if (action < 0)
			rig_fail(action, "a test run failed");
		admitted += action == XDP_PASS;
	}
	return admitted;
}

/* The same, and notes when. */
static uint32_t harness_send(struct harness *harness, const struct rig_frame *frame, uint64_t time_ns, uint32_t count)
{
	uint32_t admitted = harness_send_unnoted(harness, frame, time_ns, count);

	for (uint32_t i = 0; i < admitted; i++)
		trace_add(&harness->trace, time_ns);
	return admitted;
}

/* ---- A3: saturated ---- */

static const struct report_bounds saturated_bounds[] = {
	[WEIR_WINDOW_LEAP] = BETWEEN(0.995, 1.010),
	[WEIR_WINDOW_STRICT] = BETWEEN(0.905, 0.925),
	[WEIR_WINDOW_SMOOTH] = BETWEEN(0.985, 1.005),
};

/* Evenly from START_NS on, for one interval to fill the window and those that count. */
static void saturate(struct harness *harness, enum weir_window_kind kind, struct report *report)
{
	const uint64_t end_ns = START_NS + (SATURATED_INTERVALS + 1) * SECOND;
	struct rig_frame frame = rig_frame(4, 1, 53);
	struct report_row *row;
	uint64_t admitted;

	for (uint64_t now_ns = START_NS; now_ns < end_ns; now_ns += MS / SATURATED_PER_MS)
		harness_send(harness, &frame, now_ns, 1);
	admitted = trace_between(&harness->trace, START_NS + SECOND, end_ns);
	row = report_add(report, "A3", saturated_bounds[kind], saturated_bounds[kind], "%s, saturated for %d intervals",
			 kind_names[kind], SATURATED_INTERVALS);
	row->is_ratio = true;
	row->value = (double)admitted / ((double)LIMIT * SATURATED_INTERVALS);
	snprintf(row->measured, sizeof(row->measured), "%llu admitted", (unsigned long long)admitted);
}

/* ---- A1, A2: bursts ---- */

/* Bursts of any size, at one instant or spread, after silences of any length up to an interval. */
static void burst_at_random(struct harness *harness)
{
	struct rig_frame frame = rig_frame(4, 2, 53);
	uint64_t now_ns = START_NS;

	for (int i = 0; i < 300; i++) {
		uint32_t packets = 1 + harness_random(harness, 700);
		uint64_t gap_ns = harness_random(harness, 3) ? harness_random(harness, MS) : 0;

		now_ns += harness_random(harness, harness_random(harness, 4) ? SECOND / 5 : SECOND);
		for (uint32_t sent = 0; sent < packets; sent++, now_ns += gap_ns)
			harness_send(harness, &frame, now_ns, 1);
	}
}

static void report_fullest(struct report *report, const char *name, const char *what, uint64_t fullest)
{
	struct report_row *row = report_add(report, name, AT_MOST(LIMIT), AT_MOST(LIMIT), "%s", what);

	row->value = fullest;
	snprintf(row->measured, sizeof(row->measured), "%llu of %u", (unsigned long long)fullest, LIMIT);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void run_kind(enum weir_window_kind kind, struct report *report)
{
	uint64_t fullest_window, fullest_interval;
	char what[80];
	struct harness harness;

	harness_open(&harness, kind, 4096);
	saturate(&harness, kind, report);
	fullest_window = trace_fullest_window(&harness.trace, kind);
	fullest_interval = trace_fullest_interval(&harness.trace);
	trace_free(&harness.trace);
	burst_at_random(&harness);
	fullest_window = larger(fullest_window, trace_fullest_window(&harness.trace, kind));
	fullest_interval = larger(fullest_interval, trace_fullest_interval(&harness.trace));
	harness_close(&harness);

	snprintf(what, sizeof(what), "%s, its own window at its fullest", kind_names[kind]);
	report_fullest(report, "A2", what, fullest_window);
	if (kind == WEIR_WINDOW_STRICT)
		report_fullest(report, "A1", "strict, fullest interval found anywhere", fullest_interval);
}

/* ---- A4, A5: a lone burst ---- */

#define BURST 1500u
#define PHASES 20

static void run_burst(enum weir_window_kind kind, struct report *report)
{
	uint32_t least = BURST, most = 0, most_after = 0;
	struct rig_frame frame = rig_frame(4, 3, 53);
	struct report_row *row;
	struct harness harness;

	harness_open(&harness, kind, 4096);
	for (int i = 0; i < PHASES; i++) {
		uint64_t now_ns = START_NS + i * 10 * SECOND + i * TRACE_BUCKET_NS / PHASES;
		uint32_t admitted = harness_send(&harness, &frame, now_ns, BURST);
		uint32_t after = harness_send(&harness, &frame, now_ns + 60 * MS, BURST);

		least = admitted < least ? admitted : least;
		most = larger(most, admitted);
		most_after = larger(most_after, after);
	}
	harness_close(&harness);

	row = report_add(report, "A4", EXACTLY(LIMIT), EXACTLY(LIMIT), "%s, of a lone burst of %u, %d phases",
			 kind_names[kind], BURST, PHASES);
	row->value = most > LIMIT ? most : least;
	snprintf(row->measured, sizeof(row->measured), "%u to %u", least, most);
	row = report_add(report, "A5", EXACTLY(0), EXACTLY(0), "%s, of %u more 60 ms later", kind_names[kind], BURST);
	row->value = most_after;
	snprintf(row->measured, sizeof(row->measured), "%u", most_after);
}

/* ---- A6, A7: a flood of spoofed sources ---- */

#define FLOOD_MS 3000
#define FLOOD_PER_MS 1000u /* a million sources a second */
#define HEAVY_PER_MS 100u  /* 100 times the limit */

static void run_flood(struct rig *rig, struct report *report)
{
	struct rig_frame heavy = rig_frame(4, 4, 53), modest = rig_frame(4, 5, 53), spoofed = rig_frame(4, 6, 53);
	uint64_t sent = 0, admitted = 0, evicted;
	struct report_row *row;
	struct harness harness;

	harness_open(&harness, WEIR_WINDOW_LEAP, 262144);
	rig_rewind(rig, 0);
	rig_aim(rig, weir_object_program_fd(harness.object), BENCH_SOURCES_MANY);
	for (int ms = 0; ms < FLOOD_MS; ms++) {
		uint64_t now_ns = START_NS + ms * MS;

		harness.harness->clock_ns = now_ns;
		rig_run(rig->driver_fd, &spoofed, FLOOD_PER_MS);
		harness_send(&harness, &heavy, now_ns, HEAVY_PER_MS);
		if (ms % 10 == 9)
			continue; /* nine tenths of its limit */
		sent++;
		admitted += harness_send_unnoted(&harness, &modest, now_ns, 1);
	}
	evicted = rig_rule_counters(harness.object, 0).evicted;

	row = report_add(report, "A6", EXACTLY(0), EXACTLY(0), "a flow at 0.9 of its limit in a flood of 1M sources");
	row->value = sent - admitted;
	snprintf(row->measured, sizeof(row->measured), "%llu of %llu lost", (unsigned long long)(sent - admitted),
		 (unsigned long long)sent);
	row = report_add(report, "A7", AT_MOST(1.01), AT_MOST(1.01), "a flow at 100 x its limit in the same flood");
	row->is_ratio = true;
	row->value = (double)trace_fullest_window(&harness.trace, WEIR_WINDOW_LEAP) / LIMIT;
	snprintf(row->measured, sizeof(row->measured), "%zu in 3 s, %llu evicted", harness.trace.count,
		 (unsigned long long)evicted);
	harness_close(&harness);
}

/* ---- A8: four times as many live flows as there are rows ---- */

#define ROWS 4096u
#define LIVE (4 * ROWS)
#define HEAVY (LIVE / 100)
#define HEAVY_LIMIT 100u  /* a second */
#define OVERFULL_MS 3000  /* each heavy flow sends a packet every millisecond: ten times its limit */
#define LIGHT_PER_MS 80u  /* of all others together: five a second each, so that each is live */
#define SOURCE_OFFSET 26u /* of an IPv4 frame */

static struct rig_frame flow_frame(uint32_t flow)
{
	struct rig_frame frame = rig_frame(4, 7, 53);
	__be32 source = htonl(0x0a000000 + flow);

	memcpy(frame.bytes + SOURCE_OFFSET, &source, sizeof(source));
	return frame;
}

static void run_overfull(struct report *report)
{
	static struct trace traces[HEAVY];
	uint64_t fullest = 0, evicted;
	struct report_row *row;
	struct harness harness;

	harness_open_limit(&harness, HEAVY_LIMIT, WEIR_WINDOW_LEAP, ROWS);
	for (int ms = 0; ms < OVERFULL_MS; ms++) {
		uint64_t now_ns = START_NS + ms * MS;

		for (uint32_t flow = 0; flow < HEAVY; flow++) {
			struct rig_frame frame = flow_frame(flow);

			if (harness_send_unnoted(&harness, &frame, now_ns, 1))
				trace_add(&traces[flow], now_ns);
		}
		for (uint32_t i = 0; i < LIGHT_PER_MS; i++) {
			struct rig_frame frame = flow_frame(HEAVY + harness_random(&harness, LIVE - HEAVY));

			harness_send_unnoted(&harness, &frame, now_ns, 1);
		}
	}
	evicted = rig_rule_counters(harness.object, 0).evicted;
	harness_close(&harness);
	for (uint32_t flow = 0; flow < HEAVY; flow++) {
		fullest = larger(fullest, trace_fullest_window(&traces[flow], WEIR_WINDOW_LEAP));
		trace_free(&traces[flow]);
	}
	row = report_add(report, "A8", AT_MOST(1.05), AT_MOST(1.05), "heaviest 1 %% of 4 x as many flows as rows");
	row->is_ratio = true;
	row->value = (double)fullest / HEAVY_LIMIT;
	snprintf(row->measured, sizeof(row->measured), "%llu of %u at most, %llu evicted", (unsigned long long)fullest,
		 HEAVY_LIMIT, (unsigned long long)evicted);
}

/* Rows in use on the CPU that we are pinned to. */
static uint64_t rows_in_use(const struct rig *rig, const struct weir_object *object)
{
	int cpus = weir_host_cpus(), fd = weir_object_map_fd(object, WEIR_TABLE_NARROW_FLOWS);
	struct weir_narrow_chunk *chunks = calloc(cpus, sizeof(*chunks));
	uint64_t used = 0;

	for (__u32 chunk = 0; chunks && !bpf_map_lookup_elem(fd, &chunk, chunks); chunk++)
		for (size_t i = 0; i < ARRAY_SIZE(chunks->row); i++)
			used += chunks[rig->cpu[0]].row[i].tag != 0;
	free(chunks);
	return used;
}

/* So many flows with one packet each, all at one time: whoever has no row any more was evicted while counting. */
static void count_evictions(const struct rig *rig, struct report *report)
{
	uint64_t evicted, missing;
	struct report_row *row;
	struct harness harness;

	harness_open_limit(&harness, HEAVY_LIMIT, WEIR_WINDOW_LEAP, ROWS);
	for (uint32_t flow = 0; flow < LIVE; flow++) {
		struct rig_frame frame = flow_frame(flow);

		harness_send_unnoted(&harness, &frame, START_NS, 1);
	}
	evicted = rig_rule_counters(harness.object, 0).evicted;
	missing = LIVE - rows_in_use(rig, harness.object);
	harness_close(&harness);
	row = report_add(report, "A8", EXACTLY(0), EXACTLY(0), "evictions of counting flows not counted");
	row->value = (double)missing - evicted;
	snprintf(row->measured, sizeof(row->measured), "%llu of %llu counted", (unsigned long long)evicted,
		 (unsigned long long)missing);
}

void bench_accuracy_virtual(struct rig *rig, struct report *report)
{
	for (enum weir_window_kind kind = WEIR_WINDOW_LEAP; kind <= WEIR_WINDOW_SMOOTH; kind++) {
		run_kind(kind, report);
		run_burst(kind, report);
	}
	run_flood(rig, report);
	run_overfull(report);
	count_evictions(rig, report);
}
