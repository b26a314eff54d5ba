/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A note of the flows that are full until their bucket is over, so that packets of many such flows need not fetch their
 * rows: those lie in 32 bytes a flow, scattered over a table larger than any cache; the notes take four. Nothing
 * depends on them: a flow without one is judged by its row.
 *
 * A line has sixteen notes, the latest first; a new one pushes out the oldest. A note is the flow's place, as far as
 * the line does not say it, under the salt of the bucket (struct weir_clock), so that none is taken for true when the
 * bucket is over. Within a bucket two flows of one timing with the same note have the same place, and so the same row.
 * A note of the past is taken for another flow's with a chance of 2^-32, 2^-28 a line; that two flows have the same
 * row, of eight, is 2^-25. And notes are read only after a packet that was blocked at once.
 *
 * The table is of the generation: what is noted under one load is not known to the next, whose thresholds may differ.
 */
#ifndef WEIR_FULL_H
#define WEIR_FULL_H

#include "flow.h"

static __always_inline __u32 weir_full_note(const struct weir_flow_place *place, const struct weir_clock *clk)
{
	return place->tag ^ (place->set & (WEIR_FULL_SETS_PER_LINE - 1)) ^ clk->salt;
}

static __always_inline struct weir_full_line *weir_full_line(__u32 set)
{
	__u32 number = set / WEIR_FULL_SETS_PER_LINE, index = number / WEIR_FULL_LINES_PER_CHUNK;
	struct weir_full_chunk *chunk = bpf_map_lookup_elem(&full_flows, &index);

	if (!chunk)
		return NULL;
	OPAQUE(number);
	return &chunk->line[number & (WEIR_FULL_LINES_PER_CHUNK - 1)];
}

/* The flow is full until *clk is over, if that is not over. */
static __always_inline bool weir_is_noted_full(const struct weir_flow_place *place, const struct weir_clock *clk)
{
	const struct weir_full_line *line = weir_full_line(place->set);
	__u64 note = weir_full_note(place, clk), any = 0;

	if (!line)
		return false;
	note |= note << 32;
	/* Without branches. Of a pair less one in both halves, which half was 0 shows in the top bits: a borrow from
	 * the lower half deceives only where that one was 0.
	 */
#pragma unroll
	for (int i = 0; i < WEIR_FULL_PAIRS; i++) {
		__u64 differs = READ_ONCE(line->pair[i]) ^ note;

		any |= (differs - 0x0000000100000001ull) & ~differs;
	}
	return any & 0x8000000080000000ull;
}

/* Note the flow of this place, whose timing the tag names. Out of line: a note is made seldom, and looked for often. */
__noinline int weir_note_full(struct weir_work *w, __u32 set, __u32 tag)
{
	struct weir_flow_place place = {.set = set, .tag = tag};
	struct weir_full_line *line = weir_full_line(set);
	__u64 newer;

	if (!w || !line)
		return 0;
	newer = (__u64)weir_full_note(&place, weir_narrow_clock(w, tag)) << 32;
#pragma unroll
	for (int i = 0; i < WEIR_FULL_PAIRS; i++) {
		__u64 pair = READ_ONCE(line->pair[i]);

		WRITE_ONCE(line->pair[i], pair << 32 | newer >> 32);
		newer = pair;
	}
	return 0;
}

#endif
