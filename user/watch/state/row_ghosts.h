/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How full the table of row ghosts is: what flows leave behind when they are evicted from the flow tables
 * (weir_row_ghosts.h). Only reads.
 */
#ifndef WEIR_STATE_ROW_GHOSTS_H
#define WEIR_STATE_ROW_GHOSTS_H

#include "instance/instance.h"

struct weir_row_ghosts_sum {
	uint64_t places;	   /* 0: there is no table that this version knows */
	uint64_t used;		   /* ghosts that still count */
	uint64_t displaced;	   /* since attach: replaced by newer ones while they still counted, including ghosts */
	uint64_t ghosts_displaced; /* those among them that are ghosts (bpf/kinds/ghosts.h) */
	uint64_t joined; /* since attach: flows without a slot that joined an overflow window (whenFull: aggregate) */
};

/* Above this the table is nearly full: sets fill unevenly, and the first ghosts are lost. */
#define WEIR_ROW_GHOSTS_NEARLY_FULL_PERCENT 80u

static inline bool weir_row_ghosts_are_nearly_full(const struct weir_row_ghosts_sum *sum)
{
	return sum->used * 100 >= sum->places * WEIR_ROW_GHOSTS_NEARLY_FULL_PERCENT && sum->places;
}

int weir_row_ghosts_look(const struct weir_instance *instance, struct weir_row_ghosts_sum *ret_sum,
			 struct weir_diag *diag);

#endif
