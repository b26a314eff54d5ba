/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules that limit connections. A packet is evaluated first: a connection that opens needs room in its flow, which is
 * reserved; everything else passes. What the packet does to its connection is committed when every rule has admitted
 * the packet; if another rule blocks it, the reservation is aborted. docs/connections.md says what is counted.
 *
 * A packet that changes nothing, of a connection that has already had a packet in this step, reads two cache lines and
 * writes none.
 */
#ifndef WEIR_CONNECTIONS_H
#define WEIR_CONNECTIONS_H

#include "kinds/connection_table.h"
#include "kinds/cookies.h"
#include "observe/drops.h"
#include "kinds/handshakes.h"
#include "window/threshold.h"

#define WEIR_COMMIT_ATTEMPTS 4 /* another CPU changed the same connection each time */
/* Attempts to reserve. One fails if several CPUs try at the same time and all give back, or if the flow's entry is not
 * made yet. After most of the attempts, some 50 us, the CPU that makes the entry must have stalled.
 */
#define WEIR_RESERVE_ATTEMPTS 32
#define WEIR_RESERVE_PATIENCE 24

/* ---- figures ---- */

static __always_inline void weir_raise_shortest(struct weir_connection_counts *counts, __u64 less_us)
{
	for (int attempt = 0; attempt < WEIR_COMMIT_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(counts->handshake_less_us);

		if (less_us <= old || __sync_val_compare_and_swap(&counts->handshake_less_us, old, less_us) == old)
			return;
	}
}

static __always_inline void weir_raise_flow(struct weir_connection_flow *flow, __u32 open)
{
	for (int attempt = 0; attempt < WEIR_COMMIT_ATTEMPTS; attempt++) {
		__u32 old = READ_ONCE(flow->max);

		if (open <= old || __sync_val_compare_and_swap(&flow->max, old, open) == old)
			return;
	}
}

static __always_inline void weir_count_handshake(struct weir_connection_counts *counts, __u32 took_us)
{
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
	weir_raise_shortest(counts, (1ull << 32) - took_us);
}

/* How a connection changed: its state before, its state now, and the event. */
#define WEIR_CHANGE(state, next, event) ((state) | (next) << 3 | (event) << 6)
#define WEIR_CHANGE_STATE(change) ((change)&7)
#define WEIR_CHANGE_NEXT(change) ((change) >> 3 & 7)
#define WEIR_CHANGE_EVENT(change) ((change) >> 6 & 7)

/* Does the change add a connection? */
static __always_inline bool weir_change_adds(__u32 change)
{
	__u32 state = WEIR_CHANGE_STATE(change);

	if (!weir_is_counted(WEIR_CHANGE_NEXT(change)))
		return false;
	return !weir_is_counted(state) ||
	       (WEIR_CHANGE_EVENT(change) == WEIR_EVENT_OPENS && state != WEIR_CONNECTION_HALF_OPEN);
}

/* Does the change count anywhere but in `opened` and `max`? */
static __always_inline bool weir_change_needs_counts(__u32 change)
{
	return weir_is_counted(WEIR_CHANGE_STATE(change)) || WEIR_CHANGE_EVENT(change) == WEIR_EVENT_TALKS;
}

__noinline int weir_count_change(struct weir_scratch *s, struct weir_connection_counts *counts, __u32 change)
{
	__u32 state = WEIR_CHANGE_STATE(change), next = WEIR_CHANGE_NEXT(change), event = WEIR_CHANGE_EVENT(change);
	bool adds = weir_change_adds(change), was_counted = weir_is_counted(state);

	WEIR_GLOBAL(CONNECTIONS, s && counts, 0);
	if (!weir_is_counted(next)) {
		if (was_counted)
			__sync_fetch_and_add(
				event == WEIR_EVENT_FINISHES ? &counts->closed_by_fin : &counts->closed_by_reset, 1);
		return 0;
	}
	if (state == WEIR_CONNECTION_HALF_OPEN && next == WEIR_CONNECTION_OPEN)
		weir_count_handshake(counts, s->handshake_us);
	if (adds && was_counted)
		__sync_fetch_and_add(&counts->reused, 1);
	if (adds && event == WEIR_EVENT_TALKS)
		__sync_fetch_and_add(&counts->returned, 1);
	return 0;
}

