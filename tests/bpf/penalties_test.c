// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of penalties (bpf/kinds/penalties.h), which all CPUs share: one penalty for each time that a flow is
 * blocked, however many CPUs block it; at once in force on all of them; what a full table forgets, and what a reload
 * keeps. Under the virtual clock.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "program/penalty_map.h"

#define CPUS 2
#define PORT 53
#define FRAME_BYTES 60
#define PENALTY_MS 5000u
#define PENALTY_NS (PENALTY_MS * MS)

static size_t build_frame(uint32_t source, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", PORT, 0);

	memcpy(spec.source, &source, sizeof(source));
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
	return FRAME_BYTES;
}

static bool passes(struct rig *rig, uint32_t source, uint64_t now_ns)
{
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes = build_frame(source, frame);

	return rig_passes(rig, now_ns, frame, frame_bytes);
}

/* One rule on one resource: `threshold` packets a second. */
static struct weir_ruleset_rule *begin(struct rig *rig, uint32_t key_fields, uint64_t threshold, uint32_t flows_per_cpu)
{
	struct weir_ruleset_rule *rule;

	memset(rig, 0, sizeof(*rig));
	rig_begin(rig, flows_per_cpu);
	rule = rig_rule(rig, rig_resource(rig, PORT, key_fields), WEIR_WINDOW_LEAP, threshold, SECOND, 10);
	rule->penalty_ms = rule->penalty_ms_max = PENALTY_MS;
	return rule;
}

static void map_penalties(const struct rig *rig, struct weir_penalties *ret_penalties)
{
	const struct weir_tables tables = weir_object_tables(rig->object, rig->image);

	assert_int_equal(weir_penalties_map(ret_penalties, &tables, true), 0);
}

/* ---- two CPUs ---- */

#define FLOWS 4000

struct racer {
	struct rig *rig;
	int cpu;
	atomic_uint *arrived;
	uint32_t flows; /* 1: the same flow, again and again */
	int err;
	pthread_t thread;
};

/* Both send a packet of a flow at once, and then the clock moves on. */
static void *race(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct racer *racer = data;
	volatile struct weir_harness *harness = weir_object_harness(racer->rig->object);
	uint8_t frame[PACKET_BYTES_MAX];

	rig_pin(racer->cpu);
	options.data_in = frame;
	options.data_size_in = FRAME_BYTES;
	options.repeat = 1;
	for (uint32_t round = 0; round < FLOWS; round++) {
		build_frame(1 + round % racer->flows, frame);
		rig_line_up(racer->arrived, CPUS, 2 * round);
		if (bpf_prog_test_run_opts(weir_object_program_fd(racer->rig->object), &options) ||
		    options.retval == XDP_PASS)
			racer->err = -EIO;
		rig_line_up(racer->arrived, CPUS, 2 * round + 1);
		if (racer->flows == 1)
			harness->clock_ns = RIG_START_NS + (round + 1) * PENALTY_NS; /* both write the same */
	}
	return NULL;
}

/* Nothing passes, so that each round's first packet starts a penalty, and the other must find it running. */
static void two_cpus_block_a_flow_at_once(uint32_t key_fields, uint32_t flows)
{
	static struct racer racers[CPUS];
	struct weir_rule_counters counters;
	atomic_uint arrived = 0;
	int cpu[CPUS];
	_cleanup_(rig_end) struct rig rig = {};

	rig_require(CPUS);
	begin(&rig, key_fields, 0, 16384);
	rig_load(&rig, true);
	weir_object_harness(rig.object)->clock_ns = RIG_START_NS;
	rig_cpus(cpu, CPUS);
	rig_attach(&rig);
	for (int i = 0; i < CPUS; i++) {
		racers[i] = (struct racer){.rig = &rig, .cpu = cpu[i], .arrived = &arrived, .flows = flows};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(racers[i].thread, NULL);
		assert_int_equal(racers[i].err, 0);
	}
	counters = rig_rule_counters(&rig, 0);
	assert_int_equal(counters.blocked.packets, CPUS * FLOWS);
	assert_int_equal(counters.changes, FLOWS);
	/* A test run can be interrupted by softirqs, for longer than the other CPU waits; at a hook it cannot. */
	assert_true(counters.stalled < FLOWS / 100);
	assert_int_equal(counters.evicted, 0);
}

CASE_WITHIN(a_new_flow_blocked_by_two_cpus_at_once_gets_one_penalty, NULL, rig_detach,
	    two_cpus_block_a_flow_at_once(WEIR_KEY_SOURCE, FLOWS));
CASE_WITHIN(a_flow_blocked_again_by_two_cpus_at_once_gets_one_penalty_more, NULL, rig_detach,
	    two_cpus_block_a_flow_at_once(WEIR_KEY_SOURCE, 1));
