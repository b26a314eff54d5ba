// SPDX-License-Identifier: GPL-2.0-only
/* Rule files: what they may say, and what is told of those that are wrong. */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

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
/* What allow and deny lists are read from. */
static const char *const list_names[] = {"good.txt", "bad.txt", "lists/good.txt", "lists/a.yaml"};

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
	for (size_t i = 0; i < ARRAY_SIZE(list_names); i++)
		unlink(list_names[i]);
	rmdir("lists");
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

#define RESOURCES "resources: [{name: dns}, {name: web}]\n"

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
	assert_false(bench->ruleset->settings.paces);
	assert_null(bench->ruleset->settings.memory_cgroup);
	assert_int_equal(bench->ruleset->settings.controller_timeout_ms, 3000);
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

static void every_setting_of_the_controller_is_read(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench,
		     "settings: {memory: 'cgroup:/a b', throttling: pace, controllerTimeoutInMs: 60000}\n" RESOURCES
		     "rules: [{resource: dns, threshold: 1}]\n");
	assert_string_equal(bench->ruleset->settings.memory_cgroup, "/a b");
	assert_true(bench->ruleset->settings.paces);
	assert_int_equal(bench->ruleset->settings.controller_timeout_ms, 60000);
	assert_reads(bench, "settings: {memory: cgroup:x, throttling: police}\n" RESOURCES
			    "rules: [{resource: dns, threshold: 1}]\n");
	assert_string_equal(bench->ruleset->settings.memory_cgroup, "x");
	assert_false(bench->ruleset->settings.paces);
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

#define MATCH(condition) "resources:\n- name: r\n  match:\n    " condition "\nrules: [{resource: r, threshold: 1}]\n"
#define RULE(field) RESOURCES "rules:\n- resource: dns\n  threshold: 5\n  " field "\n"

static void mistake_in_the_form_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{"bogus: 1\n", 1, 1, "a rule file has no field 'bogus'", "settings, resources, rules, allow or deny"},
		{"rule: []\n", 1, 1, "no field 'rule'", "'rules'"},
		{"7\n", 1, 1, "a rule file must be a map of fields, not a single value", "settings"},
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
		{"resources:\n- name: a\n  deny: [1.2.3.4]\n", 3, 3, "resource has no field 'deny'", NULL},
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
		{"settings: {memory: swap}\n", 1, 20, "'swap' is no value of 'memory'", "system, or cgroup:PATH"},
		{"settings: {memory: 'cgroup:'}\n", 1, 20, "must have 1 to 255 bytes", "cgroup:PATH"},
		{"settings: {throttling: paced}\n", 1, 24, "'paced' is no value of 'throttling'", "'pace'"},
		{"settings: {controllerTimeoutInMs: 999}\n", 1, 35, "'999' is out of range", "1000 to 60000"},
		{"settings: {controllerTimeoutInMs: 60001}\n", 1, 35, "out of range", NULL},
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
		{"resources: [{name: a}]\nrules: [{resource: \"\", threshold: 1}]\n", 2, 20, "no resource ''",
		 "define it under"},
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
		{RULE("tokenCalculateStrategy: 3"), 5, 27, "no value of",
		 "Direct, WarmUp or MemoryAdaptive; its number, 0 to 2, will do too"},
		{RULE("tokenCalculateStrategy: direct"), 5, 27, "no value of",
		 "'Direct'? its number, 0 to 2, will do too"},
		{RULE("statIntervalInMs: -1"), 5, 21, "negative", "write 10 to 86400000, or 0 for the default"},
		{RULE("statIntervalInMs: 010"), 5, 21, "begins with a zero", "write 10"},
		{RULE("warmUpColdFactor: x"), 5, 21, "not a whole number",
		 "write 2 to 4294967295, or 0 for the default"},
		{RULE("memLowWaterMarkBytes: -1"), 5, 25, "negative", "write 1 to 9223372036854775807"},
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

/* ---- connections ---- */

#define CONNECTIONS(fields)                                                                                            \
	RESOURCES "rules:\n- resource: dns\n  metricType: Concurrency\n  threshold: 5\n  " fields "\n"

static void a_concurrency_rule_has_a_threshold_a_mode_and_overrides(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_rule *rule;

	assert_reads(bench,
		     "resources: [{name: a, flow: source/24/56}]\nrules:\n- resource: a\n  metricType: Concurrency\n"
		     "  threshold: 2.9\n  mode: observe\n  overrides: [{source: 192.0.2.0/24, threshold: 0}]\n");
	rule = &bench->ruleset->rules[0];
	assert_int_equal(rule->metric, WEIR_METRIC_CONCURRENCY);
	assert_true(rule->threshold_micro == 2900000);
	assert_true(rule->observes);
	assert_int_equal(rule->override_count, 1);
	/* Sentinel's number, and its other enums when they say what holds anyway. */
	assert_reads(bench, RESOURCES "rules: [{resource: dns, metricType: 0, threshold: 1, tokenCalculateStrategy: 0, "
				      "controlBehavior: Reject, relationStrategy: CurrentResource}, "
				      "{resource: dns, threshold: 1}]\n");
	assert_int_equal(bench->ruleset->rules[0].metric, WEIR_METRIC_CONCURRENCY);
	assert_int_equal(bench->ruleset->rules[1].metric, WEIR_METRIC_RATE);
}

static void what_connections_have_not_is_refused(void **state)
{
	static const struct sample samples[] = {
		{RULE("metricType: QPS"), 5, 15, "'QPS' is no value of 'metricType'", "leave it out to limit a rate"},
		{RULE("metricType: concurrency"), 5, 15, "no value of", "did you mean 'Concurrency'?"},
		{RULE("metricType: 1"), 5, 15, "'1' is no value of 'metricType'", "write Concurrency"},
		{RULE("metricType: [0]"), 5, 15, "'metricType' must be a single value", NULL},
		{RESOURCES "rules: [{resource: dns, metricType: 0}]\n", 2, 9, "the rule has no threshold",
		 "how many connections"},
		{CONNECTIONS("unit: bytes"), 6, 9, "Concurrency counts connections, not bytes", "leave it out"},
		{CONNECTIONS("tokenCalculateStrategy: WarmUp"), 6, 27, "Concurrency has no WarmUp",
		 "leave out metricType"},
		{CONNECTIONS("tokenCalculateStrategy: 2"), 6, 27, "Concurrency has no MemoryAdaptive", NULL},
		{CONNECTIONS("controlBehavior: 1"), 6, 20, "Concurrency has no Throttling", NULL},
		{CONNECTIONS("relationStrategy: AssociatedResource"), 6, 21, "Concurrency has no AssociatedResource",
		 NULL},
		{CONNECTIONS("statIntervalInMs: 9"), 6, 21, "'9' is out of range", NULL},
		{"settings: {connections: 1023}\n", 1, 25, "out of range", "1024 to 4194304"},
		{"settings: {connections: 4194305}\n", 1, 25, "out of range", NULL},
		{"settings: {connectionFlows: 255}\n", 1, 29, "out of range", "256 to 4194304"},
		{"settings: {halfOpenTimeoutInMs: 999}\n", 1, 33, "out of range", "1000 to 86400000"},
		{"settings: {tcpIdleTimeoutInMs: 86400001}\n", 1, 32, "out of range", NULL},
		{"settings: {otherIdleTimeoutInMs: 1s}\n", 1, 34, "not a whole number", NULL},
		{"settings: {closedTimeoutInMs: 0}\n", 1, 31, "out of range", NULL},
	};

	struct bench *bench = *state;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(bench, &samples[i], false);
}

