/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sizes of a replay's tables. A running weir forgets flows when its tables are full; a replay must not, or its
 * figures would depend on the tables. So it makes an attempt, and if an entry was evicted while it still counted, it
 * makes another attempt with larger tables. Only numbers: whether there is enough memory is checked elsewhere. For
 * replay_run.c.
 */
#ifndef WEIR_HARNESS_SIZES_H
#define WEIR_HARNESS_SIZES_H

#include <stdint.h>

#include "base/diag.h"
#include "rules/ruleset.h"

/* In the units of the settings. */
struct weir_replay_sizes {
	uint32_t rows; /* per CPU */
	uint32_t connections, connection_flows;
	uint32_t ring_groups; /* per circuit breaker */
};

/* Entries that were evicted while they still counted. */
struct weir_replay_evictions {
	uint64_t flows, connections;
	uint64_t shared_groups; /* requests that a breaker could not distinguish: no evictions, but as harmful */
};

/* Four places for each flow and connection that can exist if every packet is a new one for every rule. The first try
 * may be too small.
 */
struct weir_replay_sizes weir_replay_first_sizes(const struct weir_ruleset *ruleset, uint64_t packets);

/* Enlarge the tables that were too small, or return -ENOMEM with a message if that is impossible. */
int weir_replay_grow(struct weir_replay_sizes *sizes, const struct weir_replay_evictions *evictions,
		     struct weir_diag *diag);

#endif
