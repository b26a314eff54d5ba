/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ghosts of rows. A row that is evicted while it counts leaves a ghost, so that limits still hold when the table is
 * full. A ghost is one word in a table that all CPUs share (include/weir_row_ghosts.h). It says which flow it belongs
 * to, until when it counts, and how many units. A CPU that evaluates the flow adds its ghosts to the counts of the
 * rows, until the ghosts expire; ghosts are never turned back into rows. A flow that is over its limit by its ghosts
 * alone needs no row. docs/internals/lease.md says why this is exact.
 *
 * If both sets are full, the ghost with the lowest count is replaced. But if some rule with the same class of windows
 * has `whenFull: aggregate`, these ghosts stay, and the new one is added to an *overflow window*. A flow of such a rule
 * that has neither row nor ghost is evaluated as if the whole overflow window were its own, and its new row begins with
 * that count.
 *
 * While no row is evicted, no packet looks for ghosts: each page has a word that says until when some of its ghosts may
 * count.
 */
#ifndef WEIR_BPF_ROW_GHOSTS_H
#define WEIR_BPF_ROW_GHOSTS_H

#include "window/cells.h"
#include "window/sharers.h"

/* ---- where they are ---- */

static __always_inline struct weir_row_ghost_set *weir_row_ghost_set(__u32 set)
{
	return bpf_map_lookup_elem(&row_ghosts, &set);
}

/* This CPU's counters of lost ghosts. */
static __always_inline struct weir_row_ghost_set *weir_row_ghost_head(struct weir_scratch *s)
{
	return weir_row_ghost_set(config.sizes[WEIR_TABLE_ROW_GHOSTS] +
				  (weir_this_cpu(s) & (WEIR_ROW_GHOST_HEADS - 1)));
}

/* Until when ghosts of the page that a set is in may count. */
static __always_inline __u64 *weir_page_until_ns(__u32 set)
{
	__u32 page = set / WEIR_ROW_GHOST_PAGE_SETS;
	struct weir_row_ghost_set *pages = weir_row_ghost_set(
		WEIR_ROW_GHOST_PAGES_SET(config.sizes[WEIR_TABLE_ROW_GHOSTS]) + page / WEIR_ROW_GHOST_WAYS);

	OPAQUE(page);
	return pages ? &pages->until_ns[page & (WEIR_ROW_GHOST_WAYS - 1)] : NULL;
}

/* May this flow have ghosts that count? Evaluated by the tick; a late tick only says yes for longer. */
static __always_inline bool weir_row_ghosts_count(const struct weir_scratch *s, const struct weir_flow_id *id)
{
	const __u64 *until_ns = weir_page_until_ns(id->set << 1 & (config.sizes[WEIR_TABLE_ROW_GHOSTS] - 1));

	return until_ns && unlikely(READ_ONCE(*until_ns) > s->tick_ns);
}

/* The overflow window of s->row_ghost's group of flows, of s->row_ghost.overflow_class. */
static __always_inline __u64 *weir_overflow_window(struct weir_scratch *s)
{
	__u32 group = WEIR_OVERFLOW_GROUP(s->row_ghost.set, s->row_ghost.tag), class = s->row_ghost.overflow_class;
	struct weir_overflow_windows *words = bpf_map_lookup_elem(&overflow_windows, &group);

	OPAQUE(class);
	return words ? &words->word[class & (WEIR_OVERFLOW_CLASSES - 1)] : NULL;
}

/* Make s->row_ghost describe the ghosts of the flow with this tag, a row of which may be in `row_set`. */
static __always_inline void weir_name_row_ghost(struct weir_scratch *s, __u32 tag, __u32 row_set, __u32 page_sets,
						__u32 spec)
{
	__u32 other_row_set = WEIR_OTHER_SET(row_set, tag, page_sets);

	s->row_ghost.name = WEIR_ROW_GHOST_NAME(tag, spec);
	s->row_ghost.set = weir_row_ghost_set_beside(row_set, tag, page_sets, config.sizes[WEIR_TABLE_ROW_GHOSTS]);
	s->row_ghost.other_set =
		weir_row_ghost_set_beside(other_row_set, tag, page_sets, config.sizes[WEIR_TABLE_ROW_GHOSTS]);
	s->row_ghost.tag = tag;
}

