/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an instance says of itself (struct weir_instance_info), whichever version of weir attached it. Reads only.
 */
#ifndef WEIR_INFO_H
#define WEIR_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

/*
 * Read an instance's map `instance`. *ret_is_foreign: another version wrote it, and only the head is there, from
 * `magic` to `netns`, which all versions share; `abi_version` 0 when not even that can be told. Returns 0 or -errno.
 */
int weir_info_read(int map_fd, struct weir_instance_info *ret_info, bool *ret_is_foreign);

/* Inode number of the network namespace that an instance's interfaces are in; 0 when that cannot be told. */
uint64_t weir_info_netns(const char *instance);

#endif
