// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tc program of `settings.throttling: pace`, in a filter at ingress of the interfaces that the XDP program is on. A
 * packet that has to wait gets its departure time, and matches: the filter's action redirects it to an ifb
 * whose fq qdisc holds it until then; the ifb puts it back where it came from, behind this filter.
 * user/kernel/pace.c sets all that up.
 */
#include <linux/bpf.h>
#include <linux/pkt_sched.h>
#include <bpf/bpf_helpers.h>

#include "pace.h"

/* What a program without direct action returns (cls_bpf_classify). */
#define NO_MATCH 0
#define MATCH -1

SEC("tc")
int weir_pace(struct __sk_buff *skb)
{
	struct weir_pace_mark *mark = (void *)(long)skb->data_meta;
	struct weir_pace_counters *counters;

	if ((void *)(mark + 1) > (void *)(long)skb->data || mark->magic != WEIR_PACE_MAGIC)
		return NO_MATCH;
	counters = weir_pace_counters();
	if (!counters)
		return NO_MATCH;
	/* The kernel keeps a delivery time for IPv4 and IPv6 only, and takes a frame with two VLAN tags for neither. */
	if (bpf_skb_set_tstamp(skb, mark->departure_ns, BPF_SKB_TSTAMP_DELIVERY_MONO)) {
		counters->unpaced++;
		return NO_MATCH;
	}
	/* fq never holds what has this priority, which a sender on this host can choose. */
	if ((skb->priority & TC_PRIO_MAX) == TC_PRIO_CONTROL)
		skb->priority = TC_PRIO_INTERACTIVE;
	counters->paced++;
	return MATCH;
}

char LICENSE[] SEC("license") = "GPL";
