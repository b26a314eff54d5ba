/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kinds of a limit (include/weir_kinds.def): which function evaluates each kind, and which ends its reservations.
 * Each kind has a file of its own.
 */
#ifndef WEIR_KINDS_H
#define WEIR_KINDS_H

#include "kinds/occupy.h"
#include "kinds/connections.h"
#include "kinds/shadow.h"
#include "kinds/fair.h"
#include "window/rate.h"
#include "kinds/requests.h"
#include "kinds/system.h"
#include "kinds/throttle.h"
#include "kinds/tokens.h"

/* The rule that was asked last. */
static __always_inline const struct weir_rule *weir_asked_rule(const struct weir_scratch *s)
{
	return weir_rule(s->rule[s->nth & (WEIR_PACKET_RULES_MAX - 1)]);
}

static __always_inline enum weir_answer weir_evaluate_nothing(struct weir_scratch *s, __u32 place, __u32 nth)
{
	return WEIR_ANSWER_ERROR;
}

static __always_inline void weir_reserve_nothing(struct weir_scratch *s, __u32 nth)
{
}

/* Ask the rule's kind about the packet. Most rules have narrow rows. */
static __always_inline enum weir_answer weir_ask_kind(struct weir_scratch *s, const struct weir_rule *rule)
{
	enum weir_answer answer = WEIR_ANSWER_ERROR;
	__u32 place = rule->place, nth = s->nth;

	if (likely(rule->storage == WEIR_STORAGE_NARROW))
		answer = weir_evaluate_narrow(s, place, nth);
#define KIND(identifier, name, lone, flows, find, evaluate, ...)                                                       \
	else if (WEIR_IS_KIND(rule, identifier))                                                                       \
	{                                                                                                              \
		answer = find(s, place, nth);                                                                          \
		if (answer == WEIR_ANSWER_FOUND)                                                                       \
			answer = evaluate(s, place, nth);                                                              \
	}
#define HIDDEN_KIND(...)
#include "weir_kinds.def"
	return answer;
}

/* Commit or abort the packet's reservation number `nth`, which is in a table of its rule's kind. */
static __always_inline void weir_end_kind_reservation(struct weir_scratch *s, __u32 nth, bool passes)
{
	const struct weir_rule *rule = weir_rule(s->rule[nth & (WEIR_PACKET_RULES_MAX - 1)]);

	if (0)
		;
#define KIND(identifier, name, lone, flows, find, evaluate, commit, abort, ...)                                        \
	else if (WEIR_IS_KIND(rule, identifier))                                                                       \
	{                                                                                                              \
		if (passes)                                                                                            \
			commit(s, nth);                                                                                \
		else                                                                                                   \
			abort(s, nth);                                                                                 \
	}
#define HIDDEN_KIND(...)
#include "weir_kinds.def"
}

/* Commit or abort the reservations of the packet's first `count` rules. */
static __always_inline void weir_end_reservations(weir_context *ctx, struct weir_scratch *s, __u32 count, bool passes,
						  const bool is_bare)
{
	weir_end_row_reservations(s, count, passes);
	if (!WEIR_PART_OTHER_KINDS)
		return;
	if (passes && s->packet.tcp_flags & (WEIR_TCP_FIN | WEIR_TCP_RST))
		weir_verify_closing(ctx, s, is_bare);
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < count; i++)
		if (s->reservation[i].kind == WEIR_RESERVATION_OF_KIND)
			weir_end_kind_reservation(s, i, passes);
}

#define WEIR_RETRIES 2 /* of one packet; each only after a stall of buckets */

/* The bucket ended while the kind decided: re-read the clock and retry (AGAIN). A packet that has retried too often is
 * dropped.
 */
static __always_inline enum weir_answer weir_retry(struct weir_scratch *s)
{
	if (s->retries++ < WEIR_RETRIES) {
		weir_reread_tick(s);
		return WEIR_ANSWER_AGAIN;
	}
	return weir_refuse_stalled(s, weir_asked_rule(s)->slot);
}

#endif
