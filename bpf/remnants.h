/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Remnants: what a row leaves behind that is pushed out while it counts, so that a full table does not open the gate.
 * A remnant is one word, in a table that all CPUs share (include/weir_remnants.h): which flow, until when, how many
 * units. Whoever judges the flow adds its remnants to what the rows count, until they expire; nobody takes one back. A
 * flow that its remnants alone show to be full needs no row. docs/lease.md says why that is exact.
 *
 * What finds no place there displaces what counts least. But remnants of a class of windows with a rule that says
 * `whenFull: aggregate` stay, and what finds no place is added to *strangers*: by these a flow of such a rule is judged
 * when it comes without a row and without a remnant, as if all of them were its own, and its new row begins with them.
 *
 * Where no row is pushed out nobody looks here: each page has a word that says until when some remnant may count.
 */
#ifndef WEIR_BPF_REMNANTS_H
#define WEIR_BPF_REMNANTS_H

#include "cells.h"
#include "presence.h"

/* ---- where they are ---- */

static __always_inline struct weir_remnant_set *weir_remnant_set(__u32 set)
{
	return bpf_map_lookup_elem(&remnants, &set);
}

/* Where this CPU counts what was lost. */
static __always_inline struct weir_remnant_set *weir_remnant_head(void)
{
	return weir_remnant_set(config.sizes[WEIR_TABLE_REMNANTS] +
				(bpf_get_smp_processor_id() & (WEIR_REMNANT_HEADS - 1)));
}

/* Until when remnants of the page that a set is in may count. */
static __always_inline __u64 *weir_page_until_ns(__u32 set)
{
	__u32 page = set / WEIR_REMNANT_PAGE_SETS;
	struct weir_remnant_set *pages =
		weir_remnant_set(WEIR_REMNANT_PAGES_SET(config.sizes[WEIR_TABLE_REMNANTS]) + page / WEIR_REMNANT_WAYS);

	OPAQUE(page);
	return pages ? &pages->until_ns[page & (WEIR_REMNANT_WAYS - 1)] : NULL;
}

/* May this flow have remnants that count? By the tick: an older one says yes for longer. */
static __always_inline bool weir_remnants_count(const struct weir_scratch *s, const struct weir_flow_id *id)
{
	const __u64 *until_ns = weir_page_until_ns(id->set << 1 & (config.sizes[WEIR_TABLE_REMNANTS] - 1));

	return until_ns && unlikely(READ_ONCE(*until_ns) > s->tick_ns);
}

/* The strangers of group s->remnant.strangers_group, of class s->remnant.strangers_class. */
static __always_inline __u64 *weir_strangers_word(struct weir_scratch *s)
{
	__u32 group = s->remnant.strangers_group, class = s->remnant.strangers_class;
	struct weir_strangers *words = bpf_map_lookup_elem(&strangers, &group);

	OPAQUE(class);
	return words ? &words->word[class & (WEIR_STRANGERS_CLASSES - 1)] : NULL;
}

/* Whose remnants s->remnant is about: of the flow with this tag, a row of which may be in `row_set`. */
static __always_inline void weir_name_remnant(struct weir_scratch *s, __u32 tag, __u32 row_set, __u32 page_sets,
					      __u32 timing)
{
	__u32 other_row_set = WEIR_OTHER_SET(row_set, tag, page_sets);

	s->remnant.name = WEIR_REMNANT_NAME(tag, timing);
	s->remnant.set = weir_remnant_set_beside(row_set, tag, page_sets, config.sizes[WEIR_TABLE_REMNANTS]);
	s->remnant.other_set =
		weir_remnant_set_beside(other_row_set, tag, page_sets, config.sizes[WEIR_TABLE_REMNANTS]);
	s->remnant.strangers_group = WEIR_STRANGERS_GROUP(s->remnant.set, tag);
}

static __always_inline bool weir_is_named(const struct weir_scratch *s, __u64 word)
{
	return word >> WEIR_REMNANT_NAME_SHIFT == s->remnant.name;
}

/* ---- reading ---- */

/* A remnant that begins in a newer bucket than ours: we have stalled, or it has not been replaced for so long that its
 * number has come round. The caller reads the clock again, and judges anew if it was the former; so it need not count.
 * In the lab, where the clock may go back, it counts.
 */
