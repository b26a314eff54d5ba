/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few things of traffic control that weir needs: a clsact qdisc, filters in it that limit packets where the kernel
 * has no tcx (tcx.h), and what pacing is made of: an ifb with an fq qdisc, and the filter with its program. One request
 * each, in the network namespace of the socket (netlink.h). Returns 0 or the kernel's -errno everywhere; knows nothing
 * of instances.
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

/* A filter that limits, of an instance's own handle and name (at most WEIR_TC_NAME_BYTES with its end). The program's
 * answer is the verdict (direct action); at TC_ACT_UNSPEC the next filter is asked.
 */
struct weir_tc_limiter {
	uint32_t ifindex;
	bool is_egress;
	uint32_t handle;
	const char *name;
};

#define WEIR_TC_NAME_BYTES 128
#define WEIR_TC_LIMITER_PREFERENCE 0xffe0u /* as 'tc filter show' prints it: "pref" */

/* Replaces the program of one that is there. -EEXIST: another one has its handle. */
int weir_tc_put_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter, int program_fd);
int weir_tc_delete_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter);

/* The number of its program; -ENOENT: there is no such filter. */
int weir_tc_read_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter, uint32_t *ret_program_id);

struct weir_tc_filters {
	bool has_weir;	      /* the one that paces */
	size_t limiters;      /* those that limit, of any instance, at ingress or egress */
	size_t others_before; /* at ingress, asked before weir's */
	size_t others;	      /* at ingress or egress */
};
int weir_tc_read_filters(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_filters *ret_filters);

#endif