static __always_inline bool weir_is_named(const struct weir_scratch *s, __u64 word)
{
	return word >> WEIR_ROW_GHOST_NAME_SHIFT == s->row_ghost.name;
}

/* ---- reading ---- */

/* This ghost begins in a newer bucket than ours. Either we have stalled, or the ghost is so old that its bucket number
 * has wrapped. The caller reads the clock again, and evaluates again if we have stalled. So the ghost need not count
 * here. In the test harness, where the clock may go back, it counts.
 */
static __always_inline __u64 weir_units_of_row_ghost(const struct weir_view *view, __u64 word)
{
	if (config.is_virtual && WEIR_ROW_GHOST_AGE(word, view->bucket) >= WEIR_ROW_GHOST_AHEAD)
		return weir_row_ghost_units(weir_row_ghost_stored(word));
	return weir_row_ghost_in_window(word, view->bucket, view->window_cells);
}

static __always_inline __u64 weir_units_in_set(const struct weir_scratch *s, __u32 number)
{
	const struct weir_row_ghost_set *set = weir_row_ghost_set(number);
	__u64 any = 0, units = 0;

	if (!set)
		return 0;
#pragma unroll
	for (__u32 way = 0; way < WEIR_ROW_GHOST_WAYS; way++)
		any |= (READ_ONCE(set->word[way]) >> WEIR_ROW_GHOST_NAME_SHIFT ^ s->row_ghost.name) - 1;
	if (likely(!(any >> 63)))
		return 0;
#pragma unroll
	for (__u32 way = 0; way < WEIR_ROW_GHOST_WAYS; way++) {
		__u64 word = READ_ONCE(set->word[way]);

		if (weir_is_named(s, word))
			units += weir_units_of_row_ghost(&s->view, word);
	}
	return units;
}

/* The units in the ghosts of the flow of s->view, in the bucket that it is evaluated in. Another CPU, by its own clock,
 * may have replaced a word that has expired. So a caller that admits by this sum reads the clock again.
 */
__noinline __u64 weir_left_units(struct weir_scratch *s)
{
	if (!s)
		return 0;
	weir_name_row_ghost(s, s->view.flow.tag, s->view.flow.set, s->view.page_sets, s->view.spec);
	return weir_units_in_set(s, s->row_ghost.set) + weir_units_in_set(s, s->row_ghost.other_set);
}

/* ---- the overflow window ---- */

/* The count of the overflow window, against which the flow of s->view is evaluated; weir_left_units() has chosen it. */
__noinline __u64 weir_units_of_overflow(struct weir_scratch *s)
{
	const __u64 *word;

	WEIR_GLOBAL(OVERFLOW_WINDOWS, s, 0);
	s->row_ghost.overflow_class = s->view.overflow - 1;
	word = weir_overflow_window(s);
	return word ? weir_units_of_row_ghost(&s->view, READ_ONCE(*word)) : 0;
}

/* May another CPU have counted the flow of s->view? Call this after reading the flow's ghosts, because a CPU announces
 * itself before it leaves one.
 */
static __always_inline bool weir_may_be_elsewhere(struct weir_scratch *s)
{
	const __u32 *cell;

	if (config.cpus == 1)
		return false;
	weir_order(s);
	cell = s->view.asks_all ? NULL : weir_sharers_cell(&s->view.flow);
	return !cell || !weir_is_alone(READ_ONCE(*cell) & WEIR_SHARERS_FIELDS, weir_this_cpu(s));
}

/* The flow of s->view has no row here. Returns what it has used, apart from the counts in rows of other CPUs. If it has
 * no ghost, or only one that may be another CPU's while this CPU's count was lost, the count of the overflow window
 * applies (s->row_ghost.inherited).
 */
static __always_inline __u64 weir_left_without_row(struct weir_scratch *s)
{
	__u64 units = weir_left_units(s);

	s->row_ghost.inherited = 0;
	if (config.overflow_classes && s->view.overflow && (!units || weir_may_be_elsewhere(s)))
		s->row_ghost.inherited = weir_units_of_overflow(s);
	return units + s->row_ghost.inherited;
}

/* ---- leaving one ---- */

#define WEIR_ROW_GHOST_TRIES 8

