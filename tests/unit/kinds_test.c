// SPDX-License-Identifier: GPL-2.0-only
/* The table of the kinds of limits: it has an entry for each, and each entry has what nobody asks for before using. */
#include "../lib/claims.h"
#include "kind/kind.h"
#include "rules/rule.h"

CLAIM(every_kind_has_an_entry_that_says_how_it_is_chosen)
{
	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++) {
		assert_non_null(weir_kinds[id]);
		assert_non_null(weir_kinds[id]->is_chosen);
		for (enum weir_kind_id other = 0; other < id; other++)
			assert_ptr_not_equal(weir_kinds[id], weir_kinds[other]);
	}
}

/* Rules of other kinds stand in a list of their own. */
static bool is_among_rules(const struct weir_kind *kind)
{
	return kind->fields != 0;
}

CLAIM(every_kind_has_the_words_that_complaints_and_lists_print)
{
	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++) {
		const struct weir_kind *kind = weir_kinds[id];

		if (!is_among_rules(kind))
			continue;
		assert_non_null(kind->threshold_hint);
		assert_non_null(kind->below_one);
		assert_non_null(kind->below_one_hint);
		/* What it counts is shown as units over an interval, or by a noun and a metricType of its own; circuit
		 * breakers stand in a list of their own.
		 */
		assert_int_equal(weir_kind_has(kind, RULE_INTERVAL), kind->noun == NULL);
		assert_int_equal(kind->metric_name != NULL, kind->noun && id != WEIR_KIND_BREAKER);
		assert_int_equal(!kind->metric_name, !kind->metric_number);
	}
}

CLAIM(every_kind_takes_the_fields_that_say_which_rule_it_is)
{
	const uint32_t always = 1u << RULE_NAME | 1u << RULE_RESOURCE | 1u << RULE_METRIC | 1u << RULE_MODE;

	for (enum weir_kind_id id = 0; id < WEIR_KIND_COUNT; id++) {
		if (!is_among_rules(weir_kinds[id]))
			continue;
		assert_int_equal(weir_kinds[id]->fields & always, always);
		assert_int_equal(weir_kinds[id]->fields & ~WEIR_RULE_FIELDS_ALL, 0);
		assert_int_equal(weir_kinds[id]->own_fields & ~weir_kinds[id]->fields, 0);
		assert_int_equal(!weir_kinds[id]->own_fields, !weir_kinds[id]->own_condition);
	}
}

#define LEAP WEIR_WINDOW_LEAP
#define TOKENS WEIR_WINDOW_TOKENS

CLAIM(choices_lead_to_one_kind_and_a_description_to_the_same)
{
	static const struct {
		struct weir_choices choices;
		enum weir_kind_id id;
	} cases[] = {
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_CURRENT, false, LEAP}, WEIR_KIND_WINDOW},
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_ASSOCIATED, false, LEAP}, WEIR_KIND_ASSOCIATED},
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_THROTTLING, WEIR_RELATION_CURRENT, false, LEAP}, WEIR_KIND_THROTTLE},
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_THROTTLING, WEIR_RELATION_ASSOCIATED, false, LEAP},
		 WEIR_KIND_THROTTLE},
		{{WEIR_METRIC_CONCURRENCY, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_CURRENT, false, LEAP},
		 WEIR_KIND_CONNECTIONS},
		{{WEIR_METRIC_CONCURRENCY, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_CURRENT, false, TOKENS},
		 WEIR_KIND_CONNECTIONS},
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_CURRENT, false, TOKENS}, WEIR_KIND_TOKENS},
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_ASSOCIATED, false, TOKENS},
		 WEIR_KIND_ASSOCIATED},
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_THROTTLING, WEIR_RELATION_CURRENT, false, TOKENS},
		 WEIR_KIND_THROTTLE},
		{{WEIR_METRIC_RATE, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_CURRENT, true, LEAP}, WEIR_KIND_OCCUPY},
		{{WEIR_METRIC_SIGNAL, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_CURRENT, false, LEAP}, WEIR_KIND_SYSTEM},
		{{WEIR_METRIC_REQUESTS, WEIR_BEHAVIOR_REJECT, WEIR_RELATION_CURRENT, false, LEAP}, WEIR_KIND_BREAKER},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct weir_choices *choices = &cases[i].choices;
		const struct weir_ruleset_rule rule = {
			.metric = choices->metric,
			.behavior = choices->behavior,
			.relation = choices->relation,
			.occupies = choices->occupies,
			.window = choices->window,
		};
		const struct weir_rule_info info = {
			.identity.metric = choices->metric,
			.identity.window = choices->window,
			.behavior = choices->behavior,
			.relation = choices->relation,
			.occupies = choices->occupies,
		};

		assert_int_equal(weir_kind_id_of(&rule), cases[i].id);
		assert_ptr_equal(weir_kind_of(&rule), weir_kinds[cases[i].id]);
		assert_ptr_equal(weir_kind_of_info(&info), weir_kinds[cases[i].id]);
	}
}

RUN_CLAIMS(NULL, NULL)
