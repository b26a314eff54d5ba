// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S1 to S4: weir and a building block, which is a bare look-up, or an insertion, of a 64-byte value in an
 * LRU_HASH of 2^20 entries, under a 4-byte (IPv4) or 16-byte (IPv6) key. Measured as trial.h says.
 *
 * One CPU's test runs of a program that is attached nowhere make the kernel patch its code before and
 * after, and two at once take turns; so what is run is attached to a tap device of our own network
 * namespace. That two do run side by side is checked.
 */
#include "parts.h"

#include <bpf/libbpf.h>
#include <math.h>
#include <stdlib.h>

#include "base/util.h"
#include "tests/bench/driver.skel.h"
#include "trial.h"

#define ROUNDS 9
#define BOTH_ROUNDS 35	       /* what both CPUs do differs more from run to run */
#define ONE_REPEAT 1000000u    /* packets of a run with one source: 30 ms and more */
#define BOTH_REPEAT 500000u    /* ... on both CPUs */
#define MANY_REPEAT 300000u    /* ... with many, which take ten times as long each */
#define FLOWS_PER_CPU 2097152u /* so that a million flows fill half of the table; for S3 as many as the LRU_HASH has */
#define THRESHOLD 1000u	       /* a second: one flow is over it nearly always, one of a million never */

/* A row: weir beside a building block. */
struct contest {
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

static void run_contest(struct rig *rig, const struct contest *contest, struct report *report)
{
	struct trial trial = {.frame = rig_frame(contest->family, 1, 53),
			      .sources = contest->sources,
			      .repeat = contest->repeat,
			      .rounds = ROUNDS,
			      .program_fd = {contest->block_fd, contest->weir_fd},
			      .program_count = 2};
	struct trial_result result;
	struct report_row *row;

	trial_run(rig, &trial, &result);
	row = report_add(report, contest->row, contest->must, contest->aim, "%s, IPv%d", contest->what,
			 contest->family);
	row->is_ratio = true;
	row->value = trial_ratio(&result, 1, 0);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, %s %.0f", trial_ns(&result, 1), contest->block_name,
		 trial_ns(&result, 0));
}

/* From now on new sources are none of the BENCH_FLOWS, and the table of spoofed sources has been full. */
static void fill_spoofed(struct rig *rig, int target_fd, int family)
{
	struct rig_frame frame = rig_frame(family, 1, 53);

	rig_send_new(rig, target_fd, &frame, BENCH_FLOWS, BENCH_LRU_ENTRIES + BENCH_LRU_ENTRIES / 16);
}

static void speed_of_family(struct rig *rig, struct report *report, int weir_fd, int small_fd, int family)
{
	const struct bench_driver *driver = rig->driver;
	struct rig_frame frame = rig_frame(family, 1, 53);
	bool is_ipv4 = family == 4;
	int hit_fd = fd_of(is_ipv4 ? driver->progs.bench_hit4 : driver->progs.bench_hit6);
	int fill_fd = fd_of(is_ipv4 ? driver->progs.bench_fill4 : driver->progs.bench_fill6);
	int spoofed_fd = fd_of(is_ipv4 ? driver->progs.bench_spoofed4 : driver->progs.bench_spoofed6);
	struct contest one = {.row = "S1",
			      .what = "one flow over its limit",
			      .block_name = "LRU_HASH hit",
			      .sources = BENCH_SOURCES_ONE,
			      .repeat = ONE_REPEAT,
			      .family = family,
			      .block_fd = hit_fd,
			      .weir_fd = weir_fd,
			      .must = AT_MOST(1.0),
			      .aim = AT_MOST(0.4)};
	struct contest many = {.row = "S2",
			       .what = "1M random flows",
			       .block_name = "LRU_HASH hit",
			       .sources = BENCH_SOURCES_MANY,
			       .repeat = MANY_REPEAT,
			       .family = family,
			       .block_fd = hit_fd,
			       .weir_fd = weir_fd,
			       .must = AT_MOST(0.8),
			       .aim = AT_MOST(0.5)};
	struct contest all_new = {.row = "S3",
				  .what = "every packet a new source",
				  .block_name = "LRU_HASH insert",
				  .sources = BENCH_SOURCES_NEW,
				  .repeat = MANY_REPEAT,
				  .family = family,
				  .block_fd = spoofed_fd,
				  .weir_fd = small_fd,
				  .must = AT_MOST(0.35),
				  .aim = AT_MOST(0.2)};

	rig_aim(rig, fill_fd, BENCH_SOURCES_ONE);
	rig_run(rig->driver_fd, &frame, 1);
	run_contest(rig, &one, report);
	rig_send_new(rig, fill_fd, &frame, 0, BENCH_FLOWS);
	rig_send_new(rig, weir_fd, &frame, 0, BENCH_FLOWS);
	run_contest(rig, &many, report);
	fill_spoofed(rig, spoofed_fd, family);
	fill_spoofed(rig, small_fd, family);
	run_contest(rig, &all_new, report);
}

