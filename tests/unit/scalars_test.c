// SPDX-License-Identifier: GPL-2.0-only
/* Words and numbers of a rule file, token by token. */
#include <string.h>

#include <arpa/inet.h>
#include "../lib/claims.h"
#include "base/printable.h"
#include "base/util.h"
#include "rules/scalars.h"

static struct weir_refusal refusal;

static void assert_refused(int result, const char *token, const char *message, const char *hint)
{
	if (result != -EINVAL || !strstr(refusal.message, message) || !strstr(refusal.hint, hint))
		fail_msg("'%s': %d, '%s' (%s), expected '%s' (%s)", token, result, refusal.message, refusal.hint,
			 message, hint);
}

/* ---- numbers ---- */

CLAIM(number_takes_whole_tokens_within_its_range)
{
	static const struct {
		const char *token;
		uint64_t value;
	} good[] = {{"0", 0}, {"7", 7}, {"65535", 65535}};
	uint64_t value;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(weir_parse_number(good[i].token, 0, 65535, &value, &refusal), 0);
		assert_int_equal(value, good[i].value);
	}
}

CLAIM(number_refuses_all_but_plain_decimals)
{
	static const char *const bad[] = {"",	   "80abc", "abc", " 80", "80 ", "+80", "0x50", "0o120", "1_000",
					  "1,000", "1e3",   "1.0", "nan", "inf", "-",	".",	"٣"};
	uint64_t value = 42;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(weir_parse_number(bad[i], 0, 65535, &value, &refusal), bad[i], "is not a whole number",
			       "write 0 to 65535");
	assert_int_equal(value, 42);
}

CLAIM(number_refuses_signs_leading_zeros_and_overflow)
{
	uint64_t value;

	assert_refused(weir_parse_number("-1", 0, 9, &value, &refusal), "-1", "'-1' is negative", "0 to 9");
	assert_refused(weir_parse_number("010", 0, 99, &value, &refusal), "010", "begins with a zero", "write 10");
	assert_refused(weir_parse_number("00", 0, 99, &value, &refusal), "00", "begins with a zero", "write 0");
	assert_refused(weir_parse_number("10", 0, 9, &value, &refusal), "10", "out of range", "write 0 to 9");
	assert_refused(weir_parse_number("2", 3, 9, &value, &refusal), "2", "out of range", "write 3 to 9");
	assert_refused(weir_parse_number("18446744073709551617", 0, 9, &value, &refusal), "2^64 + 1", "out of range",
		       "");
	assert_refused(weir_parse_number("99999999999999999999999999", 0, INT64_MAX / 100, &value, &refusal), "10^26",
		       "out of range", "");
}

/* A byte count of a rule file may be as large as JSON's readers take it. */
CLAIM(number_beyond_what_64_bits_hold_is_no_smaller_one)
{
	static const char *const beyond[] = {"9223372036854775808", "18446744073709551615", "18446744073709551616",
					     "18446744073709551716", "92233720368547758070"};
	uint64_t value = 42;

	for (size_t i = 0; i < ARRAY_SIZE(beyond); i++)
		assert_refused(weir_parse_number(beyond[i], 1, INT64_MAX, &value, &refusal), beyond[i], "out of range",
			       "write 1 to 9223372036854775807");
	assert_int_equal(value, 42);
	assert_int_equal(weir_parse_number("9223372036854775807", 1, INT64_MAX, &value, &refusal), 0);
	assert_true(value == INT64_MAX);
	assert_int_equal(weir_parse_number("18446744073709551615", 1, UINT64_MAX, &value, &refusal), 0);
	assert_true(value == UINT64_MAX);
	assert_refused(weir_parse_number("18446744073709551616", 1, UINT64_MAX, &value, &refusal), "2^64",
		       "out of range", "");
}

