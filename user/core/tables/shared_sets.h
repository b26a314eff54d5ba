/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a flow stands in tables that all CPUs share, by its hash: as bpf/kinds/flow_set.h has it. */
#ifndef WEIR_TABLES_SHARED_SETS_H
#define WEIR_TABLES_SHARED_SETS_H

#include <stdint.h>

/* The tag of its entry: 0 is an empty way. */
static inline uint32_t weir_shared_tag(uint64_t hash)
{
	return hash >> 32 ? hash >> 32 : 1;
}

/* The set of a table that has so many, a power of two. */
static inline uint32_t weir_shared_set(uint64_t hash, uint32_t sets)
{
	return (uint32_t)hash & (sets - 1);
}

#endif
