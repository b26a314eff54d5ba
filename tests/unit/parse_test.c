// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parser's short way (weir_parse_usual) against its long one: where the short one takes a frame, both say the same
 * of every field that is asked for. That the long one is right is asked elsewhere (tests/bpf/replay_test, against the
 * model), but for odd frames that Linux delivers or drops: these are here.
 */
#include <string.h>

#include "../lib/claims.h"
#include "../../bpf/packet/parse.h"
#include "../lib/packets.h"
#include "../lib/random.h"
#include "base/util.h"

#define FRAMES 400000

/* A frame of an exact length in memory of its own, so that a read beyond it is seen by the sanitizers. The first two
 * bytes are not its own: as in a driver's buffer, the IP header is aligned.
 */
struct frame {
	uint8_t *memory;
	struct weir_cursor cursor;
};

static struct frame make_frame(const uint8_t *bytes, uint32_t byte_count, uint32_t first_bytes)
{
	struct frame frame = {.memory = malloc(first_bytes + 2)};

	assert_non_null(frame.memory);
	memcpy(frame.memory + 2, bytes, first_bytes);
	frame.cursor.data = frame.memory + 2;
	frame.cursor.end = frame.memory + 2 + first_bytes;
	frame.cursor.frame_bytes = byte_count;
	return frame;
}

#define UNTOUCHED 0xa5a5a5a5

/* What nobody asks for was left as it was: else it costs something. Some fields go together; to ask for the destination
 * port would cost as much as it does.
 */
static void assert_same_packet(const struct weir_packet *usual, const struct weir_packet *any, uint32_t asked)
{
	size_t address_bytes = any->is_ipv6 ? 16 : 4;

	assert_memory_equal(usual->source, any->source, address_bytes);
	assert_int_equal(usual->frame_bytes, any->frame_bytes);
	assert_int_equal(usual->destination_port, any->destination_port);
	if (asked & (WEIR_MATCH_DESTINATION | WEIR_MATCH_DSCP)) {
		assert_memory_equal(usual->destination, any->destination, address_bytes);
		assert_int_equal(usual->dscp, any->dscp);
	} else {
		assert_int_equal(usual->destination[0], UNTOUCHED);
		assert_int_equal(usual->dscp, UNTOUCHED);
	}
	assert_int_equal(usual->ttl, asked & WEIR_MATCH_TTL ? any->ttl : UNTOUCHED);
	if (asked & WEIR_MATCH_SELDOM) {
		assert_int_equal(usual->source_port, any->source_port);
		assert_int_equal(usual->vlan, any->vlan);
		assert_int_equal(usual->tcp_flags, any->tcp_flags);
		assert_int_equal(usual->icmp_type, any->icmp_type);
	} else {
		assert_int_equal(usual->source_port, UNTOUCHED);
		assert_int_equal(usual->vlan, UNTOUCHED);
		assert_int_equal(usual->tcp_flags, UNTOUCHED);
		assert_int_equal(usual->icmp_type, UNTOUCHED);
	}
	assert_int_equal(usual->is_ipv6, any->is_ipv6);
	assert_int_equal(usual->fragment, any->fragment);
	assert_int_equal(weir_protocol(usual), any->parsed_protocol);
	assert_int_equal(usual->kind, any->kind);
}

/* Parse both ways; true: the short way took it. What packets before have left behind is garbage. */
static bool parse_both_ways(const uint8_t *bytes, uint32_t byte_count, uint32_t first_bytes, uint32_t asked)
{
	struct frame frame = make_frame(bytes, byte_count, first_bytes);
	struct weir_cursor cursor = frame.cursor;
	struct weir_packet usual, any;
	bool is_usual;

	memset(&usual, 0xa5, sizeof(usual));
	memset(&any, 0x5a, sizeof(any));
	is_usual = weir_parse_usual(&frame.cursor, &usual, asked);
	if (is_usual) {
		assert_int_equal(weir_parse(&cursor, &any), WEIR_PARSED_IP);
		assert_same_packet(&usual, &any, asked);
	}
	free(frame.memory);
	return is_usual;
}

