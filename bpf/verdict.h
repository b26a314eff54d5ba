/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From "which resources" to the verdict: the rules of all matched resources, in the order of the files,
 * must all admit; the first enforced one that blocks names the drop. Every rule holds a claim before any
 * is spent, so that a blocked packet is counted nowhere.
 */
#ifndef WEIR_VERDICT_H
#define WEIR_VERDICT_H

#include "at_once.h"
#include "connections.h"
#include "fetch.h"
#include "match.h"
#include "meter.h"
#include "throttle.h"
#include "quick.h"
#include "window.h"

/*
 * Put a rule where it belongs in the ascending list, when it does not come last: it takes the first place
 * with a larger one, which takes the next, and so on. Free places hold larger ones than any rule. Without
 * branches: the verifier would follow every one.
 */
__noinline int weir_insert_rule(struct weir_work *w, __u32 rule)
{
	__s64 carried = rule;

	if (!w)
		return -1;
#pragma unroll
	for (int i = 0; i < WEIR_PACKET_RULES_MAX; i++) {
		__s64 here = w->rule[i];
		__s64 swap = (carried - here) * ((__u64)(carried - here) >> 63); /* 0, or their difference */

		w->rule[i] = here + swap;
		carried -= swap;
	}
	return 0;
}

/* Add one resource's rules to the list. Mostly they follow those of the resource before. */
__noinline int weir_list_rules(struct weir_work *w, __u32 place)
{
	const struct weir_resource *resource = weir_resource(place);

	if (!w)
		return -1;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < resource->rule_count; i++) {
		__u32 count = w->rule_count, rule = resource->rule[i];

		OPAQUE(count);
		if (count >= WEIR_PACKET_RULES_MAX)
			return -1;
		w->rule_count = count + 1;
		w->narrow_count += weir_rule(rule)->storage == WEIR_STORAGE_NARROW;
		if (rule > w->last_rule || count == 0) {
			w->rule[count] = rule;
			w->last_rule = rule;
		} else {
			weir_insert_rule(w, rule);
		}
	}
	return 0;
}

__noinline int weir_list_all_rules(struct weir_work *w)
{
	if (!w)
		return -1;
	__builtin_memset(w->rule, 0xff, sizeof(w->rule));
	for (__u32 i = 0; i < WEIR_PACKET_RESOURCES_MAX && i < w->resource_count; i++)
		if (weir_list_rules(w, w->resource[i]))
			return -1;
	return 0;
}

/* Fill in w->rule[]. The common case, one resource with one rule, in line. */
static __always_inline int weir_gather_rules(struct weir_work *w)
{
	const struct weir_resource *resource = weir_resource(w->resource[0]);

	w->rule_count = 0;
	w->narrow_count = 0;
	w->last_rule = 0;
	w->first_slot = resource->slot;
	if (w->resource_count > 1 || resource->rule_count > 1)
		return weir_list_all_rules(w);
	w->rule[0] = resource->rule[0];
	w->rule_count = resource->rule_count;
	return 0;
}

/* What a rule's answer means for the packet; counts a block. */
static __always_inline enum weir_answer weir_heed(struct weir_work *w, const struct weir_rule *rule, __u32 place,
						  enum weir_answer answer)
{
	if (answer != WEIR_ANSWER_BLOCK)
		return answer;
	weir_count_block(rule, w->packet.frame_bytes);
	if (rule->observes)
		return WEIR_ANSWER_ADMIT; /* with no claim: not counted in its own window */
	if (config.is_virtual)
		w->blocking_rule = place;
	return WEIR_ANSWER_BLOCK;
}

/* A rule that is not the packet's first: find the row of its flow, and see whether it admits quickly. */
__noinline int weir_admits_next_quickly(struct weir_work *w, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_flow_place flow;
	struct weir_claim *claim;
	void *row;

	OPAQUE(index);
	if (!w || index >= WEIR_PACKET_RULES_MAX)
		return false;
	claim = &w->claim[index];
	OPAQUE(claim); /* made where its bound was tested */
	flow = index < w->placed ? w->flow[index] : weir_flow_place(rule, &w->packet, false);
	w->located = WEIR_NO_ROW;
	row = weir_find_row(w, &flow, -1, &w->located, false);
	if (row && weir_spends_quickly(w, rule, row, flow.tag, claim))
		return true;
	weir_ask_about(w, rule, &flow, false);
	return weir_admits_first_quickly(w, rule, claim);
}

