/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets that all CPUs share: planned times, flows that warm up, connections and their flows. A key hashes to one set;
 * its entry is the way of that set that has its tag. Entries change by atomics, and no packet takes a lock.
 *
 * A key never gets two entries, even if two CPUs insert it at once. To insert is one compare-and-swap of one word a
 * set, `inserted`, which says who takes which way. The tag is written after that, by the first CPU that comes by:
 * whoever wants to insert completes the latest insertion first. (Helping: Herlihy, "A methodology for implementing
 * highly concurrent data objects", 1993. docs/connections-internals.md has the argument, and what is left to the
 * entries.)
 *
 * Most sets are of flows (struct weir_flow_set): what all CPUs share of a flow under one rule, whatever the kind. There
 * the head of the set alone says who goes. Connections, their flows and circuit breakers have rules of their own.
 */
#ifndef WEIR_FLOW_SET_H
#define WEIR_FLOW_SET_H

#include "rows.h"

/* Other CPUs' insertions that may get in between before ours gives up. More than a few have not been seen. */
#define WEIR_INSERT_ATTEMPTS 16

/* What every shared set begins with. */
struct weir_shared_set {
	__u64 inserted; /* a WEIR_INSERTED: the latest insertion */
	__u32 tag[];
};

static __always_inline struct weir_flow_id weir_shared_id(__u64 hash, __u32 sets)
{
	struct weir_flow_id id = {.tag = hash >> 32, .set = hash & (sets - 1)};

	if (id.tag == 0)
		id.tag = 1;
	return id;
}

/* Element `way` of an array, or NULL beyond its end. The pointer is opaque, so that it is made where its bound was
 * tested, as the verifier wants it.
 */
static __always_inline void *weir_element(const void *array, __u64 way, const __u32 ways, const __u32 bytes)
{
	OPAQUE(way);
	if (way >= ways)
		return NULL;
	array += way * bytes;
	OPAQUE(array);
	return (void *)array;
}
#define WEIR_ELEMENT(array, way)                                                                                       \
	((__typeof__(&(array)[0]))weir_element(array, way, sizeof(array) / sizeof((array)[0]), sizeof((array)[0])))

/* All bits set if the number is negative, else none. Opaque, or clang 19 makes a branch of it, and the verifier of
 * Linux 6.1 follows both sides for each cell of a window: 180,000 instructions; or way of a set: 290,000.
 */
static __always_inline __u64 weir_sign_mask(__u64 number)
{
	OPAQUE(number);
	number = (__s64)number >> 63;
	OPAQUE(number);
	return number;
}

/* The lesser of two numbers less than 2^63 apart. Without a branch: the verifier would follow both, way after way. */
static __always_inline __u64 weir_lesser(__u64 one, __u64 other)
{
	__u64 less = one - other;

	return other + (less & weir_sign_mask(less));
}

static __always_inline __u64 weir_greater(__u64 one, __u64 other)
{
	return one + other - weir_lesser(one, other);
}

/* Did insertion `word` take this way? 0 or 1, without a branch. */
static __always_inline __u64 weir_is_latest_way(__u64 word, __u64 way)
{
	return ((way ^ (__u64)WEIR_INSERTED_WAY(word)) - 1) >> 63;
}

/* The way that has this tag, or `ways`. Tag 0 finds a free one. */
static __always_inline __u32 weir_find_tag(const void *shared_set, const __u32 ways, __u32 tag)
{
	const struct weir_shared_set *set = shared_set;

#pragma unroll
	for (__u32 way = 0; way < ways; way++)
		if (READ_ONCE(set->tag[way]) == tag)
			return way;
	return ways;
}

/* Write the tag of insertion `word`, unless it is written, or another insertion has come after it. */
static __always_inline void weir_complete_insertion(struct weir_scratch *s, struct weir_shared_set *set,
						    const __u32 ways, __u64 word)
{
	__u32 *at = weir_element(set->tag, WEIR_INSERTED_WAY(word), ways, sizeof(*at)), tag = word, old;

	if (!at)
		return;
	old = READ_ONCE(*at);
	weir_order(s);
	/* `inserted` is read after the tag: if it has not changed, neither has the way's owner. */
	if (tag && old != tag && READ_ONCE(set->inserted) == word)
		__sync_val_compare_and_swap(at, old, tag);
}

/* What an insertion returns: a way, in the lowest four bits, and what became of it. */
#define WEIR_WAY(inserted) ((inserted)&15)
#define WEIR_WAY_EVICTS 16u /* its former owner still counted */
#define WEIR_WAY_BUSY 32u   /* no victim for now: try again */
#define WEIR_WAY_IS_NEW 64u /* taken just now; otherwise another CPU had inserted the key */

