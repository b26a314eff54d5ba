// SPDX-License-Identifier: GPL-2.0-only
#include "rig.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "claims.h"
#include "base/util.h"
#include "host/host.h"
#include "previous.h"
#include "program/runs.h"
#include "shortcuts.h"

#define LOOPBACK_IFINDEX 1 /* of every network namespace */

void rig_require(int cpus)
{
	cpu_set_t allowed;

	if (geteuid() != 0) {
		print_message("needs root, to load a BPF program\n");
		skip();
	}
	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	if (CPU_COUNT(&allowed) < cpus) {
		print_message("needs %d CPUs, and may use %d\n", cpus, CPU_COUNT(&allowed));
		skip();
	}
}

void rig_require_shortcut(enum weir_shortcut shortcut)
{
	if (shortcuts_left_out() & shortcut) {
		print_message("is about a shortcut that this run leaves out\n");
		skip();
	}
}

void rig_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

void rig_stay(cpu_set_t *ret_before)
{
	assert_int_equal(sched_getaffinity(0, sizeof(*ret_before), ret_before), 0);
	rig_pin(sched_getcpu());
}

void rig_roam(const cpu_set_t *before)
{
	assert_int_equal(sched_setaffinity(0, sizeof(*before), before), 0);
}

static cpu_set_t before_group;

int rig_stay_group(void **state)
{
	rig_stay(&before_group);
	return 0;
}

int rig_roam_group(void **state)
{
	rig_roam(&before_group);
	return 0;
}

void rig_cpus(int cpu[], int count)
{
	cpu_set_t allowed;
	int found = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (int number = 0; number < CPU_SETSIZE && found < count; number++)
		if (CPU_ISSET(number, &allowed))
			cpu[found++] = number;
	assert_int_equal(found, count);
}

/* Who waits longer waits for somebody who has no CPU: on a busy machine it may be this one. */
#define LOOKS_MAX 20000u

void rig_line_up(atomic_uint *arrived, uint32_t threads, uint32_t round)
{
	uint32_t looks = 0;

	atomic_fetch_add(arrived, 1);
	while (atomic_load(arrived) < threads * (round + 1))
		if (++looks > LOOKS_MAX)
			sched_yield();
}

void rig_begin(struct rig *rig, uint32_t flows_per_cpu)
{
	rig_require(1);
	memset(rig, 0, sizeof(*rig));
	rig->ruleset = calloc(1, sizeof(*rig->ruleset));
	assert_non_null(rig->ruleset);
	rig->ruleset->settings = (struct weir_settings){
		.flows_per_cpu = flows_per_cpu,
		.drop_malformed = true,
		.drop_unsupported = true,
	};
}

size_t rig_resource(struct rig *rig, uint16_t destination_port, uint32_t key_fields)
{
	struct weir_ruleset *ruleset = rig->ruleset;
	struct weir_ruleset_resource *resource;
	struct weir_match *match;
	int written;

	resource = weir_array_add((void **)&ruleset->resources, ruleset->resource_count, sizeof(*resource));
	assert_non_null(resource);
	written = asprintf(&resource->name, "resource-%zu", ruleset->resource_count);
	assert_true(written > 0);
	match = &resource->match;
	match->has_protocol = true;
	match->protocol[IPPROTO_UDP / 8] |= 1u << IPPROTO_UDP % 8;
	match->destination_port = calloc(1, sizeof(*match->destination_port));
	assert_non_null(match->destination_port);
	match->destination_port[0] = (struct weir_range){destination_port, destination_port};
	match->destination_port_count = 1;
	resource->flow = (struct weir_flow){.fields = key_fields};
	if (key_fields & WEIR_KEY_SOURCE)
		memcpy(resource->flow.source_bits, (uint8_t[]){32, 128}, 2);
	if (key_fields & WEIR_KEY_DESTINATION)
		memcpy(resource->flow.destination_bits, (uint8_t[]){32, 128}, 2);
	return ruleset->resource_count++;
}

