/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shortcuts: the common answers in few instructions. weir_shortcut() answers BLOCK, ADMIT or UNSURE, and never differs
 * from the answer of the rule's kind (rate.h). While nothing is evicted, a program loaded with config.shortcuts = 0
 * gives the same verdict for every packet on one CPU, and tests compare the two. Each shortcut has a bit of enum
 * weir_shortcut, and its comment says what it saves: ns a packet by `make bench-shortcuts` (table in
 * docs/internals/bench-changes.md; Zen 4, 2 virtual cores).
 */
#ifndef WEIR_SHORTCUTS_H
#define WEIR_SHORTCUTS_H

#include "window/fetch.h"

/* ---- WEIR_SHORTCUT_SOURCE: the flow that was over its limit just now stays so until its bucket ends ---- */

/* Does the packet belong to that flow, whether the flow is still over its limit or not? */
static __always_inline bool weir_is_same_source(const struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_over_source *over = &s->over_source;

	return over->place == rule->place && over->is_ipv6 == s->packet.is_ipv6 &&
	       weir_is_source(&s->packet, rule, over->source);
}

/* Decided by the tick, without a hash or a row. A flood from one source ends here: a packet takes 16 to 19 ns, instead
 * of 26 if the last flow is not remembered (one flow over its limit; test run, S1).
 */
static __always_inline bool weir_is_over_source(const struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_over_source *over = &s->over_source;

	return s->tick - over->since_jiffies < over->sure_jiffies && weir_is_same_source(s, rule);
}

/* The packet's source is blocked for sure_jiffies from since_jiffies on. Remember that if its flow, `tag`, was also the
 * latest one that was blocked.
 */
static __always_inline void weir_remember_source(struct weir_scratch *s, const struct weir_rule *rule, __u32 tag,
						 __u64 since_jiffies, __u64 sure_jiffies)
{
	struct weir_over_source *over = &s->over_source;

	over->sure_jiffies = over->sure_ns = 0;
	if (over->tag != tag) {
		over->tag = tag;
		return;
	}
	over->sure_jiffies = sure_jiffies;
	over->since_jiffies = since_jiffies;
	over->place = rule->place;
	over->is_ipv6 = s->packet.is_ipv6;
	weir_mask_address((__u8 *)over->source, s->packet.source, rule->source_mask6, rule->source_mask4,
			  s->packet.is_ipv6);
}

/* s->flow is over its limit until the bucket in *clk ends. */
static __always_inline void weir_remember_over_source(struct weir_scratch *s, const struct weir_rule *rule,
						      const struct weir_clock *clk)
{
	if (weir_takes(WEIR_SHORTCUT_SOURCE) && rule->key_fields == WEIR_KEY_SOURCE)
		weir_remember_source(s, rule, s->flow.tag, clk->since_jiffies, clk->sure_jiffies);
}

/* ---- WEIR_SHORTCUT_OVER: the row remembers that its flow is over its limit ---- */

/* Saves 95 of 122 ns (one flow over its limit; test run), 134 of 176 (the same, end to end), 177 of 433 (1M). */

/* Is the flow over its limit for a packet of this size until the bucket in *clk ends or, with knows_time, at least
 * until now?
 */
static __always_inline bool weir_is_known_over(struct weir_scratch *s, const struct weir_rule *rule, void *row,
					       const struct weir_clock *clk, bool knows_time,
					       const enum weir_width wide)
{
	__u64 part;

	if (ROW_GET(row, wide, newest) != clk->bucket)
		return false;
	if (wide == WEIR_WIDE) {
		const struct weir_wide_row *wide_row = row;

		if (!wide_row->over_until_ns || weir_batch(s, rule, wide) <= wide_row->over_left)
			return false;
		return wide_row->over_until_ns >= clk->end_ns ||
		       (knows_time && weir_rule_time_ns(s, rule) < wide_row->over_until_ns);
	}
	if (wide) {
		part = ((struct weir_medium_row *)row)->over_part;
		if (!part || weir_batch(s, rule, wide) <= ((struct weir_medium_row *)row)->over_left)
			return false;
	} else {
		part = ROW_GET(row, wide, lease) - 127;
		if ((__s64)part <= 0)
			return false;
	}
	return part == 128 ||
	       (knows_time && (weir_rule_time_ns(s, rule) - clk->start_ns) * 128 < part * rule->bucket_ns);
}

