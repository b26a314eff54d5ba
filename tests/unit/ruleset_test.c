// SPDX-License-Identifier: GPL-2.0-only
/* Rule files: what they may say, and what is told of those that are wrong. */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "ruleset.h"
#include "util.h"
#include "values.h"

/* Files are written into a directory of their own, which is the current one while they are read, so that
 * they are called a.yaml, b.yaml, c.yaml in messages.
 */
struct bench {
	char directory[32];
	char *home;
	struct weir_diag diag;
	struct weir_ruleset *ruleset;
};

static const char *const file_names[] = {"a.yaml", "b.yaml", "c.yaml"};

static int set_up(void **state)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	strcpy(bench->directory, "/tmp/weir-rules-XXXXXX");
	bench->home = getcwd(NULL, 0);
	*state = bench;
	return !bench->home || !mkdtemp(bench->directory) || chdir(bench->directory);
}

static void forget(struct bench *bench)
{
	weir_diag_free(&bench->diag);
	weir_ruleset_free(bench->ruleset);
	bench->ruleset = NULL;
}

static int tear_down(void **state)
{
	struct bench *bench = *state;
	int err;

	forget(bench);
	for (size_t i = 0; i < ARRAY_SIZE(file_names); i++)
		unlink(file_names[i]);
	err = chdir(bench->home) || rmdir(bench->directory);
	free(bench->home);
	free(bench);
	return err;
}

static void write_file(const char *name, const char *text, size_t bytes)
{
	FILE *stream = fopen(name, "w");

	assert_non_null(stream);
	assert_int_equal(fwrite(text, 1, bytes, stream), bytes);
	assert_int_equal(fclose(stream), 0);
}

static int read_texts(struct bench *bench, const char *a, const char *b, const char *c)
{
	const char *texts[] = {a, b, c};
	size_t count = 0;

	forget(bench);
	for (; count < ARRAY_SIZE(texts) && texts[count]; count++)
		write_file(file_names[count], texts[count], strlen(texts[count]));
	return weir_ruleset_read(file_names, count, &bench->ruleset, &bench->diag);
}

/* All that is told, as a person would see it; the caller frees it. */
static char *told(const struct bench *bench)
{
	char *text = NULL;
	size_t bytes;
	FILE *stream = open_memstream(&text, &bytes);

	weir_diag_print(&bench->diag, stream);
	fclose(stream);
	return text;
}

static void assert_reads(struct bench *bench, const char *text)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err = read_texts(bench, text, NULL, NULL);

	words = told(bench);
	if (err || bench->diag.count)
		fail_msg("%d: %s\n%s", err, text, words);
}

static void assert_tells(struct bench *bench, const char *expected)
{
	_cleanup_(weir_freep) char *words = told(bench);

	assert_string_equal(words, expected);
}

/* Text with exactly one mistake (or nothing but one warning): where, and words of the message and of the hint. */
struct sample {
	const char *text;
	int line, column;
	const char *message, *hint;
};

static void assert_tells_one(struct bench *bench, const struct sample *sample, bool is_warning)
{
	int err = read_texts(bench, sample->text, NULL, NULL);
	_cleanup_(weir_freep) char *words = told(bench);
	const struct weir_diag_entry *entry = bench->diag.entries;

	if (err != (is_warning ? 0 : -EINVAL) || (is_warning ? bench->diag.count : bench->diag.errors) != 1 ||
	    entry->is_warning != is_warning || entry->line != sample->line || entry->column != sample->column ||
	    !strstr(entry->message, sample->message) ||
	    (sample->hint && (!entry->hint || !strstr(entry->hint, sample->hint))))
		fail_msg("expected %d:%d: %s (%s), got %d:\n%s\nfor:\n%s", sample->line, sample->column,
			 sample->message, sample->hint ?: "", err, words, sample->text);
}

/* ---- what is read ---- */

static void defaults_are_those_of_the_rules_reference(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_rule *rule;

	assert_reads(bench, "resources: [{name: r}]\nrules: [{resource: r, threshold: 5}]\n");
	rule = &bench->ruleset->rules[0];
	assert_string_equal(rule->name, "r#1");
	assert_true(rule->threshold_micro == 5 * WEIR_MICRO);
	assert_true(rule->interval_ns == 1000000000);
	assert_int_equal(rule->samples, 10);
	assert_int_equal(rule->window, WEIR_WINDOW_LEAP);
	assert_false(rule->counts_bytes);
	assert_false(rule->observes);
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 262144);
	assert_true(bench->ruleset->settings.drop_malformed);
	assert_true(bench->ruleset->settings.drop_unsupported);
	assert_false(bench->ruleset->settings.drop_non_ip);
	assert_false(bench->ruleset->settings.drop_unmatched);
	assert_int_equal(bench->ruleset->resources[0].flow.fields, 0);
	assert_false(bench->ruleset->resources[0].match.has_protocol);
}

