// SPDX-License-Identifier: GPL-2.0-only
/*
 * What building blocks cost, above an empty program, in the patterns of the other tables: so that these figures can be
 * read on a machine that is not this one. Measured as trial.h says.
 */
#include "parts.h"

#include <bpf/libbpf.h>
#include <jansson.h>
#include <math.h>

#include "base/util.h"
#include "patterns.h"
#include "tests/bench/blocks.skel.h"
#include "tests/bench/driver.skel.h"
#include "trial.h"

static const struct report_column columns[] = {
	{"ns a packet", REPORT_WORDS}, {"one flow", 0}, {"10k flows", 0}, {"1M flows", 0}, {"all new", 0}};

static double measure(struct rig *rig, enum pattern pattern, int family, const struct bpf_program *program)
{
	struct trial trial = {.frame = rig_frame(family, 1, 53),
			      .sources = patterns[pattern].sources,
			      .repeat = patterns[pattern].repeat,
			      .rounds = PATTERN_ROUNDS,
			      .program_fd = {bpf_program__fd(program)},
			      .program_count = 1};
	struct trial_result result;

	rig_choose(rig, 0, patterns[pattern].flows);
	trial_run(rig, &trial, &result);
	rig_choose(rig, 0, BENCH_FLOWS);
	return trial_ns(&result, 0);
}

/* A map of known flows is filled before, and one of spoofed ones is full and evicts. */
static void measure_map(struct rig *rig, struct report_table *table, const char *what, int family,
			const struct bpf_program *fill, const struct bpf_program *hit, const struct bpf_program *insert)
{
	struct rig_frame frame = rig_frame(family, 1, 53);
	double ns[PATTERN_COLUMNS];

	rig_aim(rig, bpf_program__fd(fill), BENCH_SOURCES_ONE);
	rig_run(rig->driver_fd, &frame, 1);
	rig_send_new(rig, bpf_program__fd(fill), &frame, 0, BENCH_FLOWS);
	for (enum pattern pattern = PATTERN_ONE; pattern < PATTERN_NEW; pattern++)
		ns[pattern] = measure(rig, pattern, family, hit);
	rig_send_new(rig, bpf_program__fd(insert), &frame, BENCH_FLOWS, BENCH_LRU_ENTRIES + BENCH_LRU_ENTRIES / 16);
	rig_skip_to_fresh(rig);
	ns[PATTERN_NEW] = measure(rig, PATTERN_NEW, family, insert);
	report_line(table,
		    json_pack("[s,f,f,f,f]", what, ns[PATTERN_ONE], ns[PATTERN_10K], ns[PATTERN_1M], ns[PATTERN_NEW]));
}

static void measure_one(struct rig *rig, struct report_table *table, const char *what,
			const struct bpf_program *program)
{
	report_line(table, json_pack("[s,f,n,n,n]", what, measure(rig, PATTERN_ONE, 4, program)));
}

void bench_blocks(struct rig *rig, struct report *report)
{
	struct report_table *table =
		report_table(report, "blocks", "Building blocks",
			     "Nanoseconds above an empty program; for maps, a look-up that hits, and, where every "
			     "source is new, a look-up that misses and\n"
			     "an insertion that evicts. Values are 64 bytes, maps hold 2^20 entries.",
			     columns, ARRAY_SIZE(columns));
	const struct bench_driver *driver = rig->driver;
	struct bench_blocks *blocks = bench_blocks__open_and_load();

	if (!blocks)
		rig_fail(errno, "cannot load the building blocks");
	blocks->bss->window_ns = SECOND;
	blocks->bss->window_packets = 1000;
	measure_one(rig, table, "an empty program (the noise of this table)", driver->progs.bench_empty);
	measure_one(rig, table, "the clock, bpf_ktime_get_ns", blocks->progs.bench_clock);
	measure_map(rig, table, "LRU_HASH, IPv4 source", 4, driver->progs.bench_fill4, driver->progs.bench_hit4,
		    driver->progs.bench_spoofed4);
	measure_map(rig, table, "LRU_HASH, IPv6 source", 6, driver->progs.bench_fill6, driver->progs.bench_hit6,
		    driver->progs.bench_spoofed6);
	measure_map(rig, table, "LRU_PERCPU_HASH, IPv4 source", 4, blocks->progs.bench_fill_percpu,
		    blocks->progs.bench_hit_percpu, blocks->progs.bench_spoofed_percpu);
	measure_map(rig, table, "a minimal fixed window in LRU_HASH, IPv4 source", 4, blocks->progs.bench_window,
		    blocks->progs.bench_window, blocks->progs.bench_window);
	bench_blocks__destroy(blocks);
}
