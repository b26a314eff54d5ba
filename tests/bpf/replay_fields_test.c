// SPDX-License-Identifier: GPL-2.0-only
/*
 * Claims about single fields of matches and flow keys. Each on traffic made for it: the shipped BPF object agrees with
 * the reference model on every packet, and both with the figure that is written down.
 */
#include "../lib/harness_setup.h"
#include "base/util.h"

#define EF 46
#define ECN_BITS 3

static struct packet_spec from_ipv4(void)
{
	return packet_udp(HOST, 1024, "192.0.2.53", 53, 18);
}

static struct packet_spec from_ipv6(void)
{
	return packet_udp("2001:db8::1", 1024, "2001:db8::53", 53, 18);
}

/* Send `count` such packets at this time. Returns how many passed. */
static unsigned int evaluate(struct harness *harness, struct packet_spec spec, uint64_t time_ns, unsigned int count)
{
	unsigned int passed = 0;

	spec.time_ns = time_ns;
	for (unsigned int i = 0; i < count; i++) {
		passed += harness_verdict(harness, &spec) != WEIR_VERDICT_BLOCK;
	}
	return passed;
}

static struct packet_spec with_dscp(struct packet_spec spec, uint8_t dscp)
{
	spec.traffic_class = dscp << 2 | ECN_BITS;
	return spec;
}

/* ---- dscp ---- */

/* The limit holds for code points 8 to 15 and EF, whatever the bits of ECN, behind an option or a tag, too. */
HARNESS_CLAIM(a_match_of_dscp_takes_both_families_and_no_other_code_point)
{
	static const struct {
		uint8_t dscp;
		unsigned int passed; /* of three packets, with a limit of two */
	} cases[] = {{0, 3}, {7, 3}, {8, 2}, {15, 2}, {16, 3}, {EF - 1, 3}, {EF, 2}, {EF + 1, 3}, {63, 3}};
	static struct weir_range ranges[] = {{8, 15}, {EF, EF}};

	setup_resources(setup, 1);
	setup->resource[0].match.dscp = ranges;
	setup->resource[0].match.dscp_count = ARRAY_SIZE(ranges);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	harness_start(harness, setup);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet_spec tagged = with_dscp(from_ipv4(), cases[i].dscp), with_options = tagged;

		tagged.tag[tagged.tag_count++] = (struct packet_tag){ETHERTYPE_VLAN, 7};
		with_options.option_words = 2;
		assert_int_equal(evaluate(harness, with_dscp(from_ipv4(), cases[i].dscp), (10 + 6 * i) * SECOND, 3),
				 cases[i].passed);
		assert_int_equal(evaluate(harness, with_dscp(from_ipv6(), cases[i].dscp), (10 + 6 * i) * SECOND, 3),
				 cases[i].passed);
		assert_int_equal(evaluate(harness, tagged, (12 + 6 * i) * SECOND, 3), cases[i].passed);
		assert_int_equal(evaluate(harness, with_options, (14 + 6 * i) * SECOND, 3), cases[i].passed);
	}
}

/* ---- ipLength ---- */

/* A datagram of `payload_bytes`, in a frame that a card pads to 60 bytes. */
static struct packet_spec padded(struct packet_spec spec, uint32_t payload_bytes)
{
	const uint32_t frame_bytes = 14 + (spec.family == 6 ? 40 : 20) + 8 + payload_bytes;

	spec.payload_bytes = payload_bytes;
	spec.padding_bytes = frame_bytes < 60 ? 60 - frame_bytes : 0;
	return spec;
}

/* What the IP header says, whatever the frame: 28 to 46 bytes lie in frames of 60 alike. */
HARNESS_CLAIM(a_match_of_ip_length_does_not_count_padding)
{
	static const struct {
		unsigned int payload;
		unsigned int passed4, passed6; /* of three packets, with a limit of two */
	} cases[] = {{0, 2, 2},	 {1, 3, 3},  {2, 3, 2},	 {18, 3, 2}, {21, 3, 2},
		     {22, 2, 2}, {32, 2, 2}, {33, 2, 3}, {52, 2, 3}, {53, 3, 3}};
	/* IPv4's 28 is without payload, IPv6's 48; and 50 to 80 of either. */
	static struct weir_range ranges[] = {{28, 28}, {48, 48}, {50, 80}};

	setup_resources(setup, 1);
	setup->resource[0].match.ip_length = ranges;
	setup->resource[0].match.ip_length_count = ARRAY_SIZE(ranges);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	harness_start(harness, setup);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet_spec spec4 = padded(from_ipv4(), cases[i].payload), tagged = spec4;
		struct packet_spec spec6 = padded(from_ipv6(), cases[i].payload);

		tagged.tag[tagged.tag_count++] = (struct packet_tag){ETHERTYPE_VLAN, 7};
		assert_int_equal(evaluate(harness, spec4, (10 + 6 * i) * SECOND, 3), cases[i].passed4);
		assert_int_equal(evaluate(harness, tagged, (12 + 6 * i) * SECOND, 3), cases[i].passed4);
		assert_int_equal(evaluate(harness, spec6, (14 + 6 * i) * SECOND, 3), cases[i].passed6);
	}
}