/* A ghost has two candidate sets. The *near* one, beside the evicted row, was fetched with the new flow's own lines.
 * The far one has to be waited for, which takes 180 of 960 ns (a flood of new sources, all over their limits; test
 * run). So the far set is not looked at while at least this many words of the near set are free, nor, most of the time,
 * after this many looks in a row have found no free word there. Chosen, not derived: with four times as many flows as
 * rows, 0.2 % of their ghosts are lost, 2 % under smooth windows. With 8 and ~0u, both sets are always looked at. If a
 * rule has `whenFull: aggregate`, both sets are always looked at, too, because a flow that has a ghost must not join
 * the overflow window, and joining it costs more.
 */
#define WEIR_ROW_GHOST_FREE_NEAR 3
#define WEIR_ROW_GHOST_VAIN_LOOKS 16

/* The rank of a word says how much it would hurt to lose it. In ascending order: the flow's own word, to which the
 * units are added; a word that is free or has expired; a word of a window spec whose buckets only its own flows know,
 * so that nothing is known about its age; a word that counts, by its units, then by its age and its stamp; a word that
 * stays, because a rule with such windows has `whenFull: aggregate`. The rank of a free word is RANK_FREE plus the
 * number of words in its set that are not free, so that the emptier of two sets is taken.
 */
#define WEIR_ROW_GHOST_RANK_OWN 0ull
#define WEIR_ROW_GHOST_RANK_FREE 1ull
#define WEIR_ROW_GHOST_RANK_UNKNOWN (WEIR_ROW_GHOST_RANK_FREE + WEIR_ROW_GHOST_WAYS)
#define WEIR_ROW_GHOST_RANK_COUNTS (WEIR_ROW_GHOST_RANK_UNKNOWN + 1)
#define WEIR_ROW_GHOST_RANK_STAYS (1ull << 56)

#define WEIR_ROW_GHOST_WORTH_SHIFT (WEIR_ROW_GHOST_START_BITS + WEIR_ROW_GHOST_STAMP_BITS) /* no word is older */

/* No word of this window spec without units ranks higher. A word does not say which rows it comes from. */
static __always_inline __u64 weir_row_ghost_highest(__u32 spec)
{
	__u64 highest = WEIR_ROW_GHOST_RANK_COUNTS + WEIR_ROW_GHOST_PARTS_MASK;
	__u32 stay = config.overflow_classes;

	if (stay && spec < WEIR_OVERFLOW_SPECS && (stay | stay >> WEIR_OVERFLOW_SPECS) >> spec & 1)
		highest += WEIR_ROW_GHOST_RANK_STAYS;
	return highest;
}

/* The last bucket of the word's window spec that has expired is WEIR_ROW_GHOST_AHEAD_MAX before `latest`. As in
 * weir_row_ghost_counts(); but a span is stored plus one.
 */
static __always_inline __u64 weir_rank_in_spec(__u64 word, __u32 latest, __u64 highest)
{
	__u32 parts = WEIR_ROW_GHOST_PARTS_BEHIND(word, latest);
	__u32 span = word & WEIR_ROW_GHOST_SPAN_MASK;

	if (parts >= (WEIR_ROW_GHOST_AHEAD_MAX - 1 + span) << WEIR_ROW_GHOST_STAMP_BITS)
		return WEIR_ROW_GHOST_RANK_FREE;
	return (WEIR_ROW_GHOST_WORTH(word) << WEIR_ROW_GHOST_WORTH_SHIFT) - parts + highest;
}

__noinline __u64 weir_rank_other_spec(struct weir_scratch *s, __u64 word)
{
	__u32 spec = word >> WEIR_ROW_GHOST_NAME_SHIFT & 15;

	if (!s || spec == WEIR_ROW_GHOST_SPECS)
		return WEIR_ROW_GHOST_RANK_UNKNOWN;
	return weir_rank_in_spec(word, weir_find_expired(s, spec, WEIR_NARROW) + WEIR_ROW_GHOST_AHEAD_MAX,
				 weir_row_ghost_highest(spec));
}

/* `own` is the name of the ghost that is being left; `latest` and `highest` are of its window spec. */
static __always_inline __u64 weir_row_ghost_rank(struct weir_scratch *s, __u64 word, __u32 own, __u32 latest,
						 __u64 highest)
{
	__u32 differs = word >> WEIR_ROW_GHOST_NAME_SHIFT ^ own;

	if (!word)
		return WEIR_ROW_GHOST_RANK_FREE;
	if (!differs)
		return WEIR_ROW_GHOST_RANK_OWN;
	return unlikely(differs & 15) ? weir_rank_other_spec(s, word) : weir_rank_in_spec(word, latest, highest);
}