/* Ask a rule with narrow rows: its threshold is a constant. Should the first one block at once, that takes less time
 * than a call.
 */
static __always_inline enum weir_answer weir_ask_narrow(struct weir_work *w, const struct weir_rule *rule, __u32 place,
							__u32 index, const bool is_first)
{
	void *row;

	if (!is_first) {
		if (weir_admits_next_quickly(w, place, index))
			return WEIR_ANSWER_ADMIT;
	} else {
		w->claim[0].kind = WEIR_CLAIM_NONE;
		if (weir_blocks_at_once(w, rule))
			return WEIR_ANSWER_BLOCK;
		row = weir_located_row(w, false);
		if (likely(row && weir_spends_quickly(w, rule, row, w->question.place.tag, &w->claim[0])))
			return WEIR_ANSWER_ADMIT;
		if (weir_admits_first_quickly(w, rule, &w->claim[0]))
			return WEIR_ANSWER_ADMIT;
	}
	return weir_judge_narrow(w, place, index);
}

/* Ask a rule that limits connections. Two calls, one after the other: the stack would not hold one in the other. */
static __always_inline enum weir_answer weir_ask_connection(struct weir_work *w, __u32 place, __u32 index)
{
	enum weir_answer answer = weir_judge_connection(w, place, index);

	return answer == WEIR_ANSWER_OPENS ? weir_judge_opening(w, place, index) : answer;
}

/* Ask rule number `index`: the first, or not, is a constant. */
static __always_inline enum weir_answer weir_ask_rule(struct weir_work *w, __u32 index, const bool is_first)
{
	__u32 place = w->rule[index];
	const struct weir_rule *rule = weir_rule(place);
	enum weir_answer answer;

	w->judged = index;
	if (likely(rule->storage == WEIR_STORAGE_NARROW))
		return weir_heed(w, rule, place, weir_ask_narrow(w, rule, place, index, is_first));
	if (weir_must_find_allowed(rule))
		weir_find_allowed(w, place);
	if (config.has_throttling && rule->judging == WEIR_JUDGING_THROTTLE)
		answer = weir_judge_throttle(w, place, index);
	else if (config.has_associated && rule->judging == WEIR_JUDGING_ASSOCIATED)
		answer = weir_judge_associated(w, place, index);
	else if (config.has_connections && rule->judging == WEIR_JUDGING_CONNECTIONS)
		answer = weir_ask_connection(w, place, index);
	else
		answer = weir_judge_wide(w, place, index);
	return weir_heed(w, rule, place, answer);
}

/* Go through the rules from number 1 on, as long as the packet is spent from what its flow has leased. Returns the
 * number of the first where it is not. One call for all of them: on some processors a call takes as long as the rest.
 */
__noinline int weir_spend_leases(struct weir_work *w)
{
	__u32 index;

	if (!w)
		return 1;
	for (index = 1; index < WEIR_PACKET_RULES_MAX && index < w->rule_count; index++) {
		w->judged = index;
		if (!weir_spends_wide_quickly(w, w->rule[index], &w->claim[index]))
			break;
	}
	return index;
}

/* Spend or undo what the first `count` rules set aside in windows. */
__noinline int weir_settle_windows(struct weir_work *w, __u32 count, __u32 passes)
{
	if (!w)
		return 0;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < count; i++) {
		const struct weir_claim *claim = &w->claim[i];

		if (!weir_claim_holds(claim, passes) || claim->kind == WEIR_CLAIM_CONNECTION)
			continue;
		if (claim->storage == WEIR_STORAGE_NARROW)
			weir_settle_narrow(claim, passes);
		else
			weir_settle_wide(claim, passes);
	}
	return 0;
}

/* All that the first `count` rules set aside. Mostly it is one rule, with narrow rows. */
static __always_inline void weir_settle_claims(struct weir_work *w, __u32 count, bool passes)
{
	const struct weir_claim *first = &w->claim[0];

	if (passes && !w->must_settle)
		return;
	if (count == 1 && first->storage == WEIR_STORAGE_NARROW) {
		weir_settle_narrow(first, passes);
		return;
	}
	weir_settle_windows(w, count, passes);
	for (__u32 i = 0; config.has_connections && i < WEIR_PACKET_RULES_MAX && i < count; i++)
		if (w->claim[i].kind == WEIR_CLAIM_CONNECTION)
			weir_settle_connection(w, i, passes);
}