CASE_WITHIN(a_whole_resource_blocked_by_two_cpus_at_once_gets_one_penalty, NULL, rig_detach,
	    two_cpus_block_a_flow_at_once(0, 1));

/* By the second packet's time the first CPU's window is long over: only the penalty can block it. */
CLAIM(a_penalty_that_one_cpu_starts_holds_on_the_other)
{
	uint64_t now_ns = RIG_START_NS;
	cpu_set_t before;
	int cpu[CPUS];
	_cleanup_(rig_end) struct rig rig = {};

	rig_require(CPUS);
	begin(&rig, WEIR_KEY_SOURCE, 1, 512);
	rig_load(&rig, true);
	rig_cpus(cpu, CPUS);
	rig_stay(&before);
	for (uint32_t round = 0; round < 100; round++, now_ns += 2 * PENALTY_NS + SECOND) {
		rig_pin(cpu[round % 2]);
		assert_true(passes(&rig, 1, now_ns));
		assert_false(passes(&rig, 1, now_ns));
		rig_pin(cpu[(round + 1) % 2]);
		assert_false(passes(&rig, 1, now_ns + 1));
		assert_false(passes(&rig, 1, now_ns + PENALTY_NS - 1));
		assert_true(passes(&rig, 1, now_ns + PENALTY_NS));
	}
	rig_roam(&before);
}

/* ---- a full table ---- */

#define FLOOD 20000u
#define STEPS_NS (2ull << WEIR_KEEP_STEP_BITS)

static uint32_t count_penalised(struct rig *rig, uint32_t first, uint32_t count, uint64_t now_ns)
{
	uint32_t blocked = 0;

	for (uint32_t source = first; source < first + count; source++)
		blocked += !passes(rig, source, now_ns);
	return blocked;
}

/* Penalties that have ended make room for new ones, and those are no evictions. Whether one has ended is known by steps
 * of the clock.
 */
CLAIM(an_ended_penalty_is_the_first_to_go)
{
	uint64_t now_ns = RIG_START_NS;
	uint32_t places;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE, 0, 512);
	rig_load(&rig, true);
	places = rig.image->config.sizes[WEIR_TABLE_PENALISED_FLOWS] * WEIR_FLOW_WAYS;
	for (uint32_t turn = 0; turn < 40; turn++, now_ns += PENALTY_NS + STEPS_NS)
		assert_int_equal(count_penalised(&rig, 1 + turn * places / 8, places / 8, now_ns), places / 8);
	assert_int_equal(rig_rule_counters(&rig, 0).changes, 40 * (places / 8));
	assert_int_equal(rig_rule_counters(&rig, 0).evicted, 0);
}

/* Of those that run, the one that ends soonest goes: a long one outlives a flood of short ones. */
CLAIM(a_flood_evicts_what_ends_soonest_and_that_is_counted)
{
	uint64_t now_ns = RIG_START_NS;
	struct weir_ruleset_rule *rule;
	struct weir_rule_counters counters;
	uint32_t places;
	_cleanup_(rig_end) struct rig rig = {};

	rule = begin(&rig, WEIR_KEY_SOURCE, 0, 512);
	rule->penalty_ms_max = 4 * PENALTY_MS;
	rig_load(&rig, true);
	places = rig.image->config.sizes[WEIR_TABLE_PENALISED_FLOWS] * WEIR_FLOW_WAYS;
	assert_false(passes(&rig, 1, now_ns));
	assert_false(passes(&rig, 1, now_ns + PENALTY_NS)); /* now it has twice as long */
	now_ns += PENALTY_NS;
	count_penalised(&rig, 2, FLOOD, now_ns);
	counters = rig_rule_counters(&rig, 0);
	assert_int_equal(counters.changes, 2 + FLOOD);
	assert_in_range(counters.evicted, FLOOD + 1 - places, FLOOD);
	/* The flow's penalty continues: another would be counted. */
	assert_false(passes(&rig, 1, now_ns + 2 * PENALTY_NS - 1));
	assert_int_equal(rig_rule_counters(&rig, 0).changes, 2 + FLOOD);
}

/* ---- release ---- */

struct seen {
	uint32_t count;
	struct weir_penalty last;
};

static void see(const struct weir_penalty *penalty, void *data)
{
	struct seen *seen = data;

	seen->count++;
	seen->last = *penalty;
}

