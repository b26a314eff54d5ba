/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections: which one is the packet of, in what state is it, and what does the packet make of it? A connection that
 * opens needs room in its flow (connection_flows.h); everything else passes. (docs/connections.md has the states, and
 * what ingress cannot see.)
 *
 * A connection's word in the table is all there is of it, and changes by compare-and-swap; whoever succeeds has the
 * counts follow: one more in the new cell before, one less in the old one after. What a packet does, it does when
 * every rule has admitted it; until then there is but a reservation in the flow.
 *
 * A packet of a connection that was heard of in this step of time, and that changes nothing, reads two cache lines
 * and writes none.
 */
#ifndef WEIR_CONNECTIONS_H
#define WEIR_CONNECTIONS_H

#include "connection_flows.h"
#include "window.h"

#define WEIR_SETTLE_ATTEMPTS 4 /* another CPU changed the same connection each time */
/* Tries to reserve: others did so at the same time, and all gave back; or the flow's place is not made yet. After most
 * of them, some 50 us, its maker must have been stalled.
 */
#define WEIR_RESERVE_ATTEMPTS 32
#define WEIR_RESERVE_PATIENCE 24

/* ---- states ---- */

/* What a packet is to a connection. */
enum weir_connection_event {
	WEIR_EVENT_OPENS,
	WEIR_EVENT_TALKS,
	WEIR_EVENT_FINISHES,
	WEIR_EVENT_RESETS,
	WEIR_EVENT_NOT_TCP,
	WEIR_EVENTS
};

/* clang-format off */
static const __u8 weir_next_states[8][8] = {
	/* opens, talks, finishes, resets; not TCP */
	[WEIR_CONNECTION_NONE] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_HEARD,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_NONE, WEIR_CONNECTION_OTHER_ONCE},
	[WEIR_CONNECTION_HALF_OPEN] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED},
	[WEIR_CONNECTION_HEARD] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED},
	[WEIR_CONNECTION_OPEN] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_OPEN,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED},
	[WEIR_CONNECTION_OTHER_ONCE] = {[WEIR_EVENT_NOT_TCP] = WEIR_CONNECTION_OTHER},
	[WEIR_CONNECTION_OTHER] = {[WEIR_EVENT_NOT_TCP] = WEIR_CONNECTION_OTHER},
	[WEIR_CONNECTION_CLOSED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_CLOSED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED},
	[WEIR_CONNECTION_REFUSED] = {WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_REFUSED,
		WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLOSED},
};
/* clang-format on */

/* Classes of the states, two bits each. */
#define WEIR_CLASS_OF(state, class) ((__u32)(class) << 2 * (state))
#define WEIR_STATE_CLASSES                                                                                             \
	(WEIR_CLASS_OF(WEIR_CONNECTION_HALF_OPEN, WEIR_CONNECTION_CLASS_HALF) |                                        \
	 WEIR_CLASS_OF(WEIR_CONNECTION_HEARD, WEIR_CONNECTION_CLASS_HALF) |                                            \
	 WEIR_CLASS_OF(WEIR_CONNECTION_OPEN, WEIR_CONNECTION_CLASS_OPEN) |                                             \
	 WEIR_CLASS_OF(WEIR_CONNECTION_OTHER_ONCE, WEIR_CONNECTION_CLASS_OTHER) |                                      \
	 WEIR_CLASS_OF(WEIR_CONNECTION_OTHER, WEIR_CONNECTION_CLASS_OTHER) |                                           \
	 WEIR_CLASS_OF(WEIR_CONNECTION_CLOSED, WEIR_CONNECTION_CLASS_CLOSED) |                                         \
	 WEIR_CLASS_OF(WEIR_CONNECTION_REFUSED, WEIR_CONNECTION_CLASS_HALF))

#define WEIR_COUNTED_STATES                                                                                            \
	(1u << WEIR_CONNECTION_HALF_OPEN | 1u << WEIR_CONNECTION_HEARD | 1u << WEIR_CONNECTION_OPEN |                  \
	 1u << WEIR_CONNECTION_OTHER_ONCE | 1u << WEIR_CONNECTION_OTHER)
