/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Map `interfaces` of a program that is loaded: the vector of each interface that resources name, by number or by
 * pattern. Interfaces come while the program is in force; packets never wait for that, since only this map is written.
 */
#ifndef WEIR_PROGRAM_INTERFACE_MAP_H
#define WEIR_PROGRAM_INTERFACE_MAP_H

#include "compile/compile.h"

/* Adds to the image the interfaces of the present network namespace that its patterns mean. Returns 0 or -errno. */
int weir_image_add_interfaces(struct weir_image *image);

/*
 * Bring the map in line with the interfaces that the present network namespace has now: what has come, what is gone,
 * and what has another name. `cases` are those of the map's program. Returns 0 or -errno.
 */
int weir_interfaces_update(int map_fd, const struct weir_interface_case *cases, uint32_t count);

#endif
