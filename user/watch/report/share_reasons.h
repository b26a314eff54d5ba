/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why a host may admit what it may of a threshold that hosts share, and what comes next: worked out from the rule's
 * ledger and from what the program holds, in words and for programs (`weir cluster explain`).
 */
#ifndef WEIR_REPORT_SHARE_REASONS_H
#define WEIR_REPORT_SHARE_REASONS_H

#include "report/shared_limits.h"

/* The view must be of this rule (weir_cluster_view_read). NULL: out of memory. docs/json.md has its fields. */
json_t *weir_share_explain(const struct weir_cluster_view *view, const struct weir_shared_view *rule);

#endif
