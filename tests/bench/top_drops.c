// SPDX-License-Identifier: GPL-2.0-only
/*
 * What it costs to count drops by flow (bpf/observe/top_drops.h): a program that does beside one that does not, in the
 * same rounds, as trial.h says. On packets that are dropped; and on some that are admitted, which must cost the same.
 */
#include "parts.h"

#include <jansson.h>

#include "base/util.h"
#include "patterns.h"
#include "trial.h"

#define ROUNDS 15
#define PROGRAMS 2 /* without, with */

static const struct report_column columns[] = {
	{"traffic", REPORT_WORDS},
	{"without, ns", 1},
	{"with, ns", 1},
	{"more, ns", 1},
};

/* A window of an hour: who is over the limit stays so. */
#define OVER "threshold: 1, statIntervalInMs: 3600000"
#define AMPLE "threshold: 1000000000"
#define FIVE_TUPLE "source, destination, sourcePort, destinationPort, protocol"

static const struct {
	const char *what;
	const char *key, *rules;
	enum pattern pattern;
} runs[] = {
	{"one source, over its limit (S1)", "source", "{resource: all, threshold: 1000}", PATTERN_ONE},
	{"one source, over its limit of an hour", "source", "{resource: all, " OVER "}", PATTERN_ONE},
	{"one connection, over", FIVE_TUPLE, "{resource: all, " OVER "}", PATTERN_ONE},
	{"one source, over in bytes", "source", "{resource: all, unit: bytes, " OVER "}", PATTERN_ONE},
	{"a whole resource, over", "", "{resource: all, " OVER "}", PATTERN_ONE},
	{"one source, over, only observed", "source", "{resource: all, mode: observe, " OVER "}", PATTERN_ONE},
	{"one source, penalised", "source", "{resource: all, blockDurationInMs: 3600000, " OVER "}", PATTERN_ONE},
	{"10k sources, over", "source", "{resource: all, " OVER "}", PATTERN_10K},
	{"64k sources, over", "source", "{resource: all, " OVER "}", PATTERN_64K},
	{"1M sources, over", "source", "{resource: all, " OVER "}", PATTERN_1M},
	{"one source, admitted", "source", "{resource: all, " AMPLE "}", PATTERN_ONE},
	{"64k sources, admitted", "source", "{resource: all, " AMPLE "}", PATTERN_64K},
};

static void measure(struct rig *rig, struct report_table *table, size_t which)
{
	struct trial trial = {.frame = rig_frame(4, 1, 53),
			      .sources = patterns[runs[which].pattern].sources,
			      .repeat = 4 * patterns[runs[which].pattern].repeat,
			      .rounds = ROUNDS,
			      .program_count = PROGRAMS};
	uint32_t flows = patterns[runs[which].pattern].flows;
	struct weir_object *objects[PROGRAMS];
	struct trial_result result;
	double more[ROUNDS];
	char text[512];

	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: 2097152}\n"
		 "resources: [{name: all, match: {protocol: udp}, flow: [%s]}]\n"
		 "rules: [%s]\n",
		 runs[which].key, runs[which].rules);
	objects[0] = rig_load_text_without_top_drops(text);
	objects[1] = rig_load_text(text);
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
	for (size_t round = 0; round < ROUNDS; round++)
		more[round] = result.ns[1][round] - result.ns[0][round];
	rig_say("  %-40s %7.1f %7.1f %7.1f", runs[which].what, trial_ns(&result, 0), trial_ns(&result, 1),
		report_median(more, ROUNDS));
	report_line(table, json_pack("[s,o,o,o]", runs[which].what, report_number(trial_ns(&result, 0)),
				     report_number(trial_ns(&result, 1)), report_number(report_median(more, ROUNDS))));
	for (size_t i = 0; i < PROGRAMS; i++)
		weir_object_free(objects[i]);
}

void bench_top_drops(struct rig *rig, struct report *report)
{
	struct report_table *table = report_table(
		report, "top_drops", "What counting drops by flow costs",
		"Nanoseconds a packet above an empty program, medians over the rounds; of the differences, too.",
		columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		measure(rig, table, i);
}
