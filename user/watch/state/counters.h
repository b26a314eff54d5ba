/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room state: looking on without touching: an instance's counters (this header), its busiest flows, its connections,
 * and what on this host would stop or bend a limit (examine.h). Only the room report and commands include it.
 *
 * The counters of an instance, added up over all CPUs. Packets continue while they are read, so that
 * figures of one reading are of slightly different moments.
 */
#ifndef WEIR_STATE_COUNTERS_H
#define WEIR_STATE_COUNTERS_H

#include "instance/instance.h"

#define WEIR_MINUTE 60

/* What a resource counted, by slot. */
struct weir_resource_sum {
	struct weir_tally passed, blocked;
	/* packets in each of the last 60 seconds; the last entry is the present second, not over yet */
	uint64_t passed_by_second[WEIR_MINUTE];
	uint64_t blocked_by_second[WEIR_MINUTE];
};

struct weir_counters {
	uint64_t now_ns;		     /* when they were read, CLOCK_MONOTONIC */
	struct weir_totals totals, out;	     /* of what comes in, and of what goes out */
	struct weir_rule_counters *rules;    /* by slot */
	struct weir_resource_sum *resources; /* by slot */
};

/* The caller owns *ret_counters. */
int weir_counters_read(const struct weir_instance *instance, struct weir_counters *ret_counters,
		       struct weir_diag *diag);
void weir_counters_free(struct weir_counters *counters);

/* Those of all packets alone: `totals` and `out`. Zeros of an instance of another version of weir that has them in
 * another way.
 */
int weir_totals_read(const struct weir_instance *instance, struct weir_counters *ret_counters);

#endif
