/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Circuit breakers: how the outcome of a request changes a breaker. A closed breaker counts outcomes in a window, and
 * opens with the outcome that meets its conditions. An open breaker drops openings until its retry time. The first
 * opening after that is the probe, whose outcome closes the breaker or opens it again. (docs/breakers.md; Sentinel's
 * core/circuitbreaker.)
 *
 * The state is one word, which all CPUs change by compare-and-swap. So if several openings arrive at the retry time,
 * exactly one is the probe.
 */
#ifndef WEIR_BREAKERS_H
#define WEIR_BREAKERS_H

#include "observe/events.h"
#include "kinds/request_groups.h"

#define WEIR_BREAKER_ATTEMPTS 8 /* other CPUs changed the cell each time */
#define WEIR_MICRO 1000000ull	/* thresholds are in millionths */

static __always_inline __u64 weir_breaker_state(const struct weir_scratch *s, const struct weir_breaker *breaker)
{
	return READ_ONCE(breaker->state);
}

static __always_inline __u32 weir_state_kind(__u64 state)
{
	return state >> WEIR_BREAKER_KIND_SHIFT;
}

static __always_inline __u32 weir_state_era(__u64 state)
{
	return state & WEIR_BREAKER_ERA_MASK;
}

/* Another state, with the same bits of the tag. */
static __always_inline __u64 weir_next_breaker(__u64 state, enum weir_breaker_kind kind, __u64 rest)
{
	return (__u64)kind << WEIR_BREAKER_KIND_SHIFT | (state & WEIR_BREAKER_CHECK_MASK) |
	       (rest & WEIR_BREAKER_TIME_MASK);
}

static __always_inline bool weir_move_breaker(struct weir_scratch *s, struct weir_breaker *breaker, __u64 state,
					      __u64 next)
{
	if (__sync_val_compare_and_swap(&breaker->state, state, next) != state)
		return false;
	__sync_fetch_and_add(&breaker->changes, 1);
	weir_emit_breaker_event(s, breaker, weir_state_kind(next));
	return true;
}

/* ---- the window ---- */

static __always_inline void weir_empty_window(struct weir_breaker *breaker)
{
#pragma unroll
	for (int i = 0; i < WEIR_BREAKER_BUCKETS_MAX; i++)
		WRITE_ONCE(breaker->cell[i], 0);
}

/* Empty the cells that have left the window; otherwise their bucket numbers, of 12 bits, would wrap. None is older than
 * half of that range, because this is done with every new bucket. Counts of another CPU in a later bucket stay.
 */
static __always_inline void weir_empty_old_cells(struct weir_breaker *breaker, __u64 bucket, __u32 buckets)
{
#pragma unroll
	for (int i = 0; i < WEIR_BREAKER_BUCKETS_MAX; i++) {
		__u64 cell = READ_ONCE(breaker->cell[i]);
		__u64 age = (bucket - (cell >> WEIR_BREAKER_NUMBER_SHIFT)) & WEIR_BREAKER_NUMBER_MASK;

		if (age >= buckets && age <= WEIR_BREAKER_NUMBER_MASK / 2)
			__sync_val_compare_and_swap(&breaker->cell[i], cell, 0);
	}
}

/* A cell after adding these requests. Without branches, for the verifier. */
static __always_inline __u64 weir_cell_add(__u64 cell, __u64 bucket, __u64 count, __u64 bad)
{
	__u64 number = bucket & WEIR_BREAKER_NUMBER_MASK;
	__u64 is_same = (__s64)((cell >> WEIR_BREAKER_NUMBER_SHIFT ^ number) - 1) >> 63;
	__u64 all = cell >> WEIR_BREAKER_COUNT_BITS & WEIR_BREAKER_COUNT_MASK & is_same;
	__u64 failed = cell & WEIR_BREAKER_COUNT_MASK & is_same;
	__u64 has_room = ~((__s64)(WEIR_BREAKER_COUNT_MASK - all - count) >> 63);

	all += count & has_room;
	failed += bad & has_room;
	return number << WEIR_BREAKER_NUMBER_SHIFT | all << WEIR_BREAKER_COUNT_BITS | failed;
}

