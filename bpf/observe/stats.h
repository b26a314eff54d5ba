/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters. They are per CPU and written only here, so plain additions are enough. No verdict depends on this file.
 */
#ifndef WEIR_STATS_H
#define WEIR_STATS_H

#include "clock.h"

static __always_inline void weir_tally(struct weir_tally *tally, const struct weir_scratch *s, __u32 bytes)
{
	tally->packets += WEIR_SEGMENTS(s);
	tally->bytes += bytes;
}

static __always_inline struct weir_rule_counters *weir_rule_counters(__u32 slot)
{
	return bpf_map_lookup_elem(&rule_counters, &slot);
}

static __always_inline void weir_count_eviction(__u32 slot)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (counters)
		counters->evicted++;
}

static __always_inline void weir_count_stall(__u32 slot)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (counters)
		counters->stalled++;
}

static __always_inline void weir_count_lease(__u32 slot)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (counters)
		counters->leases++;
}

static __always_inline void weir_count_delay(const struct weir_scratch *s, __u32 slot, __u64 wait_ns)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (!counters)
		return;
	counters->delayed += WEIR_SEGMENTS(s);
	counters->delay_ns += wait_ns * WEIR_SEGMENTS(s);
}

static __always_inline void weir_count_rule_change(__u32 slot)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (counters)
		counters->changes++;
}

static __always_inline void weir_count_block(const struct weir_scratch *s, __u32 slot, bool observes)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (!counters)
		return;
	weir_tally(observes ? &counters->would_drop : &counters->blocked, s, s->packet.frame_bytes);
}

static __always_inline void weir_count_resource(struct weir_scratch *s, __u32 slot, bool passes)
{
	struct weir_resource_counters *counters = bpf_map_lookup_elem(&resource_counters, &slot);
	__u32 bytes = s->packet.frame_bytes, now_s;
	struct weir_second *second;

	if (unlikely(!counters))
		return;
	/* Counted by the tick, because no verdict depends on it. */
	now_s = s->tick_s;
	second = &counters->second[now_s & (WEIR_SECONDS - 1)];
	OPAQUE(second); /* else clang works its address out twice */
	if (unlikely(second->second != now_s)) {
		second->second = now_s;
		second->passed = 0;
		second->blocked = 0;
	}
	if (passes) {
		weir_tally(&counters->passed, s, bytes);
		second->passed += WEIR_SEGMENTS(s);
	} else {
		weir_tally(&counters->blocked, s, bytes);
		second->blocked += WEIR_SEGMENTS(s);
	}
}

__noinline int weir_count_resources(struct weir_scratch *s, __u32 passes)
{
	WEIR_GLOBAL(SEVERAL_RESOURCES, s, 0);
	for (__u32 i = 0; i < WEIR_PACKET_RESOURCES_MAX && i < s->resource_count; i++)
		weir_count_resource(s, weir_resource(s->resource[i])->slot, passes);
	return 0;
}

static __always_inline bool weir_verdict_passes(enum weir_verdict verdict)
{
	const __u32 passing = 1 << WEIR_VERDICT_PASS | 1 << WEIR_VERDICT_MALFORMED_PASS |
			      1 << WEIR_VERDICT_UNSUPPORTED_PASS | 1 << WEIR_VERDICT_NON_IP_PASS |
			      1 << WEIR_VERDICT_UNMATCHED_PASS | 1 << WEIR_VERDICT_ALLOW;

	return passing >> verdict & 1;
}

/* The counters of the packet's direction. */
static __always_inline struct weir_totals *weir_totals_of(struct weir_scratch *s)
{
#ifdef WEIR_TC
	if (WEIR_IS_OUT(&s->packet))
		return &((struct weir_cpu_state *)s)->out;
#endif
	return &s->totals;
}

#endif
