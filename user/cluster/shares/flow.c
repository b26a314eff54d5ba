// SPDX-License-Identifier: GPL-2.0-only
#include "shares/flow.h"

/* A flow never has more than the threshold, whatever a store says. */
static uint64_t most(const struct weir_share *rule)
{
	uint64_t left = rule->terms.threshold > rule->enforced ? rule->terms.threshold - rule->enforced : 0;

	return WEIR_CLUSTER_BASE + left;
}

static struct weir_share_terms terms_of(const struct weir_share *rule)
{
	return (struct weir_share_terms){
		.threshold = most(rule),
		.interval_ns = rule->terms.interval_ns,
		.may_fall_back = true, /* to a difference of 0; the rule's own share may fall back to 0, and end */
		.silent_ns = rule->terms.silent_ns,
		.base = WEIR_CLUSTER_BASE,
	};
}

void weir_flow_begin(struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns)
{
	const struct weir_share_terms terms = terms_of(rule);

	*flow = (struct weir_flow_part){.lowest = WEIR_CLUSTER_BASE};
	weir_share_begin(&flow->share, &terms, now_ns);
}

void weir_flow_resume(struct weir_flow_part *flow, const struct weir_share *rule,
		      const struct weir_share_schedule *schedule, uint64_t now_ns)
{
	const struct weir_share_terms terms = terms_of(rule);

	*flow = (struct weir_flow_part){.lowest = WEIR_CLUSTER_BASE};
	weir_share_resume(&flow->share, &terms, schedule, now_ns);
}

/* The amount of the flow that an idle host keeps, so that the first packets of new traffic pass. */
static uint64_t floor_of(const struct weir_share *rule)
{
	return rule->enforced / 50;
}

void weir_flow_ask(struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns, uint64_t offered,
		   struct weir_share_ask *ret_ask)
{
	const struct weir_share_terms terms = terms_of(rule);
	uint64_t units = weir_demand_measure(&flow->share.demand, now_ns, terms.interval_ns, offered, offered);

	if (units < floor_of(rule))
		units = floor_of(rule);
	flow->lack = units > rule->enforced ? units - rule->enforced : 0;
	if (units > rule->terms.threshold)
		units = rule->terms.threshold;
	weir_share_change(&flow->share, &terms, now_ns);
	weir_share_ask_for(&flow->share, now_ns, WEIR_CLUSTER_BASE - rule->enforced + units, ret_ask);
	ret_ask->threshold = rule->terms.threshold;
	flow->said = flow->share.enforced;
	/* If the ledger knows no peak, it assumes a difference of at least 0. */
	flow->reported = ret_ask->peak == WEIR_PEAK_UNKNOWN ? WEIR_CLUSTER_BASE : (uint64_t)ret_ask->peak;
	if (flow->reported < flow->lowest)
		flow->lowest = flow->reported;
}

/* The answer must not be so low that the rule's share, which may have shrunk in the meantime, cannot compensate for it.
 * But what was enforced when the message was built is held anyway, so the flow may go down to that.
 */
static uint64_t at_least(const struct weir_flow_part *flow, const struct weir_share *rule, uint64_t units)
{
	uint64_t least = WEIR_CLUSTER_BASE - rule->enforced;

	if (flow->said < least)
		least = flow->said;
	return units > least ? units : least;
}

void weir_flow_take(struct weir_flow_part *flow, const struct weir_share *rule, const struct weir_share_answer *answer,
		    uint64_t asked_ns, uint64_t now_ns)
{
	struct weir_share_answer bearable = *answer;

	bearable.share = at_least(flow, rule, answer->share < most(rule) ? answer->share : most(rule));
	if (weir_share_take(&flow->share, &bearable, asked_ns, now_ns) && answer->lease_us > 0)
		flow->lowest = flow->reported;
}

void weir_flow_end(struct weir_flow_part *flow, uint64_t now_ns)
{
	struct weir_share_terms none = flow->share.terms;

	none.threshold = WEIR_CLUSTER_BASE;
	weir_share_change(&flow->share, &none, now_ns);
}

bool weir_flow_is_over(const struct weir_flow_part *flow)
{
	return flow->share.enforced == WEIR_CLUSTER_BASE && weir_share_next_ns(&flow->share) == UINT64_MAX;
}

uint64_t weir_flow_lent(const struct weir_flow_part *flow)
{
	uint64_t lowest = flow->lowest < flow->share.enforced ? flow->lowest : flow->share.enforced;

	return lowest < WEIR_CLUSTER_BASE ? WEIR_CLUSTER_BASE - lowest : 0;
}

uint64_t weir_flow_units(const struct weir_flow_part *flow, const struct weir_share *rule, uint64_t now_ns)
{
	uint64_t sum = weir_share_units(rule, now_ns) + flow->share.enforced;

	return sum > WEIR_CLUSTER_BASE ? sum - WEIR_CLUSTER_BASE : 0;
}
