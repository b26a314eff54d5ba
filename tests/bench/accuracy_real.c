// SPDX-License-Identifier: GPL-2.0-only
/*
 * The accuracy rows under the real clock, two pinned CPUs sending to the same flows as fast as they can.
 * What counts is the clock value that decided an admission, not the time when we hear of it. Two ways to
 * know it, exactly:
 *
 * Packet by packet, for small limits. Each packet is a call of its own; after an admission the program's
 * notes on it are read, where they stay until the next packet of this CPU: the time, or for leap, which
 * mostly asks no clock, the bucket. Verdicts are the program's return values. A call takes a microsecond
 * or two, so this offers about a million packets a second.
 *
 * By the rows, for large limits. Thousands of packets a call, and some times in a second both CPUs' rows
 * of the flow are read: a cell of a bucket that is over says how many this CPU admitted in it. That
 * nothing was admitted without being counted there is checked by the counters of verdicts: the cells of
 * all buckets must add up to the packets passed, to the last one.
 */
#include "parts.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <math.h>
#include <string.h>

#include "../../bpf/scratch.h"
#include "base/util.h"
#include "host/host.h"
#include "program/runs.h"
#include "trace.h"

#define FLOWS_MAX 8
#define BUCKETS_MAX 64 /* of one run */
#define FLOWS_PER_CPU_DEFAULT 262144u

struct setup {
	struct rig *rig;
	struct weir_object *object;
	int object_fd, link_fd;
	int cpus; /* possible ones: copies of each per-CPU value */
	struct rig_limit limit[FLOWS_MAX];
	__u32 spec[FLOWS_MAX];
	struct rig_frame frame[FLOWS_MAX];
	size_t flow_count;
	uint64_t start_ns, end_ns;
	uint64_t sent[BENCH_CPUS][FLOWS_MAX];
	uint64_t sent_in[BENCH_CPUS][FLOWS_MAX][BUCKETS_MAX]; /* in each bucket since start_ns */
	struct trace trace[BENCH_CPUS][FLOWS_MAX];
};

static const char *const kind_names[] = {"leap", "strict", "smooth"};

static void setup_open(struct setup *setup, struct rig *rig, const struct rig_limit *limits, size_t limit_count,
		       uint32_t flows_per_cpu)
{
	*setup = (struct setup){.rig = rig, .cpus = weir_host_cpus()};
	setup->object = rig_load(limits, limit_count, flows_per_cpu, false, 0);
	setup->object_fd = weir_object_program_fd(setup->object);
	setup->link_fd = rig_attach(rig, setup->object_fd);
}

static void setup_close(struct setup *setup)
{
	for (size_t i = 0; i < FLOWS_MAX; i++)
		for (int cpu = 0; cpu < BENCH_CPUS; cpu++)
			trace_free(&setup->trace[cpu][i]);
	close(setup->link_fd);
	weir_object_free(setup->object);
}

/* A flow under limits[slot] of rig_load. */
static void add_flow(struct setup *setup, const struct rig_limit *limit, __u32 slot)
{
	size_t flow = setup->flow_count++;
	struct weir_rule_info info;
	int err = bpf_map_lookup_elem(weir_object_map_fd(setup->object, WEIR_TABLE_RULE_INFO), &slot, &info);

	if (err)
		rig_fail(err, "cannot read the description of a rule");
	setup->frame[flow] = rig_frame(4, flow + 1, limit->port);
	setup->limit[flow] = *limit;
	setup->spec[flow] = info.spec;
}

static void run_setup(struct setup *setup, void (*send)(void *data, int i), uint64_t seconds)
{
	setup->start_ns = rig_now_ns();
	setup->end_ns = setup->start_ns + seconds * SECOND;
	rig_on_both(setup->rig, send, setup);
}

static uint32_t bucket_since_start(const struct setup *setup, uint64_t time_ns)
{
	uint64_t bucket = time_ns / TRACE_BUCKET_NS - setup->start_ns / TRACE_BUCKET_NS;

	if (bucket >= BUCKETS_MAX)
		rig_fail(0, "a run took longer than %d buckets", BUCKETS_MAX);
	return bucket;
}