CLAIM(json_threshold_is_exact_whatever_its_spelling)
{
	static const struct {
		const char *token;
		uint64_t micro;
	} good[] = {
		{"0", 0},
		{"0.0", 0},
		{"0e9999999999999999999", 0},
		{"0.000000000e-5", 0},
		{"100.0", 100000000},
		{"12.5", 12500000},
		{"1e3", 1000000000},
		{"1E+3", 1000000000},
		{"1.25e1", 12500000},
		{"1.0000000000", 1000000},
		{"1e-6", 1},
		{"10e-7", 1},
		{"1000000.0e-12", 1},
		{"0.0000001e1", 1},
		{"123456.789012", 123456789012},
		{"1e13", 10000000000000000000ull},
		{"10000000000000.000000", 10000000000000000000ull},
		{"9999999999999.999999", 9999999999999999999ull},
		{"100000000000000000000000e-10", 10000000000000000000ull},
	};
	uint64_t micro;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (weir_parse_json_threshold(good[i].token, &micro, &refusal) || micro != good[i].micro)
			fail_msg("'%s': %llu, %s", good[i].token, (unsigned long long)micro, refusal.message);
	}
}

CLAIM(json_threshold_refuses_what_is_no_rate)
{
	static const struct {
		const char *token, *message;
	} bad[] = {
		{"", "is not a number"},
		{"nan", "is not a number"},
		{"Infinity", "is not a number"},
		{".5", "is not a number"},
		{"5.", "is not a number"},
		{"+5", "is not a number"},
		{"007", "is not a number"},
		{"1e", "is not a number"},
		{"1e+", "is not a number"},
		{"1e3x", "is not a number"},
		{"1.e3", "is not a number"},
		{"1e3.5", "is not a number"},
		{"0x10", "is not a number"},
		{"-1", "is negative"},
		{"-1e3", "is negative"},
		{"1e-7", "more than six decimals"},
		{"0.30000000000000004", "more than six decimals"},
		{"1.0000001", "more than six decimals"},
		{"1e-9999999999999999999", "more than six decimals"},
		{"1e14", "out of range"},
		{"10000000000000.000001", "out of range"},
		{"1e9999999999999999999", "out of range"},
		{"99999999999999999999999999", "out of range"},
	};
	uint64_t micro;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(weir_parse_json_threshold(bad[i].token, &micro, &refusal), bad[i].token, bad[i].message,
			       "");
}

CLAIM(prefixes_sort_by_family_address_and_length)
{
	static const char *const sorted[] = {"0.0.0.0/0",    "10.0.0.0/8", "10.0.0.0/16", "10.0.0.1",
					     "192.0.2.0/24", "::/0",	   "::/8",	  "2001:db8::1"};
	struct weir_prefix left, right;

	for (size_t i = 0; i < ARRAY_SIZE(sorted); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(sorted); j++) {
			int order;

			assert_int_equal(weir_parse_prefix(sorted[i], &left, &refusal), 0);
			assert_int_equal(weir_parse_prefix(sorted[j], &right, &refusal), 0);
			order = weir_compare_prefixes(&left, &right);
			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
		}
	}
}

CLAIM(range_has_both_ends)
{
	struct weir_range range;

	assert_int_equal(weir_parse_range("53", 65535, &range, &refusal), 0);
	assert_int_equal(range.low, 53);
	assert_int_equal(range.high, 53);
	assert_int_equal(weir_parse_range("0-65535", 65535, &range, &refusal), 0);
	assert_int_equal(range.low, 0);
	assert_int_equal(range.high, 65535);
	assert_int_equal(weir_parse_range("7-7", 65535, &range, &refusal), 0);
}

CLAIM(range_refuses_what_is_none)
{
	struct weir_range range;

	assert_refused(weir_parse_range("9-5", 65535, &range, &refusal), "9-5", "runs backwards", "write 5-9");
	assert_refused(weir_parse_range("1-65536", 65535, &range, &refusal), "1-65536", "out of range", "65535");
	assert_refused(weir_parse_range("1-", 65535, &range, &refusal), "1-", "range '1-' has no end", "write 1-65535");
	assert_refused(weir_parse_range("-1", 65535, &range, &refusal), "-1", "negative", "");
	assert_refused(weir_parse_range("1-2-3", 65535, &range, &refusal), "1-2-3", "'2-3' is not", "");
	assert_refused(weir_parse_range("1 - 2", 65535, &range, &refusal), "1 - 2", "is not", "");
	assert_refused(weir_parse_range("1:2", 65535, &range, &refusal), "1:2", "is not", "");
}

