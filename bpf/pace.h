/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a throttled packet is delayed. An incoming packet is delayed by a tc program that runs after the decision
 * (pace.bpf.c). XDP passes the departure time to it in the packet's metadata, in front of the frame. No sender can
 * forge that, because metadata never crosses the wire. In tc mode the packet gets its departure time at once, and a
 * word in its control block says so. An outgoing packet is delayed by the fq of its device. All these programs include
 * this file.
 */
#ifndef WEIR_PACE_H
#define WEIR_PACE_H

#include <linux/bpf.h>
#include <linux/pkt_sched.h>
#include <bpf/bpf_helpers.h>

#include "weir_abi.h"
#include "scratch.h"

#define WEIR_PACE_MAGIC 0x65636170u /* "pace", little endian */

struct weir_pace_mark {
	__u64 departure_ns; /* CLOCK_MONOTONIC */
	__u32 magic;	    /* distinguishes it from metadata that an XDP program on an earlier device left */
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

#ifdef WEIR_TC

/* Give the packet its departure time: s->wait_ns from now, or a later one that its sender has set (TCP does). */
static __always_inline bool weir_set_departure(struct __sk_buff *skb, const struct weir_scratch *s,
					       struct weir_pace_counters *counters)
{
	__u64 departure_ns = s->now_ns + s->wait_ns;

	if (skb->tstamp_type == BPF_SKB_TSTAMP_DELIVERY_MONO && skb->tstamp > departure_ns)
		departure_ns = skb->tstamp;
	/* The kernel keeps delivery times for IPv4 and IPv6 only, and recognises neither behind two VLAN tags. */
	if (!bpf_skb_set_tstamp(skb, departure_ns, BPF_SKB_TSTAMP_DELIVERY_MONO))
		return true;
	counters->unmarked++;
	return false;
}

/* For pace.bpf.c, which runs next. Write the word for every packet, because others may have left anything there. */
static __always_inline void weir_pace_in(struct __sk_buff *skb, const struct weir_scratch *s, __u64 wait_ns)
{
	struct weir_pace_counters *counters = weir_pace_counters();

	skb->cb[0] = 0;
	if (!wait_ns || !counters || !weir_set_departure(skb, s, counters))
		return;
	skb->cb[0] = WEIR_PACE_MAGIC;
	counters->marked++;
}

static __always_inline void weir_pace_out(struct __sk_buff *skb, const struct weir_scratch *s, __u64 wait_ns)
{
	struct weir_pace_counters *counters = weir_pace_counters();

	if (!wait_ns || !counters || !weir_set_departure(skb, s, counters))
		return;
	/* fq never delays packets of this priority. */
	if ((skb->priority & TC_PRIO_MAX) == TC_PRIO_CONTROL)
		skb->priority = TC_PRIO_INTERACTIVE;
	counters->marked++;
	counters->paced++;
}

#else

/*
 * Record when the packet is to depart: s->wait_ns from now. If the driver does not support metadata, the packet
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

#endif
