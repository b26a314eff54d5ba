/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests: openings that a circuit breaker has admitted, until their outcome is known (docs/breakers.md). A packet is
 * evaluated first. Its effect on its request is committed when every rule has admitted the packet. Openings are dropped
 * while the breaker is open, and all other packets pass.
 */
#ifndef WEIR_REQUESTS_H
#define WEIR_REQUESTS_H

#include "kinds/breakers.h"
#include "kinds/connection_table.h"
#include "observe/drops.h"

/* Attempts to become the probe. One fails if another CPU is faster and another rule then drops that CPU's packet. */
#define WEIR_PROBE_ATTEMPTS 3

static __always_inline struct weir_request_set *weir_request_set(const struct weir_request_reservation *reservation)
{
	__u32 index = reservation->set;

	return bpf_map_lookup_elem(&requests, &index);
}

/* ---- evaluating ---- */

/* The word of this packet's request, if that is being opened; else 0. */
static __always_inline __u64 weir_find_word(struct weir_scratch *s, struct weir_request_reservation *reservation)
{
	struct weir_request_set *set = weir_request_set(reservation);
	struct weir_breaker_request *request;

	if (!set)
		return 0;
	request = WEIR_ELEMENT(set->request, weir_way_of(&set->flows, reservation->tag));
	if (!request || weir_monotonic_ns(s) >= READ_ONCE(request->silent_ns))
		return 0;
	return READ_ONCE(request->word);
}

/* The server's only packets that say anything about a request. */
static __always_inline bool weir_is_server_answer(const struct weir_packet *pkt)
{
	const __u32 flags = pkt->tcp_flags;

	return flags & WEIR_TCP_RST || (flags & WEIR_TCP_SYN && flags & WEIR_TCP_ACK);
}

/* The packet goes the other way than the opening of its request, and is no answer to it. */
static __always_inline bool weir_is_beside_request(const struct weir_packet *pkt, __u64 word)
{
	return config.limits_both && word && !!(word & WEIR_REQUEST_WENT_OUT) != WEIR_IS_OUT(pkt) &&
	       !weir_is_server_answer(pkt);
}

/* Evaluate the packet by a breaker, and record its effect on its request. FOUND: weir_evaluate_request() gives the
 * answer.
 */
__noinline int weir_evaluate_breaker(struct weir_scratch *s, __u32 place, __u32 index)
{
	struct weir_request_reservation *reservation;
	struct weir_flow_id id;

	WEIR_GLOBAL(BREAKERS, s && index < WEIR_PACKET_RULES_MAX, WEIR_ANSWER_ERROR);
	s->reservation[index].kind = WEIR_RESERVATION_GIVEN;
	if (weir_protocol(&s->packet) != IPPROTO_TCP || s->packet.fragment == WEIR_FRAGMENT_LATER)
		return WEIR_ANSWER_ADMIT;
	id = weir_connection_id(weir_rule(place), &s->packet, config.sizes[WEIR_TABLE_REQUESTS]);
	reservation = &s->request[index];
	reservation->set = id.set;
	reservation->tag = id.tag;
	reservation->event = weir_connection_event(&s->packet);
	reservation->probe = 0;
	reservation->era = 0;
	reservation->word = weir_find_word(s, reservation);
	if (weir_is_beside_request(&s->packet, reservation->word))
		return WEIR_ANSWER_ADMIT;
	if (reservation->event == WEIR_EVENT_OPENS && !reservation->word)
		return WEIR_ANSWER_FOUND;
	if (reservation->word) {
		s->reservation[index].kind = WEIR_RESERVATION_OF_KIND;
		s->must_commit = 1;
	}
	return WEIR_ANSWER_ADMIT;
}

/* The breaker is open, and its retry time is over: become its probe, if no other CPU is faster. */
static __always_inline bool weir_become_probe(struct weir_request_reservation *reservation,
					      struct weir_breaker *breaker, __u64 state)
{
	__u32 era = (__u32)__sync_fetch_and_add(&breaker->eras, 1) % WEIR_BREAKER_ERA_MASK + 1;
	__u64 probe = weir_next_breaker(state, WEIR_BREAKER_HALF_OPEN, era);

	if (__sync_val_compare_and_swap(&breaker->state, state, probe) != state)
		return false;
	reservation->before = state;
	reservation->probe = probe;
	reservation->era = era;
	return true;
}

