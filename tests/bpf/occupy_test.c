// SPDX-License-Identifier: GPL-2.0-only
/*
 * Occupy windows, across CPUs: two pinned threads run the shipped program at one flow. After each round the flow's
 * cells are read: no window, the present one or one to come, may hold more than the threshold, and all units ever
 * counted must be as many as packets that passed. So a unit that is lost, counted twice or not given back shows.
 */
#include <bpf/bpf.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/claims.h"
#include "../lib/new_flows.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "weir_occupy.h"

#define CPUS 2
#define PORT NEW_FLOWS_PORT
#define FRAME_BYTES NEW_FLOWS_FRAME_BYTES
#define THRESHOLD 200
#define SAMPLES 10
#define RING (2 * SAMPLES)
#define BUCKET_NS (SECOND / SAMPLES)
#define ROUNDS 150
#define ROUND_PACKETS 150 /* of each CPU */
#define BUCKETS_MAX 2048  /* of a whole test */

struct occupier {
	struct rig rig;
	int cpu[CPUS];
	uint64_t units[BUCKETS_MAX]; /* of each bucket since RIG_START_NS, as last seen */
};

static void occupy_begin(struct occupier *occupier, bool is_keyed, bool has_second_rule)
{
	struct weir_ruleset_rule *rule;
	size_t resource;

	rig_require(CPUS);
	memset(occupier, 0, sizeof(*occupier));
	rig_begin(&occupier->rig, 16384);
	occupier->rig.ruleset->settings.occupy_timeout_ms = 450;
	resource = rig_resource(&occupier->rig, PORT, is_keyed ? WEIR_KEY_SOURCE : 0);
	occupier->rig.ruleset->resources[resource].is_prioritized = true;
	rule = rig_rule(&occupier->rig, resource, WEIR_WINDOW_LEAP, THRESHOLD, SECOND, SAMPLES);
	rule->occupies = true;
	/* It blocks much of what the first admits, and lets occupy. */
	if (has_second_rule)
		rig_rule(&occupier->rig, resource, WEIR_WINDOW_STRICT, 60, 20 * MS, 1);
	rig_load(&occupier->rig, true);
	weir_object_harness(occupier->rig.object)->clock_ns = RIG_START_NS;
	rig_cpus(occupier->cpu, CPUS);
	rig_attach(&occupier->rig);
}

/* ---- what the flow's cells count ---- */

static struct weir_occupy_window flow_of(const struct occupier *occupier, uint32_t *ret_tag)
{
	bool is_keyed = occupier->rig.ruleset->resources[0].flow.fields;
	struct weir_occupy_set set;
	struct weir_occupy_window lone;
	uint32_t index = occupier->rig.image->rules[0].slot;

	*ret_tag = 0;
	if (!is_keyed) {
		int fd = weir_object_map_fd(occupier->rig.object, WEIR_TABLE_OCCUPY_RESOURCES);

		assert_int_equal(bpf_map_lookup_elem(fd, &index, &lone), 0);
		return lone;
	}
	for (index = 0; index < occupier->rig.image->config.sizes[WEIR_TABLE_OCCUPY_FLOWS]; index++) {
		int fd = weir_object_map_fd(occupier->rig.object, WEIR_TABLE_OCCUPY_FLOWS);

		assert_int_equal(bpf_map_lookup_elem(fd, &index, &set), 0);
		for (int way = 0; way < WEIR_FLOW_WAYS; way++) {
			if (!set.flows.tag[way])
				continue;
			*ret_tag = set.flows.tag[way];
			return set.flow[way];
		}
	}
	fail_msg("the flow has no entry");
	return (struct weir_occupy_window){};
}

static uint64_t units_of(const struct weir_occupy_window *flow, uint32_t tag, uint64_t bucket)
{
	uint8_t unit_bits = weir_occupy_unit_bits(SECOND);
	uint64_t number = bucket + RING, word = flow->cell[number % RING];

	if (word >> unit_bits != weir_occupy_mark(number / RING, tag, unit_bits))
		return 0;
	return word & weir_occupy_units_max(unit_bits);
}

/* No window holds too much, and what was counted is what passed. */
static void check_cells(struct occupier *occupier)
{
	uint64_t now = weir_object_harness(occupier->rig.object)->clock_ns / BUCKET_NS,
		 first = RIG_START_NS / BUCKET_NS;
	uint64_t sum = 0, total = 0;
	struct weir_occupy_window flow;
	uint32_t tag;

	flow = flow_of(occupier, &tag);
	for (uint64_t bucket = now - SAMPLES + 1; bucket <= now + SAMPLES; bucket++) {
		uint64_t units = units_of(&flow, tag, bucket);

		sum += units;
		if (bucket >= first)
			occupier->units[bucket - first] = units;
		/* the window that ends with this bucket */
		if (bucket - SAMPLES > now - SAMPLES)
			sum -= units_of(&flow, tag, bucket - SAMPLES);
		if (bucket >= now && sum > THRESHOLD)
			fail_msg("a window holds %" PRIu64 " units", sum);
	}
	for (size_t i = 0; i < BUCKETS_MAX; i++)
		total += occupier->units[i];
	assert_int_equal(total, rig_passed(&occupier->rig, 0));
}