static struct packet_spec random_spec(struct random *random)
{
	static const uint8_t protocols[] = {6, 17, 17, 6, 1, 58, 132, 47};
	bool is_ipv6 = random_percent(random, 50);
	struct packet_spec spec = is_ipv6 ? packet_udp("2001:db8::1", 1024, "2001:db8:1::1", 53, 18)
					  : packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 18);

	spec.protocol = protocols[random_below(random, sizeof(protocols))];
	spec.source_port = random_u64(random);
	spec.destination_port = random_u64(random);
	spec.tcp_flags = random_u64(random);
	spec.traffic_class = random_u64(random);
	spec.ttl = random_u64(random);
	spec.payload_bytes = random_below(random, 24);
	spec.padding_bytes = random_percent(random, 20) ? random_below(random, 20) : 0;
	spec.option_words = random_percent(random, 10) ? random_below(random, 4) : 0;
	spec.more_fragments = random_percent(random, 5);
	spec.fragment_units = random_percent(random, 5) ? random_below(random, 8) : 0;
	if (is_ipv6 && random_percent(random, 10))
		spec.extension[spec.extension_count++] = (struct packet_extension){.protocol = 44};
	if (random_percent(random, 10))
		spec.tag[spec.tag_count++] = (struct packet_tag){ETHERTYPE_VLAN, 7};
	return spec;
}

/* Bytes of the headers changed at random: mostly lengths and versions are no longer right. */
static void damage(struct random *random, uint8_t *bytes, size_t byte_count)
{
	size_t count = random_below(random, 4);

	for (size_t i = 0; i < count; i++)
		bytes[random_below(random, byte_count)] =
			random_percent(random, 50) ? random_below(random, 80) : random_u64(random);
}

/* Any fields, or few. */
static uint32_t random_asked(struct random *random)
{
	return random_u64(random) & (random_percent(random, 50) ? ~0u : random_u64(random) & random_u64(random));
}

CLAIM(the_short_way_says_what_the_long_one_says)
{
	static uint8_t bytes[PACKET_BYTES_MAX];
	struct random random = {.state = 1};
	size_t usual_count = 0;

	for (int i = 0; i < FRAMES; i++) {
		struct packet_spec spec = random_spec(&random);
		uint32_t byte_count = packet_build(&spec, bytes), first_bytes;

		damage(&random, bytes + 12, byte_count - 12);
		if (random_percent(&random, 20))
			byte_count = random_below(&random, byte_count + 1);
		first_bytes = random_percent(&random, 20) ? random_below(&random, byte_count + 1) : byte_count;
		usual_count += parse_both_ways(bytes, byte_count, first_bytes, random_asked(&random));
	}
	/* Else nothing was compared. */
	assert_true(usual_count > FRAMES / 20);
}

CLAIM(usual_frames_take_the_short_way)
{
	static uint8_t bytes[PACKET_BYTES_MAX];
	static const uint8_t protocols[] = {6, 17};

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		struct packet_spec spec4 = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 0);
		struct packet_spec spec6 = packet_udp("2001:db8::1", 1024, "2001:db8:1::1", 53, 0);
		uint32_t byte_count;

		spec4.protocol = spec6.protocol = protocols[i];
		byte_count = packet_build(&spec4, bytes);
		assert_true(parse_both_ways(bytes, byte_count, byte_count, ~0u));
		byte_count = packet_build(&spec6, bytes);
		assert_true(parse_both_ways(bytes, byte_count, byte_count, ~0u));
	}
}

/* The fields of one frame, by the long way. */
static enum weir_parsed parse(const struct packet_spec *spec, struct weir_packet *packet)
{
	static uint8_t bytes[PACKET_BYTES_MAX];
	uint32_t byte_count = packet_build(spec, bytes);
	struct frame frame = make_frame(bytes, byte_count, byte_count);
	enum weir_parsed parsed = weir_parse(&frame.cursor, packet);

