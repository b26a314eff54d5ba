// SPDX-License-Identifier: GPL-2.0-only
/*
 * More flows under token buckets and Throttling than their tables have places: who is pushed out while its entry counts
 * leaves a ghost, and goes on with it (bpf/ghosts.h). Under the virtual clock and on one CPU; flows are hosts that send
 * UDP.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "../lib/lab.h"
#include "../lib/packets.h"
#include "../lib/rig.h"

#define PORT 53
#define SOURCE_OFFSET (14 + 12) /* of the IPv4 source address in the frame */
#define ROWS 512u
#define STRANGERS 1000000u /* hosts from here on push others out */

enum kind { TOKENS, THROTTLING, KINDS };
static const char *const kind_names[KINDS] = {"tokens", "Throttling"};

struct crowd {
	struct rig rig;
	uint64_t now_ns;
	uint32_t stranger;
	uint32_t places;
	uint8_t frame[PACKET_BYTES_MAX];
	size_t frame_bytes;
};

/* One resource keyed by source: `limit` packets an interval. A bucket holds as many; none of Throttling's waits. */
static void crowd_open(struct crowd *crowd, enum kind kind, uint64_t limit, uint64_t interval_ns)
{
	struct packet_spec spec = packet_udp("10.0.0.0", 1000, "192.0.2.53", PORT, 0);
	struct weir_ruleset_rule *rule;
	const uint32_t *sizes;

	memset(crowd, 0, sizeof(*crowd));
	crowd->now_ns = RIG_START_NS;
	crowd->stranger = STRANGERS;
	crowd->frame_bytes = packet_build(&spec, crowd->frame);
	rig_begin(&crowd->rig, ROWS);
	rule = rig_rule(&crowd->rig, rig_resource(&crowd->rig, PORT, WEIR_KEY_SOURCE),
			kind == TOKENS ? WEIR_WINDOW_TOKENS : WEIR_WINDOW_LEAP, limit, interval_ns, 1);
	if (kind == THROTTLING)
		rule->behavior = WEIR_BEHAVIOR_THROTTLING;
	else
		rule->burst_micro = limit * WEIR_MICRO;
	rig_load(&crowd->rig, true);
	sizes = crowd->rig.image->config.sizes;
	crowd->places = sizes[kind == TOKENS ? WEIR_TABLE_TOKEN_FLOWS : WEIR_TABLE_THROTTLED_FLOWS] * WEIR_FLOW_WAYS;
	assert_true(sizes[WEIR_TABLE_GHOSTS] * WEIR_GHOST_WAYS >= 4 * crowd->places);
}

static uint32_t host_passes(struct crowd *crowd, uint32_t host, uint32_t packets)
{
	const uint32_t address = htonl(0x0a000000 + host);
	uint32_t passed = 0;

	memcpy(crowd->frame + SOURCE_OFFSET, &address, sizeof(address));
	while (packets--)
		passed += rig_passes(&crowd->rig, crowd->now_ns, crowd->frame, crowd->frame_bytes);
	return passed;
}

static void push_out(struct crowd *crowd, uint32_t hosts, uint32_t packets)
{
	while (hosts--)
		host_passes(crowd, crowd->stranger++, packets);
}

static uint64_t evicted(const struct crowd *crowd)
{
	return rig_rule_counters(&crowd->rig, 0).evicted;
}

/* ---- one flow ---- */

static void a_flow_that_was_pushed_out_goes_on_with_what_it_lacks(void **state)
{
	for (enum kind kind = 0; kind < KINDS; kind++) {
		const uint32_t at_once = kind == TOKENS ? 4 : 1; /* a planned packet is alone */
		struct crowd crowd;

		crowd_open(&crowd, kind, 4, 4 * SECOND);
		assert_int_equal(host_passes(&crowd, 1, 9), at_once);
		/* They use as much, and are refused as it was; then twice as many come, so that it has gone by then. */
		push_out(&crowd, 2 * crowd.places, 9);
		assert_true(evicted(&crowd) > crowd.places / 2);
		assert_int_equal(host_passes(&crowd, 1, 9), 0);
		push_out(&crowd, crowd.places / 4, 9);
		crowd.now_ns += SECOND - 1;
		assert_int_equal(host_passes(&crowd, 1, 9), 0);
		push_out(&crowd, crowd.places / 4, 9);
		/* A ghost is late by two steps of the clock at most. */
		crowd.now_ns += 2 << WEIR_KEEP_STEP_BITS;
		assert_int_equal(host_passes(&crowd, 1, 9), 1);
		rig_end(&crowd.rig);
	}
}

