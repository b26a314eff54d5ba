// SPDX-License-Identifier: GPL-2.0-only
/* Named sets: what their files may contain, where "@NAME" may stand, and which addresses it means. */
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "compile/build_steps.h"
#include "rules/emit.h"
#include "rules/history.h"
#include "rules/scalars.h"
#include "ruleset_bench.h"

#define ONE(fields) "resources: [{name: r" fields "}]\nrules: [{resource: r, threshold: 1}]\n"
#define USES(words) ONE(", match: {source: " words "}")

static void write_text(const char *name, const char *text)
{
	write_file(name, text, strlen(text));
}

static struct weir_image *compiled(struct bench *bench)
{
	const struct weir_compile_options options = {.cpus = 2, .now_ns = 1000000000};
	struct weir_image *image = NULL;

	assert_int_equal(weir_image_build(bench->ruleset, &options, &image, &bench->diag), 0);
	return image;
}

/* "PREFIX LABEL*WEIGHT" of each entry. */
static void assert_entries(const struct weir_set *set, const char *const *expected, size_t count)
{
	char text[WEIR_PREFIX_TEXT_BYTES], line[160];

	for (size_t i = 0; i < set->entry_count && i < count; i++) {
		const struct weir_set_entry *entry = &set->entries[i];
		const struct weir_set_label *label = set->has_labels ? &set->labels[entry->label] : NULL;

		snprintf(line, sizeof(line), "%s %s*%u", weir_format_prefix(&entry->prefix, text),
			 label ? label->text : "", label ? label->weight : 0);
		assert_string_equal(line, expected[i]);
	}
	assert_int_equal(set->entry_count, count);
}

/* ---- files and entries ---- */

BENCH_CLAIM(set_of_every_form_of_line_has_the_same_entries)
{
	static const char *const expected[] = {"10.0.0.0/8 gold*5", "192.0.2.0/24 a, \"b\"*0", "192.0.3.1 7*0",
					       "2001:db8::/32 gold*5"};
	static const char *const texts[] = {
		"# ours\nnetwork,label,weight\n10.0.0.0/8,gold,5\n192.0.2.0/24,\"a, \"\"b\"\"\"\n192.0.3.1,7\n"
		"2001:db8::/32,gold\n",
		"10.0.0.0/8,gold\n2001:db8::/32,gold,5 ; twice the weight would be a mistake\n"
		"192.0.2.0-192.0.2.255,\"a, \"\"b\"\"\"\n{\"prefix\": \"192.0.3.1/32\", \"asn\": "
		"7}\n10.0.0.0/8,gold,5\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_text("s.csv", texts[i]);
		assert_reads(bench, "sets: {s: {file: s.csv, labels: true}}\n" USES("'@s'"));
		assert_entries(&bench->ruleset->sets[0], expected, ARRAY_SIZE(expected));
		assert_int_equal(bench->ruleset->sets[0].label_count, 3);
		assert_true(bench->ruleset->sets[0].file[0] == '/');
		assert_string_equal(bench->ruleset->list_names[0], "s.csv");
	}
	assert_reads(bench, "sets:\n  s:\n    labels: true\n    prefixes:\n    - {prefix: 10.0.0.0/8, label: gold}\n"
			    "    - {prefix: 192.0.2.0/24, label: 'a, \"b\"'}\n    - {prefix: 192.0.3.1, label: 7}\n"
			    "    - {weight: 5, prefix: '2001:db8::/32', label: gold}\n" USES("'@s'"));
	assert_entries(&bench->ruleset->sets[0], expected, ARRAY_SIZE(expected));
	assert_null(bench->ruleset->sets[0].file);
}

/* 768 addresses are two prefixes. */
#define REGISTRY                                                                                                       \
	"2|ripencc|20261201|6|19830613|20261130|+0100\nripencc|*|ipv4|*|3|summary\nripencc|FR|asn|64500|1|20100712|"   \
	"allocated\n"                                                                                                  \
	"ripencc|FR|ipv4|192.0.2.0|256|20100712|allocated\nripencc|DE|ipv4|198.51.100.0|768|20100712|assigned\n"       \
	"ripencc||ipv4|203.0.113.0|256||available\nripencc|DE|ipv6|2001:db8::|32|20100712|allocated\n"

#define DSHIELD                                                                                                        \
	"# DShield.org Recommended Block List\nStart\tEnd\tNetmask\tAttacks\tName\tCountry\temail\n"                   \
	"192.0.2.0\t192.0.2.255\t24\t1832\tEXAMPLE; #1\tDE\tabuse@example.net\n"                                       \
	"198.51.100.0\t198.51.100.255\t24\t7\tEXAMPLE\tFR\tabuse@example.org\n"