/* Heard of more than once: not to be pushed out by those that were not. */
#define WEIR_PROVEN_STATES (1u << WEIR_CONNECTION_OPEN | 1u << WEIR_CONNECTION_OTHER)

static __always_inline __u32 weir_state_class(__u32 state)
{
	return WEIR_STATE_CLASSES >> 2 * state & 3;
}

static __always_inline bool weir_state_counts(__u32 state)
{
	return WEIR_COUNTED_STATES >> state & 1;
}

#define WEIR_TCP_FIN 0x01u
#define WEIR_TCP_SYN 0x02u
#define WEIR_TCP_RST 0x04u
#define WEIR_TCP_ACK 0x10u

static __always_inline enum weir_connection_event weir_connection_event(const struct weir_packet *pkt)
{
	__u32 flags = pkt->tcp_flags;

	if (weir_protocol(pkt) != IPPROTO_TCP)
		return WEIR_EVENT_NOT_TCP;
	if (flags & WEIR_TCP_RST)
		return WEIR_EVENT_RESETS;
	if (flags & WEIR_TCP_FIN)
		return WEIR_EVENT_FINISHES;
	return (flags & (WEIR_TCP_SYN | WEIR_TCP_ACK)) == WEIR_TCP_SYN ? WEIR_EVENT_OPENS : WEIR_EVENT_TALKS;
}

static __always_inline __u32 weir_next_state(__u32 state, __u32 event)
{
	OPAQUE(state);
	OPAQUE(event);
	return weir_next_states[state & 7][event & 7];
}

/* ---- words ---- */

static __always_inline __u32 weir_word_state(__u64 word)
{
	return word >> WEIR_CONNECTION_STATE_SHIFT & 7;
}

/* Steps that another CPU's clock may be ahead of ours; chosen, not derived: of the shortest time-out they are 2.7 s. */
#define WEIR_WORD_STEPS_AHEAD 16

/* Steps since the connection was last heard of; none when another CPU's clock is ahead of ours. */
static __always_inline __u32 weir_word_age(struct weir_work *w, __u64 word)
{
	__u32 step = weir_connection_step(w, weir_state_class(weir_word_state(word)));
	__u32 age = (step - (__u32)word) & WEIR_CONNECTION_STEP_MASK;

	return age > WEIR_CONNECTION_STEP_MASK - WEIR_WORD_STEPS_AHEAD ? 0 : age;
}

/* The state that a word tells of now: silence may have ended it. */
static __always_inline __u32 weir_state_now(struct weir_work *w, __u64 word)
{
	__u32 state = weir_word_state(word);

	return state && weir_word_age(w, word) <= WEIR_CONNECTION_STEPS ? state : WEIR_CONNECTION_NONE;
}

/* The same of a connection whose tag is known: the word may be a stranger's. */
static __always_inline __u32 weir_own_state(struct weir_work *w, __u64 word, __u32 tag)
{
	if ((word >> WEIR_CONNECTION_TAG_SHIFT ^ tag) & WEIR_CONNECTION_TAG_MASK)
		return WEIR_CONNECTION_NONE;
	return weir_state_now(w, word);
}

static __always_inline __u64 weir_connection_word(const struct weir_work *w, __u32 tag, __u32 state, __u32 step)
{
	return (step & WEIR_CONNECTION_STEP_MASK) | (__u64)state << WEIR_CONNECTION_STATE_SHIFT |
	       (tag & WEIR_CONNECTION_TAG_MASK) << WEIR_CONNECTION_TAG_SHIFT |
	       (w->counted_tag & WEIR_CONNECTION_CHECK) << WEIR_CONNECTION_FLOW_TAG_SHIFT |
	       (__u64)w->counted_flow << WEIR_CONNECTION_FLOW_SHIFT;
}