/*
 * Both CPUs at one flow, against one alone while the other has empty packets: the two may be halves of one core, and
 * what that costs is not the limiter's doing. Above the empty program on both.
 */
static void speed_of_both(struct rig *rig, struct report *report, const char *what, int weir_fd, double must,
			  double aim)
{
	struct report_row *row = report_add(report, "S4", AT_MOST(must), AT_MOST(aim), "%s", what);
	double alone_ns[BOTH_ROUNDS], both_ns[BOTH_ROUNDS], ratio[BOTH_ROUNDS];
	struct rig_frame frame = rig_frame(4, 1, 53);

	if (rig->cpu_count < BENCH_CPUS) {
		snprintf(row->skipped, sizeof(row->skipped), "needs two CPUs");
		return;
	}
	for (int i = 0; i < BOTH_ROUNDS; i++) {
		double empty_ns;

		rig_aim(rig, fd_of(rig->driver->progs.bench_empty), BENCH_SOURCES_ONE);
		empty_ns = rig_run_both(rig, rig->driver_fd, &frame, BOTH_REPEAT);
		rig_aim(rig, weir_fd, BENCH_SOURCES_ONE);
		alone_ns[i] = rig_run_alone(rig, rig->driver_fd, &frame, BOTH_REPEAT) - empty_ns;
		both_ns[i] = rig_run_both(rig, rig->driver_fd, &frame, BOTH_REPEAT) - empty_ns;
		ratio[i] = both_ns[i] / alone_ns[i];
	}
	row->is_ratio = true;
	row->value = report_median(ratio, BOTH_ROUNDS);
	snprintf(row->measured, sizeof(row->measured), "%.0f ns, alone %.0f", report_median(both_ns, BOTH_ROUNDS),
		 report_median(alone_ns, BOTH_ROUNDS));
}

void bench_speed(struct rig *rig, struct report *report)
{
	const struct rig_limit limit = {.threshold = THRESHOLD, .is_keyed = true};
	/* More than any machine sends: everything is admitted. */
	const struct rig_limit ample = {.threshold = 1000000000, .is_keyed = true};
	_cleanup_(weir_object_freep) struct weir_object *object = rig_load(&limit, 1, FLOWS_PER_CPU, false, 0);
	_cleanup_(weir_object_freep) struct weir_object *ample_object = rig_load(&ample, 1, 4096, false, 0);
	_cleanup_(weir_object_freep) struct weir_object *small_object =
		rig_load(&limit, 1, BENCH_LRU_ENTRIES, false, 0);
	int fd = weir_object_program_fd(object), small_fd = weir_object_program_fd(small_object);
	int ample_fd = weir_object_program_fd(ample_object);

	speed_of_family(rig, report, fd, small_fd, 4);
	speed_of_family(rig, report, fd, small_fd, 6);
	if (rig->cpu_count == BENCH_CPUS)
		rig_check_side_by_side(rig);
	speed_of_both(rig, report, "both CPUs on one flow, over its limit", fd, 1.05, 1.0);
	speed_of_both(rig, report, "both CPUs on one flow, all admitted", ample_fd, 1.3, 1.1);
}
