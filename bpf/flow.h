/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where flows live: a set-associative cache on every CPU. A flow has two candidate sets of four rows;
 * its tag and its sets come from one hash of (rule, timing, key) under a secret. A new flow takes a free or
 * expired row, or pushes out the one that counted least; so an insertion costs what a lookup costs, no
 * lock is taken, and the heavy flows, which are the ones being limited, are the last to go.
 *
 * The functions take `wide`, a constant: the same text makes the code for both row formats.
 */
#ifndef WEIR_FLOW_H
#define WEIR_FLOW_H

#include "clock.h"
#include "stats.h"

/* ---- fences ---- */

/* A full barrier: orders our stores before our loads, as Dekker's argument needs. An atomic whose
 * result is unused would be none on arm64.
 */
static __always_inline void weir_fence(struct weir_work *w)
{
	__u64 old = __sync_fetch_and_add(&w->fence, 1);

	asm volatile("" ::"r"(old) : "memory");
}

/* Orders stores before stores, and loads before loads. x86 does so by itself. */
static __always_inline void weir_order(struct weir_work *w)
{
	if (config.is_weakly_ordered)
		weir_fence(w);
	asm volatile("" ::: "memory");
}

/* ---- the hash ---- */

/*
 * Multilinear hashing (Lemire and Kaser, "Strongly universal string hashing is fast", 2014): each 32-bit
 * word of the input times a secret 64-bit number of its own, summed; two inputs collide with a chance of
 * 2^-32 however they are chosen. The sum is linear, so that one collision found would give others; a
 * bijection with two more secrets (xor-shift, multiply) takes that away. A sender sees no hash, only
 * whether its own packets pass.
 */
static __always_inline __u64 weir_hash_finish(__u64 sum)
{
	sum ^= sum >> 32;
	sum *= config.seed[14]; /* odd: the loader sees to it */
	sum ^= sum >> 29;
	sum *= config.seed[15];
	return sum ^ sum >> 32;
}

static __always_inline __u64 weir_hash_address(const __be32 address[4], const __be32 mask6[4], __be32 mask4,
					       bool is_ipv6, const volatile __u64 *seed)
{
	if (!is_ipv6)
		return (__u64)(address[0] & mask4) * seed[0];
	return (__u64)(address[0] & mask6[0]) * seed[0] + (__u64)(address[1] & mask6[1]) * seed[1] +
	       (__u64)(address[2] & mask6[2]) * seed[2] + (__u64)(address[3] & mask6[3]) * seed[3];
}

_Static_assert(WEIR_TIMINGS_MAX *(__u64)WEIR_RULE_SLOTS_MAX < 1ull << 31, "a word of the hash's input has 32 bits");

static __always_inline __u64 weir_hash_key(const struct weir_rule *rule, const struct weir_packet *pkt)
{
	const volatile __u64 *seed = config.seed;
	__u32 fields = rule->key_fields;
	__u64 sum;

	OPAQUE(seed); /* so that its address is kept, and not made anew for each word */
	/* The family is part of every key: a sender of one must not reach a row of the other. And so is the timing: a
	 * rule that is given a slot must not find rows whose buckets were counted in another length.
	 */
	sum = seed[0] + (__u64)((rule->timing * WEIR_RULE_SLOTS_MAX + rule->slot) << 1 | pkt->is_ipv6) * seed[1];

	/* The usual key, without seven tests of the others. */
	if (fields == WEIR_KEY_SOURCE)
		return weir_hash_finish(sum + weir_hash_address(pkt->source, rule->source_mask6, rule->source_mask4,
								pkt->is_ipv6, seed + 2));
	if (fields & WEIR_KEY_SOURCE)
		sum += weir_hash_address(pkt->source, rule->source_mask6, rule->source_mask4, pkt->is_ipv6, seed + 2);
	if (fields & WEIR_KEY_DESTINATION)
		sum += weir_hash_address(pkt->destination, rule->destination_mask6, rule->destination_mask4,
					 pkt->is_ipv6, seed + 6);
	if (fields & (WEIR_KEY_SOURCE_PORT | WEIR_KEY_DESTINATION_PORT)) {
		__u32 source = fields & WEIR_KEY_SOURCE_PORT ? pkt->source_port & 0xffff : 0;
		__u32 destination = fields & WEIR_KEY_DESTINATION_PORT ? pkt->destination_port & 0xffff : 0;

		sum += (__u64)(source << 16 | destination) * seed[10];
	}
	if (fields & (WEIR_KEY_PROTOCOL | WEIR_KEY_VLAN)) {
		__u32 protocol = fields & WEIR_KEY_PROTOCOL ? weir_protocol(pkt) : 0;
		__u32 vlan = fields & WEIR_KEY_VLAN ? pkt->vlan & 0xfff : 0;

		sum += (__u64)(protocol << 16 | vlan) * seed[11];
	}
	if (fields & WEIR_KEY_INTERFACE)
		sum += (__u64)pkt->ifindex * seed[12];
	return weir_hash_finish(sum);
}

