// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S15: what a circuit breaker per source costs: openings of new sources, which are admitted, and followed until
 * their outcome, beside a look-up that misses and an insertion; openings that an open breaker drops, and packets that
 * open nothing, beside a look-up that hits. Measured as contest.h says.
 *
 * A source's breaker is opened by a SYN and the RST behind it. Tables are as for S10, where every source is new; half
 * full with a million sources that are known.
 */
#include "parts.h"

#include <math.h>

#include "base/util.h"
#include "contest.h"

#define ONE_REPEAT 1000000u
#define MANY_REPEAT 300000u

#define PORT 443
#define SYN 0x02
#define RST 0x04
#define ACK 0x10

/* The first failed request opens it, for longer than the bench takes. */
static struct weir_object *load(uint32_t places)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "settings: {connections: %u, connectionFlows: %u}\n"
		 "resources: [{name: web, match: {protocol: tcp}, flow: [source]}]\n"
		 "circuitBreakers: [{resource: web, strategy: ErrorCount, threshold: 1, statIntervalMs: 86400000, "
		 "retryTimeoutMs: 86400000}]\n",
		 places, places);
	return rig_load_text(text);
}

/* Each source opens, and then says this. */
static void open_and_say(struct rig *rig, int weir_fd, enum bench_sources sources, uint8_t flags)
{
	const uint8_t said[] = {SYN, flags};

	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		struct rig_frame frame = rig_frame_tcp(PORT, said[i]);

		if (sources == BENCH_SOURCES_MANY) {
			rig_send_new(rig, weir_fd, &frame, 0, BENCH_FLOWS);
			continue;
		}
		rig_aim(rig, weir_fd, sources);
		rig_run(rig->driver_fd, &frame, 1);
	}
}

static void run_known(struct rig *rig, struct report *report, const char *what, enum bench_sources sources,
		      uint8_t before, uint8_t flags, double must)
{
	_cleanup_(weir_object_freep) struct weir_object *object = load(2 * BENCH_LRU_ENTRIES);
	const bool is_one = sources == BENCH_SOURCES_ONE;
	const struct contest contest = {.row = "S15",
					.what = what,
					.frame = rig_frame_tcp(PORT, flags),
					.sources = sources,
					.repeat = is_one ? ONE_REPEAT : MANY_REPEAT,
					.family = 4,
					.weir_fd = weir_object_program_fd(object),
					.must = AT_MOST(must),
					.aim = AT_MOST(is_one ? 0.8 : 0.75)};

	open_and_say(rig, contest.weir_fd, sources, before);
	contest_run(rig, &contest, report);
	contest_expect(&contest, object, before == RST ? CONTEST_BLOCKS : CONTEST_ADMITS);
}

static void run_new(struct rig *rig, struct report *report)
{
	_cleanup_(weir_object_freep) struct weir_object *object = load(BENCH_LRU_ENTRIES);
	const struct contest contest = {.row = "S15",
					.what = "openings of new sources, under a breaker each",
					.frame = rig_frame_tcp(PORT, SYN),
					.sources = BENCH_SOURCES_NEW,
					.repeat = MANY_REPEAT,
					.family = 4,
					.weir_fd = weir_object_program_fd(object),
					.must = AT_MOST(2.5),
					.aim = AT_MOST(1.0)};

	contest_flood(rig, contest.weir_fd, &contest.frame);
	rig_skip_to_fresh(rig);
	contest_run(rig, &contest, report);
	contest_expect(&contest, object, CONTEST_ADMITS);
}

void bench_breakers(struct rig *rig, struct report *report)
{
	contest_fill_one(rig, 4);
	run_known(rig, report, "openings of one source, dropped by its open breaker", BENCH_SOURCES_ONE, RST, SYN, 7);
	run_known(rig, report, "one source's packets that open nothing, under a breaker", BENCH_SOURCES_ONE, ACK, ACK,
		  4.5);
	contest_fill_many(rig, 4);
	run_known(rig, report, "openings of 1M random sources, dropped by open breakers", BENCH_SOURCES_MANY, RST, SYN,
		  2);
	run_known(rig, report, "1M random sources' packets that open nothing, under a breaker each", BENCH_SOURCES_MANY,
		  ACK, ACK, 0.75);
	contest_fill_spoofed(rig, 4);
	run_new(rig, report);
}
