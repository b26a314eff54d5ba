// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind SYSTEM: a rule is evaluated by a signal of the whole host: load, CPU usage, the time of handshakes. There are
 * two more kinds of system rules: InboundQPS, which is a window, and Concurrency, which is a limit of connections. All
 * of them are written in a list of their own, which rules/system_rules.c reads.
 */
#include "kinds/kinds.h"
#include "rules/ruleset.h"

static bool is_chosen(const struct weir_choices *choices)
{
	return choices->metric == WEIR_METRIC_SIGNAL;
}

const struct weir_kind weir_kind_system = {
	.is_chosen = is_chosen,
	.storage_name = "none",
};
