// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S1p and S2p: what packets of penalised sources cost, beside those of sources that are merely full. One source,
 * and a million of them in random order. Measured as contest.h says.
 */
#include "parts.h"

#include <math.h>

#include "base/util.h"
#include "contest.h"

#define ONE_REPEAT 1000000u
#define MANY_REPEAT 300000u

/* A window of a day, so that who was full stays so. */
#define FULL "threshold: 1, statIntervalInMs: 86400000"
#define PENALISED FULL ", blockDurationInMs: 86400000"

static void run(struct rig *rig, struct report *report, const char *row, const char *what, const char *rule,
		enum bench_sources sources)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	struct contest contest = {.row = row,
				  .what = what,
				  .frame = rig_frame(4, 1, 53),
				  .sources = sources,
				  .repeat = sources == BENCH_SOURCES_ONE ? ONE_REPEAT : MANY_REPEAT,
				  .family = 4,
				  .must = AT_MOST(sources == BENCH_SOURCES_ONE ? 0.8 : 0.75),
				  .aim = AT_MOST(sources == BENCH_SOURCES_ONE ? 0.4 : 0.5)};
	char text[512];

	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: 2097152}\n"
		 "resources: [{name: all, match: {protocol: udp}, flow: [source]}]\n"
		 "rules: [{resource: all, %s}]\n",
		 rule);
	object = rig_load_text(text);
	contest.weir_fd = weir_object_program_fd(object);
	/* Twice: the second packet of each is blocked. */
	for (int i = 0; i < 2 && sources == BENCH_SOURCES_MANY; i++)
		rig_send_new(rig, contest.weir_fd, &contest.frame, 0, BENCH_FLOWS);
	contest_run(rig, &contest, report);
}

void bench_penalties(struct rig *rig, struct report *report)
{
	contest_fill_one(rig, 4);
	run(rig, report, "S1p", "one source, full", FULL, BENCH_SOURCES_ONE);
	run(rig, report, "S1p", "one source, penalised", PENALISED, BENCH_SOURCES_ONE);
	contest_fill_many(rig, 4);
	run(rig, report, "S2p", "1M random sources, full", FULL, BENCH_SOURCES_MANY);
	run(rig, report, "S2p", "1M random sources, penalised", PENALISED, BENCH_SOURCES_MANY);
}
