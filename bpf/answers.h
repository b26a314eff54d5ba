/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Answers: what the sender of a blocked packet gets instead of silence, by its rule's `onBlock`: a TCP RST, an ICMP
 * error, a DNS answer that says "truncated", or a SYN,ACK with a cookie of the kernel's. The frame that came is made
 * the answer, and leaves by the interface it came by. docs/answers.md says when which helps.
 *
 * Called for blocked packets only, by loads with such a rule. Nothing is answered that could begin a loop, reach many
 * receivers, or reach one with more bytes than its packet had (weir_may_answer(), weir_write_answer()); and all answers
 * of an instance share a rate.
 */
#ifndef WEIR_ANSWERS_H
#define WEIR_ANSWERS_H

#ifdef WEIR_TC
#include <bpf/bpf_core_read.h>
#endif

#include "kinds/cookies.h"
#include "observe/stats.h"
#include "packet/parse.h"

/* ICMP, whose header of Linux drags in all of sockets; RFC 792, RFC 4443. */
#define ICMP_DEST_UNREACH 3
#define ICMP_PKT_FILTERED 13
#define ICMP_ECHO 8
#define ICMP_TIMESTAMP 13
#define ICMPV6_DEST_UNREACH 1
#define ICMPV6_ECHO_REQUEST 128
#define ICMPV6_ADM_PROHIBITED 1
#define WEIR_HOP_LIMIT 64
#define WEIR_TCP_WINDOW 65535 /* of a SYN,ACK with a cookie, which cannot scale it */
#define WEIR_FRAME_BYTES_LEAST 60
#define WEIR_ICMP_BYTES 8
#define WEIR_QUOTED_BYTES_MAX (WEIR_CLOSING_BYTES_MAX - WEIR_ICMP_BYTES) /* of the packet, in an ICMP error */
#define WEIR_UDP_BYTES 8
#define WEIR_SCTP_CHECKSUM_AT 8
#define WEIR_DNS_HEADER_BYTES 12
#define WEIR_DNS_NAME_BYTES_MAX 255 /* RFC 1035, 3.1 */
#define WEIR_DNS_LABELS_MAX (WEIR_DNS_NAME_BYTES_MAX / 2 + 1)

/* ---- how often ---- */

#define WEIR_ANSWER_TRIES 16 /* chosen, not derived: with each that fails, another CPU has got a portion */

/* Take one answer of this CPU's portion, or else a portion of the instance's bucket: a GCRA whose arrival times are
 * portion_ns apart, and whose tolerance lets as many CPUs take portions at once as the slack has. What a CPU does not
 * use within the slack it loses. So no second has more answers than the rate: portion_ns allows for both.
 */
static __always_inline bool weir_take_answer(struct weir_scratch *s, __u32 bucket)
{
	const __u64 now_ns = weir_now_ns(s);
	struct weir_answer_state *all;
	__u32 zero = 0;

	if (s->answers_left[bucket] && now_ns < s->answers_until_ns[bucket]) {
		s->answers_left[bucket]--;
		return true;
	}
	all = bpf_map_lookup_elem(&answers, &zero);
	if (!all)
		return false;
#pragma nounroll
	for (int i = 0; i < WEIR_ANSWER_TRIES; i++) {
		__u64 tat_ns = READ_ONCE(all->tat_ns[bucket]), next_ns;

		if (tat_ns > now_ns + WEIR_ANSWER_SLACK_NS)
			return false;
		next_ns = (tat_ns > now_ns ? tat_ns : now_ns) + config.answer_portion_ns[bucket];
		if (__sync_val_compare_and_swap(&all->tat_ns[bucket], tat_ns, next_ns) != tat_ns)
			continue;
		s->answers_until_ns[bucket] = now_ns + WEIR_ANSWER_SLACK_NS;
		s->answers_left[bucket] = config.answer_portion[bucket] - 1;
		return true;
	}
	return false;
}

