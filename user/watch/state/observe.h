/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flows that all CPUs share, as they are now: one function a kind of limit (include/weir_kinds.def), each in a file of
 * its own. For flows.c, which knows whose they are. Read while packets continue.
 */
#ifndef WEIR_STATE_OBSERVE_H
#define WEIR_STATE_OBSERVE_H

#include "instance/instance.h"

#define WEIR_SLOT_UNKNOWN 0xffffffffu

struct weir_observed {
	uint32_t slot;			     /* of the rule; WEIR_SLOT_UNKNOWN: it may be of several */
	bool is_sure;			     /* it is of no other, whatever was noted */
	uint32_t tag, set;		     /* of the flow; 0 of a whole resource */
	uint64_t units, occupied, threshold; /* as struct weir_flow_use has them (flows.h) */
	bool has_threshold;		     /* false: the rule's, or its override's */
	bool is_wait;
};

/* Show each flow that has used anything to `add`. allowed: what each rule allows now, by place. Returns 0 or -errno. */
typedef void weir_observed_add(const struct weir_observed *found, void *data);
typedef int weir_observe(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add,
			 void *data);

#define SHARED_KIND(identifier, name, ...) weir_observe weir_observe_##name;
#define KIND(...)
#include "weir_kinds.def"

#endif
