/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where flows live: a set-associative cache on every CPU. A flow has two candidate sets of four rows;
 * its tag and its sets come from one hash of (rule, key) under a secret. A new flow takes a free or
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

static __always_inline __u64 weir_hash_key(const struct weir_rule *rule, const struct weir_packet *pkt)
{
	const volatile __u64 *seed = config.seed;
	__u32 fields = rule->key_fields;
	__u64 sum;

	OPAQUE(seed); /* so that its address is kept, and not made anew for each word */
	/* The family is part of every key: a sender of one must not reach a row of the other. */
	sum = seed[0] + (__u64)(rule->slot << 1 | pkt->is_ipv6) * seed[1];

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
		__u32 protocol = fields & WEIR_KEY_PROTOCOL ? pkt->protocol : 0;
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

/* ---- insertion ---- */

/* Present bucket of a timing, for rows of other rules met in a set. */
__noinline __u64 weir_bucket_now(struct weir_work *w, __u32 timing)
{
	struct weir_timing *t = bpf_map_lookup_elem(&timings, &timing);
	struct weir_clock *clk = bpf_map_lookup_elem(&clocks, &timing);

	if (!w || !t || !clk || !t->bucket_ns)
		return 0;
	weir_clock_update(w, clk, t->bucket_ns, t->base_bucket, true);
	return clk->bucket;
}

/* How much it would hurt to lose this row. An expired one is free too, but an empty one is better: should
 * the clock go back, as it may in a capture, the expired one counts again. A row that is known to be over its
 * limit is worth more than any count.
 */
#define WEIR_WORTH_EMPTY 0
#define WEIR_WORTH_EXPIRED 1
#define WEIR_WORTH_FULL (1ull << 62)

static __always_inline __u64 weir_row_worth(struct weir_work *w, void *row, const bool wide)
{
	const struct weir_question *q = &w->question;
	__u64 bucket = q->bucket, sum = WEIR_WORTH_EXPIRED + 1;
	__u32 cells = q->window_cells, timing;
	__u32 tag = ROW_GET(row, wide, tag);

	if (tag == 0)
		return WEIR_WORTH_EMPTY;
	timing = wide ? ((struct weir_wide_row *)row)->timing : tag & (WEIR_TIMINGS_NARROW - 1);
	if (timing != q->timing) {
		struct weir_timing *t = bpf_map_lookup_elem(&timings, &timing);

		if (!t)
			return WEIR_WORTH_EXPIRED;
		bucket = weir_bucket_now(w, timing);
		if (!wide && bucket > WEIR_NARROW_BUCKET_MAX)
			bucket = WEIR_NARROW_BUCKET_MAX; /* as weir_clock_update() has it */
		cells = t->window_cells;
	}
	if (ROW_GET(row, wide, newest) + cells <= bucket)
		return WEIR_WORTH_EXPIRED;
#pragma unroll
	for (int i = 0; i < WEIR_RING_CELLS; i++)
		sum += ROW_GET(row, wide, cell[i]) & ~ROW_UNSPENT(wide);
	if (wide ? ((struct weir_wide_row *)row)->full_until_ns != 0
		 : (((struct weir_narrow_row *)row)->lease & WEIR_NARROW_FULL) != 0)
		sum |= WEIR_WORTH_FULL;
	return sum;
}

/* Is this row set aside for an earlier rule of the same packet? Such a row must not be pushed out. */
__noinline int weir_row_is_claimed(struct weir_work *w, __u32 number, __u32 storage)
{
	if (!w)
		return 0;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < w->judged; i++)
		if (w->claim[i].kind != WEIR_CLAIM_NONE && w->claim[i].storage == storage && w->claim[i].row == number)
			return 1;
	return 0;
}

struct weir_victim {
	__u64 worth;
	__u32 number;
};

#define WEIR_NO_ROW 0xffffffffu

/* Find the least worth of one set's rows; returns how many are free, an empty one counting more than any
 * number of expired ones.
 */
static __always_inline __u32 weir_scan_set(struct weir_work *w, void *chunk, __u32 set, struct weir_victim *best,
					   const bool wide)
{
	void *rows = weir_rows_of(chunk, set, wide);
	__u32 free_rows = 0;

#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		__u64 worth = weir_row_worth(w, weir_row_of_set(rows, way, wide), wide);

		if (worth <= WEIR_WORTH_EXPIRED) {
			free_rows += worth == WEIR_WORTH_EMPTY ? WEIR_WAYS + 1 : 1;
			FORGET(w->forgotten, free_rows);
		}
		if (worth >= best->worth)
			continue;
		if (w->judged && worth > WEIR_WORTH_EXPIRED &&
		    weir_row_is_claimed(w, set * WEIR_WAYS + way, WEIR_STORAGE(wide)))
			continue;
		best->worth = worth;
		best->number = set * WEIR_WAYS + way;
		FORGET(w->forgotten, best->worth);
		FORGET(w->forgotten, best->number);
	}
	return free_rows;
}

/* The free rows of a set, one bit a way. */
struct weir_free {
	__u32 empty;
	__u32 any; /* empty or expired */
};

/*
 * Without branches, whose outcome nobody could guess. Rows of other timings are not looked into: they may be free as
 * well, but that is found out only when no other is.
 */
