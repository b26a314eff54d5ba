/* SPDX-License-Identifier: GPL-2.0-only */
/* The flows that rules with blockDurationInMs have penalised now, and for how long yet. */
#ifndef WEIR_STATE_PENALISED_FLOWS_H
#define WEIR_STATE_PENALISED_FLOWS_H

#include "instance/instance.h"
#include "program/penalty_map.h"

/* Has the instance any such rule? */
bool weir_penalties_are_given(const struct weir_instance *instance);

struct weir_penalised_flows {
	struct weir_penalty *longest; /* by the time left, falling */
	size_t count;		      /* at most what was asked for */
	uint64_t active;	      /* penalties that are running */
	uint64_t *by_rule;	      /* of these, by rule slot */
};

/* Show each penalty that is running. Where its words are it can be ended, if that was asked for: program/penalty_map.h
 * has how.
 */
int weir_penalties_each(const struct weir_instance *instance, bool writes, weir_penalty_visit *visit, void *data,
			struct weir_diag *diag);

/* End the penalties that were pushed out of a full table, with all else that flows have left behind so: nobody knows
 * whose each is.
 */
int weir_penalties_lay_ghosts(const struct weir_instance *instance, struct weir_diag *diag);

/* The `most` penalties of a rule, or of WEIR_ANY_RULE, that last longest yet. The caller owns *ret_flows. */
int weir_penalties_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most,
			struct weir_penalised_flows *ret_flows, struct weir_diag *diag);
void weir_penalised_flows_free(struct weir_penalised_flows *flows);

#endif