/* ---- to whom ---- */

/* A group, a broadcast, the loopback net and the unspecified address have no single host behind them. */
static __always_inline bool weir_is_single(const __be32 address[4], bool is_ipv6)
{
	__u32 first = bpf_ntohl(address[0]) >> 24;

	if (!is_ipv6)
		return first != 0 && first != 127 && first < 224;
	return first != 0xff && (address[0] || address[1] || address[2] || (address[3] & ~bpf_htonl(1)));
}

/* A packet from an address of this host is forged, or comes from a host with the same address; an answer would reach
 * ourselves. One to a broadcast address was sent to many (RFC 1122, 3.2.2). Of ICMP, only requests are answered, no
 * errors (RFC 1122, 3.2.2; RFC 4443, 2.4 e). Nor is what ends a connection.
 */
static __always_inline bool weir_may_answer(const struct weir_packet *pkt)
{
	const __u32 protocol = weir_protocol(pkt), type = pkt->icmp_type;

	if (pkt->fragment == WEIR_FRAGMENT_LATER || !weir_is_single(pkt->source, pkt->is_ipv6) ||
	    !weir_is_single(pkt->destination, pkt->is_ipv6) || weir_find_own(pkt->source, pkt->is_ipv6) ||
	    (!pkt->is_ipv6 && weir_find_own(pkt->destination, false) == WEIR_OWN_BROADCAST))
		return false;
	if (protocol == IPPROTO_TCP)
		return !(pkt->tcp_flags & WEIR_TCP_RST);
	if (protocol == IPPROTO_ICMPV6 && pkt->is_ipv6)
		return type == ICMPV6_ECHO_REQUEST;
	if (protocol == IPPROTO_ICMP && !pkt->is_ipv6)
		return type == ICMP_ECHO || type == ICMP_TIMESTAMP;
	return true;
}

#ifdef WEIR_TC
/* The fields of the kernel's structs that are used below, as in weir.bpf.c. */
struct net_device___weir {
	void *rx_handler;
} __attribute__((preserve_access_index));
struct sk_buff___weir {
	struct net_device___weir *dev;
	__u8 ip_summed : 2;
} __attribute__((preserve_access_index));
#define WEIR_PACKET_OTHERHOST 3 /* linux/if_packet.h */
#define WEIR_CHECKSUM_PARTIAL 3 /* linux/skbuff.h */

/* The frame is for another host, and not for whom a bridge or bond above the interface takes it. Before Linux 6.2 that
 * cannot be known.
 */
static __always_inline bool weir_is_overheard(weir_context *ctx)
{
	struct sk_buff___weir *skb;

	if (ctx->pkt_type != WEIR_PACKET_OTHERHOST || !bpf_cast_to_kern_ctx)
		return false;
	skb = bpf_cast_to_kern_ctx(ctx);
	return !skb->dev->rx_handler;
}

/* The packet's checksum is finished, and the device will not touch it. Before Linux 6.2 that cannot be known. */
static __always_inline bool weir_is_finished(weir_context *ctx)
{
	struct sk_buff___weir *skb;

	if (config.is_virtual || !bpf_cast_to_kern_ctx)
		return false;
	skb = bpf_cast_to_kern_ctx(ctx);
	return BPF_CORE_READ_BITFIELD(skb, ip_summed) != WEIR_CHECKSUM_PARTIAL;
}
#endif

/* ---- writing it ---- */

/* The packet that is answered, as it came. */
struct weir_asked {
	__u32 ip;	   /* offset of its IP header */
	__u32 transport;   /* ... of what follows it */
	__u32 ip_bytes;	   /* of the IP packet */
	__u32 frame_bytes; /* of the frame, with padding */
	__u32 checksum_at; /* at tc: weir_find_checksum_place() */
	bool is_bare;	   /* at tc: no Ethernet header */
	__u8 mac[12];	   /* ... or else its addresses */
};

