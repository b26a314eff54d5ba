/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of a loaded program share: object.c builds an object from an image, and copy.c builds a copy of an
 * attached program.
 */
#ifndef WEIR_PROGRAM_OBJECT_INTERNAL_H
#define WEIR_PROGRAM_OBJECT_INTERNAL_H

#include <linux/types.h>
#include <stdint.h>

#include "base/diag.h"
#include "weir_hook.h"

struct weir_object {
	struct weir_bpf *skel;	/* weir.skel.h */
	struct weir_tc_bpf *tc; /* weir_tc.skel.h; NULL: no tc hook has a program */
	struct weir_harness *harness;
	__u64 seed[16];
	uint64_t tick_origin_ns;
};

/* Open the skeleton; loads nothing. NULL with errno. */
struct weir_object *weir_object_open(void);

/* Load the maps and the programs of these hooks (bits 1 << enum weir_hook), and report why the kernel refuses one. */
int weir_object_load_opened(struct weir_object *object, uint32_t hooks, struct weir_diag *diag);

/* Map the harness. */
int weir_object_map_harness(struct weir_object *object, struct weir_diag *diag);

/* ---- object_tc.c ---- */

/* Open the skeleton, unless it is open. Returns 0 or -errno. */
int weir_object_open_tc(struct weir_object *object);
/* Load the programs of the tc hooks among these with the maps of the first object, which is already loaded. */
int weir_object_load_tc(struct weir_object *object, uint32_t hooks, struct weir_diag *diag);
void weir_object_free_tc(struct weir_object *object);
/* The program of a tc hook, or -1. */
int weir_object_tc_fd(const struct weir_object *object, enum weir_hook hook);

/* The last lines of the verifier's log say what is wrong; the rest only leads up to it. */
#define LOG_LINES 8

/* libbpf reports through one function for the whole process. Each thread that loads a program collects its own
 * messages.
 */
struct listener {
	char *text;
	size_t bytes;
	FILE *stream;
};

/* ---- load_failures.c ---- */

/* Install our handler for libbpf's messages, which would otherwise go to stderr. */
void weir_object_hear_libbpf(void);

void weir_object_start_listening(struct listener *listener);
void weir_object_stop_listening(struct listener *listener);
void weir_object_free_listener(struct listener *listener);
void weir_object_register_handler(void);
int weir_object_explain_load_failure(int err, const struct listener *listener, struct weir_diag *diag);

#endif
