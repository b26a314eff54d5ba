/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The maps of an attached program, found through the program, because the maps of its generation are not pinned.
 */
#ifndef WEIR_PROGRAM_MAPS_H
#define WEIR_PROGRAM_MAPS_H

#include <bpf/libbpf.h>
#include <linux/types.h>
#include <stdbool.h>

#include "base/diag.h"
#include "compile/compile.h"

/*
 * A descriptor of the map of this name, or -errno (-ENOENT: the program has none). The kernel keeps the first 15
 * characters of a name. Needs CAP_SYS_ADMIN.
 */
int weir_program_map_open(__u32 program_id, const char *name);

/* A map of an object, or NULL. If it reuses a table that an older version created, libbpf gives it the name that this
 * one has in the kernel, which is cut off after 15 characters.
 */
struct bpf_map *weir_map_find(const struct bpf_object *object, const char *name);

struct bpf_object;

/* Maps that the program only reads, and that a copy of it shares. */
bool weir_map_is_shared(const char *name);
/* Make a program hold these, even where folding has left no instruction that uses them: so they are found through it.
 * Returns 0 or -errno.
 */
int weir_program_bind_shared(int program_fd, const struct bpf_object *object);

/* ---- allow and deny lists: sized before the load, filled by a copy after it; for object.c ---- */

/* Returns 0 or -errno. */
int weir_lists_size(struct bpf_object *object, const struct weir_image_lists *lists);

/* 0, or -errno with the reason in *diag. */
int weir_lists_fill(struct bpf_object *object, const struct weir_image_lists *lists, struct weir_diag *diag);

/* ---- map `interfaces` of a loaded program ----
 *
 * The vector of each interface that resources select, by name or by pattern.
 * Interfaces may appear while the program is in force. Packets never wait for that, since only this map is written.
 */

/* Add the matching interfaces of the present network namespace to the image. Returns 0 or -errno. */
int weir_image_add_interfaces(struct weir_image *image);

/*
 * Update the map for the present interfaces of this network namespace: those that have appeared, gone, or been renamed.
 * `cases` belong to the program of this map. Returns 0 or -errno.
 */
int weir_interfaces_update(int map_fd, const struct weir_interface_case *cases, uint32_t count);

#endif