/* A call that lasted beyond its bucket, because the machine had other things to do, counts for neither. */
static void note_sent(struct setup *setup, int i, size_t flow, uint64_t before_ns, uint64_t after_ns, uint32_t packets)
{
	setup->sent[i][flow] += packets;
	if (before_ns / TRACE_BUCKET_NS == after_ns / TRACE_BUCKET_NS)
		setup->sent_in[i][flow][bucket_since_start(setup, before_ns)] += packets;
}

static uint64_t sent_in_bucket(const struct setup *setup, size_t flow, uint32_t bucket)
{
	return setup->sent_in[0][flow][bucket] + setup->sent_in[1][flow][bucket];
}

static double offered_ratio(const struct setup *setup, size_t flow, uint64_t limit)
{
	double seconds = (double)(setup->end_ns - setup->start_ns) / SECOND;

	return (setup->sent[0][flow] + setup->sent[1][flow]) / seconds / limit;
}

/*
 * The least admitted in any interval of the grid that was saturated: in each of its buckets more was
 * offered than admitted, so that the limit, not the machine, said no. UINT64_MAX when there was none.
 * admitted[]: in each bucket since the start.
 */
static uint64_t least_in_an_interval(const struct setup *setup, size_t flow, const uint64_t *admitted)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t from = 0; from + TRACE_SAMPLES <= BUCKETS_MAX; from++) {
		bool is_saturated = true;
		uint64_t sum = 0;

		for (uint32_t bucket = from; bucket < from + TRACE_SAMPLES; bucket++) {
			is_saturated = is_saturated && sent_in_bucket(setup, flow, bucket) > admitted[bucket];
			sum += admitted[bucket];
		}
		if (is_saturated && sum < least)
			least = sum;
	}
	return least;
}

/* Evaluated by the worse side: above the limit, or else the least admitted in an interval. */
static void fill_row(struct report_row *row, const struct setup *setup, size_t flow, uint64_t limit, uint64_t least,
		     uint64_t most)
{
	double offered = offered_ratio(setup, flow, limit);

	row->is_ratio = true;
	row->value = (double)(most > limit ? most : least) / limit;
	snprintf(row->measured, sizeof(row->measured), "%llu to %llu, %.0f x offered", (unsigned long long)least,
		 (unsigned long long)most, offered);
	if (least == UINT64_MAX && most <= limit)
		snprintf(row->skipped, sizeof(row->skipped), "at most %llu; never saturated: too busy",
			 (unsigned long long)most);
}

/* ---- packet by packet ---- */

/* What is read from per-CPU maps, one value a possible CPU. */
struct notes {
	struct weir_cpu_state *states;
	struct weir_clock *clocks;
};

static void notes_open(struct notes *notes, int cpus)
{
	notes->states = calloc(cpus, sizeof(*notes->states));
	notes->clocks = calloc(cpus, sizeof(*notes->clocks));
	if (!notes->states || !notes->clocks)
		rig_fail(ENOMEM, "cannot read per-CPU maps");
}

static void notes_close(struct notes *notes)
{
	free(notes->states);
	free(notes->clocks);
}

/* The time by which CPU i admitted the packet it has just evaluated; of a leap window, when its bucket began. */
static uint64_t admitted_at(const struct setup *setup, int i, size_t flow, struct notes *notes)
{
	const struct weir_scratch *scratch = (const struct weir_scratch *)&notes->states[setup->rig->cpu[i]];
	__u32 zero = 0, spec = setup->spec[flow];
	int err = bpf_map_lookup_elem(weir_object_map_fd(setup->object, WEIR_TABLE_TOTALS), &zero, notes->states);

	if (!err && setup->limit[flow].window != WEIR_WINDOW_LEAP) {
		if (!scratch->has_now)
			rig_fail(0, "a packet was admitted without a clock");
		return scratch->now_ns;
	}
	if (!err && setup->limit[flow].is_keyed)
		return scratch->narrow_clock[spec % WEIR_SPECS_NARROW].start_ns;
	if (!err)
		err = bpf_map_lookup_elem(weir_object_own_map_fd(setup->object, "clocks"), &spec, notes->clocks);
	if (err)
		rig_fail(err, "cannot read when a packet was admitted");
	return notes->clocks[setup->rig->cpu[i]].start_ns;
}