/* Take a connection out of the counts that its word says it is in. False: that flow was evicted. */
static __always_inline bool weir_count_word_out(struct weir_work *w, __u64 word)
{
	__u32 class = weir_state_class(weir_word_state(word));
	__u32 present = weir_connection_step(w, class);
	/* 23 bits, with their sign */
	__s32 age = (__s32)((present - (__u32)word) << (32 - WEIR_CONNECTION_STEP_BITS)) >>
		    (32 - WEIR_CONNECTION_STEP_BITS);

	return weir_count_out(w, word >> WEIR_CONNECTION_FLOW_SHIFT,
			      word >> WEIR_CONNECTION_FLOW_TAG_SHIFT & WEIR_CONNECTION_CHECK, class, present - age);
}

/* Does the connection of this word, if any, count in the flow w->counted? Not if its own flow was evicted; nor if it is
 * a stranger that got in while the place changed hands, and of whose tag the four bits in the word are the owner's.
 */
static __always_inline bool weir_counts_in_flow(const struct weir_work *w, __u64 word)
{
	__u64 flow = (__u64)w->counted_flow << (WEIR_CONNECTION_FLOW_SHIFT - WEIR_CONNECTION_FLOW_TAG_SHIFT) |
		     (w->counted_tag & WEIR_CONNECTION_CHECK);

	return weir_state_counts(weir_word_state(word)) && word >> WEIR_CONNECTION_FLOW_TAG_SHIFT == flow;
}

static __always_inline __u64 *weir_word_at(struct weir_connection_set *set, __u64 way)
{
	__u64 *word;

	OPAQUE(way);
	if (way >= WEIR_CONNECTION_WAYS)
		return NULL;
	word = &set->word[way];
	OPAQUE(word); /* made where its bound was tested */
	return word;
}

/* ---- figures ---- */

/* A connection more than ever before? */
static __always_inline void weir_note_most(struct weir_work *w, struct weir_connection_flow *flow, __u32 tag)
{
	__u64 open = weir_count_open(w, flow, tag), again = weir_count_open(w, flow, tag);

	/* Twice: one that another CPU is moving counts double for a moment. */
	if (again < open)
		open = again;
	for (int attempt = 0; attempt < WEIR_SETTLE_ATTEMPTS; attempt++) {
		__u64 most = READ_ONCE(flow->counts.max);

		if (open <= most || __sync_val_compare_and_swap(&flow->counts.max, most, open) == most)
			return;
	}
}

static __always_inline void weir_note_handshake(struct weir_connection_counts *counts, __u32 took_us)
{
	__u64 less = (1ull << 32) - took_us;
	__u32 step = 0;

#pragma unroll
	for (int bit = 16; bit > 0; bit /= 2)
		if (took_us >> (step + bit))
			step += bit;
	OPAQUE(step);
	if (step >= WEIR_HANDSHAKE_STEPS)
		step = WEIR_HANDSHAKE_STEPS - 1;
	__sync_fetch_and_add(&counts->handshake_step[step], 1);
	__sync_fetch_and_add(&counts->handshakes, 1);
	__sync_fetch_and_add(&counts->handshake_us, took_us);
	for (int attempt = 0; attempt < WEIR_SETTLE_ATTEMPTS; attempt++) {
		__u64 most = READ_ONCE(counts->handshake_less_us);

		if (less <= most || __sync_val_compare_and_swap(&counts->handshake_less_us, most, less) == most)
			return;
	}
}

/* The flow w->counted has no room for one more. */
static __always_inline void weir_note_refusal(struct weir_work *w, struct weir_connection_flow *flow, __u32 slot)
{
	struct weir_connection_flow *total;

	__sync_fetch_and_add(&flow->counts.refused, 1);
	if (weir_is_lone_flow(w->counted_flow))
		return;
	total = weir_own_total(slot);
	if (total)
		__sync_fetch_and_add(&total->counts.refused, 1);
}