/* As public feeds have them; what follows the prefix is a label only where the set asks for labels. */
BENCH_CLAIM(feeds_are_read_as_they_are_published)
{
	static const struct {
		const char *text, *first;
		size_t count;
	} feeds[] = {
		{"; Spamhaus DROP List 2026/12/01\n192.0.2.0/24 ; SBL1\n198.51.100.0/24 ; SBL2\n", "192.0.2.0/24 *0",
		 2},
		{"{\"cidr\":\"192.0.2.0/24\",\"sblid\":\"SBL1\",\"rir\":\"ripencc\"}\n"
		 "{\"type\":\"metadata\",\"timestamp\":1796083200}\n",
		 "192.0.2.0/24 *0", 1},
		{"network,geoname_id,country\n", NULL, 0},
		{"# DShield\n192.0.2.0-192.0.2.255\n198.51.100.0 - 198.51.101.255\n", "192.0.2.0/24 *0", 2},
		{DSHIELD, "192.0.2.0/24 *0", 2},
		{"192.0.2.0/24\t# ours\n198.51.100.0/24\t; theirs\n", "192.0.2.0/24 *0", 2},
		{"192.0.2.0/24,DE\n2001:db8::/32,FR\n", "192.0.2.0/24 *0", 2},
		{"{\"network\": \"192.0.2.0/24\", \"country\": \"DE\"}\n", "192.0.2.0/24 *0", 1},
		{REGISTRY, "192.0.2.0/24 *0", 4},
	};

	for (size_t i = 0; i < ARRAY_SIZE(feeds); i++) {
		write_text("s", feeds[i].text);
		assert_int_equal(read_texts(bench, "sets: {s: {file: s}}\n" USES("'@s'"), NULL, NULL), 0);
		assert_int_equal(bench->ruleset->sets[0].entry_count, feeds[i].count);
		if (feeds[i].first)
			assert_entries(&(struct weir_set){.entries = bench->ruleset->sets[0].entries, .entry_count = 1},
				       &feeds[i].first, 1);
	}
}

BENCH_CLAIM(weight_may_stand_in_json)
{
	static const char *const expected[] = {"10.0.0.0/8 a*5", "11.0.0.0/8 b*1000"};

	write_text("s", "{\"cidr\": \"10.0.0.0/8\", \"label\": \"a\", \"weight\": 5}\n"
			"{\"weight\": \"1000\", \"cidr\": \"11.0.0.0/8\", \"label\": \"b\"}\n");
	assert_reads(bench, "sets: {s: {file: s, labels: true}}\n" USES("'@s'"));
	assert_entries(&bench->ruleset->sets[0], expected, ARRAY_SIZE(expected));
	for (int i = 0; i < 2; i++) {
		static const char *const bad[] = {"1001", "[2]"};
		char line[96];

		snprintf(line, sizeof(line), "{\"cidr\": \"10.0.0.0/8\", \"label\": \"a\", \"weight\": %s}\n", bad[i]);
		write_text("s", line);
		assert_int_equal(read_texts(bench, "sets: {s: {file: s, labels: true}}\n" USES("'@s'"), NULL, NULL),
				 -EINVAL);
		assert_int_equal(bench->diag.count, 1);
	}
}

BENCH_CLAIM(country_is_the_label_in_a_file_of_a_registry)
{
	static const char *const expected[] = {"192.0.2.0/24 FR*0", "198.51.100.0/23 DE*0", "198.51.102.0/24 DE*0",
					       "2001:db8::/32 DE*0"};
	static const char *const of_dshield[] = {"192.0.2.0/24 DE*0", "198.51.100.0/24 FR*0"};

	write_text("s", REGISTRY);
	assert_reads(bench, "sets: {s: {file: s, labels: true}}\n" USES("'@s:DE'"));
	assert_entries(&bench->ruleset->sets[0], expected, ARRAY_SIZE(expected));
	write_text("s", DSHIELD);
	assert_reads(bench, "sets: {s: {file: s, labels: true}}\n" USES("'@s:DE'"));
	assert_entries(&bench->ruleset->sets[0], of_dshield, ARRAY_SIZE(of_dshield));
	for (int i = 0; i < 3; i++) {
		static const char *const bad[] = {"ripencc|FR|ipv4|255.255.255.0|257|20100712|allocated\n",
						  "ripencc|FR|ipv4|192.0.2.0|256|20100712\n", "a|b\n"};

		write_text("s", bad[i]);
		assert_int_equal(read_texts(bench, "sets: {s: {file: s}}\n" USES("'@s'"), NULL, NULL), -EINVAL);
		assert_int_equal(bench->diag.count, 1);
		assert_string_equal(bench->diag.entries[0].message, "the line has a '|', and is not one of a registry");
	}
}

BENCH_CLAIM(host_bits_are_cleared_and_an_empty_file_is_warned_of)
{
	static const char *const expected[] = {"192.0.2.0/24 *0"};

	write_text("s", "192.0.2.7/24\n192.0.2.0/24\n");
	assert_int_equal(read_texts(bench, "sets: {s: {file: s}}\n" USES("'@s'"), NULL, NULL), 0);
	assert_messages(bench, "note: s: 1 prefix had host bits, which were cleared: the first in line 1\n");
	assert_entries(&bench->ruleset->sets[0], expected, 1);
	write_text("s", "# nobody\n");
	assert_int_equal(read_texts(bench, "sets: {s: {file: s}}\n" USES("'@s'"), NULL, NULL), 0);
	assert_messages(bench, "a.yaml:1:18: warning: set 's' is empty: no address is in it\n"
			       "    sets: {s: {file: s}}\n"
			       "                     ^\n");
}

#define SET_OF(fields) "sets: {s: {" fields "}}\n" ONE("")
#define LABELLED(words)                                                                                                \
	"sets: {s: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a}]}, plain: {prefixes: "                     \
	"[10.0.0.0/8]}}\n" words

