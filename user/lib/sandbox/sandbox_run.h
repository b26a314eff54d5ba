/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs: the program evaluates the packet in the sandbox, as often as necessary, at the times in question. What a rule
 * has left, and when it admits again, is found by running the rule, so the arithmetic of no limit is implemented twice.
 */
#ifndef WEIR_SANDBOX_SANDBOX_RUN_H
#define WEIR_SANDBOX_SANDBOX_RUN_H

#include "sandbox/sandbox.h"

struct weir_sandbox_run {
	const struct weir_sandbox *sandbox;
	const uint8_t *frame;
	uint32_t frame_bytes; /* length of the part given to the program */
	uint32_t wire_bytes;
	uint32_t ifindex;
	enum weir_hook hook; /* the hook whose program evaluates the packet; it must be loaded */
	uint64_t now_ns;
};

/* Evaluate the packet at this time, starting from the copied state. The harness then has the result. Returns the XDP
 * action, or -errno.
 */
int weir_sandbox_run_evaluate(const struct weir_sandbox_run *run, uint64_t time_ns);

/* What the packet's sender would get now if a rule blocks it: the program makes the answer of a copy of the packet.
 * Which sockets listen is not asked.
 */
int weir_sandbox_run_answer(const struct weir_sandbox_run *run, enum weir_on_block *ret_answer);

/*
 * How many such packets pass now, in immediate succession, before one is blocked. Counting ends at `most`; *ret_count
 * is then `most`, or a little more.
 */
int weir_sandbox_run_count(const struct weir_sandbox_run *run, uint64_t most, uint64_t *ret_count);

#define WEIR_SANDBOX_RUN_NEVER UINT64_MAX
/* How long the packet continues to have this verdict if no packet comes in between: 0: it does not have it now;
 * WEIR_SANDBOX_RUN_NEVER: ten years or more. Exact to the ns.
 */
int weir_sandbox_run_wait(const struct weir_sandbox_run *run, uint32_t verdict, uint64_t *ret_wait_ns);

/*
 * Isolate one of the packet's rules: all others only observe, and `place` enforces. The caller undoes this with
 * weir_sandbox_run_restore().
 */
void weir_sandbox_run_isolate(const struct weir_sandbox_run *run, const struct weir_harness_flow *flows, uint32_t count,
			      uint32_t place);
void weir_sandbox_run_restore(const struct weir_sandbox_run *run, const struct weir_harness_flow *flows, uint32_t count,
			      const uint8_t *observes);

#endif
