/* SPDX-License-Identifier: GPL-2.0-only */
/* The flows that rules with blockDurationInMs currently penalise, and for how much longer. */
#ifndef WEIR_STATE_PENALISED_FLOWS_H
#define WEIR_STATE_PENALISED_FLOWS_H

#include "instance/instance.h"
#include "program/penalty_map.h"

/* Does the instance have any such rule? */
bool weir_penalties_are_given(const struct weir_instance *instance);

struct weir_penalised_flows {
	struct weir_penalty *longest; /* by the time left, descending */
	size_t count;		      /* at most the number that was asked for */
	uint64_t active;	      /* penalties that are in force */
	uint64_t *by_rule;	      /* the number of these, by rule slot */
};

/* Call `visit` for each penalty in force. With `writes`, the visitor can end a penalty through its words, as
 * program/penalty_map.h describes.
 */
int weir_penalties_each(const struct weir_instance *instance, bool writes, weir_penalty_visit *visit, void *data,
			struct weir_diag *diag);

/* End the penalties that were evicted from a full table. This removes all ghosts that evicted flows have left, since it
 * is not known whose each is.
 */
int weir_penalties_lay_ghosts(const struct weir_instance *instance, struct weir_diag *diag);

/* The `most` penalties with the most time left, of one rule or of WEIR_ANY_RULE. The caller owns *ret_flows. */
int weir_penalties_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			struct weir_penalised_flows *ret_flows, struct weir_diag *diag);
void weir_penalised_flows_free(struct weir_penalised_flows *flows);

#endif