CLAIM(a_code_point_is_a_number_a_range_or_a_name)
{
	static const struct {
		const char *token;
		uint32_t low, high;
	} good[] = {
		{"0", 0, 0},	  {"63", 63, 63},   {"8-15", 8, 15},  {"ef", 46, 46},	{"le", 1, 1},
		{"cs0", 0, 0},	  {"cs1", 8, 8},    {"cs7", 56, 56},  {"af11", 10, 10}, {"af13", 14, 14},
		{"af21", 18, 18}, {"af22", 20, 20}, {"af33", 30, 30}, {"af41", 34, 34}, {"af43", 38, 38},
	};
	struct weir_range range;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(weir_parse_named_range(good[i].token, 63, weir_dscp_names, &range, &refusal), 0);
		assert_int_equal(range.low, good[i].low);
		assert_int_equal(range.high, good[i].high);
	}
}

static int parse_dscp(const char *token)
{
	struct weir_range range;

	return weir_parse_named_range(token, 63, weir_dscp_names, &range, &refusal);
}

CLAIM(a_code_point_that_is_none_is_refused)
{
	assert_refused(parse_dscp("64"), "64", "out of range", "0 to 63");
	assert_refused(parse_dscp("af14"), "af14", "neither a number nor a name", "did you mean 'af11'?");
	assert_refused(parse_dscp("cs8"), "cs8", "neither a number nor a name", "did you mean 'cs0'?");
	assert_refused(parse_dscp("expedited"), "expedited", "neither a number nor a name", "such as ef");
	assert_refused(parse_dscp("EF"), "EF", "neither", "ef");
	assert_refused(parse_dscp("cs1-cs3"), "cs1-cs3", "neither", "");
	assert_refused(parse_dscp("0x2e"), "0x2e", "not a whole number", "0 to 63");
}

/* ---- addresses ---- */

CLAIM(prefix_of_either_family_is_read_and_written)
{
	static const struct {
		const char *token;
		int family, bits;
		const char *text;
	} good[] = {
		{"192.0.2.53", 4, 32, "192.0.2.53"},
		{"192.0.2.0/24", 4, 24, "192.0.2.0/24"},
		{"0.0.0.0/0", 4, 0, "0.0.0.0/0"},
		{"192.0.2.53/32", 4, 32, "192.0.2.53"},
		{"2001:db8::53", 6, 128, "2001:db8::53"},
		{"2001:db8::/32", 6, 32, "2001:db8::/32"},
		{"::/0", 6, 0, "::/0"},
		{"2001:DB8:0:0::/61", 6, 61, "2001:db8::/61"},
	};
	char text[WEIR_PREFIX_TEXT_BYTES];
	struct weir_prefix prefix;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(weir_parse_prefix(good[i].token, &prefix, &refusal), 0);
		assert_int_equal(prefix.family, good[i].family);
		assert_int_equal(prefix.bits, good[i].bits);
		assert_string_equal(weir_format_prefix(&prefix, text), good[i].text);
	}
}

CLAIM(prefix_refuses_what_is_no_address)
{
	static const char *const bad[] = {"",
					  "1.2.3.4.5",
					  "256.0.0.1",
					  "256.*",
					  "*.*",
					  "10.*.1.1",
					  "10.0.0.0.*",
					  "nobody",
					  "01.2.3.4",
					  "2001:db8:::1",
					  "fe80::1%",
					  "/24",
					  "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc"};
	struct weir_prefix prefix;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(weir_parse_prefix(bad[i], &prefix, &refusal), bad[i], "not an IP address",
			       "192.0.2.0/24");
	assert_refused(weir_parse_prefix("10.0.0.0/33", &prefix, &refusal), "/33", "no valid prefix length", "0 to 32");
	assert_refused(weir_parse_prefix("10.0.0.0/", &prefix, &refusal), "/", "no valid prefix length", "0 to 32");
	assert_refused(weir_parse_prefix("10.0.0.0/08", &prefix, &refusal), "/08", "no valid prefix length", "");
	assert_refused(weir_parse_prefix("::/129", &prefix, &refusal), "/129", "no valid prefix length", "0 to 128");
	assert_refused(weir_parse_prefix("10.0.0.0/8/8", &prefix, &refusal), "/8/8", "no valid prefix length", "");
}

