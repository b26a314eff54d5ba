/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the bench's BPF programs are made of: keys from packets, and a bare look-up and insertion in a map.
 */
#ifndef WEIR_BENCH_BLOCKS_H
#define WEIR_BENCH_BLOCKS_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "bench.h"

struct bench_value {
	__u64 word[8]; /* one cache line: room for a window of ten small buckets */
};

#define BENCH_LRU(map_name, key_type)                                                                                  \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);                                                                   \
		__uint(max_entries, BENCH_LRU_ENTRIES);                                                                \
		__type(key, key_type);                                                                                 \
		__type(value, struct bench_value);                                                                     \
	} map_name SEC(".maps")

/* The source address as a key: *ret4 or *ret6, by the program. */
static __always_inline int bench_source4(struct xdp_md *ctx, __be32 *ret_source)
{
	struct iphdr *ip = (void *)(long)ctx->data + sizeof(struct ethhdr);

	if ((void *)(ip + 1) > (void *)(long)ctx->data_end)
		return -1;
	*ret_source = ip->saddr;
	return 0;
}

static __always_inline int bench_source6(struct xdp_md *ctx, struct in6_addr *ret_source)
{
	struct ipv6hdr *ip6 = (void *)(long)ctx->data + sizeof(struct ethhdr);

	if ((void *)(ip6 + 1) > (void *)(long)ctx->data_end)
		return -1;
	*ret_source = ip6->saddr;
	return 0;
}

static __always_inline int bench_hit(void *map, const void *key)
{
	struct bench_value *value = bpf_map_lookup_elem(map, key);

	/* Nothing is written: a bare look-up, though the value itself is read. */
	return value && value->word[0] == 0 ? XDP_DROP : XDP_ABORTED;
}

static __always_inline int bench_insert(void *map, const void *key)
{
	struct bench_value value = {};

	if (bpf_map_lookup_elem(map, key))
		return XDP_DROP;
	return bpf_map_update_elem(map, key, &value, BPF_ANY) ? XDP_ABORTED : XDP_DROP;
}

#endif