struct weir_ruleset_rule *rig_rule(struct rig *rig, size_t resource, enum weir_window_kind window, uint64_t threshold,
				   uint64_t interval_ns, uint32_t samples)
{
	struct weir_ruleset *ruleset = rig->ruleset;
	struct weir_ruleset_rule *rule;
	int written;

	rule = weir_array_add((void **)&ruleset->rules, ruleset->rule_count, sizeof(*rule));
	assert_non_null(rule);
	written = asprintf(&rule->name, "rule-%zu", ruleset->rule_count);
	assert_true(written > 0);
	rule->resource = resource;
	rule->window = window;
	rule->threshold_micro = threshold * WEIR_MICRO;
	rule->interval_ns = interval_ns;
	rule->samples = samples;
	ruleset->rule_count++;
	return rule;
}

/* One secret is the same in every run, so that no test meets two flows of one tag by chance. */
static void make_seed(uint64_t secret, __u64 seed[16])
{
	uint64_t state = 20250701 + secret;

	for (int i = 0; i < 16; i++) {
		state = state * 6364136223846793005 + 1442695040888963407;
		seed[i] = (state >> 32 | state << 32) | 1;
	}
}

void rig_load(struct rig *rig, bool is_virtual)
{
	struct weir_previous previous;
	__u64 seed[16];
	struct weir_object_options object_options = {
		.is_virtual = is_virtual,
		.seed = seed,
		.without_shortcuts = shortcuts_left_out(),
		.is_unfolded = is_left_unfolded(),
		.hooks = rig->hooks | 1u << WEIR_HOOK_XDP,
	};
	struct weir_compile_options options = {
		.cpus = rig->cpus ? rig->cpus : (uint32_t)weir_host_cpus(),
		.now_ns = is_virtual ? RIG_START_NS : weir_host_now_ns(),
	};
	struct weir_diag diag = {};
	int err;

	make_seed(rig->secret, seed);
	if (rig->reloads) {
		previous = previous_of(rig->reloads->image);
		options.previous = &previous;
		options.now_ns = object_options.now_ns = rig->now_ns;
		object_options.previous_rules = previous.rules;
		object_options.tick_origin_ns = weir_object_tick_origin_ns(rig->reloads->object);
		for (int map = 0; map < WEIR_STATE_TABLE_COUNT; map++)
			object_options.reuse_fd[map] = weir_object_map_fd(rig->reloads->object, map);
	}
	err = weir_image_build(rig->ruleset, &options, &rig->image, &diag);
	if (!err)
		err = weir_object_load(rig->image, &object_options, &rig->object, &diag);
	if (err)
		weir_diag_print(&diag, stderr);
	weir_diag_free(&diag);
	assert_int_equal(err, 0);
}

void rig_load_here(struct rig *rig)
{
	rig_load(rig, true);
	rig_stay(&rig->roams_to);
	rig->stays = true;
}

int rig_map_fd(const struct rig *rig, const char *name)
{
	__u32 ids[64], bytes;
	struct bpf_prog_info program = {.nr_map_ids = ARRAY_SIZE(ids), .map_ids = (uintptr_t)ids};

	bytes = sizeof(program);
	assert_int_equal(bpf_obj_get_info_by_fd(weir_object_program_fd(rig->object), &program, &bytes), 0);
	for (__u32 i = 0; i < program.nr_map_ids; i++) {
		int fd = bpf_map_get_fd_by_id(ids[i]);
		struct bpf_map_info map = {};

		bytes = sizeof(map);
		assert_true(fd >= 0);
		assert_int_equal(bpf_obj_get_info_by_fd(fd, &map, &bytes), 0);
		if (!strcmp(map.name, name))
			return fd;
		close(fd);
	}
	fail_msg("the program has no map %s", name);
	return -1;
}

bool rig_passes(struct rig *rig, uint64_t now_ns, const void *frame, uint32_t frame_bytes)
{
	volatile struct weir_harness *harness = weir_object_harness(rig->object);
	int action;

	harness->clock_ns = now_ns;
	harness->frame_bytes = frame_bytes;
	action = weir_object_evaluate(rig->object, frame, frame_bytes);
	assert_true(action == XDP_PASS || action == XDP_DROP);
	assert_int_not_equal(harness->verdict, WEIR_VERDICT_ERROR);
	return action == XDP_PASS;
}

