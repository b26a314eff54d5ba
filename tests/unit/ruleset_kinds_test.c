// SPDX-License-Identifier: GPL-2.0-only
/* Lists of Sentinel's rules are recognised by their fields or by the name above them; others are refused. */
#include <stdio.h>
#include <string.h>

#include "sentinel/sentinel.h"
#include "ruleset_bench.h"

/* A list by itself: of which kind it is taken to be. */
static void assert_is_of(const char *text, const char *owner, const char *title)
{
	_cleanup_(weir_document_freep) struct weir_document *document = NULL;
	_cleanup_(weir_diag_free) struct weir_diag diag = {};
	struct weir_ruleset ruleset = {};
	struct weir_reader reader = {.diag = &diag, .ruleset = &ruleset};
	const struct weir_sentinel_kind *kind;
	bool is_guess;

	assert_int_equal(weir_document_parse("a.yaml", strdup(text), strlen(text), false, &document, &diag), 0);
	kind = weir_recognise_sentinel(&reader, document->root, NULL, &is_guess);
	if (!kind || diag.count || strcmp(weir_sentinel_owner(kind), owner) || strcmp(kind->title, title))
		fail_msg("%s\nis not of %s %s, but of %s %s (%s)", text, owner, title,
			 kind ? weir_sentinel_owner(kind) : "no kind", kind ? kind->title : "",
			 diag.count ? diag.entries[0].message : "no message");
}

#define GO "Sentinel-Go's"
#define JAVA "Sentinel Java's"

CLAIM(list_is_recognised_by_the_fields_that_only_its_kind_has)
{
	static const struct {
		const char *fields, *owner, *title;
	} lists[] = {
		/* One field that no other kind has is enough. */
		{"\"statIntervalInMs\": 1000", GO, "flow rules"},
		{"\"TOKENCALCULATESTRATEGY\": 1", GO, "flow rules"},
		{"\"paramIndex\": 0", GO, "hotspot rules"},
		{"\"specificItems\": []", GO, "hotspot rules"},
		{"\"retryTimeoutMs\": 3000", GO, "circuit breakers"},
		{"\"maxAllowedRtMs\": 50", GO, "circuit breakers"},
		{"\"statSlidingWindowBucketCount\": 10", GO, "circuit breakers"},
		{"\"ProbeNum\": 3", GO, "circuit breakers"},
		{"\"metricType\": 1, \"triggerCount\": 0.8, \"strategy\": 1", GO, "system rules"},
		{"\"triggerCount\": 3", GO, "system rules"},
		{"\"retryTimeoutMs\": 3000, \"maxEjectionPercent\": 0.5", GO, "outlier rules"},
		{"\"timeWindow\": 10", JAVA, "degrade rules"},
		{"\"slowRatioThreshold\": 0.5", JAVA, "degrade rules"},
		{"\"paramIdx\": 0", JAVA, "param-flow rules"},
		{"\"paramFlowItemList\": []", JAVA, "param-flow rules"},
		{"\"qps\": 100", JAVA, "system rules"},
		{"\"highestSystemLoad\": 3.5, \"avgRt\": -1, \"maxThread\": -1, \"qps\": -1, \"highestCpuUsage\": -1",
		 JAVA, "system rules"},
		{"\"grade\": 1, \"count\": 10, \"intervalSec\": 60", JAVA, "gateway flow rules"},
		/* So are fields that no other kind has together. */
		{"\"threshold\": 5, \"durationInSec\": 1", GO, "hotspot rules"},
		{"\"metricType\": 1, \"threshold\": 5, \"burstCount\": 1", GO, "hotspot rules"},
		{"\"strategy\": 2, \"threshold\": 50, \"minRequestAmount\": 10, \"statIntervalMs\": 1000", GO,
		 "circuit breakers"},
		{"\"threshold\": 0.5, \"minRequestAmount\": 10", GO, "circuit breakers"},
		{"\"metricType\": 0, \"strategy\": -1", GO, "system rules"},
		{"\"count\": 5, \"durationInSec\": 1", JAVA, "param-flow rules"},
		{"\"grade\": 2, \"count\": 50, \"timeWindow\": 10, \"statIntervalMs\": 1000", JAVA, "degrade rules"},
		/* Sentinel Java takes no degrade rule without a timeWindow, and ignores what it does not know. */
		{"\"grade\": 1, \"count\": 50, \"statIntervalMs\": 1000", JAVA, "flow rules"},
		{"\"limitApp\": \"default\", \"minRequestAmount\": 5", JAVA, "degrade rules"},
		{"\"resource\": \"a\", \"limitApp\": \"192.0.2.1\", \"strategy\": 1", JAVA, "authority rules"},
		/* What Sentinel itself would not take for another kind. */
		{"\"resource\": \"a\", \"threshold\": 5", GO, "flow rules"},
		{"\"resource\": \"a\", \"metricType\": 0, \"threshold\": 5", GO, "flow rules"},
		{"\"resource\": \"a\"", GO, "flow rules"},
		{"\"resource\": \"a\", \"grade\": 1, \"count\": 5", JAVA, "flow rules"},
		{"\"resource\": \"a\", \"count\": 5, \"limitApp\": \"default\", \"strategy\": 0", JAVA, "flow rules"},
		/* null is as good as absent. */
		{"\"resource\": \"a\", \"threshold\": 5, \"grade\": null, \"timeWindow\": null", GO, "flow rules"},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		snprintf(text, sizeof(text), "[{%s}]", lists[i].fields);
		assert_is_of(text, lists[i].owner, lists[i].title);
	}
}