/* The word of a set with the lowest rank: its rank, with its way in the lowest bits. */
__noinline __u64 weir_rank_row_ghosts(struct weir_scratch *s, __u32 number)
{
	const struct weir_row_ghost_set *set;
	__u64 least = ~0ull >> 1, highest;
	__u32 own, latest;

	if (!s)
		return least;
	set = weir_row_ghost_set(number);
	if (!set)
		return least;
	own = s->row_ghost.name;
	latest = s->row_ghost.expired + WEIR_ROW_GHOST_AHEAD_MAX;
	highest = weir_row_ghost_highest(own & 15);
	OPAQUE(latest);
	OPAQUE(highest);
	s->row_ghost.taken = WEIR_ROW_GHOST_WAYS;
#pragma unroll
	for (__u32 way = 0; way < WEIR_ROW_GHOST_WAYS; way++) {
		__u64 rank = weir_row_ghost_rank(s, READ_ONCE(set->word[way]), own, latest, highest), less;

		if (rank == WEIR_ROW_GHOST_RANK_FREE)
			s->row_ghost.taken--;
		less = rank * WEIR_ROW_GHOST_WAYS + way - least;
		least += less * weir_top_bit(less);
	}
	/* Otherwise the verifier follows every rank of every way, which takes 162,000 of Linux 6.1's million
	 * instructions.
	 */
	FORGET(s->forgotten, least);
	if (least / WEIR_ROW_GHOST_WAYS == WEIR_ROW_GHOST_RANK_FREE)
		least += s->row_ghost.taken * WEIR_ROW_GHOST_WAYS;
	return least;
}

/* Verified once: it has many ways. */
__noinline __u32 weir_row_ghost_count_of(__u64 units)
{
	return weir_row_ghost_count(units);
}

/* The flow's word after adding the units of s->row_ghost, which its row counted up to bucket s->row_ghost.newest. */
__noinline __u64 weir_row_ghost_with(struct weir_scratch *s, __u64 word)
{
	__u32 age, span, cells;
	__u64 units, start, before;

	if (!s)
		return 0;
	units = s->row_ghost.units;
	start = s->row_ghost.newest;
	if (!word || !weir_is_named(s, word))
		return WEIR_ROW_GHOST_STAMPED(s->row_ghost.name, start, weir_row_ghost_count_of(units),
					      s->row_ghost.stamp);
	age = WEIR_ROW_GHOST_AGE(word, start);
	cells = s->row_ghost.window_cells;
	span = weir_row_ghost_span(word);
	before = weir_row_ghost_before(word);
	if (age >= WEIR_ROW_GHOST_AHEAD || age <= span || (before && age + 1 < cells)) {
		/* `before` still counts, or what is new is not newer than `units` */
		if (age < WEIR_ROW_GHOST_AHEAD && age > span)
			span = age;
		units += weir_row_ghost_units(weir_row_ghost_stored(word));
		start = WEIR_ROW_GHOST_START(word);
	} else if (age < span + cells) {
		before = weir_row_ghost_stored(word);
		start -= age - span - 1; /* the bucket after those of `before` */
		span = age - span - 1;
	} else {
		before = span = 0;
	}
	return WEIR_ROW_GHOST_WORD(s->row_ghost.name, start, span, weir_row_ghost_count_of(units), before);
}

/* Record until when ghosts of the page may count. Call this before the ghost is written. */
static __always_inline void weir_extend_row_ghosts(struct weir_scratch *s)
{
	/* One second, which is more than a tick can be late or two CPUs' ticks can differ, and one more, so that the
	 * word is seldom written.
	 */
	__u64 least = s->tick_ns + s->row_ghost.span_ns + WEIR_NSEC_PER_SEC;
	__u64 *page_until_ns = weir_page_until_ns(s->row_ghost.set);

	for (int i = 0; page_until_ns && i < WEIR_ROW_GHOST_TRIES; i++) {
		__u64 until_ns = READ_ONCE(*page_until_ns);

		if (until_ns >= least ||
		    __sync_val_compare_and_swap(page_until_ns, until_ns, least + WEIR_NSEC_PER_SEC) == until_ns)
			return;
	}
}

