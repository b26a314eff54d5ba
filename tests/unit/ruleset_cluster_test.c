// SPDX-License-Identifier: GPL-2.0-only
/* Rules that hosts share: how they are read, from weir's files and Sentinel Java's, and what is refused. */
#include <arpa/inet.h>
#include <string.h>

#include "rules/emit.h"
#include "rules/cluster.h"
#include "ruleset_bench.h"

#define STORE "settings: {cluster: {redis: 'redis://192.0.2.1', name: edge}}\n"
#define SHARED(fields) STORE RESOURCES "rules:\n- {resource: dns, clusterMode: true, " fields "}\n"

BENCH_CLAIM(a_shared_rule_has_sentinels_defaults)
{
	assert_reads(bench, SHARED("threshold: 5"));
	assert_int_equal(bench->ruleset->rules[0].cluster, WEIR_CLUSTER_AVG_LOCAL);
	assert_true(bench->ruleset->rules[0].falls_back);
	forget(bench);
	assert_reads(bench, SHARED("threshold: 5, clusterConfig: {thresholdType: 1, fallbackToLocalWhenFail: false}"));
	assert_int_equal(bench->ruleset->rules[0].cluster, WEIR_CLUSTER_GLOBAL);
	assert_false(bench->ruleset->rules[0].falls_back);
	forget(bench);
	assert_reads(bench, RESOURCES "rules: [{resource: dns, threshold: 5, clusterMode: false}]\n");
	assert_int_equal(bench->ruleset->rules[0].cluster, WEIR_CLUSTER_OFF);
}

BENCH_CLAIM(the_flows_of_a_key_are_shared)
{
	assert_reads(bench, STORE "resources: [{name: dns, flow: source}]\n"
				  "rules: [{resource: dns, threshold: 5, clusterMode: true}]\n");
	assert_int_equal(bench->ruleset->rules[0].cluster, WEIR_CLUSTER_AVG_LOCAL);
}

BENCH_CLAIM(what_a_file_says_of_a_cluster_survives_being_written)
{
	_cleanup_(weir_freep) char *text = NULL;

	assert_reads(
		bench,
		"settings: {cluster: {redis: 'rediss://store.example:6380/3', name: edge, host: a-1, passwordFile: "
		"/etc/weir/redis, caFile: /etc/weir/ca.pem, silentFor: 90m, afterSilence: stop}}\n" RESOURCES
		"rules: [{resource: dns, threshold: 5, clusterMode: true, clusterConfig: {thresholdType: GLOBAL, "
		"fallbackToLocalWhenFail: false}}]\n");
	text = weir_ruleset_text(bench->ruleset, true);
	assert_non_null(text);
	forget(bench);
	assert_reads(bench, text);
	assert_string_equal(bench->ruleset->settings.cluster[WEIR_CLUSTER_REDIS], "rediss://store.example:6380/3");
	assert_string_equal(bench->ruleset->settings.cluster[WEIR_CLUSTER_NAME], "edge");
	assert_string_equal(bench->ruleset->settings.cluster[WEIR_CLUSTER_HOST], "a-1");
	assert_string_equal(bench->ruleset->settings.cluster[WEIR_CLUSTER_PASSWORD_FILE], "/etc/weir/redis");
	assert_string_equal(bench->ruleset->settings.cluster[WEIR_CLUSTER_CA_FILE], "/etc/weir/ca.pem");
	assert_string_equal(bench->ruleset->settings.cluster[WEIR_CLUSTER_SILENT_FOR], "90m");
	assert_string_equal(bench->ruleset->settings.cluster[WEIR_CLUSTER_AFTER_SILENCE], "stop");
	assert_int_equal(bench->ruleset->rules[0].cluster, WEIR_CLUSTER_GLOBAL);
	assert_false(bench->ruleset->rules[0].falls_back);
}

BENCH_CLAIM(a_silence_is_an_hour_unless_the_file_says)
{
	assert_true(weir_cluster_silent_ns(NULL) == 3600 * WEIR_NSEC_PER_SEC);
	assert_true(weir_cluster_silent_ns("1m") == 60 * WEIR_NSEC_PER_SEC);
	assert_true(weir_cluster_silent_ns("never") == UINT64_MAX);
}

