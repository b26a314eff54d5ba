// SPDX-License-Identifier: GPL-2.0-only
/* Sentinel Java's lists, beyond what single fields become (ruleset_table_test): the dashboard's form, and who may. */
#include <stdio.h>
#include <string.h>

#include "rules/scalars.h"
#include "ruleset_bench.h"

#define FIXTURE "resources: [{name: dns}, {name: web, flow: source}, {name: some, match: {protocol: udp}}]\n"

static void assert_reads_list(struct bench *bench, const char *list)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err = read_texts(bench, list, FIXTURE, NULL);

	words = messages(bench);
	if (err || bench->diag.count)
		fail_msg("%d: %s\n%s", err, list, words);
}

/* What its RateLimiterController computes: one in round(1000 / count) ms, however many seconds that are. */
BENCH_CLAIM(queue_of_less_than_one_a_second_spaces_its_packets)
{
	static const struct {
		const char *count;
		uint64_t interval_ms;
	} cases[] = {{"0.2", 5000}, {"0.5", 2000}, {"0.3", 3333}, {"0.000012", 83333333}, {"0.75", 1333}};
	char list[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(list, sizeof(list),
			 "[{\"resource\": \"dns\", \"grade\": 1, \"count\": %s, \"controlBehavior\": 2, "
			 "\"maxQueueingTimeMs\": 5000}]\n",
			 cases[i].count);
		assert_reads_list(bench, list);
		assert_int_equal(bench->ruleset->rules[0].behavior, WEIR_BEHAVIOR_THROTTLING);
		assert_true(bench->ruleset->rules[0].threshold_micro == WEIR_MICRO);
		assert_true(bench->ruleset->rules[0].interval_ns == cases[i].interval_ms * 1000000);
	}
	/* Nothing else changes: what refuses admits no whole one, and one a second is one a second. */
	assert_reads_list(bench, "[{\"resource\": \"dns\", \"grade\": 1, \"count\": 1, \"controlBehavior\": 2}]\n");
	assert_true(bench->ruleset->rules[0].interval_ns == 1000000000);
}

/* Entities as its dashboard writes them to a configuration centre: some with the rule one level down. */
BENCH_CLAIM(rules_of_the_dashboard_are_read)
{
	const struct weir_ruleset_rule *rules;

	assert_reads_list(
		bench,
		"[{\"id\": 1, \"app\": \"shop\", \"ip\": \"192.0.2.7\", \"port\": 8719, \"limitApp\": \"default\",\n"
		"  \"resource\": \"dns\", \"grade\": 1, \"count\": 20.0, \"strategy\": 0, \"refResource\": null,\n"
		"  \"controlBehavior\": 0, \"warmUpPeriodSec\": null, \"maxQueueingTimeMs\": null,\n"
		"  \"clusterMode\": false, \"clusterConfig\": null, \"gmtCreate\": 1760000000000,\n"
		"  \"gmtModified\": 1760000000000}]\n");
	assert_int_equal(bench->ruleset->rule_count, 1);
	assert_true(bench->ruleset->rules[0].threshold_micro == 20 * WEIR_MICRO);
	assert_true(bench->ruleset->rules[0].interval_ns == 1000000000);
	assert_reads_list(
		bench,
		"[{\"id\": 2, \"app\": \"shop\", \"ip\": \"192.0.2.7\", \"port\": 8719, \"rule\":\n"
		"  {\"resource\": \"web\", \"grade\": 1, \"paramIdx\": 0, \"count\": 5, \"controlBehavior\": 2,\n"
		"   \"maxQueueingTimeMs\": 300, \"paramFlowItemList\": [], \"durationInSec\": 10}},\n"
		" {\"rule\": {\"resource\": \"web\", \"grade\": 0, \"paramIdx\": 1, \"count\": 6}}]\n");
	rules = bench->ruleset->rules;
	assert_int_equal(bench->ruleset->rule_count, 2);
	assert_int_equal(rules[0].behavior, WEIR_BEHAVIOR_THROTTLING);
	assert_true(rules[0].interval_ns == 10000000000);
	assert_true(rules[0].queueing_ms_max == 300);
	assert_int_equal(rules[1].metric, WEIR_METRIC_CONCURRENCY);
	assert_int_equal(rules[1].place.line, 4);
}

