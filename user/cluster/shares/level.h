/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a ledger divides a threshold, worked out again from its entries for people who ask why, as share_out() of
 * ledger.lua does. Nothing here decides what a host may admit. Pure.
 */
#ifndef WEIR_SHARES_LEVEL_H
#define WEIR_SHARES_LEVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shares/membership.h"

struct weir_level {
	uint64_t left_alone; /* of the threshold: for hosts that are silent or gone, and for those of a lost ledger */
	uint64_t budget;     /* what is left to give out */
	uint64_t wanted;     /* by live hosts together */
	uint32_t live;
	bool is_scarce; /* they want more than there is */
	uint64_t units; /* if so: nobody gets more than this, who wants less gets that */
	uint64_t spare; /* else: what each may have beside what it wants */
};

/* ret_due[i], of hosts[i]: what is due to it; 0 of one that is not live. */
void weir_level_find(const struct weir_ledger_host *hosts, size_t count, uint64_t threshold, uint64_t owed,
		     struct weir_level *ret_level, uint64_t *ret_due);

#endif