/*
 * Insert the key of `tag`, unless another CPU just did, into a free way or in place of a victim: choose_victim(), given
 * the latest insertion and the caller's `context`, returns its way, with WEIR_WAY_EVICTS or WEIR_WAY_BUSY where they
 * apply. (It chooses out of line: the verifier would look at that again for each attempt.) Returns WEIR_WAY_BUSY when
 * another CPU was faster: try again.
 */
static __always_inline __u32 weir_try_insert_tag(struct weir_scratch *s, void *shared_set, const __u32 ways, __u32 tag,
						 __u32 (*choose_victim)(struct weir_scratch *, void *, __u64, void *),
						 void *context)
{
	struct weir_shared_set *set = shared_set;
	__u64 latest = READ_ONCE(set->inserted), mine;
	__u32 way;

	weir_order(s); /* the tags read from here on are not older */
	weir_complete_insertion(s, set, ways, latest);
	way = weir_find_tag(set, ways, tag);
	if (way < ways)
		return way;
	way = weir_find_tag(set, ways, 0);
	if (way == ways)
		way = choose_victim(s, set, latest, context);
	FORGET(s->forgotten, way);
	if (way & WEIR_WAY_BUSY)
		return WEIR_WAY_BUSY;
	mine = WEIR_INSERTED(tag, WEIR_WAY(way), WEIR_INSERTED_COUNT(latest) + 1);
	if (__sync_val_compare_and_swap(&set->inserted, latest, mine) != latest)
		return WEIR_WAY_BUSY;
	weir_complete_insertion(s, set, ways, mine);
	return way | WEIR_WAY_IS_NEW;
}

/* The same, until it is done. Returns `ways` when other CPUs were faster at every attempt. */
static __always_inline __u32 weir_insert_tag(struct weir_scratch *s, void *shared_set, const __u32 ways, __u32 tag,
					     __u32 (*choose_victim)(struct weir_scratch *, void *, __u64, void *),
					     void *context)
{
	__u32 way = WEIR_WAY_BUSY;

	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS && way & WEIR_WAY_BUSY; attempt++)
		way = weir_try_insert_tag(s, shared_set, ways, tag, choose_victim, context);
	if (way & WEIR_WAY_BUSY)
		way = ways;
	FORGET(s->forgotten, way); /* else the verifier follows every way of every attempt to the caller's end */
	return way;
}

/* ---- sets of flows: who is there, and who goes ---- */

static __always_inline __u32 weir_keep_step(__u64 ns)
{
	return (__u32)(ns >> WEIR_KEEP_STEP_BITS);
}

/* When an entry is over: before `now` (less than 2^30: the longer ago, the less), or after it. Without a branch. */
#define WEIR_KEEP_NOW (1ull << 30)
static __always_inline __u64 weir_keep_order(__u32 keep, __u32 now)
{
	__u64 at = (keep - now + WEIR_KEEP_NOW) & WEIR_KEEP_STEP_MASK;

	/* so far ahead: it is three months old */
	return at & ((WEIR_KEEP_NOW + WEIR_KEEP_STEPS_MAX - at) >> 63) - 1;
}

/*
 * The victim: the entry that is over first, by now or later; but of those that still count, flows that were refused go
 * last. (A heavy flow's entry is soon the first to be over among new ones: it would be forgotten, and begin afresh,
 * each time.) The latest way taken counts as one that is in use: otherwise two CPUs with a new flow each would both
 * write into one entry.
 */
__noinline __u32 weir_choose_flow(const struct weir_flow_set *set, __u64 latest, __u32 now)
{
	__u64 least = ~0ull >> 1;

	WEIR_GLOBAL(FLOW_SETS, set, 0);
#pragma unroll
	for (__u32 way = 0; way < WEIR_FLOW_WAYS; way++) {
		__u32 keep = READ_ONCE(set->keep[way]);
		__u64 rank =
			weir_greater(weir_keep_order(keep, now), (WEIR_KEEP_NOW + 1) * weir_is_latest_way(latest, way));

		rank += ((WEIR_KEEP_NOW - rank) >> 63 & keep >> 31) << 32;
		least = weir_lesser(rank * 8 + way, least);
		OPAQUE(least); /* one way after the other: otherwise clang keeps all of them on the stack */
	}
	return (least & 7) | (least / 8 > WEIR_KEEP_NOW ? WEIR_WAY_EVICTS : 0);
}

/* Where the flow of this tag is, if another CPU has just inserted it; else, with WEIR_WAY_IS_NEW, a way that it may
 * take, now that s->place is known.
 */
