// SPDX-License-Identifier: GPL-2.0-only
/* What the program is shown in place of a frame that a capture has with another header than Ethernet's, or none. */
#include <string.h>

#include <arpa/inet.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "frames/link_type.h"

#define PROTOCOL_AT 14 /* in the older cooked header, of 16 bytes */
#define PROTOCOL2_AT 0 /* in the newer one, of 20 */
#define DEVICE_TYPE_AT 2
#define DEVICE_TYPE2_AT 8

/* Of 64 captured bytes, none of which is zero, so that it shows which of them are where. */
static uint8_t bytes[64];

static void set_be16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static struct weir_frame frame_of(enum weir_link_type link_type, uint32_t captured_bytes, uint32_t wire_bytes)
{
	return (struct weir_frame){
		.bytes = bytes, .captured_bytes = captured_bytes, .wire_bytes = wire_bytes, .link_type = link_type};
}

static int fill_bytes(void **state)
{
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i + 1;
	set_be16(bytes + DEVICE_TYPE_AT, 1);
	return 0;
}

/* Its type, with addresses of zeros. */
static uint16_t shown_type(enum weir_link_type link_type, uint32_t captured_bytes, uint32_t wire_bytes)
{
	static const uint8_t no_addresses[2 * ETH_ALEN];
	struct weir_frame frame = frame_of(link_type, captured_bytes, wire_bytes);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(&frame, &ethernet));
	if (link_type != WEIR_LINK_TYPE_ETHERNET)
		assert_memory_equal(&ethernet.header, no_addresses, sizeof(no_addresses));
	return ((uint8_t *)&ethernet.header)[12] << 8 | ((uint8_t *)&ethernet.header)[13];
}

CLAIM_WITHIN(ethernet_is_shown_as_it_is, fill_bytes, NULL)
{
	struct weir_frame frame = frame_of(WEIR_LINK_TYPE_ETHERNET, 60, 1500);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(&frame, &ethernet));
	assert_memory_equal(&ethernet.header, bytes, 14);
	assert_ptr_equal(ethernet.payload, bytes + 14);
	assert_int_equal(ethernet.payload_bytes, 46);
	assert_int_equal(ethernet.wire_bytes, 1500);
}

CLAIM_WITHIN(the_protocol_of_a_cooked_header_becomes_the_type, fill_bytes, NULL)
{
	static const uint16_t protocols[] = {0x0800, 0x86dd, 0x0806, 0x8100, 0x88a8, 0x0004, 0x0001};

	for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
		fill_bytes(NULL);
		set_be16(bytes + PROTOCOL_AT, protocols[i]);
		assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL, 60, 60), protocols[i]);
		fill_bytes(NULL);
		set_be16(bytes + PROTOCOL2_AT, protocols[i]);
		assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL2, 60, 60), protocols[i]);
	}
}

/* Netlink's numbers, say, are those of its families; 802.11 and frame relay leave anything there. */
CLAIM_WITHIN(a_device_whose_protocol_is_no_ethertype_shows_none, fill_bytes, NULL)
{
	static const uint16_t devices[] = {770, 803, 824};

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		set_be16(bytes + PROTOCOL_AT, 0x0800);
		set_be16(bytes + DEVICE_TYPE_AT, devices[i]);
		assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL, 60, 60), 0);
		set_be16(bytes + PROTOCOL2_AT, 0x0800);
		set_be16(bytes + DEVICE_TYPE2_AT, devices[i]);
		assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL2, 60, 60), 0);
	}
}