/* s->row_ghost has found no slot. If its class has an overflow window, add it there; otherwise it is lost. */
__noinline int weir_join_overflow_window(struct weir_scratch *s)
{
	struct weir_row_ghost_set *head = s ? weir_row_ghost_head(s) : NULL;
	__u64 *word;

	if (!head)
		return 0;
	word = config.overflow_classes >> s->row_ghost.overflow_class & 1 ? weir_overflow_window(s) : NULL;
	s->row_ghost.name = WEIR_OVERFLOW_NAME;
	for (int i = 0; word && i < WEIR_ROW_GHOST_TRIES; i++) {
		__u64 seen = READ_ONCE(*word);

		if (__sync_val_compare_and_swap(word, seen, weir_row_ghost_with(s, seen)) == seen) {
			__sync_fetch_and_add(&head->joined, 1);
			return 0;
		}
	}
	__sync_fetch_and_add(&head->displaced, 1);
	return 0;
}

/* Should the far set be looked at, if the lowest rank in the near set is `rank`? */
static __always_inline bool weir_looks_far(struct weir_scratch *s, __u64 rank)
{
	if (config.overflow_classes)
		return true;
	if (rank < WEIR_ROW_GHOST_RANK_UNKNOWN)
		return rank > WEIR_ROW_GHOST_RANK_FREE + WEIR_ROW_GHOST_WAYS - WEIR_ROW_GHOST_FREE_NEAR;
	return s->row_ghost.vain_looks < WEIR_ROW_GHOST_VAIN_LOOKS ||
	       ++s->row_ghost.vain_looks % WEIR_ROW_GHOST_VAIN_LOOKS == 0;
}

/* The word of the far set with the lowest rank. Also notes whether that word was free while the near set was full. */
static __always_inline __u64 weir_look_far(struct weir_scratch *s)
{
	__u64 least = weir_rank_row_ghosts(s, s->row_ghost.other_set);

	if (least / WEIR_ROW_GHOST_WAYS < WEIR_ROW_GHOST_RANK_UNKNOWN)
		s->row_ghost.vain_looks = 0;
	else
		s->row_ghost.vain_looks++;
	return least;
}

/* Put s->row_ghost into the table. False: there is no slot for it. */
__noinline int weir_keep_row_ghost(struct weir_scratch *s)
{
	if (!s)
		return true;
	weir_extend_row_ghosts(s);
	for (int i = 0; i < WEIR_ROW_GHOST_TRIES; i++) {
		__u32 number = s->row_ghost.set;
		__u64 least = weir_rank_row_ghosts(s, number), rank, word;
		struct weir_row_ghost_set *set;

		if (weir_looks_far(s, least / WEIR_ROW_GHOST_WAYS)) {
			rank = weir_look_far(s);
			if (rank / WEIR_ROW_GHOST_WAYS < least / WEIR_ROW_GHOST_WAYS) {
				least = rank;
				number = s->row_ghost.other_set;
			}
		}
		set = weir_row_ghost_set(number);
		if (!set)
			return true;
		rank = least / WEIR_ROW_GHOST_WAYS;
		OPAQUE(least);
		least &= WEIR_ROW_GHOST_WAYS - 1;
		word = READ_ONCE(set->word[least]);
		if (rank > WEIR_ROW_GHOST_RANK_FREE && rank < WEIR_ROW_GHOST_RANK_UNKNOWN)
			rank = WEIR_ROW_GHOST_RANK_FREE;
		if (rank >= WEIR_ROW_GHOST_RANK_STAYS)
			break;
		if (weir_row_ghost_rank(s, word, s->row_ghost.name, s->row_ghost.expired + WEIR_ROW_GHOST_AHEAD_MAX,
					weir_row_ghost_highest(s->row_ghost.name & 15)) != rank)
			continue; /* another CPU has changed it meanwhile */
		if (__sync_val_compare_and_swap(&set->word[least], word, weir_row_ghost_with(s, word)) != word)
			continue;
		set = rank >= WEIR_ROW_GHOST_RANK_UNKNOWN ? weir_row_ghost_head(s) : NULL;
		if (set)
			__sync_fetch_and_add(&set->displaced, 1);
		return true;
	}
	return false;
}

/* The units of a row in buckets after `expired`, without leased units. */
static __always_inline __u64 weir_units_after(void *row, __u64 newest, __u64 expired, const enum weir_width wide)
{
	__u64 buckets = newest - expired, flags = 0;

	if (buckets > WEIR_RING_CELLS)
		buckets = WEIR_RING_CELLS;
	return weir_sum_cells(row, weir_cells_aged(weir_cell_of(newest), 0, buckets), &flags, wide) -
	       weir_lease_get(row, wide);
}

