/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An instance's own description (struct weir_instance_info), whichever version of weir attached the instance. Reads
 * only.
 */
#ifndef WEIR_PINS_INFO_H
#define WEIR_PINS_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

/*
 * Read an instance's map `instance`. *ret_is_incompatible: another version wrote it, and only the head that all
 * versions share, from `magic` to `netns`, is valid; abi_version is 0 if even that is unknown. The list of its tables
 * begins with ours, by enum weir_table_id; version 0: the instance has no table of this name, or the table is being
 * replaced. Returns 0 or -errno.
 */
int weir_info_read(int map_fd, struct weir_instance_info *ret_info, bool *ret_is_incompatible);

/*
 * A build between two versions may have changed the layout of a table but not its version number. So inspect the pinned
 * maps: those whose sizes differ from this version's get the version WEIR_TABLE_INCOMPATIBLE. Call this before reading
 * or writing any other table. -errno: some could not be inspected.
 */
#define WEIR_TABLE_INCOMPATIBLE UINT32_MAX
int weir_info_expose_incompatible(const char *instance, struct weir_instance_info *info);

/* Describe the tables with this version's layouts, and with the sizes that a load gave them. */
void weir_info_describe_tables(struct weir_instance_info *info, const __u32 sizes[WEIR_TABLE_COUNT]);

/*
 * A new map has replaced this map `instance`, which may be of any version. Write the number of the new generation into
 * the old map, so that a controller which still reads it notices the reload. Returns 0 or -errno.
 */
int weir_info_retire(int map_fd, uint64_t generation);

/* The inode number of the network namespace of an instance's interfaces; 0 if it cannot be determined. */
uint64_t weir_info_netns(const char *instance);

#endif
