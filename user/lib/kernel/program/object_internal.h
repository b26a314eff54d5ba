/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of a loaded program share: object.c builds an object from an image, and copy.c builds a copy of an
 * attached program.
 */
#ifndef WEIR_PROGRAM_OBJECT_INTERNAL_H
#define WEIR_PROGRAM_OBJECT_INTERNAL_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "weir_hook.h"

struct bpf_func_info;
struct bpf_line_info;
struct bpf_map;
struct bpf_object;
struct bpf_prog_load_opts;
struct bpf_program;
struct weir_image;
struct weir_object_options;

struct weir_object {
	struct weir_bpf *skel;	/* of bpf/weir.bpf.c */
	struct weir_tc_bpf *tc; /* of bpf/weir_tc.bpf.c; NULL: no tc hook has a program */
	struct weir_harness *harness;
	__u64 seed[16];
	uint64_t tick_origin_ns;
	struct weir_key_labels *labels; /* of flow keys, sorted; NULL: none */
	bool is_unfolded;		/* the program is loaded as it was compiled */
};

/* Open the skeleton; loads nothing. NULL with errno. */
struct weir_object *weir_object_open(void);

/* Load the maps and the programs of these hooks (bits 1 << enum weir_hook), and report why the kernel refuses one. */
int weir_object_load_opened(struct weir_object *object, uint32_t hooks, struct weir_diag *diag);

/* Map the harness. */
int weir_object_map_harness(struct weir_object *object, struct weir_diag *diag);

/* Like weir_object_load(), but folded or not as the options say. */
int weir_object_try_load(const struct weir_image *image, const struct weir_object_options *options,
			 struct weir_object **ret_object, struct weir_diag *diag);

/* ---- load_unfolded.c ---- */

/* Load what `what` says, folded or not. Returns 0, or -errno: -E2BIG if the verifier gave up. */
typedef int weir_object_loader(const void *what, bool is_unfolded, struct weir_object **ret_object,
			       struct weir_diag *diag);
/* Load it folded or, if the verifier gives up on that, unfolded. */
int weir_object_load_by(weir_object_loader *load, const void *what, struct weir_object **ret_object,
			struct weir_diag *diag);

/* ---- object_tc.c ---- */

/* Which build of both objects this is. What the kernel says of an attached program does not tell, as it has been folded
 * with its configuration.
 */
__u64 weir_object_identity(void);

/* Open the skeleton, unless it is open. Returns 0 or -errno. */
int weir_object_open_tc(struct weir_object *object);
/* Load the programs of the tc hooks among these with the maps of the first object, which is already loaded. */
int weir_object_load_tc(struct weir_object *object, uint32_t hooks, struct weir_diag *diag);
void weir_object_free_tc(struct weir_object *object);
/* The program of a tc hook, or -1. */
int weir_object_tc_fd(const struct weir_object *object, enum weir_hook hook);

/* ---- tick.c ---- */

/*
 * Determine the origin of the tick clock, modulo 2^64, for ticks of tick_ns. The data plane numbers the buckets of leap
 * windows by jiffies, in ns of CLOCK_MONOTONIC: jiffies * tick_ns + origin_ns. The kernel advances jiffies by that same
 * clock, so the origin is valid until the machine reboots. Every load of an instance uses the origin that was found at
 * attach. Takes three ticks (12 ms at 250 Hz). Returns 0, or a negative errno with the reason in *diag.
 */
int weir_tick_find_origin(uint64_t tick_ns, uint64_t *ret_origin_ns, struct weir_diag *diag);

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
/* Returns 0, or -ENOMEM if libbpf left a part of the program out. */
int weir_object_refuse_half_a_program(const struct bpf_prog_load_opts *options);
int weir_object_explain_load_failure(int err, const struct listener *listener, struct weir_diag *diag);

/* ---- prepare.c ---- */

/* What programs of an object are folded with, while this thread loads them. */
struct preparation {
	const struct bpf_object *object;
	const struct bpf_map *constants; /* .rodata; NULL: they are loaded as they were compiled */
	struct bpf_func_info *functions; /* of the program that is being loaded */
	struct bpf_line_info *lines;
};

void weir_object_register_handlers(void);
void weir_object_skip_module_btfs(struct bpf_program *program);
void weir_object_start_preparing(struct preparation *preparation);
void weir_object_stop_preparing(struct preparation *preparation);

#endif
