/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps of a program that is attached, found through the program: those of its generation are not pinned.
 */
#ifndef WEIR_PROGRAM_MAPS_H
#define WEIR_PROGRAM_MAPS_H

#include <linux/types.h>

/*
 * A descriptor of the map of this name, or -errno (-ENOENT: it has none). The kernel keeps the first 15 characters of
 * a name. Needs CAP_SYS_ADMIN.
 */
int weir_program_map_open(__u32 program_id, const char *name);

/* What distinguishes a program's instructions from another's, as the kernel does. Returns 0 or -errno. */
#define WEIR_PROGRAM_TAG_BYTES 8
int weir_program_tag(int program_fd, __u8 ret_tag[WEIR_PROGRAM_TAG_BYTES]);

#endif
