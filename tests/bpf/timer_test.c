// SPDX-License-Identifier: GPL-2.0-only
/*
 * Time without a clock (bpf/timer.h): where the next timer interrupt says that the bucket is not over, no clock is
 * read, and nothing is judged in a bucket that was over. By the real clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <linux/bpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../../bpf/work.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "host.h"
#include "util.h"

#define PORT 53
#define NARROW_LIMIT 30000u /* narrow rows hold it */
#define WIDE_LIMIT 1000000u

/* What the program needs is in kernels since 6.2. */
static void require_timers(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has_cast = btf && btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;

	btf__free(btf);
	if (!has_cast) {
		print_message("this kernel has no bpf_rdonly_cast\n");
		skip();
	}
}

static bool passes(const struct rig *rig, uint16_t port)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", port, 18);
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(&spec, frame));

	assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options), 0);
	return options.retval == XDP_PASS;
}

/* What the program knew of the latest packet on a CPU. */
static struct weir_work work_on(const struct rig *rig, int cpu)
{
	_cleanup_(weir_freep) struct weir_totals *totals = calloc(weir_host_cpus(), sizeof(*totals));
	__u32 zero = 0;

	assert_non_null(totals);
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig->object, WEIR_MAP_TOTALS), &zero, totals), 0);
	return *(const struct weir_work *)totals[cpu].program_private;
}

static void timers_of_every_cpu_are_learned(void **state)
{
	cpu_set_t allowed, after;
	struct rig rig = {};

	rig_begin(&rig, 512);
	require_timers();
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, NARROW_LIMIT, SECOND, 10);
	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	rig_load(&rig, false);
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&allowed, &after));
	for (int cpu = 0, before = -1; cpu < weir_host_cpus(); cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		assert_int_not_equal(work_on(&rig, cpu).timers, 0);
		if (before >= 0)
			assert_int_not_equal(work_on(&rig, cpu).timers, work_on(&rig, before).timers);
		before = cpu;
	}
	rig_end(&rig);
}

/* ---- whether the clock is read ---- */

#define PACKETS 400
#define INTERVAL_NS SECOND
#define SAMPLES 5

/* Until a bucket begins; packets take some milliseconds of it. */
static void await_bucket(void)
{
	const uint64_t bucket_ns = INTERVAL_NS / SAMPLES;

	nanosleep(&(struct timespec){.tv_nsec = bucket_ns - weir_host_now_ns() % bucket_ns}, NULL);
}

/* Of so many packets that pass, for how many was the clock read? */
static uint32_t clock_reads(const struct rig *rig)
{
	cpu_set_t before;
	uint32_t reads = 0;

	rig_stay(&before);
	await_bucket();
	for (int i = 0; i < PACKETS; i++) {
		assert_true(passes(rig, PORT));
		reads += work_on(rig, sched_getcpu()).has_now;
	}
	rig_roam(&before);
	return reads;
}

/* One rule or several, with this window and limit. */
static uint32_t clock_reads_of(enum weir_window_kind window, uint64_t limit, int rules)
{
	struct rig rig = {};
	uint32_t reads;
	size_t resource;

	rig_begin(&rig, 512);
	require_timers();
	resource = rig_resource(&rig, PORT, WEIR_KEY_SOURCE);
	for (int i = 0; i < rules; i++)
		rig_rule(&rig, resource, window, limit + i, INTERVAL_NS, SAMPLES);
	rig_load(&rig, false);
	reads = clock_reads(&rig);
	print_message("%u of %u packets read the clock\n", reads, PACKETS);
	rig_end(&rig);
	return reads;
}

/* Its first one does, and some behind, should this CPU be kept from working. */
static void packet_within_a_bucket_of_leap_reads_no_clock(void **state)
{
	assert_true(clock_reads_of(WEIR_WINDOW_LEAP, NARROW_LIMIT, 1) < PACKETS / 4);
	assert_true(clock_reads_of(WEIR_WINDOW_LEAP, WIDE_LIMIT, 1) < PACKETS / 4);
	assert_true(clock_reads_of(WEIR_WINDOW_LEAP, NARROW_LIMIT, 3) < PACKETS / 4);
	assert_true(clock_reads_of(WEIR_WINDOW_LEAP, WIDE_LIMIT, 3) < PACKETS / 4);
}

/* What they decide depends on the nanosecond. */
static void packet_of_strict_and_smooth_reads_the_clock(void **state)
{
	assert_int_equal(clock_reads_of(WEIR_WINDOW_SMOOTH, NARROW_LIMIT, 1), PACKETS);
	assert_int_equal(clock_reads_of(WEIR_WINDOW_STRICT, NARROW_LIMIT, 1), PACKETS);
}

/* Let the program believe this of every CPU's timers. */
static void make_believe(const struct rig *rig, uint64_t timers, uint64_t lagged_ns)
{
	_cleanup_(weir_freep) struct weir_totals *totals = calloc(weir_host_cpus(), sizeof(*totals));
	int fd = weir_object_map_fd(rig->object, WEIR_MAP_TOTALS);
	__u32 zero = 0;

	assert_non_null(totals);
	assert_int_equal(bpf_map_lookup_elem(fd, &zero, totals), 0);
	for (int cpu = 0; cpu < weir_host_cpus(); cpu++) {
		struct weir_work *work = (struct weir_work *)totals[cpu].program_private;

		if (timers)
			work->timers = timers;
		work->lagged_ns = lagged_ns;
	}
	assert_int_equal(bpf_map_update_elem(fd, &zero, totals, 0), 0);
}