/* Each rule may have only some of the fields by which the list is recognised. */
CLAIM(whole_list_is_of_one_kind)
{
	assert_is_of("[{\"resource\": \"dns\", \"threshold\": 50, \"strategy\": 2},\n"
		     " {\"resource\": \"web\", \"threshold\": 0.5, \"retryTimeoutMs\": 3000}]",
		     GO, "circuit breakers");
	assert_is_of("[{\"resource\": \"dns\", \"count\": 50, \"grade\": 2},\n"
		     " {\"resource\": \"web\", \"count\": 5, \"timeWindow\": 10, \"grade\": null}]",
		     JAVA, "degrade rules");
	assert_is_of("[{\"id\": 1, \"rule\": {\"resource\": \"dns\", \"count\": 50}},\n"
		     " {\"id\": 2, \"rule\": {\"resource\": \"web\", \"paramIdx\": 0}}]",
		     JAVA, "param-flow rules");
}

BENCH_CLAIM(list_of_two_kinds_is_refused_with_how_to_part_them)
{
	assert_int_equal(read_texts(bench,
				    "[{\"resource\": \"dns\", \"threshold\": 5, \"statIntervalInMs\": 1000},\n"
				    " {\"resource\": \"dns\", \"threshold\": 5, \"retryTimeoutMs\": 1000}]",
				    RESOURCES, NULL),
			 -EINVAL);
	assert_messages(
		bench,
		"a.yaml:2:38: 'retryTimeoutMs' belongs to Sentinel-Go's circuit breakers, but 'statIntervalInMs' "
		"in line 1 belongs to Sentinel-Go's flow rules\n"
		"    {\"resource\": \"dns\", \"threshold\": 5, \"retryTimeoutMs\": 1000}]\n"
		"                                        ^~~~~~~~~~~~~~~~\n"
		"    give each kind its own list: {\"flowRules\": [...], \"circuitBreakers\": [...]}\n");
	/* The later of the two is pointed at, whichever kind comes first in our table. */
	assert_int_equal(read_texts(bench, "[{\"timeWindow\": 5},\n {\"paramIndex\": 0}]", RESOURCES, NULL), -EINVAL);
	assert_int_equal(bench->diag.count, 1);
	assert_int_equal(bench->diag.entries[0].line, 2);
	assert_string_equal(bench->diag.entries[0].message,
			    "'paramIndex' belongs to Sentinel-Go's hotspot rules, but "
			    "'timeWindow' in line 1 belongs to Sentinel Java's degrade rules");
}