/* Find out which resources the packet belongs to, and their rules: mostly those of the packet before. */
static __always_inline int weir_meet(struct weir_work *w)
{
	if (likely(weir_meets_the_same(w)))
		return 0;
	w->meeting.load = 0;
	w->offender.until_jiffies = 0;
	if (weir_match(w) || (w->resource_count && weir_gather_rules(w))) {
		w->resource_count = 0; /* of those listed so far none was asked */
		return -1;
	}
	weir_remember_meeting(w);
	return 0;
}

static __always_inline enum weir_verdict weir_admit(struct weir_work *w)
{
	enum weir_answer answer = WEIR_ANSWER_ADMIT;
	__u32 asked = 0;

	w->wait_ns = 0;
	w->must_settle = 0;
	if (unlikely(w->rule_count == 0)) {
		if (config.has_meters)
			weir_count_meters(w);
		return WEIR_VERDICT_PASS;
	}
	weir_fetch_rules(w);
	answer = weir_ask_rule(w, 0, true);
	asked = 1;
	if (unlikely(w->rule_count > 1) && answer == WEIR_ANSWER_ADMIT)
		asked = weir_spend_leases(w);
	for (; asked < WEIR_PACKET_RULES_MAX; asked++) {
		if (answer != WEIR_ANSWER_ADMIT || asked >= w->rule_count)
			break;
		answer = weir_ask_rule(w, asked, false);
	}
	if (answer == WEIR_ANSWER_ADMIT) {
		weir_settle_claims(w, asked, true);
		if (config.has_meters)
			weir_count_meters(w);
		return WEIR_VERDICT_PASS;
	}
	/* The last one asked holds no claim. */
	if (asked > 1)
		weir_settle_claims(w, asked - 1, false);
	return answer == WEIR_ANSWER_BLOCK ? WEIR_VERDICT_BLOCK : WEIR_VERDICT_ERROR;
}

/* Neighbour discovery (RFC 4861, 4; types 133 to 137): without it an IPv6 host is not reachable at all. Nor is it for
 * long without multicast listener discovery (RFC 2710, 3, and RFC 3810, 5; types 130 to 132 and 143): a switch that
 * snoops no longer hands on what neighbours ask its solicited-node group.
 */
static __always_inline bool weir_is_neighbour_discovery(const struct weir_packet *pkt)
{
	if (!pkt->is_ipv6 || weir_protocol(pkt) != IPPROTO_ICMPV6)
		return false;
	return (pkt->icmp_type >= 130 && pkt->icmp_type <= 137) || pkt->icmp_type == 143;
}

/* Verdict of a packet that the parser did not hand on. */
static __always_inline enum weir_verdict weir_class_verdict(enum weir_parsed parsed)
{
	switch (parsed) {
	case WEIR_PARSED_MALFORMED:
		return config.drop_malformed ? WEIR_VERDICT_MALFORMED_DROP : WEIR_VERDICT_MALFORMED_PASS;
	case WEIR_PARSED_UNSUPPORTED:
		return config.drop_unsupported ? WEIR_VERDICT_UNSUPPORTED_DROP : WEIR_VERDICT_UNSUPPORTED_PASS;
	case WEIR_PARSED_NON_IP:
		return config.drop_non_ip ? WEIR_VERDICT_NON_IP_DROP : WEIR_VERDICT_NON_IP_PASS;
	default:
		return WEIR_VERDICT_ERROR;
	}
}

static __always_inline enum weir_verdict weir_unmatched_verdict(const struct weir_packet *pkt)
{
	return config.drop_unmatched && !weir_is_neighbour_discovery(pkt) ? WEIR_VERDICT_UNMATCHED_DROP
									  : WEIR_VERDICT_UNMATCHED_PASS;
}

static __always_inline bool weir_verdict_passes(enum weir_verdict verdict)
{
	const __u32 passing = 1 << WEIR_VERDICT_PASS | 1 << WEIR_VERDICT_MALFORMED_PASS |
			      1 << WEIR_VERDICT_UNSUPPORTED_PASS | 1 << WEIR_VERDICT_NON_IP_PASS |
			      1 << WEIR_VERDICT_UNMATCHED_PASS | 1 << WEIR_VERDICT_ALLOW;

	return passing >> verdict & 1;
}

#endif
