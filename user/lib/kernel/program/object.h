/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room program: the BPF program, loaded but not attached: the object with its maps (this header), reading and writing
 * whole arrays, the allow and deny lists, and the thresholds that move. It serves attached instances, replay and tests
 * alike.
 *
 * The BPF object is one loaded program with its maps, filled from an image. No other file knows the skeleton. instance/
 * attaches it to interfaces and pins it; replay/ runs it over captures; tests drive it directly.
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

/* The name of a table's map in the object, and of its pin: "instance", "rule_info", ... */
const char *weir_table_name(enum weir_table_id table);

/* The name that map and pin have if an older version created them; "" if it is the same. */
const char *weir_table_name_before(enum weir_table_id table);

/* The table that has or had this name; WEIR_TABLE_COUNT: none of ours. */
enum weir_table_id weir_table_find(const char *name);

/* The version of its layout in this build. */
__u32 weir_table_version(enum weir_table_id table);

/* Whether this map's keys and values have the sizes that the table has in this build. It matters because the kernel
 * copies as many bytes as the map says, whatever the size of our buffer. Returns 1, 0, or -errno if this cannot be
 * determined.
 */
int weir_table_is_shaped(enum weir_table_id table, int map_fd);

/* weir_array_scan() or weir_percpu_scan() of a whole table. `size` is the size from the load; a table of size 0 has no
 * entries.
 */
int weir_table_scan(enum weir_table_id table, int map_fd, uint32_t size, weir_percpu_visit *visit, void *data);

/*
 * The tables in which a loaded program keeps state, and the rules that they are of. What reads the state of a kind
 * takes these, so that it serves an object (weir_object_tables()) and what is attached (weir_instance_tables()) alike.
 */
struct weir_tables {
	int fd[WEIR_STATE_TABLE_COUNT];
	uint32_t size[WEIR_STATE_TABLE_COUNT];
	const struct weir_rule_info *rules; /* by slot */
	uint32_t rule_slots;
};

struct weir_object_options {
	bool is_virtual;	 /* the harness provides the clock and the interface (replay, tests) */
	const __u64 *seed;	 /* 16 words; NULL: use fresh random bytes */
	__u64 tick_origin_ns;	 /* from earlier loads of the instance (weir_tick_find_origin()); 0: determine it */
	__u32 without_shortcuts; /* enum weir_shortcut, or-ed: the shortcuts that the program must not use */
	bool is_unfolded;	 /* load the program as it was compiled (fold/fold.h): the same verdicts, more slowly */
	__u64 now_ns;		 /* the program's clock now: new WarmUp rules start cold at this time */
	/* The rules by slot, as they were before this load; NULL: there were none. */
	const struct weir_rule_info *previous_rules;
	uint32_t hooks; /* bits 1 << enum weir_hook: hooks whose programs are loaded; 0: XDP */
	bool is_trial;	/* only test whether the program loads: write nothing to maps that are reused */
	int reuse_fd[WEIR_STATE_TABLE_COUNT]; /* maps to reuse; 0 or less: create a new one */
};

struct weir_object;

/*
 * Create the maps, fill them from the image and load the program. Nothing is attached. On failure nothing is left
 * behind, and *diag says what the kernel lacks (with the last lines of the verifier's log as a hint).
 */
int weir_object_load(const struct weir_image *image, const struct weir_object_options *options,
		     struct weir_object **ret_object, struct weir_diag *diag);
void weir_object_free(struct weir_object *object);

static inline void weir_object_freep(struct weir_object **object)
{
	weir_object_free(*object);
}

/* The program at XDP, or -1: it was not requested. */
int weir_object_program_fd(const struct weir_object *object);
/* The program for that hook, or -1: it was not requested. */
int weir_object_hook_fd(const struct weir_object *object, enum weir_hook hook);
/* The hook whose program evaluates incoming frames: XDP if that was requested. */
enum weir_hook weir_object_hook_in(const struct weir_object *object);
int weir_object_map_fd(const struct weir_object *object, enum weir_table_id map);

static inline struct weir_tables weir_object_tables(const struct weir_object *object, const struct weir_image *image)
{
	struct weir_tables tables = {.rules = image->rule_info, .rule_slots = image->rule_slots};

	for (enum weir_table_id table = 0; table < WEIR_STATE_TABLE_COUNT; table++) {
		tables.fd[table] = weir_object_map_fd(object, table);
		tables.size[table] = image->config.sizes[table];
	}
	return tables;
}

/* One of the program's own maps, by name; negative if there is none. The object keeps the descriptor. */
int weir_object_own_map_fd(const struct weir_object *object, const char *name);
int weir_object_thresholds_fd(const struct weir_object *object);
/* The maps for thresholds that move: the thresholds, and the two maps with WarmUp's state. */
struct weir_moving_fds weir_object_moving_fds(const struct weir_object *object);
const __u64 *weir_object_seed(const struct weir_object *object);
/* The labels of its flow keys; NULL: no key has a set. The object keeps them. */
const struct weir_key_labels *weir_object_labels(const struct weir_object *object);
__u64 weir_object_tick_origin_ns(const struct weir_object *object);

/* The harness, memory-mapped; NULL unless is_virtual. It lives as long as the object. */
volatile struct weir_harness *weir_object_harness(const struct weir_object *object);

/*
 * Evaluate one frame under the harness's clock (is_virtual) by BPF_PROG_TEST_RUN. The caller has set the harness's
 * inputs; afterwards the harness has the outputs. frame_bytes is at least 14 (ETH_HLEN). Returns the XDP action
 * (XDP_PASS, XDP_DROP), or -errno. Must be called from a thread that is pinned to one CPU.
 */
int weir_object_evaluate(const struct weir_object *object, const void *frame, __u32 frame_bytes);

/* The same `times` times in succession at the same instant, of which the harness has the outputs of the last one, with
 * the program of a hook, which must have been loaded. At tc the harness must contain the frame's length, because the
 * kernel does not accept the shortest and the longest frames as they are.
 */
int weir_object_evaluate_at(const struct weir_object *object, enum weir_hook hook, const void *frame, __u32 frame_bytes,
			    __u32 times);

/* The same once, with what the program has made of the frame: if it returns XDP_TX, the answer to it (harness
 * wants_answer). *answer_bytes is the room for it, and then its length. (At most a page of it at tc.)
 */
int weir_object_answer_at(const struct weir_object *object, enum weir_hook hook, const void *frame, __u32 frame_bytes,
			  void *ret_answer, __u32 *answer_bytes);

#endif
