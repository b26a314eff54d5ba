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

#include "kinds/inbound.h"
#include "packet/parse.h"
#include "window/rows.h"

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

/* Bring the steps of all classes to the present. If their sum is the same, none has changed, because none goes back. */
__noinline __u64 weir_turn_steps(struct weir_scratch *s)
{
	__u64 sum = 0;

	WEIR_GLOBAL(CONNECTIONS, s, 0);
#pragma nounroll
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES; class ++)
		sum += weir_step_now(s, class);
	return sum;
}

/* Update the expiry seconds of entries of flows, once a tick. */
static __always_inline void weir_turn_seconds(struct weir_scratch *s)
{
	__u32 second;

	if (likely(s->seconds_tick == s->tick))
		return;
	s->seconds_tick = s->tick;
	second = weir_monotonic_ns(s) / WEIR_NSEC_PER_SEC;
#pragma unroll
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES; class ++) {
		__u64 silence_ns = (WEIR_CONNECTION_STEPS + 1) * config.connection_step_ns[class];

		s->until_s[class] = second + silence_ns / WEIR_NSEC_PER_SEC + 2;
	}
}

/* The second by which a connection of this class, last seen now, has expired. */
static __always_inline __u32 weir_until_s(struct weir_scratch *s, __u32 class)
{
	weir_turn_seconds(s);
	OPAQUE(class);
	return s->until_s[class & (WEIR_CONNECTION_CLASSES - 1)];
}

/* ---- events and states ---- */

enum weir_connection_event {
	WEIR_EVENT_OPENS,
	WEIR_EVENT_TALKS,
	WEIR_EVENT_FINISHES,
	WEIR_EVENT_RESETS,
	WEIR_EVENT_NOT_TCP,
	WEIR_EVENT_ANSWERS, /* our own SYN,ACK: nobody has opened anything yet */
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
	/* opens, talks, finishes, resets; not TCP; answers */
	[WEIR_CONNECTION_NONE] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_LEARNED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_NONE, WEIR_CONNECTION_OTHER_ONCE, WEIR_CONNECTION_LEARNED},
	[WEIR_CONNECTION_HALF_OPEN] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED, [WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_HALF_OPEN},
	[WEIR_CONNECTION_LEARNED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_LEARNED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED, [WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_LEARNED},
	[WEIR_CONNECTION_OPEN] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED, [WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_OPEN},
	[WEIR_CONNECTION_OTHER_ONCE ... WEIR_CONNECTION_OTHER] = {[WEIR_EVENT_NOT_TCP] = WEIR_CONNECTION_OTHER},
	[WEIR_CONNECTION_CLOSED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_CLOSED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED, [WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_CLOSED},
	[WEIR_CONNECTION_REFUSED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_REFUSED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED, [WEIR_EVENT_ANSWERS] = WEIR_CONNECTION_REFUSED},
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

static __always_inline __u64 weir_connection_word(const struct weir_scratch *s, __u32 tag, __u32 state, __u32 step)
{
	return (step & WEIR_CONNECTION_STEP_MASK) | (__u64)state << WEIR_CONNECTION_STATE_SHIFT |
	       (tag & WEIR_CONNECTION_TAG_MASK) << WEIR_CONNECTION_TAG_SHIFT |
	       (s->counted_tag & WEIR_CONNECTION_CHECK) << WEIR_CONNECTION_FLOW_TAG_SHIFT |
	       (__u64)s->counted_flow << WEIR_CONNECTION_FLOW_SHIFT;
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
