/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What CPUs have counted in runs and not yet in the counters (struct weir_count_run, struct weir_drop_run). Whoever
 * reads counters of packets takes the runs first and reads the counters later: then a packet counts once, whether its
 * run ends in between or not, and no sum is ever less than a sum that was read before.
 */
#ifndef WEIR_PROGRAM_RUNS_H
#define WEIR_PROGRAM_RUNS_H

#include <stdint.h>

#include "weir_abi.h"

struct weir_cpu_runs {
	struct weir_count_run count;
	struct weir_drop_run drops;
};

/* Take the runs of all possible CPUs from map `totals`; without one (-1), there are none. The caller frees them.
 * Returns 0 or -errno, with no message.
 */
int weir_runs_take(int totals_fd, struct weir_cpu_runs **ret_runs);

/* Add the runs to counters that were read later: the values of all CPUs of an element of TOTALS, RULE_COUNTERS or
 * RESOURCE_COUNTERS.
 */
void weir_runs_add(const struct weir_cpu_runs *runs, enum weir_table_id table, uint32_t slot, void *values, int cpus);

#endif