#ifdef WEIR_TC
/* Find where the device will store the packet's checksum; 0: the packet has one. False: what it will store is SCTP's,
 * which no answer has.
 */
static __always_inline bool weir_find_checksum_place(weir_context *ctx, const struct weir_packet *pkt,
						     struct weir_asked *asked)
{
	const __u32 protocol = weir_protocol(pkt), bytes = asked->ip + asked->ip_bytes - asked->transport;
	__u32 at = protocol == IPPROTO_TCP    ? __builtin_offsetof(struct tcphdr, check)
		   : protocol == IPPROTO_UDP  ? __builtin_offsetof(struct udphdr, check)
		   : protocol == IPPROTO_SCTP ? WEIR_SCTP_CHECKSUM_AT
					      : 0;
	__u16 sum;

	asked->checksum_at = 0;
	if (!at || weir_is_finished(ctx))
		return true;
	if (weir_load_bytes(ctx, asked->transport + at, &sum, sizeof(sum)))
		return false;
	if (protocol == IPPROTO_SCTP)
		return sum;
	if (sum == (__u16)weir_fold_sum(weir_pseudo_sum(pkt, protocol, bytes)))
		asked->checksum_at = asked->transport + at;
	return true;
}
#endif

/*
 * Make the frame the answer: cut it, turn its Ethernet addresses, write the IP header, and the message of so many bytes
 * in s->segment, with its checksum at check_at.
 *
 * At tc, no frame may end before the place where GRO has seen a transport header (bpf_skb_change_tail()), as the answer
 * to one with many IP options would. At XDP, where a driver may send what it gets, a frame of 60 bytes stays one. At tc
 * drivers pad, and a device that completes the checksum would sum up what is behind the answer.
 *
 * At tc, a packet of a local sender (a container, a guest) mostly has no checksum yet: the device will store one where
 * the packet's own was, over all from the transport header on (CHECKSUM_PARTIAL), which no program can change. There
 * goes what makes the device compute the very same: the sum of the pseudo-header, as the rest of a message with a right
 * checksum sums up to that and the missing word. (Such packets look as in weir_is_checksum_right(): before Linux 6.2,
 * one finished packet in 65,536 is taken for one, and its answer then has a wrong checksum.)
 */
