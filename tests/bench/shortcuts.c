// SPDX-License-Identifier: GPL-2.0-only
/*
 * What each shortcut is worth (enum weir_shortcut): the program with all of them, with each one left out, and with
 * none, in the same rounds, on packets that a user meets. First by BPF_PROG_TEST_RUN as trial.h says; then end to end,
 * as S7 is measured (flood.c): over the limit, where everything is dropped, and within, where what passes is dropped in
 * the raw table. Every program has tables of its own and has seen the same packets.
 */
#include "parts.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "patterns.h"
#include "peers.h"
#include "tests/bench/wire.skel.h"
#include "trial.h"
#include "wire.h"

#define ROUNDS 5
#define ROWS 2097152u /* of a flow table: half full with a million flows */

/* Programs: with all shortcuts, without the one of bit i - 1, and without any. */
#define SHORTCUTS 8
#define WITH_ALL 0
#define WITH_NONE (SHORTCUTS + 1)
#define PROGRAMS (SHORTCUTS + 2)
_Static_assert(WEIR_SHORTCUTS_ALL == (1 << SHORTCUTS) - 1, "a column for each");
_Static_assert(PROGRAMS <= TRIAL_PROGRAMS_MAX, "all in one trial");

static const struct report_column columns[] = {
	{"traffic", REPORT_WORDS},
	{"measured", REPORT_WORDS},
	{"with all, ns", 1},
	{"PARSE", 1},
	{"MATCH", 1},
	{"SOURCE", 1},
	{"FETCH", 1},
	{"OVER", 1},
	{"LEASE", 1},
	{"FIRST", 1},
	{"NOTE", 1},
	{"all of them", 1},
	{"the wire, ns", 1},
};
_Static_assert(ARRAY_SIZE(columns) == 3 + PROGRAMS, "as many as programs, and three");

/* What a rule allows: over its limit every flow stays until the run is over. */
struct limit {
	uint64_t threshold;
	uint32_t interval_ms;
};
static const struct limit over = {1, 3600000}, within = {1000, 1000};
static const struct limit ample = {1000000000, 1000}; /* more than any machine sends; no narrow row holds it */

static const struct {
	const char *what;
	const struct limit *limit;
	uint32_t rules; /* so many; each allows one more than the one before */
	enum pattern pattern;
} runs[] = {
	{"one flow, over its limit", &within, 1, PATTERN_ONE}, /* S1: evaluated again every 100 ms */
	{"64k flows, over", &over, 1, PATTERN_64K},
	{"1M flows, over", &over, 1, PATTERN_1M},
	{"one flow, admitted", &ample, 1, PATTERN_ONE},
	{"64k flows, admitted", &within, 1, PATTERN_64K},
	{"1M flows, admitted", &within, 1, PATTERN_1M},
	{"new sources, admitted", &within, 1, PATTERN_NEW},
	{"8 rules, one flow, admitted", &ample, 8, PATTERN_ONE},
	{"8 rules, 64k flows, admitted", &within, 8, PATTERN_64K},
};

static const struct {
	const char *what;
	const struct limit *limit;
	uint32_t flows, rows;
	bool is_over, is_new;
} loads[] = {
	{"1 source, over its limit", &over, 1, ROWS, .is_over = true},
	{"10k sources, over", &over, 10000, ROWS, .is_over = true},
	{"1M sources, over", &over, 1000000, ROWS, .is_over = true},
	{"1 source, admitted", &ample, 1, ROWS, .is_over = false},
	{"10k sources, admitted", &within, 10000, ROWS, .is_over = false},
	{"1M sources, admitted", &within, 1000000, ROWS, .is_over = false},
	{"spoofed sources, admitted", &within, 1u << 30, ROWS / 2, .is_new = true},
};

static uint32_t left_out(size_t program)
{
	if (program == WITH_ALL)
		return 0;
	return program == WITH_NONE ? WEIR_SHORTCUTS_ALL : 1u << (program - 1);
}

static void load_programs(struct weir_object *objects[PROGRAMS], const struct limit *limit, uint32_t rules,
			  uint32_t rows)
{
	_cleanup_(weir_freep) char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	if (!stream)
		rig_fail(errno, "cannot write rules");
	fprintf(stream,
		"settings: {flowsPerCpu: %u}\n"
		"resources: [{name: all, match: {protocol: udp}, flow: [source]}]\n"
		"rules:\n",
		rows);
	for (uint32_t i = 0; i < rules; i++)
		fprintf(stream, "  - {resource: all, threshold: %" PRIu64 ", statIntervalInMs: %u}\n",
			limit->threshold + i, limit->interval_ms);
	fclose(stream);
	for (size_t i = 0; i < PROGRAMS; i++)
		objects[i] = rig_load_text_without(text, left_out(i));
}

static void free_programs(struct weir_object *objects[PROGRAMS])
{
	for (size_t i = 0; i < PROGRAMS; i++)
		weir_object_free(objects[i]);
}