static __always_inline __u64 weir_units_of_remnant(const struct weir_view *view, __u64 word)
{
	if (config.is_virtual && WEIR_REMNANT_AGE(word, view->bucket) >= WEIR_REMNANT_AHEAD)
		return weir_remnant_units(word & WEIR_REMNANT_COUNT_MASK);
	return weir_remnant_in_window(word, view->bucket, view->window_cells);
}

static __always_inline __u64 weir_units_in_set(const struct weir_scratch *s, __u32 number)
{
	const struct weir_remnant_set *set = weir_remnant_set(number);
	__u64 any = 0, units = 0;

	if (!set)
		return 0;
#pragma unroll
	for (__u32 way = 0; way < WEIR_REMNANT_WAYS; way++)
		any |= (READ_ONCE(set->word[way]) >> WEIR_REMNANT_NAME_SHIFT ^ s->remnant.name) - 1;
	if (likely(!(any >> 63)))
		return 0;
#pragma unroll
	for (__u32 way = 0; way < WEIR_REMNANT_WAYS; way++) {
		__u64 word = READ_ONCE(set->word[way]);

		if (weir_is_named(s, word))
			units += weir_units_of_remnant(&s->view, word);
	}
	return units;
}

/* What the flow of s->view has left behind, in the bucket judged in. A word may be replaced once it has expired by
 * another CPU's clock: whoever admits by the answer reads the clock again.
 */
__noinline __u64 weir_left_units(struct weir_scratch *s)
{
	if (!s)
		return 0;
	weir_name_remnant(s, s->view.flow.tag, s->view.flow.set, s->view.page_sets, s->view.timing);
	return weir_units_in_set(s, s->remnant.set) + weir_units_in_set(s, s->remnant.other_set);
}

/* ---- strangers ---- */

/* What strangers have used, by which the flow of s->view is judged; weir_left_units() has named it. */
__noinline __u64 weir_units_of_strangers(struct weir_scratch *s)
{
	const __u64 *word;

	WEIR_GLOBAL(STRANGERS, s, 0);
	s->remnant.strangers_class = s->view.strangers - 1;
	word = weir_strangers_word(s);
	return word ? weir_units_of_remnant(&s->view, READ_ONCE(*word)) : 0;
}

/* May another CPU have counted the flow of s->view? Asked after its remnants were read: one that another CPU left was
 * announced before.
 */
static __always_inline bool weir_may_be_elsewhere(struct weir_scratch *s)
{
	const __u32 *cell;

	if (config.cpus == 1)
		return false;
	weir_order(s);
	cell = s->view.asks_all ? NULL : weir_presence_cell(&s->view.flow);
	return !cell || !weir_is_alone(READ_ONCE(*cell) & WEIR_PRESENCE_FIELDS, weir_this_cpu(s));
}

/* What the flow of s->view has used that has no row here, beside what rows of other CPUs count. Without a remnant, or
 * when the remnant may be another CPU's and what this one counted was lost, it is a stranger: s->remnant.inherited.
 */
__noinline __u64 weir_left_without_row(struct weir_scratch *s)
{
	__u64 units = weir_left_units(s);

	if (!s)
		return 0;
	s->remnant.inherited = 0;
	if (config.strangers && s->view.strangers && (!units || weir_may_be_elsewhere(s)))
		s->remnant.inherited = weir_units_of_strangers(s);
	return units + s->remnant.inherited;
}

/* ---- leaving one ---- */

#define WEIR_REMNANT_TRIES 8

/* The set beside the row that goes, the *near* one, was fetched with the newcomer's own; the far one must be waited
 * for: 180 of 960 ns (a flood of new sources, all full; test run). So nobody looks there while this many words of the
 * near one are free or more, nor, most of the time, when so many looks in a row have found no free word. Chosen, not
 * derived: of the remnants of flows for four times the rows 0.2 % are lost, 2 % under smooth windows. With 8 and ~0u
 * every remnant looks at both. So does every one where a rule says `whenFull: aggregate`: a flow must not join
 * strangers that has a remnant, and what joins them is dearer.
 */
#define WEIR_REMNANT_FREE_NEAR 3
#define WEIR_REMNANT_VAIN_LOOKS 16