static void every_field_of_a_rule_is_read(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_rule *rule;

	assert_reads(bench,
		     "settings: {flowsPerCpu: 512, malformed: pass, unsupported: pass, unmatched: drop,\n"
		     "  memory: system, throttling: police}\n"
		     "resources: [{name: q}, {name: r}]\n"
		     "rules:\n"
		     "- {name: n, resource: r, threshold: 20000.25, statIntervalInMs: 86400000, sampleCount: 9,\n"
		     "   tokenCalculateStrategy: 0, controlBehavior: Reject, relationStrategy: CurrentResource,\n"
		     "   unit: bytes, window: smooth, mode: observe}\n");
	rule = &bench->ruleset->rules[0];
	assert_string_equal(rule->name, "n");
	assert_int_equal(rule->resource, 1);
	assert_true(rule->threshold_micro == 20000250000);
	assert_true(rule->interval_ns == 86400ull * 1000000000);
	assert_int_equal(rule->samples, 9);
	assert_int_equal(rule->window, WEIR_WINDOW_SMOOTH);
	assert_true(rule->counts_bytes);
	assert_true(rule->observes);
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 512);
	assert_false(bench->ruleset->settings.drop_malformed);
	assert_false(bench->ruleset->settings.drop_unsupported);
	assert_true(bench->ruleset->settings.drop_unmatched);
}

static void every_condition_of_a_match_is_read(void **state)
{
	struct bench *bench = *state;
	const struct weir_match *match;

	assert_reads(bench, "resources:\n"
			    "- name: r\n"
			    "  match:\n"
			    "    family: [ipv4, ipv6]\n"
			    "    protocol: [tcp, 17, \"132\"]\n"
			    "    source: [192.0.2.1, 2001:db8::/32]\n"
			    "    destination: 198.51.100.0/24\n"
			    "    sourcePort: \"1024-65535\"\n"
			    "    destinationPort: [53, 5353]\n"
			    "    vlan: [0, 100-200]\n"
			    "    fragment: [none, first]\n"
			    "    length: 64-128\n"
			    "    interface: [eth0, eth1]\n"
			    "- {name: s, match: {tcpFlags: ['syn,!ack', fin]}}\n"
			    "- {name: i, match: {icmpType: [8, 128-130]}}\n"
			    "rules: [{resource: r, threshold: 1}]\n");
	match = &bench->ruleset->resources[0].match;
	assert_int_equal(match->families, 3);
	assert_int_equal(match->protocol[0], 1 << 6);
	assert_int_equal(match->protocol[2], 1 << 1);
	assert_int_equal(match->protocol[16], 1 << 4);
	assert_int_equal(match->source_count, 2);
	assert_int_equal(match->source[1].family, 6);
	assert_int_equal(match->destination[0].bits, 24);
	assert_int_equal(match->source_port[0].low, 1024);
	assert_int_equal(match->destination_port_count, 2);
	assert_int_equal(match->vlan[1].high, 200);
	assert_int_equal(match->fragments, 1 << WEIR_FRAGMENT_NONE | 1 << WEIR_FRAGMENT_FIRST);
	assert_int_equal(match->length[0].high, 128);
	assert_string_equal(match->interface[1], "eth1");
	match = &bench->ruleset->resources[1].match;
	assert_int_equal(match->tcp_flags_count, 2);
	assert_int_equal(match->tcp_flags[0].clear, 0x10);
	assert_int_equal(bench->ruleset->resources[2].match.icmp_type[1].high, 130);
}

static void interval_zero_is_one_second(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, "resources: [{name: r}]\nrules: [{resource: r, threshold: 1, statIntervalInMs: 0}]\n");
	assert_true(bench->ruleset->rules[0].interval_ns == 1000000000);
}

static void flow_is_one_field_a_list_or_empty(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_resource *resources;

	assert_reads(bench, "resources:\n"
			    "- {name: a, flow: source/24/56}\n"
			    "- {name: b, flow: [source, destinationPort, interface]}\n"
			    "- {name: c, flow: []}\n"
			    "- {name: d, match: {family: ipv6}, flow: destination/64}\n"
			    "rules: [{resource: a, threshold: 1}]\n");
	resources = bench->ruleset->resources;
	assert_int_equal(resources[0].flow.fields, WEIR_KEY_SOURCE);
	assert_int_equal(resources[0].flow.source_bits[1], 56);
	assert_int_equal(resources[1].flow.fields, WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION_PORT | WEIR_KEY_INTERFACE);
	assert_int_equal(resources[2].flow.fields, 0);
	assert_int_equal(resources[3].flow.destination_bits[1], 64);
	assert_int_equal(resources[3].flow.destination_bits[0], 32);
}

static void json_is_read_as_yaml(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, "{\"resources\": [{\"name\": \"caf\\u00e9\", \"match\": {\"protocol\": 17}}],\n"
			    " \"rules\": [{\"resource\": \"caf\\u00e9\", \"threshold\": 20, \"controlBehavior\": 0}]}");
	assert_string_equal(bench->ruleset->rules[0].name, "caf\xc3\xa9#1");
}

static void anchors_and_aliases_mean_what_they_name(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, "resources:\n"
			    "- {name: a, match: {source: &inside [10.0.0.0/8, fc00::/7]}}\n"
			    "- {name: b, match: {destination: *inside}}\n"
			    "rules: [{resource: a, threshold: &t 7}, {resource: b, threshold: *t}]\n");
	assert_int_equal(bench->ruleset->resources[1].match.destination_count, 2);
	assert_true(bench->ruleset->rules[1].threshold_micro == 7 * WEIR_MICRO);
}

