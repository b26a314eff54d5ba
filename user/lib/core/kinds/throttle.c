// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind THROTTLE: packets are spaced evenly, by the TAT of their flow's latest packet, which all CPUs share
 * (docs/semantics.md, 4).
 */
#include "base/util.h"
#include "compile/build_steps.h"
#include "kinds/kinds.h"
#include "rules/rule.h"
#include "thresholds/token_rates.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->behavior == WEIR_BEHAVIOR_THROTTLING;
}

static void check(struct weir_reader *reader, const struct weir_draft *draft)
{
	if (draft->rule->relation != WEIR_RELATION_ASSOCIATED)
		return;
	if (draft->rule->strategy != WEIR_STRATEGY_WARM_UP)
		weir_complain(reader, weir_draft_at(draft, RULE_RELATION), "use Reject, or CurrentResource",
			      "AssociatedResource has no effect with Throttling, unless the strategy is WarmUp");
	weir_check_reference(reader, draft);
}

static uint64_t longest_wait_ns(const struct weir_ruleset_rule *rule, const struct weir_settings *settings)
{
	return rule->queueing_ms_max * 1000000ull;
}

/* ---- TATs ---- */

/* TATs hold enough bits of the clock to distinguish two times that are less than half a wrap (4.5 years) apart. */
static int check_span(uint64_t span_ns, struct weir_diag *diag)
{
	const uint64_t queue_ns_max = UINT32_MAX * 1000000ull; /* maxQueueingTimeMs */

	if (span_ns < (WEIR_LAST_MASK >> 1) - queue_ns_max)
		return 0;
	weir_diag_error(diag, NULL, NULL, "split the capture there, and replay each part by itself",
			"Throttling can plan ahead 4.4 years, but these packets are further apart");
	return -EINVAL;
}

static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing table = {
		.keeps = weir_has_throttle_flows,
		.sets = weir_shared_sets(image),
		.sets_idle = 1,
		.table = WEIR_TABLE_THROTTLED_FLOWS,
		.ways = WEIR_FLOW_WAYS,
		.keeping = "table of throttled flows keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	weir_size_table(image, previous, &table, diag);
}

/* TATs so old that no packet waits for them: no packet takes more than an interval. */
static uint64_t flow_memory_ns(const struct weir_ruleset_rule *rule)
{
	return rule->interval_ns;
}

const struct weir_kind weir_kind_throttle = {
	.is_chosen = is_chosen,
	.fields = WEIR_RULE_FIELDS_ALL & ~(1u << RULE_SAMPLES | 1u << RULE_WINDOW | WEIR_RULE_PENALTY_FIELDS),
	.own_fields = 1u << RULE_MAX_QUEUEING,
	.own_condition = "controlBehavior Throttling",
	.threshold_hint = "write how many packets an interval may hold: 'threshold: 1000'",
	.below_one = "a threshold below 1 admits nothing",
	.below_one_hint = "a packet is admitted whole or not at all",
	.check = check,
	.has_emission = true,
	.needs_allowed = true,
	.longest_wait_ns = longest_wait_ns,
	.check_span = check_span,
	.size_tables = size_tables,
	.flow_memory_ns = flow_memory_ns,
	.manner = ", spaced",
	.storage_name = "shared",
};
