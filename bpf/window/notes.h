/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Notes say which flows are over their limit until their bucket ends. With them, a flood of many such flows need not
 * fetch the flows' rows, which are scattered over a table larger than any cache. A note takes four bytes. Each set of
 * rows has four notes, for flows whose first set it is; a new note replaces the oldest. No verdict depends on notes: a
 * flow without a note is evaluated against its row.
 *
 * A note is the flow's tag, mixed with the salt of the bucket (struct weir_clock), so that it no longer matches when
 * the bucket is over. The chance that a note of another bucket matches a flow is 2^-30 per set. Two flows with the same
 * note in one bucket have the same tag and set, and so the same row. Every CPU has notes of its own. Each load begins
 * without notes, because its thresholds may differ.
 */
#ifndef WEIR_NOTES_H
#define WEIR_NOTES_H

#include "window/rows.h"

static __always_inline struct weir_notes *weir_notes(struct weir_scratch *s)
{
	__u32 index = weir_this_cpu(s) * config.sizes[WEIR_TABLE_NARROW_FLOWS] + s->flow.set;

	return bpf_map_lookup_elem(&notes, &index);
}

/* Is s->flow noted as over its limit until the bucket in *clk ends, and has that bucket not ended? */
static __always_inline bool weir_is_noted(struct weir_scratch *s, const struct weir_clock *clk)
{
	const struct weir_notes *set = weir_notes(s);
	__u64 note = s->flow.tag ^ clk->salt, any = 0;

	if (!set)
		return false;
	note |= note << 32;
	/* Without branches. Subtract one from both halves of a pair: a half whose top bit is then set was 0. A borrow
	 * from the lower half can falsify only the upper one, and only if the lower half was 0, which is a hit anyway.
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