/* What is meant is to be seen only once the mistake is mended. */
static void a_rule_with_a_mistake_is_not_warned_of(void **state)
{
	static const char *const texts[] = {
		CONNECTIONS("unit: bytes"),
		CONNECTIONS("tokenCalculateStrategy: WarmUp\n  warmUpPeriodSec: 10"),
		RULE("tokenCalculateStrategy: Warmup\n  warmUpPeriodSec: 10"),
		RULE("tokenCalculateStratgy: WarmUp\n  warmUpPeriodSec: 10"),
		RULE("warmUpPeriodSec: 10\n  controlBehavior: Throtling"),
		RULE("controlBehavior: Throtling\n  maxQueueingTimeMs: 10"),
		RULE("relationStrategy: Associated\n  refResource: web"),
		RULE("unit: byte\n  window: lep\n  controlBehavior: Throttling"),
		RESOURCES "rules: [{resource: dsn, threshold: 0.5}]\n",
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		assert_int_equal(read_texts(bench, texts[i], NULL, NULL), -EINVAL);
		for (size_t entry = 0; entry < bench->diag.count; entry++)
			assert_false(bench->diag.entries[entry].is_warning);
	}
	/* Another rule is. */
	assert_int_equal(read_texts(bench,
				    RESOURCES "rules: [{resource: dns, threshold: 5, unit: byte, refResource: web},\n"
					      " {resource: dns, threshold: 5, refResource: web}]\n",
				    NULL, NULL),
			 -EINVAL);
	assert_int_equal(bench->diag.count, 2);
	assert_int_equal(bench->diag.entries[1].line, 3);
}

static void what_connections_do_not_use_is_warned_of(void **state)
{
#define OF_MATCH(match)                                                                                                \
	"resources: [{name: r, match: {" match "}}]\nrules: [{resource: r, threshold: 5, metricType: Concurrency}]\n"
	static const struct sample samples[] = {
		{CONNECTIONS("statIntervalInMs: 1000"), 6, 21,
		 "'statIntervalInMs' has no effect: it is for rules without "
		 "metricType Concurrency",
		 "leave it out"},
		{CONNECTIONS("sampleCount: 10"), 6, 16, "'sampleCount' has no effect", NULL},
		{CONNECTIONS("window: leap"), 6, 11, "'window' has no effect", NULL},
		{CONNECTIONS("unit: packets"), 6, 9, "'unit' has no effect", NULL},
		{CONNECTIONS("maxQueueingTimeMs: 1"), 6, 22, "'maxQueueingTimeMs' has no effect", NULL},
		{CONNECTIONS("warmUpPeriodSec: 1"), 6, 20, "'warmUpPeriodSec' has no effect", NULL},
		{CONNECTIONS("refResource: web"), 6, 16, "'refResource' has no effect", NULL},
		{RESOURCES "rules: [{resource: dns, metricType: 0, threshold: 0.5}]\n", 2, 51,
		 "a threshold below 1 admits no new connection", NULL},
		{RESOURCES "rules: [{name: r, resource: dns, metricType: 0, threshold: 131073}]\n", 2, 16,
		 "the threshold may never be reached: there is room for 131072", "raise settings.connections"},
		{OF_MATCH("fragment: later"), 2, 49, "the rule has no effect", "another resource"},
		{OF_MATCH("fragment: [none, first]"), 2, 49, "only some packets of a connection",
		 "addresses and ports"},
		{OF_MATCH("tcpFlags: syn"), 2, 49, "its match has 'tcpFlags'", NULL},
		{OF_MATCH("length: 64-128"), 2, 49, "its match has 'length'", NULL},
		{"settings: {connections: 4096}\n" RULE(""), 1, 25,
		 "'connections' has no effect: no rule has metricType Concurrency", "leave it out"},
		{"settings: {closedTimeoutInMs: 1000}\n" RULE(""), 1, 31, "'closedTimeoutInMs' has no effect", NULL},
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(bench, &samples[i], true);
	assert_reads(bench, OF_MATCH("fragment: none, protocol: tcp, destinationPort: 80"));
	assert_reads(bench, RESOURCES "rules: [{resource: dns, metricType: 0, threshold: 131072}]\n");
}

static void settings_of_connections_merge_and_have_defaults(void **state)
{
	static const uint64_t defaults_ms[] = {10000, 600000, 120000, 10000},
			      given_ms[] = {1000, 86400000, 30000, 2000};
	static const char rule[] = RESOURCES "rules: [{resource: dns, threshold: 1, metricType: Concurrency}]\n";
	struct bench *bench = *state;
	const struct weir_settings *settings;

	assert_reads(bench, rule);
	settings = &bench->ruleset->settings;
	assert_int_equal(settings->connections, 131072);
	assert_int_equal(settings->connection_flows, 32768);
	assert_memory_equal(settings->connection_timeout_ms, defaults_ms, sizeof(defaults_ms));
	assert_int_equal(
		read_texts(bench, rule,
			   "settings: {connections: 4096, halfOpenTimeoutInMs: 1000, tcpIdleTimeoutInMs: 86400000}\n",
			   "settings: {connections: 4096, otherIdleTimeoutInMs: 30000, closedTimeoutInMs: 2000}\n"),
		0);
	assert_int_equal(bench->diag.count, 0);
	settings = &bench->ruleset->settings;
	assert_int_equal(settings->connections, 4096);
	assert_int_equal(settings->connection_flows, 1024);
	assert_true(settings->derives_connection_flows);
	assert_memory_equal(settings->connection_timeout_ms, given_ms, sizeof(given_ms));
	assert_int_equal(read_texts(bench, rule, "settings: {connectionFlows: 300}\n", NULL), 0);
	assert_int_equal(bench->ruleset->settings.connection_flows, 300);
	assert_false(bench->ruleset->settings.derives_connection_flows);
}

/* ---- Sentinel's strategies, behaviors and relations ---- */

#define WARM_UP ", tokenCalculateStrategy: WarmUp, warmUpPeriodSec: 10"
#define MEMORY                                                                                                         \
	"tokenCalculateStrategy: MemoryAdaptive, lowMemUsageThreshold: 1000, highMemUsageThreshold: 100, "             \
	"memLowWaterMarkBytes: 1024, memHighWaterMarkBytes: 2048"
#define THROTTLING ", controlBehavior: Throttling, maxQueueingTimeMs: 500"
#define ASSOCIATED ", relationStrategy: AssociatedResource, refResource: web"
#define ONE_RULE(fields) RESOURCES "rules:\n- {resource: dns, " fields "}\n"

static void every_combination_is_read_or_refused_with_its_message(void **state)
{
	static const struct {
		const char *text;
		enum weir_strategy strategy;
		enum weir_behavior behavior;
		enum weir_relation relation;
		const char *refusal; /* NULL: accepted */
	} cells[] = {
#define REFUSAL "AssociatedResource has no effect with Throttling, unless the strategy is WarmUp"
		{ONE_RULE("threshold: 100"), 0, 0, 0, NULL},
		{ONE_RULE("threshold: 100" ASSOCIATED), 0, 0, 1, NULL},
		{ONE_RULE("threshold: 100" THROTTLING), 0, 1, 0, NULL},
		{ONE_RULE("threshold: 100" THROTTLING ASSOCIATED), 0, 1, 1, REFUSAL},
		{ONE_RULE("threshold: 100" WARM_UP), 1, 0, 0, NULL},
		{ONE_RULE("threshold: 100" WARM_UP ASSOCIATED), 1, 0, 1, NULL},
		{ONE_RULE("threshold: 100" WARM_UP THROTTLING), 1, 1, 0, NULL},
		{ONE_RULE("threshold: 100" WARM_UP THROTTLING ASSOCIATED), 1, 1, 1, NULL},
		{ONE_RULE(MEMORY), 2, 0, 0, NULL},
		{ONE_RULE(MEMORY ASSOCIATED), 2, 0, 1, NULL},
		{ONE_RULE(MEMORY THROTTLING), 2, 1, 0, NULL},
		{ONE_RULE(MEMORY THROTTLING ASSOCIATED), 2, 1, 1, REFUSAL},
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		const struct weir_ruleset_rule *rule;

		if (cells[i].refusal) {
			assert_int_equal(read_texts(bench, cells[i].text, NULL, NULL), -EINVAL);
			assert_int_equal(bench->diag.count, 1);
			assert_string_equal(bench->diag.entries[0].message, cells[i].refusal);
			assert_memory_equal(bench->diag.entries[0].source_line + bench->diag.entries[0].caret,
					    "AssociatedResource", 18);
			continue;
		}
		assert_reads(bench, cells[i].text);
		rule = &bench->ruleset->rules[0];
		assert_int_equal(rule->strategy, cells[i].strategy);
		assert_int_equal(rule->behavior, cells[i].behavior);
		assert_int_equal(rule->relation, cells[i].relation);
		assert_true(rule->ref_resource == (cells[i].relation ? 1 : WEIR_NO_RESOURCE));
		assert_true(rule->queueing_ms_max == (cells[i].behavior ? 500 : 0));
		assert_int_equal(rule->warm_up.period_s, cells[i].strategy == 1 ? 10 : 0);
		assert_int_equal(rule->warm_up.cold_factor, cells[i].strategy == 1 ? 3 : 0);
		assert_true(rule->memory.low_units == (cells[i].strategy == 2 ? 1000 : 0));
		assert_true(rule->memory.high_units == (cells[i].strategy == 2 ? 100 : 0));
		assert_true(rule->memory.low_mark_bytes == (cells[i].strategy == 2 ? 1024 : 0));
		assert_true(rule->memory.high_mark_bytes == (cells[i].strategy == 2 ? 2048 : 0));
		assert_true(rule->threshold_micro == (cells[i].strategy == 2 ? 0 : 100 * WEIR_MICRO));
	}
}

static void cold_factor_of_zero_or_none_is_three(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, ONE_RULE("threshold: 3" WARM_UP ", warmUpColdFactor: 0"));
	assert_int_equal(bench->ruleset->rules[0].warm_up.cold_factor, 3);
	assert_reads(bench, ONE_RULE("threshold: 2.5" WARM_UP ", warmUpColdFactor: 2"));
	assert_int_equal(bench->ruleset->rules[0].warm_up.cold_factor, 2);
	assert_reads(bench, ONE_RULE("threshold: 100, tokenCalculateStrategy: 1, warmUpPeriodSec: 31536000"));
	assert_int_equal(bench->ruleset->rules[0].warm_up.period_s, 31536000);
}