BENCH_CLAIM(list_that_could_be_of_two_kinds_is_refused_with_how_to_wrap_it)
{
	static const struct sample samples[] = {
		{"[{\"resource\": \"dns\", \"durationInSec\": 5, \"burstCount\": 0}]", 1, 1,
		 "this list could be Sentinel-Go's hotspot rules or Sentinel Java's param-flow rules",
		 "say which: {\"hotspotRules\": [...]} or {\"paramFlowRules\": [...]}"},
		{"- minRequestAmount: 5\n  statIntervalMs: 1000\n", 1, 1,
		 "this list could be Sentinel-Go's circuit breakers or Sentinel Java's degrade rules",
		 "{\"circuitBreakers\": [...]} or {\"degradeRules\": [...]}"},
		{"[{\"metricType\": 1, \"limitApp\": \"default\"}]", 1, 20,
		 "'limitApp' is a field of Sentinel Java's rules, but 'metricType' in line 1 of Sentinel-Go's flow "
		 "rules, isolation rules, hotspot rules and system rules",
		 "name the kind: {\"flowRules\": [...]}"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* No kind has all the fields: the one that has most of them refuses the others by name. */
BENCH_CLAIM(list_of_which_no_kind_has_all_fields_is_taken_for_the_nearest)
{
	static const struct sample samples[] = {
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"limitApp\": \"default\"}]", 1, 38,
		 "'limitApp' is a field of Sentinel Java's rules, not of Sentinel-Go's flow rules", "leave it out"},
		{"[{\"resource\": \"dns\", \"count\": 1, \"metricType\": 1}]", 1, 34,
		 "'metricType' is a field of Sentinel-Go's flow rules, isolation rules, hotspot rules and system "
		 "rules, not of Sentinel Java's flow rules",
		 "write 'grade': 0 for threads"},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"controlBehavior\": 1, \"statIntervalInMs\": 1000,\n"
		 "  \"timeWindow\": 5}]",
		 2, 3, "'timeWindow' is a field of Sentinel Java's degrade rules, not of Sentinel-Go's flow rules",
		 "\"degradeRules\": [...]"},
		{"[{\"resource\": \"dns\", \"strategy\": 1, \"refResource\": \"web\"}]", 1, 22,
		 "not of Sentinel-Go's flow rules", "write 'relationStrategy'"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		int err = read_texts(bench, samples[i].text, RESOURCES, NULL);
		const struct weir_diag_entry *entry = bench->diag.entries;

		if (err != -EINVAL || bench->diag.count != 1 || entry->line != samples[i].line ||
		    entry->column != samples[i].column || !strstr(entry->message, samples[i].message) || !entry->hint ||
		    !strstr(entry->hint, samples[i].hint))
			fail_msg("%s\n%s", samples[i].text, messages(bench));
	}
}

BENCH_CLAIM(name_that_a_list_stands_under_says_its_kind)
{
	assert_reads(bench, RESOURCES "rules: [{resource: dns, threshold: 1, sampleCount: 5}]\n"
				      "flowRules: [{resource: dns, Threshold: 2}]\n"
				      "isolationRules: [{resource: dns, threshold: 3}]\n"
				      "hotspotRules: []\ncircuitBreakers:\nsystemRules: null\ndegradeRules: []\n"
				      "paramFlowRules:\nauthorityRules: ~\n");
	assert_int_equal(bench->ruleset->rule_count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_true(bench->ruleset->rules[i].threshold_micro == (i + 1) * WEIR_MICRO);
		assert_int_equal(bench->ruleset->rules[i].metric, i == 2 ? WEIR_METRIC_CONCURRENCY : WEIR_METRIC_RATE);
	}
	assert_string_equal(bench->ruleset->rules[2].name, "dns#3");
	/* JSON, beside the file with the resources. */
	assert_int_equal(
		read_texts(bench, "{\"flowRules\": [{\"resource\": \"web\", \"threshold\": 9}]}", RESOURCES, NULL), 0);
	assert_int_equal(bench->ruleset->rule_count, 1);
}

/* Rules are evaluated in the order in which they stand, whatever list they stand in. */
BENCH_CLAIM(lists_of_a_file_keep_its_order)
{
	assert_reads(bench, "isolationRules: [{resource: dns, threshold: 3}]\n"
			    "flowRules: &list [{resource: dns, threshold: 2}]\n"
			    "rules: [{resource: dns, threshold: 1}]\n" RESOURCES);
	assert_int_equal(bench->ruleset->rule_count, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(bench->ruleset->rules[i].threshold_micro == (3 - i) * WEIR_MICRO);
}

BENCH_CLAIM(list_under_a_wrong_name_is_refused)
{
	static const struct sample samples[] = {
		{RESOURCES "isolationRules: [{resource: dns, threshold: 1, controlBehavior: 0}]\n", 2, 48,
		 "'controlBehavior' is a field of Sentinel-Go's flow rules, hotspot rules, Sentinel Java's flow rules "
		 "and param-flow rules, not of Sentinel-Go's isolation rules",
		 "\"flowRules\": [...]"},
		{RESOURCES "isolationRules: [{resource: dns, threshold: 1, metricType: QPS}]\n", 2, 60,
		 "'QPS' is not a value of 'metricType'", "Concurrency"},
		{RESOURCES "flowRules: [{resource: dns, threshold: 1, durationInSec: 1}]\n", 2, 43,
		 "'durationInSec' is a field of Sentinel-Go's hotspot rules and Sentinel Java's param-flow rules",
		 "write 'statIntervalInMs', in milliseconds"},
		{RESOURCES "flowRules: {resource: dns}\n", 2, 12, "'flowRules' must be a list", "'- '"},
		{RESOURCES "flowRules: [7]\n", 2, 13, "must be a map of fields", NULL},
		{RESOURCES "flowRules: [{resource: dns, retryTimeoutMs: 1}]\n", 2, 29,
		 "'retryTimeoutMs' is a field of Sentinel-Go's circuit breakers, not of Sentinel-Go's flow rules",
		 "rules with it are \"circuitBreakers\": [...]"},
		{RESOURCES "circuitBreakers: 7\n", 2, 18, "'circuitBreakers' must be a list", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* Every field of every kind, where it does not belong: it is named. It is refused, unless the field that would have
 * been advised is there already (`count` beside `threshold`): then it has no effect, with a warning.
 */
BENCH_CLAIM(field_of_another_kind_is_refused_or_warned_of_by_name)
{
	char text[256], word[64];
	int err;

	for (enum weir_sentinel_kind_id id = 0; id < WEIR_SENTINEL_KIND_COUNT; id++) {
		for (size_t i = 0; i < weir_sentinel_kinds[id]->field_count; i++) {
			const char *name = weir_sentinel_kinds[id]->fields[i].name;
			bool is_of_flow = false;

			for (size_t own = 0; own < weir_sentinel_kinds[WEIR_SENTINEL_FLOW]->field_count; own++)
				is_of_flow |= !weir_sentinel_kinds[WEIR_SENTINEL_FLOW]->fields[own].instead &&
					      !strcmp(weir_sentinel_kinds[WEIR_SENTINEL_FLOW]->fields[own].name, name);
			if (is_of_flow || weir_sentinel_kinds[id]->fields[i].instead)
				continue;
			/* The first field decides the kind, so this one belongs to another. */
			snprintf(text, sizeof(text),
				 RESOURCES
				 "flowRules: [{statIntervalInMs: 1000, resource: dns, threshold: 1, %s: 1}]\n",
				 name);
			err = read_texts(bench, text, NULL, NULL);
			assert_true(err == -EINVAL || bench->diag.count == 1);
			snprintf(word, sizeof(word), err ? "'%s' is " : "'%s' has no effect", name);
			if (!strstr(bench->diag.entries[0].message, word) || !bench->diag.entries[0].hint)
				fail_msg("%s\n%s", text, bench->diag.entries[0].message);
		}
	}
}

RUN_CLAIMS(NULL, NULL)
