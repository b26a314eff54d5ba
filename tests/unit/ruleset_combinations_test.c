// SPDX-License-Identifier: GPL-2.0-only
/* What a rule may be, and what goes with what: connections, and Sentinel's strategies, behaviors and relations. */
#include "ruleset_bench.h"

/* ---- connections ---- */

#define CONNECTIONS(fields)                                                                                            \
	RESOURCES "rules:\n- resource: dns\n  metricType: Concurrency\n  threshold: 5\n  " fields "\n"

BENCH_CLAIM(a_concurrency_rule_has_a_threshold_a_mode_and_overrides)
{
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

BENCH_CLAIM(fields_that_connections_lack_are_refused)
{
	static const struct sample samples[] = {
		{RULE("metricType: QPS"), 5, 15, "'QPS' is not a value of 'metricType'",
		 "leave it out to limit a rate"},
		{RULE("metricType: concurrency"), 5, 15, "not a value of", "did you mean 'Concurrency'?"},
		{RULE("metricType: 1"), 5, 15, "'1' is not a value of 'metricType'", "write Concurrency"},
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

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* What is meant is to be seen only once the mistake is mended. */
BENCH_CLAIM(a_rule_with_a_mistake_is_not_warned_of)
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

BENCH_CLAIM(fields_that_connections_do_not_use_are_warned_about)
{
#define OF_MATCH(match)                                                                                                \
	"resources: [{name: r, match: {" match "}}]\nrules: [{resource: r, threshold: 5, metricType: Concurrency}]\n"
	static const struct sample samples[] = {
		{CONNECTIONS("statIntervalInMs: 1000"), 6, 21,
		 "'statIntervalInMs' has no effect: it is for rules without metricType Concurrency", "leave it out"},
		{CONNECTIONS("sampleCount: 10"), 6, 16, "'sampleCount' has no effect", NULL},
		{CONNECTIONS("window: leap"), 6, 11, "'window' has no effect", NULL},
		{CONNECTIONS("unit: packets"), 6, 9, "'unit' has no effect", NULL},
		{CONNECTIONS("maxQueueingTimeMs: 1"), 6, 22, "'maxQueueingTimeMs' has no effect", NULL},
		{CONNECTIONS("blockDurationInMs: 1"), 6, 22, "'blockDurationInMs' has no effect", NULL},
		{CONNECTIONS("warmUpPeriodSec: 1"), 6, 20, "'warmUpPeriodSec' has no effect", NULL},
		{CONNECTIONS("refResource: web"), 6, 16, "'refResource' has no effect", NULL},
		{RESOURCES "rules: [{resource: dns, metricType: 0, threshold: 0.5}]\n", 2, 51,
		 "a threshold below 1 admits no new connection", NULL},
		{RESOURCES "rules: [{name: r, resource: dns, metricType: 0, threshold: 131073}]\n", 2, 16,
		 "the threshold may never be reached: all rules together have room for 131072",
		 "raise settings.connections"},
		{OF_MATCH("fragment: later"), 2, 49, "the rule has no effect", "another resource"},
		{OF_MATCH("fragment: [none, first]"), 2, 49, "only some packets of a connection",
		 "addresses and ports"},
		{OF_MATCH("tcpFlags: syn"), 2, 49, "its match has 'tcpFlags'", NULL},
		{OF_MATCH("length: 64-128"), 2, 49, "its match has 'length'", NULL},
		{"settings: {connections: 4096}\n" RULE(""), 1, 25,
		 "'connections' has no effect: no rule has metricType Concurrency, and there is no circuit breaker",
		 "leave it out"},
		{"settings: {closedTimeoutInMs: 1000}\n" RULE(""), 1, 31, "'closedTimeoutInMs' has no effect", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, true);
	assert_reads(bench, OF_MATCH("fragment: none, protocol: tcp, destinationPort: 80"));
	assert_reads(bench, RESOURCES "rules: [{resource: dns, metricType: 0, threshold: 131072}]\n");
}

BENCH_CLAIM(settings_of_connections_merge_and_have_defaults)
{
	static const uint64_t defaults_ms[] = {10000, 600000, 120000, 10000},
			      given_ms[] = {1000, 86400000, 30000, 2000};
	static const char rule[] = RESOURCES "rules: [{resource: dns, threshold: 1, metricType: Concurrency}]\n";
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

BENCH_CLAIM(every_combination_is_read_or_refused_with_its_message)
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

BENCH_CLAIM(cold_factor_of_zero_or_none_is_three)
{
	assert_reads(bench, ONE_RULE("threshold: 3" WARM_UP ", warmUpColdFactor: 0"));
	assert_int_equal(bench->ruleset->rules[0].warm_up.cold_factor, 3);
	assert_reads(bench, ONE_RULE("threshold: 2.5" WARM_UP ", warmUpColdFactor: 2"));
	assert_int_equal(bench->ruleset->rules[0].warm_up.cold_factor, 2);
	assert_reads(bench, ONE_RULE("threshold: 100, tokenCalculateStrategy: 1, warmUpPeriodSec: 31536000"));
	assert_int_equal(bench->ruleset->rules[0].warm_up.period_s, 31536000);
}

BENCH_CLAIM(reference_has_no_key_or_the_same)
{
	assert_reads(bench, "resources: [{name: a, flow: source/24/56}, {name: b, flow: [source/24/56]}, {name: c}]\n"
			    "rules:\n- {resource: a, threshold: 1, relationStrategy: 1, refResource: b}\n"
			    "- {resource: a, threshold: 1, relationStrategy: 1, refResource: c}\n");
	assert_int_equal(bench->ruleset->rules[0].ref_resource, 1);
	assert_int_equal(bench->ruleset->rules[1].ref_resource, 2);
}

BENCH_CLAIM(what_sentinel_refuses_is_refused)
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
		{RULE("relationStrategy: 2"), 5, 21, "'2' is not a value of 'relationStrategy'", "AssociatedResource"},
		{RULE("controlBehavior: 2"), 5, 20, "'2' is not a value of 'controlBehavior'", "Reject or Throttling"},
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

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(high_mark_above_the_memory_there_is_is_refused)
{
	assert_reads(bench, "resources: [{name: dns}]\nrules:\n- resource: dns\n  tokenCalculateStrategy: 2\n"
			    "  lowMemUsageThreshold: 2\n  highMemUsageThreshold: 1\n  memLowWaterMarkBytes: 1\n"
			    "  memHighWaterMarkBytes: 4096 # a page\n");
	assert_int_equal(weir_ruleset_check_memory(bench->ruleset, 4096, &bench->diag), 0);
	assert_int_equal(weir_ruleset_check_memory(bench->ruleset, 0, &bench->diag), 0);
	assert_int_equal(bench->diag.count, 0);
	assert_int_equal(weir_ruleset_check_memory(bench->ruleset, 4095, &bench->diag), -EINVAL);
	assert_messages(bench, "a.yaml:8:26: memHighWaterMarkBytes: 4096 is above this machine's memory\n"
			       "    memHighWaterMarkBytes: 4096 # a page\n"
			       "                           ^~~~\n"
			       "    write at most 4095\n");
}

RUN_CLAIMS(NULL, NULL)