/* ---- rounds ---- */

struct sender {
	struct occupier *occupier;
	atomic_uint *arrived;
	int which, err;
	bool moves_clock; /* while the others send */
	pthread_t thread;
};

/* Some way on: within the bucket, to its end or start, or some buckets further. */
static uint64_t step_ns(uint32_t round, uint64_t now_ns)
{
	uint64_t edge_ns = (now_ns / BUCKET_NS + 1) * BUCKET_NS;

	switch (round * 2654435761u >> 16 & 7) {
	case 0:
		return edge_ns;
	case 1:
		return edge_ns - 1;
	case 2:
		return edge_ns + 4 * BUCKET_NS;
	case 3:
		return edge_ns + 3 * BUCKET_NS + 7 * MS;
	default:
		return now_ns + 17 * MS;
	}
}

static void *send_rounds(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct sender *sender = data;
	volatile struct weir_harness *harness = weir_object_harness(sender->occupier->rig.object);
	uint8_t frame[PACKET_BYTES_MAX];

	rig_pin(sender->occupier->cpu[sender->which]);
	new_flows_frame(1, frame);
	options.data_in = frame;
	options.data_size_in = FRAME_BYTES;
	options.repeat = ROUND_PACKETS;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		rig_line_up(sender->arrived, CPUS, 3 * round);
		if (sender->moves_clock && sender->which == 0)
			harness->clock_ns = step_ns(round, harness->clock_ns);
		if (bpf_prog_test_run_opts(weir_object_program_fd(sender->occupier->rig.object), &options))
			sender->err = 1;
		rig_line_up(sender->arrived, CPUS, 3 * round + 1);
		if (sender->which == 0) {
			check_cells(sender->occupier);
			if (!sender->moves_clock)
				harness->clock_ns = step_ns(round, harness->clock_ns);
		}
		rig_line_up(sender->arrived, CPUS, 3 * round + 2);
	}
	return NULL;
}

static void race(bool is_keyed, bool has_second_rule, bool moves_clock)
{
	static struct occupier occupier;
	struct sender senders[CPUS];
	struct weir_rule_counters counters;
	atomic_uint arrived = 0;
	cpu_set_t before;

	occupy_begin(&occupier, is_keyed, has_second_rule);
	for (int i = 0; i < CPUS; i++)
		senders[i] = (struct sender){
			.occupier = &occupier, .arrived = &arrived, .which = i, .moves_clock = moves_clock};
	assert_int_equal(pthread_create(&senders[1].thread, NULL, send_rounds, &senders[1]), 0);
	/* This thread is the first: a claim that fails ends the test. */
	rig_stay(&before);
	send_rounds(&senders[0]);
	rig_roam(&before);
	pthread_join(senders[1].thread, NULL);
	for (int i = 0; i < CPUS; i++)
		assert_int_equal(senders[i].err, 0);
	counters = rig_rule_counters(&occupier.rig, 0);
	print_message("%" PRIu64 " passed, %llu of them with occupied units; stalled %llu\n",
		      rig_passed(&occupier.rig, 0), (unsigned long long)counters.delayed,
		      (unsigned long long)counters.stalled);
	assert_true(counters.delayed > THRESHOLD / 2);
	assert_int_equal(counters.evicted, 0);
	rig_end(&occupier.rig);
}

CASE_WITHIN(two_cpus_pass_no_window_of_a_flow, NULL, rig_detach, race(true, false, false));
CASE_WITHIN(two_cpus_pass_no_window_of_a_whole_resource, NULL, rig_detach, race(false, false, false));
CASE_WITHIN(two_cpus_give_back_what_another_rule_blocks, NULL, rig_detach, race(true, true, false));
CASE_WITHIN(two_cpus_pass_no_window_while_buckets_end, NULL, rig_detach, race(true, false, true));

/* ---- a full table ---- */

/* A heavy flow that has used up its limit, in a flood of new sources that pushes flows out all the time. */
CLAIM(a_flood_of_new_sources_lets_no_heavy_flow_through)
{
	struct new_flows_passed passed;
	struct weir_ruleset_rule *rule;
	_cleanup_(rig_end) struct rig rig = {};

	rig_begin(&rig, NEW_FLOWS_TABLE);
	rig_resource(&rig, PORT, WEIR_KEY_SOURCE);
	rig.ruleset->resources[0].is_prioritized = true;
	rig.ruleset->settings.occupy_timeout_ms = 500;
	rule = rig_rule(&rig, 0, WEIR_WINDOW_LEAP, 20, SECOND, SAMPLES);
	rule->occupies = true;
	rig_load(&rig, true);
	passed = new_flows_flood(&rig);
	assert_int_equal(passed.heavy, 4 * 20); /* of four seconds: the last 20 wait for the fourth */
}

RUN_CLAIMS(NULL, NULL)