/* ---- ttl ---- */

static struct packet_spec with_ttl(struct packet_spec spec, uint8_t ttl)
{
	spec.ttl = ttl;
	return spec;
}

/* The limit holds for 1 to 5 and 255: IPv4's time to live, IPv6's hop limit, behind an option or a tag, too. */
HARNESS_CLAIM(a_match_of_ttl_takes_both_families_and_no_other_value)
{
	static const struct {
		uint8_t ttl;
		unsigned int passed; /* of three packets, with a limit of two */
	} cases[] = {{1, 2}, {5, 2}, {6, 3}, {64, 3}, {254, 3}, {255, 2}};
	static struct weir_range ranges[] = {{1, 5}, {255, 255}};

	setup_resources(setup, 1);
	setup->resource[0].match.ttl = ranges;
	setup->resource[0].match.ttl_count = ARRAY_SIZE(ranges);
	setup_rule(setup, 0, rule_of("limit", WEIR_WINDOW_LEAP, 2, SECOND, 10));
	harness_start(harness, setup);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet_spec tagged = with_ttl(from_ipv4(), cases[i].ttl), with_options = tagged;

		tagged.tag[tagged.tag_count++] = (struct packet_tag){ETHERTYPE_VLAN, 7};
		with_options.option_words = 2;
		assert_int_equal(evaluate(harness, with_ttl(from_ipv4(), cases[i].ttl), (10 + 8 * i) * SECOND, 3),
				 cases[i].passed);
		assert_int_equal(evaluate(harness, with_ttl(from_ipv6(), cases[i].ttl), (12 + 8 * i) * SECOND, 3),
				 cases[i].passed);
		assert_int_equal(evaluate(harness, tagged, (14 + 8 * i) * SECOND, 3), cases[i].passed);
		assert_int_equal(evaluate(harness, with_options, (16 + 8 * i) * SECOND, 3), cases[i].passed);
	}
}

/* ---- flow keys ---- */

/* A limit of four on a resource with this key; whole addresses. */
static void start_keyed(struct harness *harness, struct setup *setup, uint32_t key_fields, bool throttles)
{
	setup_resources(setup, 1);
	setup->resource[0].flow.fields = key_fields;
	setup_rule(setup, 0,
		   throttles ? throttling_of(4, SECOND, 750) : rule_of("limit", WEIR_WINDOW_LEAP, 4, SECOND, 10));
	harness_start(harness, setup);
}

/* Three packets of each family at once, and a limit of four: six pass where each family has a flow of its own. One that
 * spaces its packets admits four at one instant, too.
 */
HARNESS_CLAIM(a_key_without_an_address_does_not_split_the_families)
{
	static const struct {
		uint32_t key_fields;
		unsigned int passed;
	} cases[] = {
		{0, 4},
		{WEIR_KEY_DESTINATION_PORT, 4},
		{WEIR_KEY_SOURCE_PORT | WEIR_KEY_DESTINATION_PORT, 4},
		{WEIR_KEY_VLAN, 4},
		{WEIR_KEY_PROTOCOL | WEIR_KEY_INTERFACE, 4},
		{WEIR_KEY_SOURCE, 6},
		{WEIR_KEY_DESTINATION | WEIR_KEY_DESTINATION_PORT, 6},
	};

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		unsigned int passed = 0;

		start_keyed(harness, setup, cases[i / 2].key_fields, i % 2);
		passed += evaluate(harness, from_ipv4(), 10 * SECOND, 3);
		passed += evaluate(harness, from_ipv6(), 10 * SECOND, 3);
		assert_int_equal(passed, cases[i / 2].passed);
		harness_finish(harness);
	}
}

