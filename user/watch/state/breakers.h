/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The circuit breakers of an instance: those of whole rules, and the flows that are shut out. What the words mean is
 * core's (tables/breaker_state.h).
 */
#ifndef WEIR_STATE_BREAKERS_H
#define WEIR_STATE_BREAKERS_H

#include "instance/instance.h"
#include "tables/breaker_state.h"

/* Has the instance any? */
bool weir_has_breaker_rules(const struct weir_instance *instance);

/* Sums of all rules, by slot; of a rule that is none zeros. The caller frees *ret_sums. */
int weir_breakers_read(const struct weir_instance *instance, struct weir_breaker_sum **ret_sums,
		       struct weir_diag *diag);

struct weir_breaker_use {
	uint32_t rule_slot;
	struct weir_flow_key key; /* of no meaning when the rule has none */
	struct weir_breaker_view view;
};

struct weir_breaker_flows {
	struct weir_breaker_use
		*most;		  /* open ones, half-open ones, closed ones; each by what they were evaluated against */
	size_t count;		  /* at most what was asked for */
	uint64_t open, half_open; /* of all */
};

/* The caller owns *ret_flows. */
int weir_breakers_read_flows(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			     struct weir_breaker_flows *ret_flows, struct weir_diag *diag);
void weir_breaker_flows_free(struct weir_breaker_flows *flows);

#endif
