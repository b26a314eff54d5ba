// SPDX-License-Identifier: GPL-2.0-only
/*
 * What limiters admit against what was configured, on the wire: four patterns of traffic, four limits and three
 * numbers of flows, from one CPU and from two that share every flow, for weir's windows and for peers.
 *
 * One run has all patterns and limits at once, each a group with flows of its own; a limit is a port. As many flows of
 * a group are heavy, that is, follow its pattern, as one core can send; these are looked at. The other flows of a
 * limit send a packet in ten seconds each, and are there to be remembered.
 *
 * When a packet was evaluated is only known to lie between its sending, which it carries with it, and its arrival at
 * the socket behind all limiters; mostly some ten microseconds. What an interval holds is counted so that it is certain
 * (trace.h), for all limiters alike. Exact to the last packet, by the clock of each verdict, are accuracy_real.c and
 * accuracy_virtual.c.
 */
#include "parts.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "peers.h"
#include "trace.h"
#include "traffic.h"
#include "wire.h"

#define SECONDS 4
#define ITEM_PACKETS_MAX 1024 /* of a group in one go, so that a burst does not hold up the others */
#define PAUSE_NS 100000	      /* between goes */
#define BACKGROUND_GAP_S 10
#define LIMITS WIRE_PORTS

static const uint32_t limits[LIMITS] = {1, 10, 1000, 100000};
static const char *const rates[LIMITS] = {"1/second", "10/second", "1000/second", "100000/second"};

enum limiter { LEAP, SMOOTH, STRICT, NFT, HASHLIMIT, LIMITERS };
static const char *const limiter_names[LIMITERS] = {"weir leap", "weir smooth", "weir strict", "nftables", "hashlimit"};
static const char *const window_names[] = {[LEAP] = "leap", [SMOOTH] = "smooth", [STRICT] = "strict"};

/* How many flows there are of each limit, and how many of a group are heavy. */
static const struct crowd {
	const char *name;
	uint32_t flows, heavy[LIMITS];
} crowds[] = {
	{"1", 1, {1, 1, 1, 1}},
	{"1k", 1000, {250, 100, 5, 1}},
	{"100k", 100000, {5000, 300, 5, 1}},
};

/* What became of a group, against its limit. */
struct outcome {
	double offered, admitted; /* in all, by limit x heavy flows x seconds */
	double fullest_interval;  /* of any flow, by the limit */
	double fullest_window;	  /* ... ten buckets of the grid */
};

struct matrix {
	struct wire wire;
	enum limiter limiter;
	int cpus;
	const struct crowd *crowd;
	struct weir_object *object;
	uint64_t start_ns, end_ns;
	uint64_t sent[BENCH_CPUS][WIRE_GROUPS + LIMITS]; /* the last ones are the background */
	struct wire_record *records;
	struct outcome outcome[WIRE_GROUPS];
	/* over all runs, against the limit */
	double fullest[LIMITERS][LIMITS], least_steady[LIMITERS][LIMITS], most_steady[LIMITERS][LIMITS];
	double worst_promised[LIMITERS][BENCH_CPUS];
};

static bool is_weir(enum limiter limiter)
{
	return limiter <= STRICT;
}

static uint32_t limit_of(int group)
{
	return group / TRAFFIC_PATTERNS;
}

/* ---- the limiter ---- */

static void load_weir(struct matrix *matrix)
{
	char text[2048];
	size_t length;

	length = snprintf(text, sizeof(text), "settings: {flowsPerCpu: 1048576}\nresources:\n");
	for (int i = 0; i < LIMITS; i++)
		length += snprintf(text + length, sizeof(text) - length,
				   "  - {name: r%d, match: {protocol: udp, destinationPort: %d}, flow: [source]}\n", i,
				   i + 1);
	length += snprintf(text + length, sizeof(text) - length, "rules:\n");
	for (int i = 0; i < LIMITS; i++)
		length += snprintf(text + length, sizeof(text) - length,
				   "  - {resource: r%d, threshold: %u, window: %s}\n", i, limits[i],
				   window_names[matrix->limiter]);
	matrix->object = rig_load_text(text);
	wire_attach(&matrix->wire, weir_object_program_fd(matrix->object));
}

