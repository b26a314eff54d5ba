// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generator's end of the wire, plain ends for the other, and what listens behind limiters that are not ours.
 */
#include <stddef.h>

#include <linux/tcp.h>
#include <linux/udp.h>

#include "blocks.h"
#include "wire_log.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_CPUS_MAX);
	__type(key, __u32);
	__type(value, struct wire_schedule);
} schedules SEC(".maps");

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

volatile __u32 out_ifindex;

static __always_inline __u32 wire_cpu(const struct wire_setting *now)
{
	return bpf_get_smp_processor_id() == now->second_cpu;
}

/* ---- sending ---- */

static __always_inline struct wire_item *wire_next_item(struct wire_schedule *schedule)
{
	__u32 present = schedule->present;

	if (present >= WIRE_ITEMS_MAX)
		return NULL;
	if (schedule->sent >= schedule->item[present].packets) {
		schedule->sent = 0;
		present = present + 1 < schedule->item_count ? present + 1 : 0;
		schedule->present = present;
	}
	if (present >= WIRE_ITEMS_MAX)
		return NULL;
	schedule->sent++;
	return &schedule->item[present];
}

static __always_inline __u32 wire_next_source(struct wire_item *item)
{
	__u32 next = item->next;

	if (next >= item->flows)
		next = 0;
	item->next = next + 1;
	return WIRE_BASE + item->first + next;
}

/* RFC 1071, of a sum of few words. */
static __always_inline __u16 wire_fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

/* Of a header without options. */
static __always_inline __u16 wire_checksum(const struct iphdr *ip)
{
	const __u16 *word = (const __u16 *)ip;
	__u32 sum = 0;

	for (int i = 0; i < 10; i++)
		sum += word[i];
	return wire_fold(sum);
}

/* The page may be one that was here before, with the source of then, and may have been forwarded or answered since:
 * everything that varies is written each time. Of TCP, this is all but the length, which no answer to 60 bytes changes.
 */
SEC("xdp")
int bench_send(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u64 *stamp = (void *)(udp + 1);
	__u32 zero = 0, cpu;
	const struct wire_setting *now = bpf_map_lookup_elem(&setting, &zero);
	struct wire_schedule *schedule;
	struct wire_item *item;
	struct tcphdr *tcp;

	if (ctx->ingress_ifindex == out_ifindex)
		return XDP_DROP; /* an answer */
	if (!now)
		return XDP_ABORTED;
	cpu = wire_cpu(now);
	schedule = bpf_map_lookup_elem(&schedules, &cpu);
	if (!schedule || (void *)(stamp + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	item = wire_next_item(schedule);
	if (!item)
		return XDP_ABORTED;
	__builtin_memcpy(eth, &(const __u8[12])WIRE_ADDRESSES, 12);
	if (now->tcp_sum) {
		if ((void *)ip + sizeof(now->headers) > (void *)(long)ctx->data_end)
			return XDP_ABORTED;
		__builtin_memcpy(ip, now->headers, sizeof(now->headers));
	}
	ip->ttl = 64;
	ip->saddr = bpf_htonl(wire_next_source(item));
	ip->check = 0;
	ip->check = wire_checksum(ip);
	udp->dest = bpf_htons(item->port); /* where TCP has it, too */
	if (now->tcp_sum) {		   /* trackers of connections look at it, which other limiters do not */
		tcp = (void *)(ip + 1);
		if ((void *)(tcp + 1) > (void *)(long)ctx->data_end)
			return XDP_ABORTED;
		tcp->check = wire_fold(now->tcp_sum + (ip->saddr & 0xffff) + (ip->saddr >> 16) + tcp->dest);
	}
	if (now->from_ns)
		*stamp = bpf_ktime_get_ns();
	return bpf_redirect(out_ifindex, 0);
}

/* ---- plain ends ---- */

/* "xdp.frags", as weir is: a veth device does not treat the others alike. */
SEC("xdp.frags")
int bench_drop(struct xdp_md *ctx)
{
	return XDP_DROP;
}

SEC("xdp.frags")
int bench_pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

/* The cheapest answer: the frame itself. */
SEC("xdp.frags")
int bench_turn(struct xdp_md *ctx)
{
	struct ethhdr *eth = (void *)(long)ctx->data;
	__u8 mac[6];

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	__builtin_memcpy(mac, eth->h_dest, sizeof(mac));
	__builtin_memcpy(eth->h_dest, eth->h_source, sizeof(mac));
	__builtin_memcpy(eth->h_source, mac, sizeof(mac));
	return XDP_TX;
}

/* ---- listening ---- */

static __always_inline void note(const struct wire_setting *now, __u32 source, __u64 sent_ns)
{
	__u32 number = source - WIRE_BASE, flow = number & ((1u << WIRE_FLOW_BITS) - 1), cpu = wire_cpu(now), key;
	struct wire_record *record;
	struct wire_count *count;

	if (number >> WIRE_SOURCE_BITS)
		return;
	if (flow >= now->noted_flows[number >> WIRE_FLOW_BITS & (WIRE_GROUPS - 1)])
		return;
	count = bpf_map_lookup_elem(&record_counts, &cpu);
	if (!count || count->records >= WIRE_RECORDS_MAX)
		return;
	key = cpu * WIRE_RECORDS_MAX + count->records++;
	record = bpf_map_lookup_elem(&records, &key);
	if (!record)
		return;
	record->sent_ns = sent_ns;
	record->received_ns = bpf_ktime_get_ns();
	record->source = number;
}

/* Packets of a UDP socket: what reaches it has passed. It is noted, and the socket gets nothing. */
SEC("socket")
int bench_hear(struct __sk_buff *skb)
{
	__u32 zero = 0;
	const struct wire_setting *now = bpf_map_lookup_elem(&setting, &zero);
	__be32 source;
	__u64 sent_ns;

	if (!now || !now->from_ns)
		return 0;
	if (bpf_skb_load_bytes_relative(skb, offsetof(struct iphdr, saddr), &source, sizeof(source), BPF_HDR_START_NET))
		return 0;
	if (bpf_skb_load_bytes_relative(skb, WIRE_STAMP_OFFSET, &sent_ns, sizeof(sent_ns), BPF_HDR_START_NET))
		return 0;
	if (sent_ns >= now->from_ns)
		note(now, bpf_ntohl(source), sent_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
