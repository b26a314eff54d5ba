/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a ledger divides a threshold, recalculated from its entries for people who ask why, in the same way as
 * share_out() of ledger.lua. Nothing here decides what a host may admit. Pure.
 */
#ifndef WEIR_SHARES_LEVEL_H
#define WEIR_SHARES_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shares/membership.h"

struct weir_level {
	uint64_t left_alone; /* reserved for hosts that are silent or gone, and for those of a lost ledger */
	uint64_t budget;     /* what remains to be given out */
	uint64_t wanted;     /* by all live hosts together */
	uint32_t live;
	bool is_scarce; /* the live hosts want more than the budget */
	uint64_t units; /* if scarce: no host gets more than this; a host that wants less gets what it wants */
	uint64_t spare; /* otherwise: what each host may have in addition to what it wants */
};

/* ret_due[i] is what is due to hosts[i]; 0 for a host that is not live. */
void weir_level_find(const struct weir_ledger_host *hosts, size_t count, uint64_t threshold, uint64_t owed,
		     struct weir_level *ret_level, uint64_t *ret_due);

#endif
