// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind OCCUPY: a sliding window in which packets of a prioritized resource may occupy units of later buckets, and wait
 * for them (docs/semantics.md, 10). All CPUs share it.
 */
#include "base/util.h"
#include "compile/build_steps.h"
#include "kinds/kinds.h"
#include "rules/rule.h"

#define NSEC_PER_MSEC 1000000ull

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->occupies;
}

/* If a wait were as long as the interval, it would take units that belong to packets that arrive later. */
static uint64_t longest_wait_ns(const struct weir_ruleset_rule *rule, const struct weir_settings *settings)
{
	const uint64_t timeout_ns = settings->occupy_timeout_ms * NSEC_PER_MSEC;

	return timeout_ns < rule->interval_ns ? timeout_ns : rule->interval_ns;
}

/* ---- tables ---- */

/* Without a rule with an occupy window there is no table; if none of them has flows, the table of flows has one set. */
static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	const bool occupies = image->config.kinds >> WEIR_KIND_OCCUPY & 1;
	const struct weir_sizing table = {
		.keeps = weir_has_occupy_flows,
		/* Calculated as if a set had one way more: nearly twice as many places as flows, but not four times. */
		.sets = weir_shared_sets(image),
		.sets_idle = occupies,
		.table = WEIR_TABLE_OCCUPY_FLOWS,
		.ways = WEIR_FLOW_WAYS,
		.keeping = "table of flows that occupy keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	weir_size_table(image, previous, &table, diag);
	if (image->config.sizes[WEIR_TABLE_OCCUPY_FLOWS])
		image->config.sizes[WEIR_TABLE_OCCUPY_RESOURCES] = image->rule_slots;
}

/* Occupied units count from their own bucket for an interval, plus the current bucket. */
static uint64_t flow_memory_ns(const struct weir_ruleset_rule *rule)
{
	return rule->interval_ns + rule->interval_ns / rule->samples;
}

const struct weir_kind weir_kind_occupy = {
	.is_chosen = is_chosen,
	.fields = WEIR_RULE_FIELDS_ALL & ~(1u << RULE_REF_RESOURCE),
	.threshold_hint = "write how many packets an interval may hold: 'threshold: 1000'",
	.below_one = "a threshold below 1 admits nothing",
	.below_one_hint = "a packet is admitted whole or not at all",
	.needs_allowed = true,
	.longest_wait_ns = longest_wait_ns,
	.size_tables = size_tables,
	.flow_memory_ns = flow_memory_ns,
	.manner = ", occupies",
	.storage_name = "occupy",
};
