// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a packet costs: every kind of packet, path, window, strategy and behaviour, for one flow, 10k, 1M, and for
 * sources that are all new, beside an LRU_HASH (a look-up that hits; of new sources an insertion) of the same
 * pattern and family, in the same rounds. Measured as trial.h says.
 *
 * On the drop path every flow has used up its limit before; where sources are new there is none. On the pass path
 * nothing is ever full. Under a limit of connections a SYN that is dropped comes from a source that has its one
 * connection, from another port; established ones have been opened before. One flow that is never full needs a limit
 * that no narrow row holds: it lives in a wide one.
 */
#include "parts.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "contest.h"
#include "patterns.h"
#include "trial.h"

#define PORT 53
#define SYN 0x02
#define ACK 0x10 /* as most segments are */
#define SOURCE_PORT_OFFSET 34
#define GIGA "1000000000" /* more than any machine sends in a second */

enum kind { UDP4, UDP6, VLAN4, TCP4, SYN4 };

/* A rule's fields, as a rule file has them. Without DROPPING or PASSING (NULL) that is not measured. */
enum fields { DROPPING, PASSING, AMPLE, FIELDS_COUNT };
struct rule_case {
	const char *what;
	enum kind kind;
	const char *fields[FIELDS_COUNT]; /* for the drop path, for many flows that pass, for one that does */
	bool is_unkeyed;		  /* the whole resource is one flow */
	bool is_connections;		  /* established before: those measured, or of SYNs other ones */
	bool is_slow; /* a flow is not full after its first packet: the drop path with one flow only */
};

#define ONE "threshold: 1, statIntervalInMs: 3600000"
#define SOME "threshold: 1000"
#define WARM "tokenCalculateStrategy: WarmUp, warmUpPeriodSec: 10, "
#define MEMORY "tokenCalculateStrategy: MemoryAdaptive, memLowWaterMarkBytes: 1000000, memHighWaterMarkBytes: 2000000, "
#define THROTTLED "controlBehavior: Throttling, "
#define CONNECTIONS "metricType: Concurrency, threshold: "

static const struct rule_case cases[] = {
	{"leap, UDP over IPv4", UDP4, .fields = {ONE, SOME, "threshold: " GIGA}},
	{"leap, UDP over IPv6", UDP6, .fields = {ONE, SOME, "threshold: " GIGA}},
	{"leap, UDP over IPv4 in a VLAN", VLAN4, .fields = {ONE, SOME, "threshold: " GIGA}},
	{"leap, TCP over IPv4", TCP4, .fields = {ONE, SOME, "threshold: " GIGA}},
	{"strict", UDP4,
	 .fields = {"window: strict, " ONE, "window: strict, " SOME, "window: strict, threshold: " GIGA}},
	{"smooth", UDP4,
	 .fields = {"window: smooth, " ONE, "window: smooth, " SOME, "window: smooth, threshold: " GIGA}},
	{"leap, bytes", UDP4,
	 .fields = {"unit: bytes, threshold: 64, statIntervalInMs: 3600000", "unit: bytes, threshold: 1250000",
		    "unit: bytes, threshold: 100000000000"}},
	{"leap, no flow key", UDP4, .fields = {ONE, NULL, "threshold: " GIGA}, .is_unkeyed = true},
	{"WarmUp, Reject", UDP4, .fields = {WARM "threshold: 10", WARM SOME, WARM "threshold: " GIGA}, .is_slow = true},
	{"WarmUp, Reject, no flow key", UDP4, .fields = {WARM "threshold: 10", NULL, WARM "threshold: " GIGA},
	 .is_unkeyed = true},
	{"MemoryAdaptive, Reject", UDP4,
	 .fields = {MEMORY "lowMemUsageThreshold: 2, highMemUsageThreshold: 1, statIntervalInMs: 3600000",
		    MEMORY "lowMemUsageThreshold: 2000, highMemUsageThreshold: 1000",
		    MEMORY "lowMemUsageThreshold: 2000000000, highMemUsageThreshold: " GIGA}},
	{"Direct, Throttling", UDP4,
	 .fields = {THROTTLED ONE, THROTTLED SOME ", maxQueueingTimeMs: 1000", THROTTLED "threshold: " GIGA}},
	{"tokens", UDP4,
	 .fields = {"window: tokens, " ONE, "window: tokens, " SOME, "window: tokens, threshold: " GIGA}},
	{"WarmUp, Throttling", UDP4,
	 .fields = {WARM THROTTLED "threshold: 10", WARM THROTTLED SOME ", maxQueueingTimeMs: 1000",
		    WARM THROTTLED "threshold: " GIGA},
	 .is_slow = true},
	{"MemoryAdaptive, Throttling", UDP4,
	 .fields = {MEMORY THROTTLED "lowMemUsageThreshold: 2, highMemUsageThreshold: 1, statIntervalInMs: 3600000",
		    MEMORY THROTTLED "lowMemUsageThreshold: 2000, highMemUsageThreshold: 1000, maxQueueingTimeMs: 1000",
		    MEMORY THROTTLED "lowMemUsageThreshold: 2000000000, highMemUsageThreshold: " GIGA}},
	{"Concurrency, SYNs", SYN4, .fields = {CONNECTIONS "1", CONNECTIONS "100", CONNECTIONS "100"},
	 .is_connections = true},
	{"Concurrency, established", TCP4, .fields = {NULL, CONNECTIONS "100", CONNECTIONS "100"},
	 .is_connections = true},
};

