/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The few parts of traffic control that weir needs: a clsact qdisc; filters in it that limit packets if the kernel has
 * no tcx; and the parts of pacing, which are an ifb with an fq qdisc, and the filter with its program. Each
 * call is one request, in the network namespace of the socket (netlink.h). All return 0 or the kernel's -errno.
 * Independent of instances.
 */
#ifndef WEIR_NETWORK_TC_H
#define WEIR_NETWORK_TC_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "network/netlink.h"

#define WEIR_TC_FILTER_NAME "weir_pace"

/* Create an ifb, which is down. -EEXIST: an interface of this name exists; -EOPNOTSUPP: the kernel has no ifb. */
int weir_tc_add_ifb(struct weir_netlink *netlink, const char *name);
int weir_tc_set_up(struct weir_netlink *netlink, uint32_t ifindex);
int weir_tc_delete_link(struct weir_netlink *netlink, uint32_t ifindex);
bool weir_tc_is_ifb(struct weir_netlink *netlink, uint32_t ifindex);

/*
 * An fq qdisc that sends no packet before its time, and drops only packets beyond limit_packets, which applies to all
 * flows together. -ENOENT: the kernel has no fq.
 */
int weir_tc_add_fq(struct weir_netlink *netlink, uint32_t ifindex, uint32_t limit_packets);

struct weir_tc_queue {
	uint32_t waiting; /* packets waiting now */
	uint32_t dropped; /* since the qdisc was created, modulo 2^32 */
};
int weir_tc_read_queue(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_queue *ret_queue);

/* The qdiscs that send the packets of a device: its root qdisc, or each child of a root that only distributes packets
 * (mq).
 */
struct weir_tc_senders {
	char root[IFNAMSIZ]; /* "fq", "noqueue", ... */
	bool is_spread;	     /* the root is mq */
	size_t count;	     /* number of senders */
	size_t fq_count;     /* number of senders that are fq */
	/* The lowest values among its fq qdiscs. */
	uint32_t limit, flow_limit; /* packets */
	uint32_t horizon_us;
};
int weir_tc_read_senders(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_senders *ret_senders);

/* -EEXIST: the interface already has a clsact or ingress qdisc; -ENOENT: the kernel has no clsact. */
int weir_tc_add_clsact(struct weir_netlink *netlink, uint32_t ifindex);
int weir_tc_delete_clsact(struct weir_netlink *netlink, uint32_t ifindex);

/*
 * The pacing filter at ingress, with weir's priority and handle; replaces an existing one. A packet for which the
 * program returns -1 is redirected to the egress of `device` (0: no packet is). program_fd < 0: use a program that
 * matches nothing, to find out whether such a filter is possible. -ENOENT: the kernel has no BPF filters, or no
 * redirection.
 */
int weir_tc_set_filter(struct weir_netlink *netlink, uint32_t ifindex, int program_fd, uint32_t device);
int weir_tc_delete_filter(struct weir_netlink *netlink, uint32_t ifindex);

/* A filter that limits. Its handle and name belong to one instance (the name has at most WEIR_TC_NAME_BYTES with its
 * end). The program's answer is the verdict (direct action); after TC_ACT_UNSPEC the next filter runs.
 */
struct weir_tc_limiter {
	uint32_t ifindex;
	bool is_egress;
	uint32_t handle;
	const char *name;
};

#define WEIR_TC_NAME_BYTES 128
#define WEIR_TC_LIMITER_PREFERENCE 0xffe0u /* 'tc filter show' prints this as "pref" */

/* Replaces the program of an existing filter. -EEXIST: another filter has its handle. */
int weir_tc_put_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter, int program_fd);
int weir_tc_delete_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter);

/* The id of its program; -ENOENT: there is no such filter. */
int weir_tc_read_limiter(struct weir_netlink *netlink, const struct weir_tc_limiter *limiter, uint32_t *ret_program_id);

#define WEIR_TC_LISTED_MAX 64 /* chosen, not derived */
struct weir_tc_filter {
	bool is_egress;
	uint32_t program_id;	       /* 0: it is no BPF program */
	char name[WEIR_TC_NAME_BYTES]; /* that of its program, or its kind: "u32" */
};

struct weir_tc_filters {
	/* All of them, in the order in which they run; those beyond WEIR_TC_LISTED_MAX are only counted. */
	struct weir_tc_filter listed[WEIR_TC_LISTED_MAX];
	size_t listed_count;
	bool has_weir;	      /* the filter that paces */
	size_t limiters;      /* filters that limit, of all instances, at ingress or egress */
	size_t others_before; /* at ingress, running before weir's */
	size_t others;	      /* at ingress or egress */
};

/* What to say of programs and filters that run before weir's, at a hook ("ingress") of an interface. */
#define WEIR_TC_BEFORE_WORDS                                                                                           \
	"other tc programs run before weir's at %s of '%s': packets that they finally accept or redirect are not "     \
	"limited"

int weir_tc_read_filters(struct weir_netlink *netlink, uint32_t ifindex, struct weir_tc_filters *ret_filters);

/* ---- tcx (Linux 6.6) ----
 *
 * BPF links at tc ingress and egress, without a qdisc. Programs run in the order in which they were
 * attached, before those of clsact; one that returns TC_ACT_UNSPEC passes the packet to the next. A tcx link is
 * detached, updated and pinned like any other link. The headers and the libbpf that we build with are older than tcx,
 * so its constants are defined here.
 */

/* A place among the programs of a hook: {}, behind all of them; else before or after one. */
struct weir_tcx_place {
	bool is_before;
	uint32_t program_id; /* 0, with is_before: before all */
};

static inline bool weir_tcx_place_is_last(const struct weir_tcx_place *place)
{
	return !place->is_before && !place->program_id;
}

static inline bool weir_tcx_place_is_first(const struct weir_tcx_place *place)
{
	return place->is_before && !place->program_id;
}

/* Returns the link; -EOPNOTSUPP: the kernel has no tcx; or another -errno. The program of the place must be there.
 */
int weir_tcx_attach(int program_fd, uint32_t ifindex, bool is_egress, const struct weir_tcx_place *place);

/* Whether this program is on that interface of the present network namespace: 1, 0, or -errno. -EPERM: the query needs
 * CAP_NET_ADMIN.
 */
int weir_tcx_has(uint32_t program_id, uint32_t ifindex, bool is_egress);

/* BPF_MPROG_MAX (include/linux/bpf_mprog.h): the most programs that an interface can have in one direction */
#define WEIR_TCX_PROGRAMS_MAX 64

/* The ids of the programs on the interface, in the order in which they run. Returns their number, or -errno. */
int weir_tcx_read(uint32_t ifindex, bool is_egress, uint32_t ret_ids[WEIR_TCX_PROGRAMS_MAX]);

/* How many programs are on the interface; also 0 if this cannot be determined. */
uint32_t weir_tcx_count(uint32_t ifindex, bool is_egress);

/* The kernel supports tcx. */
bool weir_tcx_is_there(void);

#endif
