/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of top drops of a program, memory-mapped: each CPU's counts of dropped flows (bpf/observe/top_drops.h).
 * Nothing here counts.
 */
#ifndef WEIR_PROGRAM_TOP_DROPS_H
#define WEIR_PROGRAM_TOP_DROPS_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

struct weir_top_drops {
	struct weir_top_drops_set *sets; /* set_count */
	struct weir_top_drop_key *whose; /* set_count * WEIR_TOP_DROPS_WAYS */
	uint32_t set_count;
	int totals_fd;
};

/* The maps that they are in. */
struct weir_top_drops_maps {
	int sets_fd, keys_fd;
	int totals_fd; /* for the runs that are not in their slots yet; borrowed */
};

/* Map both tables, which have set_count sets over all CPUs. 0, or -errno with nothing mapped. The unmap function
 * accepts a struct that is all zero.
 */
int weir_top_drops_map(struct weir_top_drops *ret_top_drops, const struct weir_top_drops_maps *maps, uint32_t set_count,
		       bool writes);
void weir_top_drops_unmap(struct weir_top_drops *top_drops);

/* What one CPU has counted for one flow. */
struct weir_dropped_flow {
	uint32_t rule_slot;
	bool is_observed;  /* these packets were not really dropped: the rule observes, or all rules do */
	bool is_estimated; /* from samples: the CPU had more to drop than it counts one by one */
	struct weir_flow_key key;
	uint64_t hash;		    /* of the flow under its rule */
	uint64_t packets, bytes;    /* since first_ns */
	uint64_t missed;	    /* at most this many more packets before first_ns */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC; up to some 17 ms too early */
};

/* Call `visit` for all of them, with the runs that CPUs are in: each drop is in the figures as soon as it is over.
 * now_ns, the program's clock now, is needed to interpret the stored times.
 */
typedef void weir_dropped_flow_visit(const struct weir_dropped_flow *dropped, void *data);
void weir_top_drops_visit(const struct weir_top_drops *top_drops, uint64_t now_ns, weir_dropped_flow_visit *visit,
			  void *data);

/* An upper bound on the flow's drops that were not counted, on all CPUs together. */
uint64_t weir_dropped_flow_missed(const struct weir_top_drops *top_drops, const struct weir_dropped_flow *dropped);

/* An upper bound on the drops of any flow that is not listed, on all CPUs together. */
uint64_t weir_top_drops_missed(const struct weir_top_drops *top_drops);

/* Forget the flows of these slots, which will get other rules. */
void weir_top_drops_forget(const struct weir_top_drops *top_drops, const bool *is_slot_forgotten, uint32_t slots);

#endif
