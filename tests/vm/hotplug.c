// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPUs that go and come back: what they have counted stays, one that was not there at attach counts as well, and none
 * goes by a timer that was another's. Takes a CPU off, so it runs in a virtual machine alone (tests/vm/run). The
 * windows are a day long, so that what passed is one sum.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "../lib/packets.h"
#include "../lib/rig.h"
#include "../lib/storm.h"
#include "base/util.h"
#include "host/host.h"

#define LIMIT 1000
#define DAY (86400 * SECOND)
#define GOING 1 /* the CPU that goes and comes back; the other is 0 */

/* Take the CPU off, or put it back. */
static void put_online(bool is_online)
{
	_cleanup_(weir_closep) int fd = open("/sys/devices/system/cpu/cpu1/online", O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, is_online ? "1" : "0", 1), 1);
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

static void a_cpu_that_was_not_there_at_attach_counts_as_well(void **state)
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

static void what_a_cpu_counted_stays_while_it_is_gone(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_cpu_that_was_not_there_at_attach_counts_as_well, put_all_online),
		cmocka_unit_test_teardown(what_a_cpu_counted_stays_while_it_is_gone, put_all_online),
	};

	return cmocka_run_group_tests_name("hotplug", tests, NULL, NULL);
}