CLAIM(a_released_flow_is_evaluated_by_its_window_again)
{
	_cleanup_(weir_penalties_unmap) struct weir_penalties penalties = {};
	uint64_t now_ns = RIG_START_NS;
	struct seen seen = {};
	uint32_t source = 7;
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, WEIR_KEY_SOURCE, 1, 512)->penalty_ms_max = 4 * PENALTY_MS;
	rig_load(&rig, true);
	map_penalties(&rig, &penalties);
	assert_true(passes(&rig, source, now_ns));
	assert_false(passes(&rig, source, now_ns));
	weir_penalties_visit(&penalties, rig.image->rule_info, now_ns + 2 * SECOND, see, &seen);
	assert_int_equal(seen.count, 1);
	assert_true(seen.last.is_noted);
	assert_int_equal(seen.last.rule_slot, rig.image->rules[0].slot);
	assert_memory_equal(seen.last.key.source, &source, sizeof(source));
	assert_int_equal(seen.last.left_ns, PENALTY_NS - 2 * SECOND);
	assert_int_equal(seen.last.lasts_ms, PENALTY_MS);
	assert_false(passes(&rig, source, now_ns + 2 * SECOND));
	assert_true(weir_penalty_end(&seen.last));
	assert_false(weir_penalty_end(&seen.last));
	now_ns += 2 * SECOND + WEIR_RELEASE_NS;
	assert_true(passes(&rig, source, now_ns));
	/* The next one is as long as a first one. */
	assert_false(passes(&rig, source, now_ns));
	assert_false(passes(&rig, source, now_ns + PENALTY_NS - 1));
	assert_true(passes(&rig, source, now_ns + PENALTY_NS));
}

CLAIM(a_released_resource_is_evaluated_by_its_window_again)
{
	_cleanup_(weir_penalties_unmap) struct weir_penalties penalties = {};
	struct seen seen = {};
	_cleanup_(rig_end) struct rig rig = {};

	begin(&rig, 0, 1, 512);
	rig_load(&rig, true);
	map_penalties(&rig, &penalties);
	assert_true(passes(&rig, 1, RIG_START_NS));
	assert_false(passes(&rig, 2, RIG_START_NS));
	weir_penalties_visit(&penalties, rig.image->rule_info, RIG_START_NS, see, &seen);
	assert_int_equal(seen.count, 1);
	assert_true(weir_penalty_end(&seen.last));
	assert_true(passes(&rig, 3, RIG_START_NS + 2 * SECOND));
}

/* ---- reload ---- */

CLAIM(a_reload_that_keeps_the_rule_keeps_penalties)
{
	struct rig first, second;

	begin(&first, WEIR_KEY_SOURCE, 1, 512);
	rig_load(&first, true);
	assert_true(passes(&first, 1, RIG_START_NS));
	assert_false(passes(&first, 1, RIG_START_NS));
	begin(&second, WEIR_KEY_SOURCE, 10, 512)->penalty_ms_max = 2 * PENALTY_MS;
	second.reloads = &first;
	second.now_ns = RIG_START_NS + SECOND;
	rig_load(&second, true);
	assert_false(passes(&second, 1, RIG_START_NS + PENALTY_NS - 1));
	assert_true(passes(&second, 1, RIG_START_NS + PENALTY_NS));
	/* ... and how long they were: the next one is twice that */
	for (int i = 0; i < 10; i++)
		passes(&second, 1, RIG_START_NS + PENALTY_NS);
	assert_false(passes(&second, 1, RIG_START_NS + 3 * PENALTY_NS - 1));
	assert_true(passes(&second, 1, RIG_START_NS + 3 * PENALTY_NS));
	rig_end(&second);
	rig_end(&first);
}

/* Of a rule that has gone, its slot's next owner learns nothing. */
CLAIM(a_rule_that_gets_anothers_slot_knows_none_of_its_penalties)
{
	static char other_name[] = "other", third_name[] = "third";
	struct rig first, second, third;

	begin(&first, WEIR_KEY_SOURCE, 1, 512)->penalty_ms = 3600000;
	first.ruleset->rules[0].penalty_ms_max = 3600000;
	rig_load(&first, true);
	assert_true(passes(&first, 1, RIG_START_NS));
	assert_false(passes(&first, 1, RIG_START_NS));
	begin(&second, WEIR_KEY_SOURCE, 1, 512);
	free(second.ruleset->rules[0].name);
	second.ruleset->rules[0].name = strdup(other_name);
	second.reloads = &first;
	second.now_ns = RIG_START_NS + SECOND;
	rig_load(&second, true);
	assert_int_not_equal(second.image->rules[0].slot, first.image->rules[0].slot);
	begin(&third, WEIR_KEY_SOURCE, 1, 512);
	free(third.ruleset->rules[0].name);
	third.ruleset->rules[0].name = strdup(third_name);
	third.reloads = &second;
	third.now_ns = RIG_START_NS + 10 * SECOND;
	rig_load(&third, true);
	assert_int_equal(third.image->rules[0].slot, first.image->rules[0].slot);
	assert_true(passes(&third, 1, RIG_START_NS + 10 * SECOND));
	rig_end(&third);
	rig_end(&second);
	rig_end(&first);
}

RUN_CLAIMS(NULL, NULL)
