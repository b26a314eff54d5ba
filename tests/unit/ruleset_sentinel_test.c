// SPDX-License-Identifier: GPL-2.0-only
/* Sentinel-Go's own files of flow and isolation rules, as they are: what is read in them, and what is reported. */
#include <string.h>

#include "ruleset_bench.h"
#include "thresholds/token_rates.h"

/* Read a list with two resources that its rules may use. */
static int read_sentinel(struct bench *bench, const char *list)
{
	return read_texts(bench, list, RESOURCES, NULL);
}

static void assert_reads_sentinel(struct bench *bench, const char *list)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err = read_sentinel(bench, list);

	words = messages(bench);
	if (err || bench->diag.count)
		fail_msg("%d: %s\n%s", err, list, words);
}

BENCH_CLAIM(list_of_sentinel_rules_gets_weirs_defaults)
{
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

BENCH_CLAIM(sentinel_fields_match_without_case_and_enums_are_numbers_or_names)
{
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

BENCH_CLAIM(sentinel_ignores_what_is_not_used)
{
	const struct weir_ruleset_rule *rule;

	assert_reads_sentinel(bench,
			      "[{\"resource\": \"dns\", \"threshold\": 5, \"gmtCreate\": {\"deep\": [1, null]},\n"
			      "  \"warmUpPeriodSec\": 10, \"warmUpColdFactor\": 1, \"refResource\": \"nowhere\",\n"
			      "  \"maxQueueingTimeMs\": -1, \"lowMemUsageThreshold\": \"x\", \"regex\": false,\n"
			      "  \"metricType\": 1, \"nobodys\": null},\n"
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
BENCH_CLAIM(isolation_rules_of_sentinel_limit_connections)
{
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

BENCH_CLAIM(a_sentinel_field_given_twice_has_the_last_value_and_null_has_none)
{
	assert_reads_sentinel(bench,
			      "[{\"resource\": \"web\", \"threshold\": 5, \"Threshold\": 6, \"threshold\": null,\n"
			      "  \"statIntervalInMs\": null, \"controlBehavior\": null, \"regex\": null,\n"
			      "  \"resource\": \"dns\"}]\n");
	assert_true(bench->ruleset->rules[0].threshold_micro == 6 * WEIR_MICRO);
	assert_int_equal(bench->ruleset->rules[0].resource, 0);
}

/* As in Sentinel-Go, where a value of its own threshold has as much more at first as any other. */
BENCH_CLAIM(each_value_of_a_hotspot_rule_has_a_burst_of_its_own)
{
	const struct weir_ruleset_rule *rule;

	assert_int_equal(
		read_texts(bench,
			   "[{\"resource\": \"per\", \"metricType\": 1, \"threshold\": 100, \"durationInSec\": 1,\n"
			   "  \"burstCount\": 10, \"specificItems\": {\"192.0.2.1\": 5, \"192.0.2.2\": 0}}]",
			   "resources: [{name: per, flow: source}]", NULL),
		0);
	rule = &bench->ruleset->rules[0];
	assert_int_equal(rule->window, WEIR_WINDOW_TOKENS);
	assert_true(weir_tokens_burst_micro(rule, rule->threshold_micro) == 110 * WEIR_MICRO);
	assert_int_equal(rule->override_count, 2);
	assert_true(rule->overrides[0].threshold_micro == 5 * WEIR_MICRO);
	assert_true(weir_tokens_burst_micro(rule, rule->overrides[0].threshold_micro) == 15 * WEIR_MICRO);
	/* Together they must fit. */
	assert_int_equal(
		read_texts(bench,
			   "[{\"resource\": \"per\", \"metricType\": 1, \"threshold\": 1, \"durationInSec\": 1,\n"
			   "  \"burstCount\": 10000000000000}]",
			   "resources: [{name: per, flow: source}]", NULL),
		-EINVAL);
	assert_non_null(strstr(bench->diag.entries[0].message, "more than 10000000000000 together"));
	assert_int_equal(
		read_texts(bench,
			   "[{\"resource\": \"per\", \"metricType\": 1, \"threshold\": 1, \"durationInSec\": 1,\n"
			   "  \"burstCount\": 9999999999999, \"specificItems\": {\"192.0.2.1\": 2}}]",
			   "resources: [{name: per, flow: source}]", NULL),
		-EINVAL);
	assert_non_null(strstr(bench->diag.entries[0].message, "'2' is out of range"));
}

BENCH_CLAIM(mistake_in_a_sentinel_rule_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{"[{\"resource\": \"dsn\", \"threshold\": 1}]", 1, 15, "there is no resource 'dsn'", "'dns'"},
		{"[{\"resource\": \"\", \"threshold\": 1}]", 1, 15, "there is no resource ''", NULL},
		{"[{\"threshold\": 1}]", 1, 2, "the rule has no resource", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": -1}]", 1, 35, "threshold '-1' is negative", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1e13e}]", 1, 35, "not a number", "JSON"},
		{"[{\"resource\": \"dns\", \"threshold\": 0.0000001}]", 1, 35, "more than six decimals", "round"},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"controlBehavior\": 2}]", 1, 57, "not a value of", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"regex\": true}]", 1, 47, "not by a pattern of names",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"metricType\": 2}]", 1, 52, "'2' is not a value of",
		 "Concurrency"},
		{"[{\"resource\": \"dns\", \"threshold\": 0, \"metricType\": 0}]", 1, 35, "needs a threshold above 0",
		 "weir's own format"},
		{"[{\"resource\": \"dns\", \"metricType\": 0}]", 1, 2, "needs a threshold above 0", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"metricType\": 0, \"controlBehavior\": 1}]", 1, 74,
		 "Concurrency has no Throttling", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"regex\": 1}]", 1, 47, "not a value of 'regex'", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"statIntervalInMs\": 5}]", 1, 58, "out of range", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"relationStrategy\": 1}]", 1, 58, "needs a refResource",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 1, \"relationStrategy\": 1, \"refResource\": \"\"}]", 1, 76,
		 "needs a refResource", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 3, \"tokenCalculateStrategy\": 1}]", 1, 2, "warmUpPeriodSec",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": -1, \"tokenCalculateStrategy\": 2, \"lowMemUsageThreshold\": "
		 "2, \"highMemUsageThreshold\": 1, \"memLowWaterMarkBytes\": 1, \"memHighWaterMarkBytes\": 2}]",
		 1, 35, "negative", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": \"5\"}]", 1, 35, "\"5\" is a string, not a number",
		 "leave out the quotes: 5"},
		{"[{\"resource\": \"dns\", \"threshold\": 5, \"statIntervalInMs\": \"1e3\"}]", 1, 58,
		 "\"1e3\" is a string", NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 5, \"controlBehavior\": \"0\"}]", 1, 57, "\"0\" is a string",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 5, \"metricType\": \"0\"}]", 1, 52, "\"0\" is a string",
		 NULL},
		{"[{\"resource\": \"dns\", \"threshold\": 5, \"controlBehavior\": 1, \"maxQueueingTimeMs\": \"9\"}]", 1,
		 81, "\"9\" is a string", NULL},
		{"[7]", 1, 2, "a Sentinel rule must be a map of fields", NULL},
		{"[null]", 1, 2, "must be a map of fields, not nothing", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const struct sample *sample = &samples[i];
		int err = read_sentinel(bench, sample->text);
		_cleanup_(weir_freep) char *words = messages(bench);
		const struct weir_diag_entry *entry = bench->diag.entries;

		if (err != -EINVAL || bench->diag.count != 1 || entry->line != sample->line ||
		    entry->column != sample->column || !strstr(entry->message, sample->message) ||
		    (sample->hint && (!entry->hint || !strstr(entry->hint, sample->hint))))
			fail_msg("expected %d:%d: %s, got %d:\n%s", sample->line, sample->column, sample->message, err,
				 words);
	}
}

BENCH_CLAIM(sentinel_rule_that_cannot_mean_what_it_says_is_warned_of)
{
	assert_int_equal(read_sentinel(bench, "[{\"resource\": \"dns\"},\n"
					      " {\"resource\": \"web\", \"threshold\": 1, \"mode\": \"observe\"}]"),
			 0);
	assert_messages(bench, "a.yaml:1:2: warning: the rule has no threshold: it admits nothing\n"
			       "    [{\"resource\": \"dns\"},\n"
			       "     ^\n"
			       "    as in Sentinel, a missing threshold is 0\n"
			       "a.yaml:2:38: warning: 'mode' has no effect: Sentinel's rules have no such field\n"
			       "    {\"resource\": \"web\", \"threshold\": 1, \"mode\": \"observe\"}]\n"
			       "                                        ^~~~~~\n"
			       "    to use it, write the rule under 'rules:' in weir's own format\n");
	assert_true(bench->ruleset->rules[0].threshold_micro == 0);
	assert_false(bench->ruleset->rules[1].observes);
}

/* Sentinel has as many buckets as a list says; how finely the window moves is all that they change. */
BENCH_CLAIM(breaker_of_more_buckets_than_weir_has_takes_the_nearest_that_divide)
{
	static const struct {
		unsigned int interval_ms, buckets, taken;
		const char *words;
	} cases[] = {
		{5000, 100, 10, "it takes 10, the nearest"},
		{7000, 14, 10, "it takes 10"},
		{121, 11, 1, "it takes 1, the nearest"},
		{16, 16, 8, "it takes 8"},
		{5000, 11, 1, "there is one bucket"},
		{5000, 7, 1, "there is one bucket"},
		{5000, 10, 10, NULL},
		{9, 4000000000, 1, "there is one bucket"},
	};
	char list[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(weir_freep) char *words = NULL;

		snprintf(list, sizeof(list),
			 "[{\"resource\": \"dns\", \"strategy\": 0, \"retryTimeoutMs\": 10000, \"minRequestAmount\": "
			 "10,\n"
			 "  \"statIntervalMs\": %u, \"statSlidingWindowBucketCount\": %u, \"maxAllowedRtMs\": 50,\n"
			 "  \"threshold\": 0.5}]\n",
			 cases[i].interval_ms, cases[i].buckets);
		assert_int_equal(read_texts(bench, list, "resources: [{name: dns, match: {protocol: tcp}}]\n", NULL),
				 0);
		words = messages(bench);
		assert_int_equal(bench->ruleset->rules[0].breaker.buckets, cases[i].taken);
		assert_int_equal(bench->diag.count, cases[i].words != NULL);
		if (cases[i].words && !strstr(words, cases[i].words))
			fail_msg("no '%s' in: %s", cases[i].words, words);
	}
}

/* Once for each name: a list may have a remark in each of its rules. */
BENCH_CLAIM(name_that_no_sentinel_knows_is_warned_of)
{
	static const struct sample samples[] = {
		{"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5, \"controlBehaviour\": 2}]", 1, 46,
		 "'controlBehaviour' has no effect", "did you mean 'controlBehavior'?"},
		{"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5, \"_remark\": 1},\n"
		 " {\"resource\": \"dns\", \"grade\": 1, \"count\": 6, \"_remark\": 2}]",
		 1, 46, "'_remark' has no effect", "docs/sentinel.md"},
		{"[{\"resource\": \"dns\", \"threshold\": 5, \"name\": \"mine\"}]", 1, 38, "'name' has no effect",
		 "'rules:' in weir's own format"},
		{"[{\"qps\": 5, \"qqs\": 5}]", 1, 13, "'qqs' has no effect", "did you mean 'qps'?"},
		{"[{\"resource\": \"web\", \"paramIdx\": 0, \"count\": 5, \"paramFlowItemList\": [{\"object\": "
		 "\"192.0.2.1\",\n\"count\": 3, \"classtype\": \"String\"}]}]",
		 2, 13, "'classtype' has no effect", "did you mean 'classType'?"},
		{"[{\"resource\": \"web\", \"durationInSec\": 1, \"threshold\": 5, \"metricType\": 1,\n"
		 "\"specificItems\": [{\"valStr\": \"192.0.2.1\", \"threshold\": 3, \"valType\": 1}]}]",
		 2, 59, "'valType' has no effect", "docs/sentinel.md"},
		{"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5, \"clusterMode\": true,\n"
		 "\"clusterConfig\": {\"flowId\": 1, \"flowName\": 1}}]",
		 2, 32, "'flowName' has no effect", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		int err = read_texts(bench, samples[i].text,
				     "resources: [{name: dns}, {name: web, flow: source}]\n"
				     "settings: {cluster: {redis: \"redis://192.0.2.1\", name: x}}\n"
				     "rules: [{resource: dns, threshold: 9, name: shared, clusterMode: true}]\n",
				     NULL);
		const struct weir_diag_entry *entry = &bench->diag.entries[0];

		if (err || bench->diag.count != 1 || entry->line != samples[i].line ||
		    entry->column != samples[i].column || !strstr(entry->message, samples[i].message) ||
		    (samples[i].hint && !strstr(entry->hint, samples[i].hint)))
			fail_msg("%d: %s\n%s", err, samples[i].text, messages(bench));
	}
}

BENCH_CLAIM(document_around_a_list_is_refused_with_the_part_to_give)
{
	static const struct sample samples[] = {
		{"apiVersion: datasource.sentinel.io/v1alpha1\nkind: FlowRules\nmetadata: {name: flow}\nspec:\n  "
		 "rules:\n"
		 "    - {resource: a, threshold: 500}\n",
		 1, 1, "this is a Kubernetes object (FlowRules), not a rule file", "the list under 'spec.rules'"},
		{"{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"data\": {\"flow.json\": \"[]\"}}\n", 1, 1,
		 "(ConfigMap), not a rule file", "its list of rules"},
		{"{\"appName\": \"shop\", \"rules\": {\"systemRules\": [], \"authorityRule\": [], \"flowRules\":\n"
		 "[{\"resource\": \"a\", \"grade\": 1.0, \"count\": 5.0}]}, \"coldFactor\": 3}\n",
		 1, 30, "this is the output of Spring's Sentinel actuator", "write the lists under 'rules'"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(empty_sentinel_list_says_that_it_is_empty)
{
	assert_int_equal(read_texts(bench, "[]\n", NULL, NULL), 0);
	assert_messages(bench, "warning: there are no rules: nothing will be limited\n");
	assert_int_equal(read_sentinel(bench, "[]\n"), 0);
	assert_messages(bench, "warning: there are no rules: nothing will be limited\n");
}

RUN_CLAIMS(NULL, NULL)
