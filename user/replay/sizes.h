/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How large the tables of a replay are. A running weir forgets flows when its tables are full; a replay must not, or
 * its figures would be those of its tables. So it is an attempt, and when something was evicted while it counted, the
 * next attempt has larger ones. Only numbers: whether there is memory for them is asked elsewhere. For replay.c.
 */
#ifndef WEIR_REPLAY_SIZES_H
#define WEIR_REPLAY_SIZES_H

#include <stdint.h>

#include "base/diag.h"
#include "rules/ruleset.h"

/* As the settings count them. */
struct weir_replay_sizes {
	uint32_t rows; /* a CPU */
	uint32_t connections, connection_flows;
	uint32_t ring_groups; /* of each circuit breaker */
};

/* What was pushed out while it counted. */
struct weir_replay_evictions {
	uint64_t flows, connections;
	uint64_t shared_groups; /* requests that a circuit breaker could not distinguish: not an eviction, but as bad */
};

/* Four places for each flow and connection there can be, were every packet a new one for every rule; the first try need
 * not be right.
 */
struct weir_replay_sizes weir_replay_first_sizes(const struct weir_ruleset *ruleset, uint64_t packets);

/* Make what was too small larger, or say that it cannot be (-ENOMEM). */
int weir_replay_grow(struct weir_replay_sizes *sizes, const struct weir_replay_evictions *evictions,
		     struct weir_diag *diag);

#endif