/* What has become of a connection: its states before and after, and why. */
__noinline int weir_note_change(struct weir_work *w, struct weir_connection_flow *flow, __u32 change, __u32 tag)
{
	__u32 state = change & 7, next = change >> 3 & 7, event = change >> 6 & 7;
	struct weir_connection_counts *counts;

	if (!w || !flow)
		return 0;
	counts = &flow->counts;
	if (event == WEIR_EVENT_OPENS && state != WEIR_CONNECTION_HALF_OPEN && weir_state_counts(state))
		__sync_fetch_and_add(&counts->reused, 1);
	if (!weir_state_counts(next)) {
		if (!weir_state_counts(state))
			return 0;
		__sync_fetch_and_add(event == WEIR_EVENT_FINISHES ? &counts->closed_by_fin : &counts->closed_by_reset,
				     1);
		return 0;
	}
	if (state == WEIR_CONNECTION_HALF_OPEN && next == WEIR_CONNECTION_OPEN)
		weir_note_handshake(counts, w->handshake_us);
	if (weir_state_counts(state) && !(event == WEIR_EVENT_OPENS && state != WEIR_CONNECTION_HALF_OPEN))
		return 0;
	__sync_fetch_and_add(event == WEIR_EVENT_TALKS ? &counts->learned : &counts->opened, 1);
	weir_note_most(w, flow, tag);
	return 0;
}

/* Tell the flow w->counted, and its rule. */
static __always_inline void weir_note_changes(struct weir_work *w, __u32 slot, __u32 state, __u32 next, __u32 event)
{
	struct weir_connection_flow *flow = weir_connection_flow(w->counted_flow), *total;
	__u32 change = state | next << 3 | event << 6;

	if (state == next || !(weir_state_counts(state) || weir_state_counts(next)))
		return;
	if (flow && weir_is_owner(flow, w->counted_tag))
		weir_note_change(w, flow, change, w->counted_tag);
	if (weir_is_lone_flow(w->counted_flow))
		return;
	total = weir_own_total(slot);
	if (total)
		weir_note_change(w, total, change, WEIR_CONNECTION_LONE_TAG);
}

/* ---- a place for a connection ---- */

/* How much it would hurt to lose a connection: 0 when it is over, else the less the longer it has been silent, and
 * more than that when it is proven.
 */
#define WEIR_WORTH_SILENCE (1ull << 48) /* no silence is as long, in ns */
#define WEIR_WORTH_PROVEN (1ull << 49)

__noinline __u64 weir_connection_worth(struct weir_work *w, __u64 word)
{
	__u32 state, class;

	if (!w)
		return 0;
	state = weir_state_now(w, word);
	if (state == WEIR_CONNECTION_NONE)
		return 0;
	class = weir_state_class(state);
	OPAQUE(class);
	class &= WEIR_CONNECTION_CLASSES - 1;
	return WEIR_WORTH_SILENCE - weir_word_age(w, word) * config.connection_step_ns[class] +
	       (WEIR_PROVEN_STATES >> state & 1) * WEIR_WORTH_PROVEN;
}

/*
 * The way of a connection that is to go: one that is over, else the one that has been silent longest, of those heard of
 * once when these use up their budget, of the others when not. Without branches: the verifier would follow
 * every one.
 */
__noinline __u32 weir_connection_victim(struct weir_work *w, const struct weir_connection_set *set)
{
	__u64 least = ~0ull >> 1, least_proven = ~0ull >> 1, once = 0;

	if (!w || !set)
		return 0;
#pragma unroll
	for (__u32 way = 0; way < WEIR_CONNECTION_WAYS; way++) {
		__u64 worth = weir_connection_worth(w, READ_ONCE(set->word[way]));
		__u64 is_proven = worth / WEIR_WORTH_PROVEN;

		once += (-worth >> 63) & (is_proven ^ 1);
		least = weir_lesser(worth * 8 + way, least);
		least_proven = weir_lesser((worth + (is_proven ^ 1) * 2 * WEIR_WORTH_PROVEN) * 8 + way, least_proven);
	}
	if (least < 8 || once >= WEIR_CONNECTION_BUDGET)
		return least & 7;
	return least_proven & 7;
}

