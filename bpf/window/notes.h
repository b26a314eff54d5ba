/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Notes of flows that are over their limit until their bucket ends: a flood of many such flows does not fetch their
 * rows, which are scattered over a table larger than any cache. A note takes four bytes. Each set of rows has four
 * notes for the flows that it is the first set of, and the latest pushes out the oldest. Nothing depends on them: a
 * flow without a note is evaluated against its row.
 *
 * A note is the flow's tag under the salt of the bucket (struct weir_clock), so that it is not taken for true when the
 * bucket is over. A note of another bucket is taken for this flow's with a chance of 2^-30 a set. Two flows with one
 * note in one bucket have the same tag and set, and so the same row. Every CPU has notes of its own, and each load
 * begins without: its thresholds may differ.
 */
#ifndef WEIR_NOTES_H
#define WEIR_NOTES_H

#include "window/rows.h"

static __always_inline struct weir_notes *weir_notes(struct weir_scratch *s)
{
	__u32 index = weir_this_cpu(s) * config.sizes[WEIR_TABLE_NARROW_FLOWS] + s->flow.set;

	return bpf_map_lookup_elem(&notes, &index);
}

/* s->flow is over its limit until *clk ends, if that has not ended. */
static __always_inline bool weir_is_noted(struct weir_scratch *s, const struct weir_clock *clk)
{
	const struct weir_notes *set = weir_notes(s);
	__u64 note = s->flow.tag ^ clk->salt, any = 0;

	if (!set)
		return false;
	note |= note << 32;
	/* Without branches. Of a pair less one in both halves, the top bits say which half was 0: a borrow from the
	 * lower half deceives only where that one was 0.
	 */
#pragma unroll
	for (int i = 0; i < WEIR_NOTE_PAIRS; i++) {
		__u64 differs = READ_ONCE(set->pair[i]) ^ note;

		any |= (differs - 0x0000000100000001ull) & ~differs;
	}
	return any & 0x8000000080000000ull;
}

/* Note s->flow, of a window spec. Out of line: a note is made seldom, and looked for often. */
__noinline int weir_note(struct weir_scratch *s, __u32 spec)
{
	struct weir_notes *set = s ? weir_notes(s) : NULL;
	__u64 newer;

	if (!set)
		return 0;
	newer = (__u64)(s->flow.tag ^ weir_clock_of(s, spec, WEIR_NARROW)->salt) << 32;
#pragma unroll
	for (int i = 0; i < WEIR_NOTE_PAIRS; i++) {
		__u64 pair = set->pair[i];

		set->pair[i] = pair << 32 | newer >> 32;
		newer = pair;
	}
	return 0;
}

#endif