static void byte_order_mark_and_carriage_returns_do_no_harm(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, "\xef\xbb\xbfresources:\r\n- name: r\r\nrules:\r\n- resource: r\r\n  threshold: 1\r\n");
	assert_string_equal(bench->ruleset->resources[0].name, "r");
	assert_int_equal(bench->ruleset->rules[0].place.line, 4);
}

static void headings_without_content_are_as_good_as_absent(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench,
		     "settings:\n  # flowsPerCpu: 512\nresources: [{name: r}]\nrules: [{resource: r, threshold: 1}]\n");
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 262144);
}

/* ---- several files ---- */

static void files_merge_in_the_order_given(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(
		read_texts(bench, "rules: [{resource: r, threshold: 1}, {name: x, resource: r, threshold: 2}]\n",
			   "settings: {nonIp: pass}\nresources: [{name: r}]\n",
			   "settings: {nonIp: pass, flowsPerCpu: 1024}\nrules: [{resource: r, threshold: 3}]\n"),
		0);
	assert_int_equal(bench->diag.count, 0);
	assert_int_equal(bench->ruleset->rule_count, 3);
	assert_int_equal(bench->ruleset->settings.flows_per_cpu, 1024);
	/* Default names count all rules of the resource, named ones included, over all files. */
	assert_string_equal(bench->ruleset->rules[0].name, "r#1");
	assert_string_equal(bench->ruleset->rules[1].name, "x");
	assert_string_equal(bench->ruleset->rules[2].name, "r#3");
	assert_string_equal(bench->ruleset->rules[2].place.file, "c.yaml");
	assert_int_equal(bench->ruleset->rules[2].place.line, 2);
}

static void setting_with_two_values_is_told_with_both_places(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "settings:\n  malformed: pass\nresources: [{name: r}]\n",
				    "settings:\n  malformed: drop\nrules: [{resource: r, threshold: 1}]\n", NULL),
			 -EINVAL);
	assert_tells(bench, "b.yaml:2:14: 'malformed' is 'drop' here, but 'pass' in a.yaml:2\n"
			    "    malformed: drop\n"
			    "               ^~~~\n"
			    "    files merge: set it in one of them, or in both to the same\n");
}

static void name_given_twice_is_told_across_files(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "resources: [{name: r}]\nrules: [{name: n, resource: r, threshold: 1}]\n",
				    "resources: [{name: r}]\nrules: [{name: n, resource: r, threshold: 1}]\n", NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.errors, 2);
	assert_string_equal(bench->diag.entries[0].message, "resource 'r' is already defined in a.yaml:1");
	assert_string_equal(bench->diag.entries[1].message, "rule 'n' is already defined in a.yaml:2");
	assert_string_equal(bench->diag.entries[1].file, "b.yaml");
}

static void mistakes_of_all_files_are_told_in_one_go(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(
		read_texts(bench, "resources:\n- name: r\n  match: {vlan: 5000}\n",
			   "rules:\n- resource: r\n  treshold: 5\n- resource: r\n  threshold: 1\n  window: leep\n",
			   "settings: [\n"),
		-EINVAL);
	assert_tells(bench, "c.yaml:2:1: not valid YAML: flow sequence without a closing bracket\n"
			    "a.yaml:3:17: vlan: '5000' is out of range\n"
			    "    match: {vlan: 5000}\n"
			    "                  ^~~~\n"
			    "    write 0 to 4095\n"
			    "b.yaml:2:3: the rule has no threshold\n"
			    "    - resource: r\n"
			    "      ^\n"
			    "    say how many packets an interval may hold: 'threshold: 1000'\n"
			    "b.yaml:3:3: rule has no field 'treshold'\n"
			    "    treshold: 5\n"
			    "    ^~~~~~~~\n"
			    "    did you mean 'threshold'?\n"
			    "b.yaml:6:11: 'leep' is no value of 'window'\n"
			    "    window: leep\n"
			    "            ^~~~\n"
			    "    did you mean 'leap'?\n");
}

static void unknown_resource_is_not_told_when_a_file_could_not_be_read(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "resources: [{name: r}\n", "rules: [{resource: r, threshold: 1}]\n", NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.errors, 1);
	assert_string_equal(bench->diag.entries[0].file, "a.yaml");
}

static void file_that_cannot_be_read_is_told_with_the_others(void **state)
{
	static const char *const paths[] = {"missing.yaml", ".", "a.yaml"};
	struct bench *bench = *state;

	write_file("a.yaml", "rules: 7\n", 9);
	assert_int_equal(weir_ruleset_read(paths, 3, &bench->ruleset, &bench->diag), -EINVAL);
	assert_tells(bench, "cannot open 'missing.yaml': No such file or directory\n"
			    "cannot read '.': Is a directory\n"
			    "a.yaml:1:8: 'rules' must be a list\n"
			    "    rules: 7\n"
			    "           ^\n"
			    "    begin each of them with '- '\n");
	assert_null(bench->ruleset);
}

/* ---- mistakes, one a file ---- */

#define RESOURCES "resources: [{name: dns}, {name: web}]\n"
#define MATCH(condition) "resources:\n- name: r\n  match:\n    " condition "\nrules: [{resource: r, threshold: 1}]\n"
#define RULE(field) RESOURCES "rules:\n- resource: dns\n  threshold: 5\n  " field "\n"

