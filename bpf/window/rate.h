/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rates: does the sliding window of one rule admit this packet? (docs/semantics.md, 1 and 2.) This file makes the whole
 * decision, for every state of a row. shortcuts.h gives the same answers sooner in common states.
 */
#ifndef WEIR_RATE_H
#define WEIR_RATE_H

#include "reservations.h"
#include "observe/drops.h"
#include "window/lease.h"
#include "window/notes.h"
#include "observe/key_samples.h"
#include "window/threshold.h"
#include "weir_window.h"

/* One evaluation in progress. The part that functions out of line need is in s->view. */
struct weir_evaluation {
	const struct weir_rule *rule;
	struct weir_clock *clk;
	void *row;	 /* our own */
	__u64 threshold; /* units */
	__u64 threshold_word;
	__u64 batch;
	__u64 into_ns;	   /* time since the bucket evaluated in began */
	__u32 own_cell;	   /* the cell that the packet is counted in */
	bool is_backdated; /* own_cell is older than the bucket evaluated in: the clock went back */
};

/* ---- setting up ---- */

/* Prepare an evaluation, except for the row: update the clock, and make the view describe the rule's flow. */
static __always_inline bool weir_open_evaluation(struct weir_scratch *s, struct weir_evaluation *j,
						 const struct weir_flow_id *id, const enum weir_width wide)
{
	const struct weir_rule *rule = j->rule;
	struct weir_view *view = &s->view;

	j->clk = weir_clock_of(s, rule->spec, wide);
	if (!j->clk)
		return false;
	weir_clock_enter(s, j->clk, rule, wide);
	j->threshold_word = weir_threshold_word(s, rule, wide);
	j->threshold = j->threshold_word & WEIR_THRESHOLD_MASK;
	j->batch = weir_batch(s, rule, wide);
	view->flow = *id;
	view->slot = rule->slot;
	view->spec = rule->spec;
	view->window_cells = rule->window_cells;
	view->page_sets = WEIR_PAGE_SETS(wide);
	view->is_smooth = rule->window == WEIR_WINDOW_SMOOTH;
	view->is_lone = wide == WEIR_WIDE && rule->storage == WEIR_STORAGE_LONE;
	/* There are few lone rows, and most are in use on every CPU. */
	view->asks_all = view->is_lone || rule->asks_all;
	view->overflow = rule->overflow;
	view->bucket = j->clk->bucket;
	view->now_ns = weir_rule_time_ns(s, rule);
	return true;
}

/* Give a chosen row to the flow of s->view. Others may be reading it, so: tag to zero, clear, new tag. */
static __always_inline void weir_replace_row(struct weir_scratch *s, void *chosen, const struct weir_clock *clk,
					     __u64 threshold_word, __u64 units, const enum weir_width wide)
{
	if (WEIR_PART_SEVERAL_RULES)
		s->is_new_flow = 1;
	ROW_SET(chosen, wide, tag, 0);
	weir_order(s);
	ROW_SET(chosen, wide, newest, clk->bucket);
	if (wide) {
#pragma unroll
		for (__u32 i = 0; i < WEIR_RING_CELLS; i++)
			ROW_SET(chosen, wide, cell[i], 0);
		ROW_SET(chosen, wide, lease, 0);
		weir_forget_over(chosen, wide);
		if (wide == WEIR_WIDE)
			((struct weir_wide_row *)chosen)->spec = s->view.spec;
	} else {
#pragma unroll
		for (int i = 0; i < WEIR_CELL_WORDS; i++)
			weir_cell_words(chosen)[i] = 0; /* the lease too */
	}
	weir_row_set_word(chosen, threshold_word, wide);
	if (units)
		weir_cell_set(chosen, clk->cell, units | ROW_UNSPENT(wide), wide);
	weir_order(s);
	ROW_SET(chosen, wide, tag, s->view.flow.tag);
}

/* Make a row for a flow that has none, with `units` units in the present bucket. Returns NULL if earlier rules of the
 * packet have reservations in all candidate rows.
 */
static __always_inline void *weir_insert_row(struct weir_scratch *s, const struct weir_evaluation *j, __u64 units,
					     const enum weir_width wide)
{
	__u32 number = weir_find_free(s, wide);
	void *row;

	if (number == WEIR_NO_ROW)
		number = weir_evict_row(s, wide);
	s->row_number = number;
	row = weir_row_by_number(number, wide);
	if (row)
		weir_replace_row(s, row, j->clk, j->threshold_word, units, wide);
	return row;
}