static __always_inline struct weir_free weir_free_rows(const struct weir_question *q, void *rows, const bool wide)
{
	__u64 oldest = q->bucket + 1 - q->window_cells, asked = q->timing;
	struct weir_free free = {};

#pragma unroll
	for (__u32 way = 0; way < WEIR_WAYS; way++) {
		void *row = weir_row_of_set(rows, way, wide);
		__u64 tag = ROW_GET(row, wide, tag), newest = ROW_GET(row, wide, newest);
		__u64 timing = wide ? ((struct weir_wide_row *)row)->timing : tag & (WEIR_TIMINGS_NARROW - 1);
		/* Differences below zero have their top bit set. */
		__u32 is_empty = (tag - 1) >> 63;
		__u32 is_expired = ((newest - oldest) & ((timing ^ asked) - 1)) >> 63;

		free.empty |= is_empty << way;
		free.any |= (is_empty | is_expired) << way;
		/* One row after the other: else clang keeps all of them on the stack. */
		OPAQUE(free.empty);
		OPAQUE(free.any);
	}
	return free;
}

/* Of each number of four bits, how many are set, and which is the lowest (of 0: the fourth): a hex digit each. */
#define WEIR_NIBBLE_ONES 0x4332322132212110ull
#define WEIR_NIBBLE_LOWEST 0x0102010301020104ull
#define WEIR_NIBBLE(table, bits) ((table) >> 4 * ((bits)&15) & 15)
_Static_assert(WEIR_WAYS == 4, "the ways of a set are a nibble");

/* An empty row counts more than any number of expired ones. */
static __always_inline __u32 weir_freedom(struct weir_free free)
{
	return WEIR_NIBBLE(WEIR_NIBBLE_ONES, free.any) + WEIR_NIBBLE(WEIR_NIBBLE_ONES, free.empty) * WEIR_WAYS;
}

/*
 * A free row in the emptier of the flow's two sets, and its number, or NULL: the first empty one, else the first that expired.
 * A first set with one flow at most is not compared with the other: sets that overflow stay as few, and most rows are
 * found where they are looked for first. In replay it is, as an expired row may count again.
 */
static __always_inline void *weir_choose_free(struct weir_work *w, __u32 *ret_number, const bool wide)
{
	const struct weir_question *q = &w->question;
	struct weir_free free, other_free;
	__u32 set = q->place.set, other, way;
	void *chunk = weir_chunk_of(set, -1, wide);

	*ret_number = WEIR_NO_ROW;
	if (!chunk)
		return NULL;
	free = weir_free_rows(q, weir_rows_of(chunk, set, wide), wide);
	if (config.is_virtual || WEIR_NIBBLE(WEIR_NIBBLE_ONES, free.any) < WEIR_WAYS - 1) {
		other = weir_other_set(&q->place, wide);
		other_free = weir_free_rows(q, weir_rows_of(chunk, other, wide), wide);
		if (weir_freedom(other_free) > weir_freedom(free)) {
			free = other_free;
			set = other;
		}
	}
	if (!free.any)
		return NULL;
	way = WEIR_NIBBLE(WEIR_NIBBLE_LOWEST, free.empty ? free.empty : free.any);
	*ret_number = set * WEIR_WAYS + way;
	OPAQUE(way);
	return weir_row_of_set(weir_rows_of(chunk, set, wide), way & (WEIR_WAYS - 1), wide);
}

__noinline __u32 weir_choose_free_narrow(struct weir_work *w)
{
	__u32 number = WEIR_NO_ROW;

	if (w)
		weir_choose_free(w, &number, false);
	return number;
}

__noinline __u32 weir_choose_free_wide(struct weir_work *w)
{
	__u32 number = WEIR_NO_ROW;

	if (w)
		weir_choose_free(w, &number, true);
	return number;
}

/*
 * Choose a row for the flow of w->question, which has none: a free one in the emptier of its two sets (two
 * choices keep even well filled tables from overflowing), else the row that counts least; evicting
 * that is counted. Returns its number, or WEIR_NO_ROW when every candidate is held by other rules of this
 * very packet.
 */
static __always_inline __u32 weir_choose_row(struct weir_work *w, const bool wide)
{
	struct weir_victim first = {~0ull, WEIR_NO_ROW}, second = {~0ull, WEIR_NO_ROW}, *best;
	const struct weir_question *q = &w->question;
	void *chunk = weir_chunk_of(q->place.set, -1, wide);
	__u32 free_first, free_second;

	if (!chunk)
		return WEIR_NO_ROW;
	free_first = weir_scan_set(w, chunk, q->place.set, &first, wide);
	free_second = weir_scan_set(w, chunk, weir_other_set(&q->place, wide), &second, wide);
	if (free_first || free_second)
		return free_second > free_first ? second.number : first.number;
	best = second.worth < first.worth ? &second : &first;
	if (best->number != WEIR_NO_ROW)
		weir_count_eviction(q->slot);
	return best->number;
}

__noinline __u32 weir_choose_narrow_row(struct weir_work *w)
{
	return w ? weir_choose_row(w, false) : WEIR_NO_ROW;
}

__noinline __u32 weir_choose_wide_row(struct weir_work *w)
{
	return w ? weir_choose_row(w, true) : WEIR_NO_ROW;
}

#endif
