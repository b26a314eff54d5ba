/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows that lend, as they are now: what the tables of rules that lend hold of each flow. For flows.c, which knows
 * whose they are. Read while packets go on.
 */
#ifndef WEIR_STATE_LENDING_WINDOWS_H
#define WEIR_STATE_LENDING_WINDOWS_H

#include "instance/instance.h"

struct weir_borrowing_use {
	uint32_t slot;	   /* of a rule that such cells can be of */
	bool is_ambiguous; /* ... and they can be of another one, too */
	uint32_t tag, set; /* of the flow; 0 of a whole resource */
	uint64_t units;	   /* in the window as it is now */
	uint64_t borrowed; /* in buckets yet to come */
};

/* Units of one bucket, counted as the program counts them: from a ring before time zero. */
uint64_t weir_borrowing_units(const struct weir_borrowing *flow, uint32_t tag, const struct weir_rule_info *rule,
			      uint64_t bucket);

bool weir_borrowing_is_used(const struct weir_instance *instance);

/* Show each flow whose windows are not all empty to `add`. Returns 0 or -errno. */
typedef void weir_borrowing_add(const struct weir_borrowing_use *use, void *data);
int weir_borrowing_scan(const struct weir_instance *instance, weir_borrowing_add *add, void *data);

#endif
