// SPDX-License-Identifier: GPL-2.0-only
/* Rule files with resources that are prioritized: which rules can be occupied, what is refused, and what is warned of.
 */
#include <stdio.h>

#include "kind/kind.h"
#include "ruleset_bench.h"

#define VOICE                                                                                                          \
	"resources: [{name: voice, match: {protocol: udp, destinationPort: 5000-5999}, prioritized: true}, "           \
	"{name: web, match: {destinationPort: 5999}}, {name: dns, match: {destinationPort: [53, 6000]}}, "             \
	"{name: ssh, match: {protocol: tcp}}]\n"

BENCH_CLAIM(a_rule_that_may_meet_prioritized_packets_occupies_if_it_can)
{
	static const struct {
		const char *fields;
		bool occupies;
	} cases[] = {
		{"resource: voice, threshold: 5", true},
		{"resource: voice, threshold: 5, window: leap, controlBehavior: Reject, mode: observe", true},
		{"resource: voice, threshold: 5, sampleCount: 1, statIntervalInMs: 10", true},
		{"resource: web, threshold: 5", true},	/* a packet may be of both */
		{"resource: dns, threshold: 5", false}, /* and of these two none is */
		{"resource: ssh, threshold: 5", false},
		{"resource: voice, threshold: 5, window: strict", false},
		{"resource: voice, threshold: 5, window: smooth", false},
		{"resource: voice, threshold: 5000, unit: bytes", false},
		{"resource: voice, threshold: 5" WARM_UP, false},
		{"resource: voice, " MEMORY, false},
		{"resource: voice, threshold: 5" THROTTLING, false},
		{"resource: voice, threshold: 5" ASSOCIATED, false},
		{"resource: voice, threshold: 5, metricType: Concurrency", false},
	};
	char text[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), VOICE "rules: [{resource: voice, threshold: 1}, {%s}]\n", cases[i].fields);
		assert_reads(bench, text);
		assert_true(bench->ruleset->rules[0].occupies);
		assert_int_equal(bench->ruleset->rules[1].occupies, cases[i].occupies);
		assert_int_equal(weir_kind_id_of(&bench->ruleset->rules[1]) == WEIR_KIND_OCCUPY, cases[i].occupies);
		forget(bench);
	}
}

BENCH_CLAIM(rules_of_sentinels_lists_occupy_on_a_prioritized_resource)
{
	assert_int_equal(read_texts(bench, VOICE, "[{\"resource\": \"voice\", \"threshold\": 5}]\n", NULL), 0);
	assert_true(bench->ruleset->rules[0].occupies);
}

BENCH_CLAIM(the_time_out_is_half_a_second_unless_a_file_says_other)
{
	assert_reads(bench, VOICE "rules: [{resource: voice, threshold: 5}]\n");
	assert_int_equal(bench->ruleset->settings.occupy_timeout_ms, 500);
	forget(bench);
	assert_reads(bench,
		     "settings: {occupyTimeoutInMs: 86400000}\n" VOICE "rules: [{resource: voice, threshold: 5}]\n");
	assert_int_equal(bench->ruleset->settings.occupy_timeout_ms, 86400000);
}

BENCH_CLAIM(mistakes_are_reported_at_their_place)
{
	static const struct sample samples[] = {
		{"resources: [{name: r, prioritized: yes}]\n", 1, 36, "'yes' is not a value of 'prioritized'",
		 "false or true"},
		{"resources: [{name: r, prioritized: 1}]\n", 1, 36, "'1' is not a value of 'prioritized'",
		 "false or true"},
		{"resources: [{name: r, prioritized: True}]\n", 1, 36, "'True' is not a value of 'prioritized'",
		 "'true'"},
		{"resources: [{name: r, prioritized: [true]}]\n", 1, 36, "must be a single value, not a list", NULL},
		{"resources: [{name: r, prioritize: true}]\n", 1, 23, "no field 'prioritize'", "'prioritized'"},
		{"settings: {occupyTimeoutInMs: -1}\n", 1, 31, "occupyTimeoutInMs", NULL},
		{"settings: {occupyTimeoutInMs: 86400001}\n", 1, 31, "out of range", "0 to 86400000"},
		{RULE("prioritized: true"), 5, 3, "rule has no field 'prioritized'", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

BENCH_CLAIM(prioritized_without_effect_is_warned_about)
{
	static const struct sample samples[] = {
		{VOICE "rules: [{resource: dns, threshold: 5}]\n", 1, 20,
		 "'prioritized' has no effect: 'voice' has no rule whose window can be occupied", "Direct, Reject"},
		{VOICE "rules: [{resource: voice, threshold: 5, window: strict}]\n", 1, 20,
		 "'voice' has no rule whose window can be occupied", NULL},
		{"settings: {occupyTimeoutInMs: 100}\n" RESOURCES "rules: [{resource: web, threshold: 5}]\n", 1, 31,
		 "'occupyTimeoutInMs' has no effect: no window can be occupied", "prioritized: true"},
		{"settings: {occupyTimeoutInMs: 0}\n" VOICE "rules: [{resource: voice, threshold: 5}]\n", 1, 31,
		 "no bucket is ever occupied", NULL},
	};

	ASSERT_MESSAGES_OF(bench, samples, true);
	assert_reads(bench, "resources: [{name: r, prioritized: false}]\nrules: [{resource: r, threshold: 1}]\n");
}

RUN_CLAIMS(NULL, NULL)
