/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sets that all CPUs share, for all kinds. Each key (of a flow, a connection or a request) has one set, and its entry
 * is the way of that set that has its tag. Entries change by atomics, and no packet takes a lock.
 *
 * A key never gets two entries, even if two CPUs insert it at once. An insertion is one compare-and-swap of the set's
 * word `inserted`, which says which tag takes which way. The tag itself is written after that. Any CPU may write it: a
 * CPU that wants to insert first completes the latest insertion. (Helping: Herlihy, "A methodology for implementing
 * highly concurrent data objects", 1993. docs/internals/connections.md has the argument, and what is left to the
 * entries.)
 *
 * When all ways are taken, the head of the set (struct weir_flow_set) alone determines which entry is evicted. Only
 * connections choose differently, by their words (connection_table.h).
 */
#ifndef WEIR_FLOW_SET_H
#define WEIR_FLOW_SET_H

#include "window/rows.h"

/* Attempts to insert. One fails if another CPU inserts first; more than a few failures were never seen. */
#define WEIR_INSERT_ATTEMPTS 16

/* How long to wait for a CPU that has claimed a way. Rebuilding takes less than a microsecond. Chosen, not derived. */
#define WEIR_CLAIM_WAIT_NS 10000
#define WEIR_CLAIM_LOOKS 1024 /* for the verifier; each reads the clock */

static __always_inline struct weir_flow_id weir_shared_id(__u64 hash, __u32 sets)
{
	struct weir_flow_id id = {.tag = hash >> 32, .set = hash & (sets - 1)};

	if (id.tag == 0)
		id.tag = 1;
	return id;
}

/* Element `way` of an array, or NULL beyond its end. The pointer is opaque, so that clang computes it where its bound
 * was tested, as the verifier requires.
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

/* All bits set if the number is negative, else none. Opaque, because clang 19 would make a branch of it. The verifier
 * of Linux 6.1 would then follow both sides for each cell of a window (180,000 instructions) or each way of a set
 * (290,000).
 */
static __always_inline __u64 weir_sign_mask(__u64 number)
{
	OPAQUE(number);
	number = (__s64)number >> 63;
	OPAQUE(number);
	return number;
}

/* The lesser of two numbers less than 2^63 apart. Without a branch, because the verifier would follow both sides, way
 * after way.
 */
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

/* The way that has this tag, or `ways`. */
static __always_inline __u32 weir_find_tag(const __u32 *tags, const __u32 ways, __u32 tag)
{
#pragma unroll
	for (__u32 way = 0; way < ways; way++)
		if (READ_ONCE(tags[way]) == tag)
			return way;
	return ways;
}

/* The way of the flow with this tag, or WEIR_FLOW_WAYS. Tag 0 finds a free one. */
static __always_inline __u32 weir_way_of(const struct weir_flow_set *set, __u32 tag)
{
	return weir_find_tag(set->tag, WEIR_FLOW_WAYS, tag);
}

/* ---- insertion ---- */

/* Write the tag of insertion `word`, unless it is written, or another insertion has come after it. */
static __always_inline void weir_complete_insertion(struct weir_scratch *s, struct weir_flow_set *set, __u64 word)
{
	__u32 *at = WEIR_ELEMENT(set->tag, WEIR_INSERTED_WAY(word)), tag = word, old;

	if (!at)
		return;
	old = READ_ONCE(*at);
	weir_order(s);
	/* `inserted` is read after the tag: if it has not changed, neither has the way's owner. */
	if (tag && old != tag && READ_ONCE(set->inserted) == word)
		__sync_val_compare_and_swap(at, old, tag);
}

/* The place of a key, or a place for it: a way in the lowest four bits, and flags. */
#define WEIR_WAY(place) ((place)&15)
#define WEIR_WAY_EVICTS 16u /* its owner still counts */
#define WEIR_WAY_IS_NEW 64u /* the key is not there; otherwise another CPU had inserted it */

/* The place of the key with this tag, if another CPU has just inserted it. Otherwise, with WEIR_WAY_IS_NEW, a free way,
 * or WEIR_FLOW_WAYS if an entry must be evicted. `latest` was read from `inserted`, and becomes s->place.latest.
 */