static void mistake_in_the_form_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{"bogus: 1\n", 1, 1, "a rule file has no field 'bogus'", "settings, resources or rules"},
		{"rule: []\n", 1, 1, "no field 'rule'", "'rules'"},
		{"7\n", 1, 1, "a rule file must be a map of fields, not a single value", "settings"},
		{"- {resource: r}\n", 1, 1, "Sentinel-Go's flow rules is not supported yet", "weir's own"},
		{"[]\n", 1, 1, "Sentinel-Go's flow rules is not supported yet", NULL},
		{"resources: {name: r}\n", 1, 12, "'resources' must be a list", "'- '"},
		{"resources: [r]\n", 1, 13, "resource must be a map of fields", "name"},
		{"resources:\n- nam: r\n  name: s\n", 2, 3, "resource has no field 'nam'", "'name'"},
		{"resources:\n- match: {}\n", 2, 3, "the resource has no name", "name: NAME"},
		{"resources:\n- name: a;b\n", 2, 9, "contains ';'", NULL},
		{"resources:\n- name: \"a\\tb\"\n", 2, 9, "control character", NULL},
		{"resources:\n- name: \"\"\n", 2, 9, "the name is empty", "1 to 127"},
		{"resources:\n- name: [a]\n", 2, 9, "'name' must be a single value, not a list", NULL},
		{"resources:\n- name: a\n  name: b\n", 3, 3, "'name' is given twice: first in line 2", "leave one"},
		{"resources:\n- name: a\n- name: a\n", 3, 9, "resource 'a' is already defined in a.yaml:2", NULL},
		{"resources:\n- name: a\n  match:\n", 3, 3, "'match' has no value", "leave the field out"},
		{"resources:\n- name: a\n  ? [x]\n  : 1\n", 3, 5, "name of a field must be a word", NULL},
		{"resources:\n- name: a\n  deny: [1.2.3.4]\n", 3, 3, "'deny' is not supported yet", NULL},
		{"a: 1\n---\nb: 2\n", 2, 1, "second document", "file of its own"},
		{"a: *b\n", 1, 4, "alias has no anchor", NULL},
		{"a: &a [*a]\n", 1, 8, "inside its own anchor", NULL},
		{"a: !!int 3\n", 1, 4, "tags mean nothing", NULL},
		{"resources:\n- <<: {}\n  name: a\n", 2, 3, "no field '<<'", "merge keys"},
		{"a: \"x\\0y\"\n", 1, 4, "zero byte", NULL},
		{"a: {\n", 2, 1, "not valid YAML", NULL},
		{"a: b: c\n", 1, 5, "not valid YAML", NULL},
		{"rules:\n\t- a\n", 2, 1, "not valid YAML", "never with tabs"},
		{"a: \"x\n", 1, 5, "not valid YAML", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

static void mistake_in_a_setting_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{"settings: {flowsPerCpu: 511}\n", 1, 25, "flowsPerCpu: '511' is out of range", "512 to 67108864"},
		{"settings: {flowsPerCpu: 67108865}\n", 1, 25, "out of range", NULL},
		{"settings: {flowsPerCpu: 1k}\n", 1, 25, "not a whole number", NULL},
		{"settings: {flowsPerCpu: [1]}\n", 1, 25, "must be a single value", NULL},
		{"settings: {malformed: dorp}\n", 1, 23, "'dorp' is no value of 'malformed'", "'drop'"},
		{"settings: {malformed: true}\n", 1, 23, "'true' is no value", "pass or drop"},
		{"settings: {nonip: drop}\n", 1, 12, "settings has no field 'nonip'", "'nonIp'"},
		{"settings: {memory: cgroup:/x}\n", 1, 20, "'memory: cgroup' is not supported yet", NULL},
		{"settings: {memory: swap}\n", 1, 20, "'swap' is no value of 'memory'", "system"},
		{"settings: {throttling: pace}\n", 1, 24, "'throttling: pace' is not supported yet", NULL},
		{"settings: [1]\n", 1, 11, "settings must be a map", "flowsPerCpu"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

static void mistake_in_a_match_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{MATCH("port: 53"), 4, 5, "match has no field 'port'", "'sourcePort'"},
		{MATCH("protocol: tpc"), 4, 15, "'tpc' is not a known protocol", "'tcp'"},
		{MATCH("protocol: [tcp, 256]"), 4, 21, "'256' is out of range", "255"},
		{MATCH("source: [10.0.0.0/8, 192.0.2.1/24]"), 4, 26, "host bits", "192.0.2.0/24"},
		{MATCH("destination: 1.2.3"), 4, 18, "no IP address", NULL},
		{MATCH("destinationPort: 80abc"), 4, 22, "'80abc' is not a whole number", "0 to 65535"},
		{MATCH("destinationPort: 010"), 4, 22, "begins with a zero", "write 10"},
		{MATCH("destinationPort: [1-2, 9-5]"), 4, 28, "runs backwards", "5-9"},
		{MATCH("destinationPort: [[1]]"), 4, 23, "must be a single value, not a list", NULL},
		{MATCH("destinationPort: [1,~]"), 4, 25, "item without a value", NULL},
		{MATCH("destinationPort: {a: 1}"), 4, 22, "must be a single value, not a map", NULL},
		{MATCH("vlan: 4096"), 4, 11, "out of range", "0 to 4095"},
		{MATCH("vlan: []"), 4, 11, "'vlan' is an empty list", "at least one"},
		{MATCH("icmpType: 256"), 4, 15, "out of range", "0 to 255"},
		{MATCH("length: 64-65536"), 4, 13, "out of range", "65535"},
		{MATCH("tcpFlags: 'syn,!syn'"), 4, 15, "both set and not set", NULL},
		{MATCH("tcpFlags: !ack"), 4, 15, "YAML tags", "quotes"},
		{MATCH("fragment: maybe"), 4, 15, "'maybe' is not known", "none, first, later or any"},
		{MATCH("family: inet"), 4, 13, "'inet' is not known", "ipv4 or ipv6"},
		{MATCH("interface: sixteen--letters"), 4, 16, "cannot be the name", NULL},
		{"resources:\n- name: r\n  flow: [source, vlan, source/24/56]\n", 3, 24, "twice", NULL},
		{"resources:\n- name: r\n  flow: source/24\n", 3, 9, "one prefix length", "source/24/56"},
		{"resources:\n- name: r\n  flow: [src]\n", 3, 10, "no field of a flow key", "source"},
		{"resources:\n- name: r\n  flow: {source: 24}\n", 3, 9, "must be a single value", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

static void mistake_in_a_rule_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{RESOURCES "rules: [{threshold: 1}]\n", 2, 9, "the rule has no resource", "resource: NAME"},
		{RESOURCES "rules: [{resource: dsn, threshold: 1}]\n", 2, 20, "no resource 'dsn'", "'dns'"},
		{RESOURCES "rules: [{resource: mail, threshold: 1}]\n", 2, 20, "no resource 'mail'", "resources:"},
		{RESOURCES "rules: [{resource: \"\", threshold: 1}]\n", 2, 20, "no resource ''", NULL},
		{RESOURCES "rules: [{resource: dns}]\n", 2, 9, "the rule has no threshold", "threshold: 1000"},
		{RESOURCES "rules: [{resource: dns, threshold: 20k}]\n", 2, 36, "'20k' is not a number", "in digits"},
		{RESOURCES "rules: [{resource: dns, threshold: -1}]\n", 2, 36, "negative", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: .nan}]\n", 2, 36, "not a number", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: 1.0000001}]\n", 2, 36, "more than six decimals", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: [1]}]\n", 2, 36, "not a list", NULL},
		{RULE("statIntervalInMs: 9"), 5, 21, "'9' is out of range", "10 to 86400000"},
		{RULE("statIntervalInMs: 86400001"), 5, 21, "out of range", NULL},
		{RULE("sampleCount: 0"), 5, 16, "out of range", "1 to 10"},
		{RULE("sampleCount: 11"), 5, 16, "out of range", "1 to 10"},
		{RULE("sampleCount: 3"), 5, 16, "no whole number of nanoseconds in 3", "1 2 4 5 8 10"},
		{RULE("window: Leap"), 5, 11, "no value of 'window'", "'leap'"},
		{RULE("unit: bits"), 5, 9, "no value of 'unit'", "'bytes'"},
		{RULE("mode: dry"), 5, 9, "no value of 'mode'", "enforce or observe"},
		{RULE("mode: 1"), 5, 9, "no value of 'mode'", NULL},
		{RULE("tokenCalculateStrategy: 3"), 5, 27, "no value of", "Direct, WarmUp or MemoryAdaptive"},
		{RULE("tokenCalculateStrategy: direct"), 5, 27, "no value of", "'Direct'"},
		{RULE("warmUpPeriodSec: soon"), 5, 20, "not a whole number", NULL},
		{RULE("burst: 7"), 5, 3, "rule has no field 'burst'", "known fields: name, resource"},
		{RULE("threshold: 7"), 5, 3, "'threshold' is given twice: first in line 4", NULL},
		{RULE("name: a;b"), 5, 9, "contains ';'", NULL},
		{RULE("name: x\n- {name: x, resource: web, threshold: 1}"), 6, 10, "rule 'x' is already defined", NULL},
		{RULE("name: dns#2\n- {resource: dns, threshold: 1}"), 6, 3, "rule 'dns#2' is already defined", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

static void what_a_later_version_brings_is_refused_by_name(void **state)
{
	static const struct sample samples[] = {
		{RULE("tokenCalculateStrategy: WarmUp\n  warmUpPeriodSec: 10"), 5, 27,
		 "'tokenCalculateStrategy: WarmUp' is not supported yet", NULL},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 10"), 5, 27, "WarmUp' is not supported yet", NULL},
		{RULE("controlBehavior: Throttling"), 5, 20, "'controlBehavior: Throttling' is not supported yet",
		 NULL},
		{RULE("controlBehavior: 1\n  maxQueueingTimeMs: 50"), 5, 20, "Throttling' is not supported yet", NULL},
		{RULE("relationStrategy: 1\n  refResource: web"), 5, 21, "AssociatedResource' is not supported yet",
		 NULL},
		{RULE("overrides: []"), 5, 3, "'overrides' is not supported yet", NULL},
		{RULE("metricType: Concurrency"), 5, 3, "'metricType' is not supported yet", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

/* Beside "not supported yet": the file should be right before a version that knows them comes. */
static void what_sentinel_refuses_is_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} samples[] = {
		{RULE("relationStrategy: 1"), "AssociatedResource needs a refResource"},
		{RULE("relationStrategy: 1\n  refResource: dns"), "refResource is the rule's own resource"},
		{RULE("relationStrategy: 1\n  refResource: wbe"), "there is no resource 'wbe'"},
		{RULE("relationStrategy: 1\n  refResource: web\n  controlBehavior: 1"), "no effect with Throttling"},
		{RULE("tokenCalculateStrategy: 1"), "warmUpPeriodSec of at least 1"},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 1\n  warmUpColdFactor: 1"), "nothing to warm up"},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 1\n  warmUpColdFactor: 6"), "never warm up"},
		{RULE("tokenCalculateStrategy: 2\n  highMemUsageThreshold: 1\n  memLowWaterMarkBytes: 1\n  "
		      "memHighWaterMarkBytes: 2"),
		 "lowMemUsageThreshold above 0"},
		{RULE("tokenCalculateStrategy: 2\n  lowMemUsageThreshold: 1\n  highMemUsageThreshold: 1\n  "
		      "memLowWaterMarkBytes: 1\n  memHighWaterMarkBytes: 2"),
		 "must be below lowMemUsageThreshold"},
		{RULE("tokenCalculateStrategy: 2\n  lowMemUsageThreshold: 2\n  highMemUsageThreshold: 1\n  "
		      "memLowWaterMarkBytes: 2\n  memHighWaterMarkBytes: 2"),
		 "must be below memHighWaterMarkBytes"},
		{"resources: [{name: dns, flow: source}, {name: web, flow: vlan}]\nrules: [{resource: dns, threshold: "
		 "1, "
		 "relationStrategy: 1, refResource: web}]\n",
		 "another flow key"},
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		_cleanup_(weir_freep) char *words = NULL;

		assert_int_equal(read_texts(bench, samples[i].text, NULL, NULL), -EINVAL);
		words = told(bench);
		if (!strstr(words, samples[i].message))
			fail_msg("expected '%s', got:\n%s", samples[i].message, words);
	}
}