/* How much it would hurt to lose a word, in ascending order: the flow's own, which its units are added to; one that is
 * free or has expired; one of a timing that nobody else knows; one that counts, by its units, and then the older one;
 * one that stays, as a rule with such windows says `whenFull: aggregate`.
 * A free word's rank is RANK_FREE and the words of its set that are not free: of two sets that are looked at the
 * emptier one is taken.
 */
#define WEIR_REMNANT_RANK_OWN 0ull
#define WEIR_REMNANT_RANK_FREE 1ull
#define WEIR_REMNANT_RANK_UNKNOWN (WEIR_REMNANT_RANK_FREE + WEIR_REMNANT_WAYS)
#define WEIR_REMNANT_RANK_COUNTS (WEIR_REMNANT_RANK_UNKNOWN + 1)
#define WEIR_REMNANT_RANK_STAYS (1ull << 56)

/* Do remnants of this timing stay? A word does not say which rows it comes from. */
static __always_inline bool weir_shares_with_strangers(__u32 timing)
{
	__u32 of_any_rows = config.strangers | config.strangers >> WEIR_STRANGERS_TIMINGS;

	return of_any_rows >> timing & (timing < WEIR_STRANGERS_TIMINGS);
}

static __always_inline __u64 weir_remnant_rank(struct weir_scratch *s, __u64 word)
{
	__u32 timing = word >> WEIR_REMNANT_NAME_SHIFT & 15;
	__u64 expired = s->remnant.expired;

	if (!word)
		return WEIR_REMNANT_RANK_FREE;
	if (weir_is_named(s, word))
		return WEIR_REMNANT_RANK_OWN;
	if (timing != (s->remnant.name & 15)) {
		if (timing == WEIR_REMNANT_TIMINGS)
			return WEIR_REMNANT_RANK_UNKNOWN;
		expired = weir_expired_bucket(s, timing, WEIR_NARROW);
	}
	if (!weir_remnant_counts(word, expired))
		return WEIR_REMNANT_RANK_FREE;
	if (config.strangers && weir_shares_with_strangers(timing))
		return WEIR_REMNANT_RANK_STAYS;
	return WEIR_REMNANT_RANK_COUNTS + ((word & WEIR_REMNANT_COUNT_MASK) << WEIR_REMNANT_START_BITS) +
	       (WEIR_REMNANT_START_MASK - WEIR_REMNANT_AGE(word, expired + WEIR_REMNANT_SPAN_MASK));
}

/* The word of a set that is first to go: its rank, and behind it its way. */
__noinline __u64 weir_rank_remnants(struct weir_scratch *s, __u32 number)
{
	const struct weir_remnant_set *set;
	__u64 least = ~0ull >> 1, taken = 0;

	if (!s)
		return least;
	set = weir_remnant_set(number);
	if (!set)
		return least;
#pragma unroll
	for (__u32 way = 0; way < WEIR_REMNANT_WAYS; way++) {
		__u64 rank = weir_remnant_rank(s, READ_ONCE(set->word[way])), less;

		taken += !weir_top_bit(rank - WEIR_REMNANT_RANK_UNKNOWN);
		less = rank * WEIR_REMNANT_WAYS + way - least;
		least += less * weir_top_bit(less);
	}
	/* Else the verifier follows every rank of every way: 162,000 instructions of Linux 6.1's million. */
	FORGET(s->forgotten, least);
	return least / WEIR_REMNANT_WAYS == WEIR_REMNANT_RANK_FREE ? least + taken * WEIR_REMNANT_WAYS : least;
}

/* Verified once: it has many ways. */
__noinline __u32 weir_remnant_count_of(__u64 units)
{
	return weir_remnant_count(units);
}

/* The flow's word with the units of s->remnant, which its row counted up to bucket s->remnant.newest. */
__noinline __u64 weir_remnant_with(struct weir_scratch *s, __u64 word)
{
	__u32 age, span = 0, cells;
	__u64 units, start, before = 0;

	if (!s)
		return 0;
	age = WEIR_REMNANT_AGE(word, s->remnant.newest);
	cells = s->remnant.window_cells;
	units = s->remnant.units;
	start = s->remnant.newest;
	if (word && weir_is_named(s, word)) {
		span = weir_remnant_span(word);
		before = word >> WEIR_REMNANT_COUNT_BITS & WEIR_REMNANT_COUNT_MASK;
		if (age >= WEIR_REMNANT_AHEAD || age <= span || (before && age + 1 < cells)) {
			/* `before` still counts, or what is new is not newer than `units` */
			if (age < WEIR_REMNANT_AHEAD && age > span)
				span = age;
			units += weir_remnant_units(word & WEIR_REMNANT_COUNT_MASK);
			start = word >> WEIR_REMNANT_START_SHIFT;
		} else if (age < span + cells) {
			before = word & WEIR_REMNANT_COUNT_MASK;
			start -= age - span - 1; /* the bucket after those of `before` */
			span = age - span - 1;
		} else {
			before = span = 0;
		}
	}
	return WEIR_REMNANT_WORD(s->remnant.name, start, span, weir_remnant_count_of(units), before);
}

