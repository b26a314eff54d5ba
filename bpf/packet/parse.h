/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From bytes to struct weir_packet: Ethernet, VLAN tags, IPv4 or IPv6 with its extension headers, transport header.
 * The same source runs under the verifier and, compiled for the host, under a fuzzer. Pointers bound only the first
 * buffer of a frame; headers in later buffers are copied out (BPF only), so that every driver's frames can be read.
 *
 * Every length in a header is checked before it is used. A parser that fails to do so lets the sender choose which rule
 * its packets are charged to.
 */
#ifndef WEIR_PARSE_H
#define WEIR_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#ifdef __bpf__
#include "clock.h"
#include "hook.h"
#endif

#include "scratch.h"

#define WEIR_VLAN_TAGS_MAX 2
#define WEIR_VLAN_ID 0xfff /* of a tag's tci; the rest is priority */
#define WEIR_EXTENSION_HEADERS_MAX 8
/* No header begins later: Ethernet, two tags, IPv6 and eight extension headers of 2,048 bytes end before it. */
#define WEIR_HEADER_OFFSET_MAX 0x7fff

/* A super-frame of BIG TCP (Linux 5.19 for IPv6, 6.3 for IPv4) is too long for the length field of its IP header, which
 * is then 0: the frame's own length counts. IPv6 may also have a jumbo payload option (include/net/ipv6.h of the
 * kernel). In a frame no longer than this, a length of 0 means 0.
 */
#define WEIR_STATED_BYTES_MAX 65535

#define IP_MORE_FRAGMENTS 0x2000
#define IP_FRAGMENT_OFFSET 0x1fff
#define IPV6_MORE_FRAGMENTS 0x0001
#define IPV6_FRAGMENT_OFFSET 0xfff8

enum weir_parsed {
	WEIR_PARSED_IP,
	WEIR_PARSED_MALFORMED,
	WEIR_PARSED_UNSUPPORTED,
	WEIR_PARSED_NON_IP,
};

struct weir_cursor {
	void *data, *end; /* the first buffer, often the only one */
	void *ctx;	  /* to read later buffers; NULL on the host */
	void *copy;	  /* WEIR_COPY_BYTES, for a header in a later buffer */
	__u32 frame_bytes;
	__u32 offset;  /* of the next header */
	__u32 payload; /* offset of the transport header's end, once it is parsed */
	/* At tc some headers are not in the frame. */
	__u32 tag;	  /* a VLAN tag's tci, and WEIR_TAG_GIVEN; else 0 */
	__be16 ethertype; /* of a frame that begins with its IP header; else 0 */
};
#define WEIR_TAG_GIVEN 0x10000u

struct weir_vlan_tag {
	__be16 tci;
	__be16 ethertype;
};

struct weir_extension_header {
	__u8 next;
	__u8 length;	 /* its unit depends on the header */
	__be16 fragment; /* offset and flags, in a fragment header */
	__be32 more;
};

#ifdef __bpf__
/* At tc, the kernel gives a test at most a page of a frame: the rest is in the harness. */
static __always_inline int weir_load_header(const struct weir_cursor *cur, __u32 offset, const __u32 bytes)
{
#ifdef WEIR_TC
	if (config.is_virtual) {
		const struct weir_harness *l = weir_harness();

		if (!l || offset > WEIR_HEADER_OFFSET_MAX || offset + bytes > l->kept_bytes)
			return -1;
		return bpf_probe_read_kernel(cur->copy, bytes, l->kept + offset);
	}
#endif
	return weir_load_bytes(cur->ctx, offset, cur->copy, bytes);
}
#endif

/* The next `bytes`, without moving the cursor; NULL when the frame ends before them. A header in a later buffer is
 * copied; the copy is valid until the next call.
 */
static __always_inline void *weir_peek(struct weir_cursor *cur, __u32 bytes)
{
	__u32 offset = cur->offset;

	/* Test the very register that is used: Linux 6.1 forgets the bound of one that was spilled to the stack. */
	OPAQUE(offset);
	if (offset > WEIR_HEADER_OFFSET_MAX)
		return NULL;
	if (cur->data + offset + bytes <= cur->end)
		return cur->data + offset;
#ifdef __bpf__
	if (offset + bytes <= cur->frame_bytes && !weir_load_header(cur, offset, bytes))
		return cur->copy;
#endif
	return NULL;
}

static __always_inline bool weir_is_vlan(__be16 ethertype)
{
	return ethertype == bpf_htons(ETH_P_8021Q) || ethertype == bpf_htons(ETH_P_8021AD);
}

