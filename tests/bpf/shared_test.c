// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries of sets that all CPUs share (bpf/kinds/flow_set.h), when sets are full: two new flows that two CPUs bring to
 * one set at once get an entry each, and no flow goes by what another left in its entry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"

#define CPUS 2
#define PORT 53 /* of the first rule's resource; the second's is the next */
#define FRAME_BYTES 60
#define SOURCE_PORT_OFFSET 34
#define FLOWS_PER_CPU 512      /* the least: few sets */
#define LONG_NS (200 * SECOND) /* after so long a throttled flow is over, and one that warms up cold */

/* Flows of each rule that share one set: more than it has ways, so that each is gone by its next turn. */
#define NEIGHBOURS 40

struct pair {
	struct rig rig;
	int cpu[CPUS];
	uint32_t source[CPUS][NEIGHBOURS]; /* of the rule that this CPU's packets meet */
};

static void build_frame(uint16_t port, uint32_t source, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", port, 0);

	memcpy(spec.source, &source, sizeof(source));
	spec.padding_bytes = FRAME_BYTES;
	packet_build(&spec, frame);
}

static bool passes(struct pair *pair, uint16_t port, uint32_t source)
{
	static uint8_t frame[PACKET_BYTES_MAX];
	volatile struct weir_harness *harness = weir_object_harness(pair->rig.object);

	build_frame(port, source, frame);
	return rig_passes(&pair->rig, harness->clock_ns, frame, FRAME_BYTES);
}

static void pair_load(struct pair *pair)
{
	rig_load(&pair->rig, true);
	weir_object_harness(pair->rig.object)->clock_ns = RIG_START_NS;
	rig_cpus(pair->cpu, CPUS);
	rig_attach(&pair->rig);
}

/* The latest insertion into set 0: all kinds of sets begin with it. */
static uint64_t latest_insertion(const struct pair *pair, enum weir_table_id map)
{
	union {
		uint64_t inserted;
		struct weir_warming_set warming;
		struct weir_throttle_set throttled;
		struct weir_connection_flow_set connections;
	} found;
	uint32_t set = 0;

	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(pair->rig.object, map), &set, &found), 0);
	return found.inserted;
}

/* Find flows of set 0, by trying. That fills the set. */
static void find_neighbours(struct pair *pair, enum weir_table_id map)
{
	cpu_set_t before;

	rig_stay(&before);
	for (int which = 0; which < CPUS; which++) {
		uint32_t found = 0;

		for (uint32_t source = 1; found < NEIGHBOURS; source++) {
			uint64_t latest = latest_insertion(pair, map);

			weir_object_harness(pair->rig.object)->clock_ns += LONG_NS;
			passes(pair, PORT + which, source);
			if (latest_insertion(pair, map) != latest)
				pair->source[which][found++] = source;
		}
	}
	rig_roam(&before);
}

/* ---- two new flows ---- */

#define ROUNDS 20000
#define PACKETS 6 /* of a flow in a round */

struct racer {
	struct pair *pair;
	atomic_uint *arrived;
	int which, err;
	uint32_t passed[ROUNDS];
	pthread_t thread;
};

static void *race(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct racer *racer = data;
	struct pair *pair = racer->pair;
	uint8_t frame[PACKET_BYTES_MAX];

	rig_pin(pair->cpu[racer->which]);
	options.data_in = frame;
	options.data_size_in = FRAME_BYTES;
	options.repeat = 1;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		build_frame(PORT + racer->which, pair->source[racer->which][round % NEIGHBOURS], frame);
		rig_line_up(racer->arrived, CPUS, 2 * round);
		if (racer->which == 0)
			weir_object_harness(pair->rig.object)->clock_ns += LONG_NS;
		rig_line_up(racer->arrived, CPUS, 2 * round + 1);
		for (int i = 0; i < PACKETS; i++) {
			frame[SOURCE_PORT_OFFSET] = i; /* each of another connection */
			racer->err |= bpf_prog_test_run_opts(weir_object_program_fd(pair->rig.object), &options);
			racer->passed[round] += options.retval == XDP_PASS;
		}
	}
	return NULL;
}

/* All other entries are of flows that need not be remembered. How often did not just `fit` of a flow pass? */
static void two_new_flows_meet(struct pair *pair, uint32_t fit)
{
	static struct racer racers[CPUS];
	atomic_uint arrived = 0;
	uint32_t wrong[CPUS] = {};

	memset(racers, 0, sizeof(racers));
	for (int i = 0; i < CPUS; i++) {
		racers[i].pair = pair;
		racers[i].which = i;
		racers[i].arrived = &arrived;
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(racers[i].thread, NULL);
		assert_int_equal(racers[i].err, 0);
		for (uint32_t round = 0; round < ROUNDS; round++)
			wrong[i] += racers[i].passed[round] != (i == 0 ? fit : PACKETS);
	}
	assert_int_equal(wrong[0], 0);
	assert_int_equal(wrong[1], 0);
	assert_int_equal(rig_rule_counters(&pair->rig, 0).evicted + rig_rule_counters(&pair->rig, 1).evicted, 0);
}