CLAIM_WITHIN(a_packet_is_as_long_as_with_an_ethernet_header, fill_bytes, NULL)
{
	static const struct {
		enum weir_link_type link_type;
		uint32_t header_bytes;
	} links[] = {
		{WEIR_LINK_TYPE_SLL, 16}, {WEIR_LINK_TYPE_SLL2, 20}, {WEIR_LINK_TYPE_IP, 0},   {WEIR_LINK_TYPE_IPV4, 0},
		{WEIR_LINK_TYPE_IPV6, 0}, {WEIR_LINK_TYPE_NULL, 4},  {WEIR_LINK_TYPE_LOOP, 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		struct weir_frame frame = frame_of(links[i].link_type, 60, links[i].header_bytes + 1000);
		struct weir_ethernet ethernet;

		assert_true(weir_frame_to_ethernet(&frame, &ethernet));
		assert_ptr_equal(ethernet.payload, bytes + links[i].header_bytes);
		assert_int_equal(ethernet.payload_bytes, 60 - links[i].header_bytes);
		assert_int_equal(ethernet.wire_bytes, 1014);
	}
}

CLAIM_WITHIN(a_packet_without_a_header_is_of_the_ip_that_its_version_says, fill_bytes, NULL)
{
	for (unsigned int version = 0; version < 16; version++) {
		uint16_t expected = version == 4 ? 0x0800 : version == 6 ? 0x86dd : 0;

		bytes[0] = version << 4 | 5;
		assert_int_equal(shown_type(WEIR_LINK_TYPE_IP, 40, 40), expected);
		assert_int_equal(shown_type(WEIR_LINK_TYPE_IPV4, 40, 40), 0x0800);
		assert_int_equal(shown_type(WEIR_LINK_TYPE_IPV6, 40, 40), 0x86dd);
	}
}

/* Of hosts of both byte orders, and of systems that number families each in its own way. */
CLAIM_WITHIN(the_family_of_a_loopback_header_becomes_the_type, fill_bytes, NULL)
{
	static const uint8_t families6[] = {10, 23, 24, 28, 30};

	for (size_t type = 0; type < 2; type++) {
		const enum weir_link_type link_type = type ? WEIR_LINK_TYPE_LOOP : WEIR_LINK_TYPE_NULL;

		for (size_t at = 0; at <= 3; at += 3) {
			memset(bytes, 0, 4);
			bytes[at] = 2;
			assert_int_equal(shown_type(link_type, 60, 60), 0x0800);
			for (size_t i = 0; i < sizeof(families6); i++) {
				bytes[at] = families6[i];
				assert_int_equal(shown_type(link_type, 60, 60), 0x86dd);
			}
			bytes[at] = 16; /* AF_APPLETALK */
			assert_int_equal(shown_type(link_type, 60, 60), 0);
		}
	}
	fill_bytes(NULL);
}

CLAIM_WITHIN(the_protocol_of_ppp_becomes_the_type, fill_bytes, NULL)
{
	static const struct {
		enum weir_link_type link_type;
		uint8_t start[4];
		uint32_t header_bytes;
		uint16_t type;
	} cases[] = {
		{WEIR_LINK_TYPE_PPP, {0x00, 0x21}, 2, 0x0800},
		{WEIR_LINK_TYPE_PPP, {0x00, 0x57}, 2, 0x86dd},
		{WEIR_LINK_TYPE_PPP, {0x21}, 1, 0x0800},
		{WEIR_LINK_TYPE_PPP, {0x57}, 1, 0x86dd},
		{WEIR_LINK_TYPE_PPP, {0xff, 0x03, 0x00, 0x21}, 4, 0x0800},
		{WEIR_LINK_TYPE_PPP, {0xff, 0x03, 0x57}, 3, 0x86dd},
		{WEIR_LINK_TYPE_PPP, {0xc0, 0x21}, 2, 0}, /* LCP */
		{WEIR_LINK_TYPE_PPP, {0x80, 0x57}, 2, 0}, /* IPV6CP */
		{WEIR_LINK_TYPE_PPP, {0x00, 0x2d}, 2, 0}, /* Van Jacobson's compression */
		{WEIR_LINK_TYPE_PPP_SERIAL, {0xff, 0x03, 0x00, 0x21}, 4, 0x0800},
		{WEIR_LINK_TYPE_PPP_SERIAL, {0xff, 0x03, 0x00, 0x57}, 4, 0x86dd},
		{WEIR_LINK_TYPE_PPP_SERIAL, {0xff, 0x03, 0x21}, 3, 0x0800},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct weir_frame frame = frame_of(cases[i].link_type, 60, 1000);
		struct weir_ethernet ethernet;

		memcpy(bytes, cases[i].start, sizeof(cases[i].start));
		assert_int_equal(shown_type(cases[i].link_type, 60, 60), cases[i].type);
		assert_true(weir_frame_to_ethernet(&frame, &ethernet));
		assert_ptr_equal(ethernet.payload, bytes + cases[i].header_bytes);
		assert_int_equal(ethernet.wire_bytes, 1014 - cases[i].header_bytes);
	}
	fill_bytes(NULL);
}

static bool has_header(enum weir_link_type link_type, uint32_t wire_bytes)
{
	struct weir_frame frame = frame_of(link_type, wire_bytes, wire_bytes);
	struct weir_ethernet ethernet;

	return weir_frame_to_ethernet(&frame, &ethernet);
}

CLAIM_WITHIN(a_header_that_was_not_whole_on_the_wire_is_none, fill_bytes, NULL)
{
	assert_false(has_header(WEIR_LINK_TYPE_ETHERNET, 13));
	assert_true(has_header(WEIR_LINK_TYPE_ETHERNET, 14));
	assert_false(has_header(WEIR_LINK_TYPE_SLL, 15));
	assert_true(has_header(WEIR_LINK_TYPE_SLL, 16));
	assert_false(has_header(WEIR_LINK_TYPE_SLL2, 19));
	assert_true(has_header(WEIR_LINK_TYPE_SLL2, 20));
	assert_false(has_header(WEIR_LINK_TYPE_IP, 0));
	assert_true(has_header(WEIR_LINK_TYPE_IP, 1));
	assert_true(has_header(WEIR_LINK_TYPE_IPV4, 0));
	assert_true(has_header(WEIR_LINK_TYPE_IPV6, 0));
	assert_false(has_header(WEIR_LINK_TYPE_NULL, 3));
	assert_true(has_header(WEIR_LINK_TYPE_NULL, 4));
	assert_false(has_header(WEIR_LINK_TYPE_LOOP, 3));
	assert_false(has_header(WEIR_LINK_TYPE_PPP, 0));
	assert_false(has_header(WEIR_LINK_TYPE_PPP_SERIAL, 2));
}

CLAIM_WITHIN(what_the_capture_cut_off_a_header_is_zeros, fill_bytes, NULL)
{
	struct weir_frame frame = frame_of(WEIR_LINK_TYPE_ETHERNET, 13, 1000);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(&frame, &ethernet));
	assert_memory_equal(&ethernet.header, bytes, 13);
	assert_int_equal(((uint8_t *)&ethernet.header)[13], 0);
	assert_int_equal(ethernet.payload_bytes, 0);
	assert_int_equal(ethernet.wire_bytes, 1000);

	set_be16(bytes + PROTOCOL_AT, 0x86dd);
	assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL, 15, 1000), 0x8600);
	assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL, 14, 1000), 0);
	set_be16(bytes + PROTOCOL2_AT, 0x86dd);
	assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL2, 2, 1000), 0x86dd);
	assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL2, 1, 1000), 0x8600);
	assert_int_equal(shown_type(WEIR_LINK_TYPE_SLL2, 0, 1000), 0);
	assert_int_equal(shown_type(WEIR_LINK_TYPE_IP, 0, 1000), 0);
}

