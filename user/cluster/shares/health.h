/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What `weir doctor` learns about a store from its answers: its version, and how fast its clock runs compared with
 * ours. Nothing here decides what a host may admit. Pure.
 */
#ifndef WEIR_SHARES_HEALTH_H
#define WEIR_SHARES_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The oldest Redis version that the script is tested with: docs/cluster.md. For a Valkey, the Redis version that it
 * claims to match counts.
 */
#define WEIR_STORE_MAJOR_MIN 6

struct weir_store_version {
	bool is_valkey;
	unsigned int redis_major; /* its capabilities, as a Redis version */
	char text[24];		  /* its own version: "7.0.15" */
};

/* Parse the answer to INFO. False: it contains no version. */
bool weir_store_read_version(const char *info, struct weir_store_version *ret_version);

/* May the store evict keys, and so the ledger, when its memory is full? Parses the answer to INFO. */
bool weir_store_may_evict(const char *info);

/* A reading of the store's clock: the request left at sent_ns, and the answer arrived at received_ns, both by our
 * clock.
 */
struct weir_clock_reading {
	uint64_t sent_ns, received_ns;
	uint64_t store_us;
};

/* The most precise reading, which is the one that took least time. `count` is 1 or more. */
const struct weir_clock_reading *weir_clock_best(const struct weir_clock_reading *readings, size_t count);

/*
 * How much faster the store's clock runs than ours, in parts per million, and the error bound: the store may have
 * answered at any time between sent_ns and received_ns. The second reading must be sent after the first has arrived.
 */
double weir_clock_drift_ppm(const struct weir_clock_reading *first, const struct weir_clock_reading *second,
			    double *ret_error_ppm);

#endif
