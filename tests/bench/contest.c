// SPDX-License-Identifier: GPL-2.0-only
#include "contest.h"

#include <bpf/libbpf.h>
#include <math.h>

#include "tests/bench/driver.skel.h"
#include "trial.h"

#define ROUNDS 9

int contest_block_fd(const struct rig *rig, int family, enum bench_sources sources)
{
	const struct bench_driver *driver = rig->driver;

	if (sources == BENCH_SOURCES_NEW)
		return bpf_program__fd(family == 4 ? driver->progs.bench_spoofed4 : driver->progs.bench_spoofed6);
	return bpf_program__fd(family == 4 ? driver->progs.bench_hit4 : driver->progs.bench_hit6);
}

void contest_run(struct rig *rig, const struct contest *contest, struct report *report)
{
	struct trial trial = {.frame = contest->frame,
			      .sources = contest->sources,
			      .repeat = contest->repeat,
			      .rounds = ROUNDS,
			      .program_fd = {contest_block_fd(rig, contest->family, contest->sources),
					     contest->weir_fd},
			      .program_count = 2};
	bool is_new = contest->sources == BENCH_SOURCES_NEW;
	struct trial_result result;
	struct report_row *row;

	trial_run(rig, &trial, &result);
	row = report_add(report, contest->row, contest->must, contest->aim, "%s, IPv%d", contest->what,
			 contest->family);
	row->is_ratio = true;
	row->value = trial_ratio(&result, 1, 0);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, LRU_HASH %s %.0f", trial_ns(&result, 1),
		 is_new ? "insert" : "hit", trial_ns(&result, 0));
}

/* ---- what the blocks know ---- */

static int fill_fd(const struct rig *rig, int family)
{
	return bpf_program__fd(family == 4 ? rig->driver->progs.bench_fill4 : rig->driver->progs.bench_fill6);
}

void contest_fill_one(struct rig *rig, int family)
{
	struct rig_frame frame = rig_frame(family, 1, 53);

	rig_aim(rig, fill_fd(rig, family), BENCH_SOURCES_ONE);
	rig_run(rig->driver_fd, &frame, 1);
}

void contest_fill_many(struct rig *rig, int family)
{
	struct rig_frame frame = rig_frame(family, 1, 53);

	rig_send_new(rig, fill_fd(rig, family), &frame, 0, BENCH_FLOWS);
}

void contest_fill_spoofed(struct rig *rig, int family)
{
	struct rig_frame frame = rig_frame(family, 1, 53);

	contest_flood(rig, contest_block_fd(rig, family, BENCH_SOURCES_NEW), &frame);
}

void contest_flood(struct rig *rig, int program_fd, const struct rig_frame *frame)
{
	rig_send_new(rig, program_fd, frame, BENCH_FLOWS, BENCH_LRU_ENTRIES + BENCH_LRU_ENTRIES / 16);
}
