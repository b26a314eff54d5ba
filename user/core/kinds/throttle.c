// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind THROTTLE: packets are spaced evenly, by the planned time of their flow's latest one, which all CPUs share
 * (docs/semantics.md, 4).
 */
#include "base/util.h"
#include "compile/parts.h"
#include "kinds/kinds.h"
#include "rules/rule.h"
#include "thresholds/cost.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->behavior == WEIR_BEHAVIOR_THROTTLING;
}

static void keep_numbers(const struct weir_draft *draft)
{
	draft->rule->queueing_ms_max = draft->number[RULE_MAX_QUEUEING];
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

/* ---- what a packet costs ---- */

/* The least that this rule ever allows and that still admits something, in millionths of a unit; 0: there is none. */
static uint64_t least_allowed_micro(const struct weir_ruleset_rule *rule)
{
	uint64_t least = rule->threshold_micro, micro;
	size_t i;

	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		return rule->memory.high_units * WEIR_MICRO;
	if (rule->strategy == WEIR_STRATEGY_WARM_UP)
		return rule->threshold_micro / rule->warm_up.cold_factor;
	if (least < WEIR_MICRO)
		least = 0;
	for (i = 0; i < rule->override_count; i++) {
		micro = rule->overrides[i].threshold_micro;
		if (micro >= WEIR_MICRO && (!least || micro < least))
			least = micro;
	}
	return least;
}

/* A bound of what any packet costs, ns. */
static uint64_t cost_ns_max(const struct weir_ruleset_rule *rule)
{
	const uint64_t batch_max = rule->counts_bytes ? WEIR_COST_BATCH_MAX - 1 : 1;
	const uint64_t least_micro = least_allowed_micro(rule);
	struct weir_cost cost;
	uint64_t cost_ns;

	if (!least_micro)
		return 0;
	/* A batch is never more than what is allowed, so that no packet costs more than the interval. */
	if (least_micro < WEIR_MICRO)
		return rule->interval_ns;
	weir_cost_make(rule->interval_ns, least_micro, WEIR_MICRO, &cost);
	cost_ns = weir_cost_ns(&cost, batch_max);
	return cost_ns < rule->interval_ns ? cost_ns : rule->interval_ns;
}

static uint64_t longest_wait_ns(const struct weir_ruleset_rule *rule, const struct weir_settings *settings)
{
	return rule->queueing_ms_max * 1000000ull;
}

static void configure(const struct weir_ruleset_rule *rule, struct weir_config *config)
{
	const uint64_t cost_ns = cost_ns_max(rule);

	if (cost_ns > config->throttle_horizon_ns)
		config->throttle_horizon_ns = cost_ns;
}

/* ---- planned times ---- */

/* They hold so many bits of the clock that two less than half a turn apart, 4.5 years, can be told apart. */
static int check_span(uint64_t span_ns, struct weir_diag *diag)
{
	const uint64_t queue_ns_max = UINT32_MAX * 1000000ull; /* maxQueueingTimeMs */

	if (span_ns < (WEIR_LAST_MASK >> 1) - queue_ns_max)
		return 0;
	weir_diag_error(diag, NULL, NULL, "replay the part before and the part after by themselves",
			"Throttling can plan over 4.4 years, and these packets lie further apart");
	return -EINVAL;
}

static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing table = {
		.keeps = weir_throttles_flows,
		.sets = weir_shared_sets(image, WEIR_THROTTLE_WAYS),
		.sets_idle = 1,
		.table = WEIR_TABLE_THROTTLED_FLOWS,
		.ways = WEIR_THROTTLE_WAYS,
		.keeping = "table of throttled flows keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	weir_size_table(image, previous, &table, diag);
}

/* Planned times so old that no packet waits for them: none costs more than an interval. */
static uint64_t flow_memory_ns(const struct weir_ruleset_rule *rule)
{
	return rule->interval_ns;
}

const struct weir_kind weir_kind_throttle = {
	.is_chosen = is_chosen,
	.fields = WEIR_RULE_FIELDS_ALL & ~(1u << RULE_SAMPLES | 1u << RULE_WINDOW | WEIR_RULE_PENALTY_FIELDS),
	.own_fields = 1u << RULE_MAX_QUEUEING,
	.own_condition = "controlBehavior Throttling",
	.keep_numbers = keep_numbers,
	.threshold_hint = "say how many packets an interval may hold: 'threshold: 1000'",
	.below_one = "a threshold below 1 admits nothing",
	.below_one_hint = "a packet is admitted whole or not at all",
	.check = check,
	.has_interval = true,
	.has_cost = true,
	.delays = true,
	.needs_allowed = true,
	.longest_wait_ns = longest_wait_ns,
	.configure = configure,
	.check_span = check_span,
	.size_tables = size_tables,
	.flow_memory_ns = flow_memory_ns,
	.storage_name = "shared",
};