/* The connection of this word has lost its place: take it out of the counts. */
__noinline int weir_count_evicted(struct weir_work *w, __u64 word, __u32 slot)
{
	struct weir_connection_flow *flow;
	__u32 tag = word >> WEIR_CONNECTION_FLOW_TAG_SHIFT;

	if (!w)
		return 0;
	weir_count_eviction(slot);
	if (!weir_state_counts(weir_word_state(word)) || !weir_count_word_out(w, word))
		return 0; /* with its flow it has been evicted before */
	flow = weir_connection_flow(word >> WEIR_CONNECTION_FLOW_SHIFT);
	if (!flow || !weir_is_owner(flow, tag))
		return 0;
	__sync_fetch_and_add(&flow->counts.evicted, 1);
	if (weir_is_lone_flow(word >> WEIR_CONNECTION_FLOW_SHIFT))
		return 0;
	flow = weir_connection_total(READ_ONCE(flow->owner));
	if (flow)
		__sync_fetch_and_add(&flow->counts.evicted, 1);
	return 0;
}

/* A connection loses its place. False: it has just changed. */
__noinline int weir_evict_connection(struct weir_work *w, __u64 *place, __u32 slot)
{
	__u64 word;

	if (!w || !place)
		return false;
	word = READ_ONCE(*place);
	if (weir_state_now(w, word) == WEIR_CONNECTION_NONE)
		return true;
	if (__sync_val_compare_and_swap(place, word, 0) != word)
		return false;
	weir_count_evicted(w, word, slot);
	return true;
}

/* Make a place for a connection, unless another CPU just did. Returns its way, or beyond the last. */
__noinline __u32 weir_insert_connection(struct weir_work *w, __u32 index, __u32 tag, __u32 slot)
{
	struct weir_connection_set *set = bpf_map_lookup_elem(&connections, &index);
	__u64 *place;
	__u32 way;

	if (!w || !set)
		return WEIR_CONNECTION_WAYS;
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u64 latest = weir_shared_latest(w, &set->inserted, set->tag, WEIR_CONNECTION_WAYS);

		way = weir_shared_way(set->tag, WEIR_CONNECTION_WAYS, tag);
		if (way < WEIR_CONNECTION_WAYS)
			return way;
		way = weir_connection_victim(w, set);
		place = weir_word_at(set, way);
		if (!place || !weir_evict_connection(w, place, slot))
			continue;
		if (!weir_shared_take(w, &set->inserted, set->tag, WEIR_CONNECTION_WAYS, latest, way, tag))
			continue;
		/* Once more: the owner of before may have got in until it could see the new tag. */
		weir_evict_connection(w, place, slot);
		return way;
	}
	return WEIR_CONNECTION_WAYS;
}

/* ---- judging ---- */

/* Multilinear, as weir_hash_key(), of the whole 5-tuple; and of what else the flow's key has, or two tenants with the
 * same addresses would end each other's connections.
 */
static __always_inline struct weir_flow_place weir_connection_place(const struct weir_rule *rule,
								    const struct weir_packet *pkt)
{
	const volatile __u64 *seed = config.seed;
	__u32 vlan = rule->key_fields & WEIR_KEY_VLAN ? pkt->vlan & 0xfff : 0;
	struct weir_flow_place place;
	__u64 sum, hash;

	OPAQUE(seed);
	sum = seed[0] + (__u64)(rule->slot << 1 | pkt->is_ipv6) * seed[1];
	sum += (__u64)pkt->source[0] * seed[2] + (__u64)pkt->destination[0] * seed[6];
	if (pkt->is_ipv6)
		sum += (__u64)pkt->source[1] * seed[3] + (__u64)pkt->source[2] * seed[4] +
		       (__u64)pkt->source[3] * seed[5] + (__u64)pkt->destination[1] * seed[7] +
		       (__u64)pkt->destination[2] * seed[8] + (__u64)pkt->destination[3] * seed[9];
	sum += (__u64)((pkt->source_port & 0xffff) << 16 | (pkt->destination_port & 0xffff)) * seed[10];
	sum += (__u64)(weir_protocol(pkt) << 16 | vlan) * seed[11];
	if (rule->key_fields & WEIR_KEY_INTERFACE)
		sum += (__u64)pkt->ifindex * seed[12];
	hash = weir_hash_finish(sum);
	place.tag = hash >> 32;
	if (place.tag == 0)
		place.tag = 1;
	place.set = hash & (config.connection_sets - 1);
	return place;
}

