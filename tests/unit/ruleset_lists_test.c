// SPDX-License-Identifier: GPL-2.0-only
/* Long lists in rule files and beside them: overrides of a rule, and whom to allow and deny. */
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "rules/scalars.h"
#include "ruleset_bench.h"

/* ---- overrides ---- */

BENCH_CLAIM(overrides_are_read_in_the_order_of_the_file)
{
	const struct weir_ruleset_rule *rule;

	assert_reads(bench,
		     OVERRIDES(
			     "\n  - {source: 198.51.100.0/24, threshold: 5000.5}\n"
			     "  - {source: 203.0.0.0/16, threshold: 0}\n  - {threshold: 7, source: '2001:db8::/32'}"));
	rule = &bench->ruleset->rules[0];
	assert_int_equal(rule->override_field, WEIR_KEY_SOURCE);
	assert_int_equal(rule->override_count, 3);
	assert_true(rule->overrides[0].threshold_micro == 5000500000);
	assert_true(rule->overrides[1].threshold_micro == 0);
	assert_int_equal(rule->overrides[1].prefix.bits, 16);
	assert_int_equal(rule->overrides[2].prefix.family, 6);
	assert_int_equal(rule->overrides[2].place.line, 8);
	assert_int_equal(rule->overrides[2].place.column, 28);
	assert_reads(bench, "resources: [{name: a, flow: destination}]\nrules: [{resource: a, threshold: 5, overrides: "
			    "[{destination: 192.0.2.1, threshold: 1}, {destination: 192.0.2.0/24, threshold: 1}]}]\n");
	assert_int_equal(bench->ruleset->rules[0].override_field, WEIR_KEY_DESTINATION);
	assert_reads(bench, OVERRIDES("[]"));
	assert_int_equal(bench->ruleset->rules[0].override_count, 0);
}

BENCH_CLAIM(overrides_hold_for_throttling_and_same_key_association)
{
	assert_reads(bench, OVERRIDES("[{source: 10.0.0.0/8, threshold: 9}]\n  controlBehavior: Throttling"));
	assert_reads(bench, OVERRIDES("[{source: 10.0.0.0/8, threshold: 9}]\n  relationStrategy: 1\n  refResource: c"));
}

BENCH_CLAIM(mistake_in_an_override_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{OVERRIDES("7"), 5, 14, "'overrides' must be a list", "'- '"},
		{OVERRIDES("[7]"), 5, 15, "override must be a map",
		 "source, destination, remote, local, label, threshold or rate"},
		{OVERRIDES("[{threshold: 1}]"), 5, 15, "the override has no prefix", "source: 192.0.2.0/24"},
		{OVERRIDES("[{source: 10.0.0.0/8}]"), 5, 15, "the override has no threshold", "0 to block"},
		{OVERRIDES("[{source: 10.0.0.0/8, treshold: 1, threshold: 1}]"), 5, 36,
		 "override has no field 'treshold'", "'threshold'"},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 1K}]"), 5, 47, "'1K' is not a number", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: -1}]"), 5, 47, "negative", NULL},
		{OVERRIDES("[{source: 10.0.0.1/8, threshold: 1}]"), 5, 24, "host bits", "10.0.0.0/8"},
		{OVERRIDES("[{source: x, threshold: 1}]"), 5, 24, "not an IP address", NULL},
		{OVERRIDES("[{source: 10.0.0.0/25, threshold: 1}]"), 5, 24,
		 "prefix '10.0.0.0/25' is longer than the flow key's, which is /24", NULL},
		{OVERRIDES("[{source: 10.0.0.0, threshold: 1}]"), 5, 24, "which is /24", NULL},
		{OVERRIDES("[{source: '2001:db8::/57', threshold: 1}]"), 5, 24, "which is /56", NULL},
		{OVERRIDES("[{destination: 10.0.0.0/8, threshold: 1}, {destination: 10.0.0.1, threshold: 2}]"), 5, 29,
		 "destination is not in the flow key of 'a'", "'flow'"},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 1}, {destination: 10.0.0.0/8, threshold: 1}]"), 5, 65,
		 "the first, in line 5, is by source", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, destination: 10.0.0.0/8, threshold: 1}]"), 5, 49, "not both", NULL},
		{OVERRIDES("\n  - {source: 10.0.0.0/8, threshold: 1}\n  - {source: '::/8', threshold: 1}\n"
			   "  - {source: 10.0.0.0/8, threshold: 2}"),
		 8, 14, "10.0.0.0/8 already has an override, in line 6", NULL},
		{KEYED "rules: [{resource: b, threshold: 5, overrides: [{source: 10.0.0.0/8, threshold: 1}]}]\n", 2, 58,
		 "source is not in the flow key of 'b'", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 1}]\n  tokenCalculateStrategy: 1\n  warmUpPeriodSec: 1"),
		 5, 14, "a threshold that does not move, and that of WarmUp does", "Direct"},
		{KEYED "rules: [{resource: a, overrides: [{source: 10.0.0.0/8, threshold: 1}], " MEMORY "}]\n", 2, 34,
		 "that of MemoryAdaptive does", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 1}]\n  relationStrategy: 1\n  refResource: b"), 5, 14,
		 "refResource 'b' has no flow key", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* The bound is generous, and of CPU time: sanitizers and a busy machine must not make it fail. */
