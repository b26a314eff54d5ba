// SPDX-License-Identifier: GPL-2.0-only
/* The rule sets that an instance has had: what steps leave of them, and that no bytes in their place do harm. */
#include <string.h>

#include "rules/emit.h"
#include "rules/history.h"
#include "ruleset_bench.h"

static struct weir_kept_set *kept_with(const char *allowed, unsigned int threshold)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	struct weir_kept_set *set = NULL;
	struct weir_diag diag = {};
	char text[256];

	snprintf(text, sizeof(text),
		 "allow: %s\ndeny: [\"2001:db8::/32\", 10.0.0.0/8]\nresources: [{name: a}]\n"
		 "rules: [{resource: a, threshold: %u}]\n",
		 allowed, threshold);
	assert_int_equal(weir_ruleset_parse("a.yaml", text, strlen(text), &ruleset, &diag), 0);
	assert_int_equal(weir_kept_set_make(ruleset, &set), 0);
	return set;
}

static struct weir_kept_set *kept(unsigned int threshold)
{
	return kept_with("192.0.2.0/24", threshold);
}

/* "3 2 1": the thresholds of the sets, the latest first. */
static const char *sets_of(const struct weir_history *history)
{
	static char words[64];
	char *out = words;

	words[0] = '\0';
	for (size_t i = 0; i < WEIR_HISTORY_SETS && history->sets[i]; i++)
		out += sprintf(out, "%s%d", i ? " " : "",
			       atoi(strstr(history->sets[i]->text, "rate: ") + strlen("rate: ")));
	return words;
}

CLAIM(steps_leave_the_set_in_force_and_the_one_before)
{
	_cleanup_(weir_history_free) struct weir_history history = {};

	weir_history_push(&history, kept(1), false);
	assert_string_equal(sets_of(&history), "1");
	weir_history_push(&history, kept(2), false);
	weir_history_push(&history, kept(3), false);
	assert_string_equal(sets_of(&history), "3 2");
	weir_history_push(&history, kept(3), false);
	assert_string_equal(sets_of(&history), "3 2");
	weir_history_swap(&history);
	assert_string_equal(sets_of(&history), "2 3");
	weir_history_swap(&history);
	assert_string_equal(sets_of(&history), "3 2");
}

CLAIM(a_change_of_the_lists_alone_is_a_step)
{
	_cleanup_(weir_history_free) struct weir_history history = {};

	weir_history_push(&history, kept(1), false);
	weir_history_push(&history, kept(2), false);
	weir_history_push(&history, kept_with("192.0.2.0/25", 2), false);
	assert_string_equal(sets_of(&history), "2 2");
}

CLAIM(unconfirmed_rules_leave_no_trace_when_they_return)
{
	struct weir_history history = {};

	weir_history_push(&history, kept(1), false);
	weir_history_push(&history, kept(2), false);
	weir_history_push(&history, kept(3), true);
	assert_string_equal(sets_of(&history), "3 2 1");
	weir_history_return(&history);
	assert_string_equal(sets_of(&history), "2 1");
	weir_history_push(&history, kept(3), true);
	weir_history_confirm(&history);
	assert_string_equal(sets_of(&history), "3 2");
	/* Of the same once more there is something to return to, and nothing to go back to. */
	weir_history_push(&history, kept(3), true);
	assert_string_equal(sets_of(&history), "3 3 2");
	weir_history_confirm(&history);
	assert_string_equal(sets_of(&history), "3 2");
	weir_history_free(&history);
}

CLAIM(what_is_kept_comes_back_with_its_lists)
{
	struct weir_history history = {.sets[0] = kept(7)}, back;
	struct weir_ruleset *ruleset = NULL;
	struct weir_diag diag = {};
	uint8_t *bytes;
	size_t count;
	char *text;

	history.sets[0]->generation = 5;
	history.sets[0]->transition = WEIR_TRANSITION_ROLLBACK;
	assert_int_equal(weir_history_pack(&history, &bytes, &count), 0);
	assert_int_equal(weir_history_unpack(bytes, count, &back), 0);
	assert_int_equal(back.sets[0]->generation, 5);
	assert_int_equal(back.sets[0]->transition, WEIR_TRANSITION_ROLLBACK);
	assert_true(back.sets[0]->digest == history.sets[0]->digest);
	assert_string_equal(back.sets[0]->files, "a.yaml\n");
	assert_null(back.sets[1]);
	assert_int_equal(weir_kept_set_read(back.sets[0], &ruleset, &diag), 0);
	text = weir_ruleset_text(ruleset, true);
	assert_non_null(strstr(text, "allow:\n  - 192.0.2.0/24\n"));
	assert_non_null(strstr(text, "deny:\n  - 10.0.0.0/8\n  - \"2001:db8::/32\"\n"));
	free(text);
	free(bytes);
	weir_ruleset_free(ruleset);
	weir_history_free(&history);
	weir_history_free(&back);
}

/* A map is not to be trusted: cut anywhere, and with any byte changed, it is read or refused. */
CLAIM(damaged_bytes_are_refused_or_read)
{
	struct weir_history history = {.sets[0] = kept(7)}, back;
	uint8_t *bytes;
	size_t count;

	weir_history_push(&history, kept(8), false);
	assert_int_equal(weir_history_pack(&history, &bytes, &count), 0);
	for (size_t cut = 0; cut < count; cut++) {
		_cleanup_(weir_freep) uint8_t *part = malloc(cut + 1); /* so that sanitizers see who reads on */

		assert_non_null(part);
		memcpy(part, bytes, cut);
		assert_int_equal(weir_history_unpack(part, cut, &back), -EPROTO);
	}
	for (size_t at = 0; at < count; at++) {
		struct weir_ruleset *ruleset = NULL;
		struct weir_diag diag = {};

		bytes[at] ^= 0xff;
		if (!weir_history_unpack(bytes, count, &back)) {
			if (back.sets[0] && !weir_kept_set_read(back.sets[0], &ruleset, &diag))
				weir_ruleset_free(ruleset);
			weir_history_free(&back);
		}
		weir_diag_free(&diag);
		bytes[at] ^= 0xff;
	}
	free(bytes);
	weir_history_free(&history);
}

RUN_CLAIMS(NULL, NULL)
