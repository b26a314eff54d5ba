/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where windows are kept: a set-associative table on every CPU. A set has four rows, and a flow has two candidate sets.
 * A row has the counts of one flow on one CPU. Only that CPU writes it, and all CPUs read it, so every access is a
 * single load or store. This file finds a row, and chooses one for a flow that has none: a free or expired row if there
 * is one; otherwise a row whose flow is over its limit (the flow's ghost still blocks it); otherwise the row with the
 * lowest count. So an insertion costs the same as a look-up, and takes no lock.
 *
 * There are three formats. *Narrow* rows, two a cache line, count packets up to 32,000 in buckets of 50 ms and more.
 * *Medium* rows, a line each, count bytes and packets up to 2,000 million in such buckets. *Wide* rows, two lines each,
 * count everything else. A resource without a flow key has one wide row a CPU at its rule's slot, a *lone* row.
 * Functions have a constant parameter `wide`, so that the same source serves all formats.
 */
#ifndef WEIR_ROWS_H
#define WEIR_ROWS_H

#include "clock.h"
#include "packet/flow.h"
#include "observe/stats.h"

/* ---- order between CPUs ---- */

/* A full barrier: orders our stores before our loads, as the lease needs (docs/internals/lease.md). On arm64, an atomic
 * whose result is not used would not be a barrier.
 */
static __always_inline void weir_fence(struct weir_scratch *s)
{
	__u64 old = __sync_fetch_and_add(&s->fence, 1);

	asm volatile("" ::"r"(old) : "memory");
}

/* Orders stores before stores, and loads before loads. x86 does so by itself. */
static __always_inline void weir_order(struct weir_scratch *s)
{
	if (config.is_weakly_ordered)
		weir_fence(s);
	asm volatile("" ::: "memory");
}

/* ---- a row ---- */

#define WEIR_NO_ROW 0xffffffffu /* instead of a row's number */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "cells lie in words of four, the first one lowest");

#define ROW_GET(row, wide, field)                                                                                      \
	OF_WIDTH(wide, (__u64)READ_ONCE(((struct weir_narrow_row *)(row))->field),                                     \
		 (__u64)READ_ONCE(((struct weir_medium_row *)(row))->field),                                           \
		 (__u64)READ_ONCE(((struct weir_wide_row *)(row))->field))
#define ROW_SET(row, wide, field, value)                                                                               \
	do {                                                                                                           \
		if ((wide) == WEIR_WIDE)                                                                               \
			WRITE_ONCE(((struct weir_wide_row *)(row))->field, value);                                     \
		else if ((wide) == WEIR_MEDIUM)                                                                        \
			WRITE_ONCE(((struct weir_medium_row *)(row))->field, value);                                   \
		else                                                                                                   \
			WRITE_ONCE(((struct weir_narrow_row *)(row))->field, value);                                   \
	} while (0)
#define ROW_BYTES(wide)                                                                                                \
	OF_WIDTH(wide, sizeof(struct weir_narrow_row), sizeof(struct weir_medium_row), sizeof(struct weir_wide_row))
#define ROW_SETS_PER_CHUNK(wide)                                                                                       \
	OF_WIDTH(wide, WEIR_NARROW_SETS_PER_CHUNK, WEIR_MEDIUM_SETS_PER_CHUNK, WEIR_WIDE_SETS_PER_CHUNK)
#define WEIR_STORAGE(wide) OF_WIDTH(wide, WEIR_STORAGE_NARROW, WEIR_STORAGE_MEDIUM, WEIR_STORAGE_WIDE)
#define ROW_UNSPENT(wide) OF_WIDTH(wide, (__u64)WEIR_NARROW_UNSPENT, (__u64)WEIR_MEDIUM_UNSPENT, WEIR_WIDE_UNSPENT)

/* The cells of a narrow row are four lanes of a 64-bit word; lease and version lie behind the last three. Reading them
 * a word at a time costs a third of reading them one by one (make bench-quick, S2).
 */
#define WEIR_CELL_WORDS 3
#define WEIR_LANES_UNSPENT 0x8000800080008000ull
#define WEIR_LANES_EVEN 0x0000ffff0000ffffull
#define WEIR_LANES_OF_LAST 0x0000ffffffffffffull

static __always_inline volatile __u64 *weir_cell_words(void *row)
{
	return (volatile __u64 *)(row + __builtin_offsetof(struct weir_narrow_row, cell));
}

/* Four lanes added in pairs, so that sums of several words fit: an even sum and an odd sum, in 32 bits each. */
static __always_inline __u64 weir_lane_pairs(__u64 lanes)
{
	return (lanes & WEIR_LANES_EVEN) + (lanes >> 16 & WEIR_LANES_EVEN);
}

/* The threshold word to which a row's lease, or its being over the limit, belongs. A narrow row has only its version.
 */
static __always_inline __u64 weir_row_word(void *row, const enum weir_width wide)
{
	const struct weir_medium_row *medium = row;

	return OF_WIDTH(wide, WEIR_THRESHOLD_WORD(0, ((struct weir_narrow_row *)row)->version),
			WEIR_THRESHOLD_WORD(medium->units, medium->version), ((struct weir_wide_row *)row)->threshold);
}

/* The version of a threshold word, as a row records it. For a word without a version, a value that matches none. */
static __always_inline __u8 weir_noted_version(__u64 threshold_word)
{
	__u8 version = threshold_word >> WEIR_THRESHOLD_BITS;

	return version & WEIR_VERSION_OBSOLETE ? version : version | WEIR_VERSION_OBSOLETE;
}

static __always_inline void weir_row_set_word(void *row, __u64 threshold_word, const enum weir_width wide)
{
	__u8 version = weir_noted_version(threshold_word);

	if (wide == WEIR_WIDE) {
		((struct weir_wide_row *)row)->threshold = WEIR_THRESHOLD_WORD(threshold_word, version);
	} else if (wide == WEIR_MEDIUM) {
		((struct weir_medium_row *)row)->units = threshold_word;
		((struct weir_medium_row *)row)->version = version;
	} else {
		((struct weir_narrow_row *)row)->version = version;
	}
}

/* All that a row has counted, in buckets of any age. */
static __always_inline __u64 weir_row_units(void *row, const enum weir_width wide)
{
	__u64 units = 0;

	if (wide) {
#pragma unroll
		for (int i = 0; i < WEIR_RING_CELLS; i++)
			units += ROW_GET(row, wide, cell[i]) & ~ROW_UNSPENT(wide);
		return units;
	}
#pragma unroll
	for (int i = 0; i < WEIR_CELL_WORDS; i++) {
		__u64 lanes = weir_cell_words(row)[i] & ~WEIR_LANES_UNSPENT;

		units += weir_lane_pairs(i == WEIR_CELL_WORDS - 1 ? lanes & WEIR_LANES_OF_LAST : lanes);
	}
	return (units + (units >> 32)) & 0xffffffff;
}

/* ---- finding it ---- */

/* A chunk of this CPU's table, or with cpu >= 0 of that CPU's. */
static __always_inline void *weir_chunk(__u32 index, int cpu, const enum weir_width wide)
{
	if (wide == WEIR_WIDE)
		return cpu < 0 ? bpf_map_lookup_elem(&wide_flows, &index)
			       : bpf_map_lookup_percpu_elem(&wide_flows, &index, cpu);
	if (wide == WEIR_MEDIUM)
		return cpu < 0 ? bpf_map_lookup_elem(&medium_flows, &index)
			       : bpf_map_lookup_percpu_elem(&medium_flows, &index, cpu);
	return cpu < 0 ? bpf_map_lookup_elem(&narrow_flows, &index)
		       : bpf_map_lookup_percpu_elem(&narrow_flows, &index, cpu);
}

/* The chunk that holds a set. */
static __always_inline void *weir_chunk_of(__u32 set, int cpu, const enum weir_width wide)
{
	return weir_chunk(set / ROW_SETS_PER_CHUNK(wide), cpu, wide);
}

/* First row of a set, in its chunk. Both sets of a flow lie in one chunk, even in one page. */
static __always_inline void *weir_rows_of(void *chunk, __u32 set, const enum weir_width wide)
{
	OPAQUE(set);
	set &= ROW_SETS_PER_CHUNK(wide) - 1;
	return chunk + set * (WEIR_WAYS * ROW_BYTES(wide));
}

/* Row `way` of the set that begins at `rows`. */
static __always_inline void *weir_row_at(void *rows, __u32 way, const enum weir_width wide)
{
	OPAQUE(way);
	return rows + (way & (WEIR_WAYS - 1)) * ROW_BYTES(wide);
}

/* The way of a set's row with this tag, or WEIR_WAYS. The way cannot be predicted, so there is only one branch: whether
 * there is such a row. (Tags have 32 bits. Subtract one from the difference of two tags: the top bit is set only if
 * they are equal.)
 */
static __always_inline __u32 weir_find_way(void *rows, __u64 tag, const enum weir_width wide)
{
	__u64 less_one[WEIR_WAYS], any = 0;

#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		less_one[way] = (ROW_GET(rows + way * ROW_BYTES(wide), wide, tag) ^ tag) - 1;
		any |= less_one[way];
	}
	if (!(any >> 63))
		return WEIR_WAYS;
	return less_one[1] >> 63 | less_one[2] >> 63 << 1 | (less_one[3] >> 63) * 3;
}

