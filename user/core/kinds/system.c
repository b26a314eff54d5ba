// SPDX-License-Identifier: GPL-2.0-only
/*
 * Kind SYSTEM: a rule goes by a signal of the whole host: load, CPU usage, the time of handshakes. For system rules
 * there are two more, InboundQPS and Concurrency, which are a window and a limit of connections. All of them are
 * written in a list of their own, which rules/system_rules.c reads.
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
