// SPDX-License-Identifier: GPL-2.0-only
#include "shares/demand.h"

#include <string.h>

#include "base/util.h"

static uint64_t per_interval(const struct weir_demand_sample *from, const struct weir_demand_sample *to,
			     uint64_t interval_ns)
{
	if (to->at_ns <= from->at_ns)
		return 0;
	return (uint64_t)((double)(to->offered - from->offered) * (double)interval_ns /
			  (double)(to->at_ns - from->at_ns));
}

static void keep(struct weir_demand *demand, const struct weir_demand_sample *sample, uint64_t interval_ns)
{
	uint32_t room = ARRAY_SIZE(demand->past);

	if (demand->count > 0 && sample->at_ns - demand->past[demand->count - 1].at_ns < interval_ns / 16)
		return;
	if (demand->count == room) {
		memmove(demand->past, demand->past + 1, (room - 1) * sizeof(demand->past[0]));
		demand->count--;
	}
	demand->past[demand->count++] = *sample;
}

uint64_t weir_demand_measure(struct weir_demand *demand, uint64_t now_ns, uint64_t interval_ns, uint64_t offered,
			     uint64_t blocked)
{
	struct weir_demand_sample now = {.at_ns = now_ns, .offered = offered};
	uint64_t units = 0, units_last_round;

	if (demand->count > 0) {
		uint32_t since = demand->count - 1;

		/* From the newest count that is at least half an interval old, or else the oldest one. Half, because a
		 * host that has become idle should give back soon: what it gives back rests for an interval.
		 */
		while (since > 0 && now_ns - demand->past[since].at_ns < interval_ns / 2)
			since--;
		units = per_interval(&demand->past[since], &now, interval_ns);
		units_last_round = per_interval(&demand->latest, &now, interval_ns);
		/* An increase of a quarter is hardly random. */
		if (blocked > demand->blocked && units_last_round > units + units / 4)
			units = units_last_round;
	}
	keep(demand, &now, interval_ns);
	demand->latest = now;
	demand->blocked = blocked;
	return units + units / 64 + 1;
}