static void legal_but_surely_not_meant_is_warned_of(void **state)
{
	static const struct sample samples[] = {
		{RULE("warmUpPeriodSec: 10"), 5, 20, "'warmUpPeriodSec' has no effect", NULL},
		{RULE("maxQueueingTimeMs: 10"), 5, 22, "'maxQueueingTimeMs' has no effect", "leave it out"},
		{RULE("refResource: web"), 5, 16, "'refResource' has no effect", NULL},
		{RULE("unit: bytes"), 4, 14, "smaller than a frame", "1514"},
		{RESOURCES "rules: [{resource: dns, threshold: 0.999999}]\n", 2, 36, "admits nothing", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: 1513, unit: bytes}]\n", 2, 36, "smaller than a frame",
		 NULL},
		{"settings: {nonIp: drop}\n" RESOURCES "rules: [{resource: dns, threshold: 1}]\n", 1, 19, "drops ARP",
		 NULL},
		{MATCH("{protocol: icmp, destinationPort: 53}"), 4, 39,
		 "no protocol that 'protocol' names has a destinationPort", NULL},
		{MATCH("{protocol: udp, tcpFlags: syn}"), 4, 31, "has a tcpFlags", NULL},
		{MATCH("{protocol: tcp, icmpType: 8}"), 4, 31, "has a icmpType", NULL},
		{MATCH("{icmpType: 8, sourcePort: 8}"), 4, 16, "both a sourcePort and a icmpType", NULL},
		{MATCH("{fragment: later, sourcePort: 8}"), 4, 35, "a later fragment has no sourcePort", NULL},
		{MATCH("{family: ipv4, source: '::1'}"), 4, 28, "'source' has no prefix of the family", NULL},
		{MATCH("{source: 1.2.3.4, destination: '::1'}"), 4, 36, "no family in common", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], true);
}