/* The same of a rule with larger rows, and a fixed threshold (weir_rule.is_fixed). Only a packet of no units would fit,
 * else the next packet may be smaller than this one.
 */
__noinline int weir_remember_large_row(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	const bool is_medium = rule->storage == WEIR_STORAGE_MEDIUM;
	const struct weir_clock *clk = NULL;
	const struct weir_medium_row *medium;
	const struct weir_wide_row *large;
	bool stays;

	if (s)
		clk = is_medium ? weir_clock_of(s, rule->spec, WEIR_MEDIUM) : weir_clock_of(s, rule->spec, WEIR_WIDE);
	WEIR_GLOBAL(OUT_OF_LINE, clk, 0);
	medium = is_medium ? weir_row_by_number(s->row_number, WEIR_MEDIUM) : NULL;
	large = is_medium ? NULL : weir_row_by_number(s->row_number, WEIR_WIDE);
	stays = (medium && medium->newest == clk->bucket && medium->over_part == 128 && !medium->over_left) ||
		(large && large->newest == clk->bucket && large->over_until_ns >= clk->end_ns && !large->over_left);
	if (stays)
		weir_remember_over_source(s, rule, clk);
	return 0;
}

/* Most packets that are blocked after one of another flow end here. */
static __always_inline void weir_remember_fixed(struct weir_scratch *s, const struct weir_rule *rule)
{
	struct weir_over_source *over = &s->over_source;

	if (over->tag == s->flow.tag) {
		weir_remember_large_row(s, rule->place);
		return;
	}
	over->tag = s->flow.tag;
	over->sure_jiffies = over->sure_ns = 0;
}

/* ---- WEIR_SHORTCUT_LEASE: the packet is spent from what its flow has leased ---- */

/* Saves 31 of 76 ns (one flow, admitted; test run), 170 of 430 (8 rules), 45 of 136 (one source; end to end). */

/* A lease of a smooth window holds from when it was taken on. Out of line, for the registers of all others. */
__noinline int weir_may_spend(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_clock *clk = NULL;

	if (s)
		clk = rule->storage == WEIR_STORAGE_NARROW || rule->storage == WEIR_STORAGE_MEDIUM
			      ? weir_clock_of(s, rule->spec, WEIR_NARROW)
			      : weir_clock_of(s, rule->spec, WEIR_WIDE);
	return clk && weir_clock_advances(s, clk, rule);
}

/* If a later rule may still block the packet, the units are spent now and put back in that case. But the last units are
 * not spent here: if other CPUs saw them spent and then unspent again, they would take the flow to be over its limit.
 */
static __always_inline bool weir_spend_lease(struct weir_scratch *s, const struct weir_rule *rule, void *row,
					     const struct weir_clock *clk, struct weir_reservation *reservation,
					     __u32 nth, const enum weir_width wide)
{
	__u64 batch = wide ? weir_batch(s, rule, wide) : 1, lease = weir_lease_get(row, wide);

	if (lease < batch || (unlikely(rule->window == WEIR_WINDOW_SMOOTH) && !weir_may_spend(s, rule->place)))
		return false;
	reservation->kind = WEIR_RESERVATION_SPENT;
	if (WEIR_PART_SEVERAL_RULES && nth + 1 < s->rule_count) /* else no later rule can block it */
		weir_set_reservation(s, reservation, lease == batch ? WEIR_RESERVATION_LEASE : WEIR_RESERVATION_SPENT,
				     s->flow.tag, batch, clk->cell, rule->storage);
	if (!WEIR_PART_SEVERAL_RULES || reservation->kind == WEIR_RESERVATION_SPENT)
		weir_spend(row, clk->cell, lease, batch, wide);
	if (wide && rule->storage != WEIR_STORAGE_LONE)
		weir_sample_key(s, rule, false);
	return true;
}

/* ---- WEIR_SHORTCUT_FIRST: the flow has no lease, and no other CPU knows the flow ---- */