static __always_inline __u32 weir_look_for_place(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag,
						 __u64 latest)
{
	__u32 way;

	weir_order(s); /* the tags read from here on are not older */
	weir_complete_insertion(s, set, latest);
	way = weir_way_of(set, tag);
	if (way < WEIR_FLOW_WAYS)
		return way;
	s->place.latest = latest;
	return weir_way_of(set, 0) | WEIR_WAY_IS_NEW;
}

/* Has nobody been inserted since weir_look_for_place()? To be asked after the word of the entry to evict was read: a
 * CPU that was faster may have taken the same way, and that word be of its connection, which has just begun.
 */
static __always_inline bool weir_is_latest(struct weir_scratch *s, const struct weir_flow_set *set)
{
	weir_order(s);
	return READ_ONCE(set->inserted) == s->place.latest;
}

/* Take the way that weir_look_for_place() found. False: another CPU was faster. */
static __always_inline bool weir_take_way(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag, __u32 way)
{
	__u64 latest = s->place.latest, mine;

	mine = WEIR_INSERTED(tag, WEIR_WAY(way), WEIR_INSERTED_COUNT(latest) + 1);
	if (__sync_val_compare_and_swap(&set->inserted, latest, mine) != latest)
		return false;
	weir_complete_insertion(s, set, mine);
	return true;
}

/* The way of the key with this tag. If there is none, WEIR_WAY_IS_NEW with the first free way, or with WEIR_FLOW_WAYS.
 * Only for sets whose ways are never claimed (connections): these are taken in order, and none becomes free again, so
 * the first free way ends the search.
 */
static __always_inline __u32 weir_way_in_order(const struct weir_flow_set *set, __u32 tag)
{
#pragma unroll
	for (__u32 way = 0; way < WEIR_FLOW_WAYS; way++) {
		__u32 other = READ_ONCE(set->tag[way]);

		if (other == tag)
			return way;
		if (!other)
			return way | WEIR_WAY_IS_NEW;
	}
	return WEIR_FLOW_WAYS | WEIR_WAY_IS_NEW;
}

/* weir_look_for_place() in such a set. */
static __always_inline __u32 weir_look_in_order(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag)
{
	__u64 latest = READ_ONCE(set->inserted);

	weir_order(s); /* the tags read from here on are not older */
	weir_complete_insertion(s, set, latest);
	s->place.latest = latest;
	return weir_way_in_order(set, tag);
}

/* Find the way of the key with this tag in such a set, or else give it a free one, which no key has ever had: so only
 * we, or a CPU that completes our insertion, write its first tag. WEIR_FLOW_WAYS: another CPU was faster; with
 * WEIR_WAY_IS_NEW: no way is free.
 */
static __always_inline __u32 weir_take_free_way(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag,
						bool *ret_is_new)
{
	__u32 way = weir_look_in_order(s, set, tag);
	__u64 latest = s->place.latest, mine;

	FORGET(s->forgotten, way);
	if (!(way & WEIR_WAY_IS_NEW))
		return way;
	way ^= WEIR_WAY_IS_NEW;
	OPAQUE(way);
	if (way >= WEIR_FLOW_WAYS)
		return WEIR_FLOW_WAYS | WEIR_WAY_IS_NEW;
	mine = WEIR_INSERTED(tag, way, WEIR_INSERTED_COUNT(latest) + 1);
	if (__sync_val_compare_and_swap(&set->inserted, latest, mine) != latest)
		return WEIR_FLOW_WAYS;
	__sync_val_compare_and_swap(&set->tag[way], 0, tag);
	*ret_is_new = true;
	return way;
}

/* ---- who goes ---- */

static __always_inline __u32 weir_keep_step(__u64 ns)
{
	return (__u32)(ns >> WEIR_KEEP_STEP_BITS);
}

/* When an entry is over, as a number to compare: less than 2^30 if before `now` (the longer ago, the less), otherwise
 * more. Without a branch.
 */
#define WEIR_KEEP_NOW (1ull << 30)
static __always_inline __u64 weir_keep_order(__u32 keep, __u32 now)
{
	__u64 at = (keep - now + WEIR_KEEP_NOW) & WEIR_KEEP_STEP_MASK;

	/* so far ahead: it is three months old */
	return at & ((WEIR_KEEP_NOW + WEIR_KEEP_STEPS_MAX - at) >> 63) - 1;
}

