/* SPDX-License-Identifier: GPL-2.0-only */
/* The schedule of a share, as a map stores it for the program: two copies, and a word that selects the one in force. */
#ifndef WEIR_TABLES_SHARE_SCHEDULE_H
#define WEIR_TABLES_SHARE_SCHEDULE_H

#include <stdint.h>

#include "weir_abi.h"

/* Units per interval that the program admits at a given time under this schedule. */
static inline uint64_t weir_share_schedule_units(uint64_t version, const struct weir_share_stages stages[2],
						 uint64_t now_ns)
{
	const struct weir_share_stages *in_force = &stages[version & 1];

	if (now_ns >= in_force->stops_ns)
		return 0;
	for (int stage = 0; stage < WEIR_SHARE_STAGES - 1; stage++)
		if (now_ns < in_force->until_ns[stage])
			return in_force->units[stage];
	return in_force->units[WEIR_SHARE_STAGES - 1];
}

/* The same for an entry of map `shares`. */
static inline uint64_t weir_share_in_force(const struct weir_shared_threshold *shared, uint64_t now_ns)
{
	return weir_share_schedule_units(shared->version, shared->stages, now_ns);
}

#endif
