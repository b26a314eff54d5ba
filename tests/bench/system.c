// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S16: what it costs to evaluate an inbound packet by a system rule, on a resource without a rule of its own,
 * beside a look-up that hits. Measured as contest.h says.
 */
#include "parts.h"

#include <math.h>

#include "base/util.h"
#include "contest.h"

#define REPEAT 1000000u

static void run(struct rig *rig, struct report *report, const char *what, const char *rule, enum contest_end end)
{
	_cleanup_(weir_object_freep) struct weir_object *object = NULL;
	struct contest contest = {.row = "S16",
				  .what = what,
				  .frame = rig_frame(4, 1, 53),
				  .sources = BENCH_SOURCES_ONE,
				  .repeat = REPEAT,
				  .family = 4,
				  .must = AT_MOST(3),
				  .aim = AT_MOST(0.8)};
	char text[256];

	snprintf(text, sizeof(text), "resources: [{name: all}]\nsystemRules: [{%s}]\n", rule);
	object = rig_load_text(text);
	contest.weir_fd = weir_object_program_fd(object);
	contest_run(rig, &contest, report);
	contest_expect(&contest, object, end);
}

void bench_system(struct rig *rig, struct report *report)
{
	contest_fill_one(rig, 4);
	run(rig, report, "inbound packets admitted by InboundQPS", "metricType: InboundQPS, triggerCount: 1000000000",
	    CONTEST_ADMITS);
	run(rig, report, "inbound packets dropped by InboundQPS", "metricType: InboundQPS, triggerCount: 1",
	    CONTEST_BLOCKS);
	run(rig, report, "inbound packets under CpuUsage, which admits", "metricType: CpuUsage, triggerCount: 1",
	    CONTEST_ADMITS);
}
