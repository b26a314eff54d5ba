/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tcx (Linux 6.6): BPF links at tc ingress and egress, without a qdisc. Programs run in the order in which they were
 * attached, before those of clsact; one that returns TC_ACT_UNSPEC passes the packet to the next. A tcx link is
 * detached, updated and pinned like any other link. The headers and the libbpf that we build with are older than tcx,
 * so its constants are defined here.
 */
#ifndef WEIR_NETWORK_TCX_H
#define WEIR_NETWORK_TCX_H

#include <stdbool.h>
#include <stdint.h>

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
