/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of offenders of a program, memory-mapped: what each CPU has counted of the flows that were dropped
 * (bpf/offenders.h). Nothing here counts.
 */
#ifndef WEIR_PROGRAM_OFFENDERS_H
#define WEIR_PROGRAM_OFFENDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

struct weir_offenders {
	struct weir_offender_set *sets; /* set_count */
	struct weir_offender *whose;	/* set_count * WEIR_OFFENDER_WAYS */
	uint32_t set_count;
};

/* Map both tables, which have so many sets, of all CPUs. 0, or -errno and nothing is mapped. Unmap what was; all zero
 * is fine.
 */
int weir_offenders_map(struct weir_offenders *ret_offenders, int sets_fd, int keys_fd, uint32_t set_count, bool writes);
void weir_offenders_unmap(struct weir_offenders *offenders);

/* What one CPU has counted of one flow. */
struct weir_offence {
	uint32_t rule_slot;
	bool is_observed;  /* none of these packets was dropped: the rule observes, or all rules do */
	bool is_estimated; /* by samples: the CPU had more to drop than it counts one by one */
	struct weir_flow_key key;
	uint64_t hash;		    /* of the flow under its rule */
	uint64_t packets, bytes;    /* since first_ns */
	uint64_t missed;	    /* at most so many packets more, before */
	uint64_t first_ns, last_ns; /* CLOCK_MONOTONIC, some 17 ms early at most */
};

/* Show all of them. Times are told apart by now_ns, the program's clock now. */
typedef void weir_offence_visit(const struct weir_offence *offence, void *data);
void weir_offenders_visit(const struct weir_offenders *offenders, uint64_t now_ns, weir_offence_visit *visit,
			  void *data);

/* At most so many packets of the flow were dropped without being counted, on all CPUs together. */
uint64_t weir_offence_missed(const struct weir_offenders *offenders, const struct weir_offence *offence);

/* No flow that is not shown has lost more packets, on all CPUs together. */
uint64_t weir_offenders_missed(const struct weir_offenders *offenders);

/* Forget the flows of these slots, which another rule is to have. */
void weir_offenders_forget(const struct weir_offenders *offenders, const bool *is_slot_forgotten, uint32_t slots);

#endif
