/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cells of occupy windows (struct weir_occupy_window): how a bucket's number and its units share a word. For the
 * program and for commands that read its tables.
 */
#ifndef WEIR_ABI_OCCUPY_H
#define WEIR_ABI_OCCUPY_H

#include "weir_state.h"

/* Where the ghosts of an evicted flow are: as if its set were two sets of rows of this size, which have four sets of
 * ghosts. So there are ghosts for more than four times as many flows as slots.
 */
#define WEIR_OCCUPY_PAGE_SETS WEIR_NARROW_PAGE_SETS
#define WEIR_OCCUPY_ROW_SET(set, tag) ((set) << 1 | ((tag) >> 11 & 1))

/*
 * A round of the ring takes two intervals. So the number of a round needs as many bits as a clock of 64 bits has above
 * two intervals; the other bits are for units. So a cell can count one packet for every nanosecond of the interval. At
 * least 24 bits remain for the round and the tag, which shows whether the cell is another flow's.
 */
#define WEIR_OCCUPY_UNIT_BITS_MAX 40

static inline __u8 weir_occupy_unit_bits(__u64 interval_ns)
{
	__u8 bits = 63 - __builtin_clzll(2 * interval_ns | 1);

	return bits < WEIR_OCCUPY_UNIT_BITS_MAX ? bits : WEIR_OCCUPY_UNIT_BITS_MAX;
}

/* The bits above the units in a cell of this round, for the flow with this tag. */
static inline __u64 weir_occupy_mark(__u64 round, __u32 tag, __u8 unit_bits)
{
	return ((round ^ tag) << unit_bits) >> unit_bits;
}

static inline __u64 weir_occupy_word(__u64 mark, __u64 units, __u8 unit_bits)
{
	return mark << unit_bits | units;
}

static inline __u64 weir_occupy_units_max(__u8 unit_bits)
{
	return (1ull << unit_bits) - 1;
}

#endif