/* Remnants of the page may count until then: told before the first of them is there. */
static __always_inline void weir_extend_remnants(struct weir_scratch *s)
{
	/* A second: more than a tick is late, or two CPUs' ticks differ; and one more, so that it is seldom written. */
	__u64 least = s->tick_ns + s->remnant.span_ns + WEIR_NSEC_PER_SEC;
	__u64 *page_until_ns = weir_page_until_ns(s->remnant.set);

	for (int i = 0; page_until_ns && i < WEIR_REMNANT_TRIES; i++) {
		__u64 until_ns = READ_ONCE(*page_until_ns);

		if (until_ns >= least ||
		    __sync_val_compare_and_swap(page_until_ns, until_ns, least + WEIR_NSEC_PER_SEC) == until_ns)
			return;
	}
}

/* s->remnant has found no place. Strangers count it if its class has any; else it is lost. */
__noinline int weir_join_strangers(struct weir_scratch *s)
{
	struct weir_remnant_set *head = weir_remnant_head();
	__u64 *word;

	if (!s || !head)
		return 0;
	word = config.strangers >> s->remnant.strangers_class & 1 ? weir_strangers_word(s) : NULL;
	s->remnant.name = WEIR_STRANGERS_NAME;
	for (int i = 0; word && i < WEIR_REMNANT_TRIES; i++) {
		__u64 seen = READ_ONCE(*word);

		if (__sync_val_compare_and_swap(word, seen, weir_remnant_with(s, seen)) == seen) {
			__sync_fetch_and_add(&head->joined, 1);
			return 0;
		}
	}
	__sync_fetch_and_add(&head->displaced, 1);
	return 0;
}

/* Is the far set looked at, when the near one's first word to go has this rank? */
static __always_inline bool weir_looks_far(struct weir_scratch *s, __u64 rank)
{
	if (config.strangers)
		return true;
	if (rank < WEIR_REMNANT_RANK_UNKNOWN)
		return rank > WEIR_REMNANT_RANK_FREE + WEIR_REMNANT_WAYS - WEIR_REMNANT_FREE_NEAR;
	return s->remnant.vain_looks < WEIR_REMNANT_VAIN_LOOKS ||
	       ++s->remnant.vain_looks % WEIR_REMNANT_VAIN_LOOKS == 0;
}

/* The word of the far set that is first to go; whether it is a better place than any of a full near set is noted. */
static __always_inline __u64 weir_look_far(struct weir_scratch *s)
{
	__u64 least = weir_rank_remnants(s, s->remnant.other_set);

	if (least / WEIR_REMNANT_WAYS < WEIR_REMNANT_RANK_UNKNOWN)
		s->remnant.vain_looks = 0;
	else
		s->remnant.vain_looks++;
	return least;
}

/* Put s->remnant into the table. False: it has no place there. */
__noinline int weir_keep_remnant(struct weir_scratch *s)
{
	struct weir_remnant_set *head = weir_remnant_head();

	if (!s || !head)
		return true;
	weir_extend_remnants(s);
	for (int i = 0; i < WEIR_REMNANT_TRIES; i++) {
		__u32 number = s->remnant.set;
		__u64 least = weir_rank_remnants(s, number), rank, word;
		struct weir_remnant_set *set;

		if (weir_looks_far(s, least / WEIR_REMNANT_WAYS)) {
			rank = weir_look_far(s);
			if (rank / WEIR_REMNANT_WAYS < least / WEIR_REMNANT_WAYS) {
				least = rank;
				number = s->remnant.other_set;
			}
		}
		set = weir_remnant_set(number);
		if (!set)
			return true;
		rank = least / WEIR_REMNANT_WAYS;
		OPAQUE(least);
		least &= WEIR_REMNANT_WAYS - 1;
		word = READ_ONCE(set->word[least]);
		if (rank > WEIR_REMNANT_RANK_FREE && rank < WEIR_REMNANT_RANK_UNKNOWN)
			rank = WEIR_REMNANT_RANK_FREE;
		if (rank == WEIR_REMNANT_RANK_STAYS)
			break;
		if (weir_remnant_rank(s, word) != rank)
			continue; /* another CPU has changed it meanwhile */
		if (__sync_val_compare_and_swap(&set->word[least], word, weir_remnant_with(s, word)) != word)
			continue;
		if (rank >= WEIR_REMNANT_RANK_UNKNOWN)
			__sync_fetch_and_add(&head->displaced, 1);
		return true;
	}
	return false;
}