static void legal_edges_are_not_warned_of(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, RESOURCES
		     "rules: [{resource: dns, threshold: 1514, unit: bytes}, {resource: web, threshold: 1}]\n");
	assert_reads(bench, MATCH("{protocol: [icmp, sctp], destinationPort: 53, fragment: [first, later]}"));
	assert_reads(bench, MATCH("{family: ipv4, source: ['::1', 1.2.3.4]}"));
	assert_reads(bench, MATCH("{tcpFlags: syn, destinationPort: 22}"));
}

static void empty_files_are_refused_but_files_without_rules_are_not(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "", NULL, NULL), -EINVAL);
	assert_tells(bench,
		     "the rule file is empty\na rule file has settings, resources and rules; 'rules/' has examples\n");
	assert_int_equal(read_texts(bench, "# nothing\n", "---\n", "rules:\n"), -EINVAL);
	assert_tells(
		bench,
		"the rule files are all empty\na rule file has settings, resources and rules; 'rules/' has examples\n");
	assert_int_equal(read_texts(bench, "settings: {unmatched: drop}\n", "", NULL), 0);
	assert_tells(bench, "warning: there are no rules: nothing will be limited\n");
}

/* ---- places ---- */

static void caret_stands_under_the_token_whatever_is_before_it(void **state)
{
	struct bench *bench = *state;

	/* A tab in the line is repeated below; characters count, not bytes; quotes belong to the token. */
	assert_int_equal(read_texts(bench, "resources: [{name: äöü,\tflow: \"nö\"}]\n", NULL, NULL), -EINVAL);
	assert_tells(bench,
		     "a.yaml:1:31: flow: 'nö' is no field of a flow key\n"
		     "    resources: [{name: äöü,\tflow: \"nö\"}]\n"
		     "                           \t      ^~~~\n"
		     "    write source, destination (both with /IPv4-prefix/IPv6-prefix if you like), sourcePort, "
		     "destinationPort, protocol, vlan or interface\n");
}

