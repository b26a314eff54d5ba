/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sliding window: may this packet pass, as far as one rule goes? (docs/semantics.md, 1)
 *
 * Every CPU counts a flow in a row of its own and admits from a *lease*: units that it has already
 * counted in its current bucket and not yet spent. To take a lease it adds first, fences, and then sums
 * the rows of all CPUs; who adds first and reads second can never be overlooked by another that does
 * the same (Dekker), so what is admitted never exceeds the threshold. Four things keep that true when
 * a CPU stalls between reading its clock and deciding:
 *
 *   newer buckets	than the own one count too.
 *   an owner		that moves on announces its newest bucket, then clears the cells it takes over, then counts.
 *   a reader		looks at a row's newest bucket again after its cells, and when that has run further ahead than
 *			the ring reaches back, gives back, reads the clock and judges again.
 *   a row missed	or found in a newer bucket: the same, when the own bucket is over by then. A row that expired
 *			by another CPU's clock, and was given to another flow, may still have counted by ours.
 *
 * tests/model/lease.pml has all of it as a model, checked.
 *
 * On one CPU all this gives the decisions of the plain window, packet for packet: a lease is only the
 * promise of admissions that the plain window would make as well.
 */
#ifndef WEIR_BPF_WINDOW_H
#define WEIR_BPF_WINDOW_H

#include "full.h"
#include "insert.h"
#include "threshold.h"
#include "presence.h"
#include "weir_window.h"

enum weir_answer {
	WEIR_ANSWER_ADMIT,
	WEIR_ANSWER_BLOCK,
	WEIR_ANSWER_AGAIN, /* the clock ran away: read it and judge again */
	WEIR_ANSWER_OPENS, /* a connection wants to open: weir_judge_opening() answers */
	WEIR_ANSWER_ERROR, /* a map entry that must exist is missing */
};

#define WEIR_ATTEMPTS 3 /* judgements of one packet by one rule; each repeats only after a stall of buckets */

/* One judgement in progress; what others need of it is in w->question. */
struct weir_judgement {
	const struct weir_rule *rule;
	struct weir_clock *clk;
	void *row;	 /* our own */
	__u64 threshold; /* units */
	__u64 threshold_word;
	__u64 batch;
	__u64 into_ns;	   /* time since the bucket judged in began */
	__u32 own_cell;	   /* the cell that the packet is counted in */
	bool is_backdated; /* own_cell is older than the bucket judged in: the clock went back */
	bool is_shut;	   /* an override of nothing: judged all the same, so that its row can say so */
};

/* The cell of a bucket. The verifier does not bound a remainder, so say it again. */
static __always_inline __u32 weir_cell_of(__u64 bucket)
{
	__u32 cell = bucket % WEIR_RING_CELLS;

	OPAQUE(cell);
	return cell < WEIR_RING_CELLS ? cell : 0;
}

/* The index is opaque until it is tested, so that clang does not test one copy of it and use another: kernel
 * 6.1 does not know of a number read back from the stack that it is the one just tested (6.12 does).
 */
static __always_inline __u64 weir_cell_get(void *row, __u32 cell, const bool wide)
{
	OPAQUE(cell);
	if (cell >= WEIR_RING_CELLS)
		return 0;
	return ROW_GET(row, wide, cell[cell]);
}

static __always_inline void weir_cell_set(void *row, __u32 cell, __u64 value, const bool wide)
{
	OPAQUE(cell);
	if (cell < WEIR_RING_CELLS)
		ROW_SET(row, wide, cell[cell], value);
}

/* The cell of the bucket `age` before the one that `cell` belongs to. */
static __always_inline __u32 weir_cells_older(__u32 cell, __u32 age)
{
	__u32 older = cell >= age ? cell - age : cell + WEIR_RING_CELLS - age;

	OPAQUE(older);
	return older < WEIR_RING_CELLS ? older : 0;
}

/* Units leased; 0 also when the row is known to be full. */
static __always_inline __u64 weir_lease_get(void *row, const bool wide)
{
	__u64 lease = ROW_GET(row, wide, lease);

	return !wide && lease & WEIR_NARROW_FULL ? 0 : lease;
}

/* A lease belongs to its bucket and its threshold: give back what is unspent, forget fullness. */
static __always_inline void weir_give_back(void *row, const bool wide)
{
	__u64 lease = weir_lease_get(row, wide);

	if (lease) {
		__u32 cell = weir_cell_of(ROW_GET(row, wide, newest));

		weir_cell_set(row, cell, (weir_cell_get(row, cell, wide) & ~ROW_UNSPENT(wide)) - lease, wide);
	}
	ROW_SET(row, wide, lease, 0);
	if (wide)
		((struct weir_wide_row *)row)->full_until_ns = 0;
}

#define RING_MASK ((1u << WEIR_RING_CELLS) - 1)

static __always_inline __u32 weir_bits_below(__u32 count)
{
	return (1u << count) - 1;
}

