/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which flows are in the tables now, and how full their windows are: the rows of all CPUs, combined. They are read
 * while packets are still counted, so a flow's figure may be off by what passed meanwhile.
 */
#ifndef WEIR_STATE_FLOWS_H
#define WEIR_STATE_FLOWS_H

#include "instance/instance.h"
#include "state/observe.h"

struct weir_flow_use {
	uint32_t rule_slot; /* WEIR_SLOT_UNKNOWN: more than one rule may own it, and the owner was not recorded */
	bool is_whole;	    /* a whole resource, without a key */
	bool has_key;	    /* `key` is known; false for flows that were not recorded */
	struct weir_flow_key key;
	bool is_wait; /* Throttling: units are us that the latest packet still has to wait, out of maxQueueingTimeMs */
	/* Spent in the current window; for AssociatedResource in the window of refResource. */
	uint64_t units;
	uint64_t occupied; /* for an occupy window: units of later buckets */
	/* `threshold` is known. False if rule_slot is not known; under an override, also if `key` is not. */
	bool has_threshold;
	/* In units, for this flow: an override's, or the value it had warmed up to when it was last evaluated. */
	uint64_t threshold;
};

/* How full a table of rows is. */
struct weir_table_use {
	uint64_t rows; /* rows whose windows are not empty, on the CPU with the most of them */
	uint64_t room; /* rows per CPU */
};

struct weir_flows {
	struct weir_flow_use *busiest; /* by units / threshold, then by units, descending */
	size_t count;		       /* at most the number that was asked for */
	uint64_t active;	       /* flows whose window is not empty */
	struct weir_table_use narrow, medium, wide;
};

/* The part of the threshold that is used; 0 if that is not known. */
double weir_flow_share(const struct weir_flow_use *use);

/* The `most` busiest flows, of one rule or of WEIR_ANY_RULE. For one rule, flows whose rule is not known are left out.
 * The caller owns *ret_flows.
 */
int weir_flows_read(const struct weir_instance *instance, uint32_t rule_slot, size_t most, struct weir_flows *ret_flows,
		    struct weir_diag *diag);
void weir_flows_free(struct weir_flows *flows);

#endif
