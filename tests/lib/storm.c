// SPDX-License-Identifier: GPL-2.0-only
#include "storm.h"

#include <bpf/bpf.h>
#include <pthread.h>

#include "claims.h"
#include "base/util.h"
#include "host/host.h"

struct sender {
	const struct rig *rig;
	pthread_barrier_t *start;
	int cpu;
	const struct packet_spec *spec;
	uint32_t packets;
	int err;
};

static void *sender_main(void *data)
{
	struct sender *sender = data;
	_cleanup_(weir_freep) uint8_t *frame = malloc(PACKET_BYTES_MAX);
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .repeat = sender->packets);

	options.data_size_in = packet_build(sender->spec, frame);
	rig_pin(sender->cpu);
	pthread_barrier_wait(sender->start);
	sender->err = bpf_prog_test_run_opts(weir_object_program_fd(sender->rig->object), &options);
	return NULL;
}

void storm_all(const struct rig *rig, const struct packet_spec *spec, uint64_t packets)
{
	struct sender senders[STORM_CPUS_MAX] = {};
	pthread_t threads[STORM_CPUS_MAX];
	pthread_barrier_t start;
	int cpus = weir_host_cpus();

	assert_in_range(cpus, 1, STORM_CPUS_MAX);
	pthread_barrier_init(&start, NULL, cpus);
	for (int i = 0; i < cpus; i++) {
		senders[i] = (struct sender){
			.rig = rig,
			.start = &start,
			.cpu = i,
			.spec = spec,
			.packets = (packets + cpus - 1) / cpus,
		};
		assert_int_equal(pthread_create(&threads[i], NULL, sender_main, &senders[i]), 0);
	}
	for (int i = 0; i < cpus; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(senders[i].err, 0);
	}
	pthread_barrier_destroy(&start);
}

void storm_one(const struct rig *rig, const struct packet_spec *spec, int cpu, uint64_t packets)
{
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(spec, frame),
		    .repeat = packets);
	cpu_set_t before;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	rig_pin(cpu);
	assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options), 0);
	rig_roam(&before);
}

void storm_mop_up(const struct rig *rig, const struct packet_spec *spec, uint64_t packets)
{
	for (int i = 0; i < 2 * weir_host_cpus(); i++)
		storm_one(rig, spec, i % weir_host_cpus(), packets);
}
