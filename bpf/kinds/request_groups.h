/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups: waiting requests, in the order in which they are due. Nothing wakes up when a time-out ends. The next packet
 * that comes to the breaker finds the requests that were due, oldest first, each with the time at which it was due.
 *
 * A group changes by compare-and-swap of its word. So each request is counted once: by its outcome, which takes it out
 * of the group, or with its group, when that is due. While less than half of the ring is in use, a request has a group
 * to itself. Beyond that, successive requests share a group, which is due when the last of them is. So none is counted
 * early, and each is late by at most the time-out divided by half the ring.
 */
#ifndef WEIR_REQUEST_GROUPS_H
#define WEIR_REQUEST_GROUPS_H

#include "kinds/breaker_table.h"

#define WEIR_JOIN_ATTEMPTS 6  /* attempts; one fails if another CPU joins the same ring */
#define WEIR_LEAVE_ATTEMPTS 8 /* ... changed the same group */

static __always_inline __u32 weir_ring_shift(__u32 number)
{
	return number & WEIR_BREAKER_LONE ? config.lone_ring_shift : config.ring_shift;
}

/* The group at a position of a breaker's ring. */
static __always_inline struct weir_request_group *weir_group_at(__u32 number, __u64 position)
{
	__u32 shift = weir_ring_shift(number), index;

	index = ((number & (WEIR_BREAKER_LONE - 1)) << shift) + (position & ((1u << shift) - 1));
	if (number & WEIR_BREAKER_LONE)
		return bpf_map_lookup_elem(&lone_groups, &index);
	return bpf_map_lookup_elem(&request_groups, &index);
}

/* The round of the ring to which a position belongs, as it is stored in the group's word. */
static __always_inline __u64 weir_turn_of(__u32 number, __u64 position)
{
	return ((position >> weir_ring_shift(number)) + 1) & ((1ull << (64 - WEIR_GROUP_TURN_SHIFT)) - 1);
}

static __always_inline __u64 weir_group_turn(__u64 word)
{
	return word >> WEIR_GROUP_TURN_SHIFT;
}

static __always_inline __u32 weir_group_era(__u64 word)
{
	return word >> WEIR_GROUP_ERA_SHIFT & WEIR_BREAKER_ERA_MASK;
}

/* ---- joining ---- */

/* Take a free group, if its word is still the same. */
static __always_inline bool weir_take_group(struct weir_request_group *group, __u64 word, __u64 turn, __u32 era,
					    __u64 due)
{
	__u64 making = WEIR_GROUP_WORD(turn, era, WEIR_GROUP_MAKING);

	if (__sync_val_compare_and_swap(&group->word, word, making) != word)
		return false;
	WRITE_ONCE(group->first_due, due);
	WRITE_ONCE(group->due, due);
	/* No other CPU changes the word meanwhile, so this succeeds, and is a full barrier: a CPU that sees the word
	 * sees the times.
	 */
	__sync_val_compare_and_swap(&group->word, making, WEIR_GROUP_WORD(turn, era, 1));
	return true;
}

/* Add a request to a group. The due time is raised before the number of requests. So a CPU that wants to count the
 * group, and has read the old time, finds that the number has changed.
 */
static __always_inline bool weir_share_group(struct weir_request_group *group, __u64 word, __u64 due)
{
	__u64 old = READ_ONCE(group->due);

	if (old < due && __sync_val_compare_and_swap(&group->due, old, due) != old)
		return false;
	return __sync_val_compare_and_swap(&group->word, word, word + 1) == word;
}

/* Join the newest group if all its requests have had their outcome, or if the ring is half full and the due times are
 * close enough.
 */
