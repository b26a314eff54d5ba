/* SPDX-License-Identifier: GPL-2.0-only */
/* The position of a flow in tables shared by all CPUs, computed from its hash as in bpf/kinds/flow_set.h. */
#ifndef WEIR_TABLES_SHARED_SETS_H
#define WEIR_TABLES_SHARED_SETS_H

#include <stdint.h>

/* The tag of the flow's entry; 0 marks an empty way. */
static inline uint32_t weir_shared_tag(uint64_t hash)
{
	return hash >> 32 ? hash >> 32 : 1;
}

/* The flow's set in a table with this number of sets, which is a power of two. */
static inline uint32_t weir_shared_set(uint64_t hash, uint32_t sets)
{
	return (uint32_t)hash & (sets - 1);
}

#endif