static __always_inline struct weir_flow_place weir_flow_place(const struct weir_rule *rule,
							      const struct weir_packet *pkt, const bool wide)
{
	__u64 hash = weir_hash_key(rule, pkt);
	struct weir_flow_place place;

	if (wide) {
		place.tag = hash >> 32;
		if (place.tag == 0)
			place.tag = 1;
		place.set = hash & (config.wide_sets - 1);
	} else {
		place.tag = hash >> 32 & ~(WEIR_TIMINGS_NARROW - 1u);
		if (place.tag == 0)
			place.tag = WEIR_TIMINGS_NARROW;
		place.tag |= rule->timing & (WEIR_TIMINGS_NARROW - 1u);
		place.set = hash & (config.narrow_sets - 1);
	}
	return place;
}

static __always_inline __u32 weir_other_set(const struct weir_flow_place *place, const bool wide)
{
	return WEIR_OTHER_SET(place->set, place->tag, wide ? WEIR_WIDE_PAGE_SETS : WEIR_NARROW_PAGE_SETS);
}

/* ---- rows ---- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "cells lie in words of four, the first one lowest");

/* Field access for both formats; `wide` is constant, so only one side is left. Every access to a row is a
 * single load or store: other CPUs read rows while we write them.
 */
#define ROW_GET(row, wide, field)                                                                                      \
	((wide) ? (__u64)READ_ONCE(((struct weir_wide_row *)(row))->field)                                             \
		: (__u64)READ_ONCE(((struct weir_narrow_row *)(row))->field))
#define ROW_SET(row, wide, field, value)                                                                               \
	do {                                                                                                           \
		if (wide)                                                                                              \
			WRITE_ONCE(((struct weir_wide_row *)(row))->field, value);                                     \
		else                                                                                                   \
			WRITE_ONCE(((struct weir_narrow_row *)(row))->field, value);                                   \
	} while (0)
#define ROW_BYTES(wide) ((wide) ? sizeof(struct weir_wide_row) : sizeof(struct weir_narrow_row))
#define WEIR_STORAGE(wide) ((wide) ? WEIR_STORAGE_WIDE : WEIR_STORAGE_NARROW)
#define ROW_UNSPENT(wide) ((wide) ? WEIR_WIDE_UNSPENT : (__u64)WEIR_NARROW_UNSPENT)

/*
 * The cells of a narrow row, four to a word of 64 bits; lease and version lie behind the last three. All at
 * once they cost a third of one by one (make bench-quick, S2).
 */
#define WEIR_CELL_WORDS 3
#define WEIR_LANES_UNSPENT 0x8000800080008000ull
#define WEIR_LANES_EVEN 0x0000ffff0000ffffull
#define WEIR_LANES_OF_LAST 0x0000ffffffffffffull

/* Four lanes added two by two, so that sums of several words fit: an even and an odd one, in 32 bits each. */
static __always_inline __u64 weir_lane_pairs(__u64 lanes)
{
	return (lanes & WEIR_LANES_EVEN) + (lanes >> 16 & WEIR_LANES_EVEN);
}

static __always_inline volatile __u64 *weir_cell_words(void *row)
{
	return (volatile __u64 *)(row + __builtin_offsetof(struct weir_narrow_row, cell));
}

/* Row `way` of the set that begins at `set_rows`. */
static __always_inline void *weir_row_of_set(void *set_rows, __u32 way, const bool wide)
{
	return set_rows + way * ROW_BYTES(wide);
}

