// SPDX-License-Identifier: GPL-2.0-only
#include "frames/compose.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#define VLAN_TAG_BYTES 4
#define OTHER_HEADER_BYTES 8 /* for ICMP; for others two ports, if they have them, and what follows */
#define HOP_LIMIT 64

/* The part of a transport header that the program requires. */
static uint32_t transport_bytes(uint8_t protocol)
{
	switch (protocol) {
	case IPPROTO_TCP:
		return sizeof(struct tcphdr);
	case IPPROTO_UDP:
		return sizeof(struct udphdr);
	default:
		return OTHER_HEADER_BYTES;
	}
}

static uint32_t ip_offset(const struct weir_packet_words *words)
{
	return ETH_HLEN + (words->has_vlan ? VLAN_TAG_BYTES : 0);
}

static uint32_t ip_bytes(const struct weir_packet_words *words)
{
	return words->family == 6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr);
}

uint32_t weir_shortest_frame(const struct weir_packet_words *words)
{
	return ip_offset(words) + ip_bytes(words) + transport_bytes(words->protocol);
}

static void put_be16(uint8_t *at, uint16_t number)
{
	at[0] = number >> 8;
	at[1] = number & 0xff;
}

static void write_ethernet(const struct weir_packet_words *words, uint8_t *frame)
{
	uint8_t *type = frame + offsetof(struct ethhdr, h_proto);

	if (words->has_vlan) {
		put_be16(type, ETH_P_8021Q);
		put_be16(type + 2, words->vlan);
		type += VLAN_TAG_BYTES;
	}
	put_be16(type, words->family == 6 ? ETH_P_IPV6 : ETH_P_IP);
}

static void write_ipv4(const struct weir_packet_words *words, uint8_t *at, uint32_t bytes)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tos = words->dscp << 2,
		.tot_len = htons(bytes),
		.ttl = HOP_LIMIT,
		.protocol = words->protocol,
	};

	memcpy(&ip.saddr, words->source, sizeof(ip.saddr));
	memcpy(&ip.daddr, words->destination, sizeof(ip.daddr));
	memcpy(at, &ip, sizeof(ip));
}

static void write_ipv6(const struct weir_packet_words *words, uint8_t *at, uint32_t bytes)
{
	struct ipv6hdr ip = {
		.version = 6,
		.priority = words->dscp >> 2,
		.payload_len = htons(bytes - sizeof(ip)),
		.nexthdr = words->protocol,
		.hop_limit = HOP_LIMIT,
	};

	ip.flow_lbl[0] = words->dscp << 6;
	memcpy(&ip.saddr, words->source, sizeof(ip.saddr));
	memcpy(&ip.daddr, words->destination, sizeof(ip.daddr));
	memcpy(at, &ip, sizeof(ip));
}

static void write_transport(const struct weir_packet_words *words, uint8_t *at, uint32_t bytes)
{
	const bool is_icmp = words->protocol == IPPROTO_ICMP || words->protocol == IPPROTO_ICMPV6;

	if (is_icmp) {
		at[0] = words->icmp_type;
		return;
	}
	put_be16(at, words->source_port);
	put_be16(at + 2, words->destination_port);
	if (words->protocol == IPPROTO_UDP)
		put_be16(at + 4, bytes);
	if (words->protocol == IPPROTO_TCP) {
		at[12] = sizeof(struct tcphdr) / 4 << 4;
		at[13] = words->tcp_flags;
	}
}

uint32_t weir_compose_frame(const struct weir_packet_words *words, uint8_t *frame)
{
	uint32_t shortest = weir_shortest_frame(words), bytes = words->frame_bytes;
	uint32_t ip = ip_offset(words), transport = ip + ip_bytes(words);

	if (!bytes)
		bytes = shortest < ETH_ZLEN ? ETH_ZLEN : shortest;
	if (bytes < shortest || bytes > WEIR_COMPOSED_BYTES_MAX)
		return 0;
	memset(frame, 0, bytes);
	write_ethernet(words, frame);
	if (words->family == 6)
		write_ipv6(words, frame + ip, bytes - ip);
	else
		write_ipv4(words, frame + ip, bytes - ip);
	write_transport(words, frame + transport, bytes - transport);
	return bytes;
}
