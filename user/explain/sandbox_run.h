/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs: the program evaluates the packet on the sandbox, as often as it takes, at the times that are asked about.
 * What a rule has left, and when it frees, is found by asking the rule, so no kind of limit has its arithmetic twice.
 */
#ifndef WEIR_EXPLAIN_SANDBOX_RUN_H
#define WEIR_EXPLAIN_SANDBOX_RUN_H

#include "explain/sandbox.h"

struct weir_sandbox_run {
	const struct weir_sandbox *sandbox;
	const uint8_t *frame;
	uint32_t frame_bytes; /* given to the program */
	uint32_t wire_bytes;
	uint32_t ifindex;
	enum weir_hook hook; /* whose program evaluates it, and is loaded */
	uint64_t now_ns;
};

/* Evaluate the packet at this time, from the sandbox as it was read: the harness has the answer. Returns the XDP
 * action, or -errno.
 */
int weir_sandbox_run_evaluate(const struct weir_sandbox_run *run, uint64_t time_ns);

/*
 * How many such packets pass now, one right after the other, before one is blocked. `most` is where counting ends: then
 * *ret_count is `most`, or a little more.
 */
int weir_sandbox_run_count(const struct weir_sandbox_run *run, uint64_t most, uint64_t *ret_count);

#define WEIR_SANDBOX_RUN_NEVER UINT64_MAX
/* How long the packet has this verdict yet, if none comes until then: 0 not now, WEIR_SANDBOX_RUN_NEVER for ten years
 * and more. To the ns.
 */
int weir_sandbox_run_wait(const struct weir_sandbox_run *run, uint32_t verdict, uint64_t *ret_wait_ns);

/*
 * Let no other rule of the packet's have a say: they observe, and `place` enforces. The caller puts back what was, by
 * weir_sandbox_run_restore().
 */
void weir_sandbox_run_isolate(const struct weir_sandbox_run *run, const struct weir_harness_flow *flows, uint32_t count,
			      uint32_t place);
void weir_sandbox_run_restore(const struct weir_sandbox_run *run, const struct weir_harness_flow *flows, uint32_t count,
			      const uint8_t *observes);

#endif
