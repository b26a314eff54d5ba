/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ghosts: what a flow leaves behind that is pushed out of a full set while its entry counts, so that a full table does
 * not open the gate for who comes back. A ghost is one word: whose it is (24 bits), and until when the entry would have
 * counted (40 bits of the clock, in steps of 2^13 ns). With that a kind begins the flow's new entry: a token bucket
 * that is full then, a packet that is planned then. It is rounded against the flow, by less than 6 ms: the steps of a
 * set's `keep`, and of a bucket's time. Another flow takes a ghost for its own once in two million times.
 *
 * Where nothing was pushed out lately nobody looks here: one word says until when some ghost may count.
 * (Rows of windows leave more: remnants.h.)
 */
#ifndef WEIR_BPF_GHOSTS_H
#define WEIR_BPF_GHOSTS_H

#include "flow_set.h"

/* The flow of `tag` in set `number` of the table `table`: its name, and its ghosts' set. */
static __always_inline __u64 weir_ghost_name(__u32 tag, const __u32 table)
{
	return ((__u64)(tag >> 8) ^ table * 0x9e3779u) << WEIR_GHOST_TIME_BITS;
}

static __always_inline struct weir_ghost_set *weir_ghost_set(__u32 number, __u32 tag)
{
	__u32 index = weir_ghost_index(number, tag) & (config.sizes[WEIR_TABLE_GHOSTS] - 1);

	return bpf_map_lookup_elem(&ghosts, &index);
}

/* Behind the sets. */
static __always_inline struct weir_ghost_set *weir_ghost_head(void)
{
	__u32 last = config.sizes[WEIR_TABLE_GHOSTS];

	return bpf_map_lookup_elem(&ghosts, &last);
}

/* How many steps of 2^13 ns the ghost counts from `now` on; 0: it is over. Without a branch. */
static __always_inline __u64 weir_ghost_left(__u64 word, __u64 now)
{
	__u64 left = (word - now) & WEIR_GHOST_TIME_MASK, is_over = left >> (WEIR_GHOST_TIME_BITS - 1);

	OPAQUE(is_over);
	return left & (is_over - 1);
}

/* The flow of `tag`, in set `number`, is gone: its entry would have counted until the step of the clock in `keep`. The
 * ghost that is over first makes room.
 */
__noinline int weir_leave_flow_ghost(struct weir_scratch *s, __u32 tag, __u32 number, __u32 table, __u32 keep)
{
	struct weir_ghost_set *set, *head = weir_ghost_head();
	__u64 now, until, least = ~0ull >> 1, seen, until_ns;
	__u32 steps;

	WEIR_GLOBAL(GHOSTS, s, 0);
	set = weir_ghost_set(number, tag);
	steps = (keep - weir_keep_step(weir_now_ns(s))) & WEIR_KEEP_STEP_MASK;
	if (!set || !head || steps > WEIR_KEEP_STEPS_MAX)
		return 0;
	until_ns =
		(weir_now_ns(s) >> WEIR_KEEP_STEP_BITS << WEIR_KEEP_STEP_BITS) + ((__u64)steps << WEIR_KEEP_STEP_BITS);
	/* Told before the ghost is there, and for a second more, so that it is seldom written. */
	seen = READ_ONCE(head->until_ns);
	if (seen < until_ns)
		__sync_val_compare_and_swap(&head->until_ns, seen, until_ns + WEIR_NSEC_PER_SEC);
	now = weir_now_ns(s) >> WEIR_GHOST_STEP_BITS;
	until = ((until_ns >> WEIR_GHOST_STEP_BITS) + 1) & WEIR_GHOST_TIME_MASK;
#pragma unroll
	for (__u32 way = 0; way < WEIR_GHOST_WAYS; way++) {
		least = weir_lesser(weir_ghost_left(READ_ONCE(set->word[way]), now) * WEIR_GHOST_WAYS + way, least);
		OPAQUE(least);
	}
	if (least / WEIR_GHOST_WAYS)
		__sync_fetch_and_add(&head->displaced, 1); /* this one, or that which makes room for it */
	if (least / WEIR_GHOST_WAYS < ((until - now) & WEIR_GHOST_TIME_MASK))
		WRITE_ONCE(set->word[least & (WEIR_GHOST_WAYS - 1)], weir_ghost_name(tag, table) | until);
	return 0;
}

/* For how many ns from now on the entry that this flow had would have counted; 0: for none. The ghost is laid. */
__noinline __u64 weir_lay_flow_ghost(struct weir_scratch *s, __u32 tag, __u32 number, __u32 table)
{
	const struct weir_ghost_set *head = weir_ghost_head();
	struct weir_ghost_set *set;
	__u64 now, name;

	WEIR_GLOBAL(GHOSTS, s, 0);
	if (!head || likely(READ_ONCE(head->until_ns) <= weir_now_ns(s)))
		return 0;
	set = weir_ghost_set(number, tag);
	if (!set)
		return 0;
	now = weir_now_ns(s) >> WEIR_GHOST_STEP_BITS;
	name = weir_ghost_name(tag, table);
	for (__u32 way = 0; way < WEIR_GHOST_WAYS; way++) {
		__u64 word = READ_ONCE(set->word[way]);

		if ((word ^ name) >> WEIR_GHOST_TIME_BITS || !weir_ghost_left(word, now))
			continue;
		WRITE_ONCE(set->word[way], 0);
		return weir_ghost_left(word, now) << WEIR_GHOST_STEP_BITS;
	}
	return 0;
}

#endif
