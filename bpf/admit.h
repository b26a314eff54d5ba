/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decision. All rules of a packet must admit it. They are asked in the order of the files, and a drop is reported
 * under the first enforced rule that blocks. For each rule: find the flow, ask the shortcuts and, if they are unsure,
 * ask the rule's kind. At the end, commit or abort the rules' reservations.
 */
#ifndef WEIR_ADMIT_H
#define WEIR_ADMIT_H

#include "observe/drops.h"
#include "kinds.h"
#include "observe/top_drops.h"
#include "kinds/penalties.h"
#include "packet/rule_list.h"
#include "window/shortcuts.h"

/* The only place where a rule blocks a packet, or would. The packet is counted for the rule and for the flow, and noted
 * if there is a reader. A rule that observes lets the packet pass without a reservation, so that its own window does
 * not count it.
 */
static __always_inline enum weir_answer weir_block(struct weir_scratch *s, const struct weir_rule *rule, bool observes,
						   bool has_listener)
{
	if (observes) /* else weir_count() does so */
		weir_count_block(s, rule->slot, true);
	weir_note_block(s, rule);
	if (unlikely(has_listener))
		weir_note_drop(s, rule->place, (observes ? WEIR_EVENT_OBSERVED : 0) | weir_penalised_flag(s, rule));
	if (observes)
		return WEIR_ANSWER_ADMIT;
	s->blocking_rule = rule->place;
	return WEIR_ANSWER_BLOCK;
}

/* What is asked before a rule's window, and before a flow that is over its limit is blocked? The verifier removes what
 * follows in a load without such rules.
 */
static __always_inline bool weir_has_bar(const struct weir_rule *rule)
{
	return config.bars && rule->bar;
}

/* Does it block the packet: a running penalty, or the level of the packet's child? */
static __always_inline bool weir_ask_bar(struct weir_scratch *s, const struct weir_rule *rule)
{
	return rule->bar == WEIR_BAR_LEVEL ? weir_is_above_level(s, rule->place) : weir_is_penalised(s, rule->place);
}

/* How many rules with wide rows one call asks. Each costs the verifier of Linux 6.1 15,000 instructions of its million.
 */
#define WEIR_RULES_A_CALL 4

/* Ask the shortcuts of the packet's rules, from number `nth` on: of one rule, or of several while they have wide rows
 * and admit. s->nth is the last rule asked. Out of line, and one call for several rules, because a call takes as long
 * as a shortcut.
 */
__noinline int weir_try_rules(struct weir_scratch *s, __u32 nth)
{
	enum weir_answer answer = WEIR_ANSWER_ERROR;

	WEIR_GLOBAL(OUT_OF_LINE, s, WEIR_ANSWER_ERROR);
	for (int i = 0; i < WEIR_RULES_A_CALL; i++, nth++) {
		struct weir_reservation *reservation = weir_reservation_at(s, nth);
		const struct weir_rule *rule;

		OPAQUE(i); /* else clang counts by nth alone, and the verifier cannot prove that the loop ends */
		if (!reservation || nth >= s->rule_count)
			break;
		rule = weir_rule(s->rule[nth & (WEIR_PACKET_RULES_MAX - 1)]);
		if (rule->storage == WEIR_STORAGE_NARROW && i > 0)
			break;
		s->nth = nth;
		reservation->kind = WEIR_RESERVATION_NONE;
		if (weir_has_bar(rule) && weir_ask_bar(s, rule))
			return WEIR_ANSWER_BARRED;
		if (rule->storage == WEIR_STORAGE_NARROW)
			return weir_shortcut(s, rule, reservation, false, WEIR_NARROW);
		weir_enter_other(s, rule);
		if (rule->storage == WEIR_STORAGE_MEDIUM)
			answer = weir_shortcut(s, rule, reservation, false, WEIR_MEDIUM);
		else
			answer = weir_keeps_rows(rule) ? weir_shortcut(s, rule, reservation, false, WEIR_WIDE)
						       : WEIR_ANSWER_UNSURE;
		if (answer != WEIR_ANSWER_ADMIT)
			break;
	}
	return answer;
}

/* A shortcut has blocked the packet by the rule asked last. While there is a reader, that is not enough, because a
 * shortcut does not know the flow's figures. So find the flow and its row, and ask the kind, which gives the same
 * answer. In a flood, this is done only for packets that will be reported.
 */