BENCH_CLAIM(hundred_thousand_overrides_are_read_in_seconds_and_not_one_more)
{
	char *text = NULL;
	struct timespec start;
	size_t bytes;

	for (int more = 0; more < 2; more++) {
		FILE *stream = open_memstream(&text, &bytes);

		assert_non_null(stream);
		fprintf(stream,
			"resources: [{name: a, flow: source}]\nrules:\n- resource: a\n  threshold: 5\n  overrides:\n");
		for (int i = 0; i < WEIR_OVERRIDES_MAX + more; i++)
			fprintf(stream, "  - {source: 10.%d.%d.%d, threshold: %d}\n", i >> 16, i >> 8 & 255, i & 255,
				i);
		fclose(stream);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
		assert_int_equal(read_texts(bench, text, NULL, NULL), more ? -EINVAL : 0);
		print_message("%d overrides: %.2f s of CPU time\n", WEIR_OVERRIDES_MAX + more,
			      cpu_seconds_since(&start));
		assert_true(cpu_seconds_since(&start) < 20);
		free(text);
		if (!more)
			assert_int_equal(bench->ruleset->rules[0].override_count, WEIR_OVERRIDES_MAX);
	}
	assert_int_equal(bench->diag.count, 1);
	assert_string_equal(bench->diag.entries[0].message, "the rule has 100001 overrides: more than 100000");
}

/* ---- allow and deny ---- */

static void assert_listed(const struct bench *bench, const char *const *expected, size_t count)
{
	char text[WEIR_PREFIX_TEXT_BYTES], line[80];

	assert_int_equal(bench->ruleset->listed_count, count);
	for (size_t i = 0; i < count; i++) {
		const struct weir_listed *listed = &bench->ruleset->listed[i];

		snprintf(line, sizeof(line), "%s %s", listed->denies ? "deny" : "allow",
			 weir_format_prefix(&listed->prefix, text));
		assert_string_equal(line, expected[i]);
	}
}

BENCH_CLAIM(lists_of_all_files_merge_in_order_without_duplicates)
{
	static const char *const expected[] = {"allow 10.0.0.0/8", "deny 10.0.0.0/16", "allow 192.0.2.1",
					       "deny 203.0.113.0/24", "allow 2001:db8::/32"};

	assert_int_equal(read_texts(bench, "allow: ['2001:db8::/32', 192.0.2.1, 10.0.0.0/8]\ndeny: 203.0.113.0/24\n",
				    "deny: [10.0.0.0/16]\nallow: 192.0.2.1/32\n",
				    "resources: [{name: r}]\nrules: [{resource: r, threshold: 1}]\nallow:\ndeny: []\n"),
			 0);
	assert_int_equal(bench->diag.count, 0);
	assert_listed(bench, expected, ARRAY_SIZE(expected));
}

BENCH_CLAIM(prefix_that_is_allowed_and_denied_is_denied_with_a_warning)
{
	static const char *const expected[] = {"deny 10.0.0.0/8", "deny 192.0.2.1", "allow 192.0.2.2"};

	assert_int_equal(read_texts(bench,
				    "allow: [10.0.0.0/8, 192.0.2.1, 10.0.0.0/8, 192.0.2.2]\n"
				    "deny: [192.0.2.1, 10.0.0.0/8]\n",
				    NULL, NULL),
			 0);
	assert_messages(bench, "warning: 2 prefixes are both in 'allow' and in 'deny', such as 192.0.2.1\n"
			       "    deny wins: remove them from one of the two\n");
	assert_listed(bench, expected, ARRAY_SIZE(expected));
}

