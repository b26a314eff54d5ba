// SPDX-License-Identifier: GPL-2.0-only
#include "network/tcx.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <net/if.h>
#include <stdlib.h>

/* enum bpf_attach_type of Linux 6.6 (include/uapi/linux/bpf.h) */
#define TCX_INGRESS 46
#define TCX_EGRESS 47

/* BPF_F_BEFORE, BPF_F_AFTER and BPF_F_ID of the same header */
#define FLAG_BEFORE (1u << 3)
#define FLAG_AFTER (1u << 4)
#define FLAG_ID (1u << 5)

/* Lets tests use filters on a kernel that has tcx. */
#define WITHOUT_TCX "WEIR_WITHOUT_TCX"

static enum bpf_attach_type attach_type(bool is_egress)
{
	return (enum bpf_attach_type)(is_egress ? TCX_EGRESS : TCX_INGRESS);
}

int weir_tcx_attach(int program_fd, uint32_t ifindex, bool is_egress, const struct weir_tcx_place *place)
{
	/* link_create.tcx.relative_id is where link_create.target_btf_id is, which libbpf fills in. */
	LIBBPF_OPTS(bpf_link_create_opts, options, .target_btf_id = place->program_id,
		    .flags = (place->is_before	  ? FLAG_BEFORE
			      : place->program_id ? FLAG_AFTER
						  : 0) |
			     (place->program_id ? FLAG_ID : 0));
	char name[IF_NAMESIZE];
	int link_fd;

	if (secure_getenv(WITHOUT_TCX))
		return -EOPNOTSUPP;
	link_fd = bpf_link_create(program_fd, (int)ifindex, attach_type(is_egress), &options);
	if (link_fd == -EINVAL) /* the kernel does not know the attach type, or there is no such interface */
		return if_indextoname(ifindex, name) ? -EOPNOTSUPP : -ENODEV;
	return link_fd;
}

int weir_tcx_read(uint32_t ifindex, bool is_egress, uint32_t ret_ids[WEIR_TCX_PROGRAMS_MAX])
{
	__u32 count = WEIR_TCX_PROGRAMS_MAX;
	int err = bpf_prog_query((int)ifindex, attach_type(is_egress), 0, NULL, ret_ids, &count);

	return err ? err : (int)count;
}

int weir_tcx_has(uint32_t program_id, uint32_t ifindex, bool is_egress)
{
	uint32_t ids[WEIR_TCX_PROGRAMS_MAX] = {};
	int count = weir_tcx_read(ifindex, is_egress, ids);

	for (int i = 0; i < count; i++)
		if (ids[i] == program_id)
			return 1;
	return count < 0 ? count : 0;
}

uint32_t weir_tcx_count(uint32_t ifindex, bool is_egress)
{
	uint32_t ids[WEIR_TCX_PROGRAMS_MAX];
	int count = weir_tcx_read(ifindex, is_egress, ids);

	return count < 0 ? 0 : count;
}

/* For an unknown attach type the kernel returns EINVAL, and for an unknown interface ENODEV. */
bool weir_tcx_is_there(void)
{
	__u32 count = 0;

	return !secure_getenv(WITHOUT_TCX) && bpf_prog_query(0, attach_type(false), 0, NULL, NULL, &count) == -ENODEV;
}
