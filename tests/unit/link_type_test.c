// SPDX-License-Identifier: GPL-2.0-only
/* What the program is shown in place of a frame that a capture has with another header than Ethernet's, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

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

static struct weir_frame frame_of(uint32_t captured_bytes, uint32_t wire_bytes)
{
	return (struct weir_frame){.bytes = bytes, .captured_bytes = captured_bytes, .wire_bytes = wire_bytes};
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
	struct weir_frame frame = frame_of(captured_bytes, wire_bytes);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(link_type, &frame, &ethernet));
	if (link_type != WEIR_LINK_TYPE_ETHERNET)
		assert_memory_equal(&ethernet.header, no_addresses, sizeof(no_addresses));
	return ((uint8_t *)&ethernet.header)[12] << 8 | ((uint8_t *)&ethernet.header)[13];
}

static void ethernet_is_shown_as_it_is(void **state)
{
	struct weir_frame frame = frame_of(60, 1500);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(WEIR_LINK_TYPE_ETHERNET, &frame, &ethernet));
	assert_memory_equal(&ethernet.header, bytes, 14);
	assert_ptr_equal(ethernet.payload, bytes + 14);
	assert_int_equal(ethernet.payload_bytes, 46);
	assert_int_equal(ethernet.wire_bytes, 1500);
}

static void the_protocol_of_a_cooked_header_becomes_the_type(void **state)
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
static void a_device_whose_protocol_is_no_ethertype_shows_none(void **state)
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

static void a_packet_is_as_long_as_with_an_ethernet_header(void **state)
{
	static const struct {
		enum weir_link_type link_type;
		uint32_t header_bytes;
	} links[] = {
		{WEIR_LINK_TYPE_SLL, 16}, {WEIR_LINK_TYPE_SLL2, 20}, {WEIR_LINK_TYPE_IP, 0},   {WEIR_LINK_TYPE_IPV4, 0},
		{WEIR_LINK_TYPE_IPV6, 0}, {WEIR_LINK_TYPE_NULL, 4},  {WEIR_LINK_TYPE_LOOP, 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		struct weir_frame frame = frame_of(60, links[i].header_bytes + 1000);
		struct weir_ethernet ethernet;

		assert_true(weir_frame_to_ethernet(links[i].link_type, &frame, &ethernet));
		assert_ptr_equal(ethernet.payload, bytes + links[i].header_bytes);
		assert_int_equal(ethernet.payload_bytes, 60 - links[i].header_bytes);
		assert_int_equal(ethernet.wire_bytes, 1014);
	}
}

static void a_packet_without_a_header_is_of_the_ip_that_its_version_says(void **state)
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
static void the_family_of_a_loopback_header_becomes_the_type(void **state)
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

static void the_protocol_of_ppp_becomes_the_type(void **state)
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
		struct weir_frame frame = frame_of(60, 1000);
		struct weir_ethernet ethernet;

		memcpy(bytes, cases[i].start, sizeof(cases[i].start));
		assert_int_equal(shown_type(cases[i].link_type, 60, 60), cases[i].type);
		assert_true(weir_frame_to_ethernet(cases[i].link_type, &frame, &ethernet));
		assert_ptr_equal(ethernet.payload, bytes + cases[i].header_bytes);
		assert_int_equal(ethernet.wire_bytes, 1014 - cases[i].header_bytes);
	}
	fill_bytes(NULL);
}

static bool has_header(enum weir_link_type link_type, uint32_t wire_bytes)
{
	struct weir_frame frame = frame_of(wire_bytes, wire_bytes);
	struct weir_ethernet ethernet;

	return weir_frame_to_ethernet(link_type, &frame, &ethernet);
}

static void a_header_that_was_not_whole_on_the_wire_is_none(void **state)
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

static void what_the_capture_cut_off_a_header_is_zeros(void **state)
{
	struct weir_frame frame = frame_of(13, 1000);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(WEIR_LINK_TYPE_ETHERNET, &frame, &ethernet));
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
static void the_longest_length_stays_the_longest(void **state)
{
	struct weir_frame frame = frame_of(40, UINT32_MAX);
	struct weir_ethernet ethernet;

	assert_true(weir_frame_to_ethernet(WEIR_LINK_TYPE_IPV4, &frame, &ethernet));
	assert_int_equal(ethernet.wire_bytes, UINT32_MAX);
	assert_true(weir_frame_to_ethernet(WEIR_LINK_TYPE_SLL, &frame, &ethernet));
	assert_int_equal(ethernet.wire_bytes, UINT32_MAX - 2);
}

/* Types 0 to 4 of packet(7): to us, to all, to a group, to another host, and sent by us. */
static void only_a_cooked_header_says_which_way_a_packet_went(void **state)
{
	struct weir_frame frame = frame_of(60, 60);

	for (uint8_t type = 0; type <= 4; type++) {
		const enum weir_course course = type == 4 ? WEIR_COURSE_OUT : WEIR_COURSE_IN;

		set_be16(bytes, type);
		assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_SLL, &frame), course);
		bytes[10] = type;
		assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_SLL2, &frame), course);
		assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_ETHERNET, &frame), WEIR_COURSE_UNKNOWN);
		assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_IP, &frame), WEIR_COURSE_UNKNOWN);
		assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_PPP, &frame), WEIR_COURSE_UNKNOWN);
	}
	set_be16(bytes, 0x0400);
	assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_SLL, &frame), WEIR_COURSE_IN);
}

static void a_cooked_header_that_was_cut_says_nothing(void **state)
{
	struct weir_frame sll = frame_of(15, 60), sll2 = frame_of(19, 60);

	set_be16(bytes, 4);
	bytes[10] = 4;
	assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_SLL, &sll), WEIR_COURSE_UNKNOWN);
	assert_int_equal(weir_frame_course(WEIR_LINK_TYPE_SLL2, &sll2), WEIR_COURSE_UNKNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ethernet_is_shown_as_it_is, fill_bytes),
		cmocka_unit_test_setup(the_protocol_of_a_cooked_header_becomes_the_type, fill_bytes),
		cmocka_unit_test_setup(a_device_whose_protocol_is_no_ethertype_shows_none, fill_bytes),
		cmocka_unit_test_setup(a_packet_is_as_long_as_with_an_ethernet_header, fill_bytes),
		cmocka_unit_test_setup(a_packet_without_a_header_is_of_the_ip_that_its_version_says, fill_bytes),
		cmocka_unit_test_setup(the_family_of_a_loopback_header_becomes_the_type, fill_bytes),
		cmocka_unit_test_setup(the_protocol_of_ppp_becomes_the_type, fill_bytes),
		cmocka_unit_test_setup(a_header_that_was_not_whole_on_the_wire_is_none, fill_bytes),
		cmocka_unit_test_setup(what_the_capture_cut_off_a_header_is_zeros, fill_bytes),
		cmocka_unit_test_setup(the_longest_length_stays_the_longest, fill_bytes),
		cmocka_unit_test_setup(only_a_cooked_header_says_which_way_a_packet_went, fill_bytes),
		cmocka_unit_test_setup(a_cooked_header_that_was_cut_says_nothing, fill_bytes),
	};

	cmocka_set_test_filter(getenv("WEIR_CLAIMS"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