static __always_inline bool weir_write_answer(weir_context *ctx, struct weir_scratch *s, const struct weir_asked *asked,
					      __u32 protocol, __u32 bytes, __u32 check_at)
{
	const struct weir_packet *pkt = &s->closing;
	const __u64 pseudo = protocol == IPPROTO_ICMP ? 0 : weir_pseudo_sum(pkt, protocol, bytes);
	__u32 frame_bytes = asked->ip + WEIR_IP_BYTES(pkt) + bytes;
	__u64 sum;

	/* For Linux 6.1, as in weir_copy_segment(). */
	OPAQUE(bytes);
	if (bytes > WEIR_CLOSING_BYTES_MAX)
		return false;
#pragma unroll
	for (int i = 0; i < 3; i++)
		s->segment[bytes + i] = 0;
	OPAQUE(bytes);
	if (bytes > WEIR_CLOSING_BYTES_MAX)
		return false;
	*(__u16 *)&s->segment[check_at & 30] = 0;
	sum = pseudo + (__u32)bpf_csum_diff(NULL, 0, (__be32 *)s->segment, (bytes + 3) & ~3u, 0);
	sum = (__u16)~weir_fold_sum(sum);
	/* In UDP, 0 is none (RFC 768), and IPv6 refuses it; elsewhere, tools refuse the other zero (RFC 1624, 3). */
	if (!sum && protocol == IPPROTO_UDP)
		sum = 0xffff;
	*(__u16 *)&s->segment[check_at & 30] = sum;
#ifndef WEIR_TC
	if (frame_bytes < WEIR_FRAME_BYTES_LEAST && asked->frame_bytes >= WEIR_FRAME_BYTES_LEAST)
		frame_bytes = WEIR_FRAME_BYTES_LEAST;
#endif
	if (weir_set_frame_bytes(ctx, frame_bytes) ||
	    (!asked->is_bare &&
	     (weir_store_bytes(ctx, 0, asked->mac + 6, 6) || weir_store_bytes(ctx, 6, asked->mac, 6))))
		return false;
	if (pkt->is_ipv6) {
		struct ipv6hdr ip = {.version = 6, .nexthdr = protocol, .hop_limit = WEIR_HOP_LIMIT};

		ip.payload_len = bpf_htons(bytes);
		__builtin_memcpy(&ip.saddr, pkt->destination, sizeof(ip.saddr));
		__builtin_memcpy(&ip.daddr, pkt->source, sizeof(ip.daddr));
		if (weir_store_bytes(ctx, asked->ip, &ip, sizeof(ip)))
			return false;
	} else {
		struct iphdr ip = {.version = 4, .ihl = sizeof(ip) / 4, .ttl = WEIR_HOP_LIMIT, .protocol = protocol};

		ip.tot_len = bpf_htons(sizeof(ip) + bytes);
		ip.frag_off = bpf_htons(0x4000); /* do not fragment, so the id may be 0 (RFC 6864, 4.1) */
		ip.saddr = pkt->destination[0];
		ip.daddr = pkt->source[0];
		ip.check = ~weir_fold_sum((__u64)bpf_htons(0x4500) + ip.tot_len + ip.frag_off +
					  bpf_htons(WEIR_HOP_LIMIT << 8 | protocol) + ip.saddr + ip.daddr);
		if (weir_store_bytes(ctx, asked->ip, &ip, sizeof(ip)))
			return false;
	}
	OPAQUE(bytes);
	if (bytes > WEIR_CLOSING_BYTES_MAX)
		return false;
	OPAQUE(bytes);
	if (bytes < WEIR_ICMP_BYTES || weir_store_bytes(ctx, asked->ip + WEIR_IP_BYTES(pkt), s->segment, bytes))
		return false;
#ifdef WEIR_TC
	if (asked->checksum_at) { /* whose place is another one in the answer if the packet had options */
		__u16 unfinished = weir_fold_sum(pseudo);

		return asked->transport - asked->ip == WEIR_IP_BYTES(pkt) &&
		       !weir_store_bytes(ctx, asked->checksum_at, &unfinished, sizeof(unfinished));
	}
#endif
	return true;
}

/* ---- the messages: each function leaves its own in s->segment, and returns its bytes; 0: there can be none ---- */

/* RFC 9293, 3.10.7.1: with ACK, its number is the RST's; without, the RST acknowledges what the segment occupies. */
static __always_inline __u32 weir_make_reset(weir_context *ctx, struct weir_scratch *s, const struct weir_asked *asked)
{
	struct tcphdr tcp, *rst = (struct tcphdr *)s->segment;
	__u32 bytes;

	if (weir_load_bytes(ctx, asked->transport, &tcp, sizeof(tcp)))
		return 0;
	bytes = asked->ip + asked->ip_bytes - asked->transport - tcp.doff * 4 + tcp.syn + tcp.fin;
	*rst = (struct tcphdr){.source = tcp.dest, .dest = tcp.source, .doff = sizeof(*rst) / 4, .rst = 1};
	rst->ack = !tcp.ack;
	if (tcp.ack)
		rst->seq = tcp.ack_seq;
	else
		rst->ack_seq = bpf_htonl(bpf_ntohl(tcp.seq) + bytes);
	return sizeof(*rst);
}

/* Administratively prohibited (RFC 1812, 5.2.7.1; RFC 4443, 3.1), with as much of the packet as the frame had room for,
 * at most what s->segment holds, and at least its IP header and 8 bytes. Only where that header has no options is the
 * answer made longer for these.
 */
