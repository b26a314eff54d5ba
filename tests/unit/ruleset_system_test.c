// SPDX-License-Identifier: GPL-2.0-only
/* System rules: how they are read, from weir's files and Sentinel-Go's, and what they come to in a load. */
#include <string.h>

#include "../lib/previous.h"
#include "compile/compile.h"
#include "ruleset_bench.h"

#define SYSTEM(fields) RESOURCES "systemRules:\n- {" fields "}\n"

/* ---- reading ---- */

BENCH_CLAIM(system_rules_come_first_in_the_order_of_the_files)
{
	static const struct {
		const char *name;
		enum weir_system_metric system;
		enum weir_metric metric;
	} expected[] = {
		{"system#1", WEIR_SYSTEM_LOAD, WEIR_METRIC_SIGNAL},
		{"mine", WEIR_SYSTEM_INBOUND_QPS, WEIR_METRIC_RATE},
		{"system#3", WEIR_SYSTEM_CONCURRENCY, WEIR_METRIC_CONCURRENCY},
		{"dns#1", WEIR_SYSTEM_NONE, WEIR_METRIC_RATE},
		{"web#1", WEIR_SYSTEM_NONE, WEIR_METRIC_RATE},
	};

	assert_int_equal(read_texts(bench,
				    RESOURCES "rules: [{resource: dns, threshold: 1}]\n"
					      "systemRules:\n"
					      "- {metricType: Load, triggerCount: 8.5, strategy: BBR}\n"
					      "- {name: mine, metricType: 3, triggerCount: 100, mode: observe}\n",
				    "rules: [{resource: web, threshold: 1}]\n",
				    "[{\"MetricType\": 2, \"triggercount\": 1E2, \"strategy\": -1, \"id\": \"7\"}]\n"),
			 0);
	assert_int_equal(bench->diag.count, 0);
	assert_int_equal(bench->ruleset->rule_count, ARRAY_SIZE(expected));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
		const struct weir_ruleset_rule *rule = &bench->ruleset->rules[i];

		assert_string_equal(rule->name, expected[i].name);
		assert_int_equal(rule->system, expected[i].system);
		assert_int_equal(rule->metric, expected[i].metric);
		assert_int_equal(rule->resource == WEIR_NO_RESOURCE, rule->system != WEIR_SYSTEM_NONE);
	}
	assert_true(bench->ruleset->rules[0].is_bbr);
	assert_true(bench->ruleset->rules[0].threshold_micro == 8500000);
	assert_true(bench->ruleset->rules[1].observes);
	assert_true(bench->ruleset->rules[2].threshold_micro == 100 * WEIR_MICRO);
	assert_string_equal(bench->ruleset->rules[2].place.file, "c.yaml");
}

BENCH_CLAIM(every_metric_has_a_word_and_a_number)
{
	static const char *const words[] = {"Load", "AvgRT", "Concurrency", "InboundQPS", "CpuUsage"};
	char text[256];

	for (size_t i = 0; i < 2 * ARRAY_SIZE(words); i++) {
		const size_t number = i / 2;
		char digit[] = {'0' + number, '\0'};

		snprintf(text, sizeof(text), SYSTEM("metricType: %s, triggerCount: 1"), i % 2 ? words[number] : digit);
		assert_reads(bench, text);
		assert_int_equal(bench->ruleset->rules[0].system, number + 1);
		forget(bench);
	}
}