BENCH_CLAIM(mistake_in_a_set_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{"sets: 7\n" ONE(""), 1, 7, "'sets' must be a map of names", "file: PATH"},
		{"sets: {s: 7}\n" ONE(""), 1, 11, "set must be a map", "file, prefixes or labels"},
		{"sets: {s: {}}\n" ONE(""), 1, 8, "set 's' has neither a file nor prefixes", "file: PATH"},
		{SET_OF("file: good.txt, prefixes: []"), 1, 8, "set 's' has both a file and prefixes", NULL},
		{SET_OF("file: gone"), 1, 18, "cannot open 'gone'", "relative to the directory of the rule file"},
		{SET_OF("files: good.txt"), 1, 12, "set has no field 'files'", "'file'"},
		{SET_OF("prefixes: 10.0.0.0/8"), 1, 22, "'prefixes' must be a list", "'- '"},
		{SET_OF("prefixes: [10.0.0.1/8]"), 1, 23, "host bits", "10.0.0.0/8"},
		{SET_OF("prefixes: [{label: a}]"), 1, 23, "the entry has no prefix", NULL},
		{SET_OF("prefixes: [{prefix: 10.0.0.0/8, label: a}]"), 1, 23,
		 "the entry has a label, and set 's' has none", "labels: true"},
		{SET_OF("labels: true, prefixes: [10.0.0.0/8]"), 1, 37, "has no label", "labels: true"},
		{SET_OF("labels: true, prefixes: [{prefix: 10.0.0.0/8, label: \"a\\x07\"}]"), 1, 37,
		 "control character", NULL},
		{SET_OF("labels: true, prefixes: [{prefix: 10.0.0.0/8, label: "
			"a123456789b123456789c123456789d123456789e123456789f123456789g1234}]"),
		 1, 37, "is longer than 64 bytes", "shorten"},
		{SET_OF("labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a, weight: 0}]"), 1, 37, "'0'",
		 "1 to 1000"},
		{SET_OF("labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a, weight: 1001}]"), 1, 37, "1001",
		 "1 to 1000"},
		{SET_OF("labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a, weight: 2}, {prefix: 11.0.0.0/8, "
			"label: "
			"a, weight: 3}]"),
		 1, 80, "label 'a' has two weights, 2 and 3", "once"},
		{SET_OF("labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a}, {prefix: 10.0.0.0/8, label: b}]"), 1,
		 1, "10.0.0.0/8 has two labels: 'a' in line 1, and 'b'", "leave one"},
		{"sets: {a/b: {prefixes: []}}\n" ONE(""), 1, 8, "contains '/', '.' or ':'", NULL},
		{"sets: {'': {prefixes: [10.0.0.0/8]}}\n" ONE(""), 1, 8, "the name is empty", NULL},
		{SET_OF("labels: true, file: bad.txt"), 2, 1, "has no label", "PREFIX,LABEL"},
		{SET_OF("labels: true, file: two.csv"), 3, 1, "10.0.0.0/8 has two labels: 'a' in line 1, and 'b'",
		 NULL},
		{SET_OF("labels: true, file: weights.csv"), 2, 1, "label 'a' has two weights, 2 and 3", NULL},
		{LABELLED(USES("'@tenants'")), 2, 39, "there is no set 'tenants'", "sets: {tenants: {file: PATH}}"},
		{LABELLED(USES("'@plane'")), 2, 39, "there is no set 'plane'", "'@plain'"},
		{LABELLED(USES("['@s', '!@plain:a']")), 2, 46, "set 'plain' has no labels", "labels: true"},
		{LABELLED(USES("'@s:'")), 2, 39, "'@s:' is not '@NAME' or '@NAME:LABEL'", NULL},
		{LABELLED(USES("'@'")), 2, 39, "there is no set ''", NULL},
		{LABELLED(USES("'!10.0.0.0/8'")), 2, 39, "is not an IP address or prefix", "!@SET"},
		{LABELLED("allow: '@s:'\n" ONE("")), 2, 8, "'@s:' is not", NULL},
		{"resources:\n- name: r\n  sets: {}\nrules: [{resource: r, threshold: 1}]\n", 3, 3,
		 "resource has no field 'sets'", "top of the file"},
	};

	write_text("good.txt", "10.0.0.0/8\n");
	write_text("bad.txt", "10.0.0.0/8,a\n11.0.0.0/8\n");
	write_text("two.csv", "10.0.0.0/8,a\n11.0.0.0/8,a\n10.0.0.0/8,b\n");
	write_text("weights.csv", "10.0.0.0/8,a,2\n11.0.0.0/8,a,3\n");
	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(name_of_a_set_belongs_to_one_set_of_all_files)
{
	assert_int_equal(read_texts(bench, "sets: {s: {prefixes: [10.0.0.0/8]}}\n" USES("'@s'"),
				    "sets: {s: {prefixes: [11.0.0.0/8]}}\n", NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.count, 1);
	assert_string_equal(bench->diag.entries[0].message, "set 's' is already defined in a.yaml:1");
	/* A resource may use the set of a later file. */
	assert_int_equal(read_texts(bench, USES("'@s'"), "sets: {s: {prefixes: [11.0.0.0/8]}}\n", NULL), 0);
	assert_int_equal(bench->diag.count, 0);
}

/* ---- in lists and overrides ---- */

static void assert_allowed(const struct bench *bench, const char *const *expected, size_t count)
{
	char text[WEIR_PREFIX_TEXT_BYTES];

	for (size_t i = 0; i < bench->ruleset->listed_count && i < count; i++)
		assert_string_equal(weir_format_prefix(&bench->ruleset->listed[i].prefix, text), expected[i]);
	assert_int_equal(bench->ruleset->listed_count, count);
}

#define NESTED                                                                                                         \
	"sets: {s: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a}, {prefix: 10.64.0.0/10, label: b}, "       \
	"{prefix: 10.64.0.0/16, label: a}, {prefix: '::/0', label: b}]}}\n"

BENCH_CLAIM(list_of_a_label_leaves_out_longer_prefixes_with_another)
{
	static const char *const all[] = {"10.0.0.0/8", "10.64.0.0/10", "10.64.0.0/16", "::/0"};
	static const char *const of_a[] = {"10.0.0.0/10", "10.64.0.0/16", "10.128.0.0/9"};
	static const char *const of_b[] = {"10.65.0.0/16", "10.66.0.0/15", "10.68.0.0/14", "10.72.0.0/13",
					   "10.80.0.0/12", "10.96.0.0/11", "::/0"};

	assert_int_equal(read_texts(bench, NESTED "allow: '@s'\n" ONE(""), NULL, NULL), 0);
	assert_allowed(bench, all, ARRAY_SIZE(all));
	assert_reads(bench, NESTED "allow: ['@s:a']\n" ONE(""));
	assert_allowed(bench, of_a, ARRAY_SIZE(of_a));
	assert_int_equal(read_texts(bench, NESTED "allow: ['@s:b']\n" ONE(""), NULL, NULL), 0);
	assert_allowed(bench, of_b, ARRAY_SIZE(of_b));
}

BENCH_CLAIM(name_in_a_list_is_a_set_or_a_file_and_not_both)
{
	static const char *const of_file[] = {"192.0.2.0/24"};

	write_text("s", "192.0.2.0/24\n");
	assert_reads(bench, "deny: '@s'\n" ONE(""));
	assert_allowed(bench, of_file, 1);
	assert_int_equal(read_texts(bench, "sets: {s: {prefixes: [10.0.0.0/8]}}\ndeny: '@s'\n" ONE(""), NULL, NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.count, 1);
	assert_string_equal(bench->diag.entries[0].message, "'@s' is both a set and a file");
	assert_reads(bench, "sets: {s: {prefixes: [10.0.0.0/8]}}\ndeny: '@./s'\n" ONE(""));
	assert_allowed(bench, of_file, 1);
}

#define OVERRIDDEN(sets, overrides)                                                                                    \
	"sets: " sets                                                                                                  \
	"\nresources: [{name: r, flow: source/24/56}]\nrules: [{resource: r, threshold: 5, overrides: " overrides      \
	"}]\n"

BENCH_CLAIM(set_in_overrides_stands_for_its_prefixes)
{
	static const char *const kept = "{s: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a}, "
					"{prefix: 10.64.0.0/10, label: b}]}}";
	char text[512];

	assert_reads(bench, OVERRIDDEN("{s: {prefixes: [10.0.0.0/8, '2001:db8::/32']}}",
				       "[{source: '@s', threshold: 7}, {source: 192.0.2.0/24, threshold: 1}]"));
	assert_int_equal(bench->ruleset->rules[0].override_count, 3);
	assert_int_equal(bench->ruleset->rules[0].overrides[1].prefix.family, 6);
	assert_true(bench->ruleset->rules[0].overrides[1].threshold_micro == 7 * WEIR_MICRO);
	snprintf(text, sizeof(text), OVERRIDDEN("%s", "[{source: '@s:b', threshold: 7}]"), kept);
	assert_reads(bench, text);
	assert_int_equal(bench->ruleset->rules[0].override_count, 1);
	assert_int_equal(bench->ruleset->rules[0].overrides[0].prefix.bits, 10);
}

BENCH_CLAIM(set_that_cannot_be_overrides_is_refused)
{
	static const struct sample samples[] = {
		{OVERRIDDEN("{s: {prefixes: [10.0.0.0/8, 10.1.2.0/25]}}", "[{source: '@s', threshold: 7}]"), 3, 58,
		 "prefix '10.1.2.0/25' is longer than the flow key's, which is /24", "whole flows"},
		{OVERRIDDEN("{s: {prefixes: [10.0.0.0/8]}}", "[{source: '@s:a', threshold: 7}]"), 3, 58,
		 "set 's' has no labels", NULL},
		{OVERRIDDEN("{s: {prefixes: [10.0.0.0/8]}}",
			    "[{source: 10.0.0.0/8, threshold: 1}, {source: '@s', threshold: 7}]"),
		 3, 94, "10.0.0.0/8 already has an override", NULL},
		{OVERRIDDEN("{s: {file: s}}", "[{source: '@s', threshold: 7}]"), 3, 58,
		 "'@s' has 10001 prefixes: overrides have at most 10000 of a set", NULL},
	};
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	assert_non_null(stream);
	for (int i = 0; i <= WEIR_SET_OVERRIDES_MAX; i++)
		fprintf(stream, "10.%d.%d.0/24\n", i >> 8, i & 255);
	fclose(stream);
	write_file("s", text, bytes);
	free(text);
	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* ---- in flow keys ---- */

#define KEYS(key, rule)                                                                                                \
	"sets: {s: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: a}]}, bare: {prefixes: [10.0.0.0/8]}}\n"      \
	"resources: [{name: r, flow: " key "}]\nrules: [{resource: r, threshold: 5" rule "}]\n"

BENCH_CLAIM(key_by_a_set_reads_back_as_the_same)
{
	static const char *const keys[] = {"[\"source@s\"]", "[\"source@s\", destination/24/56, vlan]",
					   "[\"source@s\", \"destination@s\"]", "[\"remote@s\", localPort]",
					   "[\"destination@s\"]"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		_cleanup_(weir_freep) char *text = NULL, *again = NULL, *expected = NULL, *rules = NULL;

		assert_true(asprintf(&rules, KEYS("%s", ", overrides: %s"), keys[i],
				     i == 2 ? "[]" : "[{label: \"a, \\\"b\\\"\", threshold: 1}]") > 0);
		assert_int_equal(read_texts(bench, rules, NULL, NULL), 0);
		text = weir_ruleset_text(bench->ruleset, true);
		assert_true(asprintf(&expected, "  flow: %s\n", keys[i]) > 0);
		assert_non_null(strstr(text, expected));
		assert_int_equal(!strstr(text, "- label: "), i == 2);
		assert_int_equal(read_texts(bench, text, NULL, NULL), 0);
		again = weir_ruleset_text(bench->ruleset, true);
		assert_string_equal(text, again);
	}
}

BENCH_CLAIM(mistake_in_a_key_by_a_set_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{KEYS("source@x", ""), 2, 29, "flow: there is no set 'x'", "did you mean '@s'?"},
		{KEYS("source@bar", ""), 2, 29, "flow: there is no set 'bar'", "did you mean '@bare'?"},
		{KEYS("source@bare", ""), 2, 29, "flow: set 'bare' has no labels to tell flows apart", "labels: true"},
		{KEYS("vlan@s", ""), 2, 29, "'vlan@s' has a set, but vlan is not an address", "write vlan alone"},
		{KEYS("'source@'", ""), 2, 29, "'source@' is not 'source@NAME'", "name of a set alone"},
		{KEYS("'source@s:a'", ""), 2, 29, "'source@s:a' is not 'source@NAME'", "all its labels"},
		{KEYS("source@s/24/56", ""), 2, 29, "'source@s/24/56' is not 'source@NAME'", "name of a set alone"},
		{KEYS("[source@s, source/24/56]", ""), 2, 40,
		 "the flow key has a set for 'source': neither another set nor the address", "leave one of them out"},
		{KEYS("[source@s, remote@s]", ""), 2, 40, "the flow key has a set for 'remote'", "leave one"},
		{KEYS("[source, source@s]", ""), 2, 38, "'source' is in the flow key twice", "leave one of them out"},
		{KEYS("source@s", ", overrides: [{source: 10.0.0.0/8, threshold: 1}]"), 3, 58,
		 "the flow key has the labels of set 's' there, not addresses", "write 'label: LABEL'"},
		{KEYS("source", ", overrides: [{label: a, threshold: 1}]"), 3, 57,
		 "the flow key of 'r' has no set whose label this could be", "'source@NAME' in the key"},
		{KEYS("[source@s, destination@s]", ", overrides: [{label: a, threshold: 1}]"), 3, 57,
		 "the flow key of 'r' has two sets", "leave one of the sets out"},
		{KEYS("source@s", ", overrides: [{label: a, threshold: 1}, {label: a, threshold: 2}]"), 3, 83,
		 "a already has an override, in line 3", "leave one of them out"},
		{KEYS("[source@s, destination]",
		      ", overrides: [{label: a, threshold: 1}, {destination: 10.0.0.0/8, threshold: 2}]"),
		 3, 89, "all overrides of a rule must be of one kind: the first, in line 3, is by source", NULL},
		{KEYS("source@s", ", overrides: [{label: '', threshold: 1}]"), 3, 57, "has no label", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* A label may come back with the next file. */
BENCH_CLAIM(override_of_a_label_that_no_prefix_has_is_warned_of)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	assert_reads(bench, KEYS("source@s", ", overrides: [{label: a, threshold: 1}, {label: b, threshold: 1}]"));
	image = compiled(bench);
	assert_int_equal(bench->diag.count, 1);
	assert_string_equal(bench->diag.entries[0].message, "rule 'r#1': no prefix of set 's' has the label 'b' now");
	assert_int_equal(image->override_count, 1);
}

BENCH_CLAIM(keys_have_up_to_31_sets)
{
	for (int sets = WEIR_KEY_SETS_MAX; sets <= WEIR_KEY_SETS_MAX + 1; sets++) {
		const struct weir_compile_options options = {.cpus = 2, .now_ns = 1000000000};
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;
		_cleanup_(weir_freep) char *text = NULL;
		size_t bytes;
		FILE *stream = open_memstream(&text, &bytes);

		assert_non_null(stream);
		fprintf(stream, "sets:\n");
		for (int i = 0; i < sets; i++)
			fprintf(stream, "  s%d: {labels: true, prefixes: [{prefix: 10.0.0.0/8, label: l}]}\n", i);
		fprintf(stream, "resources:\n");
		for (int i = 0; i < sets; i++)
			fprintf(stream, "- {name: r%d, match: {vlan: %d}, flow: source@s%d}\n", i, i + 1, i);
		fprintf(stream, "rules:\n");
		for (int i = 0; i < sets; i++)
			fprintf(stream, "- {resource: r%d, threshold: 5}\n", i);
		fclose(stream);
		assert_int_equal(read_texts(bench, text, NULL, NULL), 0);
		assert_int_equal(weir_image_build(bench->ruleset, &options, &image, &bench->diag),
				 sets > WEIR_KEY_SETS_MAX ? -EINVAL : 0);
	}
	assert_string_equal(bench->diag.entries[0].message, "flow keys have more than 31 sets");
}

/* ---- as text, and as it is kept ---- */

#define WRITTEN                                                                                                        \
	"sets:\n  plain: {prefixes: [10.0.0.0/8]}\n  s: {file: s.csv, labels: true}\n"                                 \
	"resources:\n- {name: r, match: {source: ['!@plain', 192.0.2.0/24, '@s:gold, or not'], destination: '@s'}}\n"  \
	"rules: [{resource: r, threshold: 1}]\n"

BENCH_CLAIM(rule_set_with_sets_reads_back_as_the_same)
{
	_cleanup_(weir_freep) char *text = NULL, *again = NULL;

	write_text("s.csv", "10.0.0.0/8,\"gold, or not\",7\n::/0,b\n");
	assert_reads(bench, WRITTEN);
	text = weir_ruleset_text(bench->ruleset, true);
	assert_non_null(strstr(text, "source: [192.0.2.0/24, \"!@plain\", \"@s:gold, or not\"]"));
	assert_int_equal(remove("s.csv"), 0);
	assert_reads(bench, text);
	again = weir_ruleset_text(bench->ruleset, true);
	assert_string_equal(text, again);
}

/* Everything that depends on the set is as if the rule files had been read again, with the set's new file; and none of
 * it is left when the set is as it was.
 */
BENCH_CLAIM(kept_rule_set_takes_over_the_files_of_its_sets)
{
	static const char *const files[] = {"10.0.0.0/8,a\n192.0.2.0/24,b\n",
					    "192.0.2.0/24,a\n10.0.0.0/8,b\n2001:db8::/32,b\n", "192.0.2.0/24,c\n", "",
					    "10.0.0.0/8,a\n192.0.2.0/24,b\n"};
	static const char *const rules =
		"sets: {s: {file: s.csv, labels: true}, t: {prefixes: [198.51.100.0/24]}}\n"
		"allow: ['@t', 192.0.2.0/24, 10.0.0.0/8]\ndeny: ['@s:b', 203.0.113.0/24]\n"
		"resources: [{name: r, match: {source: '@s:a'}, flow: source/24/32}]\n"
		"rules: [{resource: r, threshold: 5, overrides: [{source: '@s:a', threshold: 6}, {source: 10.1.0.0/16, "
		"threshold: 7}, {source: '@t', threshold: 8}]}]\n";
	_cleanup_(weir_kept_set_freep) struct weir_kept_set *kept = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		_cleanup_(weir_kept_set_freep) struct weir_kept_set *again = NULL, *fresh = NULL;
		_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
		_cleanup_(weir_freep) char *text = NULL, *fresh_text = NULL;

		write_text("s.csv", files[i]);
		assert_int_equal(read_texts(bench, rules, NULL, NULL), 0);
		assert_int_equal(weir_kept_set_make(bench->ruleset, &fresh), 0);
		if (!kept)
			assert_int_equal(weir_kept_set_make(bench->ruleset, &kept), 0);
		weir_diag_free(&bench->diag);
		assert_int_equal(weir_kept_set_read_files(kept, &ruleset, &bench->diag), 0);
		assert_int_equal(weir_kept_set_make(ruleset, &again), 0);
		text = weir_ruleset_text(ruleset, true);
		fresh_text = weir_ruleset_text(bench->ruleset, true);
		assert_string_equal(text, fresh_text);
		assert_true(again->digest == fresh->digest);
		assert_string_equal(again->files, kept->files);
		weir_kept_set_free(kept);
		kept = TAKE_PTR(again); /* the next is made of this one */
	}
	write_text("s.csv", "10.0.0.0/8,a\n10.0.0.0/7 b\n");
	weir_diag_free(&bench->diag);
	assert_int_equal(weir_kept_set_read_files(kept, &bench->ruleset, &bench->diag), -EINVAL);
	assert_int_equal(bench->diag.entries[0].line, 2);
	assert_non_null(strstr(bench->diag.entries[0].file, "/s.csv"));
}

BENCH_CLAIM(kept_rule_set_has_its_sets_without_their_files)
{
	static const char *const expected[] = {"10.0.0.0/8 gold, or not*7", "::/0 b*0"};
	_cleanup_(weir_kept_set_freep) struct weir_kept_set *kept = NULL, *other = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {}, unpacked = {};
	_cleanup_(weir_freep) uint8_t *bytes = NULL;
	size_t count;

	write_text("s.csv", "10.0.0.0/8,\"gold, or not\",7\n::/0,b\n");
	assert_reads(bench, WRITTEN "deny: [192.0.2.1]\n");
	assert_int_equal(weir_kept_set_make(bench->ruleset, &kept), 0);
	assert_non_null(strstr(kept->text, "/s.csv"));
	/* Another order of the file is the same set, and another label is not. */
	write_text("s.csv", "::/0,b\n10.0.0.0/8,\"gold, or not\",7\n");
	assert_reads(bench, WRITTEN "deny: [192.0.2.1]\n");
	assert_int_equal(weir_kept_set_make(bench->ruleset, &other), 0);
	assert_true(other->digest == kept->digest);
	weir_kept_set_free(TAKE_PTR(other));
	write_text("s.csv", "::/0,c\n10.0.0.0/8,\"gold, or not\",7\n");
	assert_reads(bench, WRITTEN "deny: [192.0.2.1]\n");
	assert_int_equal(weir_kept_set_make(bench->ruleset, &other), 0);
	assert_true(other->digest != kept->digest);

	assert_int_equal(remove("s.csv"), 0);
	weir_history_push(&history, TAKE_PTR(kept), false);
	assert_int_equal(weir_history_pack(&history, &bytes, &count), 0);
	assert_int_equal(weir_history_unpack(bytes, count, &unpacked), 0);
	assert_int_equal(weir_kept_set_read(unpacked.sets[0], &ruleset, &bench->diag), 0);
	assert_int_equal(ruleset->listed_count, 1);
	assert_entries(&ruleset->sets[1], expected, ARRAY_SIZE(expected));
	assert_int_equal(ruleset->sets[0].entry_count, 1);
	assert_int_equal(ruleset->resources[0].match.source_set_count, 2);
	/* What is cut off is noticed, and not read beyond. */
	for (size_t lost = 1; lost <= unpacked.sets[0]->sets_bytes; lost++) {
		struct weir_kept_set cut = *unpacked.sets[0];
		struct weir_ruleset *half = NULL;

		cut.listed_bytes -= lost;
		cut.sets_bytes -= lost;
		assert_int_not_equal(weir_kept_set_read(&cut, &half, &bench->diag), 0);
	}
}

/* ---- which resources an address belongs to ---- */

#define SETS 3
#define LABELS 3
#define ENTRIES 12
#define WORDS 4
#define RESOURCES_BY_CHANCE 12

static uint32_t chance_state = 1;

static uint32_t chance(uint32_t below)
{
	chance_state = chance_state * 1664525 + 1013904223;
	return (chance_state >> 8) % below;
}

/* Few different bytes, so that prefixes nest and addresses hit them. */
struct network {
	uint8_t address[4];
	unsigned int bits;
};

static struct network chance_network(void)
{
	static const uint8_t bytes[] = {0, 1, 0x80, 0xff};
	struct network network = {.bits = chance(33)};

	for (unsigned int i = 0; i < 4; i++) {
		const int kept = (int)network.bits - 8 * (int)i;

		network.address[i] = bytes[chance(4)] & (kept >= 8 ? 0xff : kept <= 0 ? 0 : 0xff << (8 - kept));
	}
	return network;
}

static bool covers(const struct network *network, const uint8_t *address)
{
	for (unsigned int bit = 0; bit < network->bits; bit++)
		if ((network->address[bit / 8] ^ address[bit / 8]) & 0x80 >> bit % 8)
			return false;
	return true;
}

struct chance_set {
	struct network networks[ENTRIES];
	unsigned int label[ENTRIES];
};

struct chance_word {
	bool is_set, excepts;
	unsigned int set, label; /* label LABELS: any */
	struct network network;
};

/* The label of the longest prefix, or -1; a set may have a prefix twice, with one label. */
static int label_of(const struct chance_set *set, const uint8_t *address)
{
	int label = -1, bits = -1;

	for (unsigned int i = 0; i < ENTRIES; i++) {
		if (covers(&set->networks[i], address) && (int)set->networks[i].bits > bits) {
			bits = set->networks[i].bits;
			label = set->label[i];
		}
	}
	return label;
}

static bool accepts(const struct chance_set *sets, const struct chance_word *words, unsigned int count,
		    const uint8_t *address)
{
	bool has_any = false, is_in = false;

	for (unsigned int i = 0; i < count; i++) {
		int label = words[i].is_set ? label_of(&sets[words[i].set], address) : -1;
		bool has = words[i].is_set ? label >= 0 && (words[i].label == LABELS || (int)words[i].label == label)
					   : covers(&words[i].network, address);

		if (words[i].excepts && has)
			return false;
		has_any |= !words[i].excepts;
		is_in |= !words[i].excepts && has;
	}
	return is_in || !has_any;
}

static void write_network(FILE *stream, const struct network *network)
{
	fprintf(stream, "%u.%u.%u.%u/%u", network->address[0], network->address[1], network->address[2],
		network->address[3], network->bits);
}

static void write_sets(FILE *stream, struct chance_set *sets)
{
	fprintf(stream, "sets:\n");
	for (unsigned int s = 0; s < SETS; s++) {
		fprintf(stream, "  s%u:\n    labels: true\n    prefixes:\n", s);
		for (unsigned int i = 0; i < ENTRIES; i++) {
			sets[s].networks[i] = chance_network();
			sets[s].label[i] = chance(LABELS);
			for (unsigned int k = 0; k < i; k++)
				if (!memcmp(&sets[s].networks[k], &sets[s].networks[i], sizeof(struct network)))
					sets[s].label[i] = sets[s].label[k];
			fprintf(stream, "    - {prefix: ");
			write_network(stream, &sets[s].networks[i]);
			fprintf(stream, ", label: l%u}\n", sets[s].label[i]);
		}
	}
}

static void write_word(FILE *stream, struct chance_word *word)
{
	*word = (struct chance_word){.is_set = chance(3), .set = chance(SETS), .label = chance(LABELS + 1)};
	word->network = chance_network();
	word->excepts = word->is_set && !chance(3);
	if (word->is_set)
		fprintf(stream, "'%s@s%u", word->excepts ? "!" : "", word->set);
	else
		write_network(stream, &word->network);
	if (word->is_set && word->label < LABELS)
		fprintf(stream, ":l%u", word->label);
	fputs(word->is_set ? "', " : ", ", stream);
}

/* The vector of an address: that of the longest prefix of the image, as its trie would find it. */
static const struct weir_vector *vector_of(const struct weir_image *image, const uint8_t *address)
{
	uint32_t vector = image->source_outside;
	int bits = -1;

	for (uint32_t i = 0; i < image->source_prefix_count; i++) {
		const struct weir_prefix *prefix = &image->source_prefixes[i].prefix;
		struct network network = {.bits = prefix->bits};

		memcpy(network.address, prefix->address, 4);
		if (prefix->family == 4 && covers(&network, address) && prefix->bits > bits) {
			bits = prefix->bits;
			vector = image->source_prefixes[i].vector;
		}
	}
	return &image->vectors[vector];
}

BENCH_CLAIM(random_addresses_meet_what_a_plain_matcher_finds)
{
	for (int round = 0; round < 200; round++) {
		struct chance_word words[RESOURCES_BY_CHANCE][WORDS];
		unsigned int counts[RESOURCES_BY_CHANCE];
		struct chance_set sets[SETS] = {};
		_cleanup_(weir_image_freep) struct weir_image *image = NULL;
		_cleanup_(weir_freep) char *text = NULL;
		size_t bytes;
		FILE *stream = open_memstream(&text, &bytes);

		assert_non_null(stream);
		write_sets(stream, sets);
		fprintf(stream, "resources:\n");
		for (unsigned int r = 0; r < RESOURCES_BY_CHANCE; r++) {
			counts[r] = 1 + chance(WORDS);
			fprintf(stream, "- {name: r%u, match: {source: [", r);
			for (unsigned int i = 0; i < counts[r]; i++)
				write_word(stream, &words[r][i]);
			fprintf(stream, "]}}\n");
		}
		fprintf(stream, "rules: [{resource: r0, threshold: 1}]\n");
		fclose(stream);
		assert_int_equal(read_texts(bench, text, NULL, NULL), 0);
		image = compiled(bench);
		for (int i = 0; i < 500; i++) {
			struct network network = chance_network();
			const struct weir_vector *found = vector_of(image, network.address);

			for (unsigned int r = 0; r < RESOURCES_BY_CHANCE; r++)
				if (weir_vector_has(found, image->bit[r]) !=
				    accepts(sets, words[r], counts[r], network.address))
					fail_msg("round %d, resource r%u, %u.%u.%u.%u", round, r, network.address[0],
						 network.address[1], network.address[2], network.address[3]);
		}
	}
}

/* A resource that no packet can meet would be a limit that never holds: it is said when it is loaded, too. */
BENCH_CLAIM(label_that_no_prefix_has_is_warned_of)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	assert_reads(bench, LABELLED(USES("'@s:z'")));
	image = compiled(bench);
	assert_messages(bench, "a.yaml:2:20: warning: resource 'r': no prefix of set 's' has the label 'z' now\n"
			       "    resources: [{name: r, match: {source: '@s:z'}}]\n"
			       "                       ^\n");
}

/* The bound is generous, and of CPU time: sanitizers and a busy machine must not make it fail. */
BENCH_CLAIM(a_million_prefixes_and_a_hundred_thousand_labels_are_read_in_seconds)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;
	FILE *stream = fopen("s.csv", "w");
	struct timespec start;

	assert_non_null(stream);
	for (uint32_t i = 0; i < 1000000; i++)
		fprintf(stream, "%u.%u.%u.0/24,AS%u\n", 1 + (i >> 16), i >> 8 & 255, i & 255, i % 100000);
	fclose(stream);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	assert_reads(bench, "sets: {s: {file: s.csv, labels: true}}\n" ONE(
				    ", flow: source@s, match: {source: ['@s:AS1', '@s:AS2']}"));
	image = compiled(bench);
	print_message("a million prefixes: %.2f s of CPU time\n", cpu_seconds_since(&start));
	assert_true(cpu_seconds_since(&start) < 20);
	assert_int_equal(bench->ruleset->sets[0].entry_count, 1000000);
	assert_int_equal(bench->ruleset->sets[0].label_count, 100000);
	assert_int_equal(image->source_prefix_count, 20); /* of the two labels: all others are of one class */
	assert_int_equal(image->labels->count, 100000);
}

BENCH_CLAIM(labels_beyond_the_maximum_are_refused)
{
	FILE *stream = fopen("s.csv", "w");

	assert_non_null(stream);
	for (uint32_t i = 0; i < WEIR_SET_LABELS_MAX + 1; i++)
		fprintf(stream, "10.%u.%u.%u,l%u\n", i >> 16, i >> 8 & 255, i & 255, i);
	fclose(stream);
	assert_int_equal(read_texts(bench, "sets: {s: {file: s.csv, labels: true}}\n" USES("'@s'"), NULL, NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.count, 1);
	assert_string_equal(bench->diag.entries[0].message, "the set has more than 131072 labels");
}

RUN_CLAIMS(NULL, NULL)
