/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which flows were dropped, or would have been: what all CPUs have counted of them, put together. Read while packets go
 * on. How exact the figures are is said in bpf/observe/top_drops.h.
 */
#ifndef WEIR_STATE_DROPPED_FLOWS_H
#define WEIR_STATE_DROPPED_FLOWS_H

#include "instance/instance.h"
#include "program/top_drops.h"

/* Which of them. */
struct weir_drops_wanted {
	const char *rule;  /* its name; NULL: of any */
	uint64_t since_ns; /* dropped since then, CLOCK_MONOTONIC; 0: ever */
	size_t most;	   /* that many at most: those with most packets */
};

struct weir_drops {
	struct weir_dropped_flow *worst; /* by packets, falling; rule_slot is of a rule in force */
	size_t count;
	uint64_t flows;		 /* all that are wanted and known: dropped, and would-be dropped, each for itself */
	uint64_t observed;	 /* of these, the would-be dropped */
	uint64_t packets, bytes; /* of all these */
	uint64_t missed;	 /* a flow that is not known lost no more packets */
	uint64_t now_ns;	 /* CLOCK_MONOTONIC, when they were read */
};

/* Map what an instance has counted, of all CPUs; weir_top_drops_unmap() ends it. */
int weir_top_drops_open(const struct weir_instance *instance, struct weir_top_drops *ret_top_drops,
			struct weir_diag *diag);

/* -EINVAL when there is no such rule. weir_drops_free() frees *ret_drops. */
int weir_drops_read(const struct weir_instance *instance, const struct weir_drops_wanted *wanted,
		    struct weir_drops *ret_drops, struct weir_diag *diag);
void weir_drops_free(struct weir_drops *drops);

#endif
