/* SPDX-License-Identifier: GPL-2.0-only */
/* House cluster: one limit for many hosts (docs/cluster.md), its command and its calculator. */
#ifndef WEIR_CLUSTER_ROWS_H
#define WEIR_CLUSTER_ROWS_H

#include "cli/command.h"
#include "cluster/ledgers.h"
#include "control/calculator.h"

extern const struct weir_command_entry weir_cluster_entry;
extern const struct weir_calculator weir_cluster_calculator;

/*
 * Why a host may admit its present part of a shared threshold, and what comes next, in words and for programs (`weir
 * cluster explain`). Derived from the rule's ledger and from the state of the program. The view must include this rule
 * (weir_cluster_view_read). NULL: out of memory. docs/json.md has the fields.
 */
json_t *weir_share_explain(const struct weir_cluster_view *view, const struct weir_shared_view *rule);

#endif
