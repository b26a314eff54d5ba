// SPDX-License-Identifier: GPL-2.0-only
/* How a limit is said: how much, of whom, and what becomes of what is too much. */
#include <string.h>

#include "../lib/claims.h"
#include "base/util.h"
#include "rules/quantity.h"
#include "words/state_words.h"
#include "words/words.h"

#define SECOND WEIR_NSEC_PER_SEC

CLAIM(a_rate_is_said_as_it_is_written)
{
	static const struct {
		uint64_t micro, interval_ns;
		bool counts_bytes;
		const char *words;
	} cases[] = {
		{20 * WEIR_MICRO, SECOND, false, "20/s"},
		{500000, SECOND, false, "0.5/s"},
		{20000 * WEIR_MICRO, SECOND, false, "20000/s"},
		{6 * WEIR_MICRO, 60 * SECOND, false, "6/min"},
		{3 * WEIR_MICRO, SECOND / 10, false, "3/100ms"},
		{3 * WEIR_MICRO, 10 * SECOND, false, "3/10s"},
		{5 * WEIR_MICRO, 3600 * SECOND, false, "5/h"},
		{5 * WEIR_MICRO, 86400 * SECOND, false, "5/d"},
		{5 * WEIR_MICRO, 90 * SECOND, false, "5/1m30s"},
		{12500000 * WEIR_MICRO, SECOND, true, "12.5MB/s"},
		{999 * WEIR_MICRO, SECOND, true, "999B/s"},
		{1514 * WEIR_MICRO, SECOND, true, "1.514kB/s"},
		{1234567 * WEIR_MICRO + 1, SECOND, true, "1234567.000001B/s"},
		{0, SECOND, true, "0B/s"},
		{10000000000000 * WEIR_MICRO, SECOND, true, "10TB/s"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char words[WEIR_WORDS_BYTES];
		struct weir_refusal refusal;
		struct weir_rate rate = {};

		weir_format_rate(cases[i].micro, cases[i].interval_ns, cases[i].counts_bytes, words);
		assert_string_equal(words, cases[i].words);
		assert_int_equal(weir_parse_rate(words, &rate, &refusal), 0);
		assert_true(rate.micro == cases[i].micro && rate.interval_ns == cases[i].interval_ns);
		assert_int_equal(rate.counts_bytes, cases[i].counts_bytes);
	}
}

CLAIM(each_limit_is_shown_with_what_it_is_per)
{
	static const struct {
		struct weir_flow flow;
		uint8_t families;
		const char *words;
	} cases[] = {
		{{}, 0, "in all"},
		{{.fields = WEIR_KEY_SOURCE, .source_bits = {32, 128}}, 0, "per source"},
		/* One length where there is one family, and both where one would not say all. */
		{{.fields = WEIR_KEY_SOURCE, .source_bits = {24, 128}}, 1, "per source/24"},
		{{.fields = WEIR_KEY_SOURCE, .source_bits = {24, 56}}, 1, "per source/24"},
		{{.fields = WEIR_KEY_SOURCE, .source_bits = {24, 56}}, 2, "per source/56"},
		{{.fields = WEIR_KEY_SOURCE, .source_bits = {24, 128}}, 2, "per source"},
		{{.fields = WEIR_KEY_SOURCE, .source_bits = {24, 128}}, 0, "per source/24/128"},
		{{.fields = WEIR_KEY_SOURCE, .source_bits = {32, 64}}, 3, "per source/32/64"},
		{{.fields = WEIR_KEY_DESTINATION | WEIR_KEY_DESTINATION_PORT, .destination_bits = {16, 48}},
		 0,
		 "per destination/16/48 and destinationPort"},
		{{.fields = WEIR_KEY_SOURCE | WEIR_KEY_PROTOCOL | WEIR_KEY_VLAN, .source_bits = {32, 128}},
		 0,
		 "per source, protocol and vlan"},
		/* Maps are not to be trusted: of fields that there are not, none is said. */
		{{.fields = 1u << 31}, 0, "in all"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char words[WEIR_WORDS_BYTES];

		assert_string_equal(weir_format_whose(&cases[i].flow, cases[i].families, words), cases[i].words);
	}
}

static void assert_said(const struct weir_rule_info *rule, const char *expected)
{
	char words[WEIR_WORDS_BYTES];

	assert_string_equal(weir_format_limit(rule, NULL, words), expected);
}

CLAIM(a_limit_is_shown_with_its_amount_and_key)
{
	struct weir_rule_info rule = {
		.identity = {.interval_ns = SECOND, .key_fields = WEIR_KEY_SOURCE, .source_bits = {24, 128}},
		.threshold_micro = 20 * WEIR_MICRO,
		.families = 1,
	};

	assert_said(&rule, "20/s per source/24");
	rule.penalty_ms = rule.penalty_ms_max = 60000;
	assert_said(&rule, "20/s per source/24, then blocked for 1 min");
	rule.penalty_ms = rule.penalty_ms_max = 0;
	rule.identity.key_fields = 0;
	rule.cluster = WEIR_CLUSTER_GLOBAL;
	assert_said(&rule, "20/s in all, for all hosts");
	rule.cluster = WEIR_CLUSTER_OFF;
	rule.strategy = WEIR_STRATEGY_MEMORY_ADAPTIVE;
	rule.memory = (struct weir_memory_adaptive){.low_units = 1000000, .high_units = 1000};
	rule.identity.counts_bytes = true;
	assert_said(&rule, "1MB to 1kB/s in all");
}

/* A rule of each source may go by the traffic of another resource as a whole. */
CLAIM(an_associated_rule_says_whose_traffic_it_reads)
{
	struct weir_rule_info rule = {
		.identity = {.interval_ns = SECOND, .key_fields = WEIR_KEY_SOURCE, .source_bits = {32, 128}},
		.threshold_micro = 20 * WEIR_MICRO,
		.relation = WEIR_RELATION_ASSOCIATED,
		.ref_resource_name = "orders",
	};

	assert_said(&rule, "20/s per source, of orders");
	rule.counts_whole = 1;
	assert_said(&rule, "20/s in all, of orders");
}

CLAIM(connections_and_breakers_show_what_they_are_per)
{
	struct weir_rule_info rule = {
		.identity = {.key_fields = WEIR_KEY_SOURCE, .source_bits = {32, 128}},
		.threshold_micro = WEIR_MICRO,
	};

	rule.identity.metric = WEIR_METRIC_CONCURRENCY;
	assert_said(&rule, "1 connection per source");
	rule.threshold_micro = 100 * WEIR_MICRO;
	rule.identity.key_fields = 0;
	assert_said(&rule, "100 connections in all");
	rule.identity.metric = WEIR_METRIC_REQUESTS;
	rule.identity.interval_ns = SECOND;
	rule.threshold_micro = WEIR_MICRO / 2;
	rule.breaker = (struct weir_breaker_terms){
		.strategy = WEIR_BREAKER_ERROR_RATIO, .retry_ns = SECOND, .min_requests = 5};
	assert_said(&rule, "ErrorRatio 0.5 of 5 in 1 s, retry after 1 s, in all");
}

CLAIM(a_system_rule_is_of_the_host)
{
	struct weir_rule_info rule = {
		.identity.metric = WEIR_METRIC_SIGNAL,
		.system = WEIR_SYSTEM_LOAD,
		.threshold_micro = 8 * WEIR_MICRO,
	};

	assert_said(&rule, "Load above 8");
}

/* Documents, metrics and rule files keep `halfOpen`. */
CLAIM(people_read_half_open)
{
	const struct weir_breaker_view view = {.kind = WEIR_BREAKER_HALF_OPEN};
	struct weir_breaker_sum sum = {.lone = view, .count = {[WEIR_BREAKER_HALF_OPEN] = 2}};
	json_t *document = weir_figures_describe(weir_describe_breaker_sum, NULL, &sum);
	char words[WEIR_WORDS_BYTES];

	assert_string_equal(weir_format_breaker_sum(&sum, words), "half-open");
	sum.has_flows = true;
	assert_string_equal(weir_format_breaker_sum(&sum, words), "0 open, 2 half-open of 2");
	assert_string_equal(json_string_value(json_object_get(document, "state")), "halfOpen");
	json_decref(document);
}

/* All fields of a key, with a name and a penalty: nothing is cut off. */
CLAIM(the_longest_limit_has_room)
{
	struct weir_rule_info rule = {
		.identity = {.interval_ns = 86399999 * 1000000ull,
			     .key_fields = (1u << WEIR_KEY_FIELD_COUNT) - 1,
			     .source_bits = {24, 120},
			     .destination_bits = {24, 120}},
		.threshold_micro = WEIR_THRESHOLD_UNITS_MAX * WEIR_MICRO - 1,
		.relation = WEIR_RELATION_ASSOCIATED,
		.strategy = WEIR_STRATEGY_WARM_UP,
		.aggregates = true,
		.penalty_ms = UINT32_MAX - 1,
		.penalty_ms_max = UINT32_MAX,
	};
	char words[WEIR_WORDS_BYTES];

	memset(rule.ref_resource_name, 'x', sizeof(rule.ref_resource_name) - 1);
	weir_format_limit(&rule, NULL, words);
	assert_string_equal(words + strlen(words) - strlen(", aggregate when full"), ", aggregate when full");
	assert_non_null(strstr(words, "interface, dscp and ttl, warming up"));
}

RUN_CLAIMS(NULL, NULL)