/* The word of a connection that is opened once more, as it is now. 0: it counts no more. */
__noinline __u64 weir_counted_word(struct weir_work *w, const struct weir_connection_claim *claim)
{
	struct weir_connection_set *set;
	__u32 index;
	__u64 *at, word;

	if (!w || !claim)
		return 0;
	index = claim->set;
	set = bpf_map_lookup_elem(&connections, &index);
	if (!set)
		return 0;
	at = weir_word_at(set, weir_shared_way(set->tag, WEIR_CONNECTION_WAYS, claim->tag));
	if (!at)
		return 0;
	word = READ_ONCE(*at);
	return weir_state_counts(weir_own_state(w, word, claim->tag)) ? word : 0;
}

/* Is there room in this packet's flow for one more? Then it is in, and claim->step says where. */
static __always_inline enum weir_answer weir_reserve(struct weir_work *w, __u32 place,
						     struct weir_connection_claim *claim, __u64 threshold)
{
	__u32 slot = weir_rule(place)->slot, class = claim->class;

	for (int attempt = 0; attempt < WEIR_RESERVE_ATTEMPTS; attempt++) {
		struct weir_connection_flow *flow;
		__u64 most;
		__u32 step;

		flow = weir_find_connection_flow(w, place, attempt >= WEIR_RESERVE_PATIENCE)
			       ? weir_connection_flow(w->counted_flow)
			       : NULL;
		if (!flow)
			break;
		most = threshold + weir_counts_in_flow(w, claim->counted);
		/* Twice: one that another CPU is moving counts double for a moment. */
		if (weir_count_open(w, flow, w->counted_tag) >= most &&
		    weir_count_open(w, flow, w->counted_tag) >= most) {
			weir_note_refusal(w, flow, slot);
			return WEIR_ANSWER_BLOCK;
		}
		step = weir_connection_step(w, class);
		if (!weir_count_in(w, slot, class, step)) {
			w->has_now = 0;
			continue;
		}
		/* The connection itself is left out of a sum that it is in: another CPU may have just closed it. */
		if (weir_count_open(w, flow, w->counted_tag) <= most &&
		    (!claim->counted || weir_counted_word(w, claim) == claim->counted)) {
			claim->flow = w->counted_flow;
			claim->flow_tag = w->counted_tag;
			claim->step = step;
			claim->is_reserved = 1;
			return WEIR_ANSWER_ADMIT;
		}
		weir_count_out(w, w->counted_flow, w->counted_tag, class, step);
		if (claim->counted)
			claim->counted = weir_counted_word(w, claim);
	}
	weir_count_stall(slot);
	return WEIR_ANSWER_BLOCK;
}

/* A connection wants to open: perhaps one that counts already, and that is then left out. */
__noinline int weir_judge_opening(struct weir_work *w, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_claim *claim;
	enum weir_answer answer;
	__u64 threshold;

	if (!w || index >= WEIR_PACKET_RULES_MAX)
		return WEIR_ANSWER_ERROR;
	claim = &w->connection[index];
	threshold = config.has_overrides && rule->has_overrides ? weir_override_word(w, place) : rule->threshold;
	threshold &= WEIR_THRESHOLD_MASK;
	answer = weir_reserve(w, place, claim, threshold);
	if (answer != WEIR_ANSWER_BLOCK)
		return answer;
	/* Under a rule that observes the connection comes to be all the same, but must not be learned. */
	claim->is_refused = rule->observes && claim->event == WEIR_EVENT_OPENS && !claim->counted;
	if (!claim->is_refused)
		w->claim[index].kind = WEIR_CLAIM_GIVEN;
	return answer;
}