/* A file may claim it. */
CLAIM_WITHIN(the_longest_length_stays_the_longest, fill_bytes, NULL)
{
	struct weir_frame frame = frame_of(WEIR_LINK_TYPE_IPV4, 40, UINT32_MAX);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(&frame, &ethernet));
	assert_int_equal(ethernet.wire_bytes, UINT32_MAX);
	frame.link_type = WEIR_LINK_TYPE_SLL;
	assert_true(weir_frame_to_ethernet(&frame, &ethernet));
	assert_int_equal(ethernet.wire_bytes, UINT32_MAX - 2);
}

static enum weir_course course_of(enum weir_link_type link_type)
{
	const struct weir_frame frame = frame_of(link_type, 60, 60);

	return weir_frame_course(&frame);
}

/* Types 0 to 4 of packet(7): to us, to all, to a group, to another host, and sent by us. */
CLAIM_WITHIN(only_a_cooked_header_says_which_way_a_packet_went, fill_bytes, NULL)
{
	for (uint8_t type = 0; type <= 4; type++) {
		const enum weir_course course = type == 4 ? WEIR_COURSE_OUT : WEIR_COURSE_IN;

		set_be16(bytes, type);
		assert_int_equal(course_of(WEIR_LINK_TYPE_SLL), course);
		bytes[10] = type;
		assert_int_equal(course_of(WEIR_LINK_TYPE_SLL2), course);
		assert_int_equal(course_of(WEIR_LINK_TYPE_ETHERNET), WEIR_COURSE_UNKNOWN);
		assert_int_equal(course_of(WEIR_LINK_TYPE_IP), WEIR_COURSE_UNKNOWN);
		assert_int_equal(course_of(WEIR_LINK_TYPE_PPP), WEIR_COURSE_UNKNOWN);
	}
	set_be16(bytes, 0x0400);
	assert_int_equal(course_of(WEIR_LINK_TYPE_SLL), WEIR_COURSE_IN);
}

