/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common cases in few instructions, where the window is not smooth: the packet is spent from a lease; or, with
 * narrow rows, it is the flow's first in this bucket and no other CPU knows the flow. Where a later rule may yet block
 * the packet, it is a claim until then (weir_settle_windows).
 * Everything else is left for weir_judge(), as if nothing had been tried. Nothing is decided here that
 * weir_judge() would decide otherwise; a flow of which one CPU sees a packet now and then costs half as much
 * (make bench-quick, S2 and S3), and a further rule that one flow meets again and again less than half as much (S8).
 */
#ifndef WEIR_QUICK_H
#define WEIR_QUICK_H

#include "window.h"

/* ---- from a lease ---- */

/* Quickly only what a constant threshold and the bucket's number decide. */
static __always_inline bool weir_may_spend_quickly(const struct weir_rule *rule)
{
	return rule->window != WEIR_WINDOW_SMOOTH && !rule->has_overrides;
}

/* The packet is spent from what `row`, of the flow with this tag, has leased in the present bucket. */
static __always_inline bool weir_spends_quickly(struct weir_work *w, const struct weir_rule *rule,
						struct weir_narrow_row *row, __u32 tag, struct weir_claim *claim)
{
	struct weir_clock *clk = weir_narrow_clock(w, rule->timing);

	OPAQUE(clk); /* else clang works out the address of each field anew */
	if (!weir_may_spend_quickly(rule) || row->version != rule->threshold >> WEIR_THRESHOLD_BITS)
		return false;
	weir_clock_enter(w, clk, rule, false);
	return weir_spends_lease(w, row, clk, 1, tag, claim, WEIR_STORAGE_NARROW);
}

/* The same of any rule with wide rows; its row is not found yet. */
static __always_inline bool weir_spends_wide_quickly(struct weir_work *w, __u32 place, struct weir_claim *claim)
{
	const struct weir_rule *rule = weir_rule(place);
	__u32 timing = rule->timing;
	struct weir_flow_place flow;
	struct weir_wide_row *row;
	struct weir_clock *clk;

	if (rule->storage != WEIR_STORAGE_WIDE || rule->judging != WEIR_JUDGING_WINDOW ||
	    !weir_may_spend_quickly(rule) || weir_must_find_allowed(rule))
		return false;
	clk = bpf_map_lookup_elem(&clocks, &timing);
	row = weir_locate_wide(w, rule, &flow);
	if (!clk || !row || row->threshold != rule->threshold)
		return false;
	weir_clock_enter(w, clk, rule, true);
	if (!weir_spends_lease(w, row, clk, rule->counts_bytes ? w->packet.frame_bytes : 1, flow.tag, claim,
			       WEIR_STORAGE_WIDE))
		return false;
	weir_note_spender(w, place, &flow);
	return true;
}

/* ---- the first of a bucket ---- */

static __always_inline bool weir_may_admit_quickly(const struct weir_rule *rule)
{
	return weir_may_spend_quickly(rule) && !rule->asks_all;
}

/* May the packet that the own row has just been given, in the cell of the present bucket, stay? Not when another
 * CPU may have counted the flow as well: then it is taken back.
 */
static __always_inline bool weir_keep_first(struct weir_work *w, void *row, __u32 cell, bool is_held)
{
	bool is_alone = weir_is_alone_now(w);

	if (is_alone && is_held)
		ROW_SET(row, false, lease, 1); /* the cell says so already */
	else
		weir_cell_set(row, cell, is_alone, false);
	return is_alone;
}

/* The flow has no row here: make one. */
static __always_inline bool weir_admits_new_flow(struct weir_work *w, struct weir_judgement *j, bool is_held)
{
	void *chunk = weir_chunk_of(w->question.place.set, -1, false);

	if (!chunk)
		return false;
	j->row = weir_choose_free(w, chunk, &w->located, false);
	if (!j->row) {
		w->located = weir_choose_least_narrow(w);
		j->row = weir_located_row(w, false);
	}
	if (!j->row)
		return false;
	weir_replace_row(w, j, false);
	return weir_keep_first(w, j->row, j->clk->cell, is_held);
}

/* The row is of an earlier bucket, and nothing of it is leased. */
static __always_inline bool weir_admits_in_new_bucket(struct weir_work *w, struct weir_judgement *j, __u64 passed_by,
						      bool is_held)
{
	__u32 cell = j->clk->cell, cells = w->question.window_cells;
	__u64 units, flags = 0;

	OPAQUE(cells);
	if (passed_by > WEIR_RING_CELLS)
		passed_by = WEIR_RING_CELLS;
	units = passed_by < cells ? weir_sum_cells(j->row, weir_cells_aged(cell, passed_by, cells), &flags, false) : 0;
	if (units >= j->threshold)
		return false;
	ROW_SET(j->row, false, lease, 0); /* it may have been full in its time */
	weir_enter_bucket(w, j->row, j->clk->bucket, cell, 1, false);
	return weir_keep_first(w, j->row, cell, is_held);
}

/*
 * The packet is the first of the flow of w->question, located, in this bucket. True: admitted, and counted, or claimed
 * where there are other rules. False: nothing was done.
 */
static __always_inline bool weir_admits_first_quickly(struct weir_work *w, const struct weir_rule *rule,
						      struct weir_claim *claim)
{
	struct weir_judgement j = {.rule = rule};
	struct weir_narrow_row *row;
	__u64 newest, bucket;
	bool is_held, admits;

	if (!weir_may_admit_quickly(rule) || !weir_open_judgement(w, &j, false))
		return false;
	OPAQUE(j.clk);
	is_held = weir_is_held(w);
	weir_clock_enter(w, j.clk, rule, false);
	bucket = w->question.bucket = j.clk->bucket;
	if (j.threshold == 0)
		return false;
	if (w->located == WEIR_NO_ROW) {
		admits = weir_admits_new_flow(w, &j, is_held);
	} else {
		row = j.row = weir_located_row(w, false);
		if (!row || row->version != j.threshold_word >> WEIR_THRESHOLD_BITS)
			return false;
		newest = READ_ONCE(row->newest);
		if (newest >= bucket || weir_lease_get(row, false))
			return false;
		admits = weir_admits_in_new_bucket(w, &j, bucket - newest, is_held);
	}
	if (!admits)
		return false;
	weir_note_talker(w, rule, false);
	claim->kind = WEIR_CLAIM_SPENT;
	if (is_held)
		weir_set_claim(w, claim, WEIR_CLAIM_LEASE, w->question.place.tag, 1, j.clk->cell, WEIR_STORAGE_NARROW);
	return true;
}

#endif
