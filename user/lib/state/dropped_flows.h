/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which flows lost packets, or would have: the counts of all CPUs, combined. They are read while packets are still
 * counted. bpf/observe/top_drops.h says how exact the figures are.
 */
#ifndef WEIR_STATE_DROPPED_FLOWS_H
#define WEIR_STATE_DROPPED_FLOWS_H

#include "instance/instance.h"
#include "program/top_drops.h"

/* A filter for dropped flows. */
struct weir_drops_wanted {
	const char *rule;  /* name of a rule; NULL: any rule */
	uint64_t since_ns; /* dropped since this time, CLOCK_MONOTONIC; 0: ever */
	size_t most;	   /* the maximum number: those with the most packets */
};

struct weir_drops {
	struct weir_dropped_flow *worst; /* by packets, descending; rule_slot is that of a rule in force */
	size_t count;
	uint64_t flows;		 /* known flows that match; dropped and would-be dropped ones count separately */
	uint64_t observed;	 /* the would-be dropped ones among them */
	uint64_t packets, bytes; /* of all these flows */
	uint64_t missed;	 /* no flow that is not known lost more packets than this */
	uint64_t now_ns;	 /* CLOCK_MONOTONIC time of the reading */
};

/* Map the counts of an instance, for all CPUs; weir_top_drops_unmap() unmaps them. */
int weir_top_drops_open(const struct weir_instance *instance, struct weir_top_drops *ret_top_drops,
			struct weir_diag *diag);

/* -EINVAL if there is no such rule. Free *ret_drops with weir_drops_free(). */
int weir_drops_read(const struct weir_instance *instance, const struct weir_drops_wanted *wanted,
		    struct weir_drops *ret_drops, struct weir_diag *diag);
void weir_drops_free(struct weir_drops *drops);

#endif