/* Stamp s->row_ghost, whose units are in buckets up to s->row_ghost.newest; its window spec's clock is current. After
 * that bucket, it is as new as any ghost of the bucket.
 */
static __always_inline void weir_stamp_row_ghost(struct weir_scratch *s, const struct weir_window_spec *t, __u32 spec,
						 const enum weir_width wide)
{
	const struct weir_clock *clk = weir_clock_of(s, spec, wide);
	__u64 stamp;

	s->row_ghost.stamp = WEIR_ROW_GHOST_STAMP_MAX;
	if (!clk || (s->row_ghost.newest ^ clk->bucket) & WEIR_ROW_GHOST_START_MASK)
		return;
	stamp = ((t->goes_by_ticks ? s->tick_ns : weir_now_ns(s)) - clk->start_ns) /
		(t->bucket_ns >> WEIR_ROW_GHOST_STAMP_BITS);
	if (stamp < WEIR_ROW_GHOST_STAMP_MAX)
		s->row_ghost.stamp = stamp;
}

/* Our row is given to another flow, so its count becomes a ghost. The compare-and-swap that writes the ghost is a full
 * barrier when it succeeds. It must come before the row's tag changes, so that a CPU that no longer finds the row finds
 * the ghost.
 */
static __always_inline void weir_leave(struct weir_scratch *s, void *row, __u32 number, const enum weir_width wide)
{
	__u32 tag = ROW_GET(row, wide, tag), spec = weir_row_spec(row, tag, wide);
	const struct weir_window_spec *t = bpf_map_lookup_elem(&window_specs, &spec);
	__u64 newest = ROW_GET(row, wide, newest);

	if (!t)
		return;
	s->row_ghost.newest = newest;
	s->row_ghost.window_cells = t->window_cells;
	s->row_ghost.span_ns = (t->window_cells + 1) * t->bucket_ns;
	weir_name_row_ghost(s, tag, number / WEIR_WAYS, WEIR_PAGE_SETS(wide), spec);
	s->row_ghost.overflow_class =
		spec < WEIR_OVERFLOW_SPECS ? WEIR_OVERFLOW_CLASS(spec, wide == WEIR_NARROW) : WEIR_OVERFLOW_CLASSES;
	s->row_ghost.expired =
		spec == s->view.spec ? s->view.bucket - s->view.window_cells : weir_expired_bucket(s, spec, wide);
	weir_stamp_row_ghost(s, t, spec, wide);
	s->row_ghost.units = weir_units_after(row, newest, s->row_ghost.expired, wide);
	if (s->row_ghost.units && !weir_keep_row_ghost(s))
		weir_join_overflow_window(s);
}

/* ---- a row for a flow that has none ---- */

/* Make room for s->view.flow: evict a row, and return its number. WEIR_NO_ROW: earlier rules of the packet have
 * reservations in all eight candidates. An eviction is counted, and leaves a ghost.
 */
static __always_inline __u32 weir_evict(struct weir_scratch *s, const enum weir_width wide)
{
	void *chunk = weir_chunk_of(s->view.flow.set, -1, wide), *row;
	__u32 number;
	__u64 rank;

	if (!chunk)
		return WEIR_NO_ROW;
	rank = weir_choose_evicted(s, chunk, &number, wide);
	row = weir_row_in(chunk, number, wide);
	if (!row || rank >= WEIR_RANK_RESERVED)
		return WEIR_NO_ROW;
	if (rank >= WEIR_RANK_COUNTS) {
		weir_leave(s, row, number, wide);
		weir_count_eviction(s->view.slot);
		if (WEIR_PART_SEVERAL_RULES)
			s->ghosts_of_rules = ~0u; /* it may be the packet's own flow, under a later rule */
	}
	return number;
}

/* Out of line: verified once for each format. */
__noinline __u32 weir_evict_row(struct weir_scratch *s, __u32 wide)
{
	if (!s)
		return WEIR_NO_ROW;
	return OF_WIDTH(wide, weir_evict(s, WEIR_NARROW), weir_evict(s, WEIR_MEDIUM), weir_evict(s, WEIR_WIDE));
}

#endif