CLAIM(prefix_that_is_written_in_another_way_is_shown_as_it_should_be)
{
	static const struct {
		const char *token, *hint;
	} bad[] = {
		{"10.*", "write the prefix: 10.0.0.0/8"},
		{"192.168.*.*", "write the prefix: 192.168.0.0/16"},
		{"10.0.0.x", "write the prefix: 10.0.0.0/24"},
		{"1.2.3", "write the prefix: 1.2.3.0/24"},
		{"10/8", "write the prefix: 10.0.0.0/8"},
		{"172.16/12", "write the prefix: 172.16.0.0/12"},
		{"2001:db8:*", "write the prefix: 2001:db8::/32"},
		{"any", "write 0.0.0.0/0"},
		{"*", "write 0.0.0.0/0"},
		{"localhost", "weir does not look names up: write the addresses of 'localhost'"},
		{"example.com", "weir does not look names up: write the addresses of 'example.com'"},
		{"4.pool.ntp.org.", "weir does not look names up"},
	};
	struct weir_prefix prefix;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(weir_parse_prefix(bad[i].token, &prefix, &refusal), bad[i].token,
			       "is not an IP address or prefix", bad[i].hint);
}

CLAIM(prefix_with_host_bits_is_refused_and_the_right_one_shown)
{
	struct weir_prefix prefix;

	assert_refused(weir_parse_prefix("192.0.2.53/24", &prefix, &refusal), "/24", "host bits", "192.0.2.0/24");
	assert_refused(weir_parse_prefix("192.0.2.129/25", &prefix, &refusal), "/25", "host bits", "192.0.2.128/25");
	assert_refused(weir_parse_prefix("1.0.0.0/0", &prefix, &refusal), "/0", "host bits", "0.0.0.0/0");
	assert_refused(weir_parse_prefix("2001:db8::1/56", &prefix, &refusal), "/56", "host bits", "2001:db8::/56");
}

static void assert_prefix(const char *text, const char *expected)
{
	char shown[WEIR_PREFIX_TEXT_BYTES];
	struct weir_prefix prefix, plain;

	assert_int_equal(weir_parse_prefix(text, &prefix, &refusal), 0);
	assert_string_equal(weir_format_prefix(&prefix, shown), expected);
	/* Compared byte by byte where prefixes are keys. */
	assert_int_equal(weir_parse_prefix(expected, &plain, &refusal), 0);
	assert_memory_equal(&prefix, &plain, sizeof(prefix));
}

/* As a server that listens on IPv6 logs its IPv4 clients. */
CLAIM(mapped_address_is_the_ipv4_address_within)
{
	struct weir_prefix prefix;

	assert_prefix("::ffff:192.0.2.1", "192.0.2.1");
	assert_prefix("::FFFF:c000:201", "192.0.2.1");
	assert_prefix("0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1");
	assert_prefix("::ffff:192.0.2.1/128", "192.0.2.1");
	assert_prefix("::ffff:192.0.2.0/120", "192.0.2.0/24");
	assert_prefix("::ffff:128.0.0.0/97", "128.0.0.0/1");
	assert_prefix("::ffff:0:0/96", "0.0.0.0/0");
	assert_refused(weir_parse_prefix("::ffff:192.0.2.1/120", &prefix, &refusal), "/120", "host bits",
		       "192.0.2.0/24");
	/* More than what is mapped, and what is not. */
	assert_prefix("::/64", "::/64");
	assert_prefix("::192.0.2.1", "::192.0.2.1");
	assert_prefix("::fffe:c000:201", "::fffe:c000:201");
	assert_prefix("64:ff9b::c000:201", "64:ff9b::c000:201");
	assert_refused(weir_parse_prefix("::ffff:192.0.2.1/95", &prefix, &refusal), "/95",
		       "is an IPv4-mapped address with a prefix length below 96", "the IPv4 network alone");
}

