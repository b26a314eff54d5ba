/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps of an attached program, found through the program, because the maps of its generation are not pinned.
 */
#ifndef WEIR_PROGRAM_MAPS_H
#define WEIR_PROGRAM_MAPS_H

#include <linux/types.h>

/*
 * A descriptor of the map of this name, or -errno (-ENOENT: the program has none). The kernel keeps the first 15
 * characters of a name. Needs CAP_SYS_ADMIN.
 */
int weir_program_map_open(__u32 program_id, const char *name);

/* The kernel's tag of a program's instructions, which distinguishes them from another program's. Returns 0 or -errno.
 */
#define WEIR_PROGRAM_TAG_BYTES 8
int weir_program_tag(int program_fd, __u8 ret_tag[WEIR_PROGRAM_TAG_BYTES]);

#endif