/*
 * The cells, one bit each, whose buckets are `from` to `to` - 1 buckets older than the one that `cell`
 * belongs to. Ages run downwards from `cell`, around the ring: written from the oldest (age 10) up they are
 * a run of bits, which is then turned to its place. Bits become factors, not branches or masks: the
 * verifier would follow each of the 2^11 combinations (kernel 6.18 forks even at an AND with 0 or -1).
 */
static __always_inline __u32 weir_cells_aged(__u32 cell, __u32 from, __u32 to)
{
	__u32 run = weir_bits_below(WEIR_RING_CELLS - from) & ~weir_bits_below(WEIR_RING_CELLS - to);
	__u32 turn = cell + 1;

	return (run << turn | run >> (WEIR_RING_CELLS - turn)) & RING_MASK;
}

/* All ones in the lanes of word `word` that `cells` has a bit for. The product puts a copy of the four bits below
 * each lane, shifted so that the lane's own is its lowest.
 */
static __always_inline __u64 weir_lanes(__u32 cells, const int word)
{
	return ((cells >> 4 * word & 15) * 0x0000200040008001ull & 0x0001000100010001ull) * 0xffff;
}

static __always_inline void weir_clear_cells(void *row, __u32 cells, const bool wide)
{
	if (wide) {
#pragma unroll
		for (__u32 i = 0; i < WEIR_RING_CELLS; i++)
			ROW_SET(row, wide, cell[i], ROW_GET(row, wide, cell[i]) * (~cells >> i & 1));
	} else {
		volatile __u64 *words = weir_cell_words(row);

#pragma unroll
		for (int i = 0; i < WEIR_CELL_WORDS; i++)
			words[i] &= ~weir_lanes(cells, i);
	}
}

/* The units of some cells, and in *ret_flags all their bits, or-ed. */
static __always_inline __u64 weir_sum_cells(void *row, __u32 cells, __u64 *ret_flags, const bool wide)
{
	__u64 units = 0, flags = 0;

	if (wide) {
#pragma unroll
		for (__u32 i = 0; i < WEIR_RING_CELLS; i++) {
			__u64 value = ROW_GET(row, wide, cell[i]) * (cells >> i & 1);

			flags |= value;
			units += value & ~ROW_UNSPENT(wide);
		}
	} else {
		volatile __u64 *words = weir_cell_words(row);

#pragma unroll
		for (int i = 0; i < WEIR_CELL_WORDS; i++) {
			__u64 lanes = words[i] & weir_lanes(cells, i);

			flags |= lanes;
			lanes &= ~WEIR_LANES_UNSPENT;
			units += weir_lane_pairs(lanes);
		}
		units = (units + (units >> 32)) & 0xffffffff;
		flags = flags & WEIR_LANES_UNSPENT ? WEIR_NARROW_UNSPENT : 0;
	}
	*ret_flags |= flags;
	return units;
}

/* Our row, of which nothing is leased, enters a newer bucket, with so many units in it. Announce, clear, and only then
 * count; the new cell is marked as unspent.
 */
static __always_inline void weir_enter_bucket(struct weir_work *w, void *row, __u64 bucket, __u32 cell, __u64 units,
					      const bool wide)
{
	__u64 passed_by = bucket - ROW_GET(row, wide, newest);
	__u32 taken_over;

	/* What the ring's last round left looks counted until it is cleared: nobody may take it for fullness. */
	weir_cell_set(row, cell, weir_cell_get(row, cell, wide) | ROW_UNSPENT(wide), wide);
	weir_order(w);
	ROW_SET(row, wide, newest, bucket);
	weir_order(w);
	taken_over = weir_cells_aged(cell, 1, passed_by < WEIR_RING_CELLS ? passed_by : WEIR_RING_CELLS);
	weir_clear_cells(row, taken_over, wide);
	weir_order(w);
	weir_cell_set(row, cell, units | ROW_UNSPENT(wide), wide);
}

/* The owner has entered bucket `newest`, and may not have cleared all cells yet that it takes over: they look counted.
 * Once this says no they are cleared, so it is to be asked before they are read.
 */
static __always_inline bool weir_may_be_clearing(const struct weir_question *q, void *row, __u64 newest,
						 const bool wide)
{
	__u32 cell = newest > q->bucket ? weir_cell_of(newest) : weir_cells_older(q->cell, q->bucket - newest);

	return weir_cell_get(row, cell, wide) & ROW_UNSPENT(wide);
}

/* Units of another CPU's row are not spent. While it only judges by them, or clears cells, it has no lease. */
static __always_inline void weir_note_unspent(struct weir_work *w, void *row, const bool wide)
{
	w->sum.has_unspent = 1;
	if (!weir_lease_get(row, wide))
		w->sum.is_in_doubt = 1;
}