BENCH_CLAIM(files_agree_on_the_cluster_or_are_refused)
{
	assert_int_equal(read_texts(bench, "settings: {cluster: {name: edge}}\n",
				    "settings: {cluster: {redis: 'redis://192.0.2.1', name: edge}}\n",
				    RESOURCES "rules: [{resource: dns, threshold: 5, clusterMode: true}]\n"),
			 0);
	forget(bench);
	assert_int_not_equal(read_texts(bench, SHARED("threshold: 5"), "settings: {cluster: {name: core}}\n", NULL), 0);
	assert_messages(bench, "b.yaml:1:28: cluster: 'name' is 'core' here, but 'edge' in another file\n"
			       "    settings: {cluster: {name: core}}\n"
			       "                               ^~~~\n"
			       "    the files are merged: set it in one of them, or to the same value in both\n");
}

BENCH_CLAIM(rules_of_sentinel_java_are_shared)
{
	assert_int_equal(read_texts(bench, STORE RESOURCES,
				    "[{\"resource\": \"dns\", \"grade\": 1, \"count\": 20, \"clusterMode\": true, "
				    "\"clusterConfig\": {\"flowId\": 7, \"thresholdType\": 1, "
				    "\"fallbackToLocalWhenFail\": false, \"sampleCount\": 10, \"windowIntervalMs\": "
				    "1000}}]\n",
				    NULL),
			 0);
	assert_int_equal(bench->diag.count, 0);
	assert_int_equal(bench->ruleset->rules[0].cluster, WEIR_CLUSTER_GLOBAL);
	assert_false(bench->ruleset->rules[0].falls_back);
}