static void reference_has_no_key_or_the_same(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, "resources: [{name: a, flow: source/24/56}, {name: b, flow: [source/24/56]}, {name: c}]\n"
			    "rules:\n- {resource: a, threshold: 1, relationStrategy: 1, refResource: b}\n"
			    "- {resource: a, threshold: 1, relationStrategy: 1, refResource: c}\n");
	assert_int_equal(bench->ruleset->rules[0].ref_resource, 1);
	assert_int_equal(bench->ruleset->rules[1].ref_resource, 2);
}

static void what_sentinel_refuses_is_refused(void **state)
{
#define MEMORY_OF(low, high, low_mark, high_mark)                                                                      \
	RESOURCES "rules:\n- resource: dns\n  tokenCalculateStrategy: 2\n  lowMemUsageThreshold: " low                 \
		  "\n  highMemUsageThreshold: " high "\n  memLowWaterMarkBytes: " low_mark                             \
		  "\n  memHighWaterMarkBytes: " high_mark "\n"
	static const struct sample samples[] = {
		{RULE("relationStrategy: 1"), 5, 21, "AssociatedResource needs a refResource", "refResource: NAME"},
		{RULE("relationStrategy: 1\n  refResource: ''"), 6, 16, "AssociatedResource needs a refResource", NULL},
		{RULE("relationStrategy: 1\n  refResource: dns"), 6, 16, "refResource is the rule's own resource",
		 "name another"},
		{RULE("relationStrategy: 1\n  refResource: wbe"), 6, 16, "there is no resource 'wbe'", "'web'"},
		{RULE("relationStrategy: 2"), 5, 21, "'2' is no value of 'relationStrategy'", "AssociatedResource"},
		{RULE("controlBehavior: 2"), 5, 20, "'2' is no value of 'controlBehavior'", "Reject or Throttling"},
		{RULE("relationStrategy: 1\n  refResource: web\n  controlBehavior: 1"), 5, 21,
		 "no effect with Throttling", "CurrentResource"},
		{RULE("tokenCalculateStrategy: 1"), 3, 3, "WarmUp needs a warmUpPeriodSec of at least 1", "seconds"},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 0"), 6, 20, "warmUpPeriodSec of at least 1", NULL},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: -1"), 6, 20, "'-1' is negative", "31536000"},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 31536001"), 6, 20, "out of range", "31536000"},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 1\n  warmUpColdFactor: 1"), 7, 21,
		 "a warmUpColdFactor of 1 leaves nothing to warm up", "2 or more"},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 1\n  warmUpColdFactor: 6"), 4, 14, "never warm up",
		 "raise the threshold"},
		{RULE("tokenCalculateStrategy: 1\n  warmUpPeriodSec: 1\n  warmUpColdFactor: x"), 7, 21,
		 "not a whole number", NULL},
		{MEMORY_OF("0", "1", "1", "2"), 5, 25, "lowMemUsageThreshold above 0", "above 0"},
		{MEMORY_OF("-2", "1", "1", "2"), 5, 25, "'-2' is negative", NULL},
		{MEMORY_OF("2", "0", "1", "2"), 6, 26, "highMemUsageThreshold above 0", NULL},
		{MEMORY_OF("2", "1", "0", "2"), 7, 25, "memLowWaterMarkBytes above 0", NULL},
		{MEMORY_OF("2", "1", "1", "0"), 8, 26, "memHighWaterMarkBytes above 0", NULL},
		{MEMORY_OF("1", "1", "1", "2"), 6, 26, "must be below lowMemUsageThreshold", "shrinks"},
		{MEMORY_OF("2", "1", "2", "2"), 7, 25, "must be below memHighWaterMarkBytes", NULL},
		{MEMORY_OF("2", "1", "1", "9223372036854775808"), 8, 26, "out of range", "9223372036854775807"},
		{MEMORY_OF("10000000000001", "1", "1", "2"), 5, 25, "out of range", "10000000000000"},
		{RESOURCES "rules: [{resource: dns, tokenCalculateStrategy: 2, lowMemUsageThreshold: 2, "
			   "highMemUsageThreshold: 1, memLowWaterMarkBytes: 1}]\n",
		 2, 9, "memHighWaterMarkBytes above 0", NULL},
		{"resources: [{name: dns, flow: source}, {name: web, flow: vlan}]\n"
		 "rules: [{resource: dns, threshold: 1, relationStrategy: 1, refResource: web}]\n",
		 2, 73, "refResource 'web' has another flow key", "same flow key"},
		{"resources: [{name: dns}, {name: web, flow: vlan}]\n"
		 "rules: [{resource: dns, threshold: 1, relationStrategy: 1, refResource: web}]\n",
		 2, 73, "refResource 'web' has another flow key", NULL},
		{"resources: [{name: dns, flow: source/24/56}, {name: web, flow: source/24/64}]\n"
		 "rules: [{resource: dns, threshold: 1, relationStrategy: 1, refResource: web}]\n",
		 2, 73, "refResource 'web' has another flow key", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

static void high_mark_above_the_memory_there_is_is_refused(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, "resources: [{name: dns}]\nrules:\n- resource: dns\n  tokenCalculateStrategy: 2\n"
			    "  lowMemUsageThreshold: 2\n  highMemUsageThreshold: 1\n  memLowWaterMarkBytes: 1\n"
			    "  memHighWaterMarkBytes: 4096 # a page\n");
	assert_int_equal(weir_ruleset_check_memory(bench->ruleset, 4096, &bench->diag), 0);
	assert_int_equal(weir_ruleset_check_memory(bench->ruleset, 0, &bench->diag), 0);
	assert_int_equal(bench->diag.count, 0);
	assert_int_equal(weir_ruleset_check_memory(bench->ruleset, 4095, &bench->diag), -EINVAL);
	assert_tells(bench, "a.yaml:8:26: memHighWaterMarkBytes: 4096 is above the memory there is\n"
			    "    memHighWaterMarkBytes: 4096 # a page\n"
			    "                           ^~~~\n"
			    "    write at most 4095\n");
}

