/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a throttled packet gets its wait. The XDP program cannot delay a packet; the tc program behind it (pace.bpf.c)
 * can. The departure time travels between them in the packet's metadata, in front of the frame. No sender can forge it:
 * metadata never crosses the wire. Both programs include this file.
 */
#ifndef WEIR_PACE_H
#define WEIR_PACE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "weir_abi.h"
#include "scratch.h"

#define WEIR_PACE_MAGIC 0x65636170u /* "pace", little endian */

struct weir_pace_mark {
	__u64 departure_ns; /* CLOCK_MONOTONIC */
	__u32 magic;	    /* distinguishes it from metadata of an XDP program on a device before this one */
	__u32 zero;
};
_Static_assert(sizeof(struct weir_pace_mark) % 4 == 0 && sizeof(struct weir_pace_mark) <= 32,
	       "bpf_xdp_adjust_meta takes no other sizes");

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
 * Write down when the packet is to depart: s->wait_ns from now. If the driver does not support metadata the packet
 * passes at once, as with `throttling: police`, and is counted. Pointers into the packet are invalid afterwards.
 */
static __always_inline void weir_pace_mark(struct xdp_md *ctx, struct weir_scratch *s)
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
		return; /* never happens, but the verifier does not know what the helper did */
	mark->departure_ns = s->now_ns + s->wait_ns;
	mark->magic = WEIR_PACE_MAGIC;
	mark->zero = 0;
	counters->marked++;
}

#endif
