/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Handshakes of the whole host, for system rules: how many were completed in each half second, how long they took
 * together, and how long the shortest took. All CPUs count in one ring. A connection completes only one handshake, so
 * CPUs seldom compete.
 */
#ifndef WEIR_BPF_HANDSHAKES_H
#define WEIR_BPF_HANDSHAKES_H

#include "kinds/connection_state.h"

/* A word that still has another bucket's number is replaced by compare-and-swap. This fails only if another CPU has
 * changed the word, which then mostly has our number at the second attempt. Only the shortest time may need more
 * attempts.
 */
#define WEIR_HANDSHAKE_ATTEMPTS 16

struct weir_handshake_figures {
	__u64 count, sum_us, shortest_us; /* without handshakes, shortest_us is 2^32 - 1 */
	__u64 most;			  /* in any one bucket */
};

static __always_inline struct weir_handshake_bucket *weir_handshake_bucket(__u64 number)
{
	__u32 zero = 0, index = number;
	struct weir_handshakes *ring = bpf_map_lookup_elem(&handshakes, &zero);

	OPAQUE(index);
	return ring ? &ring->bucket[index & (WEIR_HANDSHAKE_BUCKETS - 1)] : NULL;
}

/* Add to a word that has its bucket's number above `bits`. Exact, because a word with this number only ever grows. (A
 * CPU that stalls for the eight seconds of the ring between reading and adding adds to the bucket that came next.)
 */
static __always_inline void weir_add_handshake(__u64 *word, __u64 tag, const __u32 bits, __u64 amount)
{
	for (__u64 attempt = 0; attempt < WEIR_HANDSHAKE_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(*word);

		if (!((old ^ tag) >> bits)) {
			__sync_fetch_and_add(word, amount);
			return;
		}
		if (__sync_val_compare_and_swap(word, old, tag | amount) == old)
			return;
	}
}

static __always_inline void weir_lower_shortest(__u64 *word, __u64 tag, __u64 took_us)
{
	for (__u64 attempt = 0; attempt < WEIR_HANDSHAKE_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(*word);

		if (!((old ^ tag) >> 32) && (__u32)old <= took_us)
			return;
		if (__sync_val_compare_and_swap(word, old, tag | took_us) == old)
			return;
	}
}

/* A handshake is complete; it took s->handshake_us. The count is written last, so that a reader that sees it also sees
 * the times.
 */
__noinline int weir_note_handshake(struct weir_scratch *s)
{
	struct weir_handshake_bucket *at;
	__u64 number;

	WEIR_GLOBAL(TRACKER, s, 0);
	number = weir_monotonic_ns(s) / WEIR_HANDSHAKE_BUCKET_NS;
	at = weir_handshake_bucket(number);
	if (!at)
		return 0;
	weir_lower_shortest(&at->shortest, WEIR_HANDSHAKE_TAG(number), s->handshake_us);
	weir_add_handshake(&at->sum_us, WEIR_HANDSHAKE_SUM_TAG(number), WEIR_HANDSHAKE_SUM_BITS, s->handshake_us);
	weir_order(s);
	weir_add_handshake(&at->count, WEIR_HANDSHAKE_TAG(number), 32, 1);
	return 0;
}

/* The handshakes of the last `buckets` half seconds, including the present one. `buckets` is a constant. */
static __always_inline void weir_sum_handshakes(struct weir_scratch *s, const __u32 buckets,
						struct weir_handshake_figures *ret)
{
	__u64 number = weir_monotonic_ns(s) / WEIR_HANDSHAKE_BUCKET_NS;

	__builtin_memset(ret, 0, sizeof(*ret));
	ret->shortest_us = 0xffffffffu;
#pragma nounroll
	for (__u32 age = 0; age < buckets; age++, number--) {
		const struct weir_handshake_bucket *at = weir_handshake_bucket(number);
		__u64 word, count, shortest_us;

		if (!at)
			continue;
		word = READ_ONCE(at->count);
		if ((word ^ WEIR_HANDSHAKE_TAG(number)) >> 32)
			continue;
		count = (__u32)word;
		if (!count)
			continue; /* before anything was counted, a word looks like that of bucket 0 */
		weir_order(s);	  /* the times were written before the count */
		shortest_us = (__u32)READ_ONCE(at->shortest);
		ret->count += count;
		ret->sum_us += READ_ONCE(at->sum_us) & WEIR_HANDSHAKE_SUM_MASK;
		if (shortest_us < ret->shortest_us)
			ret->shortest_us = shortest_us;
		if (count > ret->most)
			ret->most = count;
	}
}

#endif
