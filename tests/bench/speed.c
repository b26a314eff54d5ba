// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S1 to S4. Every figure is the median over rounds; in a round the empty program, the building
 * block and weir run one after the other, so that what the machine does meanwhile meets all three. The
 * ratio is taken within the round, after subtracting the empty program.
 */
#include "quick.h"

#include <bpf/libbpf.h>
#include <math.h>
#include <stdlib.h>

#include "tests/bench/driver.skel.h"
#include "util.h"

#define ROUNDS 9
#define ONE_REPEAT 1000000u    /* packets of a run with one source: 30 ms and more */
#define MANY_REPEAT 300000u    /* ... with many, which take ten times as long each */
#define FLOWS_PER_CPU 2097152u /* so that a million flows fill half of the table */
#define THRESHOLD 1000u	       /* a second: one flow is over it nearly always, one of a million never */

struct trial {
	const char *row;
	const char *what;
	const char *block_name;
	enum bench_sources sources;
	uint32_t repeat;
	int family;
	int block_fd;
	int weir_fd;
	struct report_bounds must, aim;
};

static int fd_of(const struct bpf_program *program)
{
	return bpf_program__fd(program);
}

static double run_target(struct rig *rig, const struct trial *trial, int target_fd)
{
	struct rig_frame frame = rig_frame(trial->family, 1, 53);

	rig_aim(rig, target_fd, trial->sources);
	return rig_run(rig->driver_fd, &frame, trial->repeat);
}

static void run_trial(struct rig *rig, const struct trial *trial, struct report *report)
{
	double weir_ns[ROUNDS], block_ns[ROUNDS], ratio[ROUNDS];
	int empty_fd = fd_of(rig->driver->progs.bench_empty);
	struct report_row *row;

	for (int i = 0; i < ROUNDS; i++) {
		double empty_ns = run_target(rig, trial, empty_fd);

		block_ns[i] = run_target(rig, trial, trial->block_fd) - empty_ns;
		weir_ns[i] = run_target(rig, trial, trial->weir_fd) - empty_ns;
		ratio[i] = weir_ns[i] / block_ns[i];
	}
	row = report_add(report, trial->row, trial->must, trial->aim, "%s, IPv%d", trial->what, trial->family);
	row->is_ratio = true;
	row->value = report_median(ratio, ROUNDS);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, %s %.0f", report_median(weir_ns, ROUNDS),
		 trial->block_name, report_median(block_ns, ROUNDS));
}

/* Send each of BENCH_FLOWS sources once. */
static void fill(struct rig *rig, int target_fd, int family)
{
	struct rig_frame frame = rig_frame(family, 1, 53);

	rig_rewind(rig, 0);
	rig_aim(rig, target_fd, BENCH_SOURCES_NEW);
	rig_run(rig->driver_fd, &frame, BENCH_FLOWS);
}

/* From now on new sources are none of those, and the LRU map of spoofed sources is full and evicts. */
static void fill_spoofed(struct rig *rig, int target_fd, int family)
{
	struct rig_frame frame = rig_frame(family, 1, 53);

	rig_rewind(rig, BENCH_FLOWS);
	rig_aim(rig, target_fd, BENCH_SOURCES_NEW);
	rig_run(rig->driver_fd, &frame, BENCH_LRU_ENTRIES + BENCH_LRU_ENTRIES / 16);
}