static void load_limiter(struct matrix *matrix)
{
	enum peer peer = matrix->limiter == NFT ? PEER_NFT : PEER_HASHLIMIT;
	struct peers_limit peer_limits[LIMITS];

	/* Their default burst of five is less than what arrives in a moment at the larger limits: 10 ms' worth. */
	if (is_weir(matrix->limiter)) {
		load_weir(matrix);
		return;
	}
	for (int i = 0; i < LIMITS; i++)
		peer_limits[i] = (struct peers_limit){.port = i + 1, .rate = rates[i], .burst = limits[i] / 100};
	peers_load(peer, peer_limits, LIMITS);
	peers_connect(peer);
}

static void unload_limiter(struct matrix *matrix)
{
	if (is_weir(matrix->limiter)) {
		wire_attach(&matrix->wire, -1);
		weir_object_free(matrix->object);
		matrix->object = NULL;
	} else {
		peers_disconnect(matrix->limiter == NFT ? PEER_NFT : PEER_HASHLIMIT);
	}
}

/* ---- sending ---- */

static uint64_t due_of_group(const struct matrix *matrix, int group, uint64_t since_ns)
{
	const struct traffic traffic = {.pattern = group % TRAFFIC_PATTERNS,
					.limit = limits[limit_of(group)],
					.flows = matrix->crowd->heavy[limit_of(group)]};

	return traffic_due(&traffic, since_ns);
}

/* One CPU's share of what is due and not sent, as an item; false when there is nothing. */
static bool fill_item(struct matrix *matrix, int cpu, int group, uint64_t since_ns, struct wire_item *item)
{
	bool is_background = group >= WIRE_GROUPS;
	uint32_t limit = is_background ? (uint32_t)group - WIRE_GROUPS : limit_of(group);
	uint32_t heavy = matrix->crowd->heavy[limit],
		 first = is_background ? limit * TRAFFIC_PATTERNS : (uint32_t)group;
	uint64_t *sent = &matrix->sent[cpu][group], due;

	*item = (struct wire_item){.first = first << WIRE_FLOW_BITS, .flows = heavy, .port = limit + 1};
	if (is_background) {
		item->first += heavy;
		item->flows = matrix->crowd->flows - heavy;
		due = item->flows * since_ns / (BACKGROUND_GAP_S * SECOND);
	} else {
		due = due_of_group(matrix, group, since_ns);
	}
	due = due * (cpu + 1) / matrix->cpus - due * cpu / matrix->cpus;
	if (due <= *sent)
		return false;
	due -= *sent;
	item->packets = due < ITEM_PACKETS_MAX ? due : ITEM_PACKETS_MAX;
	/* CPUs go through the flows from different places. */
	item->next = (*sent + (uint64_t)item->flows * cpu / matrix->cpus) % item->flows;
	*sent += item->packets;
	return true;
}

static void send_due(void *data, int cpu)
{
	struct matrix *matrix = data;
	struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t now_ns;

	while ((now_ns = rig_now_ns()) < matrix->end_ns) {
		struct wire_item items[WIRE_GROUPS + LIMITS];
		uint32_t packets = 0;
		size_t count = 0;

		for (int group = 0; now_ns > matrix->start_ns && group < WIRE_GROUPS + LIMITS; group++)
			if (fill_item(matrix, cpu, group, now_ns - matrix->start_ns, &items[count]))
				packets += items[count++].packets;
		if (count) {
			wire_schedule(&matrix->wire, cpu, items, count);
			wire_send(&matrix->wire, packets);
		}
		nanosleep(&pause, NULL);
	}
}

/* ---- what was admitted ---- */

static int compare_records(const void *a, const void *b)
{
	const struct wire_record *left = a, *right = b;

	return (left->source > right->source) - (left->source < right->source);
}

