/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a host may admit its present part of a shared threshold, and what comes next, in words and for programs (`weir
 * cluster explain`). Derived from the rule's ledger and from the state of the program.
 */
#ifndef WEIR_CLUSTER_SHARE_REASONS_H
#define WEIR_CLUSTER_SHARE_REASONS_H

#include "cluster/ledgers.h"

/* The view must include this rule (weir_cluster_view_read). NULL: out of memory. docs/json.md has the fields. */
json_t *weir_share_explain(const struct weir_cluster_view *view, const struct weir_shared_view *rule);

#endif
