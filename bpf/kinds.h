/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kinds of a limit: which function decides for which. A kind has a file of its own; what it sets aside for a packet
 * is a claim, and weir_end_claims() (admit.h) ends it.
 */
#ifndef WEIR_KINDS_H
#define WEIR_KINDS_H

#include "borrow.h"
#include "connections.h"
#include "meter.h"
#include "rate.h"
#include "requests.h"
#include "system.h"
#include "throttle.h"
#include "tokens.h"

/* The rule decides by rows of its own flow, so that shortcuts apply. */
static __always_inline bool weir_keeps_rows(const struct weir_rule *rule)
{
	return rule->kind == WEIR_KIND_WINDOW;
}

/* Is the rule of this kind (a constant)? The verifier removes what follows in a load without such rules. */
static __always_inline bool weir_is_kind(const struct weir_rule *rule, const enum weir_kind_id kind)
{
	return config.kinds >> kind & 1 && rule->kind == kind;
}

static __always_inline enum weir_answer weir_ask_kind(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u32 place = rule->place, nth = s->nth;
	enum weir_answer answer;

	if (likely(rule->storage == WEIR_STORAGE_NARROW))
		return weir_judge_narrow(s, place, nth);
	if (rule->storage == WEIR_STORAGE_MEDIUM)
		return weir_judge_medium(s, place, nth);
	if (weir_is_kind(rule, WEIR_KIND_THROTTLE))
		return weir_judge_throttle(s, place, nth);
	if (weir_is_kind(rule, WEIR_KIND_TOKENS))
		return weir_judge_tokens(s, place, nth);
	if (weir_is_kind(rule, WEIR_KIND_ASSOCIATED))
		return weir_judge_associated(s, place, nth);
	if (weir_is_kind(rule, WEIR_KIND_BORROWING))
		return weir_judge_borrowing(s, place, nth);
	if (weir_is_kind(rule, WEIR_KIND_CONNECTIONS)) {
		/* Two calls, one after the other: the stack has no room for one within the other. */
		answer = weir_judge_connection(s, place, nth);
		return answer == WEIR_ANSWER_OPENS ? weir_judge_opening(s, place, nth) : answer;
	}
	if (weir_is_kind(rule, WEIR_KIND_SYSTEM))
		return weir_judge_system(s, place, nth);
	if (weir_is_kind(rule, WEIR_KIND_BREAKER)) {
		answer = weir_judge_breaker(s, place, nth);
		return answer == WEIR_ANSWER_OPENS ? weir_judge_request(s, place, nth) : answer;
	}
	return weir_judge_wide(s, place, nth);
}

#define WEIR_RETRIES 2 /* of one packet; each only after a stall of buckets */

/* The clock ran away from the kind's answer. AGAIN: it has been read anew, and the kind is to be asked once more. A
 * packet that no clock waits for is dropped.
 */
static __always_inline enum weir_answer weir_retry(struct weir_scratch *s)
{
	if (s->retries++ < WEIR_RETRIES) {
		weir_read_tick(s);
		return WEIR_ANSWER_AGAIN;
	}
	return weir_refuse_stalled(s, weir_rule(s->rule[s->nth & (WEIR_PACKET_RULES_MAX - 1)])->slot);
}

#endif