/* A lease, and being over the limit, belong to one threshold. */
static __always_inline void weir_enter_threshold(void *row, __u64 threshold_word, const enum weir_width wide)
{
	if (weir_row_word(row, wide) == (wide ? threshold_word : threshold_word & ~WEIR_THRESHOLD_MASK))
		return;
	weir_give_back(row, wide);
	weir_row_set_word(row, threshold_word, wide);
}

/* In a smooth window the weight of the oldest bucket falls with time. So a lease taken now holds at later times, but
 * not at earlier ones: is it no earlier than when this window spec was asked last?
 */
static __always_inline bool weir_clock_advances(struct weir_scratch *s, struct weir_clock *clk,
						const struct weir_rule *rule)
{
	const __u64 now_ns = weir_rule_time_ns(s, rule);

	if (now_ns < clk->latest_ns)
		return false;
	clk->latest_ns = now_ns;
	return true;
}

/* Bring the row to the present bucket and the threshold in force, and the view to the bucket to evaluate in. */
static __always_inline void weir_advance_row(struct weir_scratch *s, struct weir_evaluation *j,
					     const enum weir_width wide)
{
	__u64 newest = ROW_GET(j->row, wide, newest), present = j->clk->bucket;
	struct weir_view *view = &s->view;

	view->now_ns = weir_rule_time_ns(s, j->rule);
	view->bucket = present;
	view->cell = j->own_cell = j->clk->cell;
	j->is_backdated = false;
	j->into_ns = 0;
	if (view->is_smooth) {
		j->into_ns = view->now_ns - j->clk->start_ns;
		if (!weir_clock_advances(s, j->clk, j->rule))
			weir_give_back(j->row, wide);
	}
	if (newest < present) {
		weir_give_back(j->row, wide);
		weir_enter_bucket(s, j->row, present, view->cell, 0, wide);
	} else if (newest > present) {
		/* The clock went back. While the ring has the packet's own bucket, the packet is counted there, and
		 * evaluated against everything in the ring. Otherwise it is treated as if it arrived at the start of
		 * the newest bucket.
		 */
		view->bucket = newest;
		view->cell = weir_cell_of(newest);
		j->into_ns = 0;
		if (newest - present < view->window_cells) {
			j->is_backdated = true;
			weir_give_back(j->row, wide);
		} else {
			j->own_cell = view->cell;
		}
	}
	weir_enter_threshold(j->row, j->threshold_word, wide);
}

/* ---- what the window counts ---- */

/* Out of line, so that its long division is verified once. */
__noinline __u64 weir_oldest_share(__u64 count, __u64 bucket_ns, __u64 into_ns)
{
	return weir_smooth_share(count, bucket_ns, into_ns);
}

/* The sum, with the oldest bucket weighed if the window is smooth. */
static __always_inline __u64 weir_window_units(const struct weir_evaluation *j, const struct weir_sum *sum)
{
	if (sum->oldest == 0)
		return sum->rest;
	return sum->rest + weir_oldest_share(sum->oldest, j->rule->bucket_ns, j->into_ns);
}

/* ---- being over the limit, for the shortcuts ---- */

/* When the window frees its next unit, in ns since the present bucket began. In a smooth window with units in the
 * oldest bucket, this is when the weighed count falls by one; otherwise it is when the bucket ends. 0: not known
 * cheaply.
 */
static __always_inline __u64 weir_frees_ns(const struct weir_evaluation *j, const struct weir_sum *sum)
{
	__u64 bucket_ns = j->rule->bucket_ns, share;

	if (sum->oldest == 0)
		return bucket_ns;
	share = weir_oldest_share(sum->oldest, bucket_ns, j->into_ns);
	if (share == 0)
		return bucket_ns;
	if (share >= 1 << 16)
		return 0; /* the product below could wrap */
	return bucket_ns - (share - 1) * bucket_ns / sum->oldest;
}

/*
 * Another CPU may still give back what it has leased, with its next packet in a new bucket. If only such leases fill
 * the limit, the flow counts as over its limit for this short time only. It must count as over for some time: otherwise
 * a unit that stays unused on another CPU would make every packet of a flood ask all CPUs while its bucket counts.
 * Narrow and medium rows divide a bucket into 128 parts; this is one to two of them.
 */
