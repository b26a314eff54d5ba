/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's SYN cookies, for this host's listening sockets. Answers have them (answers.h). The packet that brings
 * one back opens a connection whose SYN was blocked: rules that limit connections must count it.
 */
#ifndef WEIR_COOKIES_H
#define WEIR_COOKIES_H

#include "kinds/connection_state.h"

#define WEIR_SUPPOSED_MSS 536 /* RFC 9293, 3.7.1 */
#define WEIR_TCP_BYTES_MAX 60
#define WEIR_IP_BYTES(pkt) ((pkt)->is_ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) /* without options */

/* 0, WEIR_OWN_ADDRESS or WEIR_OWN_BROADCAST. */
static __always_inline __u32 weir_find_own(const __be32 address[4], bool is_ipv6)
{
	struct weir_own_address key = {.address = {address[0]}, .is_ipv6 = is_ipv6};
	const __u8 *found;

	if (is_ipv6)
		__builtin_memcpy(key.address, address, sizeof(key.address));
	found = bpf_map_lookup_elem(&own_addresses, &key);
	return found ? *found : 0;
}

/* Ask this host's socket that listens for the packet in s->closing, whose headers are at these offsets: for a cookie
 * and the client's MSS (bpf_tcp_gen_syncookie()), or whether it brings a cookie back (bpf_tcp_check_syncookie(); 0: it
 * does). Negative: no. The TCP header is then in s->segment.
 */
static __always_inline __s64 weir_ask_listener(weir_context *ctx, struct weir_scratch *s, __u32 ip, __u32 transport,
					       const bool gives)
{
	const struct weir_harness *l = config.is_virtual ? weir_harness() : NULL;
	const struct weir_packet *pkt = &s->closing;
	const __u32 ip_bytes = WEIR_IP_BYTES(pkt);
	struct tcphdr *tcp = (struct tcphdr *)s->segment;
	struct bpf_sock_tuple tuple = {};
	__u32 bytes = sizeof(*tcp);
	struct bpf_sock *socket;
	__s64 answer = -1;

	if (weir_load_bytes(ctx, transport, tcp, sizeof(*tcp)) || weir_load_bytes(ctx, ip, s->header_copy, ip_bytes))
		return -1;
	if (gives) { /* the MSS is among its options */
		bytes = tcp->doff * 4;
		OPAQUE(bytes);
		if (bytes > WEIR_TCP_BYTES_MAX)
			return -1;
		OPAQUE(bytes);
		if (bytes < sizeof(*tcp) || weir_load_bytes(ctx, transport, tcp, bytes))
			return -1;
	}
	/* A replay cannot know which sockets there were. */
	if (config.is_virtual && !(l && l->wants_answer == WEIR_WANTS_ANSWER))
		return gives ? (__s64)WEIR_SUPPOSED_MSS << 32 : -1;
	/* A socket that listens at all addresses is found for what this host only forwards, too. */
	if (weir_find_own(pkt->destination, pkt->is_ipv6) != WEIR_OWN_ADDRESS)
		return -1;
	if (pkt->is_ipv6) {
		__builtin_memcpy(tuple.ipv6.saddr, pkt->source, sizeof(tuple.ipv6.saddr));
		__builtin_memcpy(tuple.ipv6.daddr, pkt->destination, sizeof(tuple.ipv6.daddr));
		__builtin_memcpy(&tuple.ipv6.sport, tcp, 2 * sizeof(tuple.ipv6.sport));
	} else {
		tuple.ipv4.saddr = pkt->source[0];
		tuple.ipv4.daddr = pkt->destination[0];
		__builtin_memcpy(&tuple.ipv4.sport, tcp, 2 * sizeof(tuple.ipv4.sport));
	}
	socket = bpf_skc_lookup_tcp(ctx, &tuple, pkt->is_ipv6 ? sizeof(tuple.ipv6) : sizeof(tuple.ipv4),
				    BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return -1;
	/* Not while the former connection is in TIME_WAIT: that would get the cookie's ACK, as only a SYN ends it. */
	if (socket->state == BPF_TCP_LISTEN)
		answer = gives ? bpf_tcp_gen_syncookie(socket, s->header_copy, ip_bytes, tcp, bytes)
			       : bpf_tcp_check_syncookie(socket, s->header_copy, ip_bytes, tcp, bytes);
	bpf_sk_release(socket);
	return answer;
}

/* The packet talks on a connection that does not count. Find out whether it brings back a cookie, and so opens it; then
 * the rule is asked AGAIN.
 */
__noinline int weir_look_for_cookie(weir_context *ctx, struct weir_scratch *s, __u32 is_bare)
{
	struct weir_cursor cur;
	__u32 ip;

	WEIR_GLOBAL(RETURNED_COOKIES, s, WEIR_ANSWER_AGAIN);
	OPAQUE(is_bare); /* as in weir_verify_closing() */
	s->packet.tcp_flags |= WEIR_TCP_COOKIE_SOUGHT;
	s->closing.is_ipv6 = s->packet.is_ipv6;
	if (weir_parse_again(ctx, s, is_bare, &cur, &ip) == WEIR_PARSED_IP &&
	    !weir_ask_listener(ctx, s, ip, cur.offset, false))
		s->packet.tcp_flags |= WEIR_TCP_COOKIE_FOUND;
	return WEIR_ANSWER_AGAIN;
}

#endif
