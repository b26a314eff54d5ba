// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S10 to S13: limits that are not plain, where they cost most. A SYN flood under a limit of connections, beside a
 * look-up that misses and an insertion; bytes, WarmUp, MemoryAdaptive and tokens with a million flows, all admitted,
 * beside a look-up that hits. Measured as contest.h says.
 *
 * Tables are as for S2 and S3: half full with a million flows that are known; as many places as the LRU_HASH has, all
 * taken by spoofed sources, where every one is new.
 */
#include "parts.h"

#include <math.h>

#include "base/util.h"
#include "contest.h"

#define REPEAT 300000u
#define SYN 0x02

static struct weir_object *load(const char *settings, const char *protocol, const char *rule)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "settings: {%s}\n"
		 "resources: [{name: all, match: {protocol: %s}, flow: [source]}]\n"
		 "rules: [{resource: all, %s}]\n",
		 settings, protocol, rule);
	return rig_load_text(text);
}

static void run_syn_flood(struct rig *rig, struct report *report)
{
	_cleanup_(weir_object_freep) struct weir_object *object = load(
		"connections: 1048576, connectionFlows: 1048576", "tcp", "metricType: Concurrency, threshold: 100");
	const struct contest contest = {.row = "S10",
					.what = "SYN flood of new sources, Concurrency",
					.frame = rig_frame_tcp(443, SYN),
					.sources = BENCH_SOURCES_NEW,
					.repeat = REPEAT,
					.family = 4,
					.weir_fd = weir_object_program_fd(object),
					.must = AT_MOST(1.0),
					.aim = AT_MOST(0.5)};

	contest_flood(rig, contest.weir_fd, &contest.frame);
	rig_skip_to_fresh(rig);
	contest_run(rig, &contest, report);
}

static void run_admitted(struct rig *rig, struct report *report, const char *row, const char *what, const char *rule,
			 double must, double aim)
{
	_cleanup_(weir_object_freep) struct weir_object *object = load("flowsPerCpu: 2097152", "udp", rule);
	const struct contest contest = {.row = row,
					.what = what,
					.frame = rig_frame(4, 1, 53),
					.sources = BENCH_SOURCES_MANY,
					.repeat = REPEAT,
					.family = 4,
					.weir_fd = weir_object_program_fd(object),
					.must = AT_MOST(must),
					.aim = AT_MOST(aim)};

	rig_send_new(rig, contest.weir_fd, &contest.frame, 0, BENCH_FLOWS);
	contest_run(rig, &contest, report);
}

/* One flow that has spent its tokens: a heavy one's packets, of which one in thousands passes. */
static void run_spent(struct rig *rig, struct report *report)
{
	_cleanup_(weir_object_freep) struct weir_object *object =
		load("flowsPerCpu: 4096", "udp", "window: tokens, threshold: 1000, burst: 100");
	const struct contest contest = {.row = "S13",
					.what = "tokens, one flow over its limit",
					.frame = rig_frame(4, 1, 53),
					.sources = BENCH_SOURCES_ONE,
					.repeat = 10 * REPEAT,
					.family = 4,
					.weir_fd = weir_object_program_fd(object),
					.must = AT_MOST(0.8),
					.aim = AT_MOST(0.4)};

	contest_run(rig, &contest, report);
}

void bench_floods(struct rig *rig, struct report *report)
{
	contest_fill_one(rig, 4);
	run_spent(rig, report);
	contest_fill_many(rig, 4);
	contest_fill_spoofed(rig, 4);
	run_syn_flood(rig, report);
	/* 10 Mbit/s each, as a provider might sell it. */
	run_admitted(rig, report, "S11", "bytes, 1M random flows admitted", "unit: bytes, threshold: 1250000", 1.0,
		     0.75);
	run_admitted(rig, report, "S12", "WarmUp, 1M random flows admitted",
		     "tokenCalculateStrategy: WarmUp, warmUpPeriodSec: 10, threshold: 1000", 1.5, 1.0);
	run_admitted(rig, report, "S12", "MemoryAdaptive, 1M random flows admitted",
		     "tokenCalculateStrategy: MemoryAdaptive, memLowWaterMarkBytes: 1000000, "
		     "memHighWaterMarkBytes: 2000000, lowMemUsageThreshold: 2000, highMemUsageThreshold: 1000",
		     1.0, 0.75);
	run_admitted(rig, report, "S13", "tokens, 1M random flows admitted",
		     "window: tokens, threshold: 1000, burst: 1000", 0.6, 0.5);
}