/* Count the change in the flow s->counted_flow, which has s->counted_open connections now; 0: that is not known. */
__noinline int weir_count_flow_change(struct weir_scratch *s, __u32 change)
{
	struct weir_connection_flow *flow;

	WEIR_GLOBAL(CONNECTIONS, s, 0);
	flow = weir_flow_by_number(s->counted_flow);
	if (!flow || !weir_is_owner(flow, s->counted_tag))
		return 0;
	if (weir_change_needs_counts(change) && !weir_is_lone_flow(s->counted_flow) &&
	    weir_use_entry(flow, READ_ONCE(flow->owner) >> 32, WEIR_CONNECTION_USES_COUNTS))
		weir_count_change(s, &flow->counts, change);
	if (!weir_change_adds(change))
		return 0;
	if (WEIR_CHANGE_EVENT(change) != WEIR_EVENT_TALKS)
		__sync_fetch_and_add(&flow->opened, 1);
	if (!s->counted_open)
		s->counted_open = weir_open_connections(s, flow, s->counted_tag);
	weir_raise_flow(flow, s->counted_open);
	return 0;
}

/* The same in its rule's total. */
__noinline int weir_count_total_change(struct weir_scratch *s, __u32 slot, __u32 change)
{
	struct weir_connection_total *total = weir_total_of(slot);

	WEIR_GLOBAL(CONNECTIONS, s && total, 0);
	if (weir_change_needs_counts(change))
		weir_count_change(s, &total->counts, change);
	if (!weir_change_adds(change))
		return 0;
	if (WEIR_CHANGE_EVENT(change) != WEIR_EVENT_TALKS)
		total->opened++;
	if (!weir_is_lone_flow(s->counted_flow))
		weir_raise_total(s, total, slot, false);
	else if (s->counted_open > total->max)
		total->max = s->counted_open;
	return 0;
}

/* Count a connection whose opening was not seen, for its rule, and for its flow if that has an entry. */
__noinline int weir_count_learned(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_total *total = weir_total_of(rule->flows_slot);
	struct weir_connection_flow *flow;

	WEIR_GLOBAL(CONNECTIONS, s && total, 0);
	total->counts.learned++;
	if (!rule->key_fields)
		return 0;
	flow = weir_find_connection_flow(s, rule);
	if (flow && weir_use_entry(flow, s->counted_tag, WEIR_CONNECTION_USES_COUNTS))
		__sync_fetch_and_add(&flow->counts.learned, 1);
	return 0;
}

static __always_inline void weir_count_changes(struct weir_scratch *s, __u32 slot, __u32 state, __u32 next, __u32 event)
{
	__u32 change = WEIR_CHANGE(state, next, event);

	if (state == next || !(weir_is_counted(state) || weir_is_counted(next)))
		return;
	weir_count_flow_change(s, change);
	weir_count_total_change(s, slot, change);
}

/* ---- the first connection of a flow ---- */

/* The packet opens the first connection of its flow, which is counted already: write its word, at this way of the set
 * or at a free one. False: there is none, the connection was known, or another CPU has just written a word there.
 */
static __always_inline bool weir_write_first(struct weir_scratch *s, const struct weir_rule *rule,
					     struct weir_connection_reservation *reservation,
					     struct weir_connection_set *set, __u32 way)
{
	struct weir_connection_total *total = weir_total_of(rule->flows_slot);
	__u64 *at, changed;
	bool is_new;

	if (!total)
		return false;
	if (way == WEIR_FLOW_WAYS)
		way = weir_take_free_way(s, &set->flows, reservation->tag, &is_new);
	OPAQUE(way);
	if (way >= WEIR_FLOW_WAYS)
		return false;
	at = &set->word[way];
	changed = weir_connection_word(reservation->tag,
				       reservation->class == WEIR_CONNECTION_CLASS_HALF ? WEIR_CONNECTION_HALF_OPEN
											: WEIR_CONNECTION_OTHER_ONCE,
				       reservation->step, reservation->flow, reservation->flow_tag);
	if (WEIR_PART_RETURNED_COOKIES && reservation->class == WEIR_CONNECTION_CLASS_OPEN)
		changed ^= (WEIR_CONNECTION_OTHER_ONCE ^ WEIR_CONNECTION_OPEN) << WEIR_CONNECTION_STATE_SHIFT;
	if (__sync_val_compare_and_swap(at, 0, changed))
		return false;
	WRITE_ONCE(set->flows.opened_us[way], weir_monotonic_ns(s) / 1000);
	reservation->is_reserved = 0;
	if (weir_change_total_cell(total, reservation->class, reservation->step, 1))
		total->open++;
	total->opened++;
	weir_raise_total(s, total, rule->flows_slot, true);
	/* as in weir_reap_connection() */
	if (READ_ONCE(set->flows.tag[way]) != reservation->tag &&
	    __sync_val_compare_and_swap(at, changed, 0) == changed)
		weir_count_evicted(s, changed, rule->slot);
	return true;
}

