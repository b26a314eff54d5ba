/* SPDX-License-Identifier: GPL-2.0-only */
/* What `weir stats` shows of an instance: all counters, read once, and the JSON document for them. */
#ifndef WEIR_REPORT_STATS_H
#define WEIR_REPORT_STATS_H

#include <jansson.h>

#include "instance/instance.h"
#include "pace/pace.h"
#include "state/breakers.h"
#include "state/counters.h"
#include "state/fair_shares.h"
#include "state/open_connections.h"
#include "state/penalised_flows.h"
#include "words/figures.h"

struct weir_stats_view {
	const struct weir_instance *instance; /* the caller's */
	struct weir_counters counters;
	struct weir_connection_figures *connections; /* by rule slot */
	struct weir_penalised_flows penalties;
	struct weir_breaker_sum *breakers; /* by rule slot */
	struct weir_fair_uses fair;	   /* contended parents of rules with fairBy */
	bool paces;			   /* the instance holds packets back, and their number can be read */
	bool has_pace;			   /* ... and was read */
	struct weir_pace_state pace;
};

/* Read everything; *diag may hold a warning after success. Free *ret_view with weir_stats_free(); it keeps a pointer to
 * `instance`.
 */
int weir_stats_read(const struct weir_instance *instance, struct weir_stats_view *ret_view, struct weir_diag *diag);
void weir_stats_free(struct weir_stats_view *view);

/* Packets of all verdicts. A packet has exactly one verdict, so this equals `seen`, except for packets that arrived
 * during the reading.
 */
uint64_t weir_verdict_sum(const struct weir_totals *totals);

/* The counters of rules, each in documents, tables and metrics: a new one is a row. */
extern const struct weir_column weir_rule_counters[], weir_rule_answers[];

/* Resources and rules by their slots (uint32_t); the context is the view. Penalties and fair shares
 * have tables of their own.
 */
weir_describer weir_describe_resource, weir_describe_rule_counters, weir_describe_rule_penalties,
	weir_describe_rule_shares;

/* What `weir stats --json` prints (docs/json.md). NULL: out of memory. */
json_t *weir_stats_describe(const struct weir_stats_view *view);

#endif