/* Count s->outcome in the bucket of its own time. False: that bucket has left the window. */
__noinline int weir_count_in_window(struct weir_scratch *s, struct weir_breaker *breaker, __u64 bucket, __u32 buckets)
{
	__u64 newest, *cell;

	WEIR_GLOBAL(BREAKERS, s && breaker && buckets, false);
	newest = READ_ONCE(breaker->newest);
	if (bucket > newest) {
		if (bucket - newest >= WEIR_BREAKER_BUCKETS_STALE)
			weir_empty_window(breaker);
		else
			weir_empty_old_cells(breaker, bucket, buckets);
		__sync_val_compare_and_swap(&breaker->newest, newest, bucket);
	} else if (newest - bucket >= buckets) {
		return false;
	}
	cell = WEIR_ELEMENT(breaker->cell, bucket % buckets);
	for (int attempt = 0; cell && attempt < WEIR_BREAKER_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(*cell), count = s->outcome.count;
		__u64 changed = weir_cell_add(old, bucket, count, s->outcome.is_bad ? count : 0);

		if (__sync_val_compare_and_swap(cell, old, changed) == old)
			return true;
	}
	return false;
}

/* The counts of the window that ends with this bucket: all requests (32 bits), and the bad ones. */
__noinline __u64 weir_sum_window(const struct weir_breaker *breaker, __u64 bucket, __u32 buckets)
{
	__u64 sum = 0;

	WEIR_GLOBAL(BREAKERS, breaker, 0);
#pragma unroll
	for (__u32 i = 0; i < WEIR_BREAKER_BUCKETS_MAX; i++) {
		__u64 cell = READ_ONCE(breaker->cell[i]);
		__u64 age = (bucket - (cell >> WEIR_BREAKER_NUMBER_SHIFT)) & WEIR_BREAKER_NUMBER_MASK;
		__u64 counts = (cell >> WEIR_BREAKER_COUNT_BITS & WEIR_BREAKER_COUNT_MASK) << 32 |
			       (cell & WEIR_BREAKER_COUNT_MASK);

		sum += counts & weir_mask_if_less(age, buckets); /* without a branch, for the verifier */
		OPAQUE(sum); /* else clang reads all cells first, into 80 bytes of the deepest chain's stack */
	}
	return sum;
}

static __always_inline bool weir_breaks(const struct weir_breaker_terms *terms, __u64 sum)
{
	__u64 all = sum >> 32, bad = (__u32)sum;

	if (all < terms->min_requests)
		return false;
	return bad * WEIR_MICRO >= terms->threshold_micro * (terms->strategy == WEIR_BREAKER_ERROR_COUNT ? 1 : all);
}

/* ---- outcomes ---- */

/* Count the outcome in a closed breaker. False: another CPU has changed its state. */
__noinline int weir_count_closed(struct weir_scratch *s, struct weir_breaker *breaker, __u32 place, __u64 state)
{
	const struct weir_breaker_terms *terms = &weir_rule(place)->breaker;
	__u64 bucket, sum, until_ns;

	WEIR_GLOBAL(BREAKERS, s && breaker && terms->bucket_ns, true);
	bucket = s->outcome.moment_ns / terms->bucket_ns;
	if (!weir_count_in_window(s, breaker, bucket, terms->buckets))
		return true;
	sum = weir_sum_window(breaker, bucket, terms->buckets);
	WRITE_ONCE(breaker->last, sum);
	if (!weir_breaks(terms, sum))
		return true;
	until_ns = s->outcome.moment_ns + terms->retry_ns;
	weir_move_breaker(s, breaker, state, weir_next_breaker(state, WEIR_BREAKER_OPEN, until_ns));
	return true;
}