BENCH_CLAIM(mistake_in_a_java_rule_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{"[{\"resource\": \"dns\", \"grade\": 1, \"Count\": 5}]", 1, 34, "has no field 'Count'",
		 "write 'count'"},
		{"[{\"resource\": \"dns\", \"grade\": 1, \"count\": -5}]", 1, 43, "is negative", NULL},
		{"[{\"resource\": \"dsn\", \"grade\": 1, \"count\": 5}]", 1, 15, "no resource 'dsn'", "'dns'"},
		{"[{\"grade\": 1, \"count\": 5}]", 1, 2, "the rule has no resource", NULL},
		{"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5, \"strategy\": 1}]", 1, 58, "needs a refResource",
		 NULL},
		{"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5, \"clusterMode\": 1}]", 1, 61,
		 "not a value of 'clusterMode'", "true or false"},
		{"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5, \"limitApp\": [1]}]", 1, 58,
		 "must be a single value", NULL},
		{"[{\"resource\": \"web\", \"durationInSec\": 1, \"grade\": 0, \"count\": 5}]", 1, 2,
		 "needs a paramIdx", NULL},
		{"[{\"resource\": \"web\", \"paramIdx\": 0, \"grade\": 0, \"count\": 5,\n"
		 "  \"paramFlowItemList\": {}}]",
		 2, 24, "must be a list", NULL},
		{"[{\"resource\": \"web\", \"paramIdx\": 0, \"grade\": 0, \"count\": 5,\n"
		 "  \"paramFlowItemList\": [7]}]",
		 2, 25, "must be a map of fields", NULL},
		{"[{\"resource\": \"web\", \"paramIdx\": 0, \"grade\": 0, \"count\": 5,\n"
		 "  \"paramFlowItemList\": [{\"object\": \"192.0.2.1\"}]}]",
		 2, 25, "needs an object and a count", "\"object\": \"192.0.2.1\""},
		{"[{\"resource\": \"web\", \"paramIdx\": 0, \"grade\": 0, \"count\": 5,\n"
		 "  \"paramFlowItemList\": [{\"object\": \"::1\", \"count\": 7}, {\"object\": \"::1\", \"count\": "
		 "8}]}]",
		 2, 67, "::1 already has an override", NULL},
		{"[{\"resource\": \"some\", \"limitApp\": \"192.0.2.1\"}]", 1, 15, "matches only some packets",
		 "overrides"},
		{"[{\"resource\": \"dns\", \"limitApp\": \"192.0.2.1,,10.0.0.0/8\"}]", 1, 34, "'' is not an IP address",
		 NULL},
		{"authorityRules: [{resource: dns}]", 1, 18, "needs a limitApp", "192.0.2.1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		const struct sample *sample = &samples[i];
		int err = read_texts(bench, sample->text, FIXTURE, NULL);
		_cleanup_(weir_freep) char *words = messages(bench);
		const struct weir_diag_entry *entry = bench->diag.entries;

		if (err != -EINVAL || bench->diag.count != 1 || entry->line != sample->line ||
		    entry->column != sample->column || !strstr(entry->message, sample->message) ||
		    (sample->hint && (!entry->hint || !strstr(entry->hint, sample->hint))))
			fail_msg("expected %d:%d: %s, got %d:\n%s\nfor %s", sample->line, sample->column,
				 sample->message, err, words, sample->text);
	}
}

/* ---- authority rules ---- */

/* What becomes of packets from there by the longest prefix: are they denied? */
static bool is_denied(const struct weir_ruleset *ruleset, const char *address)
{
	struct weir_refusal refusal;
	struct weir_prefix from;
	int longest = -1;
	bool denies = false;

	assert_int_equal(weir_parse_prefix(address, &from, &refusal), 0);
	for (size_t i = 0; i < ruleset->listed_count; i++) {
		const struct weir_prefix *prefix = &ruleset->listed[i].prefix;
		unsigned int bit = 0;

		while (bit < prefix->bits && !((prefix->address[bit / 8] ^ from.address[bit / 8]) & 0x80 >> bit % 8))
			bit++;
		if (prefix->family == from.family && bit == prefix->bits && (int)bit > longest) {
			longest = bit;
			denies = ruleset->listed[i].denies;
		}
	}
	return denies;
}

/* As its parser ignores and coerces; `advice`: what the warning says to do. */
BENCH_CLAIM(what_sentinel_java_takes_is_taken_with_a_warning)
{
	static const struct {
		const char *list, *message, *advice;
		size_t warnings;
	} cases[] = {
		{"[{\"resource\": \"web\", \"grade\": 0, \"count\": 500, \"timeWindow\": 30, "
		 "\"slowRatioThreshold\": 0.5, \"strategy\": 0}]",
		 "'strategy' has no effect: Sentinel Java's degrade rules do not have it",
		 "leave it out: 'grade' implies it", 1},
		{"[{\"resource\": \"web\", \"grade\": 1, \"count\": 100, \"statIntervalMs\": 1000, \"interval\": 1}]",
		 "'statIntervalMs' has no effect: Sentinel Java's flow rules do not have it", "leave it out", 2},
		{"[{\"resource\": \"web\", \"grade\": 1, \"count\": 100, \"interval\": 1}]",
		 "'interval' has no effect: Sentinel Java's flow rules do not have it", "leave it out", 1},
		{"[{\"resource\": \"web\", \"grade\": 1, \"count\": 100, \"controlBehavior\": 0, \"statIntervalInMs\": "
		 "6}]",
		 "'statIntervalInMs' has no effect", "counts by the second", 1},
		{"[{\"resource\": \"web\", \"grade\": \"1\", \"count\": \"10\", \"strategy\": \"0\", "
		 "\"controlBehavior\": \"0\"}]",
		 "\"1\" is a string, read as a number", "leave out the quotes: 1", 4},
		{"[{\"resource\": \"web\", \"paramIdx\": \"0\", \"count\": 5, "
		 "\"paramFlowItemList\": [{\"object\": \"192.0.2.1\", \"count\": \"7\"}]}]",
		 "\"0\" is a string, read as a number", NULL, 2},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int err = read_texts(bench, cases[i].list, FIXTURE, NULL);
		const struct weir_diag_entry *entry = &bench->diag.entries[0];

		if (err || bench->diag.count != cases[i].warnings || !strstr(entry->message, cases[i].message) ||
		    (cases[i].advice && !strstr(entry->hint, cases[i].advice)))
			fail_msg("%d: %s\n%s", err, cases[i].list, messages(bench));
		assert_int_equal(bench->ruleset->rule_count, 1);
	}
}