/* A line: ns with all, and how much more each of the others takes, medians of differences within a round. */
static void add_line(struct report_table *table, const char *what, const char *how, double ns[PROGRAMS][ROUNDS],
		     double wire_ns)
{
	json_t *cells = json_pack("[s,s]", what, how);
	char figures[256] = "";
	double values[ROUNDS];

	for (size_t program = 0; program < PROGRAMS; program++) {
		for (int round = 0; round < ROUNDS; round++)
			values[round] = ns[program][round] - (program == WITH_ALL ? 0 : ns[WITH_ALL][round]);
		json_array_append_new(cells, report_number(report_median(values, ROUNDS)));
		snprintf(figures + strlen(figures), sizeof(figures) - strlen(figures), " %7.1f",
			 report_median(values, ROUNDS));
	}
	rig_say("  %-32s%s", what, figures);
	json_array_append_new(cells, report_number(wire_ns));
	report_line(table, cells);
}

/* ---- by BPF_PROG_TEST_RUN ---- */

static void measure_run(struct rig *rig, struct report_table *table, size_t which)
{
	struct trial trial = {.frame = rig_frame(4, 1, 53),
			      .sources = patterns[runs[which].pattern].sources,
			      /* So many that what the programs before have pushed out of the caches counts little. */
			      .repeat = 4 * patterns[runs[which].pattern].repeat,
			      .rounds = ROUNDS,
			      .program_count = PROGRAMS};
	uint32_t flows = patterns[runs[which].pattern].flows;
	struct weir_object *objects[PROGRAMS];
	double ns[PROGRAMS][ROUNDS];
	struct trial_result result;

	load_programs(objects, runs[which].limit, runs[which].rules, ROWS);
	for (size_t i = 0; i < PROGRAMS; i++) {
		trial.program_fd[i] = weir_object_program_fd(objects[i]);
		/* Twice: a flow that has had all of its limit is full when it is blocked. */
		for (int time = 0; time < 2 && trial.sources == BENCH_SOURCES_MANY; time++)
			rig_send_new(rig, trial.program_fd[i], &trial.frame, 0, flows);
	}
	rig_choose(rig, 0, flows);
	rig_skip_to_fresh(rig);
	trial_run(rig, &trial, &result);
	rig_choose(rig, 0, BENCH_FLOWS);
	for (size_t i = 0; i < PROGRAMS; i++)
		memcpy(ns[i], result.ns[i], sizeof(ns[i]));
	add_line(table, runs[which].what, "test run", ns, NAN);
	free_programs(objects);
}

/* ---- end to end ---- */

#define TRIES 10
#define PACKETS 150000u
#define LOST_MAX (PACKETS / 50)
#define SPOOFED_FIRST (1u << 26)

/* ns a packet of all that the CPU did; what got lost cost less than what arrived, and is sent again. */
static double send_load(struct wire *wire, int program_fd, size_t which, uint32_t next, uint32_t packets)
{
	struct wire_item item = {.flows = loads[which].flows, .packets = UINT32_MAX, .port = 1, .next = next};

	if (loads[which].is_new)
		item.first = SPOOFED_FIRST;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = wire_arrived(), arrived;
		double ns;

		wire_attach(wire, program_fd);
		wire_schedule(wire, 0, &item, 1);
		ns = wire_send(wire, packets);
		wire_attach(wire, -1);
		arrived = wire_arrived() - before;
		if (arrived + LOST_MAX >= packets)
			return ns * packets / arrived;
	}
	rig_fail(0, "frames get lost on the wire: the machine is too busy");
}

static void measure_load(struct wire *wire, struct report_table *table, size_t which)
{
	const struct bpf_program *plain =
		loads[which].is_over ? wire->bpf->progs.bench_drop : wire->bpf->progs.bench_pass;
	struct weir_object *objects[PROGRAMS];
	double ns[PROGRAMS][ROUNDS], wire_ns[ROUNDS];

	load_programs(objects, loads[which].limit, 1, loads[which].rows);
	for (size_t i = 0; i < PROGRAMS && !loads[which].is_new; i++)
		send_load(wire, weir_object_program_fd(objects[i]), which, 0, 2 * loads[which].flows);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		wire_ns[round] = send_load(wire, bpf_program__fd(plain), which, round * PACKETS, PACKETS);
		for (size_t i = 0; i < PROGRAMS; i++)
			ns[i][round] =
				send_load(wire, weir_object_program_fd(objects[i]), which, round * PACKETS, PACKETS) -
				wire_ns[round];
	}
	add_line(table, loads[which].what, "end to end", ns, report_median(wire_ns, ROUNDS));
	free_programs(objects);
}

void bench_shortcuts(struct rig *rig, struct report *report)
{
	static const char *const none_apart[] = {"10.224.0.0/16"};
	struct report_table *table = report_table(report, "shortcuts", "What each shortcut is worth",
						  "Nanoseconds a packet with all shortcuts, above an empty program or "
						  "a plain end; how many more without one of them, or without\n"
						  "any; and what the wire alone takes. One rule (or eight) on a "
						  "resource keyed by source, ten buckets, all statistics. If a\n"
						  "figure is below zero, the packet is faster without.",
						  columns, ARRAY_SIZE(columns));
	struct wire wire;

	if (peers_missing()) { /* what passes must end somewhere */
		rig_say("  not end to end: %s", peers_missing());
	} else {
		wire_open(&wire, rig);
		peers_count_behind(none_apart, ARRAY_SIZE(none_apart));
		for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
			measure_load(&wire, table, i);
		peers_stop_counting();
		wire_close(&wire);
	}
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		measure_run(rig, table, i);
}