/* Saves 80 of 412 ns (1M flows, admitted; test run), 103 of 481 (new sources), 94 of 607 (the same, end to end);
 * under MemoryAdaptive and bytes, with wide rows, 50 of 550 (1M flows, admitted; test run), 110 of 610 (new sources).
 */

/* The count of a row's window once the row has entered the bucket in *clk. If it is so far below the threshold that the
 * difference does not matter to weir_first_units(), units of all ages, which are added up sooner.
 */
static __always_inline __u64 weir_units_before(void *row, const struct weir_clock *clk, __u32 window_cells,
					       __u64 threshold, const enum weir_width wide)
{
	__u64 passed_by = clk->bucket - ROW_GET(row, wide, newest), flags = 0, all;

	OPAQUE(window_cells);
	if (passed_by >= window_cells)
		return 0;
	all = weir_row_units(row, wide);
	if (all * (WEIR_ALONE_PARTS + 1) < threshold)
		return all;
	return weir_sum_cells(row, weir_cells_aged(clk->cell, passed_by, window_cells), &flags, wide);
}

/* How many of the free units the flow takes: as many as it has spent in this bucket, but at most weir_fair_part() for a
 * flow that one CPU sees, and at most what a narrow row has room for.
 */
static __always_inline __u64 weir_first_units(__u64 spent, __u64 free, __u64 batch)
{
	__u64 fair = free / WEIR_ALONE_PARTS;

	spent = spent < fair ? spent : fair;
	if (spent > WEIR_NARROW_LEASE_MAX)
		spent = WEIR_NARROW_LEASE_MAX;
	return spent < batch ? batch : spent;
}

/* Count the packet in a row without a lease (a narrow one: of the threshold in force); a flow without a row gets one.
 * NULL: nothing was done, and the rule's kind must be asked.
 */
static __always_inline void *weir_count_first(struct weir_scratch *s, const struct weir_rule *rule, void *chunk,
					      void *row, const struct weir_clock *clk, const enum weir_width wide)
{
	struct weir_first *first = &s->first;
	__u64 word = weir_threshold_word(s, rule, wide), batch = weir_batch(s, rule, wide);
	__u64 threshold = word & WEIR_THRESHOLD_MASK, newest, units;
	__u32 number;

	first->before = 0;
	first->units = batch;
	if (batch > threshold)
		return NULL;
	if (row) {
		newest = ROW_GET(row, wide, newest);
		if (newest > clk->bucket || weir_lease_get(row, wide))
			return NULL;
		units = weir_units_before(row, clk, rule->window_cells, threshold - batch, wide);
		if (units + batch > threshold)
			return NULL;
		if (newest == clk->bucket) {
			if (wide || weir_is_row_over(row, wide)) /* the rule's kind takes leases of bytes */
				return NULL;
			first->before = weir_cell_get(row, clk->cell, wide) & ~ROW_UNSPENT(wide);
			first->units = weir_first_units(first->before, threshold - units, batch);
			weir_cell_set(row, clk->cell, (first->before + first->units) | ROW_UNSPENT(wide), wide);
			return row;
		}
		ROW_SET(row, wide, lease, 0); /* it may have been over its limit */
		weir_forget_over(row, wide);
		if (wide)
			weir_row_set_word(row, word, wide);
		weir_enter_bucket(s, row, clk->bucket, clk->cell, batch, wide);
		return row;
	}
	s->view.slot = rule->slot;
	s->view.spec = rule->spec;
	s->view.window_cells = rule->window_cells;
	s->view.bucket = clk->bucket;
	number = wide ? weir_find_free(s, wide) : weir_choose_free(&s->view, chunk, wide);
	if (number == WEIR_NO_ROW)
		number = weir_evict_row(s, wide);
	s->row_number = number;
	row = wide ? weir_row_by_number(number, wide) : weir_row_in(chunk, number, wide);
	if (row)
		weir_replace_row(s, row, clk, word, batch, wide);
	return row;
}

/* Admit the packet of a flow that has no lease. The packet is counted first; this is undone unless no other CPU has
 * counted the flow.
 */
static __always_inline bool weir_admit_first(struct weir_scratch *s, const struct weir_rule *rule, void *chunk,
					     void *row, const struct weir_clock *clk,
					     struct weir_reservation *reservation, const enum weir_width wide)
{
	__u64 batch = weir_batch(s, rule, wide);

