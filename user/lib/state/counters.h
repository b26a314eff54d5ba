/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room state: reading an instance without touching it: its counters (this header), its busiest flows, its connections,
 * and whatever on this host would stop or distort a limit (examine.h). Only the room report and commands include it.
 *
 * The counters of an instance, summed over all CPUs. Packets are counted while they are read, so the figures of one
 * reading are from slightly different moments.
 */
#ifndef WEIR_STATE_COUNTERS_H
#define WEIR_STATE_COUNTERS_H

#include "instance/instance.h"
#include "program/runs.h"

/* Does any resource match outgoing packets? These have separate counters. */
bool weir_limits_out(const struct weir_instance *instance);

/* The directions of a rule (WEIR_MATCHES_IN and _OUT), which are its resource's. A system rule is for incoming packets.
 */
uint32_t weir_rule_directions(const struct weir_instance *instance, const struct weir_rule_info *rule);

#define WEIR_MINUTE 60

/* The counters of a resource, by slot. */
struct weir_resource_sum {
	struct weir_tally passed, blocked;
	/* packets in each of the last 60 seconds; the last entry is the current, incomplete second */
	uint64_t passed_by_second[WEIR_MINUTE];
	uint64_t blocked_by_second[WEIR_MINUTE];
};

struct weir_counters {
	uint64_t now_ns;		     /* when they were read, CLOCK_MONOTONIC */
	struct weir_totals totals, out;	     /* for incoming and for outgoing packets */
	struct weir_rule_counters *rules;    /* by slot */
	struct weir_rule_answers *answers;   /* by slot; zeros where nothing is answered */
	struct weir_resource_sum *resources; /* by slot */
	struct weir_cpu_runs *runs;	     /* only used while they are read */
};

/* Of all kinds together. */
uint64_t weir_answers_sent(const struct weir_rule_answers *answers);

/* The caller owns *ret_counters. */
int weir_counters_read(const struct weir_instance *instance, struct weir_counters *ret_counters,
		       struct weir_diag *diag);
void weir_counters_free(struct weir_counters *counters);

/* Only the counters of all packets: `totals` and `out`. They are zero for an instance of another version of weir that
 * stores them differently.
 */
int weir_totals_read(const struct weir_instance *instance, struct weir_counters *ret_counters);

#endif