/* A flow's row in the chunk of its sets, or NULL. *ret_number finds it again. */
static __always_inline void *weir_find_row_in(void *chunk, const struct weir_flow_id *id, __u32 *ret_number,
					      const enum weir_width wide)
{
	__u32 set = id->set, way;
	void *rows;

	*ret_number = WEIR_NO_ROW;
	if (!chunk)
		return NULL;
	rows = weir_rows_of(chunk, set, wide);
	way = weir_find_way(rows, id->tag, wide);
	if (way == WEIR_WAYS) {
		set = weir_other_set(id, wide);
		rows = weir_rows_of(chunk, set, wide);
		way = weir_find_way(rows, id->tag, wide);
		if (way == WEIR_WAYS)
			return NULL;
	}
	*ret_number = set * WEIR_WAYS + way;
	return weir_row_at(rows, way, wide);
}

/* A flow's row in this CPU's table, or with cpu >= 0 in that CPU's; NULL when there is none. */
static __always_inline void *weir_find_row(const struct weir_flow_id *id, int cpu, __u32 *ret_number,
					   const enum weir_width wide)
{
	return weir_find_row_in(weir_chunk_of(id->set, cpu, wide), id, ret_number, wide);
}

/* A row by its number, set * WEIR_WAYS + way, in the chunk of its set; NULL when there is none. */
static __always_inline void *weir_row_in(void *chunk, __u32 number, const enum weir_width wide)
{
	if (!chunk || number == WEIR_NO_ROW)
		return NULL;
	OPAQUE(number);
	return chunk + (number & (WEIR_CHUNK_BYTES / ROW_BYTES(wide) - 1)) * ROW_BYTES(wide);
}

