// SPDX-License-Identifier: GPL-2.0-only
#include "suggest/suggest.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"

/* What a flow lost under a rule, in one or several captures. */
struct loser {
	uint32_t rule;
	struct weir_flow_key key;
	uint64_t packets;
};

struct proving {
	struct weir_suggestion **of_rule; /* by the index of the rule */
	struct loser *losers;
	size_t count;
};

static int take_report(struct proving *proving, const struct weir_ruleset *ruleset,
		       const struct weir_replay_report *replayed)
{
	for (size_t i = 0; i < ruleset->rule_count; i++) {
		struct weir_suggest_proof *proof = &proving->of_rule[i]->proof;

		proof->dropped.packets += replayed->rules[i].blocked.packets;
		proof->dropped.bytes += replayed->rules[i].blocked.bytes;
		proof->losers_missed += replayed->limits.missed;
	}
	for (size_t i = 0; i < replayed->limits.flows; i++) {
		const struct weir_replay_limited *limited = &replayed->limits.most[i];
		struct loser *loser =
			weir_array_add((void **)&proving->losers, proving->count, sizeof(*proving->losers));

		if (!loser)
			return -ENOMEM;
		*loser = (struct loser){limited->rule, limited->dropped.key, limited->dropped.packets};
		proving->count++;
	}
	return 0;
}

static int compare_flows(const void *left, const void *right)
{
	const struct loser *a = left, *b = right;

	if (a->rule != b->rule)
		return a->rule < b->rule ? -1 : 1;
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static int compare_losses(const void *left, const void *right)
{
	const struct loser *a = left, *b = right;

	if (a->packets != b->packets)
		return a->packets > b->packets ? -1 : 1;
	return compare_flows(left, right);
}

/* Merge the losses of a flow in several captures. */
static void merge_losers(struct proving *proving)
{
	size_t kept = 0;

	if (!proving->count)
		return;
	qsort(proving->losers, proving->count, sizeof(*proving->losers), compare_flows);
	for (size_t i = 1; i < proving->count; i++)
		if (compare_flows(&proving->losers[kept], &proving->losers[i]))
			proving->losers[++kept] = proving->losers[i];
		else
			proving->losers[kept].packets += proving->losers[i].packets;
	proving->count = kept + 1;
	qsort(proving->losers, proving->count, sizeof(*proving->losers), compare_losses);
}

static void show_losers(struct proving *proving)
{
	merge_losers(proving);
	for (size_t i = 0; i < proving->count; i++) {
		struct weir_suggest_flows *losers = &proving->of_rule[proving->losers[i].rule]->proof.losers;

		if (losers->count < WEIR_SUGGEST_FLOWS_SHOWN)
			losers->shown[losers->count] = (struct weir_suggest_flow){.key = proving->losers[i].key,
										  .peak = proving->losers[i].packets};
		losers->count++;
	}
}

static int replay_all(const struct weir_suggest_options *options, const struct weir_ruleset *ruleset,
		      struct proving *proving, struct weir_diag *diag)
{
	int err = 0;

	for (size_t i = 0; !err && i < options->capture_count; i++) {
		_cleanup_(weir_replay_report_free) struct weir_replay_report replayed = {};
		const struct weir_replay_run run = {
			.capture = options->captures[i],
			.interface = options->interface,
			.direction = options->direction,
			.stop = options->stop,
			.progress = options->proved,
		};

		err = weir_replay_run(ruleset, &run, &replayed, diag);
		if (!err && take_report(proving, ruleset, &replayed))
			err = weir_diag_fail(diag, ENOMEM, NULL, "cannot prove the suggestion");
	}
	return err;
}

int weir_suggest_prove(const struct weir_suggest_options *options, const char *text, struct weir_suggest_report *report,
		       struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	struct proving proving = {.of_rule = calloc(report->count + 1, sizeof(*proving.of_rule))};
	size_t rule = 0;
	int err;

	if (!proving.of_rule)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot prove the suggestion");
	for (size_t i = 0; i < report->count; i++)
		if (weir_suggestion_is_founded(&report->suggestions[i]))
			proving.of_rule[rule++] = &report->suggestions[i];
	err = weir_ruleset_parse("the suggestion", text, strlen(text), &ruleset, diag);
	if (!err)
		err = replay_all(options, ruleset, &proving, diag);
	if (!err)
		show_losers(&proving);
	free(proving.of_rule);
	free(proving.losers);
	return err;
}