/*
 * The entry to evict: the one that is over first, whether it is over now or later. But among entries that still count,
 * flows that were refused are evicted last. (Among new flows, a heavy flow's entry would soon be the first to be over,
 * so it would be forgotten and start from zero again and again.) The way taken latest counts as in use; otherwise two
 * CPUs with a new flow each would both write into one entry. Among equal ranks, each insertion begins at another way:
 * in a flood, all entries may end in one step of the clock, and new flows would evict each other from the first way.
 */
__noinline __u32 weir_choose_flow(const struct weir_flow_set *set, __u64 latest, __u32 now)
{
	__u64 least = ~0ull >> 1, order = WEIR_INSERTED_COUNT(latest) & 7;

	WEIR_GLOBAL(FLOW_SETS, set, 0);
#pragma unroll
	for (__u32 way = 0; way < WEIR_FLOW_WAYS; way++) {
		__u32 keep = READ_ONCE(set->keep[way]);
		__u64 rank =
			weir_greater(weir_keep_order(keep, now), (WEIR_KEEP_NOW + 1) * weir_is_latest_way(latest, way));

		rank += ((WEIR_KEEP_NOW - rank) >> 63 & keep >> 31) << 32;
		least = weir_lesser(rank * 8 + (way ^ order), least);
		OPAQUE(least); /* one way after the other: otherwise clang keeps all of them on the stack */
	}
	return ((least ^ order) & 7) | (least / 8 > WEIR_KEEP_NOW ? WEIR_WAY_EVICTS : 0);
}

/* Wait until no way of the set is claimed, and return the latest insertion. It is still a claim if its CPU has stalled.
 * Real time, in replay as well.
 */
__noinline __u64 weir_await_claim(const struct weir_flow_set *set)
{
	__u64 latest, until_ns;

	WEIR_GLOBAL(FLOW_SETS, set, 0);
	latest = READ_ONCE(set->inserted);
	until_ns = bpf_ktime_get_ns() + WEIR_CLAIM_WAIT_NS;
#pragma nounroll
	for (int look = 0; look < WEIR_CLAIM_LOOKS && latest & WEIR_INSERTED_CLAIMED; look++) {
		if (bpf_ktime_get_ns() > until_ns)
			break;
		latest = READ_ONCE(set->inserted);
	}
	return latest;
}

/* Like weir_look_for_place(), but if all ways are taken, choose the entry to evict. WEIR_FLOW_WAYS: a CPU that has
 * claimed a way of the set has stalled.
 */
__noinline __u32 weir_find_place(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag)
{
	__u64 latest;
	__u32 way;

	WEIR_GLOBAL(FLOW_SETS, s && set && tag, WEIR_FLOW_WAYS);
	latest = READ_ONCE(set->inserted);
	if (unlikely(latest & WEIR_INSERTED_CLAIMED)) {
		latest = weir_await_claim(set);
		if (latest & WEIR_INSERTED_CLAIMED)
			return WEIR_FLOW_WAYS;
	}
	way = weir_look_for_place(s, set, tag, latest);
	if (way == (WEIR_FLOW_WAYS | WEIR_WAY_IS_NEW))
		way = weir_choose_flow(set, s->place.latest, weir_keep_step(weir_now_ns(s))) | WEIR_WAY_IS_NEW;
	return way;
}

/* Nothing of the way's new owner is to be kept yet. `before` is the former owner's. If another CPU's packet of it
 * has just raised it, the new owner is kept for longer.
 */
static __always_inline void weir_reset_keep(struct weir_scratch *s, struct weir_flow_set *set, __u32 way, __u32 before)
{
	__u32 *keep = WEIR_ELEMENT(set->keep, way);

	if (keep)
		__sync_val_compare_and_swap(keep, before, weir_keep_step(weir_now_ns(s)) & WEIR_KEEP_STEP_MASK);
}

static __always_inline __u32 weir_step_after(__u64 now_ns)
{
	return (weir_keep_step(now_ns) + 1) & WEIR_KEEP_STEP_MASK;
}

