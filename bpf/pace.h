/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a packet that has to wait gets from the XDP program, which cannot hold it, to the tc program behind it
 * (pace.bpf.c), which can: the departure time travels in the packet's metadata, in front of the frame. Nobody can
 * send metadata: it is made here, or it is not there. Included by both programs.
 */
#ifndef WEIR_PACE_H
#define WEIR_PACE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "weir_abi.h"
#include "work.h"

#define WEIR_PACE_MAGIC 0x65636170u /* "pace", little endian */

struct weir_pace_mark {
	__u64 departure_ns; /* CLOCK_MONOTONIC */
	__u32 magic;	    /* another XDP program's metadata, on a device before this one, is not ours */
	__u32 zero;
};
_Static_assert(sizeof(struct weir_pace_mark) % 4 == 0 && sizeof(struct weir_pace_mark) <= 32,
	       "what bpf_xdp_adjust_meta takes");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_pace_counters);
} pace_counters SEC(".maps");

static __always_inline struct weir_pace_counters *weir_pace_counters(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&pace_counters, &zero);
}

/*
 * Give the packet in hand its departure time, w->wait_ns from now. Where the driver has no metadata it goes at once
 * instead, as `throttling: police` would have it, and is counted. Moves the packet: pointers into it end here.
 */
static __always_inline void weir_pace_mark(struct xdp_md *ctx, struct weir_work *w)
{
	struct weir_pace_counters *counters = weir_pace_counters();
	struct weir_pace_mark *mark;

	if (!counters)
		return;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*mark))) {
		counters->unmarked++;
		return;
	}
	mark = (void *)(long)ctx->data_meta;
	if ((void *)(mark + 1) > (void *)(long)ctx->data)
		return; /* never: the verifier does not know what the helper did */
	mark->departure_ns = w->now_ns + w->wait_ns;
	mark->magic = WEIR_PACE_MAGIC;
	mark->zero = 0;
	counters->marked++;
}

#endif
