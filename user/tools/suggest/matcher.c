// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/matcher.h"

#include <errno.h>

#include "base/util.h"
#include "harness/attempt.h"

/* The program's counters are not read, so its tables are as small as possible. */
static const struct weir_replay_sizes smallest = {
	.rows = 512, .connections = 1024, .connection_flows = 256, .ring_groups = 32};

struct weir_suggest_matcher {
	struct weir_ruleset ruleset; /* borrows all but the rule of services */
	struct weir_ruleset_rule rule;
	struct weir_replay_run run;
	struct weir_survey survey;
	struct weir_attempt attempt;
};

int weir_suggest_matcher_new(const struct weir_suggest_plan *plan, enum weir_direction direction, const char *interface,
			     uint64_t now_ns, struct weir_suggest_matcher **ret_matcher, struct weir_diag *diag)
{
	_cleanup_(weir_suggest_matcher_freep) struct weir_suggest_matcher *matcher = calloc(1, sizeof(*matcher));
	int err;

	if (!matcher)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot measure");
	matcher->run = (struct weir_replay_run){
		.interface = interface,
		.reads_addresses = true,
	};
	matcher->ruleset = plan->ruleset;
	if (plan->services) {
		matcher->rule = plan->rules[direction];
		matcher->rule.resource = 0;
		matcher->ruleset.resources += direction;
		matcher->ruleset.rules = &matcher->rule;
		matcher->ruleset.resource_count = matcher->ruleset.rule_count = 1;
	}
	matcher->survey = (struct weir_survey){.first_ns = now_ns, .earliest_ns = now_ns, .latest_ns = now_ns};
	matcher->attempt = (struct weir_attempt){
		.ruleset = &matcher->ruleset,
		.run = &matcher->run,
		.survey = &matcher->survey,
		.sizes = &smallest,
	};
	err = weir_attempt_begin(&matcher->attempt, diag);
	if (err)
		return err;
	weir_object_harness(matcher->attempt.object)->wants_flows = 1;
	*ret_matcher = TAKE_PTR(matcher);
	return 0;
}

void weir_suggest_matcher_free(struct weir_suggest_matcher *matcher)
{
	if (!matcher)
		return;
	weir_attempt_clean(&matcher->attempt);
	free(matcher);
}

int weir_suggest_matcher_labels(const struct weir_suggest_matcher *matcher, struct weir_key_labels **ret_labels)
{
	return weir_labels_copy(weir_object_labels(matcher->attempt.object), ret_labels);
}

int weir_suggest_match(struct weir_suggest_matcher *matcher, const struct weir_ethernet *ethernet, uint64_t time_ns,
		       enum weir_direction direction, const volatile struct weir_harness **ret_packet,
		       struct weir_diag *diag)
{
	struct weir_evaluation evaluation = {};
	int err = weir_attempt_evaluate_frame(&matcher->attempt, ethernet, time_ns, direction, &evaluation, diag);

	if (!err)
		*ret_packet = weir_object_harness(matcher->attempt.object);
	return err;
}
