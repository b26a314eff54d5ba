/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Allow and deny lists in the maps of a generation: sized before the load, filled by a copy after it. Both functions
 * are for object.c.
 */
#ifndef WEIR_PROGRAM_LIST_MAPS_H
#define WEIR_PROGRAM_LIST_MAPS_H

#include <bpf/libbpf.h>

#include "base/diag.h"
#include "compile/compile.h"

/* Returns 0 or -errno. */
int weir_lists_size(struct bpf_object *object, const struct weir_image_lists *lists);

/* 0, or -errno with the reason in *diag. */
int weir_lists_fill(struct bpf_object *object, const struct weir_image_lists *lists, struct weir_diag *diag);

#endif