static void long_line_is_shown_around_the_token(void **state)
{
	struct bench *bench = *state;
	char text[2048] = "resources: [";

	for (int i = 0; i < 40; i++)
		sprintf(text + strlen(text), "{name: resource-number-%d}, ", i);
	strcat(text,
	       "{nome: x}, {name: y, match: {protocol: udp}, flow: [source/24/56, destination, vlan, interface]}]\n");
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 2);
	assert_string_equal(bench->diag.entries[0].message, "resource has no field 'nome'");
	assert_true(strlen(bench->diag.entries[0].source_line) <= 170);
	assert_memory_equal(bench->diag.entries[0].source_line + bench->diag.entries[0].caret, "nome", 4);
	assert_memory_equal(text + bench->diag.entries[0].column - 1, "nome", 4);
}

static void terminal_control_in_a_file_does_not_reach_the_terminal(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "\"\\e[31m\\x9b\": 1\n", NULL, NULL), -EINVAL);
	assert_string_equal(bench->diag.entries[0].message, "a rule file has no field '?[31m?"
							    "?'");
}

static void rule_place_is_its_name_or_its_start(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, "resources:\n- name: r\nrules:\n- threshold: 1\n  resource: r\n- threshold: 1\n  name: x\n "
			    " resource: r\n");
	assert_int_equal(bench->ruleset->resources[0].place.column, 9);
	assert_int_equal(bench->ruleset->rules[0].place.line, 4);
	assert_int_equal(bench->ruleset->rules[1].place.line, 7);
	assert_int_equal(bench->ruleset->rules[1].place.column, 9);
}

static void mistake_in_an_anchored_value_is_told_once(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "resources:\n- {name: a, match: &m {vlan: x}}\n- {name: b, match: *m}\n",
				    NULL, NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.errors, 1);
}

/* ---- what nobody means well ---- */

static void bytes_that_are_no_text_are_refused_and_never_end_the_file(void **state)
{
	/* libfyaml 0.7.12 takes these for the end of the file: the rules after them would be missing. */
	static const char before[] = "resources: [{name: r}]\n# ", after[] = "\nrules: [{resource: r, threshold: 1}]\n";
	static const struct {
		const char *bytes;
		size_t count;
	} bad[] = {{"\xff", 1}, {"\0", 1}, {"\x1b", 1}, {"\xc0\x80", 2}, {"\xed\xa0\x80", 3}, {"\xc2\x85", 2}};
	static const char *const paths[] = {"a.yaml"};
	struct bench *bench = *state;
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		size_t used = strlen(before);

		forget(bench);
		memcpy(text, before, used);
		memcpy(text + used, bad[i].bytes, bad[i].count);
		strcpy(text + used + bad[i].count, after);
		write_file("a.yaml", text, used + bad[i].count + strlen(after));
		assert_int_equal(weir_ruleset_read(paths, 1, &bench->ruleset, &bench->diag), -EINVAL);
		assert_int_equal(bench->diag.entries[0].line, 2);
		assert_int_equal(bench->diag.entries[0].column, 3);
		assert_non_null(strstr(bench->diag.entries[0].message, "is not UTF-8 text"));
	}
}

static void aliases_cannot_blow_up_a_small_file(void **state)
{
	struct bench *bench = *state;
	char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";

	for (int i = 1; i < 9; i++) {
		sprintf(text + strlen(text), "a%d: &a%d [", i, i);
		for (int j = 0; j < 10; j++)
			sprintf(text + strlen(text), "*a%d%s", i - 1, j < 9 ? ", " : "]\n");
	}
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.count, 1);
	assert_non_null(strstr(bench->diag.entries[0].message, "more than a million values"));
}

static void nesting_is_bounded(void **state)
{
	struct bench *bench = *state;
	char text[1024] = "a: ";

	memset(text + 3, '[', 500);
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 1);
}

static void file_beyond_16_megabytes_is_refused(void **state)
{
	static const char *const paths[] = {"a.yaml"};
	struct bench *bench = *state;
	size_t bytes = (16u << 20) + 1;
	_cleanup_(weir_freep) char *text = malloc(bytes);

	memset(text, '\n', bytes);
	write_file("a.yaml", text, bytes);
	assert_int_equal(weir_ruleset_read(paths, 1, &bench->ruleset, &bench->diag), -EINVAL);
	assert_string_equal(bench->diag.entries[0].message, "'a.yaml' is larger than 16 MB");
}

