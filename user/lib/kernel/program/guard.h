/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The loaded guard: one program per hook, each of which passes packets to one of two others, depending on the time
 * (bpf/guard.bpf.c). Attaching and pinning it is for instance/.
 */
#ifndef WEIR_PROGRAM_GUARD_H
#define WEIR_PROGRAM_GUARD_H

#include <stdbool.h>

#include "base/diag.h"
#include "weir_guard.h"
#include "weir_hook.h"

struct weir_guard_object;

/* The maps of a guard that is there already; -1: there is none. */
struct weir_guard_maps {
	int state_fd, sets_fd, tc_sets_fd;
};

/* Until state->returns_ns packets go to the programs `new_fd`, by enum weir_hook, afterwards to `old_fd`. -1: that rule
 * set has no program for the hook. A hook without either program has no guard. With `shared`, guards of other hooks of
 * the same decision: they use these maps, in which only the given programs are written; `state` is not.
 */
int weir_guard_load(const int new_fd[WEIR_HOOKS], const int old_fd[WEIR_HOOKS], const struct weir_guard *state,
		    const struct weir_guard_maps *shared, struct weir_guard_object **ret_object,
		    struct weir_diag *diag);

/* Whether the map has a program for the hook and the rule set. */
bool weir_guard_has(const struct weir_guard_maps *maps, enum weir_hook hook, enum weir_guard_set set);
void weir_guard_object_free(struct weir_guard_object *object);

static inline void weir_guard_object_freep(struct weir_guard_object **object)
{
	weir_guard_object_free(*object);
}

/* -1: no guard for this hook. */
int weir_guard_program_fd(const struct weir_guard_object *object, enum weir_hook hook);
int weir_guard_state_fd(const struct weir_guard_object *object);
/* The maps that hold the programs at XDP and at tc. As the kernel treats maps of this type, the programs in them are
 * released when nobody holds or pins the map. -1: there is no such map.
 */
int weir_guard_sets_fd(const struct weir_guard_object *object);
int weir_guard_tc_sets_fd(const struct weir_guard_object *object);

/* Map the state for writing; NULL with errno. */
volatile struct weir_guard *weir_guard_map(int state_fd);
void weir_guard_unmap(volatile struct weir_guard *state);

#endif
