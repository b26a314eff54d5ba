/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Map `interfaces` of a loaded program: the vector of each interface that resources select, by name or by pattern.
 * Interfaces may appear while the program is in force. Packets never wait for that, since only this map is written.
 */
#ifndef WEIR_PROGRAM_INTERFACE_MAP_H
#define WEIR_PROGRAM_INTERFACE_MAP_H

#include "compile/compile.h"

/* Add the matching interfaces of the present network namespace to the image. Returns 0 or -errno. */
int weir_image_add_interfaces(struct weir_image *image);

/*
 * Update the map for the present interfaces of this network namespace: those that have appeared, gone, or been renamed.
 * `cases` belong to the program of this map. Returns 0 or -errno.
 */
int weir_interfaces_update(int map_fd, const struct weir_interface_case *cases, uint32_t count);

#endif
