/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The common case in few instructions: the packet meets one rule, with narrow rows and a window that is not
 * smooth; and it is spent from a lease, or it is the flow's first in this bucket and no other CPU knows the flow.
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
static __always_inline bool weir_keep_first(struct weir_work *w, void *row, __u32 cell)
{
	bool is_alone = weir_is_alone_now(w);

	weir_cell_set(row, cell, is_alone, false);
	return is_alone;
}

/* The flow has no row here: make one. */
static __always_inline bool weir_admits_first(struct weir_work *w, struct weir_judgement *j)
{
	j->row = weir_choose_free(w, &w->located, false);
	if (!j->row)
		return false;
	weir_replace_row(w, j, false);
	return weir_keep_first(w, j->row, j->clk->cell);
}

/* The row is of an earlier bucket, and nothing of it is leased. */
static __always_inline bool weir_admits_in_new_bucket(struct weir_work *w, struct weir_judgement *j, __u64 passed_by)
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
	return weir_keep_first(w, j->row, cell);
}

static __always_inline bool weir_spends_quickly(struct weir_narrow_row *row, __u32 cell, __u32 lease)
{
	if (lease == 0 || lease & WEIR_NARROW_FULL)
		return false;
	WRITE_ONCE(row->lease, lease - 1);
	if (lease == 1)
		weir_cell_set(row, cell, weir_cell_get(row, cell, false) & ~WEIR_NARROW_UNSPENT, false);
	return true;
}

/* The flow of w->question, found by weir_blocks_at_once(), under rule `place`, the packet's only one. True: admitted,
 * and counted. False: nothing was done.
 */
__noinline int weir_admits_quickly(struct weir_work *w, __u32 place)
{
	struct weir_judgement j = {.rule = weir_rule(place)};
	struct weir_narrow_row *row;
	__u64 newest, bucket;
	bool admits;

	if (!w || !weir_open_judgement(w, &j, false))
		return false;
	weir_clock_update(w, j.clk, j.rule->bucket_ns, j.rule->base_bucket);
	bucket = w->question.bucket = j.clk->bucket;
	if (j.threshold == 0)
		return false;
	if (w->located == WEIR_NO_ROW) {
		admits = weir_admits_first(w, &j);
	} else {
		row = j.row = weir_located_row(w, false);
		if (!row || row->version != j.threshold_word >> WEIR_THRESHOLD_BITS)
			return false;
		newest = READ_ONCE(row->newest);
		if (newest == bucket)
			return weir_spends_quickly(row, j.clk->cell, READ_ONCE(row->lease));
		if (newest > bucket || weir_lease_get(row, false))
			return false;
		admits = weir_admits_in_new_bucket(w, &j, bucket - newest);
	}
	if (admits)
		weir_note_talker(w, j.rule, false);
	return admits;
}

#endif