/* A flow that gets the other's entry loses its TAT, and has one time too many. */
static void two_new_throttled_flows_of_a_full_set_get_an_entry_each(void **state)
{
	struct pair pair = {};

	rig_require(CPUS);
	rig_begin(&pair.rig, FLOWS_PER_CPU);
	for (int which = 0; which < CPUS; which++) {
		struct weir_ruleset_rule *rule =
			rig_rule(&pair.rig, rig_resource(&pair.rig, PORT + which, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 1,
				 SECOND, 1);

		rule->behavior = WEIR_BEHAVIOR_THROTTLING;
		rule->queueing_ms_max = which ? (PACKETS - 1) * 1000 : 0;
	}
	pair_load(&pair);
	find_neighbours(&pair, WEIR_TABLE_THROTTLED_FLOWS);
	two_new_flows_meet(&pair, 1);
	rig_end(&pair.rig);
}

/* A flow that gets the other's entry may be evaluated against what the other is allowed: a million times as much. */
static void two_new_warming_flows_of_a_full_set_get_an_entry_each(void **state)
{
	struct pair pair = {};

	rig_require(CPUS);
	rig_begin(&pair.rig, FLOWS_PER_CPU);
	for (int which = 0; which < CPUS; which++) {
		struct weir_ruleset_rule *rule =
			rig_rule(&pair.rig, rig_resource(&pair.rig, PORT + which, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP,
				 which ? 9000000 : 9, SECOND, 10);

		rule->strategy = WEIR_STRATEGY_WARM_UP;
		rule->warm_up = (struct weir_warm_up_fields){.period_s = 10, .cold_factor = 3};
	}
	pair_load(&pair);
	find_neighbours(&pair, WEIR_TABLE_WARMING_FLOWS);
	two_new_flows_meet(&pair, 3);
	rig_end(&pair.rig);
}

/* A flow that gets the other's entry loses count of its connections, and has one too many. */
static void two_new_flows_with_connections_of_a_full_set_get_an_entry_each(void **state)
{
	struct pair pair = {};

	rig_require(CPUS);
	rig_begin(&pair.rig, FLOWS_PER_CPU);
	pair.rig.ruleset->settings.connections = 65536;
	pair.rig.ruleset->settings.connection_flows = 1;
	for (int class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		pair.rig.ruleset->settings.connection_timeout_ms[class] = 1000;
	for (int which = 0; which < CPUS; which++)
		rig_rule(&pair.rig, rig_resource(&pair.rig, PORT + which, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP,
			 which ? PACKETS : 1, 0, 0)
			->metric = WEIR_METRIC_CONCURRENCY;
	pair_load(&pair);
	find_neighbours(&pair, WEIR_TABLE_CONNECTION_FLOWS);
	two_new_flows_meet(&pair, 1);
	rig_end(&pair.rig);
}

/* ---- what another left ---- */

/* Six bits of the tag tell whose TAT it is, and one flow in 64 has the same. */
static void new_flow_does_not_wait_for_the_one_whose_entry_it_gets(void **state)
{
	struct weir_ruleset_rule *rule;
	struct pair pair = {};
	cpu_set_t before;

	rig_begin(&pair.rig, FLOWS_PER_CPU);
	rule = rig_rule(&pair.rig, rig_resource(&pair.rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 1, SECOND, 1);
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = 10000;
	rig_load(&pair.rig, true);
	weir_object_harness(pair.rig.object)->clock_ns = RIG_START_NS;
	rig_stay(&before);
	for (uint32_t source = 1; source <= 20 * FLOWS_PER_CPU; source++) {
		assert_true(passes(&pair, PORT, source));
		assert_int_equal(weir_object_harness(pair.rig.object)->wait_ns, 0);
		assert_true(passes(&pair, PORT, source));
		assert_int_equal(weir_object_harness(pair.rig.object)->wait_ns, SECOND);
	}
	rig_roam(&before);
	assert_true(rig_rule_counters(&pair.rig, 0).evicted > 10 * FLOWS_PER_CPU);
	rig_end(&pair.rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(two_new_throttled_flows_of_a_full_set_get_an_entry_each, rig_detach),
		cmocka_unit_test_teardown(two_new_warming_flows_of_a_full_set_get_an_entry_each, rig_detach),
		cmocka_unit_test_teardown(two_new_flows_with_connections_of_a_full_set_get_an_entry_each, rig_detach),
		cmocka_unit_test(new_flow_does_not_wait_for_the_one_whose_entry_it_gets),
	};

	return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