/* Units of a row that count, in buckets after `expired`, without what is leased. */
static __always_inline __u64 weir_units_after(void *row, __u64 newest, __u64 expired, const enum weir_width wide)
{
	__u64 buckets = newest - expired, flags = 0;

	if (buckets > WEIR_RING_CELLS)
		buckets = WEIR_RING_CELLS;
	return weir_sum_cells(row, weir_cells_aged(weir_cell_of(newest), 0, buckets), &flags, wide) -
	       weir_lease_get(row, wide);
}

/* Our row goes to another flow: what it counts becomes a remnant. The compare-and-swap that puts it there succeeds, and
 * is a full barrier, to be passed before the row's tag changes: whoever then misses the row finds the remnant.
 */
static __always_inline void weir_leave(struct weir_scratch *s, __u32 number, const enum weir_width wide)
{
	void *row = weir_row_by_number(number, wide);
	const struct weir_timing *t;
	__u32 timing, tag;
	__u64 newest;

	if (!row)
		return;
	tag = ROW_GET(row, wide, tag);
	newest = ROW_GET(row, wide, newest);
	timing = wide == WEIR_WIDE ? ((struct weir_wide_row *)row)->timing : tag & (WEIR_TIMINGS_NARROW - 1);
	t = bpf_map_lookup_elem(&timings, &timing);
	if (!t)
		return;
	s->remnant.newest = newest;
	s->remnant.window_cells = t->window_cells;
	s->remnant.span_ns = (t->window_cells + 1) * t->bucket_ns;
	weir_name_remnant(s, tag, number / WEIR_WAYS, WEIR_PAGE_SETS(wide), timing);
	s->remnant.strangers_class = timing < WEIR_STRANGERS_TIMINGS ? WEIR_STRANGERS_CLASS(timing, wide == WEIR_NARROW)
								     : WEIR_STRANGERS_CLASSES;
	s->remnant.expired =
		timing == s->view.timing ? s->view.bucket - s->view.window_cells : weir_expired_bucket(s, timing, wide);
	s->remnant.units = weir_units_after(row, newest, s->remnant.expired, wide);
	if (s->remnant.units && !weir_keep_remnant(s))
		weir_join_strangers(s);
}

__noinline int weir_leave_remnant(struct weir_scratch *s, __u32 number, __u32 wide)
{
	if (!s)
		return 0;
	if (wide == WEIR_WIDE)
		weir_leave(s, number, WEIR_WIDE);
	else if (wide == WEIR_MEDIUM)
		weir_leave(s, number, WEIR_MEDIUM);
	else
		weir_leave(s, number, WEIR_NARROW);
	return 0;
}

/* ---- a row for a flow that has none ---- */

/* The number of a row for s->view.flow, which has none, or WEIR_NO_ROW when earlier rules of the packet have claims to
 * all eight candidates. An eviction is counted, and leaves a remnant.
 */
static __always_inline __u32 weir_choose_row(struct weir_scratch *s, const enum weir_width wide)
{
	__u64 choice = weir_choose_by_width(s, false, wide);

	if (unlikely(choice & WEIR_CHOICE_EVICTS && s->nth && weir_is_row_claimed(s, choice, WEIR_STORAGE(wide))))
		choice = weir_choose_by_width(s, true, wide);
	if (choice & WEIR_CHOICE_EVICTS) {
		weir_leave_remnant(s, choice, wide);
		weir_count_eviction(s->view.slot);
	}
	return choice;
}

#endif