	if (rule->window == WEIR_WINDOW_SMOOTH || rule->asks_all || (config.has_overrides && rule->has_overrides))
		return false;
	s->view.flow = s->flow;
	s->view.now_ns = weir_rule_time_ns(s, rule);
	row = weir_count_first(s, rule, chunk, row, clk, wide);
	if (!row)
		return false;
	if (!weir_announce(s)) {
		weir_cell_set(row, clk->cell, s->first.before, wide);
		return false;
	}
	weir_sample_key(s, rule, false);
	if (!WEIR_PART_SEVERAL_RULES || s->nth + 1 >= s->rule_count) {
		if (s->first.units == batch)
			weir_cell_set(row, clk->cell, s->first.before + batch, wide);
		else
			ROW_SET(row, wide, lease, s->first.units - batch);
		reservation->kind = WEIR_RESERVATION_SPENT;
	} else {
		ROW_SET(row, wide, lease, s->first.units); /* the cell says so already */
		weir_set_reservation(s, reservation, WEIR_RESERVATION_LEASE, s->flow.tag, batch, clk->cell,
				     WEIR_STORAGE(wide));
	}
	return true;
}

/* Do the flow's ghosts allow this shortcut? ADMIT: there are none. BLOCK: the flow is over its limit by its ghosts
 * alone, and needs no row. UNSURE: ask the rule's kind.
 */
__noinline int weir_try_row_ghost(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	const bool is_narrow = rule->storage == WEIR_STORAGE_NARROW;
	struct weir_clock *clk;
	__u64 left, units, allowed;

	if (!s || (config.has_overrides && rule->has_overrides))
		return WEIR_ANSWER_UNSURE;
	clk = weir_clock_of(s, rule->spec, WEIR_NARROW);
	s->view.flow = s->flow;
	s->view.spec = rule->spec;
	s->view.window_cells = rule->window_cells;
	s->view.page_sets = is_narrow ? WEIR_NARROW_PAGE_SETS : WEIR_MEDIUM_PAGE_SETS;
	s->view.bucket = clk->bucket;
	s->view.asks_all = rule->asks_all;
	s->view.overflow = rule->overflow;
	left = s->row_number == WEIR_NO_ROW ? weir_left_without_row(s) : weir_left_units(s);
	if (!left) /* unless it has just expired by another CPU's clock */
		return weir_reread_is_over(s, clk, rule) ? WEIR_ANSWER_UNSURE : WEIR_ANSWER_ADMIT;
	units = left + (is_narrow ? 1 : weir_batch(s, rule, WEIR_MEDIUM));
	allowed = (is_narrow ? rule->threshold : weir_threshold_word(s, rule, WEIR_MEDIUM)) & WEIR_THRESHOLD_MASK;
	if (s->row_number != WEIR_NO_ROW || units <= allowed)
		return WEIR_ANSWER_UNSURE;
	return weir_block_without_row(s, rule, left, allowed);
}

/* Admit the flow's first packet in the bucket; while rows are being evicted, look for its ghosts first. */
static __always_inline enum weir_answer weir_ask_first_of_flow(struct weir_scratch *s, const struct weir_rule *rule,
							       void *chunk, void *row, const struct weir_clock *clk,
							       struct weir_reservation *reservation,
							       const enum weir_width wide)
{
	if (s->may_have_ghosts && weir_row_ghosts_count(s, &s->flow)) {
		enum weir_answer answer = weir_try_row_ghost(s, rule->place);

		if (answer != WEIR_ANSWER_ADMIT)
			return answer;
	}
	return weir_admit_first(s, rule, chunk, row, clk, reservation, wide) ? WEIR_ANSWER_ADMIT : WEIR_ANSWER_UNSURE;
}

/* The same for medium rows, after weir_shortcut() was UNSURE. Out of line, because deeper calls leave no room on the
 * stack.
 */