/* The same in this CPU's table. */
static __always_inline void *weir_row_by_number(__u32 number, const enum weir_width wide)
{
	if (number == WEIR_NO_ROW)
		return NULL;
	return weir_row_in(weir_chunk_of(number / WEIR_WAYS, -1, wide), number, wide);
}

static __always_inline struct weir_wide_row *weir_lone_row(__u32 slot)
{
	return bpf_map_lookup_elem(&lone_rows, &slot);
}

/* ---- choosing one for a flow that has none ---- */

/* 1 if a difference is negative. Computed as a number, because clang would make branches, and the verifier follow each.
 */
static __always_inline __u64 weir_top_bit(__u64 difference)
{
	OPAQUE(difference);
	difference >>= 63;
	OPAQUE(difference);
	return difference;
}

/* The last bucket that has left the window of another window spec. A row whose newest bucket is not later has expired.
 */
static __always_inline __u64 weir_find_expired(struct weir_scratch *s, __u32 spec, __u32 wide)
{
	const struct weir_window_spec *t = bpf_map_lookup_elem(&window_specs, &spec);
	struct weir_clock *clk;

	if (!t)
		return ~0ull >> 1;
	clk = wide == WEIR_WIDE ? weir_clock_of(s, spec, WEIR_WIDE) : weir_clock_of(s, spec, WEIR_NARROW);
	if (!clk)
		return ~0ull >> 1;
	/* In line, as the stack is short here. */
	if (!t->goes_by_ticks || !weir_clock_is_current(s, clk))
		weir_clock_set(clk, s->tick, t->goes_by_ticks ? s->tick_ns : weir_now_ns(s), t, wide);
	return clk->bucket - t->window_cells;
}

__noinline __u64 weir_expired_bucket(struct weir_scratch *s, __u32 spec, __u32 wide)
{
	return s ? weir_find_expired(s, spec, wide) : ~0ull >> 1;
}