#define WEIR_BRIEFLY_PARTS 64

/* The flow is over its limit: all units of the threshold except `left` are spent or leased. Remember how long this will
 * certainly be so. Until then, packets larger than `left` are dropped without asking other CPUs.
 */
static __always_inline void weir_remember_over(struct weir_scratch *s, const struct weir_evaluation *j, __u64 left,
					       const enum weir_width wide)
{
	__u64 bucket_ns = j->rule->bucket_ns, frees_ns = weir_frees_ns(j, &s->sum), briefly_ns, part;

	if (s->sum.has_unspent) {
		briefly_ns = s->view.now_ns - j->clk->start_ns + bucket_ns / WEIR_BRIEFLY_PARTS;
		if (briefly_ns < frees_ns)
			frees_ns = briefly_ns;
	}
	if (wide && left > 0xffff)
		return;
	if (wide == WEIR_WIDE) {
		struct weir_wide_row *row = j->row;

		if (frees_ns == 0)
			return;
		row->over_left = left;
		row->over_until_ns = j->clk->start_ns + frees_ns;
		return;
	}
	part = frees_ns * 128 / bucket_ns; /* rounded down, so the flow is evaluated again early rather than late */
	if (part > 128)
		return;
	if (wide) {
		((struct weir_medium_row *)j->row)->over_left = left;
		((struct weir_medium_row *)j->row)->over_part = part;
	} else if (part > 0) {
		ROW_SET(j->row, wide, lease, 127 + part);
		if (part == 128 && config.shortcuts & WEIR_SHORTCUT_NOTE)
			weir_note(s, j->rule->spec);
	}
}

/* ---- the decision ---- */

/* One evaluation against a row that weir_advance_row() has updated. On admission, the packet's units are set aside in
 * the lease; if the packet is backdated, they are already counted.
 */
static __always_inline enum weir_answer weir_evaluate_row(struct weir_scratch *s, struct weir_evaluation *j,
							  const enum weir_width wide)
{
	__u64 held = weir_lease_get(j->row, wide);
	__u64 counted, add, others, fair;

	if (held >= j->batch && !j->is_backdated)
		return WEIR_ANSWER_ADMIT;

	counted = weir_cell_get(j->row, j->own_cell, wide) & ~ROW_UNSPENT(wide);
	add = j->batch - held;
	if (!j->is_backdated)
		add = weir_lease_wanted(s, j->threshold, counted - held, j->batch, wide) - held;

	weir_cell_set(j->row, j->own_cell, (counted + add) | ROW_UNSPENT(wide), wide);
	weir_sum_rows(s, j->row, wide);
	if (s->sum.is_behind) {
		weir_order(s); /* the rows were read before the clock is read once more */
		if (weir_reread_is_over(s, j->clk, j->rule))
			s->sum.ran_ahead = 1;
	}
	/* Spent by this CPU, or counted by another. */
	others = weir_window_units(j, &s->sum) - add - held;

	if (s->sum.ran_ahead || others + j->batch > j->threshold) {
		weir_cell_set(j->row, j->own_cell, counted | (held ? ROW_UNSPENT(wide) : 0), wide);
		if (s->sum.ran_ahead)
			return WEIR_ANSWER_AGAIN;
		/* Units in doubt are a reason to drop the packet, but not to remember that the flow is over its limit.
		 */
		if (!s->sum.is_in_doubt && s->view.bucket == j->clk->bucket)
			weir_remember_over(s, j, j->threshold > others ? j->threshold - others : 0, wide);
		return weir_refuse(s, others + held, j->threshold);
	}

	/* Now that the number of free units is known, keep a fair part of them, and at least the packet's own. */
	fair = weir_fair_part(s, j->threshold - others);
	if (fair < j->batch)
		fair = j->batch;
	if (held + add > fair)
		add = fair - held;
	if (j->is_backdated) {
		s->must_abort = 1;
		weir_cell_set(j->row, j->own_cell, counted + add, wide);
		return WEIR_ANSWER_ADMIT;
	}
	weir_cell_set(j->row, j->own_cell, (counted + add) | ROW_UNSPENT(wide), wide);
	ROW_SET(j->row, wide, lease, held + add);
	weir_forget_over(j->row, wide);
	return WEIR_ANSWER_ADMIT;
}