BENCH_CLAIM(what_hosts_cannot_share_is_refused_with_a_reason)
{
	static const struct sample samples[] = {
		{SHARED("threshold: 5, metricType: Concurrency"), 4, 32, "open connections cannot be given back",
		 "Direct, Reject"},
		{SHARED("threshold: 5" WARM_UP), 4, 32, "WarmUp depends on", NULL},
		{SHARED(MEMORY), 4, 32, "this host's memory", NULL},
		{SHARED("threshold: 5" THROTTLING), 4, 32, "Throttling schedules", NULL},
		{SHARED("threshold: 5" ASSOCIATED), 4, 32, "AssociatedResource depends on", NULL},
		{SHARED("threshold: 5, window: tokens"), 4, 32, "token bucket", NULL},
		{SHARED("threshold: 5, blockDurationInMs: 5"), 4, 32, "could be penalised only", NULL},
		{STORE
		 "resources: [{name: dns, flow: source}]\nrules:\n- {resource: dns, threshold: 5, clusterMode: true, "
		 "overrides: [{source: 192.0.2.1, threshold: 9}]}\n",
		 4, 46, "would apply to this host alone", NULL},
		{STORE
		 "resources: [{name: dns, prioritized: true}]\nrules:\n- {resource: dns, threshold: 5, clusterMode: "
		 "true}\n",
		 4, 46, "occupy", NULL},
		{RESOURCES "rules:\n- {resource: dns, threshold: 5, clusterMode: true}\n", 3, 3, "no store is named",
		 "cluster: {redis"},
		{"settings: {cluster: {name: edge}}\n" RESOURCES
		 "rules:\n- {resource: dns, threshold: 5, clusterMode: true}\n",
		 1, 21, "needs 'redis' and 'name'", NULL},
		{"settings: {cluster: {redis: 'rediss://store.example', name: edge, caFile: ca.pem}}\n" RESOURCES
		 "rules:\n- {resource: dns, threshold: 5, clusterMode: true}\n",
		 1, 75, "caFile: 'ca.pem' is not a file path", "an absolute path"},
		{"settings: {cluster: {redis: 'redis://s', name: edge, silentFor: 59s}}\n" RESOURCES
		 "rules:\n- {resource: dns, threshold: 5, clusterMode: true}\n",
		 1, 65, "'59s' is less than a minute", "'1m' or more"},
		{"settings: {cluster: {redis: 'redis://s', name: edge, silentFor: soon}}\n" RESOURCES
		 "rules:\n- {resource: dns, threshold: 5, clusterMode: true}\n",
		 1, 65, "silentFor: ", "or 'never'"},
		{"settings: {cluster: {redis: 'redis://s', name: edge, afterSilence: go}}\n" RESOURCES
		 "rules:\n- {resource: dns, threshold: 5, clusterMode: true}\n",
		 1, 68, "'go' is not a value of 'afterSilence'", "keep or stop"},
		{SHARED("threshold: 5, clusterConfig: {thresholdType: 2}"), 4, 83, "not a value of 'thresholdType'",
		 "GLOBAL"},
		{SHARED("threshold: 5, clusterConfig: {flowId: 2}"), 4, 68, "clusterConfig has no field 'flowId'",
		 NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(fields_without_effect_are_warned_about)
{
	static const struct sample samples[] = {
		{STORE RESOURCES "rules: [{resource: dns, threshold: 5}]\n", 1, 21, "no rule is shared", NULL},
		{RESOURCES "rules: [{resource: dns, threshold: 5, clusterConfig: {thresholdType: 1}}]\n", 2, 54,
		 "'clusterConfig' has no effect", NULL},
		{"settings: {cluster: {redis: 'redis://192.0.2.1', name: edge, caFile: /ca.pem}}\n" RESOURCES
		 "rules: [{resource: dns, threshold: 5, clusterMode: true}]\n",
		 1, 21, "'caFile' has no effect", "rediss://"},
		{"settings: {cluster: {redis: 'redis://s', name: edge, silentFor: never, afterSilence: "
		 "stop}}\n" RESOURCES "rules: [{resource: dns, threshold: 5, clusterMode: true}]\n",
		 1, 21, "'afterSilence: stop' has no effect", "silentFor"},
		{SHARED("threshold: 5.5"), 4, 32, "the fraction has no effect", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, true);
}

CLAIM(addresses_of_stores_are_read)
{
	static const struct {
		const char *url;
		struct weir_store_address expected;
	} samples[] = {
		{"redis://192.0.2.1", {.family = 4, .address = {192, 0, 2, 1}, .port = 6379}},
		{"redis://192.0.2.1/", {.family = 4, .address = {192, 0, 2, 1}, .port = 6379}},
		{"redis://me@192.0.2.1:7000/5",
		 {.family = 4, .address = {192, 0, 2, 1}, .port = 7000, .database = 5, .user = "me"}},
		{"redis://localhost", {.family = 4, .address = {127, 0, 0, 1}, .port = 6379}},
		{"redis://[::1]:7000", {.family = 6, .address = {[15] = 1}, .port = 7000}},
		{"redis://[::1]/2", {.family = 6, .address = {[15] = 1}, .port = 6379, .database = 2}},
		{"redis://store.example", {.name = "store.example", .port = 6379}},
		{"redis://me@store:7000/5", {.name = "store", .port = 7000, .database = 5, .user = "me"}},
		{"redis://7.example", {.name = "7.example", .port = 6379}},
		{"rediss://192.0.2.1", {.family = 4, .address = {192, 0, 2, 1}, .port = 6379, .is_tls = true}},
		{"rediss://me@store.example:6380/5",
		 {.name = "store.example", .port = 6380, .database = 5, .user = "me", .is_tls = true}},
		{"unix:///run/redis.sock", {.path = "/run/redis.sock"}},
		{"unix://me@/run/redis.sock?db=7", {.path = "/run/redis.sock", .database = 7, .user = "me"}},
	};
	struct weir_store_address address;
	struct weir_refusal refusal;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		assert_int_equal(weir_parse_store(samples[i].url, &address, &refusal), 0);
		assert_memory_equal(&address, &samples[i].expected, sizeof(address));
	}
}

CLAIM(what_is_no_address_of_a_store_is_refused)
{
	static const struct {
		const char *url, *message;
	} samples[] = {
		{"", "is not the address of a store"},
		{"http://192.0.2.1", "is not the address of a store"},
		{"redis://", "neither an address nor a name"},
		{"redis://192.0.2.300", "neither an address nor a name"},
		{"redis://10.1", "neither an address nor a name"},
		{"redis://7", "neither an address nor a name"},
		{"redis://-store.example", "neither an address nor a name"},
		{"redis://store example", "neither an address nor a name"},
		{"redis://[store.example]", "is not the address of a store"},
		{"redis://::1", "is not"},
		{"redis://[::1", "is not the address of a store"},
		{"redis://[::1]x", "is not the address of a store"},
		{"redis://192.0.2.1:0", "range"},
		{"redis://192.0.2.1:65536", "range"},
		{"redis://192.0.2.1:", "not a"},
		{"redis://192.0.2.1/16384", "range"},
		{"redis://192.0.2.1/x", "not a whole number"},
		{"redis://me:secret@192.0.2.1", "a password in a rule file"},
		{"rediss://", "neither an address nor a name"},
		{"rediss://me:secret@store", "a password in a rule file"},
		{"redisss://store", "is not the address of a store"},
		{"unix://run/redis.sock", "not a socket path"},
		{"unix:///run/redis.sock?x=7", "is not the address of a store"},
	};
	struct weir_store_address address;
	struct weir_refusal refusal;

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		assert_int_not_equal(weir_parse_store(samples[i].url, &address, &refusal), 0);
		if (!strstr(refusal.message, samples[i].message))
			fail_msg("'%s': %s", samples[i].url, refusal.message);
	}
}

RUN_CLAIMS(NULL, NULL)
