/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The circuit breakers of an instance: those of whole rules, and those of flows that are not closed. Their words are
 * interpreted in core (tables/entry_state.h).
 */
#ifndef WEIR_STATE_BREAKERS_H
#define WEIR_STATE_BREAKERS_H

#include "instance/instance.h"
#include "tables/entry_state.h"

/* Does the instance have any? */
bool weir_has_breaker_rules(const struct weir_instance *instance);

/* The sums for all rules, by slot; zeros for a rule that is not a breaker. The caller frees *ret_sums. */
int weir_breakers_read(const struct weir_instance *instance, struct weir_breaker_sum **ret_sums,
		       struct weir_diag *diag);

struct weir_breaker_use {
	uint32_t rule_slot;
	struct weir_flow_key key; /* meaningless if the rule has no key */
	struct weir_breaker_view view;
	double share; /* of the threshold that its evaluated value is */
};

struct weir_breaker_flows {
	struct weir_breaker_use
		*most; /* first open, then half-open, then closed ones; within each by their evaluated value */
	size_t count;  /* at most the number that was asked for */
	uint64_t open, half_open; /* totals over all flows */
};

/* The caller owns *ret_flows. */
int weir_breakers_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			     struct weir_breaker_flows *ret_flows, struct weir_diag *diag);
void weir_breaker_flows_free(struct weir_breaker_flows *flows);

#endif