static __always_inline __u32 weir_make_unreachable(weir_context *ctx, struct weir_scratch *s,
						   const struct weir_asked *asked)
{
	const struct weir_packet *pkt = &s->closing;
	const __u32 own = WEIR_IP_BYTES(pkt) + WEIR_ICMP_BYTES, least = asked->transport - asked->ip + 8;
	const __u32 room = asked->frame_bytes - asked->ip;
	__u32 quoted = room > own + least ? room - own : least;

	if (room < own + least && least > WEIR_IP_BYTES(pkt) + 8)
		return 0;
#ifdef WEIR_TC
	/* The checksum would be missing where the packet is quoted. A receiver on this machine completes none. */
	if (asked->checksum_at > asked->transport + WEIR_ICMP_BYTES)
		return 0;
#endif
	if (quoted > asked->ip_bytes)
		quoted = asked->ip_bytes;
	if (quoted > WEIR_QUOTED_BYTES_MAX)
		quoted = WEIR_QUOTED_BYTES_MAX;
	OPAQUE(quoted);
	if (quoted > WEIR_QUOTED_BYTES_MAX)
		return 0;
	OPAQUE(quoted);
	if (quoted < sizeof(struct iphdr) || weir_load_bytes(ctx, asked->ip, s->segment + WEIR_ICMP_BYTES, quoted))
		return 0;
	((__be32 *)s->segment)[0] = pkt->is_ipv6 ? bpf_htonl(ICMPV6_DEST_UNREACH << 24 | ICMPV6_ADM_PROHIBITED << 16)
						 : bpf_htonl(ICMP_DEST_UNREACH << 24 | ICMP_PKT_FILTERED << 16);
	((__be32 *)s->segment)[1] = 0;
	return WEIR_ICMP_BYTES + quoted;
}

/* A question's end, for a query in s->segment from WEIR_UDP_BYTES on (RFC 1035, 4.1); 0: it is no query with just one
 * question. Compressed names do not stand in a query's question.
 */
static __always_inline __u32 weir_question_end(struct weir_scratch *s, __u32 bytes)
{
	const __u8 *dns = s->segment + WEIR_UDP_BYTES;
	__u32 at = WEIR_UDP_BYTES + WEIR_DNS_HEADER_BYTES;

	if (dns[2] & 0xf8 || dns[4] || dns[5] != 1 || dns[6] || dns[7] || dns[8] || dns[9])
		return 0;
	for (int label = 0; label < WEIR_DNS_LABELS_MAX; label++) {
		__u32 here = at & (WEIR_CLOSING_BYTES_MAX - 1);

		OPAQUE(here);
		here &= WEIR_CLOSING_BYTES_MAX - 1;
		here = s->segment[here];
		if (here > 63)
			return 0;
		at += here + 1;
		if (!here)
			break;
		if (at >= bytes)
			return 0;
	}
	/* Else the verifier follows each number of labels to the end of the program. */
	FORGET(s->closing.forgotten, at);
	if (at > WEIR_UDP_BYTES + WEIR_DNS_HEADER_BYTES + WEIR_DNS_NAME_BYTES_MAX)
		return 0;
	at += 4; /* type and class */
	return at <= bytes ? at : 0;
}