BENCH_CLAIM(list_file_is_found_beside_the_rule_file)
{
	static const char *const expected[] = {"allow 10.0.0.0/8", "allow 192.0.2.1", "allow 198.51.100.0/24",
					       "allow 2001:db8::1"};
	static const char list[] = "\xef\xbb\xbf# ours\r\n10.0.0.0/8\r\n\n \t198.51.100.0/24 \t# branch\n"
				   "2001:db8::1#end\n10.0.0.0/8";
	static const char *const path = "lists/a.yaml";
	char text[512];

	assert_int_equal(mkdir("lists", 0700), 0);
	write_file("lists/good.txt", list, strlen(list));
	write_file("lists/a.yaml", "allow: ['@good.txt', 192.0.2.1]\n", 32);
	assert_int_equal(weir_ruleset_read(&path, 1, &bench->ruleset, &bench->diag), 0);
	assert_int_equal(bench->diag.count, 0);
	assert_listed(bench, expected, ARRAY_SIZE(expected));
	/* From elsewhere, by a path of its own. */
	snprintf(text, sizeof(text), "allow: ['@%s/lists/good.txt', 192.0.2.1]\n", bench->directory);
	assert_reads(bench, text);
	assert_listed(bench, expected, ARRAY_SIZE(expected));
	write_file("lists/a.yaml", text, strlen(text));
	forget(bench);
	assert_int_equal(weir_ruleset_read(&path, 1, &bench->ruleset, &bench->diag), 0);
	assert_listed(bench, expected, ARRAY_SIZE(expected));
}

