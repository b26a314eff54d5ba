// SPDX-License-Identifier: GPL-2.0-only
/* Who sent a frame, and to whom: of whatever begins like a packet, and of nothing that does not. */
#include <string.h>

#include "../lib/claims.h"
#include "../lib/packets.h"
#include "base/util.h"
#include "frames/link_type.h"

#define TCP 6
#define UDP 17
#define ICMP 1
#define GRE 47
#define SCTP 132
#define UDP_LITE 136
#define HOP_BY_HOP 0
#define FRAGMENT 44

static uint8_t frame[PACKET_BYTES_MAX];

static struct packet_spec spec_of(const char *source, const char *destination, uint8_t protocol)
{
	struct packet_spec spec = packet_udp(source, 4321, destination, 53, 10);

	spec.protocol = protocol;
	return spec;
}

static struct packet_spec ipv4(uint8_t protocol)
{
	return spec_of("198.51.100.7", "192.0.2.53", protocol);
}

static struct packet_spec ipv6(uint8_t protocol)
{
	return spec_of("2001:db8::7", "2001:db8:1::53", protocol);
}

static struct weir_ends ends_of(const struct packet_spec *spec)
{
	struct weir_ends ends;

	memset(frame, 0, sizeof(frame));
	assert_true(weir_frame_ends(frame, packet_build(spec, frame), &ends));
	return ends;
}

static void assert_addresses(const struct packet_spec *spec, const struct weir_ends *ends)
{
	assert_int_equal(ends->family, spec->family);
	assert_memory_equal(ends->source, spec->source, sizeof(ends->source));
	assert_memory_equal(ends->destination, spec->destination, sizeof(ends->destination));
}

static void check(const struct packet_spec *spec, uint8_t protocol, bool has_ports)
{
	struct weir_ends ends = ends_of(spec);

	assert_addresses(spec, &ends);
	assert_int_equal(ends.protocol, protocol);
	assert_int_equal(ends.has_ports, has_ports);
	assert_int_equal(ends.source_port, has_ports ? 4321 : 0);
	assert_int_equal(ends.destination_port, has_ports ? 53 : 0);
}

CLAIM(both_families_show_addresses_and_protocols_with_ports_show_those)
{
	/* The builder knows no UDP-Lite, whose first bytes are ports as those of UDP: see below. */
	static const struct {
		uint8_t protocol;
		bool has_ports;
	} rows[] = {{TCP, true}, {UDP, true}, {SCTP, true}, {ICMP, false}, {GRE, false}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct packet_spec four = ipv4(rows[i].protocol), six = ipv6(rows[i].protocol);

		check(&four, rows[i].protocol, rows[i].has_ports);
		check(&six, rows[i].protocol, rows[i].has_ports);
	}
}

CLAIM(udp_lite_has_ports)
{
	struct packet_spec spec = ipv4(UDP);

	spec.damage[spec.damage_count++] = (struct packet_damage){14 + 9, UDP_LITE};
	check(&spec, UDP_LITE, true);
}

CLAIM(ports_are_behind_the_options_of_ipv4)
{
	struct packet_spec spec = ipv4(UDP);

	spec.option_words = 10;
	check(&spec, UDP, true);
}

/* What is there is the middle of a packet, not its ports; the first fragment has them. */
CLAIM(a_later_fragment_has_no_ports)
{
	struct packet_spec spec = ipv4(UDP);

	spec.more_fragments = true;
	check(&spec, UDP, true);
	spec.fragment_units = 1;
	check(&spec, UDP, false);
}

CLAIM(ipv6_with_an_extension_is_reported_as_that)
{
	static const uint8_t extensions[] = {HOP_BY_HOP, FRAGMENT};

	for (size_t i = 0; i < ARRAY_SIZE(extensions); i++) {
		struct packet_spec spec = ipv6(UDP);

		spec.extension[spec.extension_count++].protocol = extensions[i];
		check(&spec, extensions[i], false);
	}
}

CLAIM(two_tags_at_most_stand_before_ip)
{
	struct packet_spec spec = ipv4(UDP);
	struct weir_ends ends;

	spec.tag[spec.tag_count++] = (struct packet_tag){ETHERTYPE_QINQ, 7};
	check(&spec, UDP, true);
	spec.tag[spec.tag_count++] = (struct packet_tag){ETHERTYPE_VLAN, 8};
	check(&spec, UDP, true);
	spec.tag[spec.tag_count++] = (struct packet_tag){ETHERTYPE_VLAN, 9};
	assert_false(weir_frame_ends(frame, packet_build(&spec, frame), &ends));
}

CLAIM(what_is_not_ip_shows_nothing)
{
	struct packet_spec spec = ipv4(UDP);
	struct weir_ends ends;

	spec.ethertype = ETHERTYPE_ARP;
	assert_false(weir_frame_ends(frame, packet_build(&spec, frame), &ends));
	spec.ethertype = ETHERTYPE_IPV6; /* its version says another */
	assert_false(weir_frame_ends(frame, packet_build(&spec, frame), &ends));
	spec = ipv6(UDP);
	spec.ethertype = ETHERTYPE_IPV4;
	assert_false(weir_frame_ends(frame, packet_build(&spec, frame), &ends));
}

/* A header length below five words lies: nothing behind the addresses is believed. */
CLAIM(an_ipv4_header_that_is_too_short_has_no_ports)
{
	struct packet_spec spec = ipv4(UDP);

	spec.damage[spec.damage_count++] = (struct packet_damage){14, 0x44};
	check(&spec, UDP, false);
}

/* Bytes are read up to the cut and no further: each length is a copy of its own, which the sanitizer watches. */
CLAIM(at_every_cut_it_shows_what_is_there)
{
	static const struct {
		uint8_t family;
		size_t addresses, ports; /* bytes of frame that have them */
	} rows[] = {{4, 14 + 20, 14 + 20 + 4}, {6, 14 + 40, 14 + 40 + 4}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct packet_spec spec = rows[i].family == 4 ? ipv4(UDP) : ipv6(UDP);
		size_t whole = packet_build(&spec, frame);

		for (size_t bytes = 0; bytes <= whole; bytes++) {
			_cleanup_(weir_freep) uint8_t *cut = malloc(bytes ? bytes : 1);
			struct weir_ends ends = {.protocol = 99};

			assert_non_null(cut);
			memcpy(cut, frame, bytes);
			assert_int_equal(weir_frame_ends(cut, bytes, &ends), bytes >= rows[i].addresses);
			if (bytes < rows[i].addresses)
				assert_int_equal(ends.protocol, 99); /* untouched */
			else
				assert_int_equal(ends.has_ports, bytes >= rows[i].ports);
		}
	}
}

RUN_CLAIMS(NULL, NULL)