static __always_inline enum weir_answer weir_ask_breaker(struct weir_scratch *s,
							 struct weir_request_reservation *reservation,
							 struct weir_breaker *breaker, __u32 place)
{
	for (int attempt = 0; attempt < WEIR_PROBE_ATTEMPTS; attempt++) {
		__u64 state = weir_breaker_state(s, breaker);

		/* The word is that of the entry's former owner. This flow's breaker is just being made, and is closed.
		 */
		if ((state ^ WEIR_BREAKER_CHECK(s->breaker_tag)) & WEIR_BREAKER_CHECK_MASK)
			return WEIR_ANSWER_ADMIT;
		switch (weir_state_kind(state)) {
		case WEIR_BREAKER_CLOSED:
			return WEIR_ANSWER_ADMIT;
		case WEIR_BREAKER_OPEN:
			if (!weir_is_retry_due(state, weir_monotonic_ns(s)))
				return WEIR_ANSWER_BLOCK;
			if (weir_become_probe(reservation, breaker, state))
				return WEIR_ANSWER_ADMIT;
			break;
		default:
			reservation->era = weir_state_era(state);
			return weir_rule(place)->breaker.probes ? WEIR_ANSWER_ADMIT : WEIR_ANSWER_BLOCK;
		}
	}
	return WEIR_ANSWER_BLOCK; /* other CPUs were faster each time, and one of their packets is the probe */
}

/* Evaluate an opening that is not a repetition. */
__noinline int weir_evaluate_request(struct weir_scratch *s, __u32 place, __u32 index)
{
	enum weir_answer answer = WEIR_ANSWER_ADMIT;
	struct weir_breaker *breaker;
	__u32 number;

	WEIR_GLOBAL(BREAKERS, s && index < WEIR_PACKET_RULES_MAX, WEIR_ANSWER_ERROR);
	number = weir_get_breaker(s, place, false);
	breaker = number == WEIR_NO_BREAKER ? NULL : weir_breaker_by_number(number);
	if (breaker) {
		weir_reap(s, breaker, number, place);
		answer = weir_ask_breaker(s, &s->request[index], breaker, place);
		if (weir_state_kind(weir_breaker_state(s, breaker)) != WEIR_BREAKER_CLOSED)
			weir_keep_breaker(s, number, breaker, weir_rule(place));
	}
	s->reservation[index].kind = WEIR_RESERVATION_NONE;
	if (answer != WEIR_ANSWER_ADMIT && breaker)
		return weir_refuse(s, READ_ONCE(breaker->last), weir_rule(place)->breaker.threshold_micro);
	s->reservation[index].kind = WEIR_RESERVATION_OF_KIND;
	s->must_commit = 1;
	return answer;
}

/* Another rule drops the packet. If it was to be the probe, the breaker stays open. */
__noinline int weir_abort_request(struct weir_scratch *s, __u32 index)
{
	struct weir_request_reservation *reservation;
	struct weir_breaker *breaker;
	__u32 number;

	WEIR_GLOBAL(BREAKERS, s && index < WEIR_PACKET_RULES_MAX, 0);
	reservation = &s->request[index];
	if (!reservation->probe)
		return 0;
	number = weir_get_breaker(s, s->rule[index], false);
	breaker = number == WEIR_NO_BREAKER ? NULL : weir_breaker_by_number(number);
	if (breaker)
		__sync_val_compare_and_swap(&breaker->state, reservation->probe, reservation->before);
	return 0;
}

/* ---- requests that begin ---- */

/* When a request becomes bad if no further packet comes (WEIR_DUE_FAILED, WEIR_DUE_SLOW). */
static __always_inline __u64 weir_request_due(const struct weir_rule *rule, __u64 first_ns, __u64 silent_ns)
{
	__u64 failed = WEIR_DUE_FAILED(silent_ns), slow = WEIR_DUE_SLOW(first_ns + rule->breaker.max_rt_ns);

	return rule->breaker.strategy == WEIR_BREAKER_SLOW_RATIO && slow < failed ? slow : failed;
}

/*
 * Find or make an entry for a request. Returns its way, with WEIR_WAY_EVICTS if it was taken from another one, or one
 * beyond the last. The set records until when requests may wait. A request that is evicted stays in its group, and
 * fails when the group is due. Its word is cleared before any CPU can take it for the new request's.
 */
