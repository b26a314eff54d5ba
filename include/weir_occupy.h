/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cells of occupy windows (struct weir_occupy_window): how a bucket's number and its units share a word. For the
 * program and for commands that read its tables.
 */
#ifndef WEIR_ABI_OCCUPY_H
#define WEIR_ABI_OCCUPY_H

#include "weir_state.h"

/* Where ghosts of a flow are that is pushed out: as if its set were two of so large rows, whose sets of ghosts are
 * four. So there are ghosts for more than four times as many flows as places.
 */
#define WEIR_OCCUPY_PAGE_SETS WEIR_NARROW_PAGE_SETS
#define WEIR_OCCUPY_ROW_SET(set, tag) ((set) << 1 | ((tag) >> 11 & 1))

/*
 * A ring goes round in two intervals, so a round's number needs as many bits as a clock of 64 bits has left over above
 * two intervals; the other bits are for units. So a cell holds a packet for every nanosecond of the interval. At
 * least 24 bits stay for the round and the tag, by which another flow's cell is known.
 */
#define WEIR_OCCUPY_UNIT_BITS_MAX 40

static inline __u8 weir_occupy_unit_bits(__u64 interval_ns)
{
	__u8 bits = 63 - __builtin_clzll(2 * interval_ns | 1);

	return bits < WEIR_OCCUPY_UNIT_BITS_MAX ? bits : WEIR_OCCUPY_UNIT_BITS_MAX;
}

/* What stands above the units in a cell of this round, of the flow with this tag. */
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