/* ---- evaluating ---- */

static __always_inline void weir_count_refusal(__u32 slot)
{
	struct weir_connection_total *total = weir_total_of(slot);

	if (total)
		total->counts.refused++;
}

/* The word, as it is now, of a connection that is opened again. 0: it no longer counts. */
__noinline __u64 weir_counted_word(struct weir_scratch *s, const struct weir_connection_reservation *reservation)
{
	struct weir_connection_set *set;
	__u64 *at, word;

	WEIR_GLOBAL(CONNECTIONS, s && reservation, 0);
	set = weir_connection_set(reservation);
	at = set ? weir_find_connection(set, reservation) : NULL;
	if (!at)
		return 0;
	word = READ_ONCE(*at);
	return weir_is_counted(weir_own_state(s, word, reservation->tag)) ? word : 0;
}

/* Undo a reservation that did not become a connection, in the flow s->counted_flow. If the flow was evicted meanwhile,
 * the reservation was counted among the connections that were evicted with it.
 */
__noinline int weir_take_back(struct weir_scratch *s, __u32 slot, __u32 class, __u32 step)
{
	struct weir_connection_total *total = weir_total_of(slot);
	const struct weir_connection_flow *flow;

	WEIR_GLOBAL(CONNECTIONS, s && total, 0);
	if (weir_count_out(s, s->counted_flow, s->counted_tag, class, step))
		return 0;
	flow = weir_flow_by_number(s->counted_flow);
	if (flow && !weir_is_owner(flow, s->counted_tag) &&
	    weir_step_age(weir_step_now(s, class), step) < WEIR_STEP_AGE_OVER)
		total->counts.evicted--; /* this copy may fall below zero, because another CPU has counted it */
	return 0;
}

/* The first connection of a flow does not begin as such: from here on, it is a reservation like any other, which its
 * rule's total counts, and no figure of its flow.
 */
__noinline int weir_begin_otherwise(struct weir_scratch *s, struct weir_connection_reservation *reservation, __u32 slot)
{
	struct weir_connection_flow *flow;

	WEIR_GLOBAL(CONNECTIONS, s && reservation, 0);
	reservation->is_first = 0;
	weir_change_total(s, weir_total_of(slot), reservation->class, reservation->step, 1);
	flow = weir_flow_by_number(reservation->flow);
	if (flow && weir_is_owner(flow, reservation->flow_tag) &&
	    __sync_val_compare_and_swap((__u64 *)&flow->opened, WEIR_FIRST_FIGURES, 0) != WEIR_FIRST_FIGURES)
		__sync_fetch_and_add(&flow->opened, -1);
	return 0;
}

/* Give back what rule `index` of the packet has reserved, if anything. */
__noinline int weir_abort_connection(struct weir_scratch *s, __u32 index)
{
	struct weir_connection_reservation *reservation;
	__u32 slot;

	WEIR_GLOBAL(CONNECTIONS, s && index < WEIR_PACKET_RULES_MAX, 0);
	reservation = &s->connection[index];
	if (!reservation->is_reserved)
		return 0;
	slot = weir_rule(s->rule[index])->flows_slot;
	if (reservation->is_first)
		weir_begin_otherwise(s, reservation, slot);
	s->counted_flow = reservation->flow;
	s->counted_tag = reservation->flow_tag;
	return weir_take_back(s, slot, reservation->class, reservation->step);
}

