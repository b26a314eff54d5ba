/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a host could use of a threshold: what is offered in an interval, and a little more. A host asks by half an
 * interval, so that chance moves little; one that blocks, and is offered far more than that, by its latest round.
 * Nothing here is about safety: a host may ask for anything.
 */
#ifndef WEIR_SHARES_DEMAND_H
#define WEIR_SHARES_DEMAND_H

#include <stdint.h>

struct weir_demand {
	/* Counts at times that lie a sixteenth of an interval apart, or a round if that is longer; the newest last. */
	struct weir_demand_sample {
		uint64_t at_ns;
		uint64_t offered;
	} past[10];
	uint32_t count;
	struct weir_demand_sample latest; /* of the round before */
	uint64_t blocked;
};

/* Units per interval; offered and blocked are totals that only grow. The first call knows nothing, and asks for 1. */
uint64_t weir_demand_measure(struct weir_demand *demand, uint64_t now_ns, uint64_t interval_ns, uint64_t offered,
			     uint64_t blocked);

#endif
