// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a packet meets is taken from the packet before it, where both are alike (weir_meets_the_same). Random packets
 * are compared with the model elsewhere (replay_test); here are the cases that would go wrong first.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "../lib/packets.h"
#include "../lib/rig.h"
#include "util.h"

#define PORT_ONE 53
#define PORT_TWO 123

static bool udp_passes(struct rig *rig, uint16_t port)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", port, 18);
	static uint8_t frame[PACKET_BYTES_MAX];

	return rig_passes(rig, RIG_START_NS, frame, packet_build(&spec, frame));
}

static void add_limit(struct rig *rig, uint16_t port, uint64_t threshold)
{
	rig_rule(rig, rig_resource(rig, port, WEIR_KEY_SOURCE), WEIR_WINDOW_LEAP, threshold, SECOND, 10);
}

static void ports_that_take_turns_are_counted_by_their_own_rules(void **state)
{
	struct rig rig = {};

	rig_begin(&rig, 16384);
	add_limit(&rig, PORT_ONE, 3);
	add_limit(&rig, PORT_TWO, 5);
	rig_load(&rig, true);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(udp_passes(&rig, PORT_ONE), i < 3);
		assert_int_equal(udp_passes(&rig, PORT_TWO), i < 5);
		/* ... and one that no rule is about, between two that are alike */
		assert_true(udp_passes(&rig, PORT_TWO + 1));
	}
	assert_int_equal(rig_passed(&rig, 0), 3);
	assert_int_equal(rig_passed(&rig, 1), 5);
	rig_end(&rig);
}

static void frame_that_is_no_packet_belongs_to_no_resource(void **state)
{
	static uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	struct rig rig = {};

	rig_begin(&rig, 16384);
	add_limit(&rig, PORT_ONE, 3);
	rig_load(&rig, true);
	assert_true(udp_passes(&rig, PORT_ONE));
	assert_true(rig_passes(&rig, RIG_START_NS, arp, sizeof(arp)));
	assert_int_equal(weir_object_lab(rig.object)->resource_count, 0);
	assert_int_equal(rig_passed(&rig, 0), 1);
	assert_true(udp_passes(&rig, PORT_ONE));
	assert_int_equal(rig_passed(&rig, 0), 2);
	rig_end(&rig);
}

/* The places of rules and resources are those of one load. */
static void programs_of_two_loads_do_not_take_what_the_other_found(void **state)
{
	struct rig old = {}, new = {};

	rig_begin(&old, 16384);
	add_limit(&old, PORT_ONE, 3);
	rig_load(&old, true);
	rig_begin(&new, 16384);
	new.before = &old;
	add_limit(&new, PORT_TWO, 1);
	add_limit(&new, PORT_ONE, 5);
	rig_load(&new, true);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(udp_passes(&old, PORT_ONE), i < 3);
		assert_int_equal(udp_passes(&new, PORT_ONE), i < 5);
	}
	assert_int_equal(rig_passed(&new, 0), 0);
	assert_int_equal(rig_passed(&new, 1), 5);
	rig_end(&new);
	rig_end(&old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_that_take_turns_are_counted_by_their_own_rules),
		cmocka_unit_test(frame_that_is_no_packet_belongs_to_no_resource),
		cmocka_unit_test(programs_of_two_loads_do_not_take_what_the_other_found),
	};

	return cmocka_run_group_tests_name("meeting", tests, NULL, NULL);
}
