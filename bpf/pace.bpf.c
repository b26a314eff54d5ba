// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tc program of `settings.throttling: pace`: a filter at the ingress of each interface that has the XDP program. It
 * gives a packet that must wait its departure time, and matches it. The filter's action then redirects the packet to an
 * ifb, whose fq qdisc delays it until it is due. The ifb returns the packet to its interface, behind this filter.
 * user/lib/kernel/pace/pace.c sets all of this up.
 */
#include <linux/bpf.h>
#include <linux/pkt_sched.h>
#include <bpf/bpf_helpers.h>

#include "pace.h"

/* Return values of a program without direct action (the kernel's cls_bpf_classify). */
#define NO_MATCH 0
#define MATCH -1

SEC("tc")
int weir_pace(struct __sk_buff *skb)
{
	struct weir_pace_mark *mark = (void *)(long)skb->data_meta;
	struct weir_pace_counters *counters = weir_pace_counters();
	const bool is_from_xdp = (void *)(mark + 1) <= (void *)(long)skb->data && mark->magic == WEIR_PACE_MAGIC;

	if (!counters || (!is_from_xdp && skb->cb[0] != WEIR_PACE_MAGIC))
		return NO_MATCH;
	/* The kernel keeps delivery times for IPv4 and IPv6 only, and recognises neither behind two VLAN tags. */
	if (is_from_xdp && bpf_skb_set_tstamp(skb, mark->departure_ns, BPF_SKB_TSTAMP_DELIVERY_MONO)) {
		counters->unpaced++;
		return NO_MATCH;
	}
	/* fq never delays packets of this priority, which a sender on this host may choose. */
	if ((skb->priority & TC_PRIO_MAX) == TC_PRIO_CONTROL)
		skb->priority = TC_PRIO_INTERACTIVE;
	counters->paced++;
	return MATCH;
}

char LICENSE[] SEC("license") = "GPL";