/* The flow's ghosts alone fill its limit, so it can be blocked without a row. */
static __always_inline enum weir_answer weir_block_without_row(struct weir_scratch *s, const struct weir_rule *rule,
							       __u64 left, __u64 threshold)
{
	weir_sample_key(s, rule, true);
	return weir_refuse(s, left, threshold);
}

/* A flow with a threshold of 0 gets a row all the same, so that its next packet finds it over its limit. */
static __always_inline bool weir_is_shut(const struct weir_evaluation *j)
{
	return config.has_overrides && j->rule->has_overrides && j->threshold == 0;
}

/* Evaluate the packet by `rule`, number s->nth of its list: s->flow says which flow it is, s->row_number which row it
 * has. On admission the reservation says what was set aside. AGAIN: the bucket ended meanwhile. The caller then retries
 * (weir_retry), because a loop here would be verified round by round.
 */
static __always_inline enum weir_answer weir_evaluate_rate(struct weir_scratch *s, const struct weir_rule *rule,
							   struct weir_reservation *reservation,
							   const enum weir_width wide)
{
	struct weir_evaluation j = {.rule = rule};
	enum weir_answer answer;

	if (!weir_open_evaluation(s, &j, &s->flow, wide))
		return WEIR_ANSWER_ERROR;
	j.row = wide == WEIR_WIDE && s->view.is_lone ? weir_lone_row(rule->slot)
						     : weir_row_by_number(s->row_number, wide);
	if (config.has_overrides && rule->has_overrides) {
		j.threshold_word = weir_override_word_of(s, rule, j.row, j.clk->bucket, wide);
		j.threshold = j.threshold_word & WEIR_THRESHOLD_MASK;
	}
	if (j.batch > j.threshold && !weir_is_shut(&j))
		return weir_refuse(s, WEIR_EVENT_UNKNOWN, j.threshold);
	s->row_ghost.inherited = 0;
	if (!j.row && weir_row_ghosts_count(s, &s->view.flow)) {
		__u64 left = weir_left_without_row(s);

		if (left + j.batch > j.threshold && !weir_is_shut(&j))
			return weir_block_without_row(s, rule, left, j.threshold);
	}
	if (!j.row)
		j.row = weir_insert_row(s, &j, weir_is_shut(&j) ? 0 : s->row_ghost.inherited, wide);
	if (!j.row)
		return WEIR_ANSWER_ERROR;

	weir_advance_row(s, &j, wide);
	answer = weir_evaluate_row(s, &j, wide);
	if (answer != WEIR_ANSWER_AGAIN && !s->view.is_lone)
		weir_sample_key(s, rule, answer == WEIR_ANSWER_BLOCK);
	if (answer == WEIR_ANSWER_ADMIT)
		weir_set_reservation(s, reservation,
				     j.is_backdated ? WEIR_RESERVATION_BACKDATED : WEIR_RESERVATION_LEASE,
				     s->view.flow.tag, j.batch, j.own_cell, rule->storage);
	return answer;
}

/* Out of line, so that each is verified once, instead of once for each rule that may match. */
__noinline int weir_evaluate_narrow(struct weir_scratch *s, __u32 place, __u32 nth)
{
	struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;

	return reservation ? weir_evaluate_rate(s, weir_rule(place), reservation, WEIR_NARROW) : WEIR_ANSWER_ERROR;
}

__noinline int weir_evaluate_medium(struct weir_scratch *s, __u32 place, __u32 nth)
{
	struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;

	WEIR_GLOBAL(MEDIUM, reservation, WEIR_ANSWER_ERROR);
	return weir_evaluate_rate(s, weir_rule(place), reservation, WEIR_MEDIUM);
}

__noinline int weir_evaluate_wide(struct weir_scratch *s, __u32 place, __u32 nth)
{
	struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;

	WEIR_GLOBAL(WIDE, reservation, WEIR_ANSWER_ERROR);
	return weir_evaluate_rate(s, weir_rule(place), reservation, WEIR_WIDE);
}

static __always_inline enum weir_answer weir_evaluate_window(struct weir_scratch *s, __u32 place, __u32 nth)
{
	__u32 storage = weir_rule(place)->storage;

	if (likely(storage == WEIR_STORAGE_NARROW))
		return weir_evaluate_narrow(s, place, nth);
	return storage == WEIR_STORAGE_MEDIUM ? weir_evaluate_medium(s, place, nth) : weir_evaluate_wide(s, place, nth);
}

#endif