static void thousands_of_mistakes_end_in_one_line(void **state)
{
	struct bench *bench = *state;
	_cleanup_(weir_freep) char *text = malloc(64 * 1024);
	char *at = stpcpy(text, "rules:\n");

	for (int i = 0; i < 3000; i++)
		at = stpcpy(at, "- x\n");
	assert_int_equal(read_texts(bench, text, NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 1001);
	assert_string_equal(bench->diag.entries[1000].message, "more than 1000 mistakes; the rest is not shown");
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Bytes of a good file replaced, doubled, cut out: whatever comes, the reader answers with 0 or mistakes. */
static void damaged_files_never_crash_the_reader(void **state)
{
	static const char good[] =
		"settings: &s {flowsPerCpu: 512, malformed: pass}\n"
		"resources:\n- name: \"r\"\n  match:\n    protocol: [tcp, 17]\n    source: [192.0.2.0/24, '::1']\n"
		"    destinationPort: &p [1-2, 80]\n    sourcePort: *p\n    tcpFlags: 'syn,!ack'\n"
		"  flow: [source/24/56, vlan]\nrules:\n- {resource: r, threshold: 1.5, sampleCount: 5}\n"
		"- resource: r\n  threshold: |\n    7\n  window: strict\n";
	static const char spice[] = "\n\t -:,[]{}&*!|>'\"#%@`?\\0~<.\xc3\xa9\xff";
	struct bench *bench = *state;
	uint32_t seed = 1;

	for (int round = 0; round < 3000; round++) {
		char text[sizeof(good) * 2];
		int err;

		strcpy(text, good);
		for (uint32_t edits = 1 + next_random(&seed) % 6; edits; edits--) {
			size_t at = next_random(&seed) % strlen(text), bytes = 1 + next_random(&seed) % 20;

			switch (next_random(&seed) % 3) {
			case 0:
				text[at] = spice[next_random(&seed) % (sizeof(spice) - 1)];
				break;
			case 1:
				bytes = bytes < strlen(text + at) ? bytes : strlen(text + at);
				memmove(text + at, text + at + bytes, strlen(text + at + bytes) + 1);
				break;
			default:
				if (strlen(text) < sizeof(good) + 64)
					memmove(text + at + 1, text + at, strlen(text + at) + 1);
			}
		}
		err = read_texts(bench, text, NULL, NULL);
		free(told(bench));
		if ((err != 0) != (bench->diag.errors != 0) || (err == 0) != (bench->ruleset != NULL))
			fail_msg("returned %d with %zu mistakes for:\n%s", err, bench->diag.errors, text);
	}
}

/* ---- the files people can use as they are ---- */

static void shipped_rule_files_are_read_without_a_word(void **state)
{
	struct bench *bench = *state;
	char pattern[4096];
	glob_t files;

	snprintf(pattern, sizeof(pattern), "%s/rules/*.yaml", bench->home);
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 5);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		const char *path = files.gl_pathv[i];
		int err;

		forget(bench);
		err = weir_ruleset_read(&path, 1, &bench->ruleset, &bench->diag);
		if (err || bench->diag.count) {
			_cleanup_(weir_freep) char *words = told(bench);

			fail_msg("%s", words);
		}
	}
	globfree(&files);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults_are_those_of_the_rules_reference),
		TEST(every_field_of_a_rule_is_read),
		TEST(every_condition_of_a_match_is_read),
		TEST(interval_zero_is_one_second),
		TEST(flow_is_one_field_a_list_or_empty),
		TEST(json_is_read_as_yaml),
		TEST(anchors_and_aliases_mean_what_they_name),
		TEST(byte_order_mark_and_carriage_returns_do_no_harm),
		TEST(headings_without_content_are_as_good_as_absent),
		TEST(files_merge_in_the_order_given),
		TEST(setting_with_two_values_is_told_with_both_places),
		TEST(name_given_twice_is_told_across_files),
		TEST(mistakes_of_all_files_are_told_in_one_go),
		TEST(unknown_resource_is_not_told_when_a_file_could_not_be_read),
		TEST(file_that_cannot_be_read_is_told_with_the_others),
		TEST(mistake_in_the_form_is_told_at_its_place),
		TEST(mistake_in_a_setting_is_told_at_its_place),
		TEST(mistake_in_a_match_is_told_at_its_place),
		TEST(mistake_in_a_rule_is_told_at_its_place),
		TEST(what_a_later_version_brings_is_refused_by_name),
		TEST(what_sentinel_refuses_is_refused),
		TEST(legal_but_surely_not_meant_is_warned_of),
		TEST(legal_edges_are_not_warned_of),
		TEST(empty_files_are_refused_but_files_without_rules_are_not),
		TEST(caret_stands_under_the_token_whatever_is_before_it),
		TEST(long_line_is_shown_around_the_token),
		TEST(terminal_control_in_a_file_does_not_reach_the_terminal),
		TEST(rule_place_is_its_name_or_its_start),
		TEST(mistake_in_an_anchored_value_is_told_once),
		TEST(bytes_that_are_no_text_are_refused_and_never_end_the_file),
		TEST(aliases_cannot_blow_up_a_small_file),
		TEST(nesting_is_bounded),
		TEST(file_beyond_16_megabytes_is_refused),
		TEST(thousands_of_mistakes_end_in_one_line),
		TEST(damaged_files_never_crash_the_reader),
		TEST(shipped_rule_files_are_read_without_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
