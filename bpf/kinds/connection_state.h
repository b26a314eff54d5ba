/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * States of connections: how a packet changes the state of its connection, and the word that stores it.
 * docs/connections.md describes the states, and what cannot be seen at ingress.
 *
 * Silence is measured in steps of time, whose length depends on the class of the state. A word contains the step in
 * which the connection's last packet came, and is over when that is too long ago. So nothing has to clear the table.
 */
#ifndef WEIR_CONNECTION_STATE_H
#define WEIR_CONNECTION_STATE_H

#include "kinds/flow_set.h"
#include "kinds/inbound.h"
#include "packet/parse.h"

/* How many steps another CPU's clock may be ahead of ours. Chosen, not derived: 2.7 s at the shortest time-out. */
#define WEIR_WORD_STEPS_AHEAD 16

/* ---- time ---- */

/* The time, which never goes back for connections. */
static __always_inline __u64 weir_monotonic_ns(struct weir_scratch *s)
{
	__u64 now_ns = weir_now_ns(s);

	if (now_ns > s->connections_ns)
		s->connections_ns = now_ns;
	return s->connections_ns;
}

static __always_inline __u64 weir_step_ns(__u32 class)
{
	OPAQUE(class);
	return config.connection_step_ns[class & (WEIR_CONNECTION_CLASSES - 1)];
}

static __always_inline __u64 weir_step_now(struct weir_scratch *s, __u32 class)
{
	struct weir_clock *clk;
	__u64 now_ns;

	OPAQUE(class);
	class &= WEIR_CONNECTION_CLASSES - 1;
	clk = &s->connection_clock[class];
	if (weir_clock_is_current(s, clk) && s->connections_ns < clk->end_ns)
		return clk->bucket;
	now_ns = weir_monotonic_ns(s);
	if (now_ns >= clk->end_ns) {
		__u64 step_ns = config.connection_step_ns[class];

		clk->bucket = now_ns / step_ns;
		clk->start_ns = clk->bucket * step_ns;
		clk->end_ns = clk->start_ns + step_ns;
		weir_clock_limit(clk, s->tick, now_ns, false);
	}
	return clk->bucket;
}

__noinline __u64 weir_turn_each_step(struct weir_scratch *s)
{
	struct weir_clock *all;

	WEIR_GLOBAL(CONNECTIONS, s, 0);
	all = &s->all_steps;
	all->bucket = 0;
	all->since_jiffies = s->tick;
	all->end_ns = all->sure_jiffies = ~0ull;
#pragma nounroll
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES; class ++) {
		const struct weir_clock *clk = &s->connection_clock[class];
		__u64 left;

		all->bucket += weir_step_now(s, class);
		left = weir_clock_is_current(s, clk) ? clk->since_jiffies + clk->sure_jiffies - s->tick : 0;
		if (left < all->sure_jiffies)
			all->sure_jiffies = left;
		if (clk->end_ns < all->end_ns)
			all->end_ns = clk->end_ns;
	}
	return all->bucket;
}

/* Bring the steps of all classes to the present. If their sum is the same, none has changed, because none goes back. */
static __always_inline __u64 weir_turn_steps(struct weir_scratch *s)
{
	const struct weir_clock *all = &s->all_steps;

	return likely(weir_clock_is_current(s, all) && s->connections_ns < all->end_ns) ? all->bucket
											: weir_turn_each_step(s);
}

/* Update the ends of entries of flows, once a tick. Out of line, for the verifier. */
__noinline int weir_turn_ends(struct weir_scratch *s)
{
	__u64 now_ns;

	WEIR_GLOBAL(CONNECTIONS, s, 0);
	s->ends_tick = s->tick;
	now_ns = weir_monotonic_ns(s);
#pragma nounroll
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES; class ++) {
		__u64 silence_ns = (WEIR_CONNECTION_STEPS + 1) * config.connection_step_ns[class];
		__u64 second = now_ns / WEIR_NSEC_PER_SEC + silence_ns / WEIR_NSEC_PER_SEC + 2;

		s->ends[class] = weir_step_over(second * WEIR_NSEC_PER_SEC, now_ns);
	}
	return 0;
}