/* Each code point is a flow, of both families and whatever the bits of ECN; under a rule with an address, each family's
 * is one.
 */
HARNESS_CLAIM(a_key_with_dscp_has_a_flow_for_each_code_point)
{
	static const uint8_t dscps[] = {0, 1, EF, 63};

	for (size_t i = 0; i < 4; i++) {
		const uint32_t address = i % 2 ? WEIR_KEY_SOURCE : 0;

		start_keyed(harness, setup, WEIR_KEY_DSCP | address, i / 2);
		for (size_t n = 0; n < ARRAY_SIZE(dscps); n++) {
			struct packet_spec without_ecn = with_dscp(from_ipv4(), dscps[n]);

			without_ecn.traffic_class &= ~ECN_BITS;
			assert_int_equal(evaluate(harness, with_dscp(from_ipv4(), dscps[n]), 10 * SECOND, 2), 2);
			assert_int_equal(evaluate(harness, without_ecn, 10 * SECOND, 1), 1);
			assert_int_equal(evaluate(harness, with_dscp(from_ipv6(), dscps[n]), 10 * SECOND, 3),
					 address ? 3 : 1);
		}
		harness_finish(harness);
	}
}

/* A hop limit is a time to live: one flow of both families. Behind a NAT, hosts of another kind count alone. */
HARNESS_CLAIM(a_key_with_ttl_has_a_flow_for_each_value)
{
	static const uint8_t ttls[] = {1, 63, 64, 255};

	for (size_t i = 0; i < 4; i++) {
		const uint32_t address = i % 2 ? WEIR_KEY_SOURCE : 0;

		start_keyed(harness, setup, WEIR_KEY_TTL | address, i / 2);
		for (size_t n = 0; n < ARRAY_SIZE(ttls); n++) {
			assert_int_equal(evaluate(harness, with_ttl(from_ipv4(), ttls[n]), 10 * SECOND, 3), 3);
			assert_int_equal(evaluate(harness, with_ttl(from_ipv6(), ttls[n]), 10 * SECOND, 3),
					 address ? 3 : 1);
		}
		harness_finish(harness);
	}
}

/* ---- except ---- */

static bool belongs_to(const struct harness *harness, size_t resource)
{
	const volatile struct weir_harness *memory = weir_object_harness(harness->object);

	for (uint32_t i = 0; i < memory->resource_count; i++)
		if (memory->resource[i] == resource)
			return true;
	return false;
}

/*
 * Three resources in the order of the file: what remains of UDP without DNS; DNS without guests; and guests. A guest
 * that asks belongs to the first and the third, since DNS is without it.
 */
HARNESS_CLAIM(a_packet_of_an_excepted_resource_does_not_belong_to_the_other)
{
	static struct weir_excepted dns = {"dns", 1}, guests = {"guests", 2};
	static struct weir_range port = {53, 53};
	static struct weir_prefix prefix = {.family = 4, .bits = 24, .address = {198, 51, 100}};
	static const struct {
		const char *source;
		uint16_t port;
		bool belongs[3];
	} cases[] = {
		{HOST, 123, {true, false, false}},
		{HOST, 53, {false, true, false}},
		{"198.51.100.1", 123, {true, false, true}},
		{"198.51.100.1", 53, {true, false, true}},
	};

	setup_resources(setup, 3);
	setup->resource[0].match.except = &dns;
	setup->resource[1].match.destination_port = &port;
	setup->resource[1].match.destination_port_count = 1;
	setup->resource[1].match.except = &guests;
	setup->resource[0].match.except_count = setup->resource[1].match.except_count = 1;
	setup->resource[2].match.source = &prefix;
	setup->resource[2].match.source_count = 1;
	for (size_t i = 0; i < 3; i++)
		setup_rule(setup, i, rule_of("limit", WEIR_WINDOW_LEAP, 1000, SECOND, 10));
	harness_start(harness, setup);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct packet_spec spec = packet_udp(cases[i].source, 1024, "192.0.2.53", cases[i].port, 18);

		evaluate(harness, spec, (10 + i) * SECOND, 3);
		for (size_t k = 0; k < 3; k++)
			if (belongs_to(harness, k) != cases[i].belongs[k])
				fail_msg("packet %zu, resource %zu", i, k);
	}
}

RUN_CLAIMS(harness_stay_on_one_cpu, NULL)