/* Judge the packet by a rule that limits connections; what it does to them is done when it passes. */
__noinline int weir_judge_connection(struct weir_work *w, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	__u32 state = WEIR_CONNECTION_NONE, event, next, set_index;
	struct weir_connection_claim *claim;
	struct weir_connection_set *set;
	struct weir_flow_place conn;
	__u64 word = 0, *at;

	if (!w || index >= WEIR_PACKET_RULES_MAX)
		return WEIR_ANSWER_ERROR;
	w->claim[index].kind = WEIR_CLAIM_GIVEN;
	if (w->packet.fragment == WEIR_FRAGMENT_LATER)
		return WEIR_ANSWER_ADMIT;
	conn = weir_connection_place(rule, &w->packet);
	claim = &w->connection[index];
	claim->set = conn.set;
	claim->tag = conn.tag;
	set_index = conn.set;
	set = bpf_map_lookup_elem(&connections, &set_index);
	if (!set)
		return WEIR_ANSWER_ERROR;
	at = weir_word_at(set, weir_shared_way(set->tag, WEIR_CONNECTION_WAYS, conn.tag));
	if (at) {
		word = READ_ONCE(*at);
		state = weir_own_state(w, word, conn.tag);
	}
	event = weir_connection_event(&w->packet);
	next = weir_next_state(state, event);
	if (next == state &&
	    (state == WEIR_CONNECTION_NONE || state == WEIR_CONNECTION_CLOSED || !weir_word_age(w, word)))
		return WEIR_ANSWER_ADMIT;
	claim->event = event;
	claim->class = weir_state_class(next);
	claim->is_reserved = 0;
	claim->is_refused = 0;
	claim->counted = weir_state_counts(state) ? word : 0;
	w->claim[index].kind = WEIR_CLAIM_CONNECTION;
	w->must_settle = 1;
	/* It has no row: not to be settled as a claim to a narrow one (weir_settle_claims), nor to keep one from being
	 * pushed out (weir_row_is_claimed).
	 */
	w->claim[index].storage = WEIR_STORAGE_LONE;
	/* Also when there is one by that name: else a stray packet would be enough to be let in unjudged. */
	if (event == WEIR_EVENT_OPENS ? state != WEIR_CONNECTION_HALF_OPEN
				      : state == WEIR_CONNECTION_NONE && event == WEIR_EVENT_NOT_TCP)
		return WEIR_ANSWER_OPENS;
	return WEIR_ANSWER_ADMIT;
}

/* ---- the packet passes ---- */

/* The step that a connection moves to: not one of before its word's, should another CPU's clock be ahead of ours.
 * (Who adds up a flow's cells would miss it.)
 */
__noinline __u32 weir_step_to_move_to(struct weir_work *w, __u64 word, __u32 tag, __u32 class)
{
	__u32 step, state, ahead;

	if (!w)
		return 0;
	step = weir_connection_step(w, class);
	state = weir_own_state(w, word, tag);
	ahead = ((__u32)word - step) & WEIR_CONNECTION_STEP_MASK;
	return state && weir_state_class(state) == class && ahead <= WEIR_WORD_STEPS_AHEAD ? step + ahead : step;
}

/* Count the connection in where the packet moves it to, and say in w->counted whom that concerns. False: not now. */
static __always_inline bool weir_count_state_in(struct weir_work *w, __u32 place,
						const struct weir_connection_claim *claim, __u64 word, __u32 next,
						__u32 *ret_step)
{
	__u32 class = weir_state_class(next);

	*ret_step = weir_step_to_move_to(w, word, claim->tag, class);
	if (claim->is_reserved) {
		w->counted_flow = claim->flow;
		w->counted_tag = claim->flow_tag;
		*ret_step = claim->step;
		return true;
	}
	if (!weir_state_counts(next)) {
		w->counted_flow = word >> WEIR_CONNECTION_FLOW_SHIFT;
		w->counted_tag = word >> WEIR_CONNECTION_FLOW_TAG_SHIFT & WEIR_CONNECTION_CHECK;
		return true;
	}
	return weir_find_connection_flow(w, place, false) && weir_count_in(w, weir_rule(place)->slot, class, *ret_step);
}

