/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The current flows that all CPUs share: one function for each kind of limit (include/weir_kinds.def), each in its own
 * file. For flows.c, which finds out whose flows they are. They are read while packets are still counted.
 */
#ifndef WEIR_STATE_OBSERVE_H
#define WEIR_STATE_OBSERVE_H

#include "instance/instance.h"

#define WEIR_SLOT_UNKNOWN 0xffffffffu

struct weir_observed {
	uint32_t slot;			     /* of the rule; WEIR_SLOT_UNKNOWN: it may belong to several */
	bool is_sure;			     /* it belongs to no other rule, whatever was recorded */
	uint32_t tag, set;		     /* of the flow; 0 for a whole resource */
	uint64_t units, occupied, threshold; /* with the same meaning as in struct weir_flow_use (flows.h) */
	bool has_threshold;		     /* false: the rule's threshold applies, or its override's */
	bool is_wait;
};

/* Pass each flow that has used anything to `add`. `allowed` is what each rule allows now, by place. Returns 0 or
 * -errno.
 */
typedef void weir_observed_add(const struct weir_observed *found, void *data);
typedef int weir_observe(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add,
			 void *data);

#define SHARED_KIND(identifier, name, ...) weir_observe weir_observe_##name;
#define KIND(...)
#include "weir_kinds.def"

#endif
