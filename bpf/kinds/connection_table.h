/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries of connections: finding a packet's connection, insertion, eviction from a full set, and ghosts. A connection
 * is one word in a shared set, which changes by compare-and-swap. The CPU that changes it also moves the counts: it
 * adds one to the new cell before, and subtracts one from the old cell after.
 */
#ifndef WEIR_CONNECTION_TABLE_H
#define WEIR_CONNECTION_TABLE_H

#include "kinds/connection_flows.h"

/* Add to `sum` the fields of a flow's key beyond the 5-tuple, at their places in struct weir_flow_key. */
#define WEIR_ADD_ADDRESS(member) (void)0
#define WEIR_ADD_PORT(member) (void)0
#define WEIR_ADD_PROTOCOL(member) (void)0
#define WEIR_ADD_VLAN(member) WEIR_ADD_WORD(member, pkt->member & 0xfff)
#define WEIR_ADD_NUMBER(member) WEIR_ADD_WORD(member, pkt->member)
#define WEIR_ADD_WORD(member, value)                                                                                   \
	sum += ((__u64)(value) << __builtin_offsetof(struct weir_flow_key, member) % sizeof(__u32) * 8) *              \
	       seed[WEIR_SEED_KEY + __builtin_offsetof(struct weir_flow_key, member) / sizeof(__u32)]
