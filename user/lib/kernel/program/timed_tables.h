/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps of timed entries (weir_timed.h): reading them whole, and carrying entries over when a reload changes their
 * size. Returns 0 or -errno, with no message.
 */
#ifndef WEIR_PROGRAM_TIMED_TABLES_H
#define WEIR_PROGRAM_TIMED_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir_timed.h"

#define WEIR_TIMED_BATCH 4096 /* entries per system call; chosen, not derived */

/* Neither of the entry's orders is in force any more. */
bool weir_timed_is_over(const struct weir_timed *timed, uint64_t now_ns);

/* Call `visit` for all addresses, batch by batch. Stops at the first visit that does not return 0, and returns its
 * result.
 */
typedef int weir_timed_address_visit(const struct weir_timed_address *keys, struct weir_timed *values, __u32 count,
				     void *data);
int weir_timed_addresses_scan(int map_fd, weir_timed_address_visit *visit, void *data);

/* The same for prefixes, one by one. */
typedef int weir_timed_prefix_visit(const struct weir_timed_prefix *key, struct weir_timed *timed, void *data);
int weir_timed_prefixes_scan(int map_fd, weir_timed_prefix_visit *visit, void *data);

/* The number of entries in force. */
int weir_timed_addresses_count(int map_fd, uint64_t now_ns, size_t *ret_count);
int weir_timed_prefixes_count(int map_fd, uint64_t now_ns, size_t *ret_count);

/* Copy the entries in force to another map, except those that it already has. -E2BIG: some did not fit. */
int weir_timed_addresses_carry(int from_fd, int to_fd, uint64_t now_ns);

#endif
