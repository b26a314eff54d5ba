/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Planned times of rules with Throttling, as they are now: which flows have packets that are due later, or so lately
 * that the next one would have to wait. For flows.c, which knows whose they are. Read while packets go on.
 */
#ifndef WEIR_STATE_PLANNED_H
#define WEIR_STATE_PLANNED_H

#include "instance/instance.h"

struct weir_planned_use {
	uint32_t slot;	   /* of the only rule that it can be of, or WEIR_PLANNED_ANY */
	uint32_t tag, set; /* of the flow; 0 of a whole resource */
	uint64_t wait_ns;  /* how long its latest packet has yet to wait; 0: not at all, but the next one would */
};

#define WEIR_PLANNED_ANY 0xffffffffu

/* Some rule throttles. */
bool weir_planned_is_used(const struct weir_instance *instance);

/* Show them to `add`. units: what each rule allows now, by place. Returns 0 or -errno. */
typedef void weir_planned_add(const struct weir_planned_use *use, void *data);
int weir_planned_scan(const struct weir_instance *instance, const uint64_t *units, weir_planned_add *add, void *data);

#endif