/* Add one CPU's row to w->sum. Unless it is ours, its owner may be writing it. */
static __always_inline void weir_add_row(struct weir_work *w, void *row, const bool is_own, const bool wide)
{
	const struct weir_question *q = &w->question;
	__u64 newest = ROW_GET(row, wide, newest), newest_after;
	__u64 units, flags = 0, oldest = 0;
	__u32 looked_at;

	weir_order(w);
	if (newest > q->bucket) {
		/* Newer than ours: these cells count too. They look as if they were the oldest. */
		__u64 newer = newest - q->bucket;

		looked_at = weir_cells_aged(q->cell, 0, q->window_cells);
		looked_at |= weir_cells_aged(q->cell, newer < WEIR_RING_CELLS ? WEIR_RING_CELLS - newer : 0,
					     WEIR_RING_CELLS);
	} else {
		/* Cells younger than the newest bucket are left over from the ring's last round. */
		__u64 behind = q->bucket - newest;

		if (behind >= q->window_cells) {
			weir_order(w);
			if (!is_own && ROW_GET(row, wide, tag) != q->place.tag)
				w->sum.is_behind = 1;
			return;
		}
		looked_at = weir_cells_aged(q->cell, behind, q->window_cells);
	}
	if (!is_own && weir_may_be_clearing(q, row, newest, wide))
		weir_note_unspent(w, row, wide);
	weir_order(w);
	if (q->is_smooth) {
		__u32 cell = weir_cells_older(q->cell, q->window_cells - 1);

		if (looked_at >> cell & 1)
			oldest = weir_cell_get(row, cell, wide);
		looked_at &= ~(1u << cell);
		flags = oldest;
		oldest &= ~ROW_UNSPENT(wide);
	}
	units = weir_sum_cells(row, looked_at, &flags, wide);
	if (!is_own) {
		weir_order(w);
		newest_after = ROW_GET(row, wide, newest);
		if (ROW_GET(row, wide, tag) != q->place.tag) {
			w->sum.is_behind = 1;
			return; /* it has become another flow's row: pushed out, and counted as such */
		}
		if (newest_after > q->bucket)
			w->sum.is_behind = 1;
		if (newest_after > q->bucket + WEIR_RING_CELLS - q->window_cells)
			w->sum.ran_ahead = 1;
		if (flags & ROW_UNSPENT(wide))
			weir_note_unspent(w, row, wide);
	}
	w->sum.rest += units;
	w->sum.oldest += oldest;
}

/* Add the same flow's row on another CPU. */
static __always_inline void weir_add_cpu(struct weir_work *w, __u32 cpu, const bool wide)
{
	const struct weir_question *q = &w->question;
	__u32 slot = q->slot, number;
	void *row;

	if (wide && q->is_lone)
		row = bpf_map_lookup_percpu_elem(&lone_rows, &slot, cpu);
	else
		row = weir_find_row(w, &q->place, cpu, &number, wide);
	if (row)
		weir_add_row(w, row, false, wide);
	else
		w->sum.is_behind = 1;
}

/* Out of line, all four: the verifier checks one CPU's turn once, and the walk over the CPUs once. */
__noinline int weir_add_cpu_narrow(struct weir_work *w, __u32 cpu)
{
	if (w)
		weir_add_cpu(w, cpu, false);
	return 0;
}

__noinline int weir_add_cpu_wide(struct weir_work *w, __u32 cpu)
{
	if (w)
		weir_add_cpu(w, cpu, true);
	return 0;
}

static __always_inline void weir_add_others(struct weir_work *w, const bool wide)
{
	__u32 this_cpu = bpf_get_smp_processor_id();

	for (__u32 cpu = 0; cpu < WEIR_CPUS_MAX && cpu < config.cpus; cpu++) {
		if (cpu == this_cpu || !weir_is_present(w->present, cpu))
			continue;
		if (wide)
			weir_add_cpu_wide(w, cpu);
		else
			weir_add_cpu_narrow(w, cpu);
	}
}

__noinline int weir_add_others_narrow(struct weir_work *w)
{
	if (w)
		weir_add_others(w, false);
	return 0;
}

__noinline int weir_add_others_wide(struct weir_work *w)
{
	if (w)
		weir_add_others(w, true);
	return 0;
}

/*
 * To be called after units were added to the own row: a full barrier. Finds out whom to ask, and returns true
 * when there is nobody.
 */
static __always_inline bool weir_is_alone_now(struct weir_work *w)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if (config.cpus == 1)
		return true;
	w->present = weir_presence_join(w, cpu);
	return weir_is_alone(w->present, cpu);
}

/* The same out of line, where the stack is short. */
__noinline int weir_meet_others(struct weir_work *w)
{
	if (!w)
		return false;
	if (w->question.asks_all && config.cpus > 1) {
		weir_fence(w);
		w->present = WEIR_PRESENT_ALL;
		return false;
	}
	return weir_is_alone_now(w);
}

/* What this flow's rows hold, on all CPUs that may have counted it. */
static __always_inline void weir_add_all_rows(struct weir_work *w, void *own_row, const bool wide)
{
	__builtin_memset(&w->sum, 0, sizeof(w->sum));
	weir_add_row(w, own_row, true, wide);
	if (weir_meet_others(w))
		return;
	weir_count_lease(w->question.slot);
	if (w->present == WEIR_PRESENT_LOST)
		w->sum.ran_ahead = 1;
	else if (wide)
		weir_add_others_wide(w);
	else
		weir_add_others_narrow(w);
}

/* Out of line, so that its long division is verified once. */
__noinline __u64 weir_oldest_share(__u64 count, __u64 bucket_ns, __u64 into_ns)
{
	return weir_smooth_share(count, bucket_ns, into_ns);
}

