// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exact on sixteen CPUs: all of them send to one flow at once, ten times its limit in all, and then one after the
 * other. What passed is the limit. Runs in a virtual machine (tests/vm/run --cpus 16), whose CPUs the host
 * stops wherever it likes; on a machine with fewer CPUs it uses those there are. The windows are a day long, so that
 * what passed is one sum.
 */
#include <sched.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "../lib/storm.h"
#include "host/host.h"

#define OFFERED 10 /* times the limit */
#define DAY (86400 * SECOND)

/*
 * What passes of the flow of this source. In the storm a CPU that the host stops keeps what it holds on lease, and all
 * who meet at the last unit may step back: what it left is there for who comes next.
 */
static uint64_t passed_of(const struct rig *rig, const char *source, uint64_t limit, uint64_t *ret_at_once)
{
	struct packet_spec spec = packet_udp(source, 1024, "198.51.100.1", 53, 18);
	uint64_t before = rig_passed(rig, 0);

	storm_all(rig, &spec, limit * OFFERED);
	*ret_at_once = rig_passed(rig, 0) - before;
	storm_mop_up(rig, &spec, limit / OFFERED + 2);
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

CASE(limits_of_one_are_exact, check_limit(1, WEIR_KEY_SOURCE, WEIR_WINDOW_LEAP, 50));
CASE(limits_of_ten_are_exact, check_limit(10, WEIR_KEY_SOURCE, WEIR_WINDOW_STRICT, 50));
CASE(limits_of_a_thousand_are_exact, check_limit(1000, WEIR_KEY_SOURCE, WEIR_WINDOW_LEAP, 20));
CASE(limits_of_100000_are_exact, check_limit(100000, WEIR_KEY_SOURCE, WEIR_WINDOW_STRICT, 2));
CASE(a_limit_of_a_whole_resource_is_exact, check_limit(1000, 0, WEIR_WINDOW_LEAP, 1));

static int enter_own_network(void **state)
{
	return unshare(CLONE_NEWNET) ? -1 : 0;
}

RUN_CLAIMS(enter_own_network, NULL)
