// SPDX-License-Identifier: GPL-2.0-only
#include "new_flows.h"
#include "claims.h"

#include <bpf/bpf.h>
#include <pthread.h>
#include <string.h>

#define CPUS 2
#define RACES 4000 /* flows that two CPUs race for; chosen, not derived */
#define HEAVY_PACKETS 3000
#define NEW_PER_PACKET 40

void new_flows_frame(uint32_t flow, uint8_t frame[PACKET_BYTES_MAX])
{
	struct packet_spec spec = packet_udp("198.51.100.7", 4321, "192.0.2.53", NEW_FLOWS_PORT, 0);

	memcpy(spec.source, &flow, sizeof(flow));
	spec.padding_bytes = NEW_FLOWS_FRAME_BYTES;
	packet_build(&spec, frame);
}

/* ---- first packets ---- */

struct racer {
	const struct rig *rig;
	int cpu;
	atomic_uint *arrived;
	uint32_t passed[RACES];
	int err;
	pthread_t thread;
};

static void *race(void *data)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct racer *racer = data;
	uint8_t frame[PACKET_BYTES_MAX];

	rig_pin(racer->cpu);
	options.data_in = frame;
	options.data_size_in = NEW_FLOWS_FRAME_BYTES;
	options.repeat = 1;
	for (int flow = 0; flow < RACES; flow++) {
		new_flows_frame(1 + flow, frame);
		rig_line_up(racer->arrived, CPUS, flow);
		if (bpf_prog_test_run_opts(weir_object_program_fd(racer->rig->object), &options))
			racer->err = -EIO;
		racer->passed[flow] = options.retval == XDP_PASS;
	}
	return NULL;
}

uint32_t new_flows_race(const struct rig *rig, const int cpu[2])
{
	static struct racer racers[CPUS];
	atomic_uint arrived = 0;
	uint32_t wrong = 0;

	for (int i = 0; i < CPUS; i++) {
		racers[i] = (struct racer){.rig = rig, .cpu = cpu[i], .arrived = &arrived};
		assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(racers[i].thread, NULL);
		assert_int_equal(racers[i].err, 0);
	}
	for (int flow = 0; flow < RACES; flow++)
		wrong += racers[0].passed[flow] + racers[1].passed[flow] != 1;
	return wrong;
}

/* ---- a full table ---- */

struct new_flows_passed new_flows_flood(struct rig *rig)
{
	struct new_flows_passed passed = {.new_sent = HEAVY_PACKETS * NEW_PER_PACKET};
	uint64_t now_ns = RIG_START_NS;
	uint8_t frame[PACKET_BYTES_MAX];

	for (uint32_t packet = 0; packet < HEAVY_PACKETS; packet++, now_ns += MS) {
		new_flows_frame(1, frame);
		passed.heavy += rig_passes(rig, now_ns, frame, NEW_FLOWS_FRAME_BYTES);
		for (uint32_t i = 0; i < NEW_PER_PACKET; i++) {
			new_flows_frame(2 + packet * NEW_PER_PACKET + i, frame);
			passed.new += rig_passes(rig, now_ns, frame, NEW_FLOWS_FRAME_BYTES);
		}
	}
	assert_true(rig_rule_counters(rig, 0).evicted > HEAVY_PACKETS);
	return passed;
}
