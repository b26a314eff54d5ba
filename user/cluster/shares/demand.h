/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much of a threshold a host could use: the units offered per interval, and a little more. Normally the demand is
 * measured over half an interval, so that random variation has little effect. A host that blocks, and is now offered
 * far more than that, uses its latest round instead. This has no influence on safety: a host may ask for any amount.
 */
#ifndef WEIR_SHARES_DEMAND_H
#define WEIR_SHARES_DEMAND_H

#include <stdint.h>

struct weir_demand {
	/* Counts at times that are a sixteenth of an interval apart, or a round if that is longer; the newest is last.
	 */
	struct weir_demand_sample {
		uint64_t at_ns;
		uint64_t offered;
	} past[10];
	uint32_t count;
	struct weir_demand_sample latest; /* in the previous round */
	uint64_t blocked;
};

/* The demand in units per interval. offered and blocked are totals that only grow. The first call has nothing to
 * compare with, and asks for 1.
 */
uint64_t weir_demand_measure(struct weir_demand *demand, uint64_t now_ns, uint64_t interval_ns, uint64_t offered,
			     uint64_t blocked);

#endif