/* The question back, as an answer that was too long: the client then asks over TCP (RFC 2181, 9). */
static __always_inline __u32 weir_make_truncated(weir_context *ctx, struct weir_scratch *s,
						 const struct weir_asked *asked)
{
	struct udphdr *udp = (struct udphdr *)s->segment;
	__u8 *dns = s->segment + WEIR_UDP_BYTES;
	__u32 bytes = asked->ip + asked->ip_bytes - asked->transport;

	if (asked->transport - asked->ip != WEIR_IP_BYTES(&s->closing))
		return 0; /* options are not sent back */
	if (bytes > WEIR_CLOSING_BYTES_MAX)
		bytes = WEIR_CLOSING_BYTES_MAX;
	OPAQUE(bytes);
	if (bytes > WEIR_CLOSING_BYTES_MAX)
		return 0;
	OPAQUE(bytes);
	if (bytes < WEIR_UDP_BYTES + WEIR_DNS_HEADER_BYTES + 5 ||
	    weir_load_bytes(ctx, asked->transport, s->segment, bytes))
		return 0;
	if (bytes > bpf_ntohs(udp->len))
		bytes = bpf_ntohs(udp->len);
	bytes = weir_question_end(s, bytes);
	/* RA as RD: the C library's resolver takes an empty answer without it for a lame server's, whatever TC says. */
	dns[3] = (dns[3] & 0x10) | (dns[2] & 0x01) << 7; /* checking disabled, as it was */
	dns[2] = 0x82 | (dns[2] & 0x01);		 /* QR and TC; recursion as it was desired */
	dns[10] = dns[11] = 0;				 /* no additional section */
	*udp = (struct udphdr){.source = udp->dest, .dest = udp->source, .len = bpf_htons(bytes)};
	return bytes;
}

/* A SYN,ACK that needs no memory until its ACK brings the cookie back. No option but the MSS, the client's or what this
 * interface can receive: there is nowhere to keep what the client's others said.
 */
static __always_inline __u32 weir_make_cookie(weir_context *ctx, struct weir_scratch *s, const struct weir_asked *asked)
{
	struct tcphdr syn, *tcp = (struct tcphdr *)s->segment;
	__u32 mss, most = 0;
	__s64 cookie;

	if (asked->transport - asked->ip != WEIR_IP_BYTES(&s->closing))
		return 0;
	cookie = weir_ask_listener(ctx, s, asked->ip, asked->transport, true);
	if (cookie < 0)
		return 0;
	mss = cookie >> 32 & 0xffff;
	bpf_check_mtu(ctx, 0, &most, 0, 0); /* which also says what the MTU is */
	most -= WEIR_IP_BYTES(&s->closing) + sizeof(syn);
	syn = *tcp;
	*tcp = (struct tcphdr){.source = syn.dest, .dest = syn.source, .doff = 6, .syn = 1, .ack = 1};
	tcp->window = bpf_htons(WEIR_TCP_WINDOW);
	tcp->seq = bpf_htonl(cookie);
	tcp->ack_seq = bpf_htonl(bpf_ntohl(syn.seq) + 1);
	*(__be32 *)(tcp + 1) = bpf_htonl(2 << 24 | 4 << 16 | (mss < most ? mss : most));
	return sizeof(*tcp) + 4;
}

/* ---- which ---- */

/* Is this kind of answer one for such a packet? */
static __always_inline bool weir_suits(const struct weir_packet *pkt, __u32 on_block)
{
	const bool is_tcp = weir_protocol(pkt) == IPPROTO_TCP, is_whole = pkt->fragment == WEIR_FRAGMENT_NONE;

	if (on_block == WEIR_ON_BLOCK_RESET)
		return is_tcp;
	if (on_block == WEIR_ON_BLOCK_TRUNCATE)
		return weir_protocol(pkt) == IPPROTO_UDP && is_whole;
	if (on_block == WEIR_ON_BLOCK_COOKIE)
		return is_tcp && is_whole && (pkt->tcp_flags & (WEIR_TCP_SYN | WEIR_TCP_ACK)) == WEIR_TCP_SYN;
	return true;
}

