// SPDX-License-Identifier: GPL-2.0-only
/*
 * Building blocks that only the table of them needs, so that other parts need not wait for their maps. Called by
 * the driver (driver.bpf.c).
 */
#include "blocks.h"

#define BENCH_LRU_PERCPU(map_name)                                                                                     \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);                                                            \
		__uint(max_entries, BENCH_LRU_ENTRIES);                                                                \
		__type(key, __be32);                                                                                   \
		__type(value, struct bench_value);                                                                     \
	} map_name SEC(".maps")

BENCH_LRU_PERCPU(known_percpu);
BENCH_LRU_PERCPU(spoofed_percpu);
BENCH_LRU(windows, __be32);

volatile __u64 clock_ns;
volatile __u64 window_ns, window_packets; /* of bench_window */

SEC("xdp.frags")
int bench_clock(struct xdp_md *ctx)
{
	clock_ns = bpf_ktime_get_ns();
	return XDP_DROP;
}

SEC("xdp.frags")
int bench_hit_percpu(struct xdp_md *ctx)
{
	__be32 key;

	return bench_source4(ctx, &key) ? XDP_ABORTED : bench_hit(&known_percpu, &key);
}

SEC("xdp.frags")
int bench_fill_percpu(struct xdp_md *ctx)
{
	__be32 key;

	return bench_source4(ctx, &key) ? XDP_ABORTED : bench_insert(&known_percpu, &key);
}

SEC("xdp.frags")
int bench_spoofed_percpu(struct xdp_md *ctx)
{
	__be32 key;

	return bench_source4(ctx, &key) ? XDP_ABORTED : bench_insert(&spoofed_percpu, &key);
}

/*
 * The least that limits packets of each source: a fixed window that begins with a source's first packet. Neither a
 * sliding window nor exact (two CPUs that begin a window at once count it twice), IPv4 without VLAN or options
 * only, no statistics.
 */
SEC("xdp.frags")
int bench_window(struct xdp_md *ctx)
{
	struct bench_value fresh = {}, *value; /* word[0]: when the window began, word[1]: packets in it */
	__u64 now_ns = bpf_ktime_get_ns();
	__be32 key;

	if (bench_source4(ctx, &key))
		return XDP_ABORTED;
	value = bpf_map_lookup_elem(&windows, &key);
	if (!value) {
		fresh.word[0] = now_ns;
		fresh.word[1] = 1;
		return bpf_map_update_elem(&windows, &key, &fresh, BPF_ANY) ? XDP_ABORTED : XDP_PASS;
	}
	if (now_ns - value->word[0] >= window_ns) {
		value->word[0] = now_ns;
		value->word[1] = 0;
	}
	return __sync_fetch_and_add(&value->word[1], 1) < window_packets ? XDP_PASS : XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