/* The transport header at the cursor. The IP payload ends at offset `end`. */
static __always_inline enum weir_parsed weir_parse_transport(struct weir_cursor *cur, struct weir_packet *pkt,
							     __u32 end)
{
	union {
		struct tcphdr tcp;
		struct udphdr udp;
		__u8 bytes[8];
	} * hdr;
	__u32 hdr_bytes, left = end - cur->offset;

	switch (pkt->parsed_protocol) {
	case IPPROTO_TCP:
		hdr_bytes = sizeof(struct tcphdr);
		break;
	case IPPROTO_UDP:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		hdr_bytes = 8;
		break;
	case IPPROTO_SCTP:
		hdr_bytes = 12;
		break;
	default:
		return WEIR_PARSED_IP;
	}
	if (left < hdr_bytes)
		return WEIR_PARSED_MALFORMED;

	/* A constant size in each branch: the verifier must know how much may be read. */
	if (pkt->parsed_protocol == IPPROTO_TCP) {
		__u32 data_offset;

		hdr = weir_peek(cur, sizeof(struct tcphdr));
		if (!hdr)
			return WEIR_PARSED_MALFORMED;
		data_offset = hdr->tcp.doff * 4;
		if (data_offset < sizeof(struct tcphdr) || data_offset > left)
			return WEIR_PARSED_MALFORMED;
		pkt->tcp_flags = ((__u8 *)hdr)[13];
		hdr_bytes = data_offset;
	} else {
		hdr = weir_peek(cur, 8);
		if (!hdr)
			return WEIR_PARSED_MALFORMED;
	}

	cur->payload = cur->offset + hdr_bytes;
	if (pkt->parsed_protocol == IPPROTO_ICMP || pkt->parsed_protocol == IPPROTO_ICMPV6) {
		pkt->icmp_type = hdr->bytes[0];
		return WEIR_PARSED_IP;
	}
	if (pkt->parsed_protocol == IPPROTO_UDP) {
		__u32 udp_bytes = bpf_ntohs(hdr->udp.len);

		/* A datagram of IPv6 that states no length is as long as its packet (RFC 2675, 4) */
		if (!udp_bytes && pkt->is_ipv6)
			udp_bytes = left;
		/* The first fragment states the length of the whole datagram. */
		if (udp_bytes < sizeof(struct udphdr) || (pkt->fragment == WEIR_FRAGMENT_NONE && udp_bytes > left))
			return WEIR_PARSED_MALFORMED;
	}
	/* TCP, UDP and SCTP headers all begin with the two ports. */
	pkt->source_port = bpf_ntohs(hdr->udp.source);
	pkt->destination_port = bpf_ntohs(hdr->udp.dest);
	return WEIR_PARSED_IP;
}

static __always_inline enum weir_parsed weir_parse_ipv4(struct weir_cursor *cur, struct weir_packet *pkt)
{
	struct iphdr *ip;
	__u32 hdr_bytes, total_bytes, fragment, start = cur->offset;

	ip = weir_peek(cur, sizeof(*ip));
	if (!ip)
		return WEIR_PARSED_MALFORMED;
	/* ihl counts 32-bit words, five or more (RFC 791, 3.1). With fewer we would read ports from this header. */
	hdr_bytes = ip->ihl * 4;
	total_bytes = bpf_ntohs(ip->tot_len);
	if (!total_bytes && cur->frame_bytes > WEIR_STATED_BYTES_MAX)
		total_bytes = cur->frame_bytes - start;
	if (ip->version != 4 || hdr_bytes < sizeof(*ip) || total_bytes < hdr_bytes ||
	    start + total_bytes > cur->frame_bytes)
		return WEIR_PARSED_MALFORMED;

	pkt->source[0] = ip->saddr;
	pkt->destination[0] = ip->daddr;
	pkt->parsed_protocol = ip->protocol;
	pkt->dscp = ip->tos >> 2;
	pkt->ttl = ip->ttl;
	pkt->ip_length = total_bytes;
	cur->offset = start + hdr_bytes;

	fragment = bpf_ntohs(ip->frag_off);
	if (fragment & IP_FRAGMENT_OFFSET) {
		pkt->fragment = WEIR_FRAGMENT_LATER;
		return WEIR_PARSED_IP;
	}
	if (fragment & IP_MORE_FRAGMENTS)
		pkt->fragment = WEIR_FRAGMENT_FIRST;
	return weir_parse_transport(cur, pkt, start + total_bytes);
}

static __always_inline bool weir_is_extension(__u8 protocol)
{
	return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING || protocol == IPPROTO_FRAGMENT ||
	       protocol == IPPROTO_AH || protocol == IPPROTO_DSTOPTS;
}

