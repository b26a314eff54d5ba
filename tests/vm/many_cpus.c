// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exact on sixteen CPUs: all of them send to one flow at once, ten times its limit in all, and then one after the
 * other. What passed is the limit. Runs in a virtual machine (tests/vm/run --cpus 16), whose CPUs the host
 * stops wherever it likes; on a machine with fewer CPUs it uses those there are. The windows are a day long, so that
 * what passed is one sum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "../lib/packets.h"
#include "../lib/rig.h"
#include "host.h"
#include "util.h"

#define CPUS_MAX 64
#define OFFERED 10 /* times the limit */
#define DAY (86400 * SECOND)

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

/*
 * Each CPU alone, twice: first it spends what it holds on lease, while others hold theirs, then nobody holds anything.
 */
static void mop_up(const struct rig *rig, const struct packet_spec *spec, uint64_t packets)
{
	cpu_set_t before;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	for (int i = 0; i < 2 * weir_host_cpus(); i++) {
		uint8_t frame[PACKET_BYTES_MAX];
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .repeat = packets);

		options.data_size_in = packet_build(spec, frame);
		rig_pin(i % weir_host_cpus());
		assert_int_equal(bpf_prog_test_run_opts(weir_object_program_fd(rig->object), &options), 0);
	}
	rig_roam(&before);
}

/* All CPUs at one flow. */
static void storm(const struct rig *rig, const struct packet_spec *spec, uint64_t packets)
{
	struct sender senders[CPUS_MAX] = {};
	pthread_t threads[CPUS_MAX];
	pthread_barrier_t start;
	int cpus = weir_host_cpus();

	assert_in_range(cpus, 1, CPUS_MAX);
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

/*
 * What passes of the flow of this source. In the storm a CPU that the host stops keeps what it holds on lease, and all
 * who meet at the last unit may step back: what it left is there for who comes next.
 */
static uint64_t passed_of(const struct rig *rig, const char *source, uint64_t limit, uint64_t *ret_at_once)
{
	struct packet_spec spec = packet_udp(source, 1024, "198.51.100.1", 53, 18);
	uint64_t before = rig_passed(rig, 0);

	storm(rig, &spec, limit * OFFERED);
	*ret_at_once = rig_passed(rig, 0) - before;
	mop_up(rig, &spec, limit / OFFERED + 2);
	return rig_passed(rig, 0) - before;
}

static void check_limit(uint64_t limit, uint32_t key, enum weir_window_kind window, int rounds)
{
	uint64_t passed, at_once, least_at_once = UINT64_MAX, least = UINT64_MAX, most = 0;
	struct rig rig;
	char source[32];

	rig_begin(&rig, 4096);
	rig_rule(&rig, rig_resource(&rig, 53, key), window, limit, DAY, 10);
	rig_load(&rig, false);
	rig_attach(&rig);
	for (int i = 0; i < rounds; i++) {
		snprintf(source, sizeof(source), "10.0.%d.%d", i / 250, i % 250);
		passed = passed_of(&rig, source, limit, &at_once);
		least_at_once = at_once < least_at_once ? at_once : least_at_once;
		least = passed < least ? passed : least;
		most = passed > most ? passed : most;
	}
	print_message("cpus: %d at one flow, limit %llu: %llu to %llu passed, of them %llu and more at once\n",
		      weir_host_cpus(), (unsigned long long)limit, (unsigned long long)least, (unsigned long long)most,
		      (unsigned long long)least_at_once);
	rig_end(&rig);
	assert_int_equal(most, limit);
	assert_int_equal(least, limit);
}

static void limits_of_one_are_exact(void **state)
{
	check_limit(1, WEIR_KEY_SOURCE, WEIR_WINDOW_LEAP, 50);
}

static void limits_of_ten_are_exact(void **state)
{
	check_limit(10, WEIR_KEY_SOURCE, WEIR_WINDOW_STRICT, 50);
}

static void limits_of_a_thousand_are_exact(void **state)
{
	check_limit(1000, WEIR_KEY_SOURCE, WEIR_WINDOW_LEAP, 20);
}

static void limits_of_100000_are_exact(void **state)
{
	check_limit(100000, WEIR_KEY_SOURCE, WEIR_WINDOW_STRICT, 2);
}

static void a_limit_of_a_whole_resource_is_exact(void **state)
{
	check_limit(1000, 0, WEIR_WINDOW_LEAP, 1);
}

static int enter_own_network(void **state)
{
	return unshare(CLONE_NEWNET) ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_of_one_are_exact),
		cmocka_unit_test(limits_of_ten_are_exact),
		cmocka_unit_test(limits_of_a_thousand_are_exact),
		cmocka_unit_test(limits_of_100000_are_exact),
		cmocka_unit_test(a_limit_of_a_whole_resource_is_exact),
	};

	return cmocka_run_group_tests(tests, enter_own_network, NULL);
}