/* Send one packet from CPU i; when it is admitted, note the time. */
static void send_one(struct setup *setup, int i, size_t flow, struct notes *notes)
{
	uint64_t before_ns = rig_now_ns();
	int action = weir_object_evaluate(setup->object, setup->frame[flow].bytes, setup->frame[flow].byte_count);

	if (action < 0)
		rig_fail(action, "a test run failed");
	note_sent(setup, i, flow, before_ns, rig_now_ns(), 1);
	if (action == XDP_PASS)
		trace_add(&setup->trace[i][flow], admitted_at(setup, i, flow, notes));
}

static void send_in_turns(void *data, int i)
{
	struct setup *setup = data;
	struct notes notes;

	notes_open(&notes, setup->cpus);
	while (rig_now_ns() < setup->end_ns)
		for (size_t flow = 0; flow < setup->flow_count; flow++)
			send_one(setup, i, flow, &notes);
	notes_close(&notes);
}

/* Both CPUs' admissions of a flow, in trace[0], by time. */
static struct trace *merge(struct setup *setup, size_t flow)
{
	struct trace *into = &setup->trace[0][flow], *from = &setup->trace[1][flow];

	for (size_t i = 0; i < from->count; i++)
		trace_add(into, from->time_ns[i]);
	trace_sort(into);
	return into;
}

static void report_flow(struct setup *setup, size_t flow, const struct rig_limit *limit, struct report *report)
{
	const struct trace *trace = merge(setup, flow);
	uint64_t admitted[BUCKETS_MAX] = {}, most;
	/* Strict and smooth look at eleven buckets: no promise for each ten of them. */
	bool is_leap = limit->window == WEIR_WINDOW_LEAP;
	struct report_bounds bounds = is_leap ? BETWEEN(0.99, 1) : AT_MOST(1);
	struct report_row *row;

	for (size_t i = 0; i < trace->count; i++)
		admitted[bucket_since_start(setup, trace->time_ns[i])]++;
	most = limit->window == WEIR_WINDOW_STRICT ? trace_fullest_interval(trace)
						   : trace_fullest_window(trace, limit->window);
	row = report_add(report, limit->window == WEIR_WINDOW_STRICT ? "A1" : "A2", bounds, bounds,
			 "2 CPUs, %s, %s, %llu a second", kind_names[limit->window],
			 limit->is_keyed ? "keyed" : "no key", (unsigned long long)limit->threshold);
	fill_row(row, setup, flow, limit->threshold, least_in_an_interval(setup, flow, admitted), most);
	if (!is_leap)
		row->value = (double)most / limit->threshold;
}

static void run_small(struct rig *rig, const struct rig_limit *limits, size_t limit_count, uint64_t seconds,
		      struct report *report)
{
	struct setup setup;

	setup_open(&setup, rig, limits, limit_count, FLOWS_PER_CPU_DEFAULT);
	for (size_t i = 0; i < limit_count; i++)
		add_flow(&setup, &limits[i], i);
	run_setup(&setup, send_in_turns, seconds);
	for (size_t i = 0; i < limit_count; i++)
		report_flow(&setup, i, &limits[i], report);
	setup_close(&setup);
}

/* ---- by the rows ---- */

#define LARGE_SECONDS 2
#define LARGE_REPEAT 5000u
#define SAMPLE_GAP_NS (TRACE_INTERVAL_NS / 5) /* rows hold eleven buckets, and eight are read: 0.8 s */

/* What all CPUs admitted in each bucket since the first. */
struct ledger {
	const struct setup *setup;
	int rows_fd;
	void *values; /* of one map element, on all CPUs */
	size_t value_bytes;
	uint64_t *admitted;		  /* [cpu * BUCKETS_MAX + bucket since start_ns] */
	uint64_t base_bucket;		  /* from which rows count */
	uint64_t read_ns, longest_gap_ns; /* when rows were read last */
};