static __always_inline bool weir_make_answer(weir_context *ctx, struct weir_scratch *s, const struct weir_asked *asked,
					     __u32 on_block)
{
	__u32 protocol = IPPROTO_TCP, check_at = __builtin_offsetof(struct tcphdr, check), bytes = 0;

	if (config.answers & 1 << WEIR_ON_BLOCK_RESET && on_block == WEIR_ON_BLOCK_RESET)
		bytes = weir_make_reset(ctx, s, asked);
	if (WEIR_PART_COOKIES && on_block == WEIR_ON_BLOCK_COOKIE)
		bytes = weir_make_cookie(ctx, s, asked);
	if (config.answers & 1 << WEIR_ON_BLOCK_UNREACHABLE && on_block == WEIR_ON_BLOCK_UNREACHABLE) {
		bytes = weir_make_unreachable(ctx, s, asked);
		protocol = s->closing.is_ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
		check_at = 2;
	}
	if (config.answers & 1 << WEIR_ON_BLOCK_TRUNCATE && on_block == WEIR_ON_BLOCK_TRUNCATE) {
		bytes = weir_make_truncated(ctx, s, asked);
		protocol = IPPROTO_UDP;
		check_at = __builtin_offsetof(struct udphdr, check);
	}
	return bytes && weir_write_answer(ctx, s, asked, protocol, bytes, check_at);
}

/* Can the packet be answered, and so? Fills in *asked. */
static __always_inline bool weir_look_at_asked(weir_context *ctx, struct weir_scratch *s, __u32 on_block, __u32 is_bare,
					       struct weir_asked *asked)
{
	struct weir_cursor cur;

	s->closing.kind = s->packet.kind;
	s->closing.is_ipv6 = s->packet.is_ipv6;
	if (weir_parse_again(ctx, s, is_bare, &cur, &asked->ip) != WEIR_PARSED_IP)
		return false;
	asked->transport = cur.offset;
	asked->ip_bytes = s->closing.ip_length;
	asked->frame_bytes = cur.frame_bytes;
	asked->is_bare = is_bare;
	if (!weir_suits(&s->closing, on_block) || !weir_may_answer(&s->closing))
		return false;
	/* Neither of the Ethernet addresses may be a group's. */
	if (!is_bare &&
	    (weir_load_bytes(ctx, 0, asked->mac, sizeof(asked->mac)) || (asked->mac[0] | asked->mac[6]) & 1))
		return false;
#ifdef WEIR_TC
	if (!config.is_virtual && weir_is_overheard(ctx))
		return false;
	/* Of a super-frame, as much as its first segment had. */
	if (ctx->gso_size && asked->frame_bytes > cur.payload + ctx->gso_size)
		asked->frame_bytes = cur.payload + ctx->gso_size;
	return weir_find_checksum_place(ctx, &s->closing, asked);
#else
	return true;
#endif
}

/* Make the blocked packet's frame the answer to it. Returns which (enum weir_on_block); 0: it is dropped in silence. */
__noinline int weir_answer(weir_context *ctx, struct weir_scratch *s, __u32 is_bare)
{
	struct weir_harness *l = config.is_virtual ? weir_harness() : NULL;
	const struct weir_rule *rule;
	struct weir_rule_answers *counters;
	struct weir_asked asked;
	__u32 on_block, slot, bucket;

	WEIR_GLOBAL(ANSWERS, s, 0);
	OPAQUE(is_bare); /* as in weir_verify_closing() */
	rule = weir_rule(s->blocking_rule);
	on_block = rule->on_block;
	if (!on_block || (config.is_virtual && !(l && l->wants_answer)) ||
	    !weir_look_at_asked(ctx, s, on_block, is_bare, &asked))
		return 0;
	slot = rule->slot;
	counters = bpf_map_lookup_elem(&rule_answers, &slot);
	if (!counters)
		return 0;
	bucket = on_block == WEIR_ON_BLOCK_COOKIE;
	if (!weir_take_answer(s, bucket)) {
		counters->beyond_rate++;
		return 0;
	}
	if (!weir_make_answer(ctx, s, &asked, on_block)) {
		s->answers_left[bucket]++; /* for who can be answered */
		counters->impossible++;
		return 0;
	}
	OPAQUE(on_block);
	if (on_block < WEIR_ON_BLOCK_COUNT)
		counters->sent[on_block]++;
	if (l)
		l->answer = on_block;
	return on_block;
}

#endif