__noinline __u32 weir_insert_request(struct weir_scratch *s, struct weir_request_set *set, __u32 tag)
{
	WEIR_GLOBAL(BREAKERS, s && set, WEIR_FLOW_WAYS);
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u32 way = weir_find_place(s, &set->flows, tag);
		struct weir_breaker_request *request = WEIR_ELEMENT(set->request, WEIR_WAY(way));
		__u64 old;

		if (!request || !(way & WEIR_WAY_IS_NEW))
			return WEIR_WAY(way);
		old = READ_ONCE(request->word);
		if (!weir_is_latest(s, &set->flows))
			continue;
		if (old && __sync_val_compare_and_swap(&request->word, old, 0) != old)
			continue;
		if (weir_take_place(s, &set->flows, tag, way))
			return way;
	}
	return WEIR_FLOW_WAYS;
}

/* The request is in the group at s->group_position. Record that, and when the request began. */
__noinline int weir_note_request(struct weir_scratch *s, __u32 place, __u32 index, __u32 number)
{
	struct weir_request_reservation *reservation;
	struct weir_request_set *set;
	struct weir_breaker_request *request;
	__u64 silent_ns, old;
	__u32 way;

	WEIR_GLOBAL(BREAKERS, s && index < WEIR_PACKET_RULES_MAX, 0);
	silent_ns = weir_monotonic_ns(s) + config.request_timeout_ns;
	reservation = &s->request[index];
	set = weir_request_set(reservation);
	if (!set)
		return 0;
	way = weir_insert_request(s, set, reservation->tag);
	if (way & WEIR_WAY_EVICTS)
		weir_count_eviction(weir_rule(place)->slot);
	way = WEIR_WAY(way);
	FORGET(s->forgotten, way);
	request = WEIR_ELEMENT(set->request, way);
	if (!request)
		return 0;
	old = READ_ONCE(request->word);
	WRITE_ONCE(request->first_ns, weir_monotonic_ns(s));
	WRITE_ONCE(request->silent_ns, silent_ns);
	__sync_val_compare_and_swap(&request->word, old,
				    WEIR_REQUEST_WORD(number, s->group_position) |
					    (WEIR_IS_OUT(&s->packet) ? WEIR_REQUEST_WENT_OUT : 0));
	weir_keep_until(s, &set->flows, way, silent_ns);
	return 0;
}

/* An opening passes, so a request begins. If no entry is available, it is counted only by its time-out. */
__noinline int weir_begin_request(struct weir_scratch *s, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_request_reservation *reservation;
	struct weir_breaker *breaker;
	__u64 now_ns, due;
	__u32 number;

	WEIR_GLOBAL(BREAKERS, s && index < WEIR_PACKET_RULES_MAX, 0);
	reservation = &s->request[index];
	number = weir_get_breaker(s, place, true);
	breaker = number == WEIR_NO_BREAKER ? NULL : weir_breaker_by_number(number);
	if (!breaker) {
		weir_count_stall(rule->slot);
		return 0;
	}
	if (reservation->probe) {
		__sync_fetch_and_add(&breaker->changes, 1);
		weir_emit_breaker_event(s, breaker, WEIR_BREAKER_HALF_OPEN);
	}
	now_ns = weir_monotonic_ns(s);
	due = weir_request_due(rule, now_ns, now_ns + config.request_timeout_ns);
	weir_keep_breaker(s, number, breaker, rule);
	if (weir_join_group(s, breaker, number, reservation->era, due))
		weir_note_request(s, place, index, number);
	else
		weir_count_stall(rule->slot);
	return 0;
}

/* ---- requests that continue, or end ---- */

/* The opening was repeated, so its idle time starts over. */
static __always_inline void weir_repeat_request(struct weir_scratch *s, struct weir_breaker *breaker, __u32 place,
						struct weir_breaker_request *request, __u64 old)
{
	__u64 until_ns = weir_monotonic_ns(s) + config.request_timeout_ns, first = READ_ONCE(request->first_ns);
	__u64 due = weir_request_due(weir_rule(place), first, until_ns);
	__u32 number = old >> WEIR_REQUEST_NUMBER_SHIFT, left;

	if (due != weir_request_due(weir_rule(place), first, READ_ONCE(request->silent_ns))) {
		left = weir_leave_group(breaker, number, old - 1);
		if (left && weir_join_group(s, breaker, number, left & WEIR_BREAKER_ERA_MASK, due))
			__sync_val_compare_and_swap(&request->word, old,
						    WEIR_REQUEST_WORD(number, s->group_position) |
							    (config.limits_out ? old & WEIR_REQUEST_WENT_OUT : 0));
	}
	WRITE_ONCE(request->silent_ns, until_ns);
}