__noinline __u64 weir_is_row_reserved(struct weir_scratch *s, __u32 number, __u32 storage)
{
	if (!s)
		return 0;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < s->nth; i++) {
		const struct weir_reservation *reservation = &s->reservation[i];

		if (reservation->kind >= WEIR_RESERVATION_SPENT && reservation->storage == storage &&
		    reservation->row == number)
			return 1;
	}
	return 0;
}

static __always_inline bool weir_is_row_over(void *row, const enum weir_width wide)
{
	return OF_WIDTH(wide, ROW_GET(row, wide, lease) / WEIR_NARROW_OVER,
			((struct weir_medium_row *)row)->over_part != 0,
			((struct weir_wide_row *)row)->over_until_ns != 0);
}

#define WEIR_WAYS_MASK ((1u << WEIR_WAYS) - 1)

static __always_inline __u32 weir_row_spec(void *row, __u64 tag, const enum weir_width wide)
{
	return wide == WEIR_WIDE ? ((struct weir_wide_row *)row)->spec : tag & (WEIR_SPECS_NARROW - 1);
}

/* The free rows of a set. One bit for each row says whether it is empty; further bits above, whether it is empty or has
 * expired. Rows of another window spec are taken to count; if there are any, the top bit of *ret_other becomes 1.
 * Without branches, because every packet of a flood of new sources comes here, and the branches could not be predicted.
 */
static __always_inline __u32 weir_free_rows(const struct weir_view *view, void *rows, __u64 *ret_other,
					    const enum weir_width wide)
{
	__u64 expired = view->bucket - view->window_cells, taken = 0;
	__u32 spec = view->spec;

	OPAQUE(expired); /* else clang takes two numbers from every row's */
#pragma unroll
	for (int way = WEIR_WAYS - 1; way >= 0; way--) {
		void *row = rows + way * ROW_BYTES(wide);
		__u64 tag = ROW_GET(row, wide, tag), is_used = weir_top_bit(-tag);
		__u64 is_other = -(__u64)(weir_row_spec(row, tag, wide) ^ spec); /* by its top bit */
		/* The difference: in the first buckets `expired` is negative. */
		__u64 counts = weir_top_bit((expired - ROW_GET(row, wide, newest)) | is_other) & is_used;

		*ret_other |= is_other; /* also set by empty rows; then it is not used */
		taken = taken << 1 | is_used | counts << WEIR_WAYS;
		OPAQUE(taken); /* one row after the other: else clang keeps all of them on the stack */
		OPAQUE(*ret_other);
	}
	return taken ^ (WEIR_WAYS_MASK | WEIR_WAYS_MASK << WEIR_WAYS);
}

/* The number of a set's rows that are free or, from the lower bits, empty. */
static __always_inline __u32 weir_bits_of_ways(__u32 ways)
{
	return 0x4332322132212110ull >> 4 * (ways & WEIR_WAYS_MASK) & 7;
}

/* The first of a set's empty rows, or else of its expired ones. */
static __always_inline __u32 weir_first_free(__u32 free)
{
	__u32 ways = (free & WEIR_WAYS_MASK ? free : free >> WEIR_WAYS) & WEIR_WAYS_MASK, lowest = ways & -ways;

	return (lowest >> 1) - (lowest >> 3); /* 1, 2, 4, 8 */
}

/* If both sets have free rows, the emptier one is used, so that even well filled tables seldom overflow. But a first
 * set with at most one flow is used in any case, so that most rows are found in the set that is searched first. (In the
 * harness an expired row may count again, so there a set with more empty rows is always better.)
 */
static __always_inline __u32 weir_choose_free(struct weir_view *view, void *chunk, const enum weir_width wide)
{
	__u32 set = view->flow.set, other = weir_other_set(&view->flow, wide), free, other_free;
	__u64 is_mixed = 0;

	if (!chunk)
		return WEIR_NO_ROW;
	free = weir_free_rows(view, weir_rows_of(chunk, set, wide), &is_mixed, wide);
	if (config.is_virtual || weir_bits_of_ways(free >> WEIR_WAYS) < WEIR_WAYS - 1) {
		other_free = weir_free_rows(view, weir_rows_of(chunk, other, wide), &is_mixed, wide);
		if (!(free | other_free)) {
			view->is_mixed = is_mixed >> 63;
			return WEIR_NO_ROW;
		}
		if (config.is_virtual && weir_bits_of_ways(other_free) != weir_bits_of_ways(free)
			    ? weir_bits_of_ways(other_free) > weir_bits_of_ways(free)
			    : weir_bits_of_ways(other_free >> WEIR_WAYS) > weir_bits_of_ways(free >> WEIR_WAYS)) {
			set = other;
			free = other_free;
		}
	}
	return set * WEIR_WAYS + weir_first_free(free);
}

