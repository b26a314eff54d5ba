// SPDX-License-Identifier: GPL-2.0-only
/*
 * What allow and deny lists cost: packets of random sources, all of them listed or none, under lists of hosts that have
 * nothing in common. Weir is measured above itself without lists (a listed packet then saves what follows), the trie
 * above the empty program. Medians over rounds, as in speed.c.
 */
#include "parts.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "host/host.h"
#include "tests/bench/driver.skel.h"

#define ROUNDS 9
#define REPEAT 300000u
#define STRANGERS_FROM 2000000u /* flows that no list names */

/* gcc 12's analyzer takes a number that memcpy copies for one that was never set. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wanalyzer-use-of-uninitialized-value"
#endif

/* The host that the driver makes of flow `number`. */
static struct weir_prefix flow_prefix(uint32_t number, int family)
{
	struct rig_frame frame = rig_frame(family, 0, 53);
	uint32_t source = bench_scatter(number), inverse = ~source;
	struct weir_prefix prefix = {.family = family, .bits = family == 4 ? 32 : 128};

	if (family == 4) {
		memcpy(prefix.address, &source, sizeof(source));
	} else {
		memcpy(prefix.address, frame.bytes + 14 + 8, sizeof(prefix.address));
		memcpy(prefix.address + 4, &inverse, sizeof(inverse));
		memcpy(prefix.address + 12, &source, sizeof(source));
	}
	return prefix;
}

static int compare_listed(const void *left, const void *right)
{
	const struct weir_listed *a = left, *b = right;

	return memcmp(a->prefix.address, b->prefix.address, sizeof(a->prefix.address));
}

/* No rules, and the first `count` flows denied. */
static struct weir_object *load_list(uint32_t count, int family)
{
	struct weir_ruleset ruleset = {.settings = {.flows_per_cpu = 1024}, .listed_count = count};
	_cleanup_(weir_freep) struct weir_listed *listed = calloc(count + 1, sizeof(*listed));
	struct weir_compile_options compile = {.cpus = weir_host_cpus(), .now_ns = rig_now_ns()};
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	struct weir_object_options load = {};
	struct weir_object *object = NULL;
	struct weir_diag diag = {};
	uint64_t begin_ns;

	if (!listed)
		rig_fail(-ENOMEM, "cannot make a list");
	for (uint32_t i = 0; i < count; i++)
		listed[i] = (struct weir_listed){.prefix = flow_prefix(i, family), .denies = true};
	qsort(listed, count, sizeof(*listed), compare_listed);
	ruleset.listed = listed;
	begin_ns = rig_now_ns();
	if (weir_image_build(&ruleset, &compile, &image, &diag) || weir_object_load(image, &load, &object, &diag)) {
		weir_diag_print(&diag, stderr);
		rig_fail(0, "cannot load a list");
	}
	fprintf(stderr, "bench: %u IPv%d hosts compiled and loaded in %.3f s, %.1f MB\n", count, family,
		(rig_now_ns() - begin_ns) / 1e9, weir_lists_memory(&image->lists) / 1e6);
	weir_diag_free(&diag);
	return object;
}

static void extend_trie(int trie_fd, uint32_t from, uint32_t count, int family)
{
	for (uint32_t i = from; i < count; i++) {
		struct weir_prefix prefix = flow_prefix(i, family);
		struct bench_trie_key6 key = {.bits = prefix.bits};
		__u32 value = 1;
		int err;

		memcpy(key.address, prefix.address, sizeof(key.address));
		err = bpf_map_update_elem(trie_fd, &key, &value, BPF_ANY);
		if (err)
			rig_fail(err, "cannot fill the trie");
	}
}

static double run_target(struct rig *rig, int family, int target_fd)
{
	struct rig_frame frame = rig_frame(family, 1, 53);

	rig_aim(rig, target_fd, BENCH_SOURCES_MANY);
	return rig_run(rig->driver_fd, &frame, REPEAT);
}

/* A stranger has to pass nearly for free, and a listed packet for much less than a trie's look-up. */
static void run_trial(struct rig *rig, struct report *report, int family, uint32_t count, int list_fd, int bare_fd,
		      bool is_listed)
{
	struct report_row *row =
		report_add(report, "L", AT_MOST(0.8), AT_MOST(is_listed ? 0.4 : 0.2), "%u hosts, source %s, IPv%d",
			   count, is_listed ? "listed" : "not listed", family);
	const struct bpf_program *trie =
		family == 4 ? rig->driver->progs.bench_trie_hit4 : rig->driver->progs.bench_trie_hit6;
	int empty_fd = bpf_program__fd(rig->driver->progs.bench_empty);
	double list_ns[ROUNDS], trie_ns[ROUNDS], ratio[ROUNDS];

	rig_choose(rig, is_listed ? 0 : STRANGERS_FROM, is_listed ? count : BENCH_FLOWS);
	for (int i = 0; i < ROUNDS; i++) {
		trie_ns[i] = run_target(rig, family, bpf_program__fd(trie)) - run_target(rig, family, empty_fd);
		list_ns[i] = run_target(rig, family, list_fd) - run_target(rig, family, bare_fd);
		ratio[i] = list_ns[i] / trie_ns[i];
	}
	row->is_ratio = true;
	row->value = report_median(ratio, ROUNDS);
	snprintf(row->measured, sizeof(row->measured), "%.1f ns, trie %.0f", report_median(list_ns, ROUNDS),
		 report_median(trie_ns, ROUNDS));
}

static void run_family(struct rig *rig, struct report *report, int family)
{
	static const uint32_t counts[] = {1000, 100000, BENCH_FLOWS};
	_cleanup_(weir_object_freep) struct weir_object *bare = load_list(0, family);
	const struct bpf_map *trie = family == 4 ? rig->driver->maps.trie4 : rig->driver->maps.trie6;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		_cleanup_(weir_object_freep) struct weir_object *object = load_list(counts[i], family);
		int list_fd = weir_object_program_fd(object), bare_fd = weir_object_program_fd(bare);

		extend_trie(bpf_map__fd(trie), i ? counts[i - 1] : 0, counts[i], family);
		run_trial(rig, report, family, counts[i], list_fd, bare_fd, false);
		run_trial(rig, report, family, counts[i], list_fd, bare_fd, true);
	}
}

void bench_lists(struct rig *rig, struct report *report)
{
	run_family(rig, report, 4);
	run_family(rig, report, 6);
	rig_choose(rig, 0, BENCH_FLOWS);
}