BENCH_CLAIM(mistakes_are_reported_where_they_are)
{
	static const struct sample samples[] = {
		{SYSTEM("triggerCount: 1"), 3, 3, "the system rule has no metricType", "InboundQPS (3)"},
		{SYSTEM("metricType: Load"), 3, 3, "the system rule has no triggerCount", "'triggerCount: 100'"},
		{SYSTEM("metricType: 5, triggerCount: 1"), 3, 16, "'5' is not a value of 'metricType'", "CpuUsage (4)"},
		{SYSTEM("metricType: \"3\", triggerCount: 1"), 3, 16, "is a string, not a number",
		 "leave out the quotes"},
		{SYSTEM("metricType: QPS, triggerCount: 1"), 3, 16, "'QPS' is not a value of 'metricType'", NULL},
		{SYSTEM("metricType: 3, triggerCount: -1"), 3, 33, "triggerCount: '-1' is below 0", "write 0 or more"},
		{SYSTEM("metricType: 3, triggerCount: many"), 3, 33, "triggerCount: ", NULL},
		{SYSTEM("metricType: 3, triggerCount: 10000000001"), 3, 33, "is too large", "10000000000"},
		{SYSTEM("metricType: CpuUsage, triggerCount: 80"), 3, 40,
		 "CpuUsage is never above 1: '80' is never reached", "0.8"},
		{SYSTEM("metricType: 0, triggerCount: 1, strategy: 2"), 3, 46, "'2' is not a value of 'strategy'",
		 "BBR (1)"},
		{SYSTEM("metricType: 0, triggerCount: 1, mode: maybe"), 3, 42, "'maybe' is not a value of 'mode'",
		 NULL},
		{SYSTEM("metricType: 3, triggerCount: 1, mod: observe"), 3, 36,
		 "a rule of 'systemRules' has no field 'mod'", "did you mean 'mode'?"},
		{SYSTEM("metricType: 3, triggerCount: 1, comment: x"), 3, 36, "has no field 'comment'",
		 "known fields: metricType, triggerCount, strategy, name, mode, onBlock or id"},
		{RESOURCES "systemRules: {metricType: 0}\n", 2, 14, "'systemRules' must be a list", "'- '"},
	};
	static const struct sample warnings[] = {
		{SYSTEM("metricType: AvgRT, triggerCount: 1, strategy: BBR"), 3, 50,
		 "'strategy' has no effect: only Load and CpuUsage have BBR", "leave it out"},
		{SYSTEM("metricType: InboundQPS, triggerCount: 0"), 3, 42, "admits no inbound work", NULL},
		{SYSTEM("metricType: Concurrency, triggerCount: 0"), 3, 43, "admits no new connection", NULL},
		{"systemRules: [{metricType: 0, triggerCount: 1}]\n", 1, 15, "there are none", "define a resource"},
		{"resources: [{name: r, match: {direction: out}}]\nsystemRules: [{metricType: 0, triggerCount: 1}]\n",
		 2, 15, "all resources are 'out'", "define a resource"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
	ASSERT_MESSAGES_OF(bench, warnings, true);
}

/* As Sentinel-Go's decoder does; but it is warned of. */
BENCH_CLAIM(list_in_a_file_of_its_own_may_have_other_fields)
{
	assert_int_equal(read_texts(bench, RESOURCES,
				    "[{\"metricType\": 3, \"triggerCount\": 5, \"comment\": \"x\"}]\n", NULL),
			 0);
	assert_int_equal(bench->diag.count, 1);
	assert_non_null(strstr(bench->diag.entries[0].message, "'comment' has no effect"));
	assert_int_equal(bench->ruleset->rule_count, 1);
}

BENCH_CLAIM(a_strategy_of_0_is_no_bbr)
{
	assert_reads(bench, SYSTEM("metricType: Load, triggerCount: 5, strategy: 0"));
	assert_false(bench->ruleset->rules[0].is_bbr);
	assert_int_equal(bench->diag.count, 0);
}

BENCH_CLAIM(more_than_a_packet_can_meet_are_refused)
{
	char text[2048] = RESOURCES "systemRules:\n";

	for (int i = 0; i < 17; i++)
		strcat(text, "- {metricType: 3, triggerCount: 9}\n");
	assert_message(bench, &(struct sample){text, 19, 3, "17 system rules are too many", "remove some"}, false);
}

/* ---- compiling ---- */

static struct weir_image *compile(struct bench *bench, const char *text, const struct weir_image *before)
{
	struct weir_compile_options options = {.cpus = 2, .now_ns = 100 * WEIR_NSEC_PER_SEC};
	struct weir_previous previous;
	struct weir_image *image = NULL;

	forget(bench);
	assert_int_equal(read_texts(bench, text, NULL, NULL), 0);
	if (before) {
		previous = previous_of(before);
		options.previous = &previous;
	}
	assert_int_equal(weir_image_build(bench->ruleset, &options, &image, &bench->diag), 0);
	return image;
}

#define AND_RULE(system) RESOURCES "rules: [{resource: dns, threshold: 1}]\nsystemRules: [" system "]\n"

BENCH_CLAIM(a_rule_is_shown_what_it_evaluates_and_from_where_on)
{
	_cleanup_(weir_image_freep) struct weir_image *image = NULL;

	image = compile(bench,
			AND_RULE("{metricType: 3, triggerCount: 2.1}, {metricType: 2, triggerCount: 5}, "
				 "{metricType: 4, triggerCount: 0.75}"),
			NULL);
	assert_int_equal(image->config.system_rules, 3);
	assert_int_equal(image->config.has_tracker, 0);
	assert_true(image->config.asked_fields & WEIR_MATCH_TCP_FLAGS);
	assert_int_equal(image->packet_rules_max, 4);
	assert_int_equal(image->resources[0].rule_count, 1);
	assert_int_equal(image->resources[0].rule[0], 3);
	assert_int_equal(image->rules[0].kind, WEIR_KIND_WINDOW);
	assert_int_equal(image->rules[0].storage, WEIR_STORAGE_LONE);
	assert_int_equal(image->rules[0].evaluates, WEIR_WORK_OPENING | WEIR_WORK_OTHER);
	assert_int_equal(image->rules[0].threshold & WEIR_THRESHOLD_MASK, 3); /* the first that is one too many */
	assert_int_equal(image->rules[1].kind, WEIR_KIND_CONNECTIONS);
	assert_int_equal(image->rules[1].evaluates, WEIR_WORK_OPENING | WEIR_WORK_ESTABLISHED);
	assert_int_equal(image->rules[1].threshold & WEIR_THRESHOLD_MASK, 5);
	assert_int_equal(image->rules[2].kind, WEIR_KIND_SYSTEM);
	assert_int_equal(image->rules[2].signal, WEIR_SYSTEM_CPU_USAGE);
	assert_int_equal(image->rules[2].threshold & WEIR_THRESHOLD_MASK, 750000);
	assert_int_equal(image->rules[3].evaluates, 0);
}

BENCH_CLAIM(only_rules_that_go_by_connections_have_them_followed)
{
	static const struct {
		const char *text;
		bool has_tracker;
	} cases[] = {
		{AND_RULE("{metricType: Load, triggerCount: 1}"), false},
		{AND_RULE("{metricType: Load, triggerCount: 1, strategy: BBR}"), true},
		{AND_RULE("{metricType: AvgRT, triggerCount: 1}"), true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(weir_image_freep) struct weir_image *image = compile(bench, cases[i].text, NULL);
		const struct weir_rule *tracker = &image->rules[image->config.tracker];

		assert_int_equal(image->config.has_tracker, cases[i].has_tracker);
		assert_int_equal(image->shadow_count, cases[i].has_tracker);
		assert_int_equal(image->config.kinds >> WEIR_KIND_CONNECTIONS & 1, cases[i].has_tracker);
		if (!cases[i].has_tracker)
			continue;
		assert_int_equal(image->config.tracker, image->rule_count);
		assert_int_equal(tracker->kind, WEIR_KIND_CONNECTIONS);
		assert_true(tracker->observes);
		assert_true(image->config.sizes[WEIR_TABLE_CONNECTIONS] > 1);
	}
}

/* The sixteenth place is the hidden rule's. */
BENCH_CLAIM(system_rules_take_their_part_of_the_rules_of_a_packet)
{
	struct weir_compile_options options = {.cpus = 2};
	struct weir_image *image = NULL;
	char text[2048] = RESOURCES "systemRules: [{metricType: AvgRT, triggerCount: 9}]\nrules:\n";

	for (int i = 0; i < 14; i++)
		sprintf(text + strlen(text), "- {resource: dns, threshold: %d}\n", 99 - i);
	assert_int_equal(read_texts(bench, text, NULL, NULL), 0);
	assert_int_equal(weir_image_build(bench->ruleset, &options, &image, &bench->diag), 0);
	assert_int_equal(image->packet_rules_max, 15);
	weir_image_free(image);
	forget(bench);
	strcat(text, "- {resource: dns, threshold: 9}\n");
	assert_int_equal(read_texts(bench, text, NULL, NULL), 0);
	assert_int_equal(weir_image_build(bench->ruleset, &options, &image, &bench->diag), -EINVAL);
	assert_non_null(strstr(bench->diag.entries[0].message,
			       "17 rules can meet on one packet, at most 16 may (one of them hidden"));
}

/* The same rule keeps its slot, and so does what is hidden; another metric under the name is another rule. */
BENCH_CLAIM(a_reload_keeps_what_is_unchanged)
{
	_cleanup_(weir_image_freep) struct weir_image *before = NULL, *after = NULL, *changed = NULL;

	before = compile(bench,
			 AND_RULE("{name: a, metricType: AvgRT, triggerCount: 1}, "
				  "{name: b, metricType: InboundQPS, triggerCount: 5}"),
			 NULL);
	after = compile(bench,
			AND_RULE("{name: b, metricType: InboundQPS, triggerCount: 7}, "
				 "{name: a, metricType: AvgRT, triggerCount: 2}"),
			before);
	assert_int_equal(after->rules[0].slot, before->rules[1].slot);
	assert_int_equal(after->rules[1].slot, before->rules[0].slot);
	assert_int_equal(after->rules[3].slot, before->rules[3].slot);
	assert_int_equal(after->kept_rules, 3);
	changed = compile(bench, AND_RULE("{name: b, metricType: Concurrency, triggerCount: 7}"), after);
	assert_int_not_equal(changed->rules[0].slot, after->rules[0].slot);
}

RUN_CLAIMS(NULL, NULL)