__noinline int weir_doubt_shortcut(struct weir_scratch *s)
{
	const struct weir_rule *rule;

	WEIR_GLOBAL(EVENTS, s && s->retries <= WEIR_RETRIES && weir_may_note_drop(s), WEIR_ANSWER_BLOCK);
	rule = weir_asked_rule(s);
	if (!WEIR_PART_OUT_OF_LINE || rule->storage == WEIR_STORAGE_NARROW) {
		weir_enter_narrow(s, rule, s->nth);
		weir_find_narrow(s, s->nth);
		return WEIR_ANSWER_AGAIN;
	}
	weir_enter_other(s, rule);
	if (rule->storage == WEIR_STORAGE_MEDIUM)
		weir_find_other(s, rule, WEIR_MEDIUM);
	else if (weir_keeps_rows(rule))
		weir_find_other(s, rule, WEIR_WIDE);
	return WEIR_ANSWER_AGAIN;
}

/* Turn the result of the shortcuts, or of the first evaluation, for the rule asked last into an answer. */
static __always_inline enum weir_answer weir_finish_rule(struct weir_scratch *s, const struct weir_rule *rule,
							 enum weir_answer answer)
{
	bool has_listener = false;

	if (answer == WEIR_ANSWER_BLOCK && unlikely(s->has_listener))
		answer = weir_doubt_shortcut(s);
	if (answer == WEIR_ANSWER_UNSURE && rule->storage == WEIR_STORAGE_MEDIUM && weir_takes(WEIR_SHORTCUT_FIRST))
		answer = weir_try_first(s, rule->place, s->nth);
	if (answer == WEIR_ANSWER_UNSURE || answer == WEIR_ANSWER_AGAIN) {
		answer = weir_ask_kind(s, rule);
		has_listener = answer == WEIR_ANSWER_BLOCK && s->has_listener;
	}
	if (weir_has_bar(rule)) {
		if (answer == WEIR_ANSWER_BLOCK) {
			s->was_barred = false;
			weir_begin_bar(s, rule->place);
		} else if (answer == WEIR_ANSWER_BARRED) {
			s->was_barred = true;
			has_listener = s->has_listener;
			answer = WEIR_ANSWER_BLOCK;
		}
	}
	if (answer == WEIR_ANSWER_BLOCK)
		answer = weir_block(s, rule, rule->observes, has_listener);
	return answer;
}

/* Ask the shortcuts of the packet's first rule, which is_fixed. */
static __always_inline enum weir_answer weir_try_fixed(struct weir_scratch *s, const struct weir_rule *rule)
{
	enum weir_answer answer = WEIR_ANSWER_BLOCK;

	if (weir_is_over_source(s, rule)) {
		s->flow.tag = s->over_source.tag;
	} else {
		answer = weir_try_rules(s, 0);
		if (answer == WEIR_ANSWER_BLOCK && !s->nth)
			weir_remember_fixed(s, rule);
	}
	s->expects_admission = answer != WEIR_ANSWER_BLOCK;
	return answer;
}

/* Ask the shortcuts of the packet's first rule. With narrow rows this is in line, because most packets end there. */
static __always_inline enum weir_answer weir_try_first_rule(struct weir_scratch *s, const struct weir_rule *rule)
{
	enum weir_answer answer;

	s->reservation[0].kind = WEIR_RESERVATION_NONE;
	if (config.has_fixed && unlikely(rule->is_fixed))
		return weir_try_fixed(s, rule);
	if (WEIR_PART_OUT_OF_LINE && weir_has_bar(rule)) {
		answer = WEIR_ANSWER_BARRED;
		if (!weir_is_over_source(s, rule)) { /* else found penalised just now; of children none is remembered */
			s->expects_admission = true;
			answer = weir_try_rules(s, 0);
		}
		s->expects_admission = answer != WEIR_ANSWER_BARRED || rule->observes;
		return answer;
	}
	if (WEIR_PART_OUT_OF_LINE && unlikely(rule->storage != WEIR_STORAGE_NARROW)) {
		s->expects_admission = true;
		if (WEIR_IS_KIND(rule, CONNECTIONS)) /* which has no shortcuts */
			return WEIR_ANSWER_UNSURE;
		return weir_is_spent_source(s, rule) ? WEIR_ANSWER_BLOCK : weir_try_rules(s, 0);
	}
	answer = weir_shortcut(s, rule, &s->reservation[0], true, WEIR_NARROW);
	s->expects_admission = answer != WEIR_ANSWER_BLOCK;
	return answer;
}

