/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guard, loaded: the program that hands packets to one of two others, by the time (bpf/guard.bpf.c). Attaching and
 * pinning it is for instance/.
 */
#ifndef WEIR_PROGRAM_GUARD_H
#define WEIR_PROGRAM_GUARD_H

#include "base/diag.h"
#include "weir_guard.h"

struct weir_guard_object;

/* Until state->returns_ns packets go to the program `new_fd`, afterwards to `old_fd`. */
int weir_guard_load(int new_fd, int old_fd, const struct weir_guard *state, struct weir_guard_object **ret_object,
		    struct weir_diag *diag);
void weir_guard_object_free(struct weir_guard_object *object);

static inline void weir_guard_object_freep(struct weir_guard_object **object)
{
	weir_guard_object_free(*object);
}

int weir_guard_program_fd(const struct weir_guard_object *object);
int weir_guard_state_fd(const struct weir_guard_object *object);
/* Its programs are gone when nobody holds or pins this map, as the kernel has it for such maps. */
int weir_guard_sets_fd(const struct weir_guard_object *object);

/* The state, mapped to be written; NULL with errno. */
volatile struct weir_guard *weir_guard_map(int state_fd);
void weir_guard_unmap(volatile struct weir_guard *state);

#endif