static const struct report_column columns[] = {
	{"rule, packet", REPORT_WORDS},
	{"path", REPORT_WORDS},
	{"one ÷ LRU", 2},
	{"10k ÷ LRU", 2},
	{"1M ÷ LRU", 2},
	{"new ÷ LRU", 2},
	{"one, ns", 0},
	{"10k, ns", 0},
	{"1M, ns", 0},
	{"new, ns", 0},
};

static struct rig_frame frame_of(enum kind kind)
{
	if (kind == VLAN4)
		return rig_frame_vlan(PORT);
	if (kind == TCP4)
		return rig_frame_tcp(PORT, ACK);
	if (kind == SYN4)
		return rig_frame_tcp(PORT, SYN);
	return rig_frame(kind == UDP6 ? 6 : 4, 1, PORT);
}

static struct weir_object *load_rule(const struct rule_case *rule, const char *fields)
{
	char text[1024];

	/* So many rows that a million flows fill half of the table. */
	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: 2097152, connections: 2097152, connectionFlows: 2097152}\n"
		 "resources: [{name: all, match: {protocol: %s}%s}]\n"
		 "rules: [{resource: all, %s}]\n",
		 rule->kind >= TCP4 ? "tcp" : "udp", rule->is_unkeyed ? "" : ", flow: [source]", fields);
	return rig_load_text(text);
}

/* A line's figures, NAN where there is none. */
struct figures {
	double ratio[PATTERN_COLUMNS], ns[PATTERN_COLUMNS];
};

/* A building block looks where an IPv4 source is without a VLAN tag: it gets a frame of its own. */
static void measure(struct rig *rig, const struct rule_case *rule, enum pattern pattern, int weir_fd,
		    struct figures *figures)
{
	struct trial trial = {.frame = frame_of(rule->kind == UDP6 ? UDP6 : UDP4),
			      .sources = patterns[pattern].sources,
			      .repeat = patterns[pattern].repeat,
			      .rounds = 1,
			      .program_count = 1};
	double ratio[PATTERN_ROUNDS], ns[PATTERN_ROUNDS];
	struct trial_result block, weir;

	rig_choose(rig, 0, patterns[pattern].flows);
	for (int i = 0; i < PATTERN_ROUNDS; i++) {
		trial.frame = frame_of(rule->kind == UDP6 ? UDP6 : UDP4);
		trial.program_fd[0] = contest_block_fd(rig, rule->kind == UDP6 ? 6 : 4, trial.sources);
		trial_run(rig, &trial, &block);
		trial.frame = frame_of(rule->kind);
		trial.program_fd[0] = weir_fd;
		trial_run(rig, &trial, &weir);
		ns[i] = weir.ns[0][0];
		ratio[i] = ns[i] / block.ns[0][0];
	}
	rig_choose(rig, 0, BENCH_FLOWS);
	figures->ns[pattern] = report_median(ns, PATTERN_ROUNDS);
	figures->ratio[pattern] = report_median(ratio, PATTERN_ROUNDS);
}

