// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver: gives each packet of a BPF_PROG_TEST_RUN another source address and tail-calls what is to
 * be measured. An empty program in its place shows what driver and harness cost, so that it can be
 * subtracted. Beside it the building blocks that weir is compared with.
 *
 * "xdp.frags" throughout: programs that tail-call each other must agree in that.
 */
#include "blocks.h"

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bench_cursor);
} cursors SEC(".maps");

BENCH_LRU(known4, __be32);
BENCH_LRU(known6, struct in6_addr);
BENCH_LRU(spoofed4, __be32);
BENCH_LRU(spoofed6, struct in6_addr);

volatile __u32 sources;		       /* enum bench_sources */
volatile __u32 first_flow, flow_count; /* of BENCH_SOURCES_MANY */

/* ---- the driver ---- */

static __always_inline __u32 bench_next_source(struct bench_cursor *cursor)
{
	__u64 random;

	if (sources == BENCH_SOURCES_ONE)
		return 0xc0000201; /* 192.0.2.1 */
	if (sources == BENCH_SOURCES_NEW)
		return bench_scatter(cursor->next++);
	random = cursor->random;
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	cursor->random = random;
	return bench_scatter(first_flow + ((random >> 32) * flow_count >> 32));
}

SEC("xdp.frags")
int bench_drive(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct ipv6hdr *ip6 = (void *)(eth + 1);
	struct iphdr *tagged = (void *)(eth + 1) + 4; /* behind a VLAN tag */
	__u32 zero = 0, source;
	struct bench_cursor *cursor = bpf_map_lookup_elem(&cursors, &zero);

	if (!cursor || (void *)(ip + 1) > end)
		return XDP_ABORTED;
	if (cursor->rests)
		return XDP_DROP;
	source = bench_next_source(cursor);
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		ip->saddr = source;
		/* keeps the checksum of rig_frame_tcp(), where this is the number that is acknowledged */
		if ((void *)(ip + 1) + 12 <= end)
			*(__u32 *)((void *)(ip + 1) + 8) = ~source;
	} else if (eth->h_proto == bpf_htons(ETH_P_8021Q)) {
		if ((void *)(tagged + 1) > end)
			return XDP_ABORTED;
		tagged->saddr = source;
	} else if ((void *)(ip6 + 1) <= end) {
		ip6->saddr.s6_addr32[1] = ~source;
		ip6->saddr.s6_addr32[3] = source;
	}
	bpf_tail_call(ctx, &target, 0);
	return XDP_ABORTED;
}

/* ---- what it may call ---- */

SEC("xdp.frags")
int bench_empty(struct xdp_md *ctx)
{
	return XDP_DROP;
}

struct bench_meeting meetings[BENCH_CPUS];
volatile __u32 second_cpu;

/* Has the other CPU run since this one looked last? Two runs that take turns never meet. */
SEC("xdp.frags")
int bench_meet(struct xdp_md *ctx)
{
	__u32 cpu = bpf_get_smp_processor_id() == second_cpu;
	volatile struct bench_meeting *own = &meetings[cpu];
	__u64 other_runs = *(volatile __u64 *)&meetings[!cpu].runs;

	own->runs++;
	if (other_runs != own->other_runs)
		own->met++;
	own->other_runs = other_runs;
	return XDP_DROP;
}

SEC("xdp.frags")
int bench_hit4(struct xdp_md *ctx)
{
	__be32 key;

	return bench_source4(ctx, &key) ? XDP_ABORTED : bench_hit(&known4, &key);
}

SEC("xdp.frags")
int bench_hit6(struct xdp_md *ctx)
{
	struct in6_addr key;

	return bench_source6(ctx, &key) ? XDP_ABORTED : bench_hit(&known6, &key);
}

SEC("xdp.frags")
int bench_fill4(struct xdp_md *ctx)
{
	__be32 key;

	return bench_source4(ctx, &key) ? XDP_ABORTED : bench_insert(&known4, &key);
}

SEC("xdp.frags")
int bench_fill6(struct xdp_md *ctx)
{
	struct in6_addr key;

	return bench_source6(ctx, &key) ? XDP_ABORTED : bench_insert(&known6, &key);
}

SEC("xdp.frags")
int bench_spoofed4(struct xdp_md *ctx)
{
	__be32 key;

	return bench_source4(ctx, &key) ? XDP_ABORTED : bench_insert(&spoofed4, &key);
}

SEC("xdp.frags")
int bench_spoofed6(struct xdp_md *ctx)
{
	struct in6_addr key;

	return bench_source6(ctx, &key) ? XDP_ABORTED : bench_insert(&spoofed6, &key);
}

char LICENSE[] SEC("license") = "GPL";