/* As good a degrade rule as a flow rule: what Sentinel Java would ignore of it, weir cannot know. */
BENCH_CLAIM(list_that_may_be_of_two_kinds_is_refused)
{
	static const char *const lists[] = {
		"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5, \"controlBehavior\": 0, \"timeWindow\": 10}]",
		"[{\"resource\": \"dns\", \"threshold\": 5, \"count\": 6}]",
		"flowRules: [{\"resource\": \"dns\", \"threshold\": 5, \"count\": 6}]",
		"[{\"resource\": \"dns\", \"grade\": 1, \"count\": 5}, {\"resource\": \"dns\", \"grade\": 1, "
		"\"count\": 0.5, \"timeWindow\": 10}]",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		if (read_texts(bench, lists[i], FIXTURE, NULL) != -EINVAL)
			fail_msg("taken: %s\n%s", lists[i], messages(bench));
}

BENCH_CLAIM(white_list_denies_all_others_and_nobody_else)
{
	static const char *const may[] = {"192.0.2.1", "10.0.0.0",   "10.255.255.255",
					  "10.1.2.3",  "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff",
					  "fe80::1"};
	static const char *const may_not[] = {"192.0.2.0",
					      "192.0.2.2",
					      "9.255.255.255",
					      "11.0.0.0",
					      "0.0.0.0",
					      "255.255.255.255",
					      "2001:db9::",
					      "2001:db7::1",
					      "::",
					      "fec0::1",
					      "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};

	assert_reads_list(bench,
			  "[{\"resource\": \"dns\", \"strategy\": 0,\n"
			  "  \"limitApp\": \"192.0.2.1, 10.0.0.0/8,10.1.0.0/16,2001:db8::/32,fe80::/10,192.0.2.1\"}]");
	for (size_t i = 0; i < ARRAY_SIZE(may); i++)
		if (is_denied(bench->ruleset, may[i]))
			fail_msg("%s is denied", may[i]);
	for (size_t i = 0; i < ARRAY_SIZE(may_not); i++)
		if (!is_denied(bench->ruleset, may_not[i]))
			fail_msg("%s is not denied", may_not[i]);
	/* 32 for the address but for where it meets the other, 8 for 10/8, 32 and 10 of IPv6: no more than need be. */
	assert_true(bench->ruleset->listed_count <= 32 + 8 + 32 + 10);
}

BENCH_CLAIM(white_list_of_everybody_denies_nobody)
{
	assert_int_equal(
		read_texts(bench, "[{\"resource\": \"dns\", \"limitApp\": \"0.0.0.0/0,::/0\"}]", FIXTURE, NULL), 0);
	assert_messages(bench, "warning: there are no rules: nothing will be limited\n");
	assert_int_equal(bench->ruleset->listed_count, 0);
}

BENCH_CLAIM(white_list_without_link_local_addresses_is_warned_of)
{
	assert_int_equal(read_texts(bench, "[{\"resource\": \"dns\", \"limitApp\": \"192.0.2.1\"}]", FIXTURE, NULL), 0);
	assert_int_equal(bench->diag.count, 2);
	assert_non_null(strstr(bench->diag.entries[0].message, "IPv6 needs link-local ones"));
	assert_non_null(strstr(bench->diag.entries[1].message, "every IPv6 address"));
	assert_true(is_denied(bench->ruleset, "fe80::1"));
	assert_false(is_denied(bench->ruleset, "192.0.2.1"));
}

/* Beside a deny list of the file's own; where both hold, both are kept. */
BENCH_CLAIM(black_list_joins_the_deny_list)
{
	assert_reads(bench, FIXTURE "deny: [198.51.100.0/24]\nauthorityRules:\n"
				    "- {resource: dns, strategy: 1, limitApp: \"192.0.2.1,198.51.100.0/24\"}\n");
	assert_int_equal(bench->ruleset->listed_count, 2);
	assert_true(is_denied(bench->ruleset, "192.0.2.1"));
	assert_true(is_denied(bench->ruleset, "198.51.100.9"));
	assert_false(is_denied(bench->ruleset, "192.0.2.2"));
}

RUN_CLAIMS(NULL, NULL)
