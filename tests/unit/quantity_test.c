// SPDX-License-Identifier: GPL-2.0-only
/* Quantities as operators write them: amounts, durations, rates. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "rules/quantity.h"

static struct weir_refusal refusal;

static void assert_refused(int result, const char *token, const char *message, const char *hint)
{
	if (result != -EINVAL || !strstr(refusal.message, message) || !strstr(refusal.hint, hint))
		fail_msg("'%s': %d, '%s' (%s), expected '%s' (%s)", token, result, refusal.message, refusal.hint,
			 message, hint);
}

CLAIM(threshold_is_exact_in_millionths)
{
	static const struct {
		const char *token;
		uint64_t micro;
	} good[] = {
		{"0", 0},
		{"1", 1000000},
		{"0.5", 500000},
		{"2.9", 2900000},
		{"0.000001", 1},
		{"0.100000", 100000},
		{"1000000", 1000000000000},
		{"10000000000000", 10000000000000000000ull},
		{"20k", 20000000000},
		{"1.5k", 1500000000},
		{"10M", 10000000000000},
		{"0.000001M", 1000000},
		{"10T", 10000000000000000000ull},
		{"2Ki", 2048000000},
		{"1.5Mi", 1572864000000},
		{"1Gi", 1073741824000000},
		{"1Ti", 1099511627776000000},
	};
	uint64_t micro;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(weir_parse_threshold(good[i].token, false, &micro, &refusal), 0);
		assert_true(micro == good[i].micro);
	}
}

CLAIM(threshold_refuses_what_is_no_rate)
{
	static const struct {
		const char *token, *message;
	} bad[] = {
		{"nan", "is not a number"},
		{"inf", "is not a number"},
		{"", "is not a number"},
		{".5", "is not a number"},
		{"5.", "is not a number"},
		{"1e3", "is not a number"},
		{"1.2.3", "is not a number"},
		{"0x10", "is not a number"},
		{"-1", "is negative"},
		{"-0.5", "is negative"},
		{"1.0000001", "more than six decimals"},
		{"007", "begins with a zero"},
		{"10000000000001", "out of range"},
		{"10.000001T", "out of range"},
		{"10Ti", "out of range"},
		{"99999999999999999999", "out of range"},
	};
	uint64_t micro;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(weir_parse_threshold(bad[i].token, false, &micro, &refusal), bad[i].token,
			       bad[i].message, "");
}

CLAIM(duration_is_numbers_with_units_the_longer_first)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {{"1ms", 1},
		    {"90s", 90000},
		    {"10m", 600000},
		    {"1h30m", 5400000},
		    {"7d", 604800000},
		    {"1d2h3m4s5ms", 93784005},
		    {"0h5s", 5000},
		    {"10min", 600000},
		    {"1hour30minute", 5400000},
		    {"2day3sec", 172803000},
		    {"3650d", 315360000000}};
	static const char *const bad[] = {"", "h", "1x", "1 h", "30m1h", "1h1h", "-1h", "1.5h", "1hours"};
	static const char *const beyond[] = {"0s", "3651d", "3650d1s", "99999999999999999999s", "99999d9999999999h"};
	uint64_t ns;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(weir_parse_duration(good[i].text, &ns, &refusal), 0);
		assert_int_equal(ns, good[i].ms * 1000000);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_refused(weir_parse_duration(bad[i], &ns, &refusal), bad[i], "is not a duration", "1h30m");
	assert_refused(weir_parse_duration("5", &ns, &refusal), "5", "is not a duration", "add a unit: 5s, 5m or 5h");
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++)
		assert_refused(weir_parse_duration(beyond[i], &ns, &refusal), beyond[i], "is out of range",
			       "1ms to 3650d");
}

CLAIM(what_could_mean_two_things_is_refused_with_both)
{
	static const struct {
		const char *token, *hint;
	} bad[] = {
		{"20K", "write 20k or 20Ki"},
		{"20KB", "write 20kB or 20KiB"},
		{"10m", "write 10M"},
		{"10g", "write 10G"},
		{"10ki", "write 10Ki"},
		{"10mb", "write 10Mbit or 10MB"},
		{"10Kb", "write 10kbit, 10Kibit, 10kB or 10KiB"},
		{"10Mbps", "write 10Mbit or 10MB"},
		{"10mbit", "write 10Mbit"},
		{"10kbytes", "write 10kB"},
		{"20pps", "write 20"},
		{"20packets", "write 20"},
		{"20 k", "write 20k, without spaces"},
		{"20 packets", "write 20"},
		{"64 KB", "write 64kB or 64KiB"},
		{"20 apples", "20000, 20k or 0.5"},
		{"1_000", "write 1000, without spaces"},
		{"1,000,000", "write 1000000, without spaces"},
		{"1,5k", "write 1.5k if the comma is a decimal point, 15k if it separates thousands"},
		{"1,000", "write 1.000 if the comma is a decimal point, 1000 if it separates thousands"},
		{"1e6", "20000, 20k or 0.5"},
	};
	uint64_t micro;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(weir_parse_threshold(bad[i].token, true, &micro, &refusal), bad[i].token,
			       "is not a number", bad[i].hint);
}

CLAIM(bytes_and_bits_are_exact_where_bytes_are_counted)
{
	static const struct {
		const char *token;
		uint64_t micro;
	} good[] = {
		{"1514B", 1514000000}, {"10MB", 10000000000000}, {"64KiB", 65536000000}, {"100Mbit", 12500000000000},
		{"1bit", 125000},      {"12bit", 1500000},	 {"1Kibit", 128000000},	 {"0.1bit", 12500},
	};
	uint64_t micro;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(weir_parse_threshold(good[i].token, true, &micro, &refusal), 0);
		assert_true(micro == good[i].micro);
		assert_refused(weir_parse_threshold(good[i].token, false, &micro, &refusal), good[i].token,
			       "is in bytes, but the rule counts packets", "add 'unit: bytes', or write 'rate: ");
	}
	assert_refused(weir_parse_threshold("0.000001bit", true, &micro, &refusal), "", "more than six decimals",
		       "a bit is 0.125 bytes");
}

CLAIM(a_count_is_whole_however_it_is_written)
{
	uint64_t count;

	assert_int_equal(weir_parse_count("256Ki", false, 512, 1 << 20, &count, &refusal), 0);
	assert_int_equal(count, 262144);
	assert_int_equal(weir_parse_count("1.5k", false, 0, 2000, &count, &refusal), 0);
	assert_int_equal(count, 1500);
	assert_int_equal(weir_parse_count("8GiB", true, 1, INT64_MAX, &count, &refusal), 0);
	assert_true(count == 8ull << 30);
	assert_int_equal(weir_parse_count("18446744073709551615", false, 0, UINT64_MAX, &count, &refusal), 0);
	assert_true(count == UINT64_MAX);
	assert_refused(weir_parse_count("8GB", false, 1, INT64_MAX, &count, &refusal), "", "is not a whole number",
		       "write 1 to 9223372036854775807");
	assert_refused(weir_parse_count("1.0001k", false, 0, 2000, &count, &refusal), "", "is not a whole number", "");
	assert_refused(weir_parse_count("12bit", true, 0, 2000, &count, &refusal), "", "is not a whole number", "");
	assert_refused(weir_parse_count("2.001k", false, 0, 2000, &count, &refusal), "", "is out of range",
		       "0 to 2000");
	assert_refused(weir_parse_count("0.5k", false, 512, 2000, &count, &refusal), "", "is out of range", "");
	assert_refused(weir_parse_count("99999999999999999999Ti", false, 0, UINT64_MAX, &count, &refusal), "",
		       "is out of range", "");
	assert_refused(weir_parse_count("999999999999999999999k", false, 0, UINT64_MAX, &count, &refusal), "",
		       "is out of range", "");
	assert_refused(weir_parse_count("64K", false, 0, 2000, &count, &refusal), "", "is not a whole number",
		       "write 64k or 64Ki");
}

CLAIM(a_time_is_a_duration_in_its_fields_unit)
{
	uint64_t number;

	assert_int_equal(weir_parse_time("1m", 1000000, 10, 86400000, &number, &refusal), 0);
	assert_int_equal(number, 60000);
	assert_int_equal(weir_parse_time("2min", WEIR_NSEC_PER_SEC, 1, 86400, &number, &refusal), 0);
	assert_int_equal(number, 120);
	assert_int_equal(weir_parse_time("0", 1000000, 0, 5, &number, &refusal), 0);
	assert_int_equal(number, 0);
	assert_refused(weir_parse_time("0", 1000000, 10, 5000, &number, &refusal), "", "is out of range",
		       "write 10ms to 5s");
	assert_refused(weir_parse_time("60", 1000000, 10, 86400000, &number, &refusal), "", "is not a duration",
		       "add a unit: 60s, 60ms or 60m");
	assert_refused(weir_parse_time("soon", 1000000, 10, 86400000, &number, &refusal), "", "is not a duration",
		       "10ms to 1d");
	assert_refused(weir_parse_time("9ms", 1000000, 10, 86400000, &number, &refusal), "", "is out of range", "");
	assert_refused(weir_parse_time("86400001ms", 1000000, 10, 86400000, &number, &refusal), "", "is out of range",
		       "");
	assert_refused(weir_parse_time("1500ms", WEIR_NSEC_PER_SEC, 1, 60, &number, &refusal), "", "is out of range",
		       "write 1s to 1m, in whole seconds");
}

CLAIM(a_duration_is_printed_as_it_is_read)
{
	static const char *const texts[] = {"10ms", "1d", "1h30m", "49d17h2m47s295ms"};
	char text[WEIR_DURATION_TEXT_BYTES];
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(weir_parse_duration(texts[i], &ns, &refusal), 0);
		assert_string_equal(weir_format_duration(ns, text), texts[i]);
	}
	assert_string_equal(weir_format_duration(0, text), "0");
}

CLAIM(a_rate_is_so_much_in_an_interval)
{
	static const struct {
		const char *token;
		uint64_t units, interval_s;
		bool counts_bytes;
	} good[] = {
		{"20/s", 20, 1, false},
		{"20/second", 20, 1, false},
		{"6/min", 6, 60, false},
		{"6/m", 6, 60, false},
		{"1k/h", 1000, 3600, false},
		{"5k/10s", 5000, 10, false},
		{"0/d", 0, 86400, false},
		{"10MB/s", 10000000, 1, true},
		{"1GiB/1h30m", 1 << 30, 5400, true},
		{"100Mbit/s", 12500000, 1, true},
	};
	struct weir_rate rate;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(weir_parse_rate(good[i].token, &rate, &refusal), 0);
		assert_true(rate.micro == good[i].units * WEIR_MICRO);
		assert_true(rate.interval_ns == good[i].interval_s * WEIR_NSEC_PER_SEC);
		assert_int_equal(rate.counts_bytes, good[i].counts_bytes);
	}
	assert_int_equal(weir_parse_rate("1/500ms", &rate, &refusal), 0);
	assert_true(rate.interval_ns == WEIR_NSEC_PER_SEC / 2);
}

CLAIM(what_is_no_rate_is_shown_how_to_become_one)
{
	static const struct {
		const char *token, *message, *hint;
	} bad[] = {
		{"20", "has no time", "write 20/s"},
		{"100Mbps", "has no time", "write 100Mbit/s or 100MB/s"},
		{"20kpps", "has no time", "write 20k/s"},
		{"fast", "has no time", "20/s, 6/min, 5k/10s, 10MB/s or 100Mbit/s"},
		{"10KB/s", "is not a number per time", "write 10kB/s or 10KiB/s"},
		{"100Mb/s", "is not a number per time", "write 100Mbit/s or 100MB/s"},
		{"10mbytes/second", "is not a number per time", "write 10MB/second"},
		{"20 /s", "is not a number per time", "write 20/s, without spaces"},
		{"20/ s", "is not a number per time", "write 20/s, without spaces"},
		{"100 Mbit / 10 s", "is not a number per time", "write 100Mbit/10s, without spaces"},
		{"20 packets / s", "is not a number per time", "write 20/s"},
		{"100 Mb / s", "is not a number per time", "write 100Mbit/s or 100MB/s"},
		{"20 apples/s", "is not a number per time", "20/s, 6/min, 5k/10s, 10MB/s or 100Mbit/s"},
		{"20 per second", "is not a number per time", "write 20/s"},
		{"20 packets per minute", "is not a number per time", "write 20/min"},
		{"20 per", "is not a number per time", "20/s, 6/min, 5k/10s, 10MB/s or 100Mbit/s"},
		{"1,5k/s", "is not a number per time", "write 1.5k/s if"},
		{"/s", "is not a number per time", "20/s"},
		{"-5/s", "is negative", "write 0/s"},
		{"020/s", "begins with a zero", NULL},
		{"20/", "has no interval after the '/'", "as in 5/10s"},
		{"20/0s", "'0s' is not an interval", "a number of them"},
		{"20/week", "'week' is not an interval", "the longest interval is a day"},
		{"20/s/s", "'s/s' is not an interval", "a number of them"},
		{"20/1.5s", "'1.5s' is not an interval", "write whole numbers: 20/1s500ms"},
		{"20/0.0000001s", "is not an interval", "a number of them"},
		{"20/S", "'S' is not an interval", "write 20/s"},
		{"10/1", "'1' is not an interval", "10/1s or 10/1min"},
		{"11T/s", "is out of range", "0/s to 10000000000000/s"},
	};
	struct weir_rate rate;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_refused(weir_parse_rate(bad[i].token, &rate, &refusal), bad[i].token, bad[i].message,
			       bad[i].hint ?: "");
}

RUN_CLAIMS(NULL, NULL)