static size_t collect(struct matrix *matrix)
{
	size_t count = 0;

	for (int cpu = 0; cpu < WIRE_CPUS_MAX; cpu++) {
		size_t noted = wire_noted(&matrix->wire, cpu);

		if (noted == WIRE_RECORDS_MAX)
			rig_fail(0, "more was admitted than there is room for");
		memcpy(matrix->records + count, matrix->wire.records + (size_t)cpu * WIRE_RECORDS_MAX,
		       noted * sizeof(*matrix->records));
		count += noted;
	}
	qsort(matrix->records, count, sizeof(*matrix->records), compare_records);
	return count;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Admissions of one flow. */
static void evaluate_flow(struct matrix *matrix, const struct wire_record *records, size_t count)
{
	int group = records->source >> WIRE_FLOW_BITS;
	struct outcome *outcome = &matrix->outcome[group];
	double limit = limits[limit_of(group)];
	struct trace sent = {}, heard = {};

	for (size_t i = 0; i < count; i++) {
		/* A busy machine sends some of it late: that is not offered, nor admitted, in time. */
		outcome->admitted += records[i].sent_ns < matrix->end_ns;
		trace_add(&sent, records[i].sent_ns);
		trace_add(&heard, records[i].received_ns);
	}
	trace_sort(&sent);
	trace_sort(&heard);
	outcome->fullest_interval = larger(outcome->fullest_interval, trace_certain_interval(&sent, &heard) / limit);
	outcome->fullest_window =
		larger(outcome->fullest_window, trace_certain_window(&sent, &heard, TRACE_SAMPLES) / limit);
	trace_free(&sent);
	trace_free(&heard);
}

static void evaluate(struct matrix *matrix)
{
	size_t count = collect(matrix), first = 0;

	if (!count)
		rig_fail(0, "nothing arrived behind the limiter: this would look exact");
	memset(matrix->outcome, 0, sizeof(matrix->outcome));
	for (size_t i = 1; i <= count; i++) {
		if (i < count && matrix->records[i].source == matrix->records[first].source)
			continue;
		evaluate_flow(matrix, &matrix->records[first], i - first);
		first = i;
	}
	for (int group = 0; group < WIRE_GROUPS; group++) {
		uint32_t limit = limit_of(group);
		double configured = (double)limits[limit] * matrix->crowd->heavy[limit] * SECONDS;

		matrix->outcome[group].admitted /= configured;
		matrix->outcome[group].offered = (matrix->sent[0][group] + matrix->sent[1][group]) / configured;
	}
}

/* ---- tables ---- */

static const struct report_column columns[] = {
	{"limiter", REPORT_WORDS},
	{"CPUs", REPORT_WORDS},
	{"flows", REPORT_WORDS},
	{"pattern", REPORT_WORDS},
	{"limit 1: admitted ÷ configured", 3},
	{"10: admitted", 3},
	{"1k: admitted", 3},
	{"100k: admitted", 3},
	{"limit 1: fullest interval ÷ limit", 3},
	{"10: fullest", 3},
	{"1k: fullest", 3},
	{"100k: fullest", 3},
	{"offered least ÷ configured", 2},
};

static void tabulate(struct report_table *table, const struct matrix *matrix, enum traffic_pattern pattern)
{
	json_t *cells = json_pack("[s,s,s,s]", limiter_names[matrix->limiter], matrix->cpus == 1 ? "1" : "2",
				  matrix->crowd->name, traffic_names[pattern]);
	double offered = INFINITY;

	for (int i = 0; i < LIMITS; i++) {
		const struct outcome *outcome = &matrix->outcome[i * TRAFFIC_PATTERNS + pattern];

		json_array_append_new(cells, report_number(outcome->admitted));
		offered = outcome->offered < offered ? outcome->offered : offered;
	}
	for (int i = 0; i < LIMITS; i++)
		json_array_append_new(cells,
				      report_number(matrix->outcome[i * TRAFFIC_PATTERNS + pattern].fullest_interval));
	json_array_append_new(cells, report_number(offered));
	report_line(table, cells);
}

/* Over all runs. Strict promises intervals, leap its own window. */
static void sum_up(struct matrix *matrix)
{
	enum limiter limiter = matrix->limiter;
	double *worst = &matrix->worst_promised[limiter][matrix->cpus - 1];

	for (int group = 0; group < WIRE_GROUPS; group++) {
		const struct outcome *outcome = &matrix->outcome[group];
		uint32_t limit = limit_of(group);
		double *least = &matrix->least_steady[limiter][limit], *most = &matrix->most_steady[limiter][limit];

		matrix->fullest[limiter][limit] = larger(matrix->fullest[limiter][limit], outcome->fullest_interval);
		*worst = larger(*worst, limiter == STRICT ? outcome->fullest_interval : outcome->fullest_window);
		if (group % TRAFFIC_PATTERNS != TRAFFIC_STEADY)
			continue;
		*least = outcome->admitted < *least || *least == 0 ? outcome->admitted : *least;
		*most = larger(*most, outcome->admitted);
	}
}

static const struct report_column summary_columns[] = {
	{"limiter", REPORT_WORDS},
	{"limit 1: fullest interval ÷ limit", 3},
	{"10: fullest", 3},
	{"1k: fullest", 3},
	{"100k: fullest", 3},
	{"limit 1: admitted ÷ configured, saturated", REPORT_WORDS},
	{"10: admitted", REPORT_WORDS},
	{"1k: admitted", REPORT_WORDS},
	{"100k: admitted", REPORT_WORDS},
};

static void summarize(struct report_table *table, const struct matrix *matrix, enum limiter limiter)
{
	json_t *cells = json_pack("[s]", limiter_names[limiter]);

	for (int i = 0; i < LIMITS; i++)
		json_array_append_new(cells, report_number(matrix->fullest[limiter][i]));
	for (int i = 0; i < LIMITS; i++) {
		char range[48];

		snprintf(range, sizeof(range), "%.3f to %.3f", matrix->least_steady[limiter][i],
			 matrix->most_steady[limiter][i]);
		json_array_append_new(cells, json_string(range));
	}
	report_line(table, cells);
}

static void report_promise(struct report *report, const struct matrix *matrix, enum limiter limiter, int cpus)
{
	bool is_strict = limiter == STRICT;
	struct report_row *row = report_add(report, is_strict ? "A1" : "A2", AT_MOST(1), AT_MOST(1),
					    "%s on a wire, %d CPU%s, all patterns and limits", window_names[limiter],
					    cpus, cpus > 1 ? "s" : "");

	row->is_ratio = true;
	row->value = matrix->worst_promised[limiter][cpus - 1];
	snprintf(row->measured, sizeof(row->measured), "%s at its fullest", is_strict ? "interval" : "own window");
}

/* ---- the runs ---- */

static void run(struct matrix *matrix)
{
	uint32_t noted_flows[WIRE_GROUPS];

	memset(matrix->sent, 0, sizeof(matrix->sent));
	for (int group = 0; group < WIRE_GROUPS; group++)
		noted_flows[group] = matrix->crowd->heavy[limit_of(group)];
	load_limiter(matrix);
	/* On a whole second, where windows' edges are. */
	matrix->start_ns = (rig_now_ns() / SECOND + 1) * SECOND;
	matrix->end_ns = matrix->start_ns + SECONDS * SECOND;
	wire_note_from(&matrix->wire, matrix->start_ns, noted_flows);
	if (matrix->cpus == 1)
		send_due(matrix, 0);
	else
		rig_on_both(matrix->wire.rig, send_due, matrix);
	wire_note_from(&matrix->wire, 0, NULL);
	unload_limiter(matrix);
}

static void run_limiter(struct matrix *matrix, struct report_table *table, int cpus_max)
{
	for (matrix->cpus = 1; matrix->cpus <= cpus_max; matrix->cpus++)
		for (size_t i = 0; i < ARRAY_SIZE(crowds); i++) {
			matrix->crowd = &crowds[i];
			rig_say("  %s, %d CPU%s, flows: %s", limiter_names[matrix->limiter], matrix->cpus,
				matrix->cpus > 1 ? "s" : "", matrix->crowd->name);
			run(matrix);
			evaluate(matrix);
			sum_up(matrix);
			for (enum traffic_pattern pattern = 0; pattern < TRAFFIC_PATTERNS; pattern++)
				tabulate(table, matrix, pattern);
		}
}

void bench_matrix(struct rig *rig, struct report *report)
{
	struct matrix *matrix = calloc(1, sizeof(*matrix));
	struct report_table *summary, *table;

	if (matrix)
		matrix->records = calloc((size_t)WIRE_CPUS_MAX * WIRE_RECORDS_MAX, sizeof(*matrix->records));
	if (!matrix || !matrix->records)
		rig_fail(ENOMEM, "cannot measure");
	summary = report_table(report, "accuracy", "Admitted against configured, on a wire",
			       "The fullest interval of a second anywhere, and what was admitted under steady overload "
			       "in four seconds, in the worst of all\n"
			       "runs: 1 and 2 CPUs, 1, 1k and 100k flows, and for the first figure also every pattern.",
			       summary_columns, ARRAY_SIZE(summary_columns));
	table = report_table(report, "accuracyAll", "Admitted against configured, every run", NULL, columns,
			     ARRAY_SIZE(columns));
	table->is_only_in_json = true;
	wire_open(&matrix->wire, rig);
	wire_listen(&matrix->wire);
	for (matrix->limiter = LEAP; matrix->limiter < LIMITERS; matrix->limiter++) {
		if (!is_weir(matrix->limiter) && peers_missing())
			break;
		run_limiter(matrix, table, rig->cpu_count);
		summarize(summary, matrix, matrix->limiter);
	}
	for (int cpus = 1; cpus <= rig->cpu_count; cpus++) {
		report_promise(report, matrix, LEAP, cpus);
		report_promise(report, matrix, STRICT, cpus);
	}
	wire_close(&matrix->wire);
	free(matrix->records);
	free(matrix);
}
