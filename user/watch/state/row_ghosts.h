/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How full the table of ghosts is: what flows have left behind that were pushed out of the flow tables
 * (weir_row_ghosts.h). Only looks on.
 */
#ifndef WEIR_STATE_ROW_GHOSTS_H
#define WEIR_STATE_ROW_GHOSTS_H

#include "instance/instance.h"

struct weir_row_ghosts_sum {
	uint64_t places;	   /* 0: no table that this version knows */
	uint64_t used;		   /* ghosts that count now */
	uint64_t displaced;	   /* since attach: lost to newer ones while they counted, ghosts too */
	uint64_t ghosts_displaced; /* of these, ghosts (bpf/kinds/ghosts.h) */
	uint64_t joined; /* since attach: found no slot, and joined an overflow window (whenFull: aggregate) */
};

/* From this part on the table is nearly full: sets fill unevenly, and the first ghosts are lost. */
#define WEIR_ROW_GHOSTS_NEARLY_FULL_PERCENT 80u

static inline bool weir_row_ghosts_are_nearly_full(const struct weir_row_ghosts_sum *sum)
{
	return sum->used * 100 >= sum->places * WEIR_ROW_GHOSTS_NEARLY_FULL_PERCENT && sum->places;
}

int weir_row_ghosts_look(const struct weir_instance *instance, struct weir_row_ghosts_sum *ret_sum,
			 struct weir_diag *diag);

#endif
