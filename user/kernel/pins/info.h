/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an instance says of itself (struct weir_instance_info), whichever version of weir attached it. Reads only.
 */
#ifndef WEIR_PINS_INFO_H
#define WEIR_PINS_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

/*
 * Read an instance's map `instance`. *ret_is_incompatible: another version wrote it, and only the head is there, from
 * `magic` to `netns`, which all versions share; `abi_version` 0 when not even that can be reported. Its tables begin
 * with ours, by enum weir_table_id; version 0: it has none of this name, or it is being replaced. Returns 0 or -errno.
 */
int weir_info_read(int map_fd, struct weir_instance_info *ret_info, bool *ret_is_incompatible);

/*
 * A build between two versions may have laid out a table in another way under the same number. Look at the pinned maps:
 * those that are not of this version's sizes get WEIR_TABLE_INCOMPATIBLE for a version. Before any other is read or
 * written. -errno: some could not be looked at.
 */
#define WEIR_TABLE_INCOMPATIBLE UINT32_MAX
int weir_info_expose_incompatible(const char *instance, struct weir_instance_info *info);

/* Say that the tables are as this version lays them out, and as large as a load made them. */
void weir_info_describe_tables(struct weir_instance_info *info, const __u32 sizes[WEIR_TABLE_COUNT]);

/*
 * A new map has replaced this map `instance`, of whatever version: give it the number of the new generation, so that
 * a controller which still reads it learns of the reload. Returns 0 or -errno.
 */
int weir_info_retire(int map_fd, uint64_t generation);

/* Inode number of the network namespace that an instance's interfaces are in; 0 when that cannot be determined. */
uint64_t weir_info_netns(const char *instance);

#endif
