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
 */
#ifndef WEIR_SHARED_SET_H
#define WEIR_SHARED_SET_H

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

/* The lesser of two numbers less than 2^63 apart. Without a branch: the verifier would follow both, way after way. */
static __always_inline __u64 weir_lesser(__u64 one, __u64 other)
{
	__s64 less = one - other;

	return other + (less & less >> 63);
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

#endif
