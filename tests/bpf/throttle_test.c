// SPDX-License-Identifier: GPL-2.0-only
/*
 * Throttling across CPUs: two pinned threads run the shipped program at one flow while the virtual clock stands
 * still. Then the slots of the queue are known beforehand: one now, and one each cost later up to the longest wait.
 * As many packets must pass, and their waits must add up to just these: a slot given twice makes the sum too
 * small, one lost makes it too large, or the packets too few.
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
#include "host/host.h"

#define CPUS 2
#define PORT NEW_FLOWS_PORT
#define FRAME_BYTES NEW_FLOWS_FRAME_BYTES

struct queue {
	struct rig rig;
	int cpu[CPUS];
};

static void queue_begin(struct queue *queue, bool is_keyed, uint64_t threshold, uint64_t queueing_ms)
{
	struct weir_ruleset_rule *rule;

	rig_require(CPUS);
	memset(queue, 0, sizeof(*queue));
	rig_begin(&queue->rig, 16384);
	rule = rig_rule(&queue->rig, rig_resource(&queue->rig, PORT, is_keyed ? WEIR_KEY_SOURCE : 0), WEIR_WINDOW_LEAP,
			threshold, SECOND, 1);
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rule->queueing_ms_max = queueing_ms;
	rig_load(&queue->rig, true);
	weir_object_harness(queue->rig.object)->clock_ns = RIG_START_NS;
	rig_cpus(queue->cpu, CPUS);
	rig_attach(&queue->rig);
}

/* ---- many packets of one flow ---- */

struct sender {
	const struct queue *queue;
	atomic_uint *arrived;
	int which;
	uint32_t packets;
	int err;
	pthread_t thread;
};

static void *send_all(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct sender *sender = data;
	uint8_t frame[PACKET_BYTES_MAX];

	rig_pin(sender->queue->cpu[sender->which]);
	new_flows_frame(1, frame);
	options.data_in = frame;
	options.data_size_in = FRAME_BYTES;
	options.repeat = sender->packets;
	rig_line_up(sender->arrived, CPUS, 0);
	sender->err = bpf_prog_test_run_opts(weir_object_program_fd(sender->queue->rig.object), &options);
	return NULL;
}

static void fill_queue_from_both_cpus(bool is_keyed)
{
	const uint64_t threshold = 100000, queueing_ms = 1000, cost_ns = SECOND / 100000;
	const uint64_t waiting = queueing_ms * MS / cost_ns;
	struct sender senders[CPUS];
	struct weir_rule_counters counters;
	atomic_uint arrived = 0;
	struct queue queue;

	queue_begin(&queue, is_keyed, threshold, queueing_ms);
	for (int i = 0; i < CPUS; i++) {
		senders[i] = (struct sender){.queue = &queue, .arrived = &arrived, .which = i, .packets = 2 * waiting};
		assert_int_equal(pthread_create(&senders[i].thread, NULL, send_all, &senders[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(senders[i].thread, NULL);
		assert_int_equal(senders[i].err, 0);
	}
	counters = rig_rule_counters(&queue.rig, 0);
	assert_int_equal(rig_passed(&queue.rig, 0), 1 + waiting);
	assert_int_equal(counters.delayed, waiting);
	assert_int_equal(counters.delay_ns, cost_ns * (waiting * (waiting + 1) / 2));
	assert_int_equal(counters.blocked.packets, CPUS * 2 * waiting - 1 - waiting);
	rig_end(&queue.rig);
}

CASE_WITHIN(two_cpus_take_each_slot_of_a_whole_resource_once, NULL, rig_detach, fill_queue_from_both_cpus(false));
CASE_WITHIN(two_cpus_take_each_slot_of_a_flow_once, NULL, rig_detach, fill_queue_from_both_cpus(true));

/* ---- the first packets of many flows ---- */

/* With no time to wait a flow has one slot now; two entries would give it two. */
CLAIM_WITHIN(a_new_flow_met_by_two_cpus_at_once_gets_one_entry, NULL, rig_detach)
{
	struct queue queue;

	queue_begin(&queue, true, 1000, 0);
	assert_int_equal(new_flows_race(&queue.rig, queue.cpu), 0);
	assert_int_equal(rig_rule_counters(&queue.rig, 0).evicted, 0);
	rig_end(&queue.rig);
}

/* ---- a full table ---- */

/* A heavy flow at fifty times its rate, in a flood of new sources that pushes flows out all the time. Without a queue
 * too, where its TAT is soon the earliest of its set.
 */
CLAIM(a_flood_of_new_sources_lets_no_heavy_flow_through)
{
	const uint64_t threshold = 20; /* a fiftieth of what the heavy flow sends */
	static const uint64_t queues_ms[] = {0, 100};

	for (size_t i = 0; i < ARRAY_SIZE(queues_ms); i++) {
		struct new_flows_passed passed;
		struct weir_ruleset_rule *rule;
		_cleanup_(rig_end) struct rig rig = {};

		rig_begin(&rig, NEW_FLOWS_TABLE);
		rule = rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, threshold, SECOND,
				1);
		rule->behavior = WEIR_BEHAVIOR_THROTTLING;
		rule->queueing_ms_max = queues_ms[i];
		rig_load(&rig, true);
		passed = new_flows_flood(&rig);
		assert_in_range(passed.heavy, 3 * threshold, 3 * threshold + 1 + threshold * queues_ms[i] / 1000);
	}
}

/* Flows that were refused once, and have had a packet admitted since. New flows, each planned later, push out only one
 * another as long as there are any.
 */
CLAIM(a_flow_that_was_refused_keeps_its_place_when_a_packet_passes)
{
	enum { HEAVY = 16, NEW = 4 * NEW_FLOWS_TABLE };
	uint64_t now_ns = RIG_START_NS;
	uint8_t frame[PACKET_BYTES_MAX];
	struct weir_ruleset_rule *rule;
	_cleanup_(rig_end) struct rig rig = {};

	rig_begin(&rig, NEW_FLOWS_TABLE);
	rule = rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, 1, SECOND, 1);
	rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	rig_load(&rig, true);
	for (uint32_t flow = 1; flow <= HEAVY; flow++) {
		new_flows_frame(flow, frame);
		assert_true(rig_passes(&rig, now_ns, frame, FRAME_BYTES));
		assert_false(rig_passes(&rig, now_ns, frame, FRAME_BYTES));
	}
	now_ns += SECOND;
	for (uint32_t flow = 1; flow <= HEAVY; flow++) {
		new_flows_frame(flow, frame);
		assert_true(rig_passes(&rig, now_ns, frame, FRAME_BYTES));
	}
	for (uint32_t flow = 0; flow < NEW; flow++) {
		new_flows_frame(1000 + flow, frame);
		assert_true(rig_passes(&rig, ++now_ns, frame, FRAME_BYTES));
	}
	for (uint32_t flow = 1; flow <= HEAVY; flow++) {
		new_flows_frame(flow, frame);
		assert_false(rig_passes(&rig, now_ns, frame, FRAME_BYTES));
	}
	assert_in_range(rig_rule_counters(&rig, 0).evicted, NEW_FLOWS_TABLE, NEW);
}

RUN_CLAIMS(NULL, NULL)