/* Count one more good outcome in this era. Are there now enough to close the breaker? */
static __always_inline bool weir_count_good(struct weir_breaker *breaker, __u32 era, __u64 enough)
{
	for (int attempt = 0; attempt < WEIR_BREAKER_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(breaker->good), good = 1;

		if (enough <= 1)
			return true;
		if (old >> 32 == era)
			good += (__u32)old;
		if (__sync_val_compare_and_swap(&breaker->good, old, (__u64)era << 32 | good) == old)
			return good >= enough;
	}
	return false;
}

/* Count the outcome in a half-open breaker, if the request was admitted since its probe. False: read the state again.
 */
__noinline int weir_count_probe(struct weir_scratch *s, struct weir_breaker *breaker, __u32 place, __u64 state)
{
	const struct weir_breaker_terms *terms = &weir_rule(place)->breaker;
	__u32 era = weir_state_era(state);
	__u64 next;

	WEIR_GLOBAL(BREAKERS, s && breaker && s->outcome.era == era, true);
	next = weir_next_breaker(state, WEIR_BREAKER_OPEN, s->outcome.moment_ns + terms->retry_ns);
	if (!s->outcome.is_bad) {
		if (!weir_count_good(breaker, era, terms->probes))
			return true;
		/* No CPU counts in the window of a breaker that is not closed. */
		weir_empty_window(breaker);
		next = weir_next_breaker(state, WEIR_BREAKER_CLOSED, era);
	}
	return weir_move_breaker(s, breaker, state, next);
}

/* s->outcome is known: does it open or close the breaker? */
__noinline int weir_count_outcome(struct weir_scratch *s, struct weir_breaker *breaker, __u32 place)
{
	WEIR_GLOBAL(BREAKERS, s && breaker, 0);
	for (int attempt = 0; attempt < 2; attempt++) {
		__u64 state = weir_breaker_state(s, breaker);
		__u32 kind = weir_state_kind(state);

		if (kind == WEIR_BREAKER_OPEN)
			break;
		if (kind == WEIR_BREAKER_HALF_OPEN ? weir_count_probe(s, breaker, place, state)
						   : weir_count_closed(s, breaker, place, state))
			break;
	}
	return 0;
}

/* ---- what was due before ---- */

/* The largest number of groups in a ring. Three nested loops, so that the verifier follows few rounds. */
#define WEIR_REAP_ROUNDS 41
_Static_assert(WEIR_REAP_ROUNDS *WEIR_REAP_ROUNDS *WEIR_REAP_ROUNDS >= 1 << WEIR_RING_SHIFT_MAX, "all of a ring");

/* True: there may be more. */
__noinline int weir_reap_few(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number, __u32 place)
{
	WEIR_GLOBAL(BREAKERS, s && breaker, false);
	for (int i = 0; i < WEIR_REAP_ROUNDS; i++) {
		int answer = weir_take_oldest(s, breaker, number);

		if (answer == WEIR_GROUP_WAITS)
			return false;
		if (answer == WEIR_GROUP_DUE)
			weir_count_outcome(s, breaker, place);
	}
	return true;
}

__noinline int weir_reap_some(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number, __u32 place)
{
	WEIR_GLOBAL(BREAKERS, s && breaker, false);
	for (int i = 0; i < WEIR_REAP_ROUNDS; i++)
		if (!weir_reap_few(s, breaker, number, place))
			return false;
	return true;
}

/* Bring a breaker to the present: count all requests that have become bad by now, each at its own time. */
static __always_inline void weir_reap(struct weir_scratch *s, struct weir_breaker *breaker, __u32 number, __u32 place)
{
	for (int i = 0; i < WEIR_REAP_ROUNDS; i++)
		if (!weir_reap_some(s, breaker, number, place))
			break;
}

#endif