/* The chunk that holds a set, in this CPU's table or, with cpu >= 0, in that CPU's. */
static __always_inline void *weir_chunk_of(__u32 set, int cpu, const bool wide)
{
	__u32 index = set / (wide ? WEIR_WIDE_SETS_PER_CHUNK : WEIR_NARROW_SETS_PER_CHUNK);

	if (wide)
		return cpu < 0 ? bpf_map_lookup_elem(&wide_flows, &index)
			       : bpf_map_lookup_percpu_elem(&wide_flows, &index, cpu);
	return cpu < 0 ? bpf_map_lookup_elem(&narrow_flows, &index)
		       : bpf_map_lookup_percpu_elem(&narrow_flows, &index, cpu);
}

/* First row of a set, in its chunk. Both sets of a flow lie in one chunk, even in one page. */
static __always_inline void *weir_rows_of(void *chunk, __u32 set, const bool wide)
{
	OPAQUE(set);
	set &= (wide ? WEIR_WIDE_SETS_PER_CHUNK : WEIR_NARROW_SETS_PER_CHUNK) - 1;
	return chunk + set * (WEIR_WAYS * ROW_BYTES(wide));
}

/* A row by its number, set * WEIR_WAYS + way, in this CPU's table. */
static __always_inline void *weir_row_by_number(__u32 number, const bool wide)
{
	void *chunk = weir_chunk_of(number / WEIR_WAYS, -1, wide);
	__u32 way = number;

	if (!chunk)
		return NULL;
	OPAQUE(way);
	way &= WEIR_WAYS - 1;
	return weir_rows_of(chunk, number / WEIR_WAYS, wide) + way * ROW_BYTES(wide);
}

/* Start to fetch the lines of a set of narrow rows. */
static __always_inline void weir_touch_set(void *rows)
{
	(void)READ_ONCE(((struct weir_narrow_row *)weir_row_of_set(rows, 0, false))->tag);
	(void)READ_ONCE(((struct weir_narrow_row *)weir_row_of_set(rows, WEIR_WAYS / 2, false))->tag);
}

/* The way of a set's row with this tag, or WEIR_WAYS. */
static __always_inline __u32 weir_find_way(void *rows, __u32 tag, const bool wide)
{
#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++)
		if (ROW_GET(weir_row_of_set(rows, way, wide), wide, tag) == tag)
			return way;
	return WEIR_WAYS;
}

/* The same of a set of narrow rows. Which way it is, nobody could guess: only one branch, whether there is one. */
static __always_inline __u32 weir_guess_no_way(void *rows, __u64 tag)
{
	__u64 less_one[WEIR_WAYS], any = 0;

	/* Tags have 32 bits: only a difference of 0, less one, has its top bit set. */
#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		__u64 other = READ_ONCE(((struct weir_narrow_row *)weir_row_of_set(rows, way, false))->tag);

		less_one[way] = (other ^ tag) - 1;
		any |= less_one[way];
	}
	if (!(any >> 63))
		return WEIR_WAYS;
	return less_one[1] >> 63 | less_one[2] >> 63 << 1 | (less_one[3] >> 63) * 3;
}

/* A flow's row in this CPU's table, or with cpu >= 0 in that CPU's; NULL when it has none. *ret_number, set
 * * WEIR_WAYS + way, finds it again.
 */
static __always_inline void *weir_find_row(struct weir_work *w, const struct weir_flow_place *place, int cpu,
					   __u32 *ret_number, const bool wide)
{
	void *chunk = weir_chunk_of(place->set, cpu, wide);
	__u32 set = place->set, way;

	if (!chunk)
		return NULL;
	way = weir_find_way(weir_rows_of(chunk, set, wide), place->tag, wide);
	if (way == WEIR_WAYS) {
		set = weir_other_set(place, wide);
		way = weir_find_way(weir_rows_of(chunk, set, wide), place->tag, wide);
		if (way == WEIR_WAYS)
			return NULL;
	}
	FORGET(w->forgotten, way);
	way &= WEIR_WAYS - 1;
	*ret_number = set * WEIR_WAYS + way;
	return weir_rows_of(chunk, set, wide) + way * ROW_BYTES(wide);
}

#endif