/* Its owner may be moving the row on to the next bucket, which clears the oldest cell: leave that alone. */
static void ledger_add_row(struct ledger *ledger, int cpu, const struct weir_wide_row *row, bool is_last)
{
	for (uint64_t age = is_last ? 0 : 1; age <= WEIR_RING_CELLS - 3 && age <= row->newest; age++) {
		uint64_t bucket = row->newest - age;
		uint64_t start_ns = (bucket + ledger->base_bucket) * TRACE_BUCKET_NS;
		uint64_t units = row->cell[bucket % WEIR_RING_CELLS] & ~WEIR_WIDE_UNSPENT;

		if (start_ns + TRACE_BUCKET_NS > ledger->setup->start_ns)
			ledger->admitted[cpu * BUCKETS_MAX + bucket_since_start(ledger->setup, start_ns)] =
				units - (age == 0 ? row->lease : 0);
	}
}

static void ledger_add_medium(struct ledger *ledger, int cpu, const struct weir_medium_row *medium, bool is_last)
{
	struct weir_wide_row row = {.newest = medium->newest, .lease = medium->lease};

	for (int i = 0; i < WEIR_RING_CELLS; i++)
		row.cell[i] = medium->cell[i] & ~WEIR_MEDIUM_UNSPENT;
	ledger_add_row(ledger, cpu, &row, is_last);
}

/* The flow is the only one, so every row in use is its row on some CPU. Lone rows need no tag. */
static void ledger_read(struct ledger *ledger, bool is_keyed, bool is_last)
{
	size_t rows = ledger->value_bytes / sizeof(struct weir_medium_row);
	uint64_t now_ns = rig_now_ns();

	if (now_ns - ledger->read_ns > ledger->longest_gap_ns)
		ledger->longest_gap_ns = now_ns - ledger->read_ns;
	ledger->read_ns = now_ns;
	for (__u32 key = 0; !bpf_map_lookup_elem(ledger->rows_fd, &key, ledger->values); key++) {
		for (int cpu = 0; cpu < ledger->setup->cpus; cpu++) {
			const void *value = ledger->values + cpu * ledger->value_bytes;
			const struct weir_medium_row *row = value;

			if (!is_keyed && key == 0)
				ledger_add_row(ledger, cpu, value, is_last);
			for (size_t i = 0; is_keyed && i < rows; i++)
				if (row[i].tag != 0)
					ledger_add_medium(ledger, cpu, &row[i], is_last);
		}
	}
}

static void ledger_add_up(const struct ledger *ledger, uint64_t ret_admitted[BUCKETS_MAX])
{
	memset(ret_admitted, 0, BUCKETS_MAX * sizeof(*ret_admitted));
	for (int cpu = 0; cpu < ledger->setup->cpus; cpu++)
		for (uint32_t bucket = 0; bucket < BUCKETS_MAX; bucket++)
			ret_admitted[bucket] += ledger->admitted[cpu * BUCKETS_MAX + bucket];
}

static uint64_t packets_passed(const struct setup *setup)
{
	_cleanup_(weir_freep) struct weir_resource_counters *counters = calloc(setup->cpus, sizeof(*counters));
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;
	uint64_t passed = 0;
	__u32 slot = 0;
	int err = weir_runs_take(weir_object_map_fd(setup->object, WEIR_TABLE_TOTALS), &runs);

	if (!err)
		err = bpf_map_lookup_elem(weir_object_map_fd(setup->object, WEIR_TABLE_RESOURCE_COUNTERS), &slot,
					  counters);
	if (err)
		rig_fail(err, "cannot read the counters of a resource");
	weir_runs_add(runs, WEIR_TABLE_RESOURCE_COUNTERS, slot, counters, setup->cpus);
	for (int cpu = 0; cpu < setup->cpus; cpu++)
		passed += counters[cpu].passed.packets;
	return passed;
}

struct large {
	struct setup setup;
	struct ledger ledger;
	bool is_keyed;
};