/* What the window holds: the sum, with the oldest bucket weighed when it is smooth. */
static __always_inline __u64 weir_window_units(const struct weir_judgement *j, const struct weir_sum *sum)
{
	if (sum->oldest == 0)
		return sum->rest;
	return sum->rest + weir_oldest_share(sum->oldest, j->rule->bucket_ns, j->into_ns);
}

/* When the share of a smooth window's oldest bucket frees its next unit, in ns since the present bucket
 * began; for all else, and without an oldest bucket, its end. 0: not to be told cheaply.
 */
static __always_inline __u64 weir_frees_ns(const struct weir_judgement *j, const struct weir_sum *sum)
{
	__u64 bucket_ns = j->rule->bucket_ns;
	__u64 share;

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
 * Until when a flow that was found full is taken for it, in ns since the present bucket began; 0: not at all. What
 * another CPU has leased it may yet give back, with its next packet in a new bucket. So ask again soon, but not for
 * every packet: a unit left behind on another CPU would else turn off, for as long as its bucket counts, the path that
 * a flood is dropped by. A narrow row knows 128 parts of a bucket: this is one to two of them.
 */
#define WEIR_BRIEFLY_PARTS 64

static __always_inline __u64 weir_full_ns(struct weir_work *w, const struct weir_judgement *j)
{
	__u64 frees_ns = weir_frees_ns(j, &w->sum), briefly_ns;

	if (likely(!w->sum.has_unspent))
		return frees_ns;
	briefly_ns = weir_now_ns(w) - j->clk->start_ns + j->rule->bucket_ns / WEIR_BRIEFLY_PARTS;
	return briefly_ns < frees_ns ? briefly_ns : frees_ns;
}

/*
 * The flow is full: every unit of the threshold is spent or leased, but for `left`. Remember until when that must
 * be so, so that packets larger than what is left are dropped without asking other CPUs.
 */
static __always_inline void weir_remember_full(struct weir_work *w, const struct weir_judgement *j, __u64 left,
					       __u64 frees_ns, const bool wide)
{
	if (frees_ns == 0)
		return;
	if (wide) {
		struct weir_wide_row *row = j->row;

		if (left > 0xffff)
			return;
		row->full_left = left;
		row->full_until_ns = j->clk->start_ns + frees_ns;
	} else {
		__u64 part = frees_ns * 128 / j->rule->bucket_ns; /* rounded down: judged again too early, never late */

		if (part > 0 && part <= 128)
			ROW_SET(j->row, wide, lease, 127 + part);
		if (part == 128 && w->judged == 0)
			weir_note_full(w, w->question.place.set, w->question.place.tag);
	}
}

/* The flow is known to be full for a packet of this size. The clock is only consulted for windows whose
 * fullness ends within the bucket.
 */
static __always_inline bool weir_known_full(struct weir_work *w, const struct weir_judgement *j, const bool may_read,
					    const bool wide)
{
	if (ROW_GET(j->row, wide, newest) != j->clk->bucket)
		return false;
	if (wide) {
		struct weir_wide_row *row = j->row;

		if (!row->full_until_ns || row->threshold != j->threshold_word || j->batch <= row->full_left)
			return false;
		return row->full_until_ns >= j->clk->end_ns || (may_read && weir_now_ns(w) < row->full_until_ns);
	} else {
		struct weir_narrow_row *row = j->row;
		__u64 part;

		if (!(row->lease & WEIR_NARROW_FULL) || row->version != j->threshold_word >> WEIR_THRESHOLD_BITS)
			return false;
		part = row->lease - 127;
		return part == 128 ||
		       (may_read && (weir_now_ns(w) - j->clk->start_ns) * 128 < part * j->rule->bucket_ns);
	}
}

/* Bring the row to the bucket and the threshold in force. */
static __always_inline void weir_settle(struct weir_work *w, struct weir_judgement *j, const bool wide)
{
	__u64 newest = ROW_GET(j->row, wide, newest);
	__u64 present = j->clk->bucket;
	struct weir_question *q = &w->question;

	q->bucket = present;
	q->cell = j->own_cell = j->clk->cell;
	j->is_backdated = false;
	j->into_ns = 0;
	if (q->is_smooth) {
		__u64 now_ns = weir_now_ns(w);

		j->into_ns = now_ns - j->clk->start_ns;
		/* The oldest bucket weighs less and less: a lease is a promise for later times only. */
		if (now_ns >= j->clk->latest_ns)
			j->clk->latest_ns = now_ns;
		else
			weir_give_back(j->row, wide);
	}

	if (newest < present) {
		weir_give_back(j->row, wide);
		weir_enter_bucket(w, j->row, present, q->cell, 0, wide);
	} else if (newest > present) {
		/* The clock went back. Counted in its own bucket while the ring holds it, judged by all that
		 * the ring holds; else as if it were the start of the newest bucket.
		 */
		q->bucket = newest;
		q->cell = weir_cell_of(newest);
		j->into_ns = 0;
		if (newest - present < q->window_cells) {
			j->is_backdated = true;
			weir_give_back(j->row, wide);
		} else {
			j->own_cell = q->cell;
		}
	}

	if (wide) {
		struct weir_wide_row *row = j->row;

		if (row->threshold != j->threshold_word) {
			weir_give_back(row, wide);
			row->threshold = j->threshold_word;
		}
	} else {
		struct weir_narrow_row *row = j->row;
		__u8 version = j->threshold_word >> WEIR_THRESHOLD_BITS;

		if (row->version != version) {
			weir_give_back(row, wide);
			row->version = version;
		}
	}
}

/* Whom the cell of presence names as it stands, which may change before it counts. */
static __always_inline void weir_glance_at_others(struct weir_work *w)
{
	__u32 *cell = w->question.asks_all || config.cpus == 1 ? NULL : weir_presence_cell(&w->question.place);

	w->present = cell ? READ_ONCE(*cell) & ((1u << WEIR_PRESENCE_EPOCH_SHIFT) - 1) : WEIR_PRESENT_ALL;
}

/* A flow that one CPU sees leases as on a machine of two, so that it costs the same on one of many. Should it
 * move, so much of what is free may stay behind, once: for some seconds it is then known to be seen by two. Chosen, not
 * derived.
 */
#define WEIR_ALONE_PARTS 4

/* What one CPU may set aside of so many units, going by w->present. */
__noinline __u64 weir_fair_part(struct weir_work *w, __u64 units)
{
	if (!w)
		return 0;
	if (config.cpus > 1 && weir_is_alone(w->present, bpf_get_smp_processor_id()))
		return units / WEIR_ALONE_PARTS;
	return units / (2 * config.cpus);
}

/*
 * A lease of wide rows is no more than so many packets like the one in hand, for each CPU that is asked: what stays
 * behind with a large limit is then little of it, and what taking the lease costs is little for each packet. (Narrow
 * ones hold no more than WEIR_NARROW_LEASE_MAX.) Chosen, not derived.
 */
#define WEIR_WIDE_LEASE_PACKETS 64

static __always_inline __u64 weir_wide_lease(const struct weir_work *w, __u64 wanted, __u64 batch)
{
	__u64 most = batch * WEIR_WIDE_LEASE_PACKETS;

	if (config.cpus > 1 && !weir_is_alone(w->present, bpf_get_smp_processor_id()))
		most *= config.cpus;
	return wanted < most ? wanted : most;
}

/* How many units to try and lease: little leaves little behind on a CPU that the flow leaves. Never more
 * than what this CPU has spent in this bucket, but always enough for the packet.
 */
static __always_inline __u64 weir_lease_wanted(struct weir_work *w, const struct weir_judgement *j, __u64 spent,
					       const bool wide)
{
	__u64 wanted;

	weir_glance_at_others(w);
	wanted = weir_fair_part(w, j->threshold);

	if (wanted > spent)
		wanted = spent;
	if (wide)
		wanted = weir_wide_lease(w, wanted, j->batch);
	else if (wanted > WEIR_NARROW_LEASE_MAX)
		wanted = WEIR_NARROW_LEASE_MAX;
	if (wanted < j->batch || j->is_backdated)
		wanted = j->batch;
	return wanted;
}

/*
 * One judgement against a settled row. On admission the packet's units are set aside: in the lease, or
 * already counted when backdated.
 */
static __always_inline enum weir_answer weir_judge_row(struct weir_work *w, struct weir_judgement *j, const bool wide)
{
	__u64 held = weir_lease_get(j->row, wide);
	__u64 counted, add, others, fair;

	if (held >= j->batch && !j->is_backdated)
		return WEIR_ANSWER_ADMIT;

	counted = weir_cell_get(j->row, j->own_cell, wide) & ~ROW_UNSPENT(wide);
	add = weir_lease_wanted(w, j, counted - held, wide) - held;

	weir_cell_set(j->row, j->own_cell, (counted + add) | ROW_UNSPENT(wide), wide);
	weir_add_all_rows(w, j->row, wide);
	if (w->sum.is_behind && weir_clock_ran_on(w, j->clk))
		w->sum.ran_ahead = 1;
	/* Spent by this CPU, or counted by another. */
	others = weir_window_units(j, &w->sum) - add - held;

	if (w->sum.ran_ahead || others + j->batch > j->threshold) {
		weir_cell_set(j->row, j->own_cell, counted | (held ? ROW_UNSPENT(wide) : 0), wide);
		if (w->sum.ran_ahead)
			return WEIR_ANSWER_AGAIN;
		/* What is in doubt is a reason to drop, not to remember. */
		if (!w->sum.is_in_doubt && w->question.bucket == j->clk->bucket)
			weir_remember_full(w, j, j->threshold > others ? j->threshold - others : 0, weir_full_ns(w, j),
					   wide);
		return WEIR_ANSWER_BLOCK;
	}

	/* Keep a fair part of what is free, now that it is known, and no less than the packet. */
	fair = weir_fair_part(w, j->threshold - others);
	if (fair < j->batch)
		fair = j->batch;
	if (held + add > fair)
		add = fair - held;

	if (j->is_backdated) {
		weir_cell_set(j->row, j->own_cell, counted + add, wide);
		return WEIR_ANSWER_ADMIT;
	}
	weir_cell_set(j->row, j->own_cell, (counted + add) | ROW_UNSPENT(wide), wide);
	ROW_SET(j->row, wide, lease, held + add);
	if (wide)
		((struct weir_wide_row *)j->row)->full_until_ns = 0;
	return WEIR_ANSWER_ADMIT;
}

/* Give a chosen row to this flow, with one packet's units in its cell, which count when it is found. Others
 * may be reading it: tag to zero, clear, new tag.
 */
static __always_inline void weir_replace_row(struct weir_work *w, const struct weir_judgement *j, const bool wide)
{
	ROW_SET(j->row, wide, tag, 0);
	weir_order(w);
	ROW_SET(j->row, wide, newest, j->clk->bucket);
	if (wide) {
		struct weir_wide_row *row = j->row;

#pragma unroll
		for (__u32 i = 0; i < WEIR_RING_CELLS; i++)
			ROW_SET(row, wide, cell[i], 0);
		row->lease = 0;
		row->timing = j->rule->timing;
		row->threshold = j->threshold_word;
		row->full_until_ns = 0;
	} else {
		volatile __u64 *words = weir_cell_words(j->row);

		words[0] = 0;
		words[1] = 0;
		words[2] = 0; /* the lease too */
		((struct weir_narrow_row *)j->row)->version = j->threshold_word >> WEIR_THRESHOLD_BITS;
	}
	weir_cell_set(j->row, j->clk->cell, j->batch | ROW_UNSPENT(wide), wide);
	weir_order(w);
	ROW_SET(j->row, wide, tag, w->question.place.tag);
}

/* The row found earlier. */
static __always_inline void *weir_located_row(const struct weir_work *w, const bool wide)
{
	return w->located == WEIR_NO_ROW ? NULL : weir_row_by_number(w->located, wide);
}

/* Make a row for a flow that has none. j->row stays NULL when that fails. */
static __always_inline void weir_insert(struct weir_work *w, struct weir_judgement *j, const bool wide)
{
	w->question.bucket = j->clk->bucket;
	w->located = wide ? weir_choose_free_wide(w) : weir_choose_free_narrow(w);
	if (w->located == WEIR_NO_ROW)
		w->located = wide ? weir_choose_wide_row(w) : weir_choose_narrow_row(w);
	j->row = weir_located_row(w, wide);
	if (!j->row)
		return;
	weir_replace_row(w, j, wide);
	weir_cell_set(j->row, j->clk->cell, 0, wide);
}

/* Ask about this rule's flow. */
static __always_inline void weir_ask_about(struct weir_work *w, const struct weir_rule *rule,
					   const struct weir_flow_place *place, const bool wide)
{
	struct weir_question *q = &w->question;

	q->place = *place;
	q->slot = rule->slot;
	q->timing = rule->timing;
	q->window_cells = rule->window_cells;
	q->is_smooth = rule->window == WEIR_WINDOW_SMOOTH;
	q->is_lone = wide && rule->storage == WEIR_STORAGE_LONE;
	/* Rows of whole resources are few, and mostly in use everywhere. */
	q->asks_all = q->is_lone || rule->asks_all;
}

/* Find the row of this rule's flow, wide or one of its own, if there is one; in *ret_place, where it was looked for. */
static __always_inline void *weir_locate_wide(struct weir_work *w, const struct weir_rule *rule,
					      struct weir_flow_place *ret_place)
{
	if (rule->storage == WEIR_STORAGE_LONE) {
		__u32 slot = w->located = rule->slot;

		ret_place->tag = ret_place->set = 0;
		return bpf_map_lookup_elem(&lone_rows, &slot);
	}
	*ret_place = weir_flow_place(rule, &w->packet, true);
	w->located = WEIR_NO_ROW;
	return weir_find_row(w, ret_place, -1, &w->located, true);
}

/* Judge against the located row, again when the clock ran away from the first try. */
static __always_inline enum weir_answer weir_judge_located(struct weir_work *w, struct weir_judgement *j,
							   const bool wide)
{
	for (int attempt = 0; attempt < WEIR_ATTEMPTS; attempt++) {
		enum weir_answer answer;

		weir_settle(w, j, wide);
		answer = weir_judge_row(w, j, wide);
		if (answer != WEIR_ANSWER_AGAIN)
			return answer;
		w->has_now = 0;
		weir_clock_update(w, j->clk, j->rule->bucket_ns, j->rule->base_bucket, wide);
	}
	weir_count_stall(w->question.slot);
	return WEIR_ANSWER_BLOCK;
}

/* Everything about a judgement but the row. */
static __always_inline bool weir_open_judgement(struct weir_work *w, struct weir_judgement *j, const bool wide)
{
	__u32 timing = j->rule->timing;

	j->clk = wide ? bpf_map_lookup_elem(&clocks, &timing) : weir_narrow_clock(w, timing);
	if (!j->clk)
		return false;
	/* Thresholds that are no constants are never kept in narrow rows. */
	j->threshold_word = wide && weir_must_find_allowed(j->rule) ? w->allowed.word : j->rule->threshold;
	j->threshold = j->threshold_word & WEIR_THRESHOLD_MASK;
	/* Narrow rows count packets. */
	j->batch = wide && j->rule->counts_bytes ? w->packet.frame_bytes : 1;
	return true;
}

/* What the row remembers of its flow's threshold, if that is of this load. */
static __always_inline bool weir_recall_override(struct weir_judgement *j, const bool wide)
{
	__u64 version = wide ? ((struct weir_wide_row *)j->row)->threshold >> WEIR_THRESHOLD_BITS
			     : ((struct weir_narrow_row *)j->row)->version;

	if (!j->rule->has_overrides || (version ^ j->threshold_word >> WEIR_THRESHOLD_BITS) & ~WEIR_VERSION_PLAIN)
		return false;
	if (wide)
		j->threshold_word = ((struct weir_wide_row *)j->row)->threshold;
	else
		j->threshold_word = (j->threshold_word & WEIR_THRESHOLD_MASK) | version << WEIR_THRESHOLD_BITS;
	return wide || version & WEIR_VERSION_PLAIN;
}

/*
 * The threshold of this packet's flow, where some flows have one of their own. Most have none, and their row knows it.
 * A narrow row cannot hold what an override says: that is looked up again for each packet, until the flow is full.
 */
static __always_inline void weir_apply_override(struct weir_work *w, struct weir_judgement *j, __u32 place,
						const bool wide)
{
	/* What a row says that counts no more may be of a load long ago: versions come round. */
	if (j->row && ROW_GET(j->row, wide, newest) + j->rule->window_cells > j->clk->bucket &&
	    weir_recall_override(j, wide)) {
		j->threshold = j->threshold_word & WEIR_THRESHOLD_MASK;
		return;
	}
	j->threshold_word = weir_override_word(w, place);
	j->threshold = j->threshold_word & WEIR_THRESHOLD_MASK;
	/* A flow that may send nothing gets a row all the same, so that the next packet finds it full. */
	j->is_shut = j->threshold == 0;
}

/* Another rule may yet block the packet, after the one that is being asked. */
static __always_inline bool weir_is_held(const struct weir_work *w)
{
	return w->judged + 1 < w->rule_count;
}

static __always_inline void weir_set_claim(struct weir_work *w, struct weir_claim *claim, enum weir_claim_kind kind,
					   __u32 tag, __u64 batch, __u32 cell, enum weir_storage storage)
{
	if (kind != WEIR_CLAIM_SPENT)
		w->must_settle = 1;
	claim->row = w->located;
	claim->tag = tag;
	claim->batch = batch;
	claim->storage = storage;
	claim->cell = cell;
	claim->kind = kind;
}

/*
 * The packet is spent from what `row`, of the flow with this tag, has leased in the present bucket, and under the
 * threshold in force. Where other rules may yet block it the units are spent all the same, and put back then; but not
 * the last ones, which nobody may see spent, and then unspent again: others would take the flow for full.
 */
static __always_inline bool weir_spends_lease(struct weir_work *w, void *row, const struct weir_clock *clk, __u64 batch,
					      __u32 tag, struct weir_claim *claim, enum weir_storage storage)
{
	const bool wide = storage != WEIR_STORAGE_NARROW;
	__u64 lease = weir_lease_get(row, wide);
	bool is_held = weir_is_held(w);

	if (ROW_GET(row, wide, newest) != clk->bucket || lease < batch)
		return false;
	claim->kind = WEIR_CLAIM_SPENT;
	if (is_held)
		weir_set_claim(w, claim, lease == batch ? WEIR_CLAIM_LEASE : WEIR_CLAIM_SPENT, tag, batch, clk->cell,
			       storage);
	if (is_held && lease == batch)
		return true;
	ROW_SET(row, wide, lease, lease - batch);
	if (lease == batch)
		weir_cell_set(row, clk->cell, weir_cell_get(row, clk->cell, wide) & ~ROW_UNSPENT(wide), wide);
	return true;
}

/* Out of line, as it is seldom. */
__noinline int weir_write_spender(struct weir_work *w, __u32 place)
{
	if (w)
		weir_write_talker(w, weir_rule(place));
	return 0;
}

/* As weir_note_talker() of one who spends from a lease of wide rows. */
static __always_inline void weir_note_spender(struct weir_work *w, __u32 place, const struct weir_flow_place *flow)
{
	if (likely(!weir_note_is_due(w)))
		return;
	w->question.place = *flow;
	weir_write_spender(w, place);
}

/*
 * Judge the packet by `rule`, number `index` of its list; on admission claim[index] says what was set aside. A flow
 * with narrow rows is located.
 */
static __always_inline enum weir_answer weir_judge(struct weir_work *w, const struct weir_rule *rule, __u32 place,
						   __u32 index, const bool wide)
{
	struct weir_judgement j = {.rule = rule};
	struct weir_flow_place flow;
	enum weir_answer answer;
	struct weir_claim *claim;

	OPAQUE(index);
	if (index >= WEIR_PACKET_RULES_MAX || !weir_open_judgement(w, &j, wide))
		return WEIR_ANSWER_ERROR;
	claim = &w->claim[index];
	claim->kind = WEIR_CLAIM_NONE;
	if (config.has_overrides && rule->has_overrides) {
		j.row = wide ? weir_locate_wide(w, rule, &flow) : weir_located_row(w, false);
		if (!weir_clock_holds(j.clk))
			weir_clock_enter(w, j.clk, rule, wide);
		weir_apply_override(w, &j, place, wide);
	}
	if (j.batch > j.threshold && !j.is_shut)
		return WEIR_ANSWER_BLOCK;
	if (!j.row)
		j.row = wide ? weir_locate_wide(w, rule, &flow) : weir_located_row(w, false);

	/* As in weir_blocks_at_once(): without the clock. */
	if (j.row && weir_clock_holds(j.clk) && weir_known_full(w, &j, false, wide))
		return WEIR_ANSWER_BLOCK;
	weir_clock_enter(w, j.clk, rule, wide);
	/* Of narrow rows that was seen before (quick.h). */
	if (wide && j.row && rule->window != WEIR_WINDOW_SMOOTH &&
	    ((struct weir_wide_row *)j.row)->threshold == j.threshold_word &&
	    weir_spends_lease(w, j.row, j.clk, j.batch, flow.tag, claim, rule->storage)) {
		if (rule->storage == WEIR_STORAGE_WIDE)
			weir_note_spender(w, place, &flow);
		return WEIR_ANSWER_ADMIT;
	}
	if (j.row && weir_known_full(w, &j, true, wide))
		return WEIR_ANSWER_BLOCK;
	if (wide)
		weir_ask_about(w, rule, &flow, true);
	if (!j.row)
		weir_insert(w, &j, wide);
	if (!j.row)
		return WEIR_ANSWER_ERROR;

	answer = weir_judge_located(w, &j, wide);
	if (!w->question.is_lone)
		weir_note_talker(w, rule, answer == WEIR_ANSWER_BLOCK);
	if (answer == WEIR_ANSWER_ADMIT)
		weir_set_claim(w, claim, j.is_backdated ? WEIR_CLAIM_BACKDATED : WEIR_CLAIM_LEASE,
			       w->question.place.tag, j.batch, j.own_cell, rule->storage);
	return answer;
}

/* Out of line: verified once each, instead of once for each of the rules that may meet. */
__noinline int weir_judge_narrow(struct weir_work *w, __u32 place, __u32 index)
{
	return w ? weir_judge(w, weir_rule(place), place, index, false) : WEIR_ANSWER_ERROR;
}

__noinline int weir_judge_wide(struct weir_work *w, __u32 place, __u32 index)
{
	return w ? weir_judge(w, weir_rule(place), place, index, true) : WEIR_ANSWER_ERROR;
}

/* ---- settling what was set aside ---- */

/* There is something to settle. */
static __always_inline bool weir_claim_holds(const struct weir_claim *claim, bool passes)
{
	return claim->kind > (passes ? WEIR_CLAIM_SPENT : WEIR_CLAIM_GIVEN);
}

static __always_inline void weir_spend_row(const struct weir_claim *claim, void *row, const bool wide)
{
	__u64 lease = weir_lease_get(row, wide);

	if (claim->kind != WEIR_CLAIM_LEASE || lease < claim->batch)
		return;
	lease -= claim->batch;
	ROW_SET(row, wide, lease, lease);
	if (lease == 0)
		weir_cell_set(row, claim->cell, weir_cell_get(row, claim->cell, wide) & ~ROW_UNSPENT(wide), wide);
}

static __always_inline void weir_undo_row(const struct weir_claim *claim, void *row, const bool wide)
{
	if (claim->kind == WEIR_CLAIM_SPENT)
		ROW_SET(row, wide, lease, weir_lease_get(row, wide) + claim->batch);
	if (claim->kind == WEIR_CLAIM_BACKDATED)
		weir_cell_set(row, claim->cell, weir_cell_get(row, claim->cell, wide) - claim->batch, wide);
}

static __always_inline void weir_settle_row(const struct weir_claim *claim, void *row, bool passes, const bool wide)
{
	if (!row || ROW_GET(row, wide, tag) != claim->tag)
		return;
	if (passes)
		weir_spend_row(claim, row, wide);
	else
		weir_undo_row(claim, row, wide);
}

/* The packet passes (spend) or was blocked by a later rule (undo; a lease just stays a lease). The claim holds. */
static __always_inline void weir_settle_narrow(const struct weir_claim *claim, bool passes)
{
	weir_settle_row(claim, weir_row_by_number(claim->row, false), passes, false);
}

/* The same with wide rows, or one of its own. */
static __always_inline void weir_settle_wide(const struct weir_claim *claim, bool passes)
{
	__u32 slot = claim->row;
	void *row = claim->storage == WEIR_STORAGE_WIDE ? weir_row_by_number(slot, true)
							: bpf_map_lookup_elem(&lone_rows, &slot);

	weir_settle_row(claim, row, passes, true);
}

#endif
