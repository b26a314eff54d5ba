/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common case in few instructions: a rule with narrow rows and a window that is not smooth; the packet is spent
 * from a lease, or it is the flow's first in this bucket and no other CPU knows the flow. Where the packet meets other
 * rules, too, its unit is held in the lease until all have admitted it (weir_settle_windows).
 * Everything else is left for weir_judge(), as if nothing had been tried. Nothing is decided here that
 * weir_judge() would decide otherwise; a flow of which one CPU sees a packet now and then costs half as much
 * (make bench-quick, S2 and S3).
 */
#ifndef WEIR_QUICK_H
#define WEIR_QUICK_H

#include "window.h"

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
static __always_inline bool weir_admits_first(struct weir_work *w, struct weir_judgement *j, bool is_held)
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

static __always_inline bool weir_spends_quickly(struct weir_narrow_row *row, __u32 cell, __u32 lease, bool is_held)
{
	if (lease == 0 || lease & WEIR_NARROW_FULL)
		return false;
	if (is_held)
		return true;
	WRITE_ONCE(row->lease, lease - 1);
	if (lease == 1)
		weir_cell_set(row, cell, weir_cell_get(row, cell, false) & ~WEIR_NARROW_UNSPENT, false);
	return true;
}

static __always_inline void weir_claim_held(struct weir_work *w, struct weir_claim *claim, __u32 cell)
{
	claim->row = w->located;
	claim->tag = w->question.place.tag;
	claim->batch = 1;
	claim->storage = WEIR_STORAGE_NARROW;
	claim->cell = cell;
	claim->kind = WEIR_CLAIM_LEASE;
}

/* The flow of w->question, located, under `rule`, whose claim this is. True: admitted, and counted, or claimed where
 * there are other rules. False: nothing was done.
 */
static __always_inline bool weir_admits_quickly(struct weir_work *w, const struct weir_rule *rule,
						struct weir_claim *claim)
{
	struct weir_judgement j = {.rule = rule};
	bool is_held, admits, is_first = true;
	struct weir_narrow_row *row;
	__u64 newest, bucket;

	if (rule->window == WEIR_WINDOW_SMOOTH || rule->asks_all || rule->has_overrides)
		return false;
	if (!weir_open_judgement(w, &j, false))
		return false;
	OPAQUE(j.clk); /* else clang works out the address of each field anew */
	is_held = w->rule_count > 1;
	weir_clock_update(w, j.clk, rule->bucket_ns, rule->base_bucket, false);
	bucket = w->question.bucket = j.clk->bucket;
	if (j.threshold == 0)
		return false;
	if (w->located == WEIR_NO_ROW) {
		admits = weir_admits_first(w, &j, is_held);
	} else {
		row = j.row = weir_located_row(w, false);
		if (!row || row->version != j.threshold_word >> WEIR_THRESHOLD_BITS)
			return false;
		newest = READ_ONCE(row->newest);
		if (newest > bucket || (newest < bucket && weir_lease_get(row, false)))
			return false;
		is_first = newest < bucket;
		admits = is_first ? weir_admits_in_new_bucket(w, &j, bucket - newest, is_held)
				  : weir_spends_quickly(row, j.clk->cell, READ_ONCE(row->lease), is_held);
	}
	if (!admits)
		return false;
	if (is_first)
		weir_note_talker(w, rule, false);
	if (is_held)
		weir_claim_held(w, claim, j.clk->cell);
	return true;
}

#endif