static void quick_family(struct rig *rig, struct report *report, int weir_fd, int family)
{
	const struct bench_driver *driver = rig->driver;
	bool is_ipv4 = family == 4;
	int hit_fd = fd_of(is_ipv4 ? driver->progs.bench_hit4 : driver->progs.bench_hit6);
	int fill_fd = fd_of(is_ipv4 ? driver->progs.bench_fill4 : driver->progs.bench_fill6);
	int spoofed_fd = fd_of(is_ipv4 ? driver->progs.bench_spoofed4 : driver->progs.bench_spoofed6);
	struct trial one = {.row = "S1",
			    .what = "one flow over its limit",
			    .block_name = "LRU_HASH hit",
			    .sources = BENCH_SOURCES_ONE,
			    .repeat = ONE_REPEAT,
			    .family = family,
			    .block_fd = hit_fd,
			    .weir_fd = weir_fd,
			    .must = AT_MOST(1.0),
			    .aim = AT_MOST(0.4)};
	struct trial many = {.row = "S2",
			     .what = "1M random flows",
			     .block_name = "LRU_HASH hit",
			     .sources = BENCH_SOURCES_MANY,
			     .repeat = MANY_REPEAT,
			     .family = family,
			     .block_fd = hit_fd,
			     .weir_fd = weir_fd,
			     .must = AT_MOST(0.8),
			     .aim = AT_MOST(0.5)};
	struct trial all_new = {.row = "S3",
				.what = "every packet a new source",
				.block_name = "LRU_HASH insert",
				.sources = BENCH_SOURCES_NEW,
				.repeat = MANY_REPEAT,
				.family = family,
				.block_fd = spoofed_fd,
				.weir_fd = weir_fd,
				.must = AT_MOST(0.35),
				.aim = AT_MOST(0.2)};

	run_target(rig, &one, fill_fd);
	run_trial(rig, &one, report);
	fill(rig, fill_fd, family);
	fill(rig, weir_fd, family);
	run_trial(rig, &many, report);
	fill_spoofed(rig, spoofed_fd, family);
	run_trial(rig, &all_new, report);
}

/* Both CPUs at one flow against one alone, each above the empty program run the same way. */
static void quick_both(struct rig *rig, struct report *report, const char *what, int weir_fd, double must, double aim)
{
	struct report_row *row = report_add(report, "S4", AT_MOST(must), AT_MOST(aim), "%s", what);
	double alone_ns[ROUNDS], both_ns[ROUNDS], ratio[ROUNDS];
	struct rig_frame frame = rig_frame(4, 1, 53);

	if (rig->cpu_count < BENCH_CPUS) {
		snprintf(row->skipped, sizeof(row->skipped), "needs two CPUs");
		return;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double both_empty_ns, empty_ns;

		rig_aim(rig, fd_of(rig->driver->progs.bench_empty), BENCH_SOURCES_ONE);
		empty_ns = rig_run(rig->driver_fd, &frame, ONE_REPEAT);
		both_empty_ns = rig_run_both(rig, rig->driver_fd, &frame, ONE_REPEAT);
		rig_aim(rig, weir_fd, BENCH_SOURCES_ONE);
		alone_ns[i] = rig_run(rig->driver_fd, &frame, ONE_REPEAT) - empty_ns;
		both_ns[i] = rig_run_both(rig, rig->driver_fd, &frame, ONE_REPEAT) - both_empty_ns;
		ratio[i] = both_ns[i] / alone_ns[i];
	}
	row->is_ratio = true;
	row->value = report_median(ratio, ROUNDS);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, alone %.0f", report_median(both_ns, ROUNDS),
		 report_median(alone_ns, ROUNDS));
}

void quick_speed(struct rig *rig, struct report *report)
{
	const struct rig_limit limit = {.threshold = THRESHOLD, .is_keyed = true};
	/* More than any machine sends: everything is admitted. */
	const struct rig_limit ample = {.threshold = 1000000000, .is_keyed = true};
	_cleanup_(weir_object_freep) struct weir_object *object = rig_load(&limit, 1, FLOWS_PER_CPU, false, 0);
	_cleanup_(weir_object_freep) struct weir_object *ample_object = rig_load(&ample, 1, 4096, false, 0);
	int fd = weir_object_program_fd(object), ample_fd = weir_object_program_fd(ample_object);

	quick_family(rig, report, fd, 4);
	quick_family(rig, report, fd, 6);
	if (rig->cpu_count == BENCH_CPUS)
		rig_check_side_by_side(rig);
	quick_both(rig, report, "both CPUs on one flow, over its limit", fd, 1.05, 1.0);
	quick_both(rig, report, "both CPUs on one flow, all admitted", ample_fd, 1.3, 1.1);
}