__noinline int weir_join_newest(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number, __u32 era,
				__u64 due)
{
	__u64 tail, waiting, word, turn, count, near;
	struct weir_request_group *group;

	WEIR_GLOBAL(BREAKERS, s && breaker, false);
	tail = READ_ONCE(breaker->tail);
	waiting = tail - READ_ONCE(breaker->head);
	group = weir_group_at(number, tail - 1);
	if (!group || !waiting)
		return false;
	s->group_position = tail - 1;
	turn = weir_turn_of(number, tail - 1);
	word = READ_ONCE(group->word);
	count = word & WEIR_GROUP_COUNT_MASK;
	if (weir_group_turn(word) != turn || count >= WEIR_GROUP_COUNT_MAX)
		return false;
	if (!count)
		return weir_take_group(group, word, turn, era, due);
	if (waiting < 1ull << (weir_ring_shift(number) - 1) || weir_group_era(word) != era)
		return false;
	/* If groups begin at least this far apart, half of the ring holds the requests of a whole time-out. */
	near = (due - 2 * weir_monotonic_ns(s)) >> (weir_ring_shift(number) - 1);
	if (due - READ_ONCE(group->first_due) > near || !weir_share_group(group, word, due))
		return false;
	__sync_fetch_and_add(&breaker->shared, 1);
	return true;
}

/* Join a group of this era that is due at this time; s->group_position says which. False: no group is available. */
__noinline int weir_join_group(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number, __u32 era, __u64 due)
{
	WEIR_GLOBAL(BREAKERS, s && breaker, false);
	for (int attempt = 0; attempt < WEIR_JOIN_ATTEMPTS; attempt++) {
		__u64 head = READ_ONCE(breaker->head), tail = READ_ONCE(breaker->tail), word, turn;
		struct weir_request_group *group;

		if (weir_join_newest(s, breaker, number, era, due))
			return true;
		group = weir_group_at(number, tail);
		if (!group || tail - head >= 1ull << weir_ring_shift(number))
			break;
		turn = weir_turn_of(number, tail);
		word = READ_ONCE(group->word);
		/* Another CPU has taken it but not moved the tail yet, so we move it. */
		if (weir_group_turn(word) != turn && weir_take_group(group, word, turn, era, due)) {
			s->group_position = tail;
			__sync_val_compare_and_swap(&breaker->tail, tail, tail + 1);
			return true;
		}
		__sync_val_compare_and_swap(&breaker->tail, tail, tail + 1);
	}
	return false;
}

/* ---- leaving ---- */

/* The result of weir_leave_group(): the era of the group, if the request was still in it. */
#define WEIR_HAS_LEFT (1u << 31)

/* Take a request out of its group. 0: it was counted with its group, or its breaker has another owner. */
__noinline __u32 weir_leave_group(struct weir_breaker *breaker, __u32 number, __u64 position)
{
	const int unused = 64 - WEIR_REQUEST_POSITION_BITS;
	struct weir_request_group *group;
	__u64 head;

	WEIR_GLOBAL(BREAKERS, breaker, 0);
	head = READ_ONCE(breaker->head);
	/* A request remembers the lowest bits of the position. */
	position = head + ((__s64)((position - head) << unused) >> unused);
	if ((__s64)(position - head) < 0 || (__s64)(READ_ONCE(breaker->tail) - position) <= 0)
		return 0;
	group = weir_group_at(number, position);
	for (int attempt = 0; group && attempt < WEIR_LEAVE_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(group->word), count = word & WEIR_GROUP_COUNT_MASK;

		if (weir_group_turn(word) != weir_turn_of(number, position) || !count || count > WEIR_GROUP_COUNT_MAX)
			return 0;
		if (__sync_val_compare_and_swap(&group->word, word, word - 1) == word)
			return WEIR_HAS_LEFT | weir_group_era(word);
	}
	return 0;
}

/* ---- what is due ---- */

/* If requests are not due in the order in which they came, the whole ring is searched: 41 times 41 groups. */
#define WEIR_LOOK_ROUNDS 41

/* Search some groups from number `first` of the ring on for one that is due before s->earliest_due. False: there are no
 * more groups.
 */