/* Skip the IPv6 extension headers (RFC 8200, 4). One that has fewer than 8 bytes, or is longer than the payload, is
 * malformed: the packet was cut short.
 */
static __always_inline enum weir_parsed weir_walk_extensions(struct weir_cursor *cur, struct weir_packet *pkt,
							     __u32 end)
{
	for (int i = 0; i < WEIR_EXTENSION_HEADERS_MAX; i++) {
		struct weir_extension_header *ext;
		__u32 ext_bytes, fragment;

		FORGET(pkt->forgotten, cur->offset);
		if (!weir_is_extension(pkt->parsed_protocol))
			return WEIR_PARSED_IP;
		if (cur->offset + sizeof(*ext) > end)
			return WEIR_PARSED_MALFORMED;
		ext = weir_peek(cur, sizeof(*ext));
		if (!ext)
			return WEIR_PARSED_MALFORMED;

		if (pkt->parsed_protocol == IPPROTO_FRAGMENT) {
			ext_bytes = sizeof(*ext);
			fragment = bpf_ntohs(ext->fragment);
			if (fragment & IPV6_FRAGMENT_OFFSET)
				pkt->fragment = WEIR_FRAGMENT_LATER;
			else if (fragment & IPV6_MORE_FRAGMENTS)
				pkt->fragment = WEIR_FRAGMENT_FIRST;
		} else if (pkt->parsed_protocol == IPPROTO_AH) {
			ext_bytes = (ext->length + 2) * 4; /* RFC 4302, 2.2 */
		} else {
			ext_bytes = (ext->length + 1) * 8;
		}
		if (cur->offset + ext_bytes > end)
			return WEIR_PARSED_MALFORMED;
		cur->offset += ext_bytes;
		pkt->parsed_protocol = ext->next;
		/* The rest of a later fragment is the middle of some header or payload. */
		if (pkt->fragment == WEIR_FRAGMENT_LATER)
			return WEIR_PARSED_IP;
	}
	return weir_is_extension(pkt->parsed_protocol) ? WEIR_PARSED_UNSUPPORTED : WEIR_PARSED_IP;
}

/* The upper six of the traffic class's bits, which follow the four of the version (RFC 8200, 3; RFC 2474, 3). */
static __always_inline __u32 weir_dscp6(const struct ipv6hdr *ip6)
{
	return bpf_ntohs(*(const __be16 *)ip6) >> 6 & 0x3f;
}

static __always_inline enum weir_parsed weir_parse_ipv6(struct weir_cursor *cur, struct weir_packet *pkt)
{
	struct ipv6hdr *ip6;
	enum weir_parsed parsed;
	__u32 payload_bytes, end;

	ip6 = weir_peek(cur, sizeof(*ip6));
	if (!ip6)
		return WEIR_PARSED_MALFORMED;
	payload_bytes = bpf_ntohs(ip6->payload_len);
	cur->offset += sizeof(*ip6);
	if (!payload_bytes && cur->frame_bytes > WEIR_STATED_BYTES_MAX)
		payload_bytes = cur->frame_bytes - cur->offset;
	end = cur->offset + payload_bytes;
	if (ip6->version != 6 || end > cur->frame_bytes)
		return WEIR_PARSED_MALFORMED;

	__builtin_memcpy(pkt->source, &ip6->saddr, sizeof(pkt->source));
	__builtin_memcpy(pkt->destination, &ip6->daddr, sizeof(pkt->destination));
	pkt->parsed_protocol = ip6->nexthdr;
	pkt->dscp = weir_dscp6(ip6);
	pkt->ttl = ip6->hop_limit;
	pkt->ip_length = sizeof(*ip6) + payload_bytes;
	pkt->is_ipv6 = 1;
	/* A jumbogram, whose length is in an option (RFC 2675, 2), in a frame that cannot hold one. */
	if (payload_bytes == 0 && pkt->parsed_protocol == IPPROTO_HOPOPTS)
		return WEIR_PARSED_UNSUPPORTED;

	parsed = weir_walk_extensions(cur, pkt, end);
	if (parsed != WEIR_PARSED_IP || pkt->fragment == WEIR_FRAGMENT_LATER)
		return parsed;
	FORGET(pkt->forgotten, cur->offset);
	return weir_parse_transport(cur, pkt, end);
}