/* The packet's connection is counted in, in the flow s->counted_flow. */
static __always_inline void weir_note_reserved(const struct weir_scratch *s,
					       struct weir_connection_reservation *reservation, __u32 open, __u32 step)
{
	reservation->open = open;
	reservation->flow = s->counted_flow;
	reservation->flow_tag = s->counted_tag;
	reservation->step = step;
	reservation->is_reserved = 1;
}

/* Reserve room for one more connection in this packet's flow: count it in, and record where in the reservation. */
static __always_inline enum weir_answer weir_reserve(struct weir_scratch *s, __u32 place,
						     struct weir_connection_reservation *reservation, __u64 threshold,
						     __u32 found)
{
	const struct weir_rule *rule = weir_rule(place);

	/* 64 bits: clang 14 spills a counter of 32 into half a word, where the verifier of 6.18 loses it. */
	for (__u64 attempt = 0; attempt < WEIR_RESERVE_ATTEMPTS; attempt++) {
		struct weir_connection_flow *flow;
		__u32 step, open;
		__u64 most;

		if (attempt || found == WEIR_FLOW_UNSOUGHT)
			found = weir_get_connection_flow(s, place,
							 attempt >= WEIR_RESERVE_PATIENCE ? WEIR_GET_IMPATIENT : 0);
		flow = found ? weir_flow_by_number(s->counted_flow) : NULL;
		if (!flow)
			break;
		most = threshold + weir_counts_in_flow(s, reservation->counted);
		open = weir_sum_open(s, flow, s->counted_tag);
		if (open >= most) /* perhaps only because a connection that another CPU is moving counts double */
			open = weir_sum_open(s, flow, s->counted_tag);
		if (open >= most) {
			weir_count_refusal(rule->slot);
			return weir_refuse(s, open, threshold);
		}
		step = weir_step_now(s, reservation->class);
		if (!weir_count_in(s, rule->flows_slot, reservation->class, step)) {
			weir_reread_tick(s);
			continue;
		}
		/* Leave out the connection itself if the sum includes it; another CPU may have just closed it. */
		open = weir_sum_open(s, flow, s->counted_tag);
		if (open <= most &&
		    (!reservation->counted || weir_counted_word(s, reservation) == reservation->counted)) {
			weir_note_reserved(s, reservation, open - (most - threshold), step);
			return WEIR_ANSWER_ADMIT;
		}
		weir_take_back(s, rule->flows_slot, reservation->class, step);
		if (reservation->counted)
			reservation->counted = weir_counted_word(s, reservation);
	}
	return weir_refuse_stalled(s, rule->slot);
}

/* Evaluate an opening in the flow that weir_enter_opening() has found. If its connection already counts, the sum leaves
 * it out.
 */
__noinline int weir_evaluate_opening(struct weir_scratch *s, __u32 place, __u32 index)
{
	struct weir_connection_reservation *reservation;
	enum weir_answer answer;

	WEIR_GLOBAL(CONNECTIONS, s && index < WEIR_PACKET_RULES_MAX, WEIR_ANSWER_ERROR);
	reservation = &s->connection[index];
	answer = weir_reserve(s, place, reservation, s->opening_threshold, reservation->open);
	if (answer != WEIR_ANSWER_BLOCK)
		return answer;
	/* Under a rule that observes, the connection opens all the same, but it must not be taken for a learned one. */
	reservation->is_refused =
		weir_rule(place)->observes && reservation->event != WEIR_EVENT_NOT_TCP && !reservation->counted;
	if (!reservation->is_refused)
		s->reservation[index].kind = WEIR_RESERVATION_GIVEN;
	return answer;
}

/* Evaluate the packet by a rule that shares connections with an earlier one, which has reserved room if the packet
 * opens one. FOUND: that was more than this rule admits. Other CPUs may have done the same, so give it back, and
 * reserve again for this rule. What is reserved passes from rule to rule, so that it ends once.
 *
 * Rules of one resource that enforce, with one flow key, count the same connections: a packet that one of them blocks
 * opens none for any. So there is one entry of the connection and one of its flow, at the rules' `flows_slot`. The
 * first of the rules does with them what a single rule does, and the others compare what it has found with their
 * thresholds.
 */