__noinline int weir_look_at_groups(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number, __u32 first)
{
	WEIR_GLOBAL(BREAKERS, config.rings_are_unordered && s && breaker, false);
	for (__u32 i = 0; i < WEIR_LOOK_ROUNDS; i++) {
		__u64 position = READ_ONCE(breaker->head) + first + i, word, due;
		struct weir_request_group *group = weir_group_at(number, position);

		if (!group || (__s64)(READ_ONCE(breaker->tail) - position) <= 0)
			return false;
		word = READ_ONCE(group->word);
		if (weir_group_turn(word) != weir_turn_of(number, position) ||
		    (word & WEIR_GROUP_COUNT_MASK) - 1 >= WEIR_GROUP_COUNT_MAX)
			continue;
		due = READ_ONCE(group->due);
		if (due >= s->earliest_due)
			continue;
		s->earliest_due = due;
		s->group_position = position;
	}
	return true;
}

/* The position of the group that is due first. */
static __always_inline __u64 weir_earliest_group(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number)
{
	s->earliest_due = ~0ull;
	s->group_position = READ_ONCE(breaker->head);
	for (__u32 round = 0; round < WEIR_LOOK_ROUNDS; round++)
		if (!weir_look_at_groups(s, breaker, number, round * WEIR_LOOK_ROUNDS))
			break;
	return s->group_position;
}

/* The state of the oldest group. */
enum weir_group_answer {
	WEIR_GROUP_WAITS, /* no group is due yet, or there is none */
	WEIR_GROUP_OVER,  /* it was finished: search again */
	WEIR_GROUP_DUE,	  /* it was due: s->outcome says since when, and how many requests are bad now */
};

/* Count a group, if it is due, and if no other CPU is faster. */
static __always_inline enum weir_group_answer weir_take_due(struct weir_scratch *s, struct weir_request_group *group,
							    __u64 word)
{
	__u64 count = word & WEIR_GROUP_COUNT_MASK, due;

	weir_order(s); /* the time is read after the number */
	due = READ_ONCE(group->due);
	if (count && due > 2 * weir_monotonic_ns(s))
		return WEIR_GROUP_WAITS;
	if (__sync_val_compare_and_swap(&group->word, word, word - count + WEIR_GROUP_GONE) != word)
		return WEIR_GROUP_OVER;
	s->outcome.count = count;
	s->outcome.era = weir_group_era(word);
	s->outcome.moment_ns = due >> 1;
	s->outcome.is_bad = true;
	return count ? WEIR_GROUP_DUE : WEIR_GROUP_OVER;
}

/* Take the oldest group if it is due or finished; the ring then begins after it. */
__noinline int weir_take_oldest(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number)
{
	enum weir_group_answer answer = WEIR_GROUP_OVER;
	struct weir_request_group *group;
	__u64 head, position, word;

	WEIR_GLOBAL(BREAKERS, s && breaker, WEIR_GROUP_WAITS);
	head = position = READ_ONCE(breaker->head);
	if (head == READ_ONCE(breaker->tail))
		return WEIR_GROUP_WAITS;
	group = weir_group_at(number, head);
	word = group ? READ_ONCE(group->word) : 0;
	if (config.rings_are_unordered && word & WEIR_GROUP_COUNT_MASK &&
	    (word & WEIR_GROUP_COUNT_MASK) != WEIR_GROUP_GONE) {
		position = weir_earliest_group(s, breaker, number);
		group = weir_group_at(number, position);
		word = group ? READ_ONCE(group->word) : 0;
	}
	if (!group || weir_group_turn(word) != weir_turn_of(number, position) ||
	    (word & WEIR_GROUP_COUNT_MASK) == WEIR_GROUP_MAKING)
		return WEIR_GROUP_WAITS;
	if ((word & WEIR_GROUP_COUNT_MASK) != WEIR_GROUP_GONE)
		answer = weir_take_due(s, group, word);
	/* Groups that are finished in the middle are skipped when the ring reaches them. */
	if (answer != WEIR_GROUP_WAITS && position == head &&
	    (READ_ONCE(group->word) & WEIR_GROUP_COUNT_MASK) == WEIR_GROUP_GONE)
		__sync_val_compare_and_swap(&breaker->head, head, head + 1);
	return answer;
}

#endif
