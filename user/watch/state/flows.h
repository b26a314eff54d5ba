/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which flows are in the tables now, and how full their windows are: the rows of all CPUs put together.
 * Read while packets continue, so that a flow's figure may be off by what passed in between.
 */
#ifndef WEIR_STATE_FLOWS_H
#define WEIR_STATE_FLOWS_H

#include "instance/instance.h"
#include "state/observe.h"

struct weir_flow_use {
	uint32_t rule_slot; /* WEIR_SLOT_UNKNOWN: more than one rule may own it, and it was not noted */
	bool is_whole;	    /* of a whole resource: there is no key */
	bool has_key;	    /* `key` is known: not of a flow that was not noted */
	struct weir_flow_key key;
	bool is_wait;	    /* Throttling: units are us that the latest packet has yet to wait, of maxQueueingTimeMs */
	uint64_t units;	    /* spent, in the window as it is now; of AssociatedResource in that of refResource */
	uint64_t occupied;  /* of an occupy window: units of buckets yet to come */
	bool has_threshold; /* `threshold` is known. Not if rule_slot is not; nor under an override, if `key` is not */
	uint64_t threshold; /* units, of this flow: an override's, or as it has warmed up, when it was last evaluated */
};

/* How full a table of rows is. */
struct weir_table_use {
	uint64_t rows; /* whose windows are not empty, on the CPU that has most of them */
	uint64_t room; /* rows of a CPU */
};

struct weir_flows {
	struct weir_flow_use *busiest; /* by units / threshold, then by units, falling */
	size_t count;		       /* at most what was asked for */
	uint64_t active;	       /* flows whose window is not empty */
	struct weir_table_use narrow, medium, wide;
};

/* The part of the threshold that is used; 0 where that is not known. */
double weir_flow_share(const struct weir_flow_use *use);

/* The busiest `most` flows, of a rule or of WEIR_ANY_RULE; of a rule, without those whose rule is not known. The caller
 * owns *ret_flows.
 */
int weir_flows_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most, struct weir_flows *ret_flows,
		    struct weir_diag *diag);
void weir_flows_free(struct weir_flows *flows);

#endif