/* The same of its first rules: the plain ones at once. */
static __always_inline enum weir_answer weir_try_first_rules(struct weir_scratch *s, const struct weir_rule *rule)
{
	enum weir_answer answer;

	if (!WEIR_PART_SEVERAL_RULES || s->rule_count == 1)
		return weir_try_first_rule(s, rule);
	answer = weir_ask_plain_rules(s);
	if (answer != WEIR_ANSWER_UNSURE)
		return answer;
	return s->nth ? weir_try_rules(s, s->nth) : weir_try_first_rule(s, rule);
}

/* Ask the packet's rules, until one blocks it. */
static __always_inline enum weir_answer weir_ask_rules(weir_context *ctx, struct weir_scratch *s, const bool is_bare)
{
	const struct weir_rule *rule = weir_rule(s->rule[0]);
	enum weir_answer answer = weir_try_first_rules(s, rule);

	/* Nearly every packet ends here: by the answer of a shortcut. */
	if (answer == WEIR_ANSWER_ADMIT && (!WEIR_PART_SEVERAL_RULES || s->nth + 1 >= s->rule_count))
		return answer;
	if (WEIR_PART_SEVERAL_RULES && s->nth)
		rule = weir_asked_rule(s);
	if (answer == WEIR_ANSWER_BLOCK && !s->has_listener && !rule->bar && !rule->observes)
		return weir_block(s, rule, false, false);
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX + WEIR_RETRIES + 1; i++) {
		answer = weir_finish_rule(s, rule, answer);
		if (WEIR_PART_RETURNED_COOKIES && answer == WEIR_ANSWER_COOKIE)
			answer = weir_look_for_cookie(ctx, s, is_bare);
		else if (unlikely(answer == WEIR_ANSWER_AGAIN))
			answer = weir_retry(s);
		else if (answer != WEIR_ANSWER_ADMIT || s->nth + 1 >= s->rule_count)
			break;
		else
			answer = weir_try_rules(s, s->nth + 1);
		rule = weir_asked_rule(s);
		/* The largest number of rules in this load, so that the verifier follows no more. Tested last, so that
		 * packets with one rule do not come here. Without the constant bound beside it, Linux 6.1 refuses the
		 * loop ("back-edge", clang 14 and 19).
		 */
		if (i >= config.packet_rules + WEIR_RETRIES + !!WEIR_PART_RETURNED_COOKIES)
			break;
	}
	return answer;
}

/* A packet with several rules. True: it is blocked as the one before, whose rule asked last s->nth still names. */
static __always_inline bool weir_enter_rules(struct weir_scratch *s)
{
	const bool is_same = weir_is_same_flow(s);

	if (is_same && s->flow_memory.is_blocked && WEIR_SEGMENTS(s) == 1 && !s->has_listener)
		return true;
	s->ghosts_of_rules = ~0u;
	if (!is_same) {
		weir_remember_flow(s);
		if (weir_takes(WEIR_SHORTCUT_FETCH) && s->expects_admission)
			weir_fetch_rules(s);
	}
	s->flow_memory.is_blocked = 0;
	s->must_abort = 0;
	return false;
}

static __always_inline enum weir_verdict weir_admit(weir_context *ctx, struct weir_scratch *s, const bool is_bare)
{
	enum weir_answer answer;

	if (WEIR_PART_SEVERAL_RULES && s->rule_count > 1 && weir_enter_rules(s)) {
		weir_block(s, weir_asked_rule(s), false, false);
		return WEIR_VERDICT_BLOCK;
	}
	s->wait_ns = 0;
	s->must_commit = 0;
	s->nth = 0;
	s->retries = 0;
	if (config.warms_flows)
		s->warming_place = WEIR_NO_RULE;
	if (unlikely(!s->rule_count)) {
		if (config.has_shadows)
			weir_count_shadows(s);
		return WEIR_VERDICT_PASS;
	}
	answer = weir_ask_rules(ctx, s, is_bare);
	/* If the rule asked last does not admit, it has no reservation. */
	if (answer == WEIR_ANSWER_ADMIT ? s->must_commit : s->nth && (s->must_abort || WEIR_PART_OTHER_KINDS))
		weir_end_reservations(ctx, s, answer == WEIR_ANSWER_ADMIT ? s->rule_count : s->nth,
				      answer == WEIR_ANSWER_ADMIT, is_bare);
	if (answer == WEIR_ANSWER_ADMIT) {
		if (config.has_shadows)
			weir_count_shadows(s);
		return WEIR_VERDICT_PASS;
	}
	return answer == WEIR_ANSWER_BLOCK ? WEIR_VERDICT_BLOCK : WEIR_VERDICT_ERROR;
}

#endif