__noinline int weir_evaluate_shared(struct weir_scratch *s, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	__u32 holder = 0;
	__u64 threshold;

	WEIR_GLOBAL(SHARED_CONNECTIONS, s && index < WEIR_PACKET_RULES_MAX, WEIR_ANSWER_ERROR);
	if (!s->must_commit) /* no rule has reserved anything */
		return WEIR_ANSWER_ADMIT;
#pragma nounroll
	while (holder < index && (s->reservation[holder].kind != WEIR_RESERVATION_OF_KIND ||
				  weir_rule(s->rule[holder])->shares_with != rule->shares_with))
		holder++;
	OPAQUE(holder);
	if (holder >= index || !s->connection[holder].is_reserved)
		return WEIR_ANSWER_ADMIT;
	threshold = config.has_overrides && rule->has_overrides ? weir_override_word(s, place) : rule->threshold;
	if (s->connection[holder].open <= (threshold & WEIR_THRESHOLD_MASK))
		return WEIR_ANSWER_ADMIT;
	weir_abort_connection(s, holder);
	s->connection[index] = s->connection[holder];
	s->connection[index].is_reserved = 0;
	s->reservation[index].kind = WEIR_RESERVATION_OF_KIND;
	s->reservation[holder].kind = WEIR_RESERVATION_GIVEN;
	s->connection[index].open = WEIR_FLOW_UNSOUGHT;
	s->opening_threshold = threshold & WEIR_THRESHOLD_MASK;
	return WEIR_ANSWER_FOUND;
}

/* Find the flow in which the packet opens a connection. If the flow gets its entry now, with this connection counted in
 * it, admit the packet; if no rule comes later, which could still block it, the connection begins at once. Otherwise
 * FOUND: weir_evaluate_opening() reserves room.
 */
static __always_inline enum weir_answer weir_enter_opening(struct weir_scratch *s, const struct weir_rule *rule,
							   __u32 index, struct weir_connection_reservation *reservation,
							   struct weir_connection_set *set)
{
	__u64 threshold;
	__u32 found;

	threshold = config.has_overrides && rule->has_overrides ? weir_override_word(s, rule->place) : rule->threshold;
	threshold &= WEIR_THRESHOLD_MASK;
	found = weir_get_connection_flow(s, rule->place, threshold ? WEIR_GET_COUNTS_FIRST : 0);
	if (found != WEIR_FLOW_COUNTED) {
		s->opening_threshold = threshold;
		reservation->open = found;
		return WEIR_ANSWER_FOUND;
	}
	weir_note_reserved(s, reservation, 1, s->counted_step);
	reservation->is_first = 1;
	if (index + 1 == s->rule_count && !READ_ONCE(set->flows.tag[WEIR_FLOW_WAYS - 1]) /* a way is free */ &&
	    weir_write_first(s, rule, reservation, set, WEIR_FLOW_WAYS)) {
		if (index)
			s->reservation[index].kind = WEIR_RESERVATION_GIVEN;
		else
			s->must_commit = 0;
	}
	return WEIR_ANSWER_ADMIT;
}

