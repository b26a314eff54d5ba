/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One flow, as hosts share it, of a rule with a key. A host may have more or less of the flow than the rule's share,
 * which applies to all other flows. The sum of these differences over all hosts is 0 or less; the flow's own ledger
 * ensures this. So all hosts together have no more of the flow than the sum of the rule's shares [9]. Numbers are
 * stored as `base` plus the difference.
 */
#ifndef WEIR_SHARES_FLOW_H
#define WEIR_SHARES_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "shares/share.h"

/* Larger than any threshold (docs/rules.md: 10^13), so that no number is negative. The same as WEIR_FLOW_BASE of the
 * data plane.
 */
#define WEIR_CLUSTER_BASE (1ull << 44)

struct weir_flow_part {
	struct weir_share share;
	uint64_t said;	   /* enforced when the current message was built */
	uint64_t reported; /* the peak in that message */
	uint64_t lowest;   /* the lowest peak that the ledger may be using: over all messages since one was confirmed */
	uint64_t lack;	   /* units per interval offered beyond the rule's share in the latest round */
};

/* rule: the share of the flow's rule on this host. A process begins without a difference, or continues with a schedule.
 */
void weir_flow_begin(struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns);
void weir_flow_resume(struct weir_flow_part *flow, const struct weir_share *rule,
		      const struct weir_share_schedule *schedule, uint64_t now_ns);

/* The message of this round. Call it after weir_share_advance() of the rule's share, and before building the rule's own
 * message.
 */
void weir_flow_ask(struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns, uint64_t offered,
		   struct weir_share_ask *ret_ask);

/* Take the flow's answer. Call it after taking the rule's own answer. */
void weir_flow_take(struct weir_flow_part *flow, const struct weir_share *rule, const struct weir_share_answer *answer,
		    uint64_t asked_ns, uint64_t now_ns);

/* The flow is no longer shared. The host gives back what it has beyond the rule's share; what it has given up comes
 * back according to the schedule.
 */
void weir_flow_end(struct weir_flow_part *flow, uint64_t now_ns);

/* The difference is zero, and will not change by itself. */
bool weir_flow_is_over(const struct weir_flow_part *flow);

/* How much of the rule's share the flow's ledger may count as given up. */
uint64_t weir_flow_lent(const struct weir_flow_part *flow);

/* Units per interval of this flow, calculated in the same way as in the data plane. */
uint64_t weir_flow_units(const struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns);

#endif