	free(frame.memory);
	parse_both_ways(bytes, byte_count, byte_count, ~0u);
	return parsed;
}

/* Linux delivers a frame with the tags 0 and 7 on VLAN 7: nobody shall evade `match: vlan: 7` by one tag more. */
CLAIM(the_vlan_is_that_of_the_first_tag_that_names_one)
{
	static const struct {
		uint16_t tag[2];
		uint8_t count;
		uint32_t vlan;
	} cases[] = {
		{{7}, 1, 7},	     {{0x2007}, 1, 7}, {{0}, 1, 0},    {{0x2000}, 1, 0}, {{0, 7}, 2, 7},
		{{0x4000, 7}, 2, 7}, {{7, 0}, 2, 7},   {{7, 9}, 2, 7}, {{0, 0}, 2, 0},	 {{0}, 0, WEIR_VLAN_NONE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 0);
		struct weir_packet packet;

		for (spec.tag_count = 0; spec.tag_count < cases[i].count; spec.tag_count++)
			spec.tag[spec.tag_count] = (struct packet_tag){ETHERTYPE_VLAN, cases[i].tag[spec.tag_count]};
		assert_int_equal(parse(&spec, &packet), WEIR_PARSED_IP);
		assert_int_equal(packet.vlan, cases[i].vlan);
	}
}

/* Linux drops what contradicts its EtherType. */
CLAIM(a_version_that_contradicts_the_ethertype_is_malformed)
{
	for (unsigned int version = 0; version < 16; version++) {
		struct packet_spec spec4 = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 0);
		struct packet_spec spec6 = packet_udp("2001:db8::1", 1024, "2001:db8:1::1", 53, 0);
		struct weir_packet packet;

		spec4.damage_count = spec6.damage_count = 1;
		spec4.damage[0] = (struct packet_damage){14, version << 4 | 5};
		spec6.damage[0] = (struct packet_damage){14, version << 4};
		assert_int_equal(parse(&spec4, &packet), version == 4 ? WEIR_PARSED_IP : WEIR_PARSED_MALFORMED);
		assert_int_equal(parse(&spec6, &packet), version == 6 ? WEIR_PARSED_IP : WEIR_PARSED_MALFORMED);
	}
}

/* As Linux delivers it (RFC 2675, 4). Over IPv4 it is dropped, and so are lengths below the header's. */
CLAIM(a_datagram_of_ipv6_may_state_no_length)
{
	for (unsigned int length = 0; length < 10; length++) {
		struct packet_spec spec4 = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 1);
		struct packet_spec spec6 = packet_udp("2001:db8::1", 1024, "2001:db8:1::1", 53, 1);
		struct weir_packet packet;

		spec4.damage_count = spec6.damage_count = 1;
		spec4.damage[0] = (struct packet_damage){14 + 20 + 5, length};
		spec6.damage[0] = (struct packet_damage){14 + 40 + 5, length};
		assert_int_equal(parse(&spec4, &packet), length >= 8 ? WEIR_PARSED_IP : WEIR_PARSED_MALFORMED);
		assert_int_equal(parse(&spec6, &packet),
				 length >= 8 || length == 0 ? WEIR_PARSED_IP : WEIR_PARSED_MALFORMED);
		if (length == 0)
			assert_int_equal(packet.destination_port, 53);
	}
}

/* With fewer, the ports would be read from the header itself (RFC 791, 3.1): the sender would choose its rule. A
 * protocol without a header of its own shows that this one is looked at.
 */