CLAIM_WITHIN(a_cooked_header_that_was_cut_says_nothing, fill_bytes, NULL)
{
	struct weir_frame sll = frame_of(WEIR_LINK_TYPE_SLL, 15, 60), sll2 = frame_of(WEIR_LINK_TYPE_SLL2, 19, 60);

	set_be16(bytes, 4);
	bytes[10] = 4;
	assert_int_equal(weir_frame_course(&sll), WEIR_COURSE_UNKNOWN);
	assert_int_equal(weir_frame_course(&sll2), WEIR_COURSE_UNKNOWN);
}

/* ---- netfilter's log ---- */

static void put_half(uint8_t *at, uint16_t value, bool is_swapped)
{
	value = is_swapped ? __builtin_bswap16(value) : value;
	memcpy(at, &value, sizeof(value));
}

/* Family, version 0, group 5; a packet header with an EtherType; a prefix of 5 bytes, which is padded; then the
 * payload of so many bytes, which begins with an IP header that states `stated`. Returns where the payload begins.
 */
static uint32_t make_nflog(uint8_t family, uint16_t ethertype, uint16_t payload_bytes, uint16_t stated, bool is_swapped)
{
	const uint32_t at = 4 + 8 + 12;

	memset(bytes, 0, sizeof(bytes));
	bytes[0] = family;
	bytes[3] = 5;
	put_half(bytes + 4, 8, is_swapped);
	put_half(bytes + 6, 1, is_swapped);
	set_be16(bytes + 8, ethertype);
	put_half(bytes + 12, 9, is_swapped);
	put_half(bytes + 14, 10, is_swapped);
	put_half(bytes + 24, payload_bytes + 4, is_swapped);
	put_half(bytes + 26, 9, is_swapped);
	set_be16(bytes + at + 4 + (ethertype == 0x86dd ? 4 : 2), stated);
	return at + 4;
}

CLAIM(a_logged_packet_is_the_payload_of_its_message)
{
	static const struct {
		uint8_t family;
		uint16_t ethertype, stated;
		uint32_t wire_bytes;
	} cases[] = {
		{2, 0x0800, 30, 14 + 30},     {2, 0x0800, 1000, 14 + 1000}, /* the kernel cut it */
		{10, 0x86dd, 960, 14 + 1000}, {7, 0x0800, 30, 14 + 30},
		{7, 0x86dd, 0, 14 + 40},      {5, 0x0806, 30, 14 + 30},
	};

	for (int is_swapped = 0; is_swapped < 2; is_swapped++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			const uint32_t at =
				make_nflog(cases[i].family, cases[i].ethertype, 30, cases[i].stated, is_swapped);
			struct weir_frame frame = frame_of(WEIR_LINK_TYPE_NFLOG, at + 30, at + 30);
			struct weir_ethernet ethernet;

			frame.is_swapped = is_swapped;
			assert_true(weir_frame_to_ethernet(&frame, &ethernet));
			assert_int_equal(ntohs(ethernet.header.h_proto), cases[i].ethertype);
			assert_ptr_equal(ethernet.payload, bytes + at);
			assert_int_equal(ethernet.payload_bytes, 30);
			assert_int_equal(ethernet.wire_bytes, cases[i].wire_bytes);
			/* The capture cut it: what is there, and what there was. */
			frame.captured_bytes = at + 20;
			assert_true(weir_frame_to_ethernet(&frame, &ethernet));
			assert_int_equal(ethernet.payload_bytes, 20);
			assert_int_equal(ethernet.wire_bytes, cases[i].wire_bytes);
		}
}

