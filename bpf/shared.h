/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Flows in tables that all CPUs share: throttling's planned times, warm-up per flow. A flow has one set; its words in
 * it are changed by atomics. Insertion alone takes the set's lock, for some fifty nanoseconds, so that a flow never
 * gets two places: both CPUs that meet a new flow at once find the same.
 */
#ifndef WEIR_SHARED_H
#define WEIR_SHARED_H

#include "flow.h"

static __always_inline struct weir_flow_place weir_shared_place(const struct weir_rule *rule,
								const struct weir_packet *pkt, __u32 sets)
{
	__u64 hash = weir_hash_key(rule, pkt);
	struct weir_flow_place place = {.tag = hash >> 32, .set = hash & (sets - 1)};

	if (place.tag == 0)
		place.tag = 1;
	return place;
}

/* The way with this tag, or `ways`. Also to find a free one: tag 0. */
static __always_inline __u32 weir_shared_way(const __u32 *tags, const __u32 ways, __u32 tag)
{
#pragma unroll
	for (__u32 way = 0; way < ways; way++)
		if (READ_ONCE(tags[way]) == tag)
			return way;
	return ways;
}

#endif
