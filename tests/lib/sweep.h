/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A sweep of the connection tables, for tests: look at every connection there is, and count those of each flow.
 * What the flow's cells say, by which the program decides, must be the same whenever no packet is under way.
 */
#ifndef WEIR_TEST_SWEEP_H
#define WEIR_TEST_SWEEP_H

#include "rig.h"

struct sweep {
	uint64_t connections; /* that count now, in flows that are there */
	uint64_t flows;	      /* with a connection */
	uint64_t orphans;     /* connections whose flow has lost its place: they count nowhere */
};

/*
 * Fails the test unless for each flow and each rule the cells say what the sweep finds, no connection is in the table
 * twice, and no count is below zero. now_ns: the time of the latest packet.
 */
struct sweep sweep_check(const struct rig *rig, uint64_t now_ns);

/*
 * The same where two CPUs evicted flows at once. Then what one notes of a flow may go to the next one's figures, which
 * are not looked at; and one that was held up for longer than the other waited for it may leave a connection or two in
 * the rule's total, until the step is over.
 */
struct sweep sweep_check_evicted(const struct rig *rig, uint64_t now_ns);

/* How many connections of each rule, by place, count at this time by what is in the tables. */
void sweep_count(const struct rig *rig, uint64_t now_ns, uint64_t *ret_counts);

#endif