/* Cut anywhere before the payload, or with attributes whose length leads nowhere. */
CLAIM(a_log_without_a_payload_is_no_packet)
{
	const uint32_t at = make_nflog(2, 0x0800, 30, 30, false);
	struct weir_ethernet ethernet;

	for (uint32_t captured = 0; captured < at; captured++) {
		struct weir_frame frame = frame_of(WEIR_LINK_TYPE_NFLOG, captured, at + 30);

		assert_false(weir_frame_to_ethernet(&frame, &ethernet));
	}
	for (size_t i = 0; i < 6; i++) {
		struct weir_frame frame = frame_of(WEIR_LINK_TYPE_NFLOG, at + 30, at + 30);

		put_half(bytes + 4, (const uint16_t[]){0, 1, 3, 60, 65530, 65535}[i], false);
		assert_false(weir_frame_to_ethernet(&frame, &ethernet));
	}
}

/* ---- a length of 0 ---- */

CLAIM(only_a_length_of_0_is_completed)
{
	static const struct {
		uint8_t tags;
		uint16_t ethertype, stated;
		uint8_t next;
		uint32_t captured, frame_bytes;
		int length; /* -1: it is not touched */
	} cases[] = {
		{0, 0x0800, 0, 6, 60, 2954, 2940},   {1, 0x0800, 0, 6, 60, 2954, 2936},
		{2, 0x0800, 0, 17, 60, 2954, 2932},  {3, 0x0800, 0, 6, 64, 2954, -1},
		{0, 0x0800, 1, 6, 60, 2954, -1},     {0, 0x0800, 256, 6, 60, 2954, -1},
		{0, 0x0800, 0, 6, 33, 2954, -1},     {0, 0x0800, 0, 6, 34, 34, 20},
		{0, 0x0800, 0, 6, 60, 65535, 65521}, {0, 0x0800, 0, 6, 60, 65536, -1},
		{0, 0x86dd, 0, 6, 60, 2954, 2900},   {0, 0x86dd, 0, 17, 60, 2954, 2900},
		{0, 0x86dd, 0, 0, 60, 2954, -1}, /* a jumbogram */
		{0, 0x86dd, 0, 59, 60, 2954, -1},    {0, 0x86dd, 0, 6, 53, 2954, -1},
		{0, 0x86dd, 7, 6, 60, 2954, -1},     {0, 0x0806, 0, 6, 60, 2954, -1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint32_t type_at = 12 + 4 * cases[i].tags;
		const uint32_t field_at = type_at + 2 + (cases[i].ethertype == 0x86dd ? 4 : 2);
		uint8_t before[sizeof(bytes)];

		memset(bytes, 0, sizeof(bytes));
		for (uint8_t tag = 0; tag < cases[i].tags; tag++)
			set_be16(bytes + 12 + 4 * tag, tag ? 0x8100 : 0x88a8);
		set_be16(bytes + type_at, cases[i].ethertype);
		set_be16(bytes + field_at, cases[i].stated);
		bytes[type_at + 2 + 6] = cases[i].ethertype == 0x86dd ? cases[i].next : 0;
		memcpy(before, bytes, sizeof(bytes));
		assert_int_equal(weir_complete_length(bytes, cases[i].captured, cases[i].frame_bytes),
				 cases[i].length >= 0);
		if (cases[i].length >= 0) {
			assert_int_equal(bytes[field_at] << 8 | bytes[field_at + 1], cases[i].length);
			set_be16(bytes + field_at, cases[i].stated);
		}
		assert_memory_equal(bytes, before, sizeof(bytes));
	}
}

RUN_CLAIMS(NULL, NULL)
