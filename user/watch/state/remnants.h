/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How full the table of remnants is: what flows have left behind that were pushed out of the flow tables
 * (weir_remnants.h). Only looks on.
 */
#ifndef WEIR_STATE_REMNANTS_H
#define WEIR_STATE_REMNANTS_H

#include "instance/instance.h"

struct weir_remnants_sum {
	uint64_t places;	   /* 0: no table that this version knows */
	uint64_t used;		   /* remnants that count now */
	uint64_t displaced;	   /* since attach: lost to newer ones while they counted, ghosts too */
	uint64_t ghosts_displaced; /* of these, ghosts (bpf/ghosts.h) */
	uint64_t joined; /* since attach: found no place, and are counted by strangers (whenFull: aggregate) */
};

/* From this part on the table is nearly full: sets fill unevenly, and the first remnants are lost. */
#define WEIR_REMNANTS_NEARLY_FULL_PERCENT 80u

static inline bool weir_remnants_are_nearly_full(const struct weir_remnants_sum *sum)
{
	return sum->used * 100 >= sum->places * WEIR_REMNANTS_NEARLY_FULL_PERCENT && sum->places;
}

int weir_remnants_look(const struct weir_instance *instance, struct weir_remnants_sum *ret_sum, struct weir_diag *diag);

#endif