/* One try to change the connection as the packet wants it. True: done, or there is nothing to do. */
__noinline int weir_change_connection(struct weir_work *w, __u32 index, struct weir_connection_set *set, __u32 way)
{
	struct weir_connection_claim *claim;
	__u32 state, next, step, now_us;
	__u64 *at, word, changed;
	bool is_strangers;
	__u32 *opened_us;

	if (!w || !set || index >= WEIR_PACKET_RULES_MAX)
		return true;
	claim = &w->connection[index];
	now_us = weir_connections_now_ns(w) / 1000;
	at = weir_word_at(set, way);
	if (!at)
		return true;
	word = READ_ONCE(*at);
	OPAQUE(way);
	if (way >= WEIR_CONNECTION_WAYS)
		return true;
	opened_us = &set->opened_us[way];
	/* Is the place still its own? Who takes it over empties the word, then writes the tag, then its own word. */
	weir_order(w);
	if (READ_ONCE(set->tag[way]) != claim->tag)
		return false;
	state = weir_own_state(w, word, claim->tag);
	is_strangers = !state && weir_state_now(w, word);
	next = weir_next_state(state, claim->event);
	if (!claim->is_reserved && weir_state_counts(next) && !weir_state_counts(state) &&
	    claim->event != WEIR_EVENT_TALKS) {
		/* Refused, under a rule that observes. Or another CPU has closed it just now: it is learned soon. */
		if (!claim->is_refused)
			return true;
		next = WEIR_CONNECTION_REFUSED;
	}
	if (next == WEIR_CONNECTION_NONE)
		return true;
	if (!weir_count_state_in(w, w->rule[index], claim, word, next, &step))
		return false;
	changed = weir_connection_word(w, claim->tag, next, step);
	if (state == WEIR_CONNECTION_HALF_OPEN)
		w->handshake_us = now_us - READ_ONCE(*opened_us);
	if (__sync_val_compare_and_swap(at, word, changed) != word) {
		if (!claim->is_reserved && weir_state_counts(next))
			weir_count_out(w, w->counted_flow, w->counted_tag, weir_state_class(next), step);
		return false;
	}
	claim->is_reserved = 0;
	/* Counted in by another CPU that met it while the place changed hands. */
	if (is_strangers)
		weir_count_evicted(w, word, weir_rule(w->rule[index])->slot);
	if (next == WEIR_CONNECTION_HALF_OPEN && state != WEIR_CONNECTION_HALF_OPEN)
		WRITE_ONCE(*opened_us, now_us);
	/* For the figures one that did not count in this flow is new here. */
	if (weir_state_counts(state) && !(weir_count_word_out(w, word) && weir_counts_in_flow(w, word)))
		state = WEIR_CONNECTION_NONE;
	weir_note_changes(w, weir_rule(w->rule[index])->slot, state, next, claim->event);
	/* Who takes the place over empties it once more after the tag has changed. So one of us evicts it. */
	if (READ_ONCE(set->tag[way]) != claim->tag && __sync_val_compare_and_swap(at, changed, 0) == changed)
		weir_count_evicted(w, changed, weir_rule(w->rule[index])->slot);
	return true;
}

/* Rule `index` of the packet asked for this; the packet passes, or another rule has blocked it. */
__noinline int weir_settle_connection(struct weir_work *w, __u32 index, __u32 passes)
{
	struct weir_connection_claim *claim;
	struct weir_connection_set *set;
	__u32 set_index, slot, way;

	if (!w || index >= WEIR_PACKET_RULES_MAX)
		return 0;
	claim = &w->connection[index];
	slot = weir_rule(w->rule[index])->slot;
	set_index = claim->set;
	set = bpf_map_lookup_elem(&connections, &set_index);
	if (passes && set) {
		for (int attempt = 0; attempt < WEIR_SETTLE_ATTEMPTS; attempt++) {
			way = weir_shared_way(set->tag, WEIR_CONNECTION_WAYS, claim->tag);
			if (way == WEIR_CONNECTION_WAYS)
				way = weir_insert_connection(w, set_index, claim->tag, slot);
			if (weir_change_connection(w, index, set, way))
				break;
			w->has_now = 0;
		}
	}
	if (claim->is_reserved)
		weir_count_out(w, claim->flow, claim->flow_tag, claim->class, claim->step);
	return 0;
}

#endif
