/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF object: one loaded program with its maps, filled from an image. The only file that knows
 * the skeleton. Attaching it to interfaces and pinning it is instance.h's; running it over captures
 * is replay.h's; tests drive it directly.
 */
#ifndef WEIR_OBJECT_H
#define WEIR_OBJECT_H

#include <bpf/libbpf.h>
#include <stdbool.h>

#include "compile.h"
#include "diag.h"
#include "weir_abi.h"

/* Maps of the instance, which outlive a load (weir_abi.h). Index of weir_object_options.reuse_fd. */
enum weir_instance_map {
	WEIR_MAP_INSTANCE,
	WEIR_MAP_RULE_INFO,
	WEIR_MAP_RESOURCE_INFO,
	WEIR_MAP_TIMINGS,
	WEIR_MAP_CLOCKS,
	WEIR_MAP_NARROW_FLOWS,
	WEIR_MAP_WIDE_FLOWS,
	WEIR_MAP_PRESENCE,
	WEIR_MAP_LONE_ROWS,
	WEIR_MAP_TALKERS,
	WEIR_MAP_RULE_COUNTERS,
	WEIR_MAP_RESOURCE_COUNTERS,
	WEIR_MAP_TOTALS,
	WEIR_MAP_CONTROL,
	WEIR_MAP_RULE_SECONDS,
	WEIR_MAP_WARM_STATES,
	WEIR_MAP_THROTTLED_RESOURCES,
	WEIR_MAP_THROTTLED_FLOWS,
	WEIR_MAP_WARMING_FLOWS,
	WEIR_MAP_CONNECTIONS,
	WEIR_MAP_CONNECTION_FLOWS,
	WEIR_MAP_CONNECTION_TOTALS,
	WEIR_MAP_PACE,
	WEIR_MAP_COUNT
};

/* Name of the map in the object, and of its pin: "instance", "rule_info", ... */
const char *weir_instance_map_name(enum weir_instance_map map);

struct weir_object_options {
	bool is_virtual;   /* clock and interface come from the lab (replay, tests) */
	const __u64 *seed; /* 16 words; NULL: made of fresh random bytes */
	__u64 now_ns;	   /* the program's clock: WarmUp rules that are new are cold then */
	/* the rules by slot, as they were before this load; NULL: there was none */
	const struct weir_rule_info *previous_rules;
	int reuse_fd[WEIR_MAP_COUNT]; /* maps to go on with; 0 or less: make it anew */
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
int weir_object_map_fd(const struct weir_object *object, enum weir_instance_map map);
int weir_object_thresholds_fd(const struct weir_object *object);
const __u64 *weir_object_seed(const struct weir_object *object);

/* The laboratory, memory-mapped; NULL unless is_virtual. Lives as long as the object. */
volatile struct weir_lab *weir_object_lab(const struct weir_object *object);

/*
 * Judge one frame under the lab's clock (is_virtual) by BPF_PROG_TEST_RUN: the caller has set the lab's
 * inputs; the outputs are in the lab afterwards. frame_bytes is at least 14 (ETH_HLEN). Returns the
 * XDP action (XDP_PASS, XDP_DROP), or -errno. Must be called from a thread pinned to one CPU.
 */
int weir_object_judge(const struct weir_object *object, const void *frame, __u32 frame_bytes);

#endif
