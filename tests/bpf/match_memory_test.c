// SPDX-License-Identifier: GPL-2.0-only
/*
 * A packet that is like the previous one takes its matches (weir_is_matched_as_before). Random packets
 * are compared with the model elsewhere (replay_test); here are the cases that would go wrong first.
 */
#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "../lib/rig.h"
#include "base/util.h"
#include "host/host.h"
#include "weir_prefixes.h"

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

CLAIM(ports_that_take_turns_are_counted_by_their_own_rules)
{
	_cleanup_(rig_end) struct rig rig = {};

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
}

CLAIM(frame_that_is_no_packet_belongs_to_no_resource)
{
	static uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	_cleanup_(rig_end) struct rig rig = {};

	rig_begin(&rig, 16384);
	add_limit(&rig, PORT_ONE, 3);
	rig_load(&rig, true);
	assert_true(udp_passes(&rig, PORT_ONE));
	assert_true(rig_passes(&rig, RIG_START_NS, arp, sizeof(arp)));
	assert_int_equal(weir_object_harness(rig.object)->resource_count, 0);
	assert_int_equal(rig_passed(&rig, 0), 1);
	assert_true(udp_passes(&rig, PORT_ONE));
	assert_int_equal(rig_passed(&rig, 0), 2);
}

/* A node of the trie of sources leads to one that does not exist. With one resource there is a single word to look at
 * (WEIR_ONLY_WORDS); with seventy, vectors.
 */
CLAIM(a_packet_whose_prefix_is_not_to_be_found_is_an_error_and_dropped)
{
	struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", PORT_ONE, 18);
	static uint8_t frame[PACKET_BYTES_MAX];
	size_t bytes = packet_build(&spec, frame);

	for (int resources = 1; resources <= 70; resources += 69) {
		volatile struct weir_harness *harness;
		struct weir_prefix_node node;
		_cleanup_(rig_end) struct rig rig = {};
		__u32 number = 0;
		int fd;

		rig_begin(&rig, 512);
		for (int i = 0; i < resources; i++) {
			size_t place = rig_resource(&rig, PORT_ONE + i, 0);
			struct weir_match *match = &rig.ruleset->resources[place].match;

			match->source = calloc(1, sizeof(*match->source));
			assert_non_null(match->source);
			match->source[0] = (struct weir_prefix){.family = 4, .bits = 24, .address = {192, 0, 2}};
			match->source_count = 1;
		}
		rig_load(&rig, true);
		assert_true(rig_passes(&rig, RIG_START_NS, frame, bytes));
		assert_int_equal(weir_object_harness(rig.object)->resource_count, 1);
		fd = rig_map_fd(&rig, "prefix_nodes");
		for (; !bpf_map_lookup_elem(fd, &number, &node); number++) {
			node.outside = WEIR_PREFIX_IS_NODE | 0xffffff;
			for (size_t i = 0; i < ARRAY_SIZE(node.entry); i++)
				node.entry[i] = node.outside;
			assert_int_equal(bpf_map_update_elem(fd, &number, &node, BPF_EXIST), 0);
		}
		close(fd);
		harness = weir_object_harness(rig.object);
		spec = packet_udp("192.0.2.2", 1024, "198.51.100.1", PORT_ONE, 18);
		bytes = packet_build(&spec, frame);
		assert_int_equal(weir_object_evaluate(rig.object, frame, bytes), XDP_DROP);
		assert_int_equal(harness->verdict, WEIR_VERDICT_ERROR);
		assert_int_equal(harness->resource_count, 0);
	}
}

/* Types 130 to 137, and 143; listeners are asked, and report, behind a hop-by-hop header. */
CLAIM(unmatched_drop_spares_discovery_of_neighbours_and_listeners)
{
	static uint8_t frame[PACKET_BYTES_MAX];
	_cleanup_(rig_end) struct rig rig = {};

	rig_begin(&rig, 512);
	rig.ruleset->settings.drop_unmatched = true;
	add_limit(&rig, PORT_ONE, 3);
	rig_load(&rig, true);
	for (uint32_t type = 0; type < 256; type++)
		for (uint32_t extensions = 0; extensions < 2; extensions++) {
			struct packet_spec spec = {.protocol = IPPROTO_ICMPV6, .extension_count = extensions};
			size_t bytes;

			packet_source(&spec, "fe80::1");
			packet_destination(&spec, "ff02::1");
			spec.icmp_type = type;
			bytes = packet_build(&spec, frame);
			assert_int_equal(rig_passes(&rig, RIG_START_NS, frame, bytes),
					 (type >= 130 && type <= 137) || type == 143);
		}
	assert_false(udp_passes(&rig, PORT_TWO));
}

/* ... which would say of what has passed that it may come back. */
CLAIM(cells_of_a_shadow_are_not_marked_as_unspent)
{
	_cleanup_(weir_freep) struct weir_wide_row *rows = calloc(weir_host_cpus(), sizeof(*rows));
	uint64_t units = 0, flags = 0;
	struct weir_ruleset_rule *rule;
	size_t referred, resource;
	_cleanup_(rig_end) struct rig rig = {};
	__u32 slot;

	assert_non_null(rows);
	rig_begin(&rig, 512);
	referred = rig_resource(&rig, PORT_ONE, 0);
	resource = rig_resource(&rig, PORT_TWO, 0);
	rule = rig_rule(&rig, resource, WEIR_WINDOW_LEAP, 3, SECOND, 10);
	rule->relation = WEIR_RELATION_ASSOCIATED;
	rule->ref_resource = referred;
	rig_load(&rig, true);
	assert_true(udp_passes(&rig, PORT_ONE));
	assert_true(udp_passes(&rig, PORT_ONE));
	slot = rig.image->rules[rig.image->rules[0].shadow].slot;
	assert_int_equal(bpf_map_lookup_elem(weir_object_map_fd(rig.object, WEIR_TABLE_LONE_ROWS), &slot, rows), 0);
	for (int cpu = 0; cpu < weir_host_cpus(); cpu++)
		for (int i = 0; i < WEIR_RING_CELLS; i++) {
			units += rows[cpu].cell[i] & ~WEIR_WIDE_UNSPENT;
			flags |= rows[cpu].cell[i] & WEIR_WIDE_UNSPENT;
		}
	assert_int_equal(units, 2);
	assert_int_equal(flags, 0);
}

RUN_CLAIMS(NULL, NULL)
