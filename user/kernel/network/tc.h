/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few things of traffic control that pacing is made of: an ifb with an fq qdisc, a clsact qdisc, and the filter
 * with weir's program. One request each, in the network namespace of the socket (netlink.h). Returns 0 or the kernel's
 * -errno everywhere; knows nothing of instances.
 */
#ifndef WEIR_NETWORK_TC_H
#define WEIR_NETWORK_TC_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "network/netlink.h"

#define WEIR_TC_FILTER_NAME "weir_pace"

/* A new ifb, down. -EEXIST: an interface of this name is there; -EOPNOTSUPP: the kernel has no ifb. */
int weir_tc_add_ifb(struct weir_netlink *netlink, const char *name);
int weir_tc_set_up(struct weir_netlink *netlink, uint32_t ifindex);
int weir_tc_delete_link(struct weir_netlink *netlink, uint32_t ifindex);
bool weir_tc_is_ifb(struct weir_netlink *netlink, uint32_t ifindex);

/*
 * fq that lets nothing go before its time and drops nothing but what exceeds limit_packets, of all flows together.
 * -ENOENT: the kernel has no fq.
 */
int weir_tc_add_fq(struct weir_netlink *netlink, uint32_t ifindex, uint32_t limit_packets);

struct weir_tc_queue {
	uint32_t waiting; /* packets, now */
	uint32_t dropped; /* since it was made, modulo 2^32 */
};
int weir_tc_read_queue(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_queue *ret_queue);

/* What sends the packets of a device: its root qdisc, or each child of a root that only spreads them (mq). */
struct weir_tc_senders {
	char root[IFNAMSIZ]; /* "fq", "noqueue", ... */
	bool is_spread;	     /* the root is mq */
	size_t count;	     /* of senders */
	size_t fq_count;     /* of these, fq */
	/* of its fq, the least */
	uint32_t limit, flow_limit; /* packets */
	uint32_t horizon_us;
};
int weir_tc_read_senders(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_senders *ret_senders);

/* -EEXIST: it, or an ingress qdisc, is there; -ENOENT: the kernel has none. */
int weir_tc_add_clsact(struct weir_netlink *netlink, uint32_t ifindex);
int weir_tc_delete_clsact(struct weir_netlink *netlink, uint32_t ifindex);

/*
 * The filter at ingress, of weir's priority and handle; replaces one that is there. What the program returns -1 for
 * is redirected to egress of `device` (0: nothing is). program_fd < 0: a program that matches nothing, by which to see
 * whether there can be one. -ENOENT: the kernel has no BPF filters, or no redirection.
 */
int weir_tc_set_filter(struct weir_netlink *netlink, uint32_t ifindex, int program_fd, uint32_t device);
int weir_tc_delete_filter(struct weir_netlink *netlink, uint32_t ifindex);

struct weir_tc_filters {
	bool has_weir;
	size_t others_before; /* at ingress, asked before weir's */
	size_t others;	      /* at ingress or egress */
};
int weir_tc_read_filters(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_filters *ret_filters);

#endif