CLAIM(network_is_widened_to_its_host_bits)
{
	static const struct {
		const char *text, *expected;
	} cases[] = {
		{"2001:db8::5/64", "2001:db8::/64"}, {"192.0.2.53/24", "192.0.2.0/24"},
		{"192.0.2.53", "192.0.2.53"},	     {"::ffff:192.0.2.53/120", "192.0.2.0/24"},
		{"192.0.2.53/0", "0.0.0.0/0"},
	};
	char shown[WEIR_PREFIX_TEXT_BYTES];
	struct weir_prefix prefix;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(weir_parse_network(cases[i].text, &prefix, &refusal), 0);
		assert_string_equal(weir_format_prefix(&prefix, shown), cases[i].expected);
	}
	assert_refused(weir_parse_network("192.0.2.53/33", &prefix, &refusal), "/33", "no valid prefix length", "");
	assert_refused(weir_parse_network("::ffff:192.0.2.1/24", &prefix, &refusal), "/24", "a prefix length below 96",
		       "192.0.2.0/24");
	assert_refused(weir_parse_network("192.0.2.1,192.0.2.2", &prefix, &refusal), ",", "is not an IP address",
		       "separate sources by spaces");
}

/* ---- words ---- */

CLAIM(network_is_cut_out_of_what_a_log_writes_around_it)
{
	static const struct {
		const char *text, *network;
	} cases[] = {
		{"192.0.2.53:5060", "192.0.2.53"},  {"[2001:db8::7]:5060", "2001:db8::7"},
		{"[2001:db8::7]", "2001:db8::7"},   {"fe80::1%eth0", "fe80::1"},
		{"fe80::1%eth0.7/64", "fe80::/64"}, {"[fe80::1%eth0]:22", "fe80::1"},
		{"[192.0.2.53]:22", "192.0.2.53"},  {"2001:db8::7:5060", "2001:db8::7:5060"},
		{"::ffff:192.0.2.1", "192.0.2.1"},
	};
	static const char *const others[] = {
		"192.0.2.53:",	     "192.0.2.53:80a", "[2001:db8::7", "[2001:db8::7]80", "fe80::1%",
		"192.0.2.53/24:80",  "eth0:80",	       "[]:80",	       "[[::1]]",	  "%eth0",
		"192.2001:db8::/32", "1:2:3/8"};
	struct weir_prefix prefix;
	char text[WEIR_PREFIX_TEXT_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(weir_parse_network(cases[i].text, &prefix, &refusal), 0);
		assert_string_equal(weir_format_prefix(&prefix, text), cases[i].network);
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_int_not_equal(weir_parse_network(others[i], &prefix, &refusal), 0);
}

static bool covers(const struct weir_prefix *prefix, uint32_t address)
{
	uint32_t network;

	memcpy(&network, prefix->address, sizeof(network));
	return !prefix->bits || !((ntohl(network) ^ address) >> (32 - prefix->bits));
}

/* Every address of the range is in exactly one prefix, and no other is in any; and no two prefixes could be one. */
CLAIM(range_of_addresses_becomes_the_fewest_prefixes)
{
	static const struct {
		const char *text, *first, *last;
		size_t count;
	} whole[] = {
		{"0.0.0.0-255.255.255.255", "0.0.0.0/0", "0.0.0.0/0", 1},
		{"0.0.0.1-255.255.255.254", "0.0.0.1", "255.255.255.254", 62},
		{"::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", 254},
		{"::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "::/0", "::/0", 1},
		{"2001:db8:: - 2001:db8::ffff", "2001:db8::/112", "2001:db8::/112", 1},
		{"192.0.2.9-192.0.2.9", "192.0.2.9", "192.0.2.9", 1},
	};
	struct weir_prefix prefixes[WEIR_RANGE_PREFIXES_MAX];
	char text[64];
	size_t count;

	for (uint32_t low = 0; low < 40; low++)
		for (uint32_t high = low; high < 40; high++) {
			snprintf(text, sizeof(text), "10.0.0.%u-10.0.0.%u", low, high);
			assert_int_equal(weir_parse_address_range(text, prefixes, &count, &refusal), 0);
			for (uint32_t host = 0; host < 64; host++) {
				size_t in = 0;

				for (size_t i = 0; i < count; i++)
					in += covers(&prefixes[i], 10u << 24 | host);
				assert_int_equal(in, host >= low && host <= high);
			}
			for (size_t i = 1; i < count; i++) {
				struct weir_prefix both = prefixes[i - 1];
				uint32_t next;

				memcpy(&next, prefixes[i].address, sizeof(next));
				both.bits--;
				assert_false(prefixes[i].bits == prefixes[i - 1].bits && covers(&both, ntohl(next)));
			}
		}
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		assert_int_equal(weir_parse_address_range(whole[i].text, prefixes, &count, &refusal), 0);
		assert_int_equal(count, whole[i].count);
		assert_string_equal(weir_format_prefix(&prefixes[0], text), whole[i].first);
		assert_string_equal(weir_format_prefix(&prefixes[count - 1], text), whole[i].last);
	}
	assert_int_equal(weir_parse_address_range("192.0.2.7", prefixes, &count, &refusal), -ENOENT);
	assert_int_equal(weir_parse_address_range("a-b", prefixes, &count, &refusal), -ENOENT);
	assert_refused(weir_parse_address_range("192.0.2.9-192.0.2.1", prefixes, &count, &refusal), "9-1",
		       "runs backwards", "lower address first");
}

CLAIM(protocol_is_a_name_or_a_number)
{
	uint8_t protocol;

	assert_int_equal(weir_parse_protocol("udp", &protocol, &refusal), 0);
	assert_int_equal(protocol, 17);
	assert_int_equal(weir_parse_protocol("icmpv6", &protocol, &refusal), 0);
	assert_int_equal(protocol, 58);
	assert_int_equal(weir_parse_protocol("255", &protocol, &refusal), 0);
	assert_int_equal(protocol, 255);
	assert_refused(weir_parse_protocol("256", &protocol, &refusal), "256", "out of range", "255");
	assert_refused(weir_parse_protocol("tpc", &protocol, &refusal), "tpc", "not a known protocol", "'tcp'");
	assert_refused(weir_parse_protocol("UDP", &protocol, &refusal), "UDP", "not a known protocol", "'udp'");
	assert_refused(weir_parse_protocol("", &protocol, &refusal), "", "not a known protocol", "");
}

CLAIM(tcp_flags_are_set_or_clear)
{
	struct weir_tcp_flags flags;

	assert_int_equal(weir_parse_tcp_flags("syn,!ack", &flags, &refusal), 0);
	assert_int_equal(flags.set, 0x02);
	assert_int_equal(flags.clear, 0x10);
	assert_int_equal(weir_parse_tcp_flags("fin,syn,rst,psh,ack,urg,ece,cwr", &flags, &refusal), 0);
	assert_int_equal(flags.set, 0xff);
	assert_int_equal(flags.clear, 0);
	assert_int_equal(weir_parse_tcp_flags("syn, !ack", &flags, &refusal), 0);
	assert_refused(weir_parse_tcp_flags("syn,!syn", &flags, &refusal), "syn,!syn", "both set and not set", "");
	assert_refused(weir_parse_tcp_flags("syn,", &flags, &refusal), "syn,", "'' is not a TCP flag", "syn,!ack");
	assert_refused(weir_parse_tcp_flags("", &flags, &refusal), "", "'' is not a TCP flag", "");
	assert_refused(weir_parse_tcp_flags("!", &flags, &refusal), "!", "'' is not a TCP flag", "");
	assert_refused(weir_parse_tcp_flags("!!syn", &flags, &refusal), "!!syn", "not a TCP flag", "");
	assert_refused(weir_parse_tcp_flags("synack", &flags, &refusal), "synack", "'synack' is not a TCP flag", "");
	assert_refused(weir_parse_tcp_flags("syn ack", &flags, &refusal), "syn ack", "commas", "");
}

CLAIM(fragment_any_is_first_or_later)
{
	uint8_t fragments;

	assert_int_equal(weir_parse_fragment("none", &fragments, &refusal), 0);
	assert_int_equal(fragments, 1 << WEIR_FRAGMENT_NONE);
	assert_int_equal(weir_parse_fragment("any", &fragments, &refusal), 0);
	assert_int_equal(fragments, 1 << WEIR_FRAGMENT_FIRST | 1 << WEIR_FRAGMENT_LATER);
	assert_refused(weir_parse_fragment("yes", &fragments, &refusal), "yes", "not known",
		       "none, first, later or any");
}

CLAIM(interface_name_is_one_the_kernel_takes)
{
	char name[WEIR_WANTED_BYTES];

	assert_int_equal(weir_parse_interface("eth0", name, &refusal), 0);
	assert_string_equal(name, "eth0");
	assert_int_equal(weir_parse_interface("fifteen-letters", name, &refusal), 0);
	assert_refused(weir_parse_interface("sixteen--letters", name, &refusal), "16", "is not a valid", "1 to 15");
	assert_refused(weir_parse_interface("", name, &refusal), "", "is not a valid", "1 to 15");
	assert_refused(weir_parse_interface("..", name, &refusal), "..", "is not a valid", "");
	assert_refused(weir_parse_interface("a/b", name, &refusal), "a/b", "is not a valid", "");
	assert_refused(weir_parse_interface("a b", name, &refusal), "a b", "is not a valid", "");
}

CLAIM(interface_pattern_has_up_to_thirty_bytes_and_no_slash)
{
	char word[WEIR_WANTED_BYTES];

	assert_int_equal(weir_parse_interface("veth*", word, &refusal), 0);
	assert_string_equal(word, "veth*");
	assert_int_equal(weir_parse_interface("!veth-mgmt", word, &refusal), 0);
	assert_int_equal(weir_parse_interface("!thirty-bytes-of-a-pattern-[abc]", word, &refusal), -EINVAL);
	assert_int_equal(weir_parse_interface("!thirty-bytes-of-a-pattern-[ab]", word, &refusal), 0);
	assert_string_equal(word, "!thirty-bytes-of-a-pattern-[ab]");
	assert_refused(weir_parse_interface("!", word, &refusal), "!", "is not a valid", "1 to 15");
	assert_refused(weir_parse_interface("a/*", word, &refusal), "a/*", "is not a valid", "");
	assert_refused(weir_parse_interface("!sixteen--letters", word, &refusal), "!", "is not a valid", "1 to 15");
}

/* ---- the flow key ---- */

CLAIM(flow_field_takes_a_prefix_length_of_each_family)
{
	struct weir_flow flow = {};

	assert_int_equal(weir_parse_flow_field("source/24/56", 0, &flow, &refusal), 0);
	assert_int_equal(weir_parse_flow_field("destination", 0, &flow, &refusal), 0);
	assert_int_equal(weir_parse_flow_field("vlan", 0, &flow, &refusal), 0);
	assert_int_equal(flow.fields, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION | WEIR_KEY_VLAN);
	assert_int_equal(flow.source_bits[0], 24);
	assert_int_equal(flow.source_bits[1], 56);
	assert_int_equal(flow.destination_bits[0], 32);
	assert_int_equal(flow.destination_bits[1], 128);
}

CLAIM(flow_prefix_alone_needs_one_family)
{
	struct weir_flow flow4 = {}, flow6 = {}, flow = {};

	assert_int_equal(weir_parse_flow_field("source/24", 1, &flow4, &refusal), 0);
	assert_int_equal(flow4.source_bits[0], 24);
	assert_int_equal(flow4.source_bits[1], 128);
	assert_int_equal(weir_parse_flow_field("source/56", 2, &flow6, &refusal), 0);
	assert_int_equal(flow6.source_bits[0], 32);
	assert_int_equal(flow6.source_bits[1], 56);
	assert_refused(weir_parse_flow_field("source/24", 0, &flow, &refusal), "source/24", "one prefix",
		       "source/24/56");
	assert_refused(weir_parse_flow_field("source/24", 3, &flow, &refusal), "source/24", "one prefix",
		       "family: ipv4");
	assert_refused(weir_parse_flow_field("source/56", 1, &flow, &refusal), "source/56", "no valid prefix",
		       "1 to 32");
	assert_int_equal(flow.fields, 0);
}

CLAIM(flow_field_refuses_what_is_no_key)
{
	static const struct {
		const char *token, *message;
	} bad[] = {
		{"", "not a field of a flow key"},
		{"src", "not a field of a flow key"},
		{"sourceport", "not a field of a flow key"},
		{"sourc", "not a field of a flow key"},
		{"source/", "one prefix length"},
		{"source//", "no valid prefix length"},
		{"source/0/56", "no valid prefix length"},
		{"source/24/0", "no valid prefix length"},
		{"source/33/56", "no valid prefix length"},
		{"source/24/129", "no valid prefix length"},
		{"source/24/56/1", "no valid prefix length"},
		{"source/24/56/", "no valid prefix length"},
		{"source/ 24/56", "no valid prefix length"},
		{"vlan/3", "vlan is not an address"},
		{"sourcePort/8/8", "sourcePort is not an address"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct weir_flow flow = {};

		assert_refused(weir_parse_flow_field(bad[i].token, 0, &flow, &refusal), bad[i].token, bad[i].message,
			       "");
	}
}

CLAIM(flow_field_is_in_the_key_once)
{
	struct weir_flow flow = {};

	assert_int_equal(weir_parse_flow_field("source/24/56", 0, &flow, &refusal), 0);
	assert_refused(weir_parse_flow_field("source", 0, &flow, &refusal), "source", "twice", "leave one");
}

/* ---- names ---- */

CLAIM(name_has_1_to_127_bytes_of_utf8)
{
	char name[WEIR_NAME_BYTES + 1];

	memset(name, 'x', sizeof(name));
	name[127] = '\0';
	assert_int_equal(weir_check_name(name, &refusal), 0);
	name[127] = 'x';
	name[128] = '\0';
	assert_refused(weir_check_name(name, &refusal), "128 bytes", "is 128 bytes long", "1 to 127");
	assert_refused(weir_check_name("", &refusal), "", "empty", "1 to 127");
	assert_int_equal(weir_check_name("düsseldorf, 日本 #1", &refusal), 0);
	assert_refused(weir_check_name("a;b", &refusal), "a;b", "contains ';'", "");
	assert_refused(weir_check_name("a\nb", &refusal), "a\\nb", "control character", "");
	assert_refused(weir_check_name("a\x7f", &refusal), "DEL", "control character", "");
	assert_refused(weir_check_name("a\xc2\x9b", &refusal), "C1", "control character", "");
	/* They would show what stands around them in another order. */
	assert_refused(weir_check_name("a\u202eb", &refusal), "U+202E", "control character", "");
	assert_refused(weir_check_name("a\u2066b", &refusal), "U+2066", "control character", "");
	assert_refused(weir_check_name("a\u200fb", &refusal), "U+200F", "control character", "");
	assert_refused(weir_check_name("\xff", &refusal), "0xff", "not UTF-8", "");
}

CLAIM(utf8_refuses_overlong_surrogate_and_cut_characters)
{
	static const char *const bad[] = {"\x80",
					  "\xc0\x80",
					  "\xe0\x80\x80",
					  "\xed\xa0\x80",
					  "\xf4\x90\x80\x80",
					  "\xe2\x82",
					  "\xf8\x88\x80\x80\x80"};
	uint32_t code;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(weir_utf8_character(bad[i], strlen(bad[i]), &code), 0);
	assert_int_equal(weir_utf8_character("\xf0\x9f\x98\x80", 4, &code), 4);
	assert_int_equal(code, 0x1f600);
	assert_int_equal(weir_utf8_character("\xf0\x9f\x98\x80", 3, &code), 0);
}

CLAIM(nearest_finds_what_was_meant_and_nothing_else)
{
	static const char *const words[] = {"threshold", "statIntervalInMs", "sampleCount", "resource"};

	assert_string_equal(weir_nearest("treshold", words, ARRAY_SIZE(words), sizeof(*words)), "threshold");
	assert_string_equal(weir_nearest("samplecount", words, ARRAY_SIZE(words), sizeof(*words)), "sampleCount");
	assert_string_equal(weir_nearest("resuorce", words, ARRAY_SIZE(words), sizeof(*words)), "resource");
	assert_string_equal(weir_nearest("interval", words, ARRAY_SIZE(words), sizeof(*words)), "statIntervalInMs");
	assert_null(weir_nearest("burst", words, ARRAY_SIZE(words), sizeof(*words)));
	assert_null(weir_nearest("", words, ARRAY_SIZE(words), sizeof(*words)));
	assert_null(weir_nearest("x", words, 0, sizeof(*words)));
}

RUN_CLAIMS(NULL, NULL)