/* The request has its outcome, if no other CPU was faster. */
static __always_inline void weir_end_request(struct weir_scratch *s, struct weir_breaker *breaker, __u32 place,
					     struct weir_breaker_request *request, __u64 old)
{
	__u32 number = old >> WEIR_REQUEST_NUMBER_SHIFT, left;
	__u64 now_ns = weir_monotonic_ns(s), due;

	due = weir_request_due(weir_rule(place), READ_ONCE(request->first_ns), READ_ONCE(request->silent_ns));
	if (__sync_val_compare_and_swap(&request->word, old, 0) != old)
		return;
	left = weir_leave_group(breaker, number, old - 1);
	if (!left)
		return;
	s->outcome.moment_ns = now_ns;
	s->outcome.count = 1;
	s->outcome.era = left & WEIR_BREAKER_ERA_MASK;
	/* It may share a group that is due later. */
	s->outcome.is_bad = s->outcome_fails || due <= 2 * now_ns;
	weir_count_outcome(s, breaker, place);
	weir_reap_few(s, breaker, number, place); /* its group may be empty now */
}

/* The request has succeeded by this packet: its client's, or at the other hook its server's SYN,ACK. */
static __always_inline bool weir_is_answer(const struct weir_packet *pkt, __u32 event)
{
	return event == WEIR_EVENT_TALKS || (WEIR_IS_OUT(pkt) && event == WEIR_EVENT_ANSWERS);
}

/* A packet of a request that is being opened passes. */
__noinline int weir_change_request(struct weir_scratch *s, __u32 place, __u32 index)
{
	struct weir_request_reservation *reservation;
	struct weir_request_set *set;
	struct weir_breaker_request *request;
	struct weir_breaker *breaker;
	__u32 way, number;
	__u64 over_ns;

	WEIR_GLOBAL(BREAKERS, s && index < WEIR_PACKET_RULES_MAX, 0);
	if (!weir_may_change(s))
		return 0;
	reservation = &s->request[index];
	number = reservation->word >> WEIR_REQUEST_NUMBER_SHIFT;
	breaker = weir_breaker_by_number(number);
	set = weir_request_set(reservation);
	if (!set || !breaker)
		return 0;
	weir_reap(s, breaker, number, place);
	way = weir_way_of(&set->flows, reservation->tag);
	FORGET(s->forgotten, way);
	request = WEIR_ELEMENT(set->request, way);
	if (!request)
		return 0;
	if (reservation->event == WEIR_EVENT_OPENS) {
		weir_repeat_request(s, breaker, place, request, reservation->word);
		over_ns = READ_ONCE(request->silent_ns);
	} else {
		s->outcome_fails = !weir_is_answer(&s->packet, reservation->event);
		weir_end_request(s, breaker, place, request, reservation->word);
		over_ns = weir_monotonic_ns(s) - (2 << WEIR_KEEP_STEP_BITS);
	}
	weir_keep_until(s, &set->flows, way, over_ns);
	weir_keep_breaker(s, number, breaker, weir_rule(place));
	return 0;
}

/* The packet passes: commit what rule `index` of the packet has reserved. */
static __always_inline void weir_commit_request(struct weir_scratch *s, __u32 index)
{
	__u32 place = s->rule[index & (WEIR_PACKET_RULES_MAX - 1)];

	if (s->request[index & (WEIR_PACKET_RULES_MAX - 1)].word)
		weir_change_request(s, place, index);
	else
		weir_begin_request(s, place, index);
}

/* ---- answers ---- */

/*
 * A packet that comes in belongs to no resource of `out`. But the server's SYN,ACK or RST is the outcome of a request
 * that went out, so it is shown to these breakers when it has passed. None of them has anything to say about it.
 */
static __always_inline void weir_show_answer(weir_context *ctx, struct weir_scratch *s, __u32 verdict, __u32 is_bare)
{
	if ((verdict != WEIR_VERDICT_PASS && verdict != WEIR_VERDICT_UNMATCHED_PASS) ||
	    weir_protocol(&s->packet) != IPPROTO_TCP || !weir_is_server_answer(&s->packet))
		return;
	for (__u32 i = 0; i < WEIR_ANSWERED_MAX && i < config.answered_count; i++) {
		__u32 place = config.answered[i];

		weir_evaluate_breaker(s, place, 0);
		if (!s->request[0].word)
			continue;
		weir_verify_closing(ctx, s, is_bare);
		weir_change_request(s, place, 0);
	}
}

#endif