/* ---- overrides ---- */

#define KEYED "resources: [{name: a, flow: [source/24/56, vlan]}, {name: b}, {name: c, flow: [source/24/56, vlan]}]\n"
#define OVERRIDES(list) KEYED "rules:\n- resource: a\n  threshold: 5\n  overrides: " list "\n"

static void overrides_are_read_in_the_order_of_the_file(void **state)
{
	struct bench *bench = *state;
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

static void overrides_hold_for_throttling_and_same_key_association(void **state)
{
	struct bench *bench = *state;

	assert_reads(bench, OVERRIDES("[{source: 10.0.0.0/8, threshold: 9}]\n  controlBehavior: Throttling"));
	assert_reads(bench, OVERRIDES("[{source: 10.0.0.0/8, threshold: 9}]\n  relationStrategy: 1\n  refResource: c"));
}

static void mistake_in_an_override_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{OVERRIDES("7"), 5, 14, "'overrides' must be a list", "'- '"},
		{OVERRIDES("[7]"), 5, 15, "override must be a map", "source, destination or threshold"},
		{OVERRIDES("[{threshold: 1}]"), 5, 15, "the override has no prefix", "source: 192.0.2.0/24"},
		{OVERRIDES("[{source: 10.0.0.0/8}]"), 5, 15, "the override has no threshold", "0 to block"},
		{OVERRIDES("[{source: 10.0.0.0/8, treshold: 1, threshold: 1}]"), 5, 36,
		 "override has no field 'treshold'", "'threshold'"},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 1k}]"), 5, 47, "'1k' is not a number", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: -1}]"), 5, 47, "negative", NULL},
		{OVERRIDES("[{source: 10.0.0.1/8, threshold: 1}]"), 5, 24, "host bits", "10.0.0.0/8"},
		{OVERRIDES("[{source: x, threshold: 1}]"), 5, 24, "no IP address", NULL},
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
		 8, 14, "10.0.0.0/8 has an override already, in line 6", NULL},
		{KEYED "rules: [{resource: b, threshold: 5, overrides: [{source: 10.0.0.0/8, threshold: 1}]}]\n", 2, 58,
		 "source is not in the flow key of 'b'", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 1}]\n  tokenCalculateStrategy: 1\n  warmUpPeriodSec: 1"),
		 5, 14, "a threshold that does not move, and WarmUp has none", "Direct"},
		{KEYED "rules: [{resource: a, overrides: [{source: 10.0.0.0/8, threshold: 1}], " MEMORY "}]\n", 2, 34,
		 "MemoryAdaptive has none", NULL},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 1}]\n  relationStrategy: 1\n  refResource: b"), 5, 14,
		 "refResource 'b' has no flow key", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

static double cpu_seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (now.tv_sec - start->tv_sec) + (now.tv_nsec - start->tv_nsec) / 1e9;
}

