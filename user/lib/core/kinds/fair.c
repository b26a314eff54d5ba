// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind FAIR: a hidden rule that describes the children of a rule with fairBy. That rule's window limits the parent, and
 * asks about the packet's child first (docs/semantics.md, 14).
 */
#include "compile/build_steps.h"
#include "kinds/kinds.h"
#include "rules/ruleset.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->metric == WEIR_METRIC_SHARE;
}

static void size_tables(const struct weir_settings *settings, const struct weir_previous *previous,
			struct weir_image *image, struct weir_diag *diag)
{
	const struct weir_sizing children = {
		.keeps = weir_has_fair_flows,
		.sets = weir_shared_sets(image),
		.sets_idle = 0,
		.table = WEIR_TABLE_FAIR_SHARES,
		.ways = WEIR_FLOW_WAYS,
		.keeping = "table of fair shares keeps its",
		.what = "places",
		.setting = "flowsPerCpu",
	};

	weir_size_table(image, previous, &children, diag);
}

const struct weir_kind weir_kind_fair = {
	.is_chosen = is_chosen,
	.size_tables = size_tables,
	.storage_name = "shared",
};
