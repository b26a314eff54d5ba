/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `weir doctor` learns about a store from its answers: its version, and how its clock runs beside ours. Nothing
 * here decides what a host may admit. Pure.
 */
#ifndef WEIR_SHARES_HEALTH_H
#define WEIR_SHARES_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest Redis that the script is tested with: docs/cluster.md. A Valkey is as new as the Redis it says it is. */
#define WEIR_STORE_MAJOR_MIN 6

struct weir_store_version {
	bool is_valkey;
	unsigned int redis_major; /* what it can do, by Redis's numbers */
	char text[24];		  /* its own: "7.0.15" */
};

/* From the answer to INFO. False: it names no version. */
bool weir_store_read_version(const char *info, struct weir_store_version *ret_version);

/* May it throw away what it has when its memory is full, and so the ledger? From the answer to INFO. */
bool weir_store_may_evict(const char *info);

/* It was asked for its time at sent_ns, and the answer came at received_ns, both by our clock. */
struct weir_clock_reading {
	uint64_t sent_ns, received_ns;
	uint64_t store_us;
};

/* The most informative one: that which took least. `count` is 1 or more. */
const struct weir_clock_reading *weir_clock_best(const struct weir_clock_reading *readings, size_t count);

/*
 * How much faster its clock runs than ours, in parts per million, and by how much that may be wrong: the answer was
 * given at any time between sent_ns and received_ns. The second reading must be sent after the first has come.
 */
double weir_clock_drift_ppm(const struct weir_clock_reading *first, const struct weir_clock_reading *second,
			    double *ret_error_ppm);

#endif
