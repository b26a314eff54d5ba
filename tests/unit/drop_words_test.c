// SPDX-License-Identifier: GPL-2.0-only
/* What a dropped packet's event says about its flow, in words and in JSON, by the kind of the rule. */
#include <jansson.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "words/state_words.h"

#define MS 1000000ull

static void assert_figures(const struct weir_rule_info *rule, uint64_t used, uint64_t threshold, const char *words,
			   const char *json)
{
	char formatted[WEIR_WORDS_BYTES], *dumped;
	json_t *fields = json_object();

	assert_string_equal(weir_format_drop_figures(rule, used, threshold, formatted), words);
	weir_json_add_drop_figures(rule, used, threshold, fields);
	dumped = json_dumps(fields, JSON_COMPACT | JSON_REAL_PRECISION(15));
	assert_string_equal(dumped, json);
	free(dumped);
	json_decref(fields);
}

CLAIM(a_window_shows_what_it_counts)
{
	struct weir_rule_info rule = {};

	assert_figures(&rule, 20, 20, "used 20 of 20 packets", "{\"used\":20,\"threshold\":20,\"unit\":\"packets\"}");
	rule.identity.counts_bytes = 1;
	assert_figures(&rule, 1400, 1500, "used 1400 of 1500 bytes",
		       "{\"used\":1400,\"threshold\":1500,\"unit\":\"bytes\"}");
	rule.system = WEIR_SYSTEM_INBOUND_QPS;
	rule.identity.counts_bytes = 0;
	assert_figures(&rule, 9, 9, "used 9 of 9 packets", "{\"used\":9,\"threshold\":9,\"unit\":\"packets\"}");
}

/* As `weir flows` has it, JSON says what the bucket lacks; people ask what is left. */
CLAIM(tokens_show_what_is_left)
{
	struct weir_rule_info rule = {.identity.window = WEIR_WINDOW_TOKENS};

	assert_figures(&rule, 20, 20, "0 of 20 packets left", "{\"used\":20,\"threshold\":20,\"unit\":\"packets\"}");
	rule.identity.counts_bytes = 1;
	assert_figures(&rule, 9000, 10000, "1000 of 10000 bytes left",
		       "{\"used\":9000,\"threshold\":10000,\"unit\":\"bytes\"}");
	assert_figures(&rule, 10001, 10000, "0 of 10000 bytes left",
		       "{\"used\":10001,\"threshold\":10000,\"unit\":\"bytes\"}");
}

CLAIM(throttling_shows_the_wait)
{
	struct weir_rule_info rule = {.behavior = WEIR_BEHAVIOR_THROTTLING};

	assert_figures(&rule, 120 * MS + 499999, 100 * MS, "would wait 120.4 ms, may wait 100 ms",
		       "{\"used\":120499,\"threshold\":100000,\"unit\":\"us\"}");
	assert_figures(&rule, MS / 20, 0, "would wait 0.0 ms, may wait 0 ms",
		       "{\"used\":50,\"threshold\":0,\"unit\":\"us\"}");
}

CLAIM(concurrency_shows_what_is_open)
{
	struct weir_rule_info rule = {.identity.metric = WEIR_METRIC_CONCURRENCY};

	assert_figures(&rule, 100, 100, "100 of 100 connections open",
		       "{\"used\":100,\"threshold\":100,\"unit\":\"connections\"}");
	rule.system = WEIR_SYSTEM_CONCURRENCY;
	assert_figures(&rule, 7, 7, "7 of 7 connections open", "{\"used\":7,\"threshold\":7,\"unit\":\"connections\"}");
}

CLAIM(a_breaker_shows_what_it_opened_by)
{
	struct weir_rule_info rule = {.identity.metric = WEIR_METRIC_REQUESTS};

	assert_figures(&rule, 20ull << 32 | 12, WEIR_MICRO / 2, "12 of 20 requests were bad, threshold 0.5",
		       "{\"requests\":20,\"bad\":12,\"threshold\":0.5}");
	assert_figures(&rule, 0xffffffffull << 32 | 0xffffffff, 3 * WEIR_MICRO,
		       "4294967295 of 4294967295 requests were bad, threshold 3",
		       "{\"requests\":4294967295,\"bad\":4294967295,\"threshold\":3}");
}

CLAIM(a_system_rule_shows_its_signal)
{
	struct weir_rule_info rule = {.identity.metric = WEIR_METRIC_SIGNAL, .system = WEIR_SYSTEM_LOAD};

	assert_figures(&rule, 9500000, 8 * WEIR_MICRO, "Load 9.5, threshold 8",
		       "{\"used\":9.5,\"threshold\":8,\"unit\":null}");
	rule.system = WEIR_SYSTEM_CPU_USAGE;
	assert_figures(&rule, 930000, 800000, "CpuUsage 0.93, threshold 0.8",
		       "{\"used\":0.93,\"threshold\":0.8,\"unit\":null}");
	rule.system = WEIR_SYSTEM_AVG_RT;
	assert_figures(&rule, 62500000, 50 * WEIR_MICRO, "AvgRT 62.5 ms, threshold 50 ms",
		       "{\"used\":62.5,\"threshold\":50,\"unit\":\"ms\"}");
}

RUN_CLAIMS(NULL, NULL)