__noinline int weir_try_first(struct weir_scratch *s, __u32 place, __u32 nth)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;
	struct weir_clock *clk = reservation ? weir_clock_of(s, rule->spec, WEIR_MEDIUM) : NULL;

	WEIR_GLOBAL(MEDIUM, clk, WEIR_ANSWER_UNSURE);
	return weir_ask_first_of_flow(s, rule, NULL, weir_row_by_number(s->row_number, WEIR_MEDIUM), clk, reservation,
				      WEIR_MEDIUM);
}

/* ---- all of them ---- */

/*
 * Ask the shortcuts about the packet's rule number s->nth, of a kind that keeps rows. ADMIT and BLOCK are final, and
 * the reservation is made. After UNSURE, ask the rule's kind. The flow and its row have been found, and nothing else
 * has changed that the kind would not change, too.
 */
static __always_inline enum weir_answer weir_shortcut(struct weir_scratch *s, const struct weir_rule *rule,
						      struct weir_reservation *reservation, const bool is_first,
						      const enum weir_width wide)
{
	const __u32 nth = is_first ? 0 : s->nth;
	struct weir_found found;
	struct weir_clock *clk;

	if (is_first && weir_is_over_source(s, rule)) {
		s->flow.tag = s->over_source.tag;
		return WEIR_ANSWER_BLOCK;
	}
	clk = weir_clock_of(s, rule->spec, wide);
	if (!wide) {
		weir_enter_narrow(s, rule, nth);
		if (!s->expects_admission && weir_is_noted(s, clk) && weir_clock_is_current(s, clk)) {
			if (is_first)
				weir_remember_over_source(s, rule, clk);
			return WEIR_ANSWER_BLOCK;
		}
	}
	if (wide == WEIR_WIDE && !clk)
		return WEIR_ANSWER_UNSURE;
	found = weir_find(s, rule, nth, wide);
	/* Ask this first if it is expected to answer, and if that saves reading CLOCK_MONOTONIC. */
	if (found.is_in_force && (!s->expects_admission || !rule->goes_by_ticks) && weir_takes(WEIR_SHORTCUT_OVER) &&
	    weir_is_known_over(s, rule, found.row, clk, false, wide) && weir_clock_is_current(s, clk)) {
		if (!wide && weir_takes(WEIR_SHORTCUT_NOTE))
			weir_note(s, rule->spec);
		if (is_first)
			weir_remember_over_source(s, rule, clk);
		return WEIR_ANSWER_BLOCK;
	}
	weir_clock_enter(s, clk, rule, wide);
	if (found.is_in_force && ROW_GET(found.row, wide, newest) == clk->bucket) {
		if (weir_takes(WEIR_SHORTCUT_LEASE) &&
		    weir_spend_lease(s, rule, found.row, clk, reservation, nth, wide))
			return WEIR_ANSWER_ADMIT;
		if (weir_takes(WEIR_SHORTCUT_OVER) && weir_is_known_over(s, rule, found.row, clk, true, wide))
			return WEIR_ANSWER_BLOCK;
	}
	if (!wide && weir_takes(WEIR_SHORTCUT_FIRST) && (!found.row || found.is_in_force))
		return weir_ask_first_of_flow(s, rule, found.chunk, found.row, clk, reservation, wide);
	return WEIR_ANSWER_UNSURE;
}

/* ---- plain rules ---- */

/*
 * A rule is *plain* if it is enforced, Reject, without penalties, of packets, and its window goes by the tick and has a
 * constant threshold (weir_rule.is_plain). Where a packet has several rules, the first of them are mostly plain, and
 * admit by a lease until one says that its flow is over its limit. Nobody else can change any of that on this CPU
 * before its next packet, and nothing counts where a rule blocks. So if all are asked before any is spent from, a
 * packet that is blocked leaves no trace, and the next one of the same flows, in the same tick, needs no question.
 */

/* Ask one of them, with rows of this width. ADMIT: the units are spent, or set aside where the packet is expected to be
 * blocked by a later rule.
 */