static void send_many(void *data, int i)
{
	struct large *large = data;
	struct setup *setup = &large->setup;
	uint64_t after_ns;

	for (uint64_t now_ns = rig_now_ns(); now_ns < setup->end_ns; now_ns = after_ns) {
		rig_run(setup->object_fd, &setup->frame[0], LARGE_REPEAT);
		after_ns = rig_now_ns();
		note_sent(setup, i, 0, now_ns, after_ns, LARGE_REPEAT);
		if (i == 0 && after_ns >= large->ledger.read_ns + SAMPLE_GAP_NS)
			ledger_read(&large->ledger, large->is_keyed, false);
	}
}

static void report_large(const struct large *large, const struct rig_limit *limit, struct report *report)
{
	const struct setup *setup = &large->setup;
	uint64_t admitted[BUCKETS_MAX], counted = 0, most = 0, passed = packets_passed(setup);
	struct report_row *row = report_add(report, "A2", BETWEEN(0.99, 1), BETWEEN(0.99, 1),
					    "2 CPUs, %s, %s, %llu a second", kind_names[limit->window],
					    limit->is_keyed ? "keyed" : "no key", (unsigned long long)limit->threshold);

	if (large->ledger.longest_gap_ns > (WEIR_RING_CELLS - 4) * TRACE_BUCKET_NS) {
		snprintf(row->skipped, sizeof(row->skipped), "rows were read too late: too busy");
		return;
	}
	ledger_add_up(&large->ledger, admitted);
	for (uint32_t from = 0; from < BUCKETS_MAX; from++) {
		uint64_t sum = 0;

		counted += admitted[from];
		for (uint32_t bucket = from; bucket < from + TRACE_SAMPLES && bucket < BUCKETS_MAX; bucket++)
			sum += admitted[bucket];
		most = sum > most ? sum : most;
	}
	if (counted != passed)
		rig_fail(0, "%llu packets passed, but the rows counted %llu", (unsigned long long)passed,
			 (unsigned long long)counted);
	fill_row(row, setup, 0, limit->threshold, least_in_an_interval(setup, 0, admitted), most);
}

/* One limit, too large to be a narrow row's. */
static void run_large(struct rig *rig, const struct rig_limit *limit, struct report *report)
{
	struct large large = {.is_keyed = limit->is_keyed};
	struct ledger *ledger = &large.ledger;

	setup_open(&large.setup, rig, limit, 1, 4096);
	add_flow(&large.setup, limit, 0);
	ledger->setup = &large.setup;
	ledger->rows_fd = weir_object_map_fd(large.setup.object,
					     limit->is_keyed ? WEIR_TABLE_MEDIUM_FLOWS : WEIR_TABLE_LONE_ROWS);
	ledger->value_bytes = limit->is_keyed ? sizeof(struct weir_medium_chunk) : sizeof(struct weir_wide_row);
	ledger->values = calloc(large.setup.cpus, ledger->value_bytes);
	ledger->admitted = calloc(large.setup.cpus, BUCKETS_MAX * sizeof(*ledger->admitted));
	if (!ledger->values || !ledger->admitted)
		rig_fail(0, "no memory for the ledger");
	ledger->read_ns = rig_now_ns();
	ledger->base_bucket = rig_base_bucket(large.setup.object);
	run_setup(&large.setup, send_many, LARGE_SECONDS);
	ledger_read(ledger, limit->is_keyed, true);
	report_large(&large, limit, report);
	free(ledger->values);
	free(ledger->admitted);
	setup_close(&large.setup);
}

/* ---- during a flood ---- */

#define FLOOD_SECONDS 3
#define FLOOD_LIMIT 1000u
#define FLOOD_TURN_PACKETS 50u
#define HEAVY_GAP_NS (2 * SECOND / (100 * FLOOD_LIMIT))	    /* each CPU sends half: 100 times the limit */
#define MODEST_GAP_NS (2 * SECOND / (9 * FLOOD_LIMIT / 10)) /* 0.9 times */

enum { HEAVY, MODEST, SPOOFED, FLOOD_FLOWS };

