// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs that go and come back: what they have counted stays, one that was not there at attach counts as well, and none
 * goes by a timer that was another's. The same when the whole machine sleeps. Takes a CPU off, so it runs in a virtual
 * machine alone (tests/vm/run). The windows are a day long, so that what passed is one sum.
 */
#include <bpf/bpf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "../lib/storm.h"
#include "base/util.h"
#include "host/host.h"

#define LIMIT 1000
#define DAY (86400 * SECOND)
#define FLIPS 10
#define GOING 1 /* the CPU that goes and comes back; the other is 0 */

/* False with errno. */
static bool write_kernel_file(const char *path, const char *words)
{
	_cleanup_(weir_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, words, strlen(words)) == (ssize_t)strlen(words);
}

/* Take the CPU off, or put it back. */
static void put_online(bool is_online)
{
	assert_true(write_kernel_file("/sys/devices/system/cpu/cpu1/online", is_online ? "1" : "0"));
}

static int put_all_online(void **state)
{
	rig_detach(state);
	put_online(true);
	return 0;
}

static void begin(struct rig *rig, enum weir_window_kind window, uint64_t interval_ns)
{
	rig_begin(rig, 4096);
	rig_rule(rig, rig_resource(rig, 53, WEIR_KEY_SOURCE), window, LIMIT, interval_ns, 10);
	rig_load(rig, false);
	rig_attach(rig);
}

CLAIM_WITHIN(a_cpu_that_was_not_there_at_attach_counts_as_well, NULL, put_all_online)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 18);
	struct rig rig = {};

	put_online(false);
	begin(&rig, WEIR_WINDOW_LEAP, DAY);
	storm_one(&rig, &spec, 0, LIMIT / 4);
	put_online(true);
	storm_all(&rig, &spec, 10 * LIMIT);
	storm_mop_up(&rig, &spec, LIMIT);
	assert_int_equal(rig_passed(&rig, 0), LIMIT);
	rig_end(&rig);
}

CLAIM_WITHIN(what_a_cpu_counted_stays_while_it_is_gone, NULL, put_all_online)
{
	static const enum weir_window_kind windows[] = {WEIR_WINDOW_LEAP, WEIR_WINDOW_STRICT, WEIR_WINDOW_SMOOTH};
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 18);

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		struct rig rig = {};

		begin(&rig, windows[i], DAY);
		storm_one(&rig, &spec, GOING, LIMIT / 2);
		assert_int_equal(rig_passed(&rig, 0), LIMIT / 2);
		put_online(false);
		storm_one(&rig, &spec, 0, 10 * LIMIT);
		assert_in_range(rig_passed(&rig, 0), LIMIT / 2 + 1, LIMIT);
		put_online(true);
		storm_mop_up(&rig, &spec, LIMIT);
		assert_int_equal(rig_passed(&rig, 0), LIMIT);
		rig_end(&rig);
	}
}

/* Sends until it is stopped, a few packets at a time, from its CPU whenever that is there. */
struct traffic {
	const struct rig *rig;
	const struct packet_spec *spec;
	int cpu;
	atomic_bool *is_over;
	atomic_uint from_its_cpu; /* batches */
	uint64_t sent;
	int err;
};

#define BATCH 20

static void *traffic_main(void *data)
{
	struct traffic *traffic = data;
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(traffic->spec, frame),
		    .repeat = BATCH);
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(traffic->cpu, &set);
	while (!atomic_load(traffic->is_over) && !traffic->err) {
		/* Fails while the CPU is off: its thread runs on another. */
		sched_setaffinity(0, sizeof(set), &set);
		if (sched_getcpu() == traffic->cpu)
			atomic_fetch_add(&traffic->from_its_cpu, 1);
		traffic->err = bpf_prog_test_run_opts(weir_object_program_fd(traffic->rig->object), &options);
		traffic->sent += BATCH;
		usleep(5000);
	}
	return NULL;
}

/* Until this many more batches have gone out from its CPU; bounded by the test's time. */
static void await_batches(struct traffic *traffic, uint32_t batches)
{
	uint32_t until = atomic_load(&traffic->from_its_cpu) + batches;

	for (int i = 0; i < 6000 && (int32_t)(atomic_load(&traffic->from_its_cpu) - until) < 0; i++)
		usleep(10000);
	assert_true((int32_t)(atomic_load(&traffic->from_its_cpu) - until) >= 0);
}

static void cpus_go_and_come_back_under_traffic(struct rig *rig, const struct packet_spec *spec)
{
	atomic_bool is_over = false;
	struct traffic traffic[2] = {};
	pthread_t threads[2];
	uint64_t sent = 0;

	for (int i = 0; i < 2; i++) {
		traffic[i] = (struct traffic){.rig = rig, .spec = spec, .cpu = i, .is_over = &is_over};
		assert_int_equal(pthread_create(&threads[i], NULL, traffic_main, &traffic[i]), 0);
	}
	for (int i = 0; i < FLIPS; i++) {
		await_batches(&traffic[GOING], 2);
		put_online(false);
		await_batches(&traffic[0], 2);
		put_online(true);
		assert_in_range(rig_passed(rig, 0), 1, LIMIT);
	}
	atomic_store(&is_over, true);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(traffic[i].err, 0);
		sent += traffic[i].sent;
	}
	assert_int_equal(rig_verdicts(rig, WEIR_VERDICT_COUNT).packets, sent);
}

/* In most runs it is reached while they come and go; the rest is spent at the end. */
CLAIM_WITHIN(a_limit_holds_while_cpus_go_and_come_under_traffic, NULL, put_all_online)
{
	static const enum weir_window_kind windows[] = {WEIR_WINDOW_LEAP, WEIR_WINDOW_STRICT, WEIR_WINDOW_SMOOTH};
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 18);

	for (size_t i = 0; i < ARRAY_SIZE(windows); i++) {
		struct rig rig = {};

		begin(&rig, windows[i], DAY);
		cpus_go_and_come_back_under_traffic(&rig, &spec);
		storm_mop_up(&rig, &spec, LIMIT);
		assert_int_equal(rig_passed(&rig, 0), LIMIT);
		rig_end(&rig);
	}
}

/* Ready to sleep in memory, with all devices and all CPUs but one off, and awake again after some seconds. Not quite
 * asleep: an emulator that has slept cannot be switched off.
 */
static void nearly_sleep(void)
{
	if (!write_kernel_file("/sys/power/pm_test", "core") || !write_kernel_file("/sys/power/mem_sleep", "deep")) {
		printf("this kernel cannot sleep: %s\n", strerror(errno));
		skip();
	}
	assert_true(write_kernel_file("/sys/power/state", "mem"));
	assert_true(write_kernel_file("/sys/power/pm_test", "none"));
}

CLAIM_WITHIN(what_was_counted_stays_when_the_machine_sleeps, NULL, put_all_online)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 18);
	struct rig rig = {};

	begin(&rig, WEIR_WINDOW_LEAP, DAY);
	storm_one(&rig, &spec, GOING, LIMIT / 4);
	storm_one(&rig, &spec, 0, LIMIT / 4);
	nearly_sleep();
	assert_int_equal(rig_passed(&rig, 0), LIMIT / 2);
	storm_all(&rig, &spec, 10 * LIMIT);
	storm_mop_up(&rig, &spec, LIMIT);
	assert_int_equal(rig_passed(&rig, 0), LIMIT);
	rig_end(&rig);
}

RUN_CLAIMS(NULL, NULL)