/* Evaluate the packet by a rule that limits connections, and record how it will change its connection. */
__noinline int weir_evaluate_connection(struct weir_scratch *s, __u32 place, __u32 index)
{
	__u32 state = WEIR_CONNECTION_NONE, event, next;
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_reservation *reservation;
	struct weir_connection_set *set;
	struct weir_flow_id id;
	__u64 word = 0, *at;

	WEIR_GLOBAL(CONNECTIONS, s && index < WEIR_PACKET_RULES_MAX, WEIR_ANSWER_ERROR);
	s->reservation[index].kind = WEIR_RESERVATION_GIVEN;
	if (s->packet.fragment == WEIR_FRAGMENT_LATER)
		return WEIR_ANSWER_ADMIT;
	if (config.shares_connections && rule->shares_with != place)
		return weir_evaluate_shared(s, place, index);
	id = weir_connection_id(rule, &s->packet, config.sizes[WEIR_TABLE_CONNECTIONS]);
	reservation = &s->connection[index];
	OPAQUE(reservation); /* else clang computes the address of each field again */
	reservation->set = id.set;
	reservation->tag = id.tag;
	set = weir_connection_set(reservation);
	if (!set)
		return WEIR_ANSWER_ERROR;
	event = weir_connection_event(&s->packet);
	at = weir_find_connection(set, reservation);
	if (at) {
		word = READ_ONCE(*at);
		state = weir_own_state(s, word, id.tag);
	}
	next = weir_next_state(state, event);
	if (WEIR_PART_RETURNED_COOKIES && event == WEIR_EVENT_TALKS && !weir_is_counted(next) &&
	    !WEIR_IS_OUT(&s->packet)) {
		if (!(s->packet.tcp_flags & WEIR_TCP_COOKIE_SOUGHT))
			return WEIR_ANSWER_COOKIE;
		if (s->packet.tcp_flags & WEIR_TCP_COOKIE_FOUND) {
			event = WEIR_EVENT_BRINGS_COOKIE;
			next = WEIR_CONNECTION_OPEN;
		}
	}
	if (next == state &&
	    (state == WEIR_CONNECTION_NONE || state == WEIR_CONNECTION_CLOSED || !weir_word_age(s, word)))
		return WEIR_ANSWER_ADMIT;
	reservation->event = event;
	reservation->class = weir_state_class(next);
	reservation->is_reserved = 0;
	reservation->is_refused = 0;
	reservation->is_first = 0;
	reservation->counted = weir_is_counted(state) ? word : 0;
	s->reservation[index].kind = WEIR_RESERVATION_OF_KIND;
	s->must_commit = 1;
	/* Evaluate an opening even if its connection exists. Otherwise a stray packet before it would let it in without
	 * evaluation.
	 */
	if (event == WEIR_EVENT_OPENS ? state != WEIR_CONNECTION_HALF_OPEN
				      : state == WEIR_CONNECTION_NONE && event == WEIR_EVENT_NOT_TCP)
		return weir_enter_opening(s, rule, index, reservation, set);
	if (WEIR_PART_RETURNED_COOKIES && event == WEIR_EVENT_BRINGS_COOKIE)
		return weir_enter_opening(s, rule, index, reservation, set);
	return WEIR_ANSWER_ADMIT;
}

/* ---- committing ---- */

/* The step that a connection moves to. If another CPU's clock is ahead of ours, it is not earlier than the word's step,
 * because weir_sum_open() would then miss the connection.
 */
__noinline __u32 weir_step_to_move_to(struct weir_scratch *s, __u64 word, __u32 tag, __u32 class)
{
	__u32 step, state, ahead;

	WEIR_GLOBAL(CONNECTIONS, s, 0);
	step = weir_step_now(s, class);
	state = weir_own_state(s, word, tag);
	ahead = ((__u32)word - step) & WEIR_CONNECTION_STEP_MASK;
	return state && weir_state_class(state) == class && ahead <= WEIR_WORD_STEPS_AHEAD ? step + ahead : step;
}

/* The flow that the connection of s->change counts in from now on. By a key of a packet's own ends, its packets of both
 * directions name two: it stays in the one that it opened in, where there was room for it. False: there is none.
 */
__noinline int weir_keep_flow(struct weir_scratch *s, __u32 place)
{
	const struct weir_connection_flow *flow;
	__u32 number;

	WEIR_GLOBAL(CONNECTIONS, s, false);
	number = weir_word_flow(s->change.word);
	if (weir_is_counted(s->change.state) && weir_rule(place)->key_fields & WEIR_KEY_TURNED(WEIR_KEY_ENDS)) {
		flow = weir_flow_by_number(number);
		if (flow && weir_is_owner(flow, weir_word_turn(s->change.word))) {
			s->counted_flow = number;
			s->counted_tag = READ_ONCE(flow->owner) >> 32;
			return true;
		}
	}
	return weir_get_connection_flow(s, place, 0) != WEIR_FLOW_NONE;
}

/* An attempt to commit consists of three successive calls, because the stack has no room for nested ones. The first
 * finds out how the connection changes (s->change), and in which flow it will count (s->counted_flow). DONE: nothing
 * changes.
 */
enum weir_attempt { WEIR_ATTEMPT_DONE, WEIR_ATTEMPT_AGAIN, WEIR_ATTEMPT_GOES_ON };