/* The end of a second by which a connection of this class, last seen now, has expired, as a step of `keep`. */
static __always_inline __u32 weir_flow_end(struct weir_scratch *s, __u32 class)
{
	if (unlikely(s->ends_tick != s->tick))
		weir_turn_ends(s);
	OPAQUE(class);
	return s->ends[class & (WEIR_CONNECTION_CLASSES - 1)];
}

/* ---- packets that close ----
 *
 * A FIN or RST changes a connection, or fails a request, only if its server would read it: if its checksum is right. A
 * local sender leaves it to the device to finish the checksum, so the header then has only the pseudo-header's sum, and
 * neither native XDP nor tc can tell whether the device will (CHECKSUM_PARTIAL, include/linux/skbuff.h): that is
 * accepted, too.
 */
static __always_inline __u32 weir_fold_sum(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
#pragma unroll
	for (int i = 0; i < 3; i++)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* The pseudo-header's part of a checksum (RFC 9293, 3.1; RFC 8200, 8.1). The same both ways, also after weir_turn(). */
static __always_inline __u64 weir_pseudo_sum(const struct weir_packet *pkt, __u32 protocol, __u32 bytes)
{
	__u64 sum = (__u64)bpf_htonl(protocol) + bpf_htonl(bytes);

#pragma unroll
	for (int i = 0; i < 4; i++)
		if (i == 0 || pkt->is_ipv6)
			sum += (__u64)pkt->source[i] + pkt->destination[i];
	return sum;
}

/* Of the segment in s->segment. */
static __always_inline bool weir_is_checksum_right(struct weir_scratch *s, __u32 bytes)
{
	__u32 sum = bpf_csum_diff(NULL, 0, (__be32 *)s->segment, (bytes + 3) & ~3u, 0);
	__u32 pseudo = weir_fold_sum(weir_pseudo_sum(&s->packet, IPPROTO_TCP, bytes));

	return weir_fold_sum((__u64)pseudo + sum) == 0xffff ||
	       ((const struct tcphdr *)s->segment)->check == (__u16)pseudo;
}

/* Parse an IP packet once more, for what the first time does not keep: all fields to s->closing, the offset of its
 * transport header to *cur, that of its IP header to *ret_start.
 */
static __always_inline enum weir_parsed weir_parse_again(weir_context *ctx, struct weir_scratch *s, __u32 is_bare,
							 struct weir_cursor *cur, __u32 *ret_start)
{
	const struct weir_harness *l = config.is_virtual ? weir_harness() : NULL;
	struct weir_packet *pkt = &s->closing;

	*cur = (struct weir_cursor){.ctx = ctx, .copy = s->header_copy, .frame_bytes = weir_context_bytes(ctx)};
	cur->data = (void *)(long)ctx->data;
	cur->end = (void *)(long)ctx->data_end;
	if (l && l->frame_bytes)
		cur->frame_bytes = l->frame_bytes;
#ifdef WEIR_TC
	if (is_bare)
		cur->ethertype = ctx->protocol;
	if (ctx->vlan_present)
		cur->tag = ctx->vlan_tci | WEIR_TAG_GIVEN;
#endif
	if (!cur->ethertype && !weir_parse_link(cur, pkt))
		return WEIR_PARSED_MALFORMED;
	*ret_start = cur->offset;
	pkt->fragment = WEIR_FRAGMENT_NONE;
	return s->packet.is_ipv6 ? weir_parse_ipv6(cur, pkt) : weir_parse_ipv4(cur, pkt);
}

/* Copy the packet's TCP segment to s->segment. Returns its bytes; 0: it is too long, or a capture has only a part. */
static __always_inline __u32 weir_copy_segment(weir_context *ctx, struct weir_scratch *s, __u32 is_bare)
{
	const struct weir_harness *l = config.is_virtual ? weir_harness() : NULL;
	struct weir_packet *pkt = &s->closing;
	struct weir_cursor cur;
	__u32 start, bytes, last;

	if (weir_parse_again(ctx, s, is_bare, &cur, &start) != WEIR_PARSED_IP)
		return 0;
	bytes = start + pkt->ip_length - cur.offset;
	if (l && l->known_bytes && cur.offset + bytes > l->known_bytes)
		return 0;
	/* Each is bounded in the register that is used, and by tests of its own: of two at once, clang makes one
	 * of a copy, from which Linux 6.1 learns nothing.
	 */
	last = bytes & ~3u;
	OPAQUE(last);
	if (last > WEIR_CLOSING_BYTES_MAX)
		return 0;
	*(__u32 *)&s->segment[last] = 0;
	OPAQUE(bytes);
	if (bytes > WEIR_CLOSING_BYTES_MAX)
		return 0;
	OPAQUE(bytes);
	if (bytes < sizeof(struct tcphdr))
		return 0;
	cur.copy = s->segment;
	return weir_load_header(&cur, cur.offset, bytes) ? 0 : bytes;
}

/* Find out whether the packet, if it closes, has a right checksum. A first fragment's is not in it. */
__noinline int weir_verify_closing(weir_context *ctx, struct weir_scratch *s, __u32 is_bare)
{
	__u32 bytes;
	bool is_right;

	WEIR_GLOBAL(CLOSING, s && s->packet.tcp_flags & (WEIR_TCP_FIN | WEIR_TCP_RST), 0);
	/* At XDP nothing reads it, and clang 14 then passes whatever the register holds, which the verifier refuses. */
	OPAQUE(is_bare);
	is_right = s->packet.fragment == WEIR_FRAGMENT_NONE;
	if (is_right) {
		bytes = weir_copy_segment(ctx, s, is_bare);
		is_right = !bytes || weir_is_checksum_right(s, bytes);
	}
	if (!is_right)
		s->packet.tcp_flags |= WEIR_TCP_CHECKSUM_WRONG;
	return 0;
}

/* May the packet change its connection? weir_verify_closing() has found out. */
static __always_inline bool weir_may_change(const struct weir_scratch *s)
{
	return !(s->packet.tcp_flags & WEIR_TCP_CHECKSUM_WRONG);
}

/* ---- events and states ---- */

enum weir_connection_event {
	WEIR_EVENT_OPENS,
	WEIR_EVENT_TALKS,
	WEIR_EVENT_FINISHES,
	WEIR_EVENT_RESETS,
	WEIR_EVENT_NOT_TCP,
	WEIR_EVENT_ANSWERS,	  /* our own SYN,ACK: nobody has opened anything yet */
	WEIR_EVENT_BRINGS_COOKIE, /* its handshake is complete, and nobody saw it begin (cookies.h) */
};

static __always_inline enum weir_connection_event weir_connection_event(const struct weir_packet *pkt)
{
	__u32 flags = pkt->tcp_flags;

	if (weir_protocol(pkt) != IPPROTO_TCP)
		return WEIR_EVENT_NOT_TCP;
	if (flags & WEIR_TCP_RST)
		return WEIR_EVENT_RESETS;
	if (flags & WEIR_TCP_FIN)
		return WEIR_EVENT_FINISHES;
	if (WEIR_IS_OUT(pkt) && (flags & (WEIR_TCP_SYN | WEIR_TCP_ACK)) == (WEIR_TCP_SYN | WEIR_TCP_ACK))
		return WEIR_EVENT_ANSWERS;
	return (flags & (WEIR_TCP_SYN | WEIR_TCP_ACK)) == WEIR_TCP_SYN ? WEIR_EVENT_OPENS : WEIR_EVENT_TALKS;
}

/* clang-format off */
static const __u8 weir_next_states[8][8] = {
	/* opens, talks, finishes, resets; not TCP; answers, brings a cookie */
	[WEIR_CONNECTION_NONE] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_LEARNED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_NONE, WEIR_CONNECTION_OTHER_ONCE, WEIR_CONNECTION_LEARNED,
		WEIR_CONNECTION_OPEN},
	[WEIR_CONNECTION_HALF_OPEN] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED,
		[WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN},
	[WEIR_CONNECTION_LEARNED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_LEARNED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED,
		[WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_LEARNED, WEIR_CONNECTION_OPEN},
	[WEIR_CONNECTION_OPEN] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED,
		[WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_OPEN, WEIR_CONNECTION_OPEN},
	[WEIR_CONNECTION_OTHER_ONCE ... WEIR_CONNECTION_OTHER] = {[WEIR_EVENT_NOT_TCP] = WEIR_CONNECTION_OTHER},
	[WEIR_CONNECTION_CLOSED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_CLOSED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED,
		[WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_OPEN},
	[WEIR_CONNECTION_REFUSED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_REFUSED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED,
		[WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_REFUSED, WEIR_CONNECTION_OPEN},
};
/* clang-format on */

static __always_inline __u32 weir_next_state(__u32 state, __u32 event)
{
	OPAQUE(state);
	OPAQUE(event);
	return weir_next_states[state & 7][event & 7];
}

static __always_inline __u32 weir_state_class(__u32 state)
{
	/* Two bits a state. Half-open and refused are of class 0. */
	const __u32 classes = (__u32)WEIR_CONNECTION_CLASS_OPEN << 2 * WEIR_CONNECTION_OPEN |
			      (__u32)WEIR_CONNECTION_CLASS_OPEN << 2 * WEIR_CONNECTION_LEARNED |
			      (__u32)WEIR_CONNECTION_CLASS_OTHER << 2 * WEIR_CONNECTION_OTHER_ONCE |
			      (__u32)WEIR_CONNECTION_CLASS_OTHER << 2 * WEIR_CONNECTION_OTHER |
			      (__u32)WEIR_CONNECTION_CLASS_CLOSED << 2 * WEIR_CONNECTION_CLOSED;

	return classes >> 2 * state & 3;
}

static __always_inline bool weir_is_counted(__u32 state)
{
	const __u32 uncounted = 1u << WEIR_CONNECTION_NONE | 1u << WEIR_CONNECTION_LEARNED |
				1u << WEIR_CONNECTION_CLOSED | 1u << WEIR_CONNECTION_REFUSED;

	return ~uncounted >> state & 1;
}

/* ---- words ---- */

/* Of the connection with this tag, which counts in the flow with this number and tag. */
static __always_inline __u64 weir_connection_word(__u32 tag, __u32 state, __u32 step, __u32 flow, __u32 flow_tag)
{
	return (step & WEIR_CONNECTION_STEP_MASK) | (__u64)state << WEIR_CONNECTION_STATE_SHIFT |
	       (tag & WEIR_CONNECTION_TAG_MASK) << WEIR_CONNECTION_TAG_SHIFT |
	       (flow_tag & WEIR_CONNECTION_CHECK) << WEIR_CONNECTION_FLOW_TAG_SHIFT |
	       (__u64)flow << WEIR_CONNECTION_FLOW_SHIFT;
}

static __always_inline __u32 weir_word_state(__u64 word)
{
	return word >> WEIR_CONNECTION_STATE_SHIFT & 7;
}

/* Number and turn of the flow that counts the connection. */
static __always_inline __u32 weir_word_flow(__u64 word)
{
	return word >> WEIR_CONNECTION_FLOW_SHIFT;
}

static __always_inline __u32 weir_word_turn(__u64 word)
{
	return word >> WEIR_CONNECTION_FLOW_TAG_SHIFT & WEIR_CONNECTION_CHECK;
}

/* Steps since the connection was last heard of; none when another CPU's clock is ahead of ours. */
static __always_inline __u32 weir_word_age(struct weir_scratch *s, __u64 word)
{
	__u32 step = weir_step_now(s, weir_state_class(weir_word_state(word)));
	__u32 age = (step - (__u32)word) & WEIR_CONNECTION_STEP_MASK;

	return age > WEIR_CONNECTION_STEP_MASK - WEIR_WORD_STEPS_AHEAD ? 0 : age;
}

/* The present state of the connection in a word, which silence may have ended. */
static __always_inline __u32 weir_state_now(struct weir_scratch *s, __u64 word)
{
	__u32 state = weir_word_state(word);

	return state && weir_word_age(s, word) <= WEIR_CONNECTION_STEPS ? state : WEIR_CONNECTION_NONE;
}

/* Does the word belong to the connection with this tag? The entry may still have a former owner's word. */
static __always_inline bool weir_is_own_word(__u64 word, __u32 tag)
{
	return !((word >> WEIR_CONNECTION_TAG_SHIFT ^ tag) & WEIR_CONNECTION_TAG_MASK);
}

/* The present state of the connection with this tag. */
static __always_inline __u32 weir_own_state(struct weir_scratch *s, __u64 word, __u32 tag)
{
	return weir_is_own_word(word, tag) ? weir_state_now(s, word) : WEIR_CONNECTION_NONE;
}

#endif
