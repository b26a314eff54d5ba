// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind TOKENS: a packet takes tokens from its flow's bucket, which all CPUs share, and which fills at the rate of the
 * threshold (docs/semantics.md, 9).
 */
#include "base/util.h"
#include "compile/build_steps.h"
#include "kinds/kinds.h"
#include "rules/rule.h"
#include "thresholds/token_rates.h"

/* The largest frame on an Ethernet with an MTU of 1500 bytes, without its checksum, which XDP does not see. */
#define FRAME_BYTES_USUAL 1514

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->window == WEIR_WINDOW_TOKENS && choices->metric == WEIR_METRIC_RATE &&
	       choices->behavior == WEIR_BEHAVIOR_REJECT && choices->relation == WEIR_RELATION_CURRENT;
}

static void check(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;
	const uint64_t beyond_micro = rule->burst_beyond_micro;

	if (draft->value[RULE_BURST_COUNT] && draft->value[RULE_BURST])
		weir_complain(reader, draft->value[RULE_BURST_COUNT], "leave one of them out",
			      "a rule has a burst or a burstCount, not both");
	else if (rule->threshold_micro > WEIR_THRESHOLD_UNITS_MAX * WEIR_MICRO - beyond_micro)
		weir_complain(reader, draft->value[RULE_BURST_COUNT], "lower one of them",
			      "the threshold and the burstCount are more than %llu together", WEIR_THRESHOLD_UNITS_MAX);
	if (rule->strategy == WEIR_STRATEGY_WARM_UP && draft->has_resource &&
	    weir_flow_of(reader->ruleset, rule)->fields)
		weir_complain(
			reader, weir_draft_at(draft, RULE_STRATEGY),
			"use Direct or MemoryAdaptive, another window, 'per: all', or a resource without a flow key",
			"'window: tokens' cannot warm up each flow separately");
}

static void warn(struct weir_reader *reader, const struct weir_draft *draft)
{
	const struct weir_ruleset_rule *rule = draft->rule;

	if (rule->counts_bytes && draft->value[RULE_BURST] && rule->burst_micro < FRAME_BYTES_USUAL * WEIR_MICRO)
		weir_warn(reader, draft->value[RULE_BURST],
			  "a frame larger than the burst is never admitted; a full one has 1514 bytes",
			  "this burst is smaller than a frame can be");
}

static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing table = {
		.keeps = weir_has_tokens_flows,
		.sets = weir_shared_sets(image),
		.sets_idle = 1,
		.table = WEIR_TABLE_TOKEN_FLOWS,
		.ways = WEIR_FLOW_WAYS,
		.keeping = "table of token buckets keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	weir_size_table(image, previous, &table, diag);
}

const struct weir_kind weir_kind_tokens = {
	.is_chosen = is_chosen,
	.fields = WEIR_RULE_FIELDS_ALL & ~(1u << RULE_SAMPLES | 1u << RULE_REF_RESOURCE),
	.own_fields = 1u << RULE_BURST | 1u << RULE_BURST_COUNT,
	.own_condition = "window tokens",
	.threshold_hint = "write how many tokens a flow gains in an interval: 'threshold: 1000'",
	.below_one = "a threshold of 0 admits nothing",
	.below_one_hint = "a flow that gains no tokens has none",
	.check = check,
	.warn = warn,
	.has_tokens = true,
	.size_tables = size_tables,
	.storage_name = "shared",
};