/* Ethernet and VLAN tags, up to cur->ethertype. False: the frame ends before that. */
static __always_inline bool weir_parse_link(struct weir_cursor *cur, struct weir_packet *pkt)
{
	struct ethhdr *eth = weir_peek(cur, sizeof(*eth));
	__be16 ethertype;

	if (!eth)
		return false;
	ethertype = eth->h_proto;
	cur->offset += sizeof(*eth);

	for (int i = cur->tag ? 1 : 0; i < WEIR_VLAN_TAGS_MAX; i++) {
		struct weir_vlan_tag *tag;

		if (!weir_is_vlan(ethertype))
			break;
		tag = weir_peek(cur, sizeof(*tag));
		if (!tag)
			return false;
		/* VLAN 0 is none: such a tag bears only a priority (802.1Q, 9.6), and Linux looks behind it. */
		if (i == 0 || !pkt->vlan)
			pkt->vlan = bpf_ntohs(tag->tci) & WEIR_VLAN_ID;
		ethertype = tag->ethertype;
		cur->offset += sizeof(*tag);
	}
	cur->ethertype = ethertype;
	return true;
}

static __always_inline enum weir_parsed weir_parse_headers(struct weir_cursor *cur, struct weir_packet *pkt)
{
	pkt->is_ipv6 = 0;
	pkt->fragment = WEIR_FRAGMENT_NONE;
	pkt->parsed_protocol = 0;
	pkt->pad = 0; /* one store for all four */
	pkt->frame_bytes = cur->frame_bytes;
	pkt->source_port = WEIR_PORT_NONE;
	pkt->destination_port = WEIR_PORT_NONE;
	pkt->vlan = cur->tag ? cur->tag & WEIR_VLAN_ID : WEIR_VLAN_NONE;
	pkt->tcp_flags = WEIR_BYTE_NONE;
	pkt->icmp_type = WEIR_BYTE_NONE;

	if (!cur->ethertype && !weir_parse_link(cur, pkt))
		return WEIR_PARSED_MALFORMED;
	if (cur->ethertype == bpf_htons(ETH_P_IP))
		return weir_parse_ipv4(cur, pkt);
	if (cur->ethertype == bpf_htons(ETH_P_IPV6))
		return weir_parse_ipv6(cur, pkt);
	pkt->ethertype = bpf_ntohs(cur->ethertype);
	return weir_is_vlan(cur->ethertype) ? WEIR_PARSED_UNSUPPORTED : WEIR_PARSED_NON_IP;
}

/* Parse any frame, with the cursor at its first byte. Fills in all of *pkt when the result is WEIR_PARSED_IP. */
static __always_inline enum weir_parsed weir_parse(struct weir_cursor *cur, struct weir_packet *pkt)
{
	enum weir_parsed parsed = weir_parse_headers(cur, pkt);

	pkt->kind = WEIR_KIND(pkt->is_ipv6 & 1, pkt->fragment, pkt->parsed_protocol);
	return parsed;
}

/* ---- WEIR_SHORTCUT_PARSE: the usual frame, half the instructions ----
 *
 * Saves 12 of 39 ns (one flow over its limit; test run), 12 of 54 (the same, end to end): `make bench-shortcuts`, Zen
 * 4, 2 virtual cores.
 *
 * No tag, option, extension header or fragment, UDP or TCP, and all headers in the first buffer: nearly every frame is
 * like that. Only fields that the load asks for are written. That is a constant to the verifier, which removes such a
 * branch but not the instructions that compute its condition. So there are few branches.
 */

struct weir_usual {
	const struct weir_cursor *cur;
	struct weir_packet *pkt;
	__u32 asked; /* weir_config.asked_fields */
};

static __always_inline void weir_fill_usual(const struct weir_usual *usual, __u32 is_ipv6, __u32 protocol)
{
	struct weir_packet *pkt = usual->pkt;

	pkt->frame_bytes = usual->cur->frame_bytes;
	pkt->is_ipv6 = is_ipv6;
	pkt->fragment = WEIR_FRAGMENT_NONE;
	pkt->kind = WEIR_KIND(is_ipv6, WEIR_FRAGMENT_NONE, protocol);
}