/* The bound is generous, and of CPU time: sanitizers and a busy machine must not make it fail. */
static void hundred_thousand_overrides_are_read_in_seconds_and_not_one_more(void **state)
{
	struct bench *bench = *state;
	char *text = NULL;
	struct timespec start;
	size_t bytes;

	for (int more = 0; more < 2; more++) {
		FILE *stream = open_memstream(&text, &bytes);

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

static void lists_of_all_files_merge_in_order_without_duplicates(void **state)
{
	static const char *const expected[] = {"allow 10.0.0.0/8", "deny 10.0.0.0/16", "allow 192.0.2.1",
					       "deny 203.0.113.0/24", "allow 2001:db8::/32"};
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "allow: ['2001:db8::/32', 192.0.2.1, 10.0.0.0/8]\ndeny: 203.0.113.0/24\n",
				    "deny: [10.0.0.0/16]\nallow: 192.0.2.1/32\n",
				    "resources: [{name: r}]\nrules: [{resource: r, threshold: 1}]\nallow:\ndeny: []\n"),
			 0);
	assert_int_equal(bench->diag.count, 0);
	assert_listed(bench, expected, ARRAY_SIZE(expected));
}

static void prefix_that_is_allowed_and_denied_is_denied_with_a_warning(void **state)
{
	static const char *const expected[] = {"deny 10.0.0.0/8", "deny 192.0.2.1", "allow 192.0.2.2"};
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench,
				    "allow: [10.0.0.0/8, 192.0.2.1, 10.0.0.0/8, 192.0.2.2]\n"
				    "deny: [192.0.2.1, 10.0.0.0/8]\n",
				    NULL, NULL),
			 0);
	assert_tells(bench, "warning: 2 prefixes are both in 'allow' and in 'deny', such as 192.0.2.1\n"
			    "deny wins: take them out of one of the two\n");
	assert_listed(bench, expected, ARRAY_SIZE(expected));
}

