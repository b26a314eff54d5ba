// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows S1 to S4: weir beside a building block (contest.h), under a 4-byte (IPv4) or 16-byte (IPv6) key.
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
#include "contest.h"
#include "tests/bench/driver.skel.h"

#define BOTH_ROUNDS 35	       /* what both CPUs do differs more from run to run */
#define ONE_REPEAT 1000000u    /* packets of a run with one source: 30 ms and more */
#define BOTH_REPEAT 500000u    /* ... on both CPUs */
#define MANY_REPEAT 300000u    /* ... with many, which take ten times as long each */
#define FLOWS_PER_CPU 2097152u /* so that a million flows fill half of the table; for S3 as many as the LRU_HASH has */
#define THRESHOLD 1000u	       /* a second: one flow is over it nearly always, one of a million never */

static void speed_of_family(struct rig *rig, struct report *report, int weir_fd, int small_fd, int family)
{
	const struct contest one = {.row = "S1",
				    .what = "one flow over its limit",
				    .frame = rig_frame(family, 1, 53),
				    .sources = BENCH_SOURCES_ONE,
				    .repeat = ONE_REPEAT,
				    .family = family,
				    .weir_fd = weir_fd,
				    .must = AT_MOST(0.8),
				    .aim = AT_MOST(0.4)};
	struct contest many = one, all_new = one;

	many.row = "S2";
	many.what = "1M random flows";
	many.sources = BENCH_SOURCES_MANY;
	many.repeat = MANY_REPEAT;
	many.must = AT_MOST(0.75);
	many.aim = AT_MOST(0.5);

	all_new.row = "S3";
	all_new.what = "every packet a new source";
	all_new.sources = BENCH_SOURCES_NEW;
	all_new.repeat = MANY_REPEAT;
	all_new.weir_fd = small_fd;
	all_new.must = AT_MOST(0.45);
	all_new.aim = AT_MOST(0.25);

	contest_fill_one(rig, family);
	contest_run(rig, &one, report);
	contest_fill_many(rig, family);
	rig_send_new(rig, weir_fd, &one.frame, 0, BENCH_FLOWS);
	contest_run(rig, &many, report);
	/* From now on new sources are none of the BENCH_FLOWS, and the tables of spoofed ones have been full. */
	contest_fill_spoofed(rig, family);
	contest_flood(rig, small_fd, &one.frame);
	contest_run(rig, &all_new, report);
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

		rig_aim(rig, bpf_program__fd(rig->driver->progs.bench_empty), BENCH_SOURCES_ONE);
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
	speed_of_both(rig, report, "both CPUs on one flow, all admitted", ample_fd, 1.1, 1.0);
}