#define NOWHERE 8 /* no kernel lets a program read the start of the address space: it reads as zero */

/* In the first bucket since boot as well: of a day, on a host that has been up for less. */
static void where_the_timer_tells_nothing_the_clock_is_read(void **state)
{
	static const uint64_t intervals_ns[] = {SECOND, 86400 * SECOND};

	for (size_t i = 0; i < ARRAY_SIZE(intervals_ns); i++) {
		struct rig rig = {};

		rig_begin(&rig, 512);
		require_timers();
		rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, NARROW_LIMIT,
			 intervals_ns[i], 1);
		rig_load(&rig, false);
		passes(&rig, PORT);
		make_believe(&rig, NOWHERE, 0);
		assert_int_equal(clock_reads(&rig), PACKETS);
		rig_end(&rig);
	}
}

/* As an emulated machine has them. It is forgiven after ten minutes. */
static void after_a_late_interrupt_the_clock_is_read(void **state)
{
	struct rig rig = {};

	rig_begin(&rig, 512);
	require_timers();
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, NARROW_LIMIT, INTERVAL_NS, SAMPLES);
	rig_load(&rig, false);
	make_believe(&rig, 0, weir_host_now_ns());
	assert_int_equal(clock_reads(&rig), PACKETS);
	make_believe(&rig, 0, weir_host_now_ns() - 601 * SECOND);
	assert_true(clock_reads(&rig) < PACKETS / 4);
	rig_end(&rig);
}

/* ---- whether it is the right bucket ---- */

#define BUCKET_NS (50 * MS) /* the shortest that narrow rows know */
#define WATCH_NS (2 * SECOND)
#define CPUS 2

struct watch {
	const struct rig *rig;
	int cpu;
	uint32_t packets, without_clock, late;
	pthread_t thread;
};

/* Send packets all the time, of a flow that is never full. */
static void *watch(void *data)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", PORT, 18);
	_cleanup_(weir_freep) struct weir_totals *totals = calloc(weir_host_cpus(), sizeof(*totals));
	uint8_t frame[PACKET_BYTES_MAX];
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = packet_build(&spec, frame));
	struct watch *watch = data;
	uint64_t end_ns;

	rig_pin(watch->cpu);
	end_ns = weir_host_now_ns() + WATCH_NS;
	for (uint64_t before_ns; (before_ns = weir_host_now_ns()) < end_ns; watch->packets++) {
		const struct weir_work *work;
		const struct weir_clock *clk;
		__u32 zero = 0;

		if (bpf_prog_test_run_opts(weir_object_program_fd(watch->rig->object), &options) ||
		    bpf_map_lookup_elem(weir_object_map_fd(watch->rig->object, WEIR_MAP_TOTALS), &zero, totals))
			break;
		work = (const struct weir_work *)totals[watch->cpu].program_private;
		watch->without_clock += !work->has_now;
		clk = &work->narrow[watch->rig->image->rules[0].timing % WEIR_TIMINGS_NARROW];
		watch->late += clk->end_ns <= before_ns;
	}
	return NULL;
}

static void nothing_is_judged_in_a_bucket_that_is_over(void **state)
{
	struct watch watches[CPUS] = {};
	struct rig rig = {};
	int cpu[CPUS];

	rig_require(CPUS);
	rig_begin(&rig, 512);
	require_timers();
	rig_rule(&rig, rig_resource(&rig, PORT, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, NARROW_LIMIT, 10 * BUCKET_NS, 10);
	rig_load(&rig, false);
	rig_attach(&rig);
	rig_cpus(cpu, CPUS);
	for (int i = 0; i < CPUS; i++) {
		watches[i] = (struct watch){.rig = &rig, .cpu = cpu[i]};
		assert_int_equal(pthread_create(&watches[i].thread, NULL, watch, &watches[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		pthread_join(watches[i].thread, NULL);
		print_message("%u packets, %u without a clock\n", watches[i].packets, watches[i].without_clock);
		assert_true(watches[i].packets > 1000);
		assert_true(watches[i].without_clock > watches[i].packets / 4);
		assert_int_equal(watches[i].late, 0);
	}
	rig_end(&rig);
}

/* Attaching is to a device that nobody else has: the loopback of a namespace of our own. */
static int enter_own_network(void **state)
{
	return geteuid() == 0 ? unshare(CLONE_NEWNET) : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timers_of_every_cpu_are_learned),
		cmocka_unit_test(packet_within_a_bucket_of_leap_reads_no_clock),
		cmocka_unit_test(packet_of_strict_and_smooth_reads_the_clock),
		cmocka_unit_test(where_the_timer_tells_nothing_the_clock_is_read),
		cmocka_unit_test(after_a_late_interrupt_the_clock_is_read),
		cmocka_unit_test_teardown(nothing_is_judged_in_a_bucket_that_is_over, rig_detach),
	};

	return cmocka_run_group_tests_name("timer", tests, enter_own_network, NULL);
}
