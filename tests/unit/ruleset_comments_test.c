// SPDX-License-Identifier: GPL-2.0-only
/* Comments as Sentinel Java's parser skips them: in Sentinel's lists, and nowhere else. */
#include <stdio.h>
#include <string.h>

#include "ruleset_bench.h"

/* "//" and slash-star, which a compiler would take for its own, are written as these. */
#define LINE                                                                                                           \
	"/"                                                                                                            \
	"/"
#define OPEN                                                                                                           \
	"/"                                                                                                            \
	"*"
#define CLOSE                                                                                                          \
	"*"                                                                                                            \
	"/"

static void assert_limit(struct bench *bench, const char *text, uint64_t threshold)
{
	_cleanup_(weir_freep) char *words = NULL;
	int err = read_texts(bench, text, RESOURCES, NULL);

	words = messages(bench);
	if (err || bench->diag.count)
		fail_msg("%d: %s\n%s", err, text, words);
	assert_int_equal(bench->ruleset->rule_count, 1);
	if (bench->ruleset->rules[0].threshold_micro != threshold * WEIR_MICRO)
		fail_msg("not %llu: %s", (unsigned long long)threshold, text);
}

/* Wherever JSON may have a blank. */
BENCH_CLAIM(rule_is_the_same_with_a_comment_at_any_place)
{
	static const char *const tokens[] = {
		"[",	     "{", "\"resource\"", ":", "\"dns\"",	  ",", "\"grade\"", ":", "1", ",",
		"\"count\"", ":", "100",	  ",", "\"clusterMode\"", ":", "false",	    "}", "]",
	};
	static const char *const comments[] = {
		LINE " don't [ { \"count\": 5, \n",
		LINE "\n",
		" " LINE " \xc3\xbc \xe2\x86\x92\n",
		OPEN CLOSE,
		OPEN " \"count\": 7,\n }] " CLOSE,
		OPEN "* " LINE " it's *" CLOSE "\n",
		" # of YAML\n",
	};

	for (size_t comment = 0; comment < ARRAY_SIZE(comments); comment++) {
		for (size_t place = 0; place <= ARRAY_SIZE(tokens); place++) {
			char text[512] = "";

			for (size_t i = 0; i <= ARRAY_SIZE(tokens); i++) {
				strcat(text, i == place ? comments[comment] : "");
				strcat(text, i < ARRAY_SIZE(tokens) ? tokens[i] : "\n");
			}
			assert_limit(bench, text, 100);
		}
	}
}

BENCH_CLAIM(comments_in_lists_of_a_rule_file_are_skipped_in_brackets)
{
	assert_limit(bench,
		     "{\"flowRules\": " LINE " of the shop\n [{\"resource\": \"dns\", " LINE " a second\n"
		     " \"threshold\": 5} " OPEN " end " CLOSE "], \"rules\": []}\n",
		     5);
	assert_limit(bench,
		     "flowRules:\n- {resource: dns, " LINE " a second\n   grade: 1,\n"
		     "   " OPEN " [ " CLOSE " count: 6}\n",
		     6);
	assert_limit(bench, "- {\"resource\": \"dns\", \"threshold\": 7 " LINE " a second\n  }\n", 7);
	assert_limit(bench,
		     "circuitBreakers: [{resource: dns, strategy: ErrorCount, " LINE " errors\n threshold: 8,\n"
		     " retryTimeoutMs: 1000, statIntervalMs: 1000}]\n",
		     8);
}

/* Words of YAML, addresses of stores, and what stands in quotes. */
BENCH_CLAIM(slashes_within_words_are_no_comments)
{
	assert_int_equal(
		read_texts(bench, "resources: [{name: a" LINE "b}, {name: \"c " LINE " d\"}, {name: e" OPEN "f}]\n",
			   "[{\"resource\": \"a" LINE "b\", \"threshold\": 1}, {\"resource\": \"c " LINE " d\","
			   " \"threshold\": 2}, {resource: e" OPEN "f, threshold: 3}]\n",
			   NULL),
		0);
	assert_int_equal(bench->ruleset->rule_count, 3);
	assert_reads(bench, "{flowRules: [], settings: {cluster: {redis: redis:" LINE "192.0.2.1, name: x}},\n"
			    "resources: [{name: dns}], rules: [{resource: dns, threshold: 1, clusterMode: true}]}\n");
	assert_reads(bench, RESOURCES "rules:\n- resource: dns\n  threshold: 5\n  name: a " LINE " b\n");
	assert_string_equal(bench->ruleset->rules[0].name, "a " LINE " b");
}

BENCH_CLAIM(other_parts_of_a_rule_file_have_no_such_comments)
{
	static const struct sample of_json = {"{flowRules: [{resource: dns, " LINE " a second\n threshold: 5}],\n"
					      "rules: [{resource: dns, " LINE " a second\n threshold: 5}]}\n",
					      3, 25, "JSON has no comments", "'#'"};
	static const char *const texts[] = {
		RESOURCES "rules: [{resource: dns, " LINE " a second\n threshold: 5}]\n",
		RESOURCES "flowRules: [{resource: dns, " LINE " a second\n threshold: 5}]\n"
			  "rules: [{resource: dns, " LINE " a second\n threshold: 5}]\n",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_(weir_freep) char *words = NULL;

		assert_int_equal(read_texts(bench, texts[i], NULL, NULL), -EINVAL);
		words = messages(bench);
		assert_non_null(strstr(words, "rule has no field '" LINE " a second threshold'"));
		assert_non_null(strstr(words, "in YAML, a comment begins with '#'"));
	}
	assert_message(bench, &of_json, false);
}

BENCH_CLAIM(mistake_beside_a_comment_is_reported_at_its_place)
{
	static const struct sample samples[] = {
		{"{\"resources\": [{\"name\": \"dns\"}],\n\"flowRules\": [{\"resource\": \"dns\", " OPEN
		 " \xc3\xbc " CLOSE " \"threshold\": x}]}",
		 2, 56, "'x' is", NULL},
		{"[" OPEN " [ { " CLOSE "\n{\"resource\": \"dns\", " LINE " ]\n \"threshold\": 5]", 3, 16,
		 "not valid YAML", "close the earlier '{'"},
		{"[{\"resource\": \"dns\", " OPEN " never", 1, 22, "comment that begins here is not closed",
		 "'" CLOSE "'"},
	};

	ASSERT_MESSAGES_OF(bench, samples, false);
}

/* As the issue of those who lost a count and a behaviour has them. */
BENCH_CLAIM(commented_system_rules_and_behaviours_are_kept)
{
	assert_int_equal(read_texts(bench, RESOURCES,
				    "[\n  {\n    " LINE " milliseconds\n    \"avgRt\": 20,\n"
				    "    " LINE " of all requests\n    \"qps\": 100\n  }\n]\n",
				    NULL),
			 0);
	assert_int_equal(bench->ruleset->rule_count, 2);
	assert_int_equal(read_texts(bench, RESOURCES,
				    "[{\"resource\": \"dns\", \"grade\": 1, \"count\": 100,\n" LINE
				    " queue\n\"controlBehavior\": 2}]\n",
				    NULL),
			 0);
	assert_int_equal(bench->ruleset->rules[0].behavior, WEIR_BEHAVIOR_THROTTLING);
}

RUN_CLAIMS(NULL, NULL)
