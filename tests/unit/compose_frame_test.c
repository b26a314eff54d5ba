// SPDX-License-Identifier: GPL-2.0-only
/* A frame that is made of words about a packet is the packet that they describe, as the oracle's builder makes it. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "frames/compose.h"
#include "../lib/packets.h"

#define IPV4_CHECKSUM_AT 24
#define UDP 17
#define TCP 6
#define ICMPV6 58

static uint8_t composed[WEIR_COMPOSED_BYTES_MAX];

static struct weir_packet_words words_of(const struct packet_spec *spec)
{
	struct weir_packet_words words = {
		.family = spec->family,
		.protocol = spec->protocol,
		.source_port = spec->source_port,
		.destination_port = spec->destination_port,
		.tcp_flags = spec->tcp_flags,
		.icmp_type = spec->icmp_type,
		.dscp = spec->traffic_class >> 2,
		.ttl = spec->ttl ?: 64,
		.has_vlan = spec->tag_count,
		.vlan = spec->tag[0].id,
	};

	memcpy(words.source, spec->source, sizeof(words.source));
	memcpy(words.destination, spec->destination, sizeof(words.destination));
	return words;
}

/* Behind the addresses of Ethernet, which nothing reads; checksums are zero in ours. */
static void assert_same(const struct packet_spec *spec)
{
	static uint8_t expected[PACKET_BYTES_MAX];
	struct weir_packet_words words = words_of(spec);
	const size_t addresses = 12, shift = spec->tag_count ? 4 : 0;

	words.frame_bytes = packet_build(spec, expected);
	if (spec->family == 4)
		memset(expected + IPV4_CHECKSUM_AT + shift, 0, 2);
	/* Lifetimes, the identification and windows are whatever they are. */
	assert_int_equal(weir_compose_frame(&words, composed), words.frame_bytes);
	assert_memory_equal(composed + addresses, expected + addresses, 2 + shift + 4); /* type, first of IP */
	assert_memory_equal(composed + words.frame_bytes - spec->payload_bytes,
			    expected + words.frame_bytes - spec->payload_bytes, spec->payload_bytes);
}

static const uint8_t *transport_of(const struct weir_packet_words *words)
{
	return composed + 14 + (words->has_vlan ? 4 : 0) + (words->family == 6 ? 40 : 20);
}

CLAIM(udp_over_ipv4_has_its_lengths_addresses_and_ports)
{
	const struct packet_spec spec = {
		.family = 4,
		.protocol = UDP,
		.source = {192, 0, 2, 1},
		.destination = {198, 51, 100, 2},
		.traffic_class = 46 << 2,
		.source_port = 4000,
		.destination_port = 53,
		.payload_bytes = 30,
	};
	const uint8_t ports_and_length[] = {4000 >> 8, 4000 & 0xff, 0, 53, 0, 38};
	const struct weir_packet_words words = words_of(&spec);

	assert_same(&spec);
	assert_memory_equal(transport_of(&words), ports_and_length, sizeof(ports_and_length));
	assert_memory_equal(composed + 26, spec.source, 4);
	assert_memory_equal(composed + 30, spec.destination, 4);
	assert_int_equal(composed[15], 46 << 2);
	assert_int_equal(composed[23], UDP);
}

CLAIM(tcp_over_ipv6_in_a_tag_has_its_flags)
{
	const struct packet_spec spec = {
		.family = 6,
		.protocol = TCP,
		.source = {0x20, 1, 0xd, 0xb8, [15] = 1},
		.destination = {0x20, 1, 0xd, 0xb8, [15] = 2},
		.tag_count = 1,
		.tag = {{.ethertype = ETHERTYPE_VLAN, .id = 5}},
		.tcp_flags = 0x12,
		.traffic_class = 10 << 2,
		.destination_port = 443,
	};
	const struct weir_packet_words words = words_of(&spec);

	assert_same(&spec);
	assert_int_equal(transport_of(&words)[13], 0x12);
	assert_int_equal(transport_of(&words)[12] >> 4, 5);
	assert_memory_equal(composed + 26, spec.source, 16);
	assert_memory_equal(composed + 42, spec.destination, 16);
}

CLAIM(icmp_has_its_type)
{
	const struct weir_packet_words words = {.family = 6, .protocol = ICMPV6, .icmp_type = 135};

	assert_int_equal(weir_compose_frame(&words, composed), 14 + 40 + 8);
	assert_int_equal(transport_of(&words)[0], 135);
}

CLAIM(shortest_frame_is_that_of_ethernet)
{
	const struct weir_packet_words words = {.family = 4, .protocol = UDP};

	assert_int_equal(weir_compose_frame(&words, composed), 60);
	assert_int_equal(weir_shortest_frame(&words), 42);
}

CLAIM(frame_shorter_than_its_headers_is_refused)
{
	struct weir_packet_words words = {.family = 4, .protocol = TCP, .frame_bytes = 53};

	assert_int_equal(weir_compose_frame(&words, composed), 0);
	words.frame_bytes = 54;
	assert_int_equal(weir_compose_frame(&words, composed), 54);
	words.frame_bytes = WEIR_COMPOSED_BYTES_MAX + 1;
	assert_int_equal(weir_compose_frame(&words, composed), 0);
}

/* A datagram of 28 bytes in a frame that a card has padded. */
CLAIM(bytes_beyond_the_ip_length_are_padding)
{
	struct weir_packet_words words = {.family = 4, .protocol = UDP, .ip_bytes = 28};

	assert_int_equal(weir_compose_frame(&words, composed), 60);
	assert_int_equal(composed[17], 28);
	assert_int_equal(composed[39], 8); /* of the datagram */
	words.ip_bytes = 47;
	assert_int_equal(weir_compose_frame(&words, composed), 61);
	words.frame_bytes = 60;
	assert_int_equal(weir_compose_frame(&words, composed), 0);
	words = (struct weir_packet_words){.family = 4, .protocol = UDP, .ip_bytes = 27};
	assert_int_equal(weir_compose_frame(&words, composed), 0);
}

RUN_CLAIMS(NULL, NULL)
