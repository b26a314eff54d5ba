/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The path under attack: the packet's first rule blocks, and it is known at once. Nothing is decided here that
 * weir_judge() would decide otherwise.
 */
#ifndef WEIR_AT_ONCE_H
#define WEIR_AT_ONCE_H

#include "window.h"

/* ---- the offender ---- */

/* The flow of the packet in hand, under its first rule, is to be blocked before any rule is asked. */
__noinline int weir_set_offender(struct weir_work *w, __u32 place)
{
	const __be32 all[4] = {~0u, ~0u, ~0u, ~0u};
	const struct weir_rule *rule = weir_rule(place);
	struct weir_offender *offender;
	bool is_ipv6;

	if (!w)
		return 0;
	offender = &w->offender;
	is_ipv6 = w->packet.is_ipv6;
	weir_mask_address((__u8 *)offender->mask, all, rule->source_mask6, rule->source_mask4, is_ipv6);
	weir_mask_address((__u8 *)offender->source, w->packet.source, rule->source_mask6, rule->source_mask4, is_ipv6);
	offender->slot = rule->slot;
	offender->until_jiffies = weir_narrow_clock(w, rule->timing)->until_jiffies;
	return 0;
}

/* The flow is full until its bucket is over. Its next packet may be the next of all: so it is the second time in a
 * row. What a rule blocks that observes, others are asked about.
 */
static __always_inline void weir_remember_offender(struct weir_work *w, const struct weir_rule *rule, __u32 tag)
{
	struct weir_offender *offender = &w->offender;

	if (rule->key_fields != WEIR_KEY_SOURCE || rule->observes)
		return;
	if (offender->tag == tag) {
		weir_set_offender(w, w->rule[0]);
	} else {
		offender->tag = tag;
		offender->until_jiffies = 0;
	}
}

/* Half of an IPv6 address, as it was copied. */
static __always_inline __u64 weir_half(const __be32 address[4], const int half)
{
	typedef __u64 __attribute__((may_alias)) half_address;

	return ((const half_address *)address)[half];
}

/* The packet, which meets what the packet before has met, is of the offender, who is full: as weir_blocks_at_once()
 * would find. (Of the same family it is, as that is met, too.)
 */
static __always_inline bool weir_is_of_offender(const struct weir_work *w)
{
	const struct weir_offender *offender = &w->offender;
	const struct weir_packet *pkt = &w->packet;

	if (bpf_jiffies64() >= offender->until_jiffies)
		return false;
	if (!pkt->is_ipv6)
		return (pkt->source[0] & offender->mask[0]) == offender->source[0];
	return !(((weir_half(pkt->source, 0) & weir_half(offender->mask, 0)) ^ weir_half(offender->source, 0)) |
		 ((weir_half(pkt->source, 1) & weir_half(offender->mask, 1)) ^ weir_half(offender->source, 1)));
}

/* ---- any flow ---- */

/* Out of line: the program itself has no stack to spare (tests/bpf/stack_test). */
__noinline int weir_touch_presence(struct weir_work *w)
{
	if (w)
		weir_presence_touch(&w->question.place);
	return 0;
}

/* The flow is noted as full until the end of a bucket that is not over. */
static __always_inline bool weir_blocks_by_note(struct weir_work *w, const struct weir_rule *rule,
						const struct weir_flow_place *flow)
{
	const struct weir_clock *clk = weir_narrow_clock(w, rule->timing);

	return weir_is_noted_full(flow, clk) && weir_clock_is_in_bucket(w, clk);
}

/* The flow's row says so. */
static __always_inline bool weir_blocks_by_row(struct weir_work *w, const struct weir_rule *rule, void *row)
{
	struct weir_judgement j = {.rule = rule, .row = row};

	if (!weir_open_judgement(w, &j, false))
		return false;
	if (config.has_overrides)
		weir_recall_override(&j, false);
	return weir_known_full(w, &j, false, false) && weir_clock_is_in_bucket(w, j.clk);
}

/*
 * The path under attack, in line in the program: a flow with narrow rows that is full until the end of a
 * bucket that is not over. One line of notes, or one row; mostly no clock, no other CPU, no call. Leaves the flow
 * located for the judgement that follows when this does not say "block".
 * It looks for the row itself, where weir_find_row() would make the verifier forget which way it
 * was: a trip through memory that only the long path behind it needs.
 *
 * Where the packet before was not blocked at once, this one is not expected to be: then the clock is read first, as
 * reading it waits for all loads under way, and the second set and the cell of presence are fetched along with
 * the first set: else a flow that is in the second waits twice. Rows first: their table is the largest.
 */
static __always_inline bool weir_blocks_at_once(struct weir_work *w, const struct weir_rule *rule)
{
	struct weir_flow_place flow = weir_flow_place(rule, &w->packet, false);
	__u32 set = flow.set, way;
	void *chunk, *rows;

	w->located = WEIR_NO_ROW;
	if (!w->expects_admission && weir_blocks_by_note(w, rule, &flow)) {
		weir_remember_offender(w, rule, flow.tag);
		return true;
	}
	chunk = weir_chunk_of(set, -1, false);
	if (!chunk)
		return false;
	rows = weir_rows_of(chunk, set, false);
	if (w->expects_admission) {
		weir_clock_enter(w, weir_narrow_clock(w, rule->timing), rule, false);
		weir_touch_set(rows);
		weir_touch_set(weir_rows_of(chunk, weir_other_set(&flow, false), false));
		weir_presence_touch(&flow);
	}
	way = weir_guess_no_way(rows, flow.tag);
	if (way == WEIR_WAYS) {
		set = weir_other_set(&flow, false);
		rows = weir_rows_of(chunk, set, false);
		way = weir_guess_no_way(rows, flow.tag);
	}
	if (way < WEIR_WAYS) {
		OPAQUE(way);
		way &= WEIR_WAYS - 1;
		if (weir_blocks_by_row(w, rule, weir_row_of_set(rows, way, false))) {
			if (!w->expects_admission)
				weir_note_full(w, flow.set, flow.tag); /* it was looked for, and not there */
			w->expects_admission = false;
			weir_remember_offender(w, rule, flow.tag);
			return true;
		}
		w->located = set * WEIR_WAYS + way;
	}
	weir_ask_about(w, rule, &flow, false);
	if (!w->expects_admission)
		weir_touch_presence(w);
	w->expects_admission = true;
	return false;
}

#endif