static void list_file_is_found_beside_the_rule_file(void **state)
{
	static const char *const expected[] = {"allow 10.0.0.0/8", "allow 192.0.2.1", "allow 198.51.100.0/24",
					       "allow 2001:db8::1"};
	static const char list[] = "\xef\xbb\xbf# ours\r\n10.0.0.0/8\r\n\n \t198.51.100.0/24 \t# branch\n"
				   "2001:db8::1#end\n10.0.0.0/8";
	static const char *const path = "lists/a.yaml";
	struct bench *bench = *state;
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

static void every_bad_line_of_a_list_is_told_at_its_place(void **state)
{
	static const char list[] = "10.0.0.0/8\n  10.0.0.1/8 # ours\n\nexample.org\n::1/129\n1.2.3.4 5.6.7.8\n";
	struct bench *bench = *state;

	write_file("bad.txt", list, strlen(list));
	assert_int_equal(read_texts(bench, "deny: ['@bad.txt', 300.1.1.1]\nallow: '@bad.txt'\n", NULL, NULL), -EINVAL);
	assert_tells(bench, "bad.txt:2:3: prefix '10.0.0.1/8' has host bits set\n"
			    "    10.0.0.1/8 # ours\n"
			    "    ^~~~~~~~~~\n"
			    "    write 10.0.0.0/8 for the whole network, or 10.0.0.1 for the one address\n"
			    "bad.txt:4:1: 'example.org' is no IP address or prefix\n"
			    "    example.org\n"
			    "    ^~~~~~~~~~~\n"
			    "    write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32\n"
			    "bad.txt:5:1: '::1/129' has no valid prefix length\n"
			    "    ::1/129\n"
			    "    ^~~~~~~\n"
			    "    write 0 to 128 after the '/'\n"
			    "bad.txt:6:1: '1.2.3.4 5.6.7.8' is no IP address or prefix\n"
			    "    1.2.3.4 5.6.7.8\n"
			    "    ^~~~~~~~~~~~~~~\n"
			    "    write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32\n"
			    "a.yaml:1:20: deny: '300.1.1.1' is no IP address or prefix\n"
			    "    deny: ['@bad.txt', 300.1.1.1]\n"
			    "                       ^~~~~~~~~\n"
			    "    write it as 192.0.2.1, 192.0.2.0/24, 2001:db8::1 or 2001:db8::/32\n");
}

static void mistake_in_a_list_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{"allow: '@missing.txt'\n", 1, 8, "cannot open 'missing.txt': No such file",
		 "directory of the rule file"},
		{"allow: ['@']\n", 1, 9, "'@' names no file", "@FILE"},
		{"deny: ['@.']\n", 1, 8, "cannot read '.': Is a directory", NULL},
		{"deny: @bad.txt\n", 1, 7, "not valid YAML", "quotes"},
		{"deny: [1.2.3.4, ~]\n", 1, 17, "'deny' must be a single value, not nothing", NULL},
		{"deny: [[1.2.3.4]]\n", 1, 8, "'deny' must be a single value, not a list", NULL},
		{"deny: [1.2.3.4/24]\n", 1, 8, "host bits", "1.2.3.0/24"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		assert_tells_one(*state, &samples[i], false);
}

static void list_file_of_garbage_is_bounded_and_told(void **state)
{
	struct bench *bench = *state;
	char text[5000];

	memset(text, 'x', sizeof(text));
	text[10] = '\0';
	text[20] = '\n';
	write_file("bad.txt", text, sizeof(text));
	assert_int_equal(read_texts(bench, "deny: '@bad.txt'\n", NULL, NULL), -EINVAL);
	assert_int_equal(bench->diag.errors, 2);
	assert_string_equal(bench->diag.entries[0].message, "the line holds a zero byte");
	assert_string_equal(bench->diag.entries[1].message, "the line is longer than 1000 bytes");
	assert_int_equal(bench->diag.entries[1].line, 2);
}

static void million_entries_are_read_in_seconds(void **state)
{
	struct bench *bench = *state;
	FILE *stream = fopen("good.txt", "w");
	struct timespec start;

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

/* ---- Sentinel-Go's flow rules ---- */

/* Read a list with two resources that its rules may use. */
static int read_sentinel(struct bench *bench, const char *list)
{
	return read_texts(bench, list, RESOURCES, NULL);
}

static void assert_reads_sentinel(struct bench *bench, const char *list)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err = read_sentinel(bench, list);

	words = told(bench);
	if (err || bench->diag.count)
		fail_msg("%d: %s\n%s", err, list, words);
}

static void list_of_sentinel_rules_gets_weirs_defaults(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_rule *rule;

	assert_reads_sentinel(bench, "[{\"resource\": \"dns\", \"threshold\": 12.5, \"statIntervalInMs\": 0},\n"
				     " {\"resource\": \"dns\", \"threshold\": 1e3, \"statIntervalInMs\": 60000}]\n");
	assert_int_equal(bench->ruleset->rule_count, 2);
	rule = &bench->ruleset->rules[0];
	assert_string_equal(rule->name, "dns#1");
	assert_true(rule->threshold_micro == 12500000);
	assert_true(rule->interval_ns == 1000000000);
	assert_int_equal(rule->samples, 10);
	assert_int_equal(rule->window, WEIR_WINDOW_LEAP);
	assert_false(rule->counts_bytes);
	assert_false(rule->observes);
	assert_true(rule->ref_resource == WEIR_NO_RESOURCE);
	rule = &bench->ruleset->rules[1];
	assert_string_equal(rule->name, "dns#2");
	assert_true(rule->threshold_micro == 1000 * WEIR_MICRO);
	assert_true(rule->interval_ns == 60000000000);
	assert_string_equal(rule->place.file, "a.yaml");
	assert_int_equal(rule->place.line, 2);
}

static void sentinel_fields_match_without_case_and_enums_are_numbers_or_names(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_rule *rules;

	assert_reads_sentinel(
		bench,
		"[\n"
		"\t{\"ID\": 7, \"Resource\": \"dns\", \"TOKENCALCULATESTRATEGY\": \"WarmUp\", \"Threshold\": 1E2,\n"
		"\t \"warmupperiodsec\": 10, \"WarmUpColdFactor\": 0, \"controlbehavior\": \"Throttling\",\n"
		"\t \"MaxQueueingTimeMs\": 500, \"RelationStrategy\": 1, \"RefResource\": \"web\"},\n"
		"\t{\"id\": 7, \"resource\": \"web\", \"tokenCalculateStrategy\": 2, \"lowMemUsageThreshold\": 1000,\n"
		"\t \"highmemusagethreshold\": 100, \"memLowWaterMarkBytes\": 1024,\n"
		"\t \"MemHighWaterMarkBytes\": 2048, \"threshold\": 0}\n]\n");
	rules = bench->ruleset->rules;
	assert_int_equal(rules[0].strategy, WEIR_STRATEGY_WARM_UP);
	assert_int_equal(rules[0].behavior, WEIR_BEHAVIOR_THROTTLING);
	assert_int_equal(rules[0].relation, WEIR_RELATION_ASSOCIATED);
	assert_int_equal(rules[0].ref_resource, 1);
	assert_true(rules[0].threshold_micro == 100 * WEIR_MICRO);
	assert_int_equal(rules[0].warm_up.period_s, 10);
	assert_int_equal(rules[0].warm_up.cold_factor, 3);
	assert_true(rules[0].queueing_ms_max == 500);
	assert_int_equal(rules[1].strategy, WEIR_STRATEGY_MEMORY_ADAPTIVE);
	assert_true(rules[1].memory.high_mark_bytes == 2048);
	assert_string_equal(rules[1].name, "web#1");
}

static void sentinel_ignores_what_is_unknown_or_not_used(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_rule *rule;

	assert_reads_sentinel(bench,
			      "[{\"resource\": \"dns\", \"threshold\": 5, \"limitApp\": {\"deep\": [1, null]},\n"
			      "  \"warmUpPeriodSec\": 10, \"warmUpColdFactor\": 1, \"refResource\": \"nowhere\",\n"
			      "  \"maxQueueingTimeMs\": -1, \"lowMemUsageThreshold\": \"x\", \"regex\": false,\n"
			      "  \"metricType\": 1, \"name\": \"mine\", \"\": 0},\n"
			      " {\"resource\": \"dns\", \"threshold\": 1.23456789, \"tokenCalculateStrategy\": 2,\n"
			      "  \"lowMemUsageThreshold\": 2, \"highMemUsageThreshold\": 1,\n"
			      "  \"memLowWaterMarkBytes\": 1, \"memHighWaterMarkBytes\": 2}]\n");
	rule = &bench->ruleset->rules[0];
	assert_string_equal(rule->name, "dns#1");
	assert_int_equal(rule->strategy, WEIR_STRATEGY_DIRECT);
	assert_int_equal(rule->warm_up.period_s, 0);
	assert_true(rule->queueing_ms_max == 0);
	assert_true(rule->ref_resource == WEIR_NO_RESOURCE);
}

/* Its isolation rules, core/isolation/rule.go; metricType 1 is QPS, of the flow rules of version 0. */
static void isolation_rules_of_sentinel_limit_connections(void **state)
{
	struct bench *bench = *state;
	const struct weir_ruleset_rule *rules;

	assert_reads_sentinel(bench,
			      "[{\"id\": \"a\", \"resource\": \"dns\", \"metricType\": 0, \"threshold\": 12},\n"
			      " {\"Resource\": \"web\", \"METRICTYPE\": \"Concurrency\", \"threshold\": 1,\n"
			      "  \"statIntervalInMs\": \"ignored\", \"warmUpPeriodSec\": -1, \"controlBehavior\": 0},\n"
			      " {\"resource\": \"web\", \"metricType\": 1, \"threshold\": 9},\n"
			      " {\"resource\": \"web\", \"metricType\": \"QPS\", \"threshold\": 9},\n"
			      " {\"resource\": \"web\", \"metricType\": null, \"threshold\": 9}]\n");
	rules = bench->ruleset->rules;
	assert_int_equal(rules[0].metric, WEIR_METRIC_CONCURRENCY);
	assert_true(rules[0].threshold_micro == 12 * WEIR_MICRO);
	assert_string_equal(rules[0].name, "dns#1");
	assert_int_equal(rules[1].metric, WEIR_METRIC_CONCURRENCY);
	for (size_t i = 2; i < 5; i++)
		assert_int_equal(rules[i].metric, WEIR_METRIC_RATE);
}

static void of_a_sentinel_field_given_twice_the_last_counts_and_null_does_not(void **state)
{
	struct bench *bench = *state;

	assert_reads_sentinel(bench,
			      "[{\"resource\": \"web\", \"threshold\": 5, \"Threshold\": 6, \"threshold\": null,\n"
			      "  \"statIntervalInMs\": null, \"controlBehavior\": null, \"regex\": null,\n"
			      "  \"resource\": \"dns\"}]\n");
	assert_true(bench->ruleset->rules[0].threshold_micro == 6 * WEIR_MICRO);
	assert_int_equal(bench->ruleset->rules[0].resource, 0);
}

static void mistake_in_a_sentinel_rule_is_told_at_its_place(void **state)
{
	static const struct sample samples[] = {
		{"[{\"resource\": \"dsn\", \"threshold\": 1}]", 1, 15, "there is no resource 'dsn'", "'dns'"},
		{"[{\"resource\": \"\", \"threshold\": 1}]", 1, 15, "there is no resource ''", NULL},
		{"[{\"threshold\": 1}]", 1, 2, "the rule has no resource", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": -1}]", 1, 35, "threshold '-1' is negative", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1e13e}]", 1, 35, "not a number", "JSON"},
		{"[{\"resource\": \"dns\", \"threshold\": 0.0000001}]", 1, 35, "more than six decimals", "round"},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"controlBehavior\": 2}]", 1, 57, "no value of", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"regex\": true}]", 1, 47, "not by a pattern of names",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"metricType\": 2}]", 1, 52, "'2' is no value of",
		 "Concurrency"},
		{"[{\"resource\": \"dns\", \"threshold\": 0, \"metricType\": 0}]", 1, 35, "needs a threshold above 0",
		 "a file of weir's own"},
		{"[{\"resource\": \"dns\", \"metricType\": 0}]", 1, 2, "needs a threshold above 0", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"metricType\": 0, \"controlBehavior\": 1}]", 1, 74,
		 "Concurrency has no Throttling", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"regex\": 1}]", 1, 47, "no value of 'regex'", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"statIntervalInMs\": 5}]", 1, 58, "out of range", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"relationStrategy\": 1}]", 1, 58, "needs a refResource",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"relationStrategy\": 1, \"refResource\": \"\"}]", 1, 76,
		 "needs a refResource", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 3, \"tokenCalculateStrategy\": 1}]", 1, 2, "warmUpPeriodSec",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": -1, \"tokenCalculateStrategy\": 2, \"lowMemUsageThreshold\": "
		 "2, "
		 "\"highMemUsageThreshold\": 1, \"memLowWaterMarkBytes\": 1, \"memHighWaterMarkBytes\": 2}]",
		 1, 35, "negative", NULL},
		{"[7]", 1, 2, "a rule of Sentinel's must be a map of fields", NULL},
		{"[null]", 1, 2, "must be a map of fields, not nothing", NULL},
	};
	struct bench *bench = *state;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const struct sample *sample = &samples[i];
		int err = read_sentinel(bench, sample->text);
		_cleanup_(weir_freep) char *words = told(bench);
		const struct weir_diag_entry *entry = bench->diag.entries;

		if (err != -EINVAL || bench->diag.count != 1 || entry->line != sample->line ||
		    entry->column != sample->column || !strstr(entry->message, sample->message) ||
		    (sample->hint && (!entry->hint || !strstr(entry->hint, sample->hint))))
			fail_msg("expected %d:%d: %s, got %d:\n%s", sample->line, sample->column, sample->message, err,
				 words);
	}
}

