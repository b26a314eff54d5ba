// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tc program of `settings.throttling: pace`, at ingress of the interfaces that the XDP program is on. A packet that
 * has to wait is redirected, with its departure time, to an ifb whose fq qdisc holds it until then; the ifb puts
 * it back where it came from, behind this program. user/kernel/pace.c sets all that up.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <bpf/bpf_helpers.h>

#include "pace.h"

const volatile __u32 pace_ifindex = 0; /* of the ifb: set before the load */

SEC("tc")
int weir_pace(struct __sk_buff *skb)
{
	struct weir_pace_mark *mark = (void *)(long)skb->data_meta;
	struct weir_pace_counters *counters;

	if ((void *)(mark + 1) > (void *)(long)skb->data || mark->magic != WEIR_PACE_MAGIC)
		return TC_ACT_UNSPEC;
	counters = weir_pace_counters();
	if (!counters)
		return TC_ACT_UNSPEC;
	/* The kernel keeps a delivery time for IPv4 and IPv6 only, and takes a frame with two VLAN tags for neither. */
	if (bpf_skb_set_tstamp(skb, mark->departure_ns, BPF_SKB_TSTAMP_DELIVERY_MONO)) {
		counters->unpaced++;
		return TC_ACT_UNSPEC;
	}
	/* fq never holds what has this priority, which a sender on this host can choose. */
	if ((skb->priority & TC_PRIO_MAX) == TC_PRIO_CONTROL)
		skb->priority = TC_PRIO_INTERACTIVE;
	counters->paced++;
	return bpf_redirect(pace_ifindex, 0);
}

char LICENSE[] SEC("license") = "GPL";