static __always_inline enum weir_answer weir_ask_plain(struct weir_scratch *s, const struct weir_rule *rule,
						       struct weir_reservation *reservation, __u32 nth,
						       const enum weir_width wide)
{
	const struct weir_clock *clk = weir_clock_of(s, rule->spec, wide);
	__u64 batch = wide ? WEIR_SEGMENTS(s) : 1, lease;
	void *row;

	if (!clk || !weir_clock_is_current(s, clk))
		return WEIR_ANSWER_UNSURE;
	if (!wide)
		weir_enter_narrow(s, rule, nth);
	else if (rule->storage != WEIR_STORAGE_LONE)
		weir_enter_flow(s, rule, wide);
	row = weir_find_other(s, rule, wide);
	if (!row || ROW_GET(row, wide, newest) != clk->bucket || !weir_is_row_in_force(s, rule, row, wide))
		return WEIR_ANSWER_UNSURE;
	lease = weir_lease_get(row, wide);
	if (lease < batch)
		return weir_is_known_over(s, rule, row, clk, false, wide) ? WEIR_ANSWER_BLOCK : WEIR_ANSWER_UNSURE;
	s->known = nth + 1;
	weir_set_reservation(s, reservation,
			     s->expects_admission && lease > batch ? WEIR_RESERVATION_SPENT : WEIR_RESERVATION_LEASE,
			     s->flow.tag, batch, clk->cell, rule->storage);
	if (reservation->kind == WEIR_RESERVATION_SPENT)
		ROW_SET(row, wide, lease, lease - batch);
	if (wide && rule->storage != WEIR_STORAGE_LONE)
		weir_sample_key(s, rule, false);
	return WEIR_ANSWER_ADMIT;
}

/* Spend once more what the packet before has spent, in the same tick: so the row still is in the present bucket. */
static __always_inline bool weir_spend_again(struct weir_scratch *s, struct weir_reservation *reservation,
					     const enum weir_width wide)
{
	void *row = weir_reserved_row(reservation, wide);
	__u64 batch = wide ? WEIR_SEGMENTS(s) : 1, lease = row ? weir_lease_get(row, wide) : 0;

	if (!row || lease <= batch)
		return false;
	ROW_SET(row, wide, lease, lease - batch);
	reservation->kind = WEIR_RESERVATION_SPENT;
	reservation->batch = batch;
	return true;
}

/* How many rules are asked so; others follow one by one. Each costs the verifier some thousand instructions. */
#define WEIR_PLAIN_RULES_MAX 8

/* Ask the packet's rules while they are plain and admit by a lease, unless its flows are likely to be new, as those of
 * the packet before. s->nth is the last rule asked. UNSURE: continue there.
 */
__noinline int weir_ask_plain_rules(struct weir_scratch *s)
{
	enum weir_answer answer = WEIR_ANSWER_UNSURE;
	__u32 nth = 0;

	WEIR_GLOBAL(SEVERAL_RULES, s, WEIR_ANSWER_ERROR);
	if (s->is_new_flow || !weir_takes(WEIR_SHORTCUT_LEASE) || !weir_takes(WEIR_SHORTCUT_OVER)) {
		s->is_new_flow = s->known = 0;
		return WEIR_ANSWER_UNSURE;
	}
	for (; s->expects_admission && nth < WEIR_PLAIN_RULES_MAX && nth < s->known; nth++) {
		struct weir_reservation *reservation = &s->reservation[nth];

		if (!OF_STORAGE(reservation->storage, weir_spend_again, s, reservation))
			break;
		s->nth = nth;
		s->must_abort = 1;
		answer = WEIR_ANSWER_ADMIT;
	}
	for (; nth < WEIR_PLAIN_RULES_MAX && nth < s->rule_count; nth++) {
		const struct weir_rule *rule = weir_rule(s->rule[nth]);
		struct weir_reservation *reservation = weir_reservation_at(s, nth);

		s->nth = nth;
		answer = rule->is_plain && reservation
				 ? OF_STORAGE(rule->storage, weir_ask_plain, s, rule, reservation, nth)
				 : WEIR_ANSWER_UNSURE;
		if (answer != WEIR_ANSWER_ADMIT)
			break;
	}
	if (answer == WEIR_ANSWER_UNSURE)
		s->known = s->nth; /* other reservations follow */
	else
		s->expects_admission = answer == WEIR_ANSWER_ADMIT;
	s->flow_memory.is_blocked = answer == WEIR_ANSWER_BLOCK && !s->must_abort && WEIR_SEGMENTS(s) == 1;
	return answer;
}

#endif