static void sentinel_rule_that_cannot_mean_what_it_says_is_warned_of(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_sentinel(bench, "[{\"resource\": \"dns\"},\n"
					      " {\"resource\": \"web\", \"threshold\": 1, \"mode\": \"observe\"}]"),
			 0);
	assert_tells(bench, "a.yaml:1:2: warning: the rule has no threshold: it admits nothing\n"
			    "    [{\"resource\": \"dns\"},\n"
			    "     ^\n"
			    "    as in Sentinel, no threshold is a threshold of 0\n"
			    "a.yaml:2:46: warning: 'mode' has no effect: a list of Sentinel's rules does not know it\n"
			    "    {\"resource\": \"web\", \"threshold\": 1, \"mode\": \"observe\"}]\n"
			    "                                                ^~~~~~~~~\n"
			    "    to use it, write the rule under 'rules:' of a file of weir's own\n");
	assert_true(bench->ruleset->rules[0].threshold_micro == 0);
	assert_false(bench->ruleset->rules[1].observes);
}

static void empty_sentinel_list_is_an_empty_file(void **state)
{
	struct bench *bench = *state;

	assert_int_equal(read_texts(bench, "[]\n", NULL, NULL), -EINVAL);
	assert_string_equal(bench->diag.entries[0].message, "the rule file is empty");
	assert_int_equal(read_sentinel(bench, "[]\n"), 0);
	assert_tells(bench, "warning: there are no rules: nothing will be limited\n");
}

static void legal_but_surely_not_meant_is_warned_of(void **state)
{
	static const struct sample samples[] = {
		{RULE("warmUpPeriodSec: 10"), 5, 20, "'warmUpPeriodSec' has no effect", NULL},
		{RULE("maxQueueingTimeMs: 10"), 5, 22, "'maxQueueingTimeMs' has no effect", "leave it out"},
		{RULE("refResource: web"), 5, 16, "'refResource' has no effect", NULL},
		{RULE("memLowWaterMarkBytes: 7"), 5, 25, "'memLowWaterMarkBytes' has no effect", NULL},
		{RULE("controlBehavior: Throttling\n  window: strict"), 6, 11, "'window' has no effect", NULL},
		{RULE("controlBehavior: Throttling\n  sampleCount: 5"), 6, 16, "'sampleCount' has no effect", NULL},
		{ONE_RULE("threshold: 5, " MEMORY), 3, 30, "'threshold' has no effect: it is for Direct and WarmUp",
		 "leave it out"},
		{ONE_RULE("threshold: 3000, unit: bytes" WARM_UP), 3, 30,
		 "cold, this threshold is smaller than a frame", NULL},
		{ONE_RULE("unit: bytes, " MEMORY), 3, 123, "this threshold is smaller than a frame", "1514"},
		{OVERRIDES("[{source: 10.0.0.0/8, threshold: 0.5}]"), 5, 47, "a threshold below 1 admits nothing",
		 NULL},
		{KEYED
		 "rules: [{resource: a, threshold: 2000, unit: bytes, overrides: [{source: 10.0.0.0/8, threshold: "
		 "1513}, {source: 11.0.0.0/8, threshold: 0}]}]\n",
		 2, 97, "smaller than a frame", NULL},
		{"resources: [{name: a, match: {family: ipv4}, flow: source/24}]\n"
		 "rules: [{resource: a, threshold: 2, overrides: [{source: '::/8', threshold: 1}]}]\n",
		 2, 58, "the override has no effect: 'a' takes only IPv4", NULL},
		{RULE("unit: bytes"), 4, 14, "smaller than a frame", "1514"},
		{RESOURCES "rules: [{resource: dns, threshold: 0.999999}]\n", 2, 36, "admits nothing", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: 1513, unit: bytes}]\n", 2, 36, "smaller than a frame",
		 NULL},
		{"settings: {nonIp: drop}\n" RESOURCES "rules: [{resource: dns, threshold: 1}]\n", 1, 19, "drops ARP",
		 NULL},
		{MATCH("{protocol: icmp, destinationPort: 53}"), 4, 39,
		 "no protocol that 'protocol' names has 'destinationPort'", NULL},
		{MATCH("{protocol: udp, tcpFlags: syn}"), 4, 31, "has 'tcpFlags'", NULL},
		{MATCH("{protocol: tcp, icmpType: 8}"), 4, 31, "has 'icmpType'", NULL},
		{MATCH("{icmpType: 8, sourcePort: 8}"), 4, 16, "both 'sourcePort' and 'icmpType'", NULL},
		{MATCH("{fragment: later, sourcePort: 8}"), 4, 35, "a later fragment has no 'sourcePort'", NULL},
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