static void send_in_flood(void *data, int i)
{
	struct setup *setup = data;
	uint64_t heavy_due_ns = setup->start_ns, modest_due_ns = setup->start_ns + i * MODEST_GAP_NS / 2, now_ns;
	struct notes notes;

	notes_open(&notes, setup->cpus);
	while ((now_ns = rig_now_ns()) < setup->end_ns) {
		rig_run(setup->rig->driver_fd, &setup->frame[SPOOFED], FLOOD_TURN_PACKETS);
		setup->sent[i][SPOOFED] += FLOOD_TURN_PACKETS;
		/* What is late is not made up for, so that a pause of this thread is no burst. */
		if (now_ns >= modest_due_ns) {
			send_one(setup, i, MODEST, &notes);
			modest_due_ns = now_ns + MODEST_GAP_NS;
		}
		for (; heavy_due_ns < now_ns; heavy_due_ns += HEAVY_GAP_NS)
			send_one(setup, i, HEAVY, &notes);
	}
	notes_close(&notes);
}

static void report_flood(struct setup *setup, struct report *report)
{
	double flood = (setup->sent[0][SPOOFED] + setup->sent[1][SPOOFED]) / 1e6 / FLOOD_SECONDS;
	uint64_t sent = setup->sent[0][MODEST] + setup->sent[1][MODEST], passed = merge(setup, MODEST)->count;
	const struct trace *heavy = merge(setup, HEAVY);
	struct report_row *row;

	row = report_add(report, "A6", EXACTLY(0), EXACTLY(0), "2 CPUs, a flow at 0.9 of its limit in such a flood");
	row->value = sent - passed;
	snprintf(row->measured, sizeof(row->measured), "%llu of %llu lost, flood %.1f M/s",
		 (unsigned long long)(sent - passed), (unsigned long long)sent, flood);
	row = report_add(report, "A7", AT_MOST(1.01), AT_MOST(1.01), "2 CPUs, a flow at %.0f x its limit in it",
			 offered_ratio(setup, HEAVY, FLOOD_LIMIT));
	row->is_ratio = true;
	row->value = (double)trace_fullest_window(heavy, WEIR_WINDOW_LEAP) / FLOOD_LIMIT;
	snprintf(row->measured, sizeof(row->measured), "%zu in %d s, %llu evicted", heavy->count, FLOOD_SECONDS,
		 (unsigned long long)rig_rule_counters(setup->object, 0).evicted);
}

static void run_flood(struct rig *rig, struct report *report)
{
	const struct rig_limit limit = {.threshold = FLOOD_LIMIT, .is_keyed = true, .port = 53};
	struct setup setup;

	setup_open(&setup, rig, &limit, 1, FLOWS_PER_CPU_DEFAULT);
	for (int flow = 0; flow < FLOOD_FLOWS; flow++)
		add_flow(&setup, &limit, 0);
	rig_rewind(rig, 0);
	rig_aim(rig, setup.object_fd, BENCH_SOURCES_MANY);
	run_setup(&setup, send_in_flood, FLOOD_SECONDS);
	report_flood(&setup, report);
	setup_close(&setup);
}

void bench_accuracy_real(struct rig *rig, struct report *report)
{
	static const struct rig_limit small[] = {
		{1, WEIR_WINDOW_LEAP, true, 1},	     {1, WEIR_WINDOW_LEAP, false, 2},
		{1000, WEIR_WINDOW_LEAP, true, 3},   {1000, WEIR_WINDOW_LEAP, false, 4},
		{1000, WEIR_WINDOW_STRICT, true, 5}, {1000, WEIR_WINDOW_SMOOTH, true, 6},
	};
	static const struct rig_limit large[] = {
		{100000, WEIR_WINDOW_LEAP, true, 0},
		{100000, WEIR_WINDOW_LEAP, false, 0},
		{1000000, WEIR_WINDOW_LEAP, true, 0},
		{1000000, WEIR_WINDOW_LEAP, false, 0},
	};

	if (rig->cpu_count < BENCH_CPUS) {
		struct report_row *row = report_add(report, "A*", EXACTLY(0), EXACTLY(0), "two CPUs at one flow");

		snprintf(row->skipped, sizeof(row->skipped), "needs two CPUs");
		return;
	}
	run_small(rig, small, ARRAY_SIZE(small), 4, report);
	for (size_t i = 0; i < ARRAY_SIZE(large); i++)
		run_large(rig, &large[i], report);
	run_flood(rig, report);
}