__noinline int weir_look_at_connection(struct weir_scratch *s, __u32 index, struct weir_connection_set *set, __u32 way)
{
	struct weir_connection_reservation *reservation;
	__u64 *at, word;
	__u32 state, next, *tag;

	WEIR_GLOBAL(CONNECTIONS, s && set && index < WEIR_PACKET_RULES_MAX, WEIR_ATTEMPT_DONE);
	reservation = &s->connection[index];
	at = WEIR_ELEMENT(set->word, way);
	tag = WEIR_ELEMENT(set->flows.tag, way);
	if (!at || !tag)
		return WEIR_ATTEMPT_DONE;
	word = READ_ONCE(*at);
	/* Is the entry still the connection's? A new owner empties the word, then writes the tag, then its own word. */
	weir_order(s);
	if (READ_ONCE(*tag) != reservation->tag)
		return WEIR_ATTEMPT_AGAIN;
	state = weir_own_state(s, word, reservation->tag);
	next = weir_next_state(state, reservation->event);
	if (!reservation->is_reserved && weir_is_counted(next) && !weir_is_counted(state) &&
	    reservation->event != WEIR_EVENT_TALKS) {
		/* Refused, under a rule that observes. Or another CPU has just closed it. */
		if (!reservation->is_refused)
			return WEIR_ATTEMPT_DONE;
		next = WEIR_CONNECTION_REFUSED;
	}
	if (next == WEIR_CONNECTION_NONE)
		return WEIR_ATTEMPT_DONE;
	if (next == WEIR_CONNECTION_LEARNED && reservation->was_counted)
		next = WEIR_CONNECTION_OPEN;
	s->change.word = word;
	s->change.state = state;
	s->change.next = next;
	s->change.way = way;
	if (reservation->is_reserved) {
		s->counted_flow = reservation->flow;
		s->counted_tag = reservation->flow_tag;
	} else if (!weir_is_counted(next)) {
		s->counted_flow = weir_word_flow(word);
		s->counted_tag = weir_word_turn(word);
	} else if (config.limits_both) {
		if (!weir_keep_flow(s, s->rule[index]))
			return WEIR_ATTEMPT_AGAIN;
	} else if (weir_get_connection_flow(s, s->rule[index], 0) == WEIR_FLOW_NONE) {
		return WEIR_ATTEMPT_AGAIN;
	}
	return WEIR_ATTEMPT_GOES_ON;
}

/* The second: count it in there, and change it. */
__noinline int weir_change_connection(struct weir_scratch *s, __u32 index, struct weir_connection_set *set)
{
	__u32 step, class, slot, *opened_us;
	struct weir_connection_reservation *reservation;
	bool counts;
	__u64 *at;

	WEIR_GLOBAL(CONNECTIONS, s && set && index < WEIR_PACKET_RULES_MAX, WEIR_ATTEMPT_DONE);
	reservation = &s->connection[index];
	at = WEIR_ELEMENT(set->word, s->change.way);
	opened_us = WEIR_ELEMENT(set->flows.opened_us, s->change.way);
	if (!at || !opened_us)
		return WEIR_ATTEMPT_DONE;
	slot = weir_rule(s->rule[index])->flows_slot;
	class = weir_state_class(s->change.next);
	step = reservation->is_reserved ? reservation->step
					: weir_step_to_move_to(s, s->change.word, reservation->tag, class);
	counts = !reservation->is_reserved && weir_is_counted(s->change.next);
	if (counts && !weir_count_in(s, slot, class, step))
		return WEIR_ATTEMPT_AGAIN;
	s->change.changed =
		weir_connection_word(reservation->tag, s->change.next, step, s->counted_flow, s->counted_tag);
	if (s->change.state == WEIR_CONNECTION_HALF_OPEN)
		s->handshake_us = (__u32)(weir_monotonic_ns(s) / 1000) - READ_ONCE(*opened_us);
	if (__sync_val_compare_and_swap(at, s->change.word, s->change.changed) != s->change.word) {
		if (counts)
			weir_take_back(s, slot, class, step);
		return WEIR_ATTEMPT_AGAIN;
	}
	if (s->change.next == WEIR_CONNECTION_HALF_OPEN && s->change.state != WEIR_CONNECTION_HALF_OPEN)
		WRITE_ONCE(*opened_us, weir_monotonic_ns(s) / 1000);
	s->counted_open = reservation->is_reserved ? reservation->open : 0;
	reservation->is_reserved = 0;
	return WEIR_ATTEMPT_GOES_ON;
}