#define WEIR_ADD_BEYOND_TUPLE(constant, name, member, part, form)                                                      \
	if (rule->key_fields & WEIR_KEY_##constant)                                                                    \
		WEIR_ADD_##form(member);

/* The bits of these fields: usually none is in the key. */
#define WEIR_IS_BEYOND_ADDRESS 0
#define WEIR_IS_BEYOND_PORT 0
#define WEIR_IS_BEYOND_PROTOCOL 0
#define WEIR_IS_BEYOND_VLAN 1
#define WEIR_IS_BEYOND_NUMBER 1
#define WEIR_BIT_BEYOND_TUPLE(constant, name, member, part, form) | WEIR_IS_BEYOND_##form *WEIR_KEY_##constant
#define WEIR_KEY_BEYOND_TUPLE (0 WEIR_KEY_FIELDS(WEIR_BIT_BEYOND_TUPLE))

/* A hash like that of weir_flow_hash(), over the whole 5-tuple and the other fields of the flow's key. Without these,
 * two tenants with the same addresses would end each other's connections.
 */
static __always_inline struct weir_flow_id weir_connection_id(const struct weir_rule *rule,
							      const struct weir_packet *pkt, __u32 sets)
{
	const volatile __u64 *seed = config.seed;
	__u64 sum;

	OPAQUE(seed);
	sum = seed[0] + (__u64)(rule->flows_slot << 1 | pkt->is_ipv6) * seed[1];
	sum += (__u64)pkt->source[0] * seed[2] + (__u64)pkt->destination[0] * seed[6];
	if (pkt->is_ipv6)
		sum += (__u64)pkt->source[1] * seed[3] + (__u64)pkt->source[2] * seed[4] +
		       (__u64)pkt->source[3] * seed[5] + (__u64)pkt->destination[1] * seed[7] +
		       (__u64)pkt->destination[2] * seed[8] + (__u64)pkt->destination[3] * seed[9];
	sum += (__u64)((pkt->source_port & 0xffff) << 16 | (pkt->destination_port & 0xffff)) * seed[10];
	sum += (__u64)(weir_protocol(pkt) << 16) * seed[11];
	if (unlikely(rule->key_fields & WEIR_KEY_BEYOND_TUPLE)) {
		WEIR_KEY_FIELDS(WEIR_ADD_BEYOND_TUPLE)
	}
	return weir_shared_id(weir_hash_finish(sum, config.seed), sets);
}

static __always_inline struct weir_connection_set *
weir_connection_set(const struct weir_connection_reservation *reservation)
{
	__u32 index = reservation->set;

	return bpf_map_lookup_elem(&connections, &index);
}

static __always_inline __u64 *weir_find_connection(struct weir_connection_set *set,
						   const struct weir_connection_reservation *reservation)
{
	/* NULL for a free way as well, because of its flag */
	return WEIR_ELEMENT(set->word, weir_way_in_order(&set->flows, reservation->tag));
}

/* Does the connection of this word, if any, count in the flow s->counted_flow? It does not if its own flow was evicted,
 * or if the word is a former owner's whose tag has the same four bits as ours.
 */
static __always_inline bool weir_counts_in_flow(const struct weir_scratch *s, __u64 word)
{
	__u64 flow = (__u64)s->counted_flow << (WEIR_CONNECTION_FLOW_SHIFT - WEIR_CONNECTION_FLOW_TAG_SHIFT) |
		     (s->counted_tag & WEIR_CONNECTION_CHECK);

	return weir_is_counted(weir_word_state(word)) && word >> WEIR_CONNECTION_FLOW_TAG_SHIFT == flow;
}

/* Take a connection out of the counts that its word names. False: the flow of these counts was evicted. */
static __always_inline bool weir_count_word_out(struct weir_scratch *s, __u64 word)
{
	__u32 class = weir_state_class(weir_word_state(word)), present = weir_step_now(s, class);
	/* 23 bits, with their sign */
	__s32 age = (__s32)((present - (__u32)word) << (32 - WEIR_CONNECTION_STEP_BITS)) >>
		    (32 - WEIR_CONNECTION_STEP_BITS);

	return weir_count_out(s, weir_word_flow(word), weir_word_turn(word), class, present - age);
}

/* Count the eviction of this word's connection, and take the connection out of the counts. */
__noinline int weir_count_evicted(struct weir_scratch *s, __u64 word, __u32 slot)
{
	__u32 number = weir_word_flow(word), turn = weir_word_turn(word);
	struct weir_connection_total *total;
	struct weir_connection_flow *flow;
	__u64 owner;

	WEIR_GLOBAL(CONNECTIONS, s, 0);
	weir_count_eviction(slot);
	if (!weir_is_counted(weir_word_state(word)) || !weir_count_word_out(s, word))
		return 0; /* it was evicted before, with its flow */
	flow = weir_flow_by_number(number);
	if (!flow || !weir_is_owner(flow, turn))
		return 0;
	owner = READ_ONCE(flow->owner);
	total = weir_total_of(WEIR_CONNECTION_OWNER_SLOT(owner));
	if (total)
		total->counts.evicted++;
	if (!weir_is_lone_flow(number) && weir_use_entry(flow, owner >> 32, WEIR_CONNECTION_USES_COUNTS))
		__sync_fetch_and_add(&flow->counts.evicted, 1);
	return 0;
}

/* Evict the connection in an entry with this word. False: the word has just changed. A word that is over is emptied,
 * too: the next owner's tag may match the word's, and the new connection would then seem to be counted already.
 */
__noinline int weir_evict_connection(struct weir_scratch *s, __u64 *at, __u64 word, __u32 slot)
{
	WEIR_GLOBAL(CONNECTIONS, s && at, false);
	if (!word)
		return true;
	if (__sync_val_compare_and_swap(at, word, 0) != word)
		return false;
	if (weir_state_now(s, word) != WEIR_CONNECTION_NONE)
		weir_count_evicted(s, word, slot);
	return true;
}

/* ---- ghosts ---- */

/* Leave a ghost of the connection that is about to be evicted, if it has counted. The insertion's number selects the
 * ghost to replace. If all insertions evict connections of this kind, that is the oldest ghost.
 */
__noinline int weir_leave_ghost(struct weir_connection_set *set, __u32 way, __u64 word, __u32 number)
{
	__u32 state = weir_word_state(word), place = number & (WEIR_CONNECTION_HALF_OPEN_GHOSTS - 1);
	__u32 *ghost, *tag;

	WEIR_GLOBAL(CONNECTIONS, set, 0);
	if (state == WEIR_CONNECTION_OPEN)
		place = WEIR_CONNECTION_HALF_OPEN_GHOSTS + (number & (WEIR_CONNECTION_OPEN_GHOSTS - 1));
	else if (state != WEIR_CONNECTION_HALF_OPEN)
		return 0;
	tag = WEIR_ELEMENT(set->flows.tag, way);
	ghost = WEIR_ELEMENT(set->ghost, place);
	if (ghost && tag && weir_is_own_word(word, *tag))
		WRITE_ONCE(*ghost, *tag);
	return 0;
}

/* The connection with this tag talks. Was it ever counted? It was if it counts now, if its entry says that it was
 * silent for too long, or if it has a ghost; the ghost is then removed.
 */
__noinline int weir_was_counted(struct weir_scratch *s, struct weir_connection_set *set, __u32 tag)
{
	__u64 *at, word;

	WEIR_GLOBAL(CONNECTIONS, s && set, false);
	at = WEIR_ELEMENT(set->word, weir_way_of(&set->flows, tag));
	word = at ? READ_ONCE(*at) : 0;
	if (word && weir_is_own_word(word, tag)) {
		if (weir_is_counted(weir_word_state(word)))
			return true;
		if (weir_state_now(s, word))
			return false;
	}
	weir_order(s); /* a CPU that empties a word leaves the ghost first */
#pragma nounroll
	for (__u32 place = 0; place < WEIR_CONNECTION_GHOSTS; place++) {
		__u32 *ghost = WEIR_ELEMENT(set->ghost, place);

		if (ghost && READ_ONCE(*ghost) == tag) {
			__sync_val_compare_and_swap(ghost, tag, 0);
			return true;
		}
	}
	return false;
}

/* ---- who leaves a full set, and insertion ---- */

/* The rank of a connection says how much it would hurt to lose it. It is 0 if the connection is over; otherwise it is
 * lower the longer the connection has been silent. A connection with more than one packet ("proven") ranks above all
 * others. The present steps are in s->connection_clock. Without branches, because the verifier would follow each, way
 * after way.
 */
#define WEIR_WORTH_SILENCE (1ull << 48)		   /* no silence is as long, in ns */
#define WEIR_WORTH_LATEST (WEIR_WORTH_SILENCE | 1) /* more than any other that is not proven */
#define WEIR_WORTH_PROVEN (1ull << 49)

static __always_inline __u64 weir_connection_worth(const struct weir_scratch *s, __u64 word)
{
	const __u32 proven = 1u << WEIR_CONNECTION_OPEN | 1u << WEIR_CONNECTION_OTHER;
	__u32 state = weir_word_state(word), class = weir_state_class(state);
	__u64 age, is_gone;

	OPAQUE(class);
	class &= WEIR_CONNECTION_CLASSES - 1;
	age = (s->connection_clock[class].bucket - word) & WEIR_CONNECTION_STEP_MASK;
	/* none when another CPU's clock is ahead of ours, as in weir_word_age() */
	age &= ~((__s64)(WEIR_CONNECTION_STEP_MASK - WEIR_WORD_STEPS_AHEAD - age) >> 63);
	is_gone = (__s64)(WEIR_CONNECTION_STEPS - age) >> 63 | ((__s64)state - 1) >> 63;
	return (WEIR_WORTH_SILENCE - age * weir_step_ns(class) + (proven >> state & 1) * WEIR_WORTH_PROVEN) & ~is_gone;
}

/* The connection to evict from a full set: one that is over, or else the one that has been silent for longest. It is
 * taken from the unproven connections if these use up their budget, otherwise from the proven ones. In a flood, many
 * have been silent for the same number of steps; then each insertion begins at another way, or new connections would
 * evict each other from the first one. The latest, whose word may not be written yet, is the last of them: were it
 * evicted, the next packet would be admitted in its place, before it talks and counts again. Without branches, because
 * the verifier would follow each.
 */
__noinline __u32 weir_choose_connection(struct weir_scratch *s, const struct weir_connection_set *set)
{
	__u64 least = ~0ull >> 1, least_proven = ~0ull >> 1, once = 0, order, in_use;

	WEIR_GLOBAL(CONNECTIONS, s && set, 0);
	order = WEIR_INSERTED_COUNT(s->place.latest) & 7;
	in_use = WEIR_WORTH_LATEST << (WEIR_INSERTED_WAY(s->place.latest) & 7);
	weir_turn_steps(s);
#pragma unroll
	for (__u32 way = 0; way < WEIR_FLOW_WAYS; way++) {
		__u64 worth = weir_connection_worth(s, READ_ONCE(set->word[way]));
		__u64 is_proven;

		worth |= in_use >> way & WEIR_WORTH_LATEST;
		is_proven = worth / WEIR_WORTH_PROVEN;
		once += (-worth >> 63) & (is_proven ^ 1);
		worth = worth * 8 + (way ^ order);
		least = weir_lesser(worth, least);
		least_proven = weir_lesser(worth + (is_proven ^ 1) * 16 * WEIR_WORTH_PROVEN, least_proven);
	}
	return ((least < 8 || once >= WEIR_CONNECTION_BUDGET ? least : least_proven) ^ order) & 7;
}

/* Evict the connection at this way, and leave a ghost. False: the entry has just changed, or another CPU was faster.
 * The latest insertion's number selects the ghost to replace.
 */
static __always_inline bool weir_push_out_connection(struct weir_scratch *s, struct weir_connection_set *set, __u32 way,
						     __u32 slot)
{
	__u64 *at = WEIR_ELEMENT(set->word, way), word = at ? READ_ONCE(*at) : 0;

	if (!weir_is_latest(s, &set->flows))
		return false;
	weir_leave_ghost(set, way, word, WEIR_INSERTED_COUNT(s->place.latest));
	return weir_evict_connection(s, at, word, slot);
}

/* Try once to insert a connection. Returns its way, or one beyond the last if another CPU was faster. */
static __always_inline __u32 weir_try_insert_connection(struct weir_scratch *s, struct weir_connection_set *set,
							__u32 tag, __u32 slot)
{
	__u32 way = weir_look_in_order(s, &set->flows, tag);

	if (way == (WEIR_FLOW_WAYS | WEIR_WAY_IS_NEW)) {
		way = weir_choose_connection(s, set);
		if (!weir_push_out_connection(s, set, way, slot))
			return WEIR_FLOW_WAYS;
		way |= WEIR_WAY_IS_NEW;
	}
	FORGET(s->forgotten, way);
	if (way & WEIR_WAY_IS_NEW && !weir_take_way(s, &set->flows, tag, way))
		return WEIR_FLOW_WAYS;
	return way;
}

/* Insert a connection. Returns its way, or one beyond the last. */
__noinline __u32 weir_insert_connection(struct weir_scratch *s, struct weir_connection_set *set, __u32 tag, __u32 slot)
{
	__u32 way = WEIR_FLOW_WAYS;

	WEIR_GLOBAL(CONNECTIONS, s && set, WEIR_FLOW_WAYS);
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS && way == WEIR_FLOW_WAYS; attempt++)
		way = weir_try_insert_connection(s, set, tag, slot);
	FORGET(s->forgotten, way); /* else the verifier follows every way of every attempt to the end */
	/* Evict once more: until the former owner could see the new tag, it may have written its word again. The tag
	 * must be visible when we read the word. If another CPU has written the tag, nothing so far has ordered that,
	 * because a compare-and-swap that fails is no barrier.
	 */
	if (way & WEIR_WAY_IS_NEW) {
		__u64 *at = WEIR_ELEMENT(set->word, WEIR_WAY(way)), word;

		weir_order(s);
		word = at ? READ_ONCE(*at) : 0;
		if (word)
			weir_evict_connection(s, at, word, slot);
	}
	return WEIR_WAY(way);
}

#endif
