/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One flow of a rule with a key, as hosts share it: what a host has of it more or less than the rule's share, which is
 * that of all other flows. The differences of all hosts together are 0 or less, and the flow's own ledger sees to it;
 * so all together have no more of the flow than the rule's shares are [9]. Numbers are `base` and the difference.
 */
#ifndef WEIR_SHARES_FLOW_H
#define WEIR_SHARES_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "shares/share.h"

/* Above all thresholds (docs/rules.md: 10^13), so that no number is negative; WEIR_FLOW_BASE of the data plane. */
#define WEIR_CLUSTER_BASE (1ull << 44)

struct weir_flow_part {
	struct weir_share share;
	uint64_t said;	 /* enforced when the message under way was made */
	uint64_t told;	 /* the peak in it */
	uint64_t lowest; /* the lowest peak that the ledger may go by: of all messages since one was confirmed */
	uint64_t lack;	 /* what came of it more than the rule's share, per interval, in the latest round */
};

/* rule: the share of its rule on this host. A process begins with no difference; or it continues with a schedule. */
void weir_flow_begin(struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns);
void weir_flow_resume(struct weir_flow_part *flow, const struct weir_share *rule,
		      const struct weir_share_schedule *schedule, uint64_t now_ns);

/* The message of this round, after weir_share_advance() of the rule's share, and before its own message. */
void weir_flow_ask(struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns, uint64_t offered,
		   struct weir_share_ask *ret_ask);

/* The answer, after the rule's own. */
void weir_flow_take(struct weir_flow_part *flow, const struct weir_share *rule, const struct weir_share_answer *answer,
		    uint64_t asked_ns, uint64_t now_ns);

/* The flow is not shared any more. What it has more is given back; what it has less comes back by its schedule. */
void weir_flow_end(struct weir_flow_part *flow, uint64_t now_ns);

/* It has neither more nor less, and will not by itself. */
bool weir_flow_is_over(const struct weir_flow_part *flow);

/* How much of the rule's share the flow's ledger may count as given up. */
uint64_t weir_flow_lent(const struct weir_flow_part *flow);

/* Units per interval of this flow, as the data plane adds them up. */
uint64_t weir_flow_units(const struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns);

#endif
