/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cells of a row: a ring of eleven buckets, each with the units that its CPU has admitted or leased in it. A row
 * records the number of its newest bucket. No CPU clears old cells, so readers use that number to tell which cells
 * count. The top bit of a cell says that some of its units are a lease not yet spent, or a reservation being evaluated.
 */
#ifndef WEIR_CELLS_H
#define WEIR_CELLS_H

#include "window/rows.h"

/* ---- one cell ---- */

/* The cell of a bucket. The verifier does not know the bound of a remainder, so the bound is tested again. */
static __always_inline __u32 weir_cell_of(__u64 bucket)
{
	__u32 cell = bucket % WEIR_RING_CELLS;

	OPAQUE(cell);
	return cell < WEIR_RING_CELLS ? cell : 0;
}

/* The cell of the bucket `age` before the one that `cell` belongs to. */
static __always_inline __u32 weir_cell_before(__u32 cell, __u32 age)
{
	__u32 older = cell >= age ? cell - age : cell + WEIR_RING_CELLS - age;

	OPAQUE(older);
	return older < WEIR_RING_CELLS ? older : 0;
}

/* The index is opaque until it is tested. Otherwise clang tests one copy of it and uses another, and Linux 6.1 does not
 * recognise a number read back from the stack as the one just tested (6.12 does).
 */
static __always_inline __u64 weir_cell_get(void *row, __u32 cell, const enum weir_width wide)
{
	OPAQUE(cell);
	if (cell >= WEIR_RING_CELLS)
		return 0;
	return ROW_GET(row, wide, cell[cell]);
}

static __always_inline void weir_cell_set(void *row, __u32 cell, __u64 value, const enum weir_width wide)
{
	OPAQUE(cell);
	if (cell < WEIR_RING_CELLS)
		ROW_SET(row, wide, cell[cell], value);
}

/* ---- several cells, one bit each ---- */

#define WEIR_RING_MASK ((1u << WEIR_RING_CELLS) - 1)

static __always_inline __u32 weir_bits_below(__u32 count)
{
	return (1u << count) - 1;
}

/*
 * The cells whose buckets are `from` to `to` - 1 buckets older than the one that `cell` belongs to. Ages run downwards
 * from `cell`, around the ring. Counted from the oldest (age 10) up, these cells are a run of bits, which is then
 * rotated into place. Bits are used as factors instead of branches or masks, because the verifier would follow each of
 * the 2^11 combinations (Linux 6.18 forks even at an AND with 0 or -1).
 */
static __always_inline __u32 weir_cells_aged(__u32 cell, __u32 from, __u32 to)
{
	__u32 run = weir_bits_below(WEIR_RING_CELLS - from) & ~weir_bits_below(WEIR_RING_CELLS - to);
	__u32 turn = cell + 1;

	return (run << turn | run >> (WEIR_RING_CELLS - turn)) & WEIR_RING_MASK;
}

/* A mask of all ones in those lanes of word `word` for which `cells` has a bit. The product puts a copy of the four
 * bits below each lane, shifted so that the lane's own bit is the lowest.
 */
static __always_inline __u64 weir_lanes(__u32 cells, const int word)
{
	return ((cells >> 4 * word & 15) * 0x0000200040008001ull & 0x0001000100010001ull) * 0xffff;
}

static __always_inline void weir_clear_cells(void *row, __u32 cells, const enum weir_width wide)
{
	if (wide) {
#pragma unroll
		for (__u32 i = 0; i < WEIR_RING_CELLS; i++)
			ROW_SET(row, wide, cell[i], ROW_GET(row, wide, cell[i]) * (~cells >> i & 1));
	} else {
#pragma unroll
		for (int i = 0; i < WEIR_CELL_WORDS; i++)
			weir_cell_words(row)[i] &= ~weir_lanes(cells, i);
	}
}

