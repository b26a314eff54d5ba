// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs after weir_ingress on the wire, whenever it returns, and notes what it let pass, with the time that its verdict
 * went by: the clock if it was read, else the bucket that it took for the present one.
 */
#include "wire_records.h"

#include <bpf/bpf_tracing.h>

#include "../../bpf/work.h"

/* The shipped object's. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_totals);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_TIMINGS_MAX);
	__type(key, __u32);
	__type(value, struct weir_clock);
} clocks SEC(".maps");

volatile __u32 wide_ports; /* from this one on rows are wide */

/* All rules have the same interval: one timing, the first. */
static __always_inline __u64 judged_ns(const struct weir_work *work)
{
	const struct weir_clock *clock;
	__u32 zero = 0;

	if (work->has_now)
		return work->now_ns;
	if (work->packet.destination_port < wide_ports)
		return work->narrow[0].start_ns;
	clock = bpf_map_lookup_elem(&clocks, &zero);
	return clock ? clock->start_ns : 0;
}

struct xdp_buff;

SEC("fexit/weir_ingress")
int BPF_PROG(bench_note, struct xdp_buff *packet, int action)
{
	__u32 zero = 0;
	const struct weir_totals *mine = bpf_map_lookup_elem(&totals, &zero);
	const struct weir_work *work;

	if (action != XDP_PASS || !mine)
		return 0;
	work = (const struct weir_work *)mine->program_private;
	wire_note(bpf_ntohl(work->packet.source[0]), judged_ns(work));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
