/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room program: the BPF program, loaded but attached nowhere: the object with its maps (this header), reading and
 * writing whole arrays, the allow and deny lists, and the thresholds that move. It serves what is attached, replay
 * and tests alike.
 *
 * The BPF object: one loaded program with its maps, filled from an image. The only file that knows the skeleton.
 * Attaching it to interfaces and pinning it is for instance/; running it over captures is for replay/; tests drive it
 * directly.
 */
#ifndef WEIR_PROGRAM_OBJECT_H
#define WEIR_PROGRAM_OBJECT_H

#include <bpf/libbpf.h>
#include <stdbool.h>

#include "base/diag.h"
#include "compile/compile.h"
#include "program/array.h"
#include "program/thresholds.h"
#include "weir_hook.h"
#include "weir_tables.h"

/* Name of a table's map in the object, and of its pin: "instance", "rule_info", ... */
const char *weir_table_name(enum weir_table_id table);

/* Its layout version here. */
__u32 weir_table_version(enum weir_table_id table);

/* Whether this map's keys and values are of the sizes that the table has here: the kernel copies as many bytes as the
 * map says, whatever room there is for them. 1, 0, or -errno when that cannot be determined.
 */
int weir_table_is_shaped(enum weir_table_id table, int map_fd);

/* weir_array_scan() or weir_percpu_scan() of a whole table; `size` is that of the load, and of 0 there is nothing. */
int weir_table_scan(enum weir_table_id table, int map_fd, uint32_t size, weir_percpu_visit *visit, void *data);

struct weir_object_options {
	bool is_virtual;	 /* clock and interface come from the harness (replay, tests) */
	const __u64 *seed;	 /* 16 words; NULL: made of fresh random bytes */
	__u64 tick_origin_ns;	 /* of the instance's loads before (program/tick.h); 0: find it */
	__u32 without_shortcuts; /* enum weir_shortcut, or-ed: what the program is to do without */
	__u64 now_ns;		 /* the program's clock: WarmUp rules that are new are cold then */
	/* the rules by slot, as they were before this load; NULL: there was none */
	const struct weir_rule_info *previous_rules;
	uint32_t hooks; /* bits 1 << enum weir_hook, beside XDP: whose programs are loaded, too */
	bool is_trial;	/* it is only to be seen whether it loads: nothing is written to maps that continue */
	int reuse_fd[WEIR_STATE_TABLE_COUNT]; /* maps to continue with; 0 or less: recreate it */
};

struct weir_object;

/*
 * Create the maps, fill them from the image and load the program. Nothing is attached. On failure
 * nothing is left behind and *diag says what the kernel lacks (verifier's last lines in the hint).
 */
int weir_object_load(const struct weir_image *image, const struct weir_object_options *options,
		     struct weir_object **ret_object, struct weir_diag *diag);
void weir_object_free(struct weir_object *object);

static inline void weir_object_freep(struct weir_object **object)
{
	weir_object_free(*object);
}

int weir_object_program_fd(const struct weir_object *object);
/* The program of that hook, or -1: it was not asked for. */
int weir_object_hook_fd(const struct weir_object *object, enum weir_hook hook);
int weir_object_map_fd(const struct weir_object *object, enum weir_table_id map);
/* A map of the program's own, by its name; negative when there is none. The object keeps it. */
int weir_object_own_map_fd(const struct weir_object *object, const char *name);
int weir_object_thresholds_fd(const struct weir_object *object);
/* What the thresholds that move are in: those, and the two maps that WarmUp keeps its books in. */
struct weir_moving_fds weir_object_moving_fds(const struct weir_object *object);
const __u64 *weir_object_seed(const struct weir_object *object);
__u64 weir_object_tick_origin_ns(const struct weir_object *object);

/* The harness, memory-mapped; NULL unless is_virtual. Lives as long as the object. */
volatile struct weir_harness *weir_object_harness(const struct weir_object *object);

/*
 * Evaluate one frame under the harness's clock (is_virtual) by BPF_PROG_TEST_RUN: the caller has set the harness's
 * inputs; the outputs are in the harness afterwards. frame_bytes is at least 14 (ETH_HLEN). Returns the
 * XDP action (XDP_PASS, XDP_DROP), or -errno. Must be called from a thread pinned to one CPU.
 */
int weir_object_evaluate(const struct weir_object *object, const void *frame, __u32 frame_bytes);

/* The same `times` times, one after the other at the same instant: the harness reports the last. */
int weir_object_evaluate_many(const struct weir_object *object, const void *frame, __u32 frame_bytes, __u32 times);

/* The same by the program of a hook, which has been loaded. At tc the harness must say the frame's length: the kernel
 * takes neither the shortest nor the longest as they are.
 */
int weir_object_evaluate_at(const struct weir_object *object, enum weir_hook hook, const void *frame, __u32 frame_bytes,
			    __u32 times);

#endif