/* The sum of some cells' units. The bits of all these cells are or-ed into *ret_flags. */
static __always_inline __u64 weir_sum_cells(void *row, __u32 cells, __u64 *ret_flags, const enum weir_width wide)
{
	__u64 units = 0, flags = 0;

	if (wide) {
#pragma unroll
		for (__u32 i = 0; i < WEIR_RING_CELLS; i++) {
			__u64 value = ROW_GET(row, wide, cell[i]) * (cells >> i & 1);

			flags |= value;
			units += value & ~ROW_UNSPENT(wide);
			OPAQUE(units); /* one cell after the other: else clang keeps them all on the stack */
		}
	} else {
#pragma unroll
		for (int i = 0; i < WEIR_CELL_WORDS; i++) {
			__u64 lanes = weir_cell_words(row)[i] & weir_lanes(cells, i);

			flags |= lanes;
			units += weir_lane_pairs(lanes & ~WEIR_LANES_UNSPENT);
		}
		units = (units + (units >> 32)) & 0xffffffff;
		flags = flags & WEIR_LANES_UNSPENT ? WEIR_NARROW_UNSPENT : 0;
	}
	*ret_flags |= flags;
	return units;
}

/* ---- the lease, and moving on ---- */

/* The number of leased units. It is also 0 if the row is known to be over its limit. */
static __always_inline __u64 weir_lease_get(void *row, const enum weir_width wide)
{
	__u64 lease = ROW_GET(row, wide, lease);

	return !wide && lease & WEIR_NARROW_OVER ? 0 : lease;
}

/* Spend from a row's lease. When the lease is used up, no unit is unspent. */
static __always_inline void weir_spend(void *row, __u32 cell, __u64 lease, __u64 batch, const enum weir_width wide)
{
	ROW_SET(row, wide, lease, lease - batch);
	if (lease == batch)
		weir_cell_set(row, cell, weir_cell_get(row, cell, wide) & ~ROW_UNSPENT(wide), wide);
}

/* In a narrow row, a new lease clears it. */
static __always_inline void weir_forget_over(void *row, const enum weir_width wide)
{
	if (wide == WEIR_WIDE)
		((struct weir_wide_row *)row)->over_until_ns = 0;
	else if (wide == WEIR_MEDIUM)
		((struct weir_medium_row *)row)->over_part = 0;
}

/* A lease, and being over the limit, belong to a bucket and a threshold. Give back unspent units, and clear both. */
static __always_inline void weir_give_back(void *row, const enum weir_width wide)
{
	__u64 lease = weir_lease_get(row, wide);

	if (lease) {
		__u32 cell = weir_cell_of(ROW_GET(row, wide, newest));

		weir_cell_set(row, cell, (weir_cell_get(row, cell, wide) & ~ROW_UNSPENT(wide)) - lease, wide);
	}
	ROW_SET(row, wide, lease, 0);
	weir_forget_over(row, wide);
}

/* Our row, which has no lease, enters a newer bucket with `units` units in it. First write the number of the bucket,
 * then clear cells, and only then count. The new cell is marked as unspent.
 */
static __always_inline void weir_enter_bucket(struct weir_scratch *s, void *row, __u64 bucket, __u32 cell, __u64 units,
					      const enum weir_width wide)
{
	__u64 passed_by = bucket - ROW_GET(row, wide, newest);

	/* Until it is cleared, the cell still has the count of the ring's previous round. The mark shows that it must
	 * not be counted as spent.
	 */
	weir_cell_set(row, cell, weir_cell_get(row, cell, wide) | ROW_UNSPENT(wide), wide);
	weir_order(s);
	ROW_SET(row, wide, newest, bucket);
	weir_order(s);
	weir_clear_cells(row, weir_cells_aged(cell, 1, passed_by < WEIR_RING_CELLS ? passed_by : WEIR_RING_CELLS),
			 wide);
	weir_order(s);
	weir_cell_set(row, cell, units | ROW_UNSPENT(wide), wide);
}

#endif