BENCH_CLAIM(byte_order_mark_is_one_on_the_first_line_alone)
{
	static const char list[] = "\xef\xbb\xbf"
				   "10.0.0.0/8\n\xef\xbb\xbf"
				   "11.0.0.0/8\n";

	write_file("bad.txt", list, strlen(list));
	assert_int_equal(read_texts(bench, "deny: '@bad.txt'\n", NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.count, 1);
	assert_int_equal(bench->diag.entries[0].line, 2);
}

BENCH_CLAIM(every_bad_line_of_a_list_is_reported_at_its_place)
{
	static const char list[] = "10.0.0.0/8\n  10.0.0.1/8 # ours\n\nexample.org\n::1/129\n1.2.3.4 5.6.7.8\n";

	write_file("bad.txt", list, strlen(list));
	assert_int_equal(read_texts(bench, "deny: ['@bad.txt', 300.1.1.1]\nallow: '@bad.txt'\n", NULL, NULL), -EINVAL);
	assert_messages(bench, "bad.txt:4:1: 'example.org' is not an IP address or prefix\n"
			       "    example.org\n"
			       "    ^~~~~~~~~~~\n"
			       "    weir does not look names up: write the addresses of 'example.org'\n"
			       "bad.txt:5:1: '::1/129' has no valid prefix length\n"
			       "    ::1/129\n"
			       "    ^~~~~~~\n"
			       "    write 0 to 128 after the '/'\n"
			       "bad.txt:6:1: '1.2.3.4 5.6.7.8' is not an IP address or prefix\n"
			       "    1.2.3.4 5.6.7.8\n"
			       "    ^~~~~~~~~~~~~~~\n"
			       "    write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32\n"
			       "a.yaml:1:20: deny: '300.1.1.1' is not an IP address or prefix\n"
			       "    deny: ['@bad.txt', 300.1.1.1]\n"
			       "                       ^~~~~~~~~\n"
			       "    write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32\n"
			       "note: bad.txt: 1 prefix had host bits, which were cleared: the first in line 2\n"
			       "note: bad.txt: 1 prefix had host bits, which were cleared: the first in line 2\n");
}

/* Whatever they stand in, and once. */
BENCH_CLAIM(list_of_every_address_is_warned_of)
{
	static const char list[] = "0.0.0.0/0\n0.0.0.0/0\n10.0.0.0/8\n";

	write_file("bad.txt", list, strlen(list));
	assert_int_equal(read_texts(bench, "deny: ['@bad.txt', 0.0.0.0/1]\nallow: ['::/0', 'fe80::/10']\n", NULL, NULL),
			 0);
	assert_messages(bench,
			"warning: deny: 0.0.0.0/0 is every IPv4 address: all of their packets are dropped\n"
			"    name smaller networks, unless you mean all of them\n"
			"warning: allow: ::/0 is every IPv6 address: all of their packets pass and meet no rule\n"
			"    name smaller networks, unless you mean all of them\n");
	assert_int_equal(read_texts(bench, "deny: '::ffff:0:0/96'\n", NULL, NULL), 0);
	assert_int_equal(bench->diag.count, 1);
}

BENCH_CLAIM(mistake_in_a_list_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{"allow: '@missing.txt'\n", 1, 8, "cannot open 'missing.txt': No such file",
		 "directory of the rule file"},
		{"allow: ['@']\n", 1, 9, "'@' without a file name", "@FILE"},
		{"deny: ['@.']\n", 1, 8, "cannot read '.': Is a directory", NULL},
		{"deny: @bad.txt\n", 1, 7, "not valid YAML", "quotes"},
		{"deny: [1.2.3.4, ~]\n", 1, 17, "'deny' must be a single value, not nothing", NULL},
		{"deny: [[1.2.3.4]]\n", 1, 8, "'deny' must be a single value, not a list", NULL},
		{"deny: [1.2.3.4/24]\n", 1, 8, "host bits", "1.2.3.0/24"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(list_file_of_garbage_is_bounded_and_reported)
{
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[10] = '\0';
	text[20] = '\n';
	write_file("bad.txt", text, sizeof(text));
	assert_int_equal(read_texts(bench, "deny: '@bad.txt'\n", NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 2);
	assert_string_equal(bench->diag.entries[0].message, "the line contains a zero byte");
	assert_string_equal(bench->diag.entries[1].message, "the line is longer than 1000 bytes");
	assert_int_equal(bench->diag.entries[1].line, 2);
}

BENCH_CLAIM(million_entries_are_read_in_seconds)
{
	FILE *stream = fopen("good.txt", "w");
	struct timespec start;

	assert_non_null(stream);
	/* Far from sorted. */
	for (uint32_t i = 0; i < 1000000; i++)
		fprintf(stream, "%u.%u.%u.%u\n", i * 0x9e3779b1 >> 24, i * 0x9e3779b1 >> 16 & 255,
			i * 0x9e3779b1 >> 8 & 255, i * 0x9e3779b1 & 255);
	fclose(stream);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	assert_reads(bench, "deny: '@good.txt'\n");
	print_message("a million entries: %.2f s of CPU time\n", cpu_seconds_since(&start));
	assert_true(cpu_seconds_since(&start) < 20);
	assert_int_equal(bench->ruleset->listed_count, 1000000);
	for (size_t i = 1; i < bench->ruleset->listed_count; i++)
		assert_true(weir_compare_prefixes(&bench->ruleset->listed[i - 1].prefix,
						  &bench->ruleset->listed[i].prefix) < 0);
}

/* Feeds as they come: CSV with and without a head, JSON lines with what a feed says of itself, and ranges. */
BENCH_CLAIM(feeds_in_csv_json_and_ranges_are_lists)
{
	static const struct {
		const char *text;
		size_t count;
	} cases[] = {
		{"prefix,label\n192.0.2.0/24,\"scan, \"\"x\"\"\"\n198.51.100.0/24,b,3\n", 2},
		{"; Spamhaus\n192.0.2.0/24 ; SBL1\n", 1},
		{"{\"cidr\":\"192.0.2.0/24\"}\n{\"prefix\":\"2001:db8::/32\",\"asn\":64496}\n"
		 "{\"network\":\"198.51.100.7\"}\n{\"type\":\"metadata\",\"records\":3}\n",
		 3},
		{"10.0.0.1-10.0.0.9\n2001:db8:: - 2001:db8::ffff\n", 5},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_file("good.txt", cases[i].text, strlen(cases[i].text));
		assert_reads(bench, "deny: ['@good.txt']\n");
		assert_int_equal(bench->ruleset->listed_count, cases[i].count);
	}
}

RUN_CLAIMS(NULL, NULL)