static void add_line(struct report_table *table, const char *what, const char *path, const struct figures *figures)
{
	json_t *cells = json_pack("[s,s]", what, path);

	for (int pattern = 0; pattern < PATTERN_COLUMNS; pattern++)
		json_array_append_new(cells, report_number(figures->ratio[pattern]));
	for (int pattern = 0; pattern < PATTERN_COLUMNS; pattern++)
		json_array_append_new(cells, report_number(figures->ns[pattern]));
	report_line(table, cells);
}

static struct figures no_figures(void)
{
	struct figures figures;

	for (int pattern = 0; pattern < PATTERN_COLUMNS; pattern++)
		figures.ratio[pattern] = figures.ns[pattern] = NAN;
	return figures;
}

/* A connection of every source, opened by a SYN and confirmed by a packet that talks. */
static void establish(struct rig *rig, int fd, bool is_from_another_port)
{
	for (int i = 0; i < 2; i++) {
		struct rig_frame frame = rig_frame_tcp(PORT, i ? ACK : SYN);

		frame.bytes[SOURCE_PORT_OFFSET] ^= is_from_another_port;
		rig_aim(rig, fd, BENCH_SOURCES_ONE);
		rig_run(rig->driver_fd, &frame, 1);
		rig_send_new(rig, fd, &frame, 0, BENCH_FLOWS);
	}
}

static void measure_dropping(struct rig *rig, struct report_table *table, const struct rule_case *rule)
{
	_cleanup_(weir_object_freep) struct weir_object *object = load_rule(rule, rule->fields[DROPPING]);
	struct rig_frame frame = frame_of(rule->kind);
	int fd = weir_object_program_fd(object);
	struct figures figures = no_figures();

	if (rule->is_connections)
		establish(rig, fd, true);
	measure(rig, rule, PATTERN_ONE, fd, &figures);
	if (!rule->is_unkeyed && !rule->is_slow) {
		rig_send_new(rig, fd, &frame, 0, BENCH_FLOWS);
		rig_send_new(rig, fd, &frame, 0, BENCH_FLOWS);
		measure(rig, rule, PATTERN_10K, fd, &figures);
		measure(rig, rule, PATTERN_1M, fd, &figures);
	}
	add_line(table, rule->what, "drop", &figures);
}

static void measure_passing(struct rig *rig, struct report_table *table, const struct rule_case *rule)
{
	_cleanup_(weir_object_freep) struct weir_object *one = load_rule(rule, rule->fields[AMPLE]);
	_cleanup_(weir_object_freep) struct weir_object *many = NULL;
	struct rig_frame frame = frame_of(rule->kind);
	struct figures figures = no_figures();

	if (rule->is_connections && rule->kind == TCP4)
		establish(rig, weir_object_program_fd(one), false);
	measure(rig, rule, PATTERN_ONE, weir_object_program_fd(one), &figures);
	if (rule->fields[PASSING]) {
		int fd;

		many = load_rule(rule, rule->fields[PASSING]);
		fd = weir_object_program_fd(many);
		if (rule->is_connections && rule->kind == TCP4)
			establish(rig, fd, false);
		rig_send_new(rig, fd, &frame, 0, BENCH_FLOWS);
		measure(rig, rule, PATTERN_10K, fd, &figures);
		measure(rig, rule, PATTERN_1M, fd, &figures);
		if (rule->kind != TCP4 || !rule->is_connections) { /* of which none is new */
			rig_skip_to_fresh(rig);
			measure(rig, rule, PATTERN_NEW, fd, &figures);
		}
	}
	add_line(table, rule->what, "pass", &figures);
}

void bench_packets(struct rig *rig, struct report *report)
{
	struct report_table *table = report_table(report, "packets", "What a packet costs, under every kind of limit",
						  "One rule on a resource keyed by source, ten buckets, all "
						  "statistics; Direct and Reject unless stated otherwise. First the\n"
						  "ratio to a bare LRU_HASH in the same round (a look-up that hits; "
						  "where all sources are new, an insertion), then nanoseconds,\n"
						  "both above an empty program.",
						  columns, ARRAY_SIZE(columns));

	/* However this part came to be run. */
	for (int family = 4; family <= 6; family += 2) {
		contest_fill_one(rig, family);
		contest_fill_many(rig, family);
		contest_fill_spoofed(rig, family);
	}
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		rig_say("  %s", cases[i].what);
		if (cases[i].fields[DROPPING])
			measure_dropping(rig, table, &cases[i]);
		measure_passing(rig, table, &cases[i]);
	}
}