/* Take the way that weir_find_place() found. False: another CPU was faster. */
__noinline int weir_take_place(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag, __u32 way)
{
	__u32 *keep;

	WEIR_GLOBAL(FLOW_SETS, s && set && tag, false);
	if (!weir_take_way(s, set, tag, way))
		return false;
	keep = WEIR_ELEMENT(set->keep, WEIR_WAY(way));
	if (keep)
		WRITE_ONCE(*keep, weir_step_after(weir_now_ns(s)));
	return true;
}

/* Insert the flow with this tag, into an entry that its first packet rebuilds, under the rule in `slot`, which counts
 * an eviction. Returns its way, with WEIR_WAY_IS_NEW unless another CPU has inserted it; WEIR_FLOW_WAYS if others were
 * faster at every attempt.
 */
__noinline __u32 weir_insert_flow(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag, __u32 slot)
{
	WEIR_GLOBAL(FLOW_SETS, s && set && tag, WEIR_FLOW_WAYS);
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u32 way = weir_find_place(s, set, tag);

		if (way & WEIR_WAY_IS_NEW && !weir_take_place(s, set, tag, way))
			continue;
		if (way & WEIR_WAY_EVICTS)
			weir_count_eviction(slot);
		return way;
	}
	return WEIR_FLOW_WAYS;
}

/* ---- insertion of a flow whose entry is rebuilt before it can be seen ----
 *
 * Claim a way; leave the ghost of its owner, if that still counts, and take its state out of the entry; put the new
 * flow's state there, from its ghost or fresh; publish. So no packet of the flow finds an entry without its state, and
 * none of the evicted flow finds neither entry nor ghost. The set's other ways are used as ever; only insertions into
 * the set wait, for WEIR_CLAIM_WAIT_NS at most. Nobody takes a claimed way over: if its CPU has stalled (a virtual CPU
 * that does not run), packets of new flows of this set are dropped, and counted as stalled.
 * (docs/internals/ordering.md, tests/model/evict.pml)
 */

/* Claim a way for the flow with this tag, under the rule in `slot`. Returns the way, with WEIR_WAY_IS_NEW if the caller
 * must rebuild and publish it, or release it; WEIR_FLOW_WAYS if that is not possible now.
 */
__noinline __u32 weir_claim_flow(struct weir_scratch *s, struct weir_flow_set *set, __u32 tag, __u32 slot)
{
	WEIR_GLOBAL(FLOW_SETS, s && set && tag, WEIR_FLOW_WAYS);
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u32 way = weir_find_place(s, set, tag);
		__u64 latest = s->place.latest, mine;

		if (!(way & WEIR_WAY_IS_NEW))
			return way;
		mine = WEIR_INSERTED(tag, WEIR_WAY(way), WEIR_INSERTED_COUNT(latest) + 1) | WEIR_INSERTED_CLAIMED;
		if (__sync_val_compare_and_swap(&set->inserted, latest, mine) != latest)
			continue;
		s->place.latest = mine;
		s->place.ghost = 0;
		if (way & WEIR_WAY_EVICTS)
			weir_count_eviction(slot);
		return way;
	}
	return WEIR_FLOW_WAYS;
}

/* The owner of the claimed way keeps it, since its state cannot be taken now. */
static __always_inline void weir_release_flow_claim(struct weir_scratch *s, struct weir_flow_set *set)
{
	__u64 mine = s->place.latest;

	weir_order(s);
	WRITE_ONCE(set->inserted, mine & ~WEIR_INSERTED_CLAIMED & ~(__u64)~0u); /* an insertion of no flow */
}

/* The entry at the claimed way is rebuilt: show it. */
__noinline int weir_publish_flow(struct weir_scratch *s, struct weir_flow_set *set)
{
	__u64 mine;

	WEIR_GLOBAL(FLOW_SETS, s && set, 0);
	mine = s->place.latest;
	weir_complete_insertion(s, set, mine);
	__sync_val_compare_and_swap(&set->inserted, mine, mine & ~WEIR_INSERTED_CLAIMED);
	return 0;
}

/* Is this way still the flow's, which was found there, or is it being rebuilt for another one? To be called after a
 * word of the entry was read that may not be the flow's: who writes such a word has claimed the way before. Out of
 * line, because the verifier would follow it in each attempt of each kind.
 */