CLAIM(an_ipv4_header_has_five_words_or_more)
{
	static const uint8_t protocols[] = {IPPROTO_UDP, IPPROTO_GRE};

	for (unsigned int i = 0; i < 16 * ARRAY_SIZE(protocols); i++) {
		struct packet_spec spec = packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 12);
		unsigned int words = i % 16;
		struct weir_packet packet;

		spec.protocol = protocols[i / 16];
		spec.option_words = words > 5 ? words - 5 : 0;
		spec.damage_count = 1;
		spec.damage[0] = (struct packet_damage){14, 4 << 4 | words};
		assert_int_equal(parse(&spec, &packet), words >= 5 ? WEIR_PARSED_IP : WEIR_PARSED_MALFORMED);
		if (words >= 5 && spec.protocol == IPPROTO_UDP)
			assert_int_equal(packet.destination_port, 53);
	}
}

/* Two less than its length in words of 32 bits (RFC 4302, 2.2), where other extension headers count in eights. */
CLAIM(an_authentication_header_counts_in_fours)
{
	for (uint8_t units = 0; units < 8; units++) {
		struct packet_spec spec = packet_udp("2001:db8::1", 1024, "2001:db8:1::1", 53, 64);
		struct weir_packet packet;

		spec.extension[spec.extension_count++] = (struct packet_extension){IPPROTO_AH, units};
		assert_int_equal(parse(&spec, &packet), WEIR_PARSED_IP);
		assert_int_equal(weir_protocol(&packet), IPPROTO_UDP);
		assert_int_equal(packet.source_port, 1024);
		assert_int_equal(packet.destination_port, 53);
	}
}

/* It begins in the middle of a datagram: what stands there is whatever its sender wants. */
CLAIM(a_later_fragment_has_no_ports)
{
	for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
		struct packet_spec spec = is_ipv6 ? packet_udp("2001:db8::1", 1024, "2001:db8:1::1", 53, 64)
						  : packet_udp("192.0.2.1", 1024, "198.51.100.1", 53, 64);
		struct weir_packet packet;

		if (is_ipv6)
			spec.extension[spec.extension_count++] = (struct packet_extension){IPPROTO_FRAGMENT, 0};
		for (spec.fragment_units = 1; spec.fragment_units <= 3; spec.fragment_units++) {
			assert_int_equal(parse(&spec, &packet), WEIR_PARSED_IP);
			assert_int_equal(packet.fragment, WEIR_FRAGMENT_LATER);
			assert_int_equal(packet.source_port, WEIR_PORT_NONE);
			assert_int_equal(packet.destination_port, WEIR_PORT_NONE);
		}
	}
}

/* BIG TCP: the header's 16 bits cannot say how long it is, and say 0. */
CLAIM(a_length_of_zero_in_a_frame_too_long_to_say_is_the_frames)
{
	static const uint32_t wire_bytes[] = {200, 65535, 65536, 180000};
	static uint8_t bytes[PACKET_BYTES_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(wire_bytes); i++) {
		for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++) {
			const bool is_long = wire_bytes[i] > 65535;
			struct packet_spec spec = is_ipv6 ? packet_udp("2001:db8::1", 1024, "2001:db8:1::1", 443, 60)
							  : packet_udp("192.0.2.1", 1024, "198.51.100.1", 443, 60);
			struct weir_packet packet;
			struct frame frame;
			uint32_t built_bytes;

			spec.protocol = IPPROTO_TCP;
			/* With the jumbo payload option, and without it, as the kernel had it first and has it now. */
			if (is_ipv6 && i % 2)
				spec.extension[spec.extension_count++] = (struct packet_extension){IPPROTO_HOPOPTS, 0};
			built_bytes = packet_build(&spec, bytes);
			memset(bytes + (is_ipv6 ? 18 : 16), 0, 2);
			frame = make_frame(bytes, wire_bytes[i], built_bytes);
			assert_int_equal(weir_parse(&frame.cursor, &packet) == WEIR_PARSED_IP, is_long);
			assert_false(weir_parse_usual(&frame.cursor, &packet, ~0u));
			if (is_long)
				assert_int_equal(packet.destination_port, 443);
			free(frame.memory);
		}
	}
}

RUN_CLAIMS(NULL, NULL)
