// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S17: what a packet of a prioritised resource costs that fits, that occupies, and that is blocked because as much
 * is occupied already as can be; beside a look-up that hits. Measured as contest.h says, with the waits let pass
 * (police).
 *
 * Windows have a day. Once one is full, in its first bucket, packets occupy the bucket that begins when that one
 * leaves: the last of the ten that are asked, so this is what occupying costs at most.
 */
#include "parts.h"

#include <math.h>

#include "base/util.h"
#include "contest.h"

#define ONE_REPEAT 1000000u
#define MANY_REPEAT 300000u

#define DAY ", statIntervalInMs: 86400000"
/* What contest_run sends is occupied, and not more than half of what can be. */
#define AMPLE_UNITS 20000000u
#define AMPLE "20000000"

static void run(struct rig *rig, struct report *report, const char *what, const char *rule, uint32_t before,
		enum bench_sources sources, enum contest_end end, double must)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	const bool is_one = sources == BENCH_SOURCES_ONE;
	struct contest contest = {.row = "S17",
				  .what = what,
				  .frame = rig_frame(4, 1, 53),
				  .sources = sources,
				  .repeat = is_one ? ONE_REPEAT : MANY_REPEAT,
				  .family = 4,
				  .must = AT_MOST(must),
				  .aim = AT_MOST(is_one ? 0.8 : 0.75)};
	char text[512];

	snprintf(text, sizeof(text),
		 "settings: {flowsPerCpu: 2097152, occupyTimeoutInMs: 86400000}\n"
		 "resources: [{name: all, match: {protocol: udp}, flow: [source], prioritized: true}]\n"
		 "rules: [{resource: all, %s}]\n",
		 rule);
	object = rig_load_text(text);
	contest.weir_fd = weir_object_program_fd(object);
	rig_aim(rig, contest.weir_fd, sources);
	if (is_one && before)
		rig_run(rig->driver_fd, &contest.frame, before);
	for (uint32_t i = 0; i < before && !is_one; i++)
		rig_send_new(rig, contest.weir_fd, &contest.frame, 0, BENCH_FLOWS);
	contest_run(rig, &contest, report);
	contest_expect(&contest, object, end);
}

void bench_occupy(struct rig *rig, struct report *report)
{
	contest_fill_one(rig, 4);
	run(rig, report, "prioritised packets of one source that fit", "threshold: 1000000000", 1, BENCH_SOURCES_ONE,
	    CONTEST_ADMITS, 15);
	run(rig, report, "prioritised packets of one source that borrow", "threshold: " AMPLE DAY, AMPLE_UNITS,
	    BENCH_SOURCES_ONE, CONTEST_OCCUPIES, 18);
	run(rig, report, "prioritised packets of one source, blocked", "threshold: 1" DAY, 2, BENCH_SOURCES_ONE,
	    CONTEST_BLOCKS, 10);
	contest_fill_many(rig, 4);
	run(rig, report, "prioritised packets of 1M random sources that fit", "threshold: 1000", 1, BENCH_SOURCES_MANY,
	    CONTEST_ADMITS, 1.8);
	run(rig, report, "prioritised packets of 1M random sources, blocked", "threshold: 1" DAY, 2, BENCH_SOURCES_MANY,
	    CONTEST_BLOCKS, 1.5);
}
