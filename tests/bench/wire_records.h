/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the wire's BPF programs note what has passed. Included by each; one of them has the maps, the others share them.
 */
#ifndef WEIR_BENCH_WIRE_RECORDS_H
#define WEIR_BENCH_WIRE_RECORDS_H

#include "blocks.h"
#include "wire_log.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_CPUS_MAX *WIRE_RECORDS_MAX);
	__type(key, __u32);
	__type(value, struct wire_record);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WIRE_CPUS_MAX);
	__type(key, __u32);
	__type(value, struct wire_count);
} record_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wire_setting);
} setting SEC(".maps");

static __always_inline __u32 wire_cpu(const struct wire_setting *now)
{
	return bpf_get_smp_processor_id() == now->second_cpu;
}

/* judged_ns 0: not known, it is taken to be now. */
static __always_inline void wire_note(__u32 source, __u64 judged_ns)
{
	__u32 zero = 0, cpu, number = source - WIRE_BASE, flow = number & ((1u << WIRE_FLOW_BITS) - 1), key;
	const struct wire_setting *now = bpf_map_lookup_elem(&setting, &zero);
	__u64 now_ns = bpf_ktime_get_ns();
	struct wire_record *record;
	struct wire_count *count;

	if (!now || !now->from_ns || now_ns < now->from_ns || number >> WIRE_SOURCE_BITS)
		return;
	if (flow >= now->noted_flows[number >> WIRE_FLOW_BITS & (WIRE_CLASSES - 1)])
		return;
	cpu = wire_cpu(now);
	count = bpf_map_lookup_elem(&record_counts, &cpu);
	if (!count || count->records >= WIRE_RECORDS_MAX)
		return;
	key = cpu * WIRE_RECORDS_MAX + count->records++;
	record = bpf_map_lookup_elem(&records, &key);
	if (!record)
		return;
	record->source = number;
	record->judged_ns = judged_ns ? judged_ns : now_ns;
	record->heard_ns = now_ns;
}

#endif