/* UDP or TCP at `header`. At least 8 bytes of it lie before cur->end; the IP payload has `left` bytes. */
static __always_inline bool weir_parse_usual_transport(const struct weir_usual *usual, void *header, __u32 protocol,
						       __u32 left)
{
	struct weir_packet *pkt = usual->pkt;
	__u32 tcp_flags = WEIR_BYTE_NONE;
	struct udphdr *udp = header;
	struct tcphdr *tcp = header;

	if (protocol == IPPROTO_UDP) {
		__u32 udp_bytes = bpf_ntohs(udp->len);

		if (udp_bytes < sizeof(*udp) || udp_bytes > left)
			return false;
	} else if (protocol == IPPROTO_TCP) {
		__u32 data_offset;

		if ((void *)(tcp + 1) > usual->cur->end)
			return false;
		data_offset = tcp->doff * 4;
		if (data_offset < sizeof(*tcp) || data_offset > left)
			return false;
		tcp_flags = ((__u8 *)header)[13];
	} else {
		return false;
	}
	pkt->destination_port = bpf_ntohs(udp->dest); /* testing whether it is needed would take as long */
	if (usual->asked & WEIR_MATCH_SELDOM) {
		pkt->source_port = bpf_ntohs(udp->source);
		pkt->tcp_flags = tcp_flags;
		pkt->vlan = WEIR_VLAN_NONE;
		pkt->icmp_type = WEIR_BYTE_NONE;
	}
	return true;
}

static __always_inline bool weir_parse_usual_ipv4(const struct weir_usual *usual)
{
	struct iphdr *ip = usual->cur->data + sizeof(struct ethhdr);
	__u32 total_bytes = bpf_ntohs(ip->tot_len), protocol = ip->protocol;

	if (*(__u8 *)ip != 0x45 || ip->frag_off & bpf_htons(IP_MORE_FRAGMENTS | IP_FRAGMENT_OFFSET) ||
	    total_bytes < sizeof(*ip) || sizeof(struct ethhdr) + total_bytes > usual->cur->frame_bytes)
		return false;
	usual->pkt->source[0] = ip->saddr;
	if (usual->asked & (WEIR_MATCH_DESTINATION | WEIR_MATCH_DSCP)) {
		usual->pkt->destination[0] = ip->daddr;
		usual->pkt->dscp = ip->tos >> 2;
	}
	if (usual->asked & WEIR_MATCH_TTL)
		usual->pkt->ttl = ip->ttl;
	weir_fill_usual(usual, 0, protocol);
	return weir_parse_usual_transport(usual, ip + 1, protocol, total_bytes - sizeof(*ip));
}

/* 64 bits at a time: behind an Ethernet header the address lies two bytes off a multiple of eight, which is what the
 * verifier asks for where alignment matters (NET_IP_ALIGN).
 */
static __always_inline void weir_copy_address(__be32 to[4], const struct in6_addr *from)
{
	__builtin_memcpy(__builtin_assume_aligned(to, 8), __builtin_assume_aligned(from, 8), sizeof(*from));
}

static __always_inline bool weir_parse_usual_ipv6(const struct weir_usual *usual)
{
	struct ipv6hdr *ip6 = usual->cur->data + sizeof(struct ethhdr);
	__u32 payload_bytes, protocol;

	if ((void *)(ip6 + 1) + sizeof(struct udphdr) > usual->cur->end)
		return false;
	payload_bytes = bpf_ntohs(ip6->payload_len);
	protocol = ip6->nexthdr;
	if (ip6->version != 6 || sizeof(struct ethhdr) + sizeof(*ip6) + payload_bytes > usual->cur->frame_bytes)
		return false;
	weir_copy_address(usual->pkt->source, &ip6->saddr);
	if (usual->asked & (WEIR_MATCH_DESTINATION | WEIR_MATCH_DSCP)) {
		weir_copy_address(usual->pkt->destination, &ip6->daddr);
		usual->pkt->dscp = weir_dscp6(ip6);
	}
	if (usual->asked & WEIR_MATCH_TTL)
		usual->pkt->ttl = ip6->hop_limit;
	weir_fill_usual(usual, 1, protocol);
	return weir_parse_usual_transport(usual, ip6 + 1, protocol, payload_bytes);
}

/* Parse a usual frame. False if it is unusual or malformed: then call weir_parse(). If true, weir_parse() would give
 * the same values for all fields in `asked` (tests/unit/parse_test).
 */
static __always_inline bool weir_parse_usual(const struct weir_cursor *cur, struct weir_packet *pkt, __u32 asked)
{
	const struct weir_usual usual = {cur, pkt, asked};
	__be16 ethertype;

	if (cur->data + sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr) > cur->end)
		return false;
	/* One load: struct ethhdr is packed, so clang reads its fields byte by byte. */
	ethertype = *(__be16 *)(cur->data + __builtin_offsetof(struct ethhdr, h_proto));
	if (ethertype == bpf_htons(ETH_P_IP))
		return weir_parse_usual_ipv4(&usual);
	if (ethertype == bpf_htons(ETH_P_IPV6))
		return weir_parse_usual_ipv6(&usual);
	return false;
}

#endif