/* All CPUs' values of one entry of a per-CPU array. The caller frees them. */
static void *read_values(const struct rig *rig, enum weir_table_id map, uint32_t key, size_t value_bytes)
{
	_cleanup_(weir_freep) struct weir_cpu_runs *runs = NULL;
	void *values = calloc(weir_host_cpus(), value_bytes);

	assert_non_null(values);
	assert_int_equal(weir_runs_take(weir_object_map_fd(rig->object, WEIR_TABLE_TOTALS), &runs), 0);
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, map), &key, values), 0);
	weir_runs_add(runs, map, key, values, weir_host_cpus());
	return values;
}

static void add_tally(struct weir_tally *sum, const struct weir_tally *tally)
{
	sum->packets += tally->packets;
	sum->bytes += tally->bytes;
}

struct weir_rule_counters rig_rule_counters(const struct rig *rig, size_t rule)
{
	uint32_t slot = rig->image->rules[rule].slot;
	_cleanup_(weir_freep) struct weir_rule_counters *counters = NULL;
	struct weir_rule_counters sum = {};

	counters = read_values(rig, WEIR_TABLE_RULE_COUNTERS, slot, sizeof(*counters));
	for (int cpu = 0; cpu < weir_host_cpus(); cpu++)
		weir_add_rule_counters(&sum, &counters[cpu]);
	return sum;
}

struct rig_resource_counters rig_resource_counters(const struct rig *rig, size_t resource)
{
	uint32_t slot = rig->image->resources[resource].slot;
	_cleanup_(weir_freep) struct weir_resource_counters *counters = NULL;
	struct rig_resource_counters sum = {};

	counters = read_values(rig, WEIR_TABLE_RESOURCE_COUNTERS, slot, sizeof(*counters));
	for (int cpu = 0; cpu < weir_host_cpus(); cpu++) {
		add_tally(&sum.passed, &counters[cpu].passed);
		add_tally(&sum.blocked, &counters[cpu].blocked);
		for (int i = 0; i < WEIR_SECONDS; i++)
			sum.blocked_by_second += counters[cpu].second[i].blocked;
	}
	return sum;
}

uint64_t rig_passed(const struct rig *rig, size_t resource)
{
	return rig_resource_counters(rig, resource).passed.packets;
}

struct weir_tally rig_verdicts(const struct rig *rig, enum weir_verdict verdict)
{
	_cleanup_(weir_freep) struct weir_cpu_state *state = read_values(rig, WEIR_TABLE_TOTALS, 0, sizeof(*state));
	struct weir_tally sum = {};

	for (int cpu = 0; cpu < weir_host_cpus(); cpu++) {
		struct weir_totals *totals = &state[cpu].totals;

		weir_sum_totals(totals);
		add_tally(&sum, verdict == WEIR_VERDICT_COUNT ? &totals->seen : &totals->verdict[verdict]);
	}
	return sum;
}

static int link_fd = -1;

void rig_attach(const struct rig *rig)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = XDP_FLAGS_SKB_MODE);
	int program_fd = weir_object_program_fd(rig->object);
	static bool is_apart;

	if (!is_apart)
		assert_int_equal(unshare(CLONE_NEWNET), 0);
	is_apart = true;
	link_fd = bpf_link_create(program_fd, LOOPBACK_IFINDEX, BPF_XDP, NULL);
	if (link_fd < 0)
		link_fd = bpf_link_create(program_fd, LOOPBACK_IFINDEX, BPF_XDP, &options);
	assert_true(link_fd >= 0);
}

int rig_detach(void **state)
{
	weir_closep(&link_fd);
	link_fd = -1;
	return 0;
}

void rig_end(struct rig *rig)
{
	rig_detach(NULL);
	if (rig->stays)
		rig_roam(&rig->roams_to);
	weir_object_free(rig->object);
	weir_image_free(rig->image);
	weir_ruleset_free(rig->ruleset);
	memset(rig, 0, sizeof(*rig));
}