static void a_new_flow_has_nothing_to_do_with_ghosts(void **state)
{
	for (enum kind kind = 0; kind < KINDS; kind++) {
		struct crowd crowd;

		crowd_open(&crowd, kind, 4, 4 * SECOND);
		push_out(&crowd, 3 * crowd.places, 9);
		for (uint32_t host = 1; host <= 10000; host++)
			assert_int_equal(host_passes(&crowd, host, 1), 1);
		rig_end(&crowd.rig);
	}
}

/* Six a minute, one packet a second, and spoofed sources that push it out: so many of them count at once as there are
 * places, and half as many ghosts again.
 */
static void a_slow_limit_holds_in_a_flood_of_new_sources(void **state)
{
	enum { MINUTES = 4 };

	for (enum kind kind = 0; kind < KINDS; kind++) {
		struct crowd crowd;
		uint32_t passed = 0;

		crowd_open(&crowd, kind, 6, 60 * SECOND);
		for (uint32_t second = 0; second < MINUTES * 60; second++) {
			push_out(&crowd, crowd.places / 4, 1);
			passed += host_passes(&crowd, 1, 1);
			crowd.now_ns += SECOND;
		}
		print_message("%s: %u of %u\n", kind_names[kind], passed, MINUTES * 60);
		assert_in_range(passed, 6 * MINUTES - 3, 6 * MINUTES + (kind == TOKENS ? 6 : 1));
		rig_end(&crowd.rig);
	}
}

/* ---- all flows ---- */

#define LIMIT 2u /* a second */
#define TURNS (10 * LIMIT)
#define SECONDS 4u
#define CALM 100u /* one host in so many keeps to half its limit */

static bool sends(uint32_t host, uint32_t turn)
{
	return host % CALM ? true : turn % TURNS == host / CALM % TURNS;
}

/* Each host sends at ten times its limit, but for the calm ones; the hosts in turn, or in any order. */
static void crowd_holds(enum kind kind, uint32_t hosts_a_place, bool in_turn)
{
	uint64_t passed = 0, allowed, calm_sent = 0, calm_passed = 0;
	uint32_t random = 1, hosts;
	struct crowd crowd;

	crowd_open(&crowd, kind, LIMIT, SECOND);
	hosts = hosts_a_place * crowd.places;
	for (uint32_t turn = 0; turn < SECONDS * TURNS; turn++)
		for (uint32_t i = 0; i < hosts; i++) {
			uint32_t host = i, one;

			random = random * 1664525 + 1013904223;
			crowd.now_ns += SECOND / TURNS / hosts;
			if (!in_turn && i % CALM)
				host = (uint32_t)((uint64_t)random * hosts >> 32);
			if ((!in_turn && i % CALM && host % CALM == 0) || !sends(host, turn))
				continue;
			one = host_passes(&crowd, host, 1);
			passed += one;
			calm_sent += host % CALM == 0;
			calm_passed += host % CALM == 0 ? one : 0;
		}
	/* A bucket is full at first; a first packet need not wait. */
	allowed = (uint64_t)hosts * (LIMIT * SECONDS + (kind == TOKENS ? LIMIT : 1));
	print_message(
		"%s, %u hosts a place, %s: %llu passed of %llu allowed, %llu evicted; calm hosts lose %llu of %llu\n",
		kind_names[kind], hosts_a_place, in_turn ? "in turn" : "in any order", (unsigned long long)passed,
		(unsigned long long)allowed, (unsigned long long)evicted(&crowd),
		(unsigned long long)(calm_sent - calm_passed), (unsigned long long)calm_sent);
	assert_true(passed <= allowed * 11 / 10);
	assert_true((calm_sent - calm_passed) * 100 <= calm_sent);
	rig_end(&crowd.rig);
}

static void a_crowd_of_three_times_the_places_keeps_its_limits(void **state)
{
	for (enum kind kind = 0; kind < KINDS; kind++)
		for (uint32_t hosts_a_place = 1; hosts_a_place <= 3; hosts_a_place++) {
			crowd_holds(kind, hosts_a_place, true);
			crowd_holds(kind, hosts_a_place, false);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_flow_that_was_pushed_out_goes_on_with_what_it_lacks),
		cmocka_unit_test(a_new_flow_has_nothing_to_do_with_ghosts),
		cmocka_unit_test(a_slow_limit_holds_in_a_flood_of_new_sources),
		cmocka_unit_test(a_crowd_of_three_times_the_places_keeps_its_limits),
	};

	return cmocka_run_group_tests(tests, lab_stay_on_one_cpu, NULL);
}
