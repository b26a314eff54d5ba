/* SPDX-License-Identifier: GPL-2.0-only */
/* What `weir flows` shows of an instance: the flows nearest to their limits, read once, and the JSON document for them.
 */
#ifndef WEIR_REPORT_BUSY_FLOWS_H
#define WEIR_REPORT_BUSY_FLOWS_H

#include <jansson.h>

#include "instance/instance.h"
#include "state/breakers.h"
#include "state/fair_shares.h"
#include "state/flows.h"
#include "state/open_connections.h"
#include "state/penalised_flows.h"
#include "words/figures.h"

struct weir_flows_view {
	const struct weir_instance *instance; /* the caller's */
	struct weir_flows flows;
	struct weir_connection_flows connections;
	struct weir_breaker_flows breakers;
	struct weir_penalised_flows penalties;
	struct weir_fair_flows children;
	bool has_connections, has_breakers, has_penalties, has_children; /* rules ask for them */
	bool has_windows; /* there are rules that count neither connections nor requests, or no rules that do */
};

/* The `most` busiest flows of each type, of one rule or of WEIR_ANY_RULE. Free *ret_view with weir_flows_view_free();
 * it keeps a pointer to `instance`.
 */
int weir_flows_view_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			 struct weir_flows_view *ret_view, struct weir_diag *diag);
void weir_flows_view_free(struct weir_flows_view *view);

/* The rule that the flow belongs to; NULL: not known. */
const struct weir_rule_info *weir_flow_rule(const struct weir_instance *instance, const struct weir_flow_use *use);

/* "destination 192.0.2.1", "(the whole resource)", "?"; for AssociatedResource also the resource whose traffic counts.
 */
const char *weir_flow_words(const struct weir_instance *instance, const struct weir_flow_use *use,
			    char words[WEIR_WORDS_BYTES]);

/* The flow's units or threshold: "20", or "12.5 ms" if it measures a wait. */
#define WEIR_AMOUNT_BYTES 32
const char *weir_flow_amount(const struct weir_flow_use *use, uint64_t amount, char words[WEIR_AMOUNT_BYTES]);

/* The part of its threshold that a flow has used; 0 without a threshold. */
double weir_connection_share(const struct weir_connection_use *use);

/* A struct weir_flow_use, weir_connection_use, weir_breaker_use, weir_penalty and weir_fair_flow; the context is the
 * instance.
 */
weir_describer weir_describe_flow_use, weir_describe_connection_use, weir_describe_breaker_use, weir_describe_penalty,
	weir_describe_fair_flow;

/* What `weir flows --json` prints (docs/json.md). NULL: out of memory. */
json_t *weir_flows_describe(const struct weir_flows_view *view);

/* The same with at most this many flows of each type. */
json_t *weir_flows_describe_most(const struct weir_flows_view *view, size_t most);

#endif