/* The number of a free row for s->view.flow, or WEIR_NO_ROW. Out of line: verified once for each format. */
__noinline __u32 weir_find_free(struct weir_scratch *s, __u32 wide)
{
	struct weir_view *view = &s->view;

	if (!s)
		return WEIR_NO_ROW;
	return OF_WIDTH(wide, weir_choose_free(view, weir_chunk_of(view->flow.set, -1, WEIR_NARROW), WEIR_NARROW),
			weir_choose_free(view, weir_chunk_of(view->flow.set, -1, WEIR_MEDIUM), WEIR_MEDIUM),
			weir_choose_free(view, weir_chunk_of(view->flow.set, -1, WEIR_WIDE), WEIR_WIDE));
}

/* ---- choosing one to evict ---- */

/* The rank of a row says how much it would hurt to lose it. In ascending order: a row of another window spec that has
 * expired; a row over its limit, because the flow's ghost still blocks it; a row that counts, by its units.
 */
#define WEIR_RANK_EXPIRED 0ull
#define WEIR_RANK_COUNTS 1ull
#define WEIR_RANK_RESERVED (1ull << 57) /* an earlier rule of this packet has a reservation in it: it must not go */

/* The row of a set with the lowest rank: rank * WEIR_WAYS + way. `is_plain`: all rows are of the view's window spec,
 * and none is reserved. Among equal ranks it is the first row, again and again. That loses nothing: its flow's count
 * goes to a ghost, and the sooner a row's does, the sooner it is added to what the ghost had. (With ways in any order,
 * a flow that begins in a flood had 7 packets instead of 6 admitted in 9 of 60 trials, not in 2.)
 */
static __always_inline __u64 weir_rank_set(struct weir_scratch *s, void *chunk, __u32 set, const bool is_plain,
					   const enum weir_width wide)
{
	void *rows = weir_rows_of(chunk, set, wide);
	__u64 least = ~0ull >> 1;

#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		void *row = rows + way * ROW_BYTES(wide);
		__u64 rank = WEIR_RANK_COUNTS + (weir_row_units(row, wide) + 1) * !weir_is_row_over(row, wide), less;

		if (!is_plain) {
			__u32 spec = weir_row_spec(row, ROW_GET(row, wide, tag), wide);

			if (spec != s->view.spec)
				rank *= weir_top_bit(weir_expired_bucket(s, spec, wide) - ROW_GET(row, wide, newest));
			rank |= weir_is_row_reserved(s, set * WEIR_WAYS + way, WEIR_STORAGE(wide)) * WEIR_RANK_RESERVED;
		}
		less = rank * WEIR_WAYS + way - least;
		least += less * weir_top_bit(less);
		OPAQUE(least); /* one row after the other: else clang keeps all of them on the stack */
	}
	FORGET(s->forgotten, least);
	return least;
}

/* Both sets are full. Evict a row of the first set: its flow keeps its count in a ghost, so it need not be the lowest
 * of all eight. Both sets are ranked only if rows of other window specs may have expired, or if earlier rules of the
 * packet need some rows. Returns the row's rank.
 */
static __always_inline __u64 weir_choose_evicted(struct weir_scratch *s, void *chunk, __u32 *ret_number,
						 const enum weir_width wide)
{
	__u32 set = s->view.flow.set, other = weir_other_set(&s->view.flow, wide);
	__u64 least = 0, least_of_other;
	bool asks_both = s->view.is_mixed;

	if (likely(!asks_both)) {
		least = weir_rank_set(s, chunk, set, true, wide);
		*ret_number = set * WEIR_WAYS + (least & (WEIR_WAYS - 1));
		asks_both = s->nth && weir_is_row_reserved(s, *ret_number, WEIR_STORAGE(wide));
	}
	if (unlikely(asks_both)) {
		least = weir_rank_set(s, chunk, set, false, wide);
		least_of_other = weir_rank_set(s, chunk, other, false, wide);
		if (least_of_other / WEIR_WAYS < least / WEIR_WAYS) {
			set = other;
			least = least_of_other;
		}
		*ret_number = set * WEIR_WAYS + (least & (WEIR_WAYS - 1));
	}
	return least / WEIR_WAYS;
}

#endif