__noinline int weir_owns_way(struct weir_scratch *s, const struct weir_flow_set *set, __u32 way, __u32 tag)
{
	const __u32 *owner;
	__u64 latest;

	WEIR_GLOBAL(FLOW_SETS, s && set, false);
	weir_order(s);
	latest = READ_ONCE(set->inserted);
	weir_order(s); /* a claim that is published by now has written the tag */
	owner = WEIR_ELEMENT(set->tag, way);
	if (!owner || READ_ONCE(*owner) != tag)
		return false;
	return !(latest & WEIR_INSERTED_CLAIMED) || WEIR_INSERTED_WAY(latest) != way || (__u32)latest == tag;
}

/* ---- until when an entry counts ---- */

/* The last step of an entry that counts nothing from over_ns on. For a time too far ahead, the latest step that can be
 * represented.
 */
static __always_inline __u32 weir_step_over(__u64 over_ns, __u64 now_ns)
{
	return (weir_keep_step(weir_lesser(over_ns, now_ns + WEIR_KEEP_NS_MAX)) + 1) & WEIR_KEEP_STEP_MASK;
}

/* The entry at `way` counts for nothing from over_ns on. */
static __always_inline void weir_keep_until(struct weir_scratch *s, struct weir_flow_set *set, __u32 way, __u64 over_ns)
{
	__u32 *keep = WEIR_ELEMENT(set->keep, way), before, after;
	__u64 now_ns = weir_now_ns(s);

	if (!keep)
		return;
	before = READ_ONCE(*keep);
	after = weir_step_over(over_ns, now_ns);
	if (before & WEIR_KEEP_REFUSED && weir_keep_order(before, weir_keep_step(now_ns)) > WEIR_KEEP_NOW)
		after |= WEIR_KEEP_REFUSED;
	if (after != before)
		WRITE_ONCE(*keep, after);
}

/*
 * The entry at `way` counts for left_ns from now on. For entries that leave a ghost: called before the word that makes
 * the entry count for so long is swapped in, so that who swaps that word out, and reads `keep` after it, leaves a ghost
 * that is long enough. While the entry counts, `keep` never falls, as another CPU may have raised it for a packet of
 * its own. False: try again.
 */
static __always_inline bool weir_raise_keep(struct weir_scratch *s, struct weir_flow_set *set, __u32 way, __u64 left_ns)
{
	__u32 *keep = WEIR_ELEMENT(set->keep, way), before, after, now, left, steps;
	__u64 now_ns = weir_now_ns(s);

	if (!keep)
		return true;
	if (left_ns > WEIR_KEEP_NS_MAX)
		left_ns = WEIR_KEEP_NS_MAX;
	now = weir_keep_step(now_ns);
	after = weir_keep_step(now_ns + left_ns) + 1;
	steps = after - now;
	after &= WEIR_KEEP_STEP_MASK;
	before = READ_ONCE(*keep);
	left = (before - now) & WEIR_KEEP_STEP_MASK;
	if (left - 1 < WEIR_KEEP_STEPS_MAX) { /* it counts */
		if (left >= steps)
			return true;
		after |= before & WEIR_KEEP_REFUSED;
	}
	return __sync_val_compare_and_swap(keep, before, after) == before;
}

/* The same for the claimed way, as long as its word is nobody's: nobody else swaps one in. */
static __always_inline void weir_set_keep(struct weir_scratch *s, struct weir_flow_set *set, __u32 way, __u64 left_ns)
{
	__u32 *keep = WEIR_ELEMENT(set->keep, way);
	__u64 now_ns = weir_now_ns(s);

	if (keep)
		WRITE_ONCE(*keep, weir_step_over(now_ns + weir_lesser(left_ns, WEIR_KEEP_NS_MAX), now_ns));
}

/* It is over already, so it is evicted first. */
static __always_inline __u32 weir_step_before(struct weir_scratch *s)
{
	return (weir_keep_step(weir_now_ns(s)) - 1) & WEIR_KEEP_STEP_MASK;
}

/* Record that a packet of the flow was refused. False: an earlier one was refused, too. */
static __always_inline bool weir_keep_refused(struct weir_flow_set *set, __u32 way)
{
	__u32 *keep = WEIR_ELEMENT(set->keep, way);

	if (!keep || READ_ONCE(*keep) & WEIR_KEEP_REFUSED)
		return false;
	__sync_fetch_and_or(keep, WEIR_KEEP_REFUSED);
	return true;
}

#endif