__noinline __u32 weir_find_place(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag)
{
	__u64 latest;
	__u32 way;

	WEIR_GLOBAL(FLOW_SETS, s && set && tag, WEIR_FLOW_WAYS);
	latest = READ_ONCE(set->inserted);
	weir_order(s); /* the tags read from here on are not older */
	weir_complete_insertion(s, (void *)set, WEIR_FLOW_WAYS, latest);
	way = weir_find_tag(set, WEIR_FLOW_WAYS, tag);
	if (way < WEIR_FLOW_WAYS)
		return way;
	s->place.latest = latest;
	way = weir_find_tag(set, WEIR_FLOW_WAYS, 0);
	if (way == WEIR_FLOW_WAYS)
		way = weir_choose_flow(set, latest, weir_keep_step(weir_now_ns(s)));
	OPAQUE(way);
	if (WEIR_WAY(way) < WEIR_FLOW_WAYS) {
		s->place.tag = READ_ONCE(set->tag[WEIR_WAY(way)]);
		s->place.keep = READ_ONCE(set->keep[WEIR_WAY(way)]);
	}
	return way | WEIR_WAY_IS_NEW;
}

/* Take the way that weir_find_place() found. False: another CPU was faster. */
__noinline int weir_take_place(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag, __u32 way)
{
	__u64 mine;
	__u32 *keep;

	WEIR_GLOBAL(FLOW_SETS, s && set && tag, false);
	mine = WEIR_INSERTED(tag, WEIR_WAY(way), WEIR_INSERTED_COUNT(s->place.latest) + 1);
	if (__sync_val_compare_and_swap(&set->inserted, s->place.latest, mine) != s->place.latest)
		return false;
	weir_complete_insertion(s, (void *)set, WEIR_FLOW_WAYS, mine);
	keep = WEIR_ELEMENT(set->keep, WEIR_WAY(way));
	if (keep)
		WRITE_ONCE(*keep, (weir_keep_step(weir_now_ns(s)) + 1) & WEIR_KEEP_STEP_MASK);
	return true;
}

/*
 * Insert the flow of this tag, under the rule in `slot`. Returns its way, with WEIR_WAY_IS_NEW if another CPU has not;
 * or WEIR_FLOW_WAYS when others were faster at every attempt. *ret_former: what the way's element of `words`, if there
 * are any, held before.
 */
static __always_inline __u32 weir_insert_flow_over(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag,
						   __u32 slot, const __u64 *words, __u64 *ret_former)
{
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u32 way = weir_find_place(s, set, tag);
		const __u64 *word = words ? weir_element(words, WEIR_WAY(way), WEIR_FLOW_WAYS, sizeof(*word)) : NULL;

		if (word)
			*ret_former = READ_ONCE(*word);
		if (!(way & WEIR_WAY_IS_NEW) || weir_take_place(s, set, tag, way)) {
			if (way & WEIR_WAY_EVICTS)
				weir_count_eviction(slot);
			return way;
		}
	}
	return WEIR_FLOW_WAYS;
}

__noinline __u32 weir_insert_flow(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag, __u32 slot)
{
	WEIR_GLOBAL(FLOW_SETS, s && set && tag, WEIR_FLOW_WAYS);
	return weir_insert_flow_over(s, set, tag, slot, NULL, NULL);
}

/* The entry at `way` counts for nothing from over_ns on; of what lies further ahead than can be told, from then on. */
static __always_inline void weir_keep_until(struct weir_scratch *s, struct weir_flow_set *set, __u32 way, __u64 over_ns)
{
	__u32 *keep = WEIR_ELEMENT(set->keep, way), before, after;
	__u64 now_ns = weir_now_ns(s);

	if (!keep)
		return;
	before = READ_ONCE(*keep);
	after = (weir_keep_step(weir_lesser(over_ns, now_ns + WEIR_KEEP_NS_MAX)) + 1) & WEIR_KEEP_STEP_MASK;
	if (before & WEIR_KEEP_REFUSED && weir_keep_order(before, weir_keep_step(now_ns)) > WEIR_KEEP_NOW)
		after |= WEIR_KEEP_REFUSED;
	if (after != before)
		WRITE_ONCE(*keep, after);
}

/* A packet of the flow was refused. False: so was one before. */
static __always_inline bool weir_keep_refused(struct weir_flow_set *set, __u32 way)
{
	__u32 *keep = WEIR_ELEMENT(set->keep, way);

	if (!keep || READ_ONCE(*keep) & WEIR_KEEP_REFUSED)
		return false;
	__sync_fetch_and_or(keep, WEIR_KEEP_REFUSED);
	return true;
}

#endif
