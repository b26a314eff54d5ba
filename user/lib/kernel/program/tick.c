// SPDX-License-Identifier: GPL-2.0-only
/* The origin of the tick clock. */
#include <bpf/bpf.h>
#include <errno.h>

#include "base/util.h"
#include "program/object_internal.h"
#include "weir_abi.h"
#include "tick.skel.h"

/* The edge of a tick may be observed late, so several edges are observed. An edge counts only if there are readings
 * just before and just after it. On a busy machine this thread is often descheduled, and may miss many edges.
 */
#define EDGES_WATCHED 3
#define EDGE_PARTS 16	  /* the two readings around an edge must be within this fraction of a tick */
#define TICKS_WATCHED 250 /* at most; then the lowest value so far is used */

static inline void free_tick(struct tick_bpf **skel)
{
	tick_bpf__destroy(*skel);
}

/* A reading is up to one tick late and never early, so the lowest of many is the true edge. */
static int find_origin(const struct tick_bpf *skel, uint64_t tick_ns, uint64_t *ret_origin_ns)
{
	struct weir_tick_reading reading = {}, before = {};
	/* Whatever the program wrote is copied back to ctx_in (bpf_prog_test_run_syscall). */
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &reading, .ctx_size_in = sizeof(reading));
	uint64_t first_ns = 0, least = 0;
	unsigned int edges = 0;

	do {
		int err = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.weir_read_tick), &options);
		uint64_t origin = reading.now_ns - reading.jiffies * tick_ns;

		if (err)
			return err;
		if (!first_ns || (int64_t)(origin - least) < 0)
			least = origin;
		if (!first_ns)
			first_ns = reading.now_ns;
		else if (reading.jiffies != before.jiffies && reading.now_ns - before.now_ns < tick_ns / EDGE_PARTS)
			edges++;
		before = reading;
	} while (edges < EDGES_WATCHED && reading.now_ns - first_ns < TICKS_WATCHED * tick_ns);
	*ret_origin_ns = least;
	return 0;
}

int weir_tick_find_origin(uint64_t tick_ns, uint64_t *ret_origin_ns, struct weir_diag *diag)
{
	_cleanup_(free_tick) struct tick_bpf *skel = NULL;
	int err;

	if (!tick_ns)
		return weir_diag_fail(diag, ENOTSUP, NULL, "cannot find out how long a tick of this kernel is");
	skel = tick_bpf__open_and_load();
	if (!skel)
		return weir_diag_fail(diag, errno, NULL, "cannot load the BPF program that reads the tick");
	err = find_origin(skel, tick_ns, ret_origin_ns);
	return err ? weir_diag_fail(diag, -err, NULL, "cannot read the tick") : 0;
}