/* The third: the connection has changed, so update the figures, and the flow for which it counted before. */
__noinline int weir_reap_connection(struct weir_scratch *s, __u32 index, struct weir_connection_set *set)
{
	const struct weir_rule *rule;
	__u32 state, next, *tag;
	__u64 *at, word, changed;

	WEIR_GLOBAL(CONNECTIONS, s && set && index < WEIR_PACKET_RULES_MAX, 0);
	at = WEIR_ELEMENT(set->word, s->change.way);
	tag = WEIR_ELEMENT(set->flows.tag, s->change.way);
	if (!at || !tag)
		return 0;
	rule = weir_rule(s->rule[index]);
	word = s->change.word;
	changed = s->change.changed;
	state = s->change.state;
	next = s->change.next;
	/* A former owner's word, which another CPU wrote while the entry changed hands. */
	if (!state && weir_state_now(s, word))
		weir_count_evicted(s, word, rule->slot);
	/* For the figures, a connection that did not count in this flow is new. */
	if (weir_is_counted(state) && !(weir_count_word_out(s, word) && weir_counts_in_flow(s, word)))
		state = WEIR_CONNECTION_NONE;
	if (next == WEIR_CONNECTION_LEARNED && state != next)
		weir_count_learned(s, s->rule[index]);
	weir_count_changes(s, rule->flows_slot, state, next, s->connection[index].event);
	if (config.has_tracker && s->rule[index] == config.tracker && state == WEIR_CONNECTION_HALF_OPEN &&
	    next == WEIR_CONNECTION_OPEN)
		weir_note_handshake(s);
	/* A CPU that takes the entry over empties it once more after the tag has changed. So one of the two CPUs evicts
	 * it.
	 */
	if (READ_ONCE(*tag) != s->connection[index].tag && __sync_val_compare_and_swap(at, changed, 0) == changed)
		weir_count_evicted(s, changed, rule->slot);
	return 0;
}

static __always_inline enum weir_attempt weir_try_commit(struct weir_scratch *s, __u32 index,
							 struct weir_connection_set *set, __u32 way)
{
	enum weir_attempt attempt = weir_look_at_connection(s, index, set, way);

	if (attempt == WEIR_ATTEMPT_GOES_ON)
		attempt = weir_change_connection(s, index, set);
	if (attempt == WEIR_ATTEMPT_GOES_ON)
		weir_reap_connection(s, index, set);
	return attempt;
}

/* The packet passes: do to the connection what rule `index` of the packet has reserved. */
__noinline int weir_commit_connection(struct weir_scratch *s, __u32 index)
{
	struct weir_connection_reservation *reservation;
	struct weir_connection_set *set;
	__u32 way;

	WEIR_GLOBAL(CONNECTIONS, s && index < WEIR_PACKET_RULES_MAX, 0);
	if (!weir_may_change(s))
		return weir_abort_connection(s, index);
	OPAQUE(index); /* clang 19 puts it on the stack before its bound is tested */
	index &= WEIR_PACKET_RULES_MAX - 1;
	reservation = &s->connection[index];
	set = weir_connection_set(reservation);
	if (reservation->is_first && set) {
		way = weir_insert_connection(s, set, reservation->tag, weir_rule(s->rule[index])->slot);
		if (weir_write_first(s, weir_rule(s->rule[index]), reservation, set, way))
			return 0;
		weir_begin_otherwise(s, reservation, weir_rule(s->rule[index])->flows_slot);
	}
	/* Do this before inserting anything, which may replace the connection's ghost. */
	reservation->was_counted =
		reservation->event == WEIR_EVENT_TALKS && set && weir_was_counted(s, set, reservation->tag);
	for (int attempt = 0; set && attempt < WEIR_COMMIT_ATTEMPTS; attempt++) {
		way = weir_way_of(&set->flows, reservation->tag);
		if (way == WEIR_FLOW_WAYS)
			way = weir_insert_connection(s, set, reservation->tag, weir_rule(s->rule[index])->slot);
		if (weir_try_commit(s, index, set, way) != WEIR_ATTEMPT_AGAIN)
			break;
		weir_reread_tick(s);
	}
	if (reservation->is_reserved) /* and not used */
		weir_abort_connection(s, index);
	return 0;
}

#endif
