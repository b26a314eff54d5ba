/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Penalties, for the reference model: docs/semantics.md, 11. A flow of a rule with blockDurationInMs remembers its
 * latest penalty, nothing else. Written from the text alone.
 */
#ifndef WEIR_TEST_MODEL_PENALTY_H
#define WEIR_TEST_MODEL_PENALTY_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/ruleset.h"

struct model_penalty {
	bool was_any;
	uint64_t end_ns;  /* of the latest */
	uint64_t last_ms; /* how long it was */
};

/* Is the flow penalised at this time? */
bool model_penalty_runs(const struct model_penalty *penalty, uint64_t time_ns);

/* The rule has blocked a packet of a flow that was not penalised. */
void model_penalty_begin(struct model_penalty *penalty, const struct weir_ruleset_rule *rule, uint64_t time_ns);

#endif
