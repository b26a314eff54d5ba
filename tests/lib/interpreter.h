/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An interpreter of BPF, for what no kernel counts: which cache lines of which maps a packet touches, and how many
 * instructions it takes in each function. It runs the instructions of an object that is loaded (so its maps are filled
 * and its references resolved) in memory of this process, with a copy of each map; the kernel's maps do not change.
 * Asserts (cmocka) that it knows what it meets. Two CPUs, of which it is the first.
 */
#ifndef WEIR_TEST_INTERPRETER_H
#define WEIR_TEST_INTERPRETER_H

#include <stddef.h>
#include <stdint.h>

#include "program/object.h"

#define INTERPRETER_MAPS_MAX 96
#define INTERPRETER_FUNCTIONS_MAX 256

/* What packets have done since interpreter_reset(). */
struct interpreter_function {
	const char *name;
	uint64_t instructions;
	uint64_t helper_calls; /* look-ups above all */
};

struct interpreter_map {
	const char *name;
	uint64_t lines; /* distinct ones of each packet, added up */
};

struct interpreter;

struct interpreter *interpreter_new(const struct weir_object *object, uint64_t now_ns);
void interpreter_free(struct interpreter *it);

void interpreter_advance(struct interpreter *it, uint64_t ns);

/* Run a frame through the program: the XDP action. */
int interpreter_run(struct interpreter *it, uint8_t *frame, size_t frame_bytes);

void interpreter_reset(struct interpreter *it);
size_t interpreter_functions(const struct interpreter *it, const struct interpreter_function **ret_functions);
size_t interpreter_maps(const struct interpreter *it, const struct interpreter_map **ret_maps);

#endif