/* Up to six edits: a byte replaced, some cut out, one doubled. `text` has room for 64 more. */
static void damage(char *text, size_t bytes_max, uint32_t *seed)
{
	static const char spice[] = "\n\t -:,[]{}&*!|>'\"#%@`?\\0~<.\xc3\xa9\xff";

	for (uint32_t edits = 1 + next_random(seed) % 6; edits; edits--) {
		size_t at = next_random(seed) % strlen(text), bytes = 1 + next_random(seed) % 20;

		switch (next_random(seed) % 3) {
		case 0:
			text[at] = spice[next_random(seed) % (sizeof(spice) - 1)];
			break;
		case 1:
			bytes = bytes < strlen(text + at) ? bytes : strlen(text + at);
			memmove(text + at, text + at + bytes, strlen(text + at + bytes) + 1);
			break;
		default:
			if (strlen(text) < bytes_max)
				memmove(text + at + 1, text + at, strlen(text + at) + 1);
		}
	}
}

/* Whatever comes, the reader answers with 0 or mistakes. */
static void damaged_files_never_crash_the_reader(void **state)
{
	static const char *const good[] = {
		"settings: &s {flowsPerCpu: 512, malformed: pass, memory: cgroup:/x}\n"
		"resources:\n- name: \"r\"\n  match:\n    protocol: [tcp, 17]\n    source: [192.0.2.0/24, '::1']\n"
		"    destinationPort: &p [1-2, 80]\n    sourcePort: *p\n    tcpFlags: 'syn,!ack'\n"
		"  flow: [source/24/56, vlan]\nrules:\n- {resource: r, threshold: 1.5, sampleCount: 5}\n"
		"- resource: r\n  threshold: |\n    7\n  window: strict\n",
		"allow: ['@good.txt', 10.0.0.0/8]\ndeny: ['::/8']\nresources: [{name: r, flow: source}, {name: s}]\n"
		"rules:\n- resource: r\n  threshold: 100\n  overrides:\n  - {source: 192.0.2.0/24, threshold: 0}\n"
		"  - {source: '2001:db8::', threshold: 7.5}\n"
		"- {resource: r, threshold: 9, tokenCalculateStrategy: 1, warmUpPeriodSec: 3, controlBehavior: 1,\n"
		"   relationStrategy: 1, refResource: s}\n- {resource: s, " MEMORY "}\n",
		"[{\"resource\": \"dns\", \"threshold\": 1e3, \"tokenCalculateStrategy\": 1, \"warmUpPeriodSec\": 5},\n"
		" {\"Resource\": \"web\", \"threshold\": 0.5, \"regex\": false, \"relationStrategy\": 1, "
		"\"refResource\": "
		"\"dns\"}]\n",
	};
	struct bench *bench = *state;
	uint32_t seed = 1;

	write_file("good.txt", "1.2.3.4\n", 8);
	for (int round = 0; round < 6000; round++) {
		const char *sample = good[round % ARRAY_SIZE(good)];
		char text[2048];
		int err;

		strcpy(text, sample);
		damage(text, strlen(sample) + 64, &seed);
		err = read_texts(bench, text, text[0] == '[' ? RESOURCES : NULL, NULL);
		free(told(bench));
		if ((err != 0) != (bench->diag.errors != 0) || (err == 0) != (bench->ruleset != NULL))
			fail_msg("returned %d with %zu mistakes for:\n%s", err, bench->diag.errors, text);
	}
}

/* ---- the files people can use as they are ---- */

static void assert_reads_files(struct bench *bench, const char *const *paths, size_t count)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err;

	forget(bench);
	err = weir_ruleset_read(paths, count, &bench->ruleset, &bench->diag);
	words = told(bench);
	if (err || bench->diag.count)
		fail_msg("%s: %s", paths[0], words);
}

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

		/* Resources alone, for the list of rules below. */
		if (!strstr(path, "/sentinel-resources.yaml"))
			assert_reads_files(bench, &path, 1);
	}
	globfree(&files);
}

static void shipped_sentinel_list_is_read_with_its_resources(void **state)
{
	struct bench *bench = *state;
	char list[4096], resources[4096];
	const char *const paths[] = {list, resources};

	snprintf(list, sizeof(list), "%s/rules/sentinel-flow.json", bench->home);
	snprintf(resources, sizeof(resources), "%s/rules/sentinel-resources.yaml", bench->home);
	assert_reads_files(bench, paths, 2);
	assert_int_equal(bench->ruleset->rule_count, 6);
	assert_int_equal(bench->ruleset->rules[1].strategy, WEIR_STRATEGY_WARM_UP);
	assert_true(bench->ruleset->rules[1].threshold_micro == 10000 * WEIR_MICRO);
	assert_int_equal(bench->ruleset->rules[2].strategy, WEIR_STRATEGY_MEMORY_ADAPTIVE);
	assert_int_equal(bench->ruleset->rules[3].behavior, WEIR_BEHAVIOR_THROTTLING);
	assert_int_equal(bench->ruleset->rules[5].relation, WEIR_RELATION_ASSOCIATED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(defaults_are_those_of_the_rules_reference),
		TEST(every_field_of_a_rule_is_read),
		TEST(every_setting_of_the_controller_is_read),
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
		TEST(a_concurrency_rule_has_a_threshold_a_mode_and_overrides),
		TEST(what_connections_have_not_is_refused),
		TEST(what_connections_do_not_use_is_warned_of),
		TEST(a_rule_with_a_mistake_is_not_warned_of),
		TEST(settings_of_connections_merge_and_have_defaults),
		TEST(every_combination_is_read_or_refused_with_its_message),
		TEST(cold_factor_of_zero_or_none_is_three),
		TEST(reference_has_no_key_or_the_same),
		TEST(what_sentinel_refuses_is_refused),
		TEST(high_mark_above_the_memory_there_is_is_refused),
		TEST(overrides_are_read_in_the_order_of_the_file),
		TEST(overrides_hold_for_throttling_and_same_key_association),
		TEST(mistake_in_an_override_is_told_at_its_place),
		TEST(hundred_thousand_overrides_are_read_in_seconds_and_not_one_more),
		TEST(lists_of_all_files_merge_in_order_without_duplicates),
		TEST(prefix_that_is_allowed_and_denied_is_denied_with_a_warning),
		TEST(list_file_is_found_beside_the_rule_file),
		TEST(every_bad_line_of_a_list_is_told_at_its_place),
		TEST(mistake_in_a_list_is_told_at_its_place),
		TEST(list_file_of_garbage_is_bounded_and_told),
		TEST(million_entries_are_read_in_seconds),
		TEST(list_of_sentinel_rules_gets_weirs_defaults),
		TEST(sentinel_fields_match_without_case_and_enums_are_numbers_or_names),
		TEST(sentinel_ignores_what_is_unknown_or_not_used),
		TEST(isolation_rules_of_sentinel_limit_connections),
		TEST(of_a_sentinel_field_given_twice_the_last_counts_and_null_does_not),
		TEST(mistake_in_a_sentinel_rule_is_told_at_its_place),
		TEST(sentinel_rule_that_cannot_mean_what_it_says_is_warned_of),
		TEST(empty_sentinel_list_is_an_empty_file),
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
		TEST(shipped_sentinel_list_is_read_with_its_resources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
