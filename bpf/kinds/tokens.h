/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Token buckets: a flow has up to `burst` tokens and gains `threshold` tokens per interval. A packet takes its batch.
 * All CPUs share a flow's bucket and change it by compare-and-swap, so that no token is taken twice.
 * (docs/semantics.md, 9; include/weir_tokens.h has the arithmetic, and what the two words of a bucket mean.)
 *
 * Why two words that change one after the other are as good as one:
 *
 *  1. `word` is a time, or FULL with the name of an owner. It changes only by compare-and-swap: from a time to another
 *     time or to FULL; from FULL to a time only by a CPU that has read this FULL, and whose flow is the owner in it.
 *  2. Before a CPU writes a time, it reads `touched` after `word`. It either finds its own flow's owner with the
 *     present or a later epoch there, or writes that by a compare-and-swap (a full barrier, if it succeeds). While
 *     `word` is a time, `touched` only goes forward, because a compare-and-swap from the value read in the same
 *     evaluation writes a later epoch.
 *  3. So a CPU that reads a time and then `touched` finds an epoch that is not older than that time's. If the epoch is
 *     long past, or another flow's, the time is, too, and the bucket is taken to be full. The CPU first writes FULL
 *     with its own owner to `word`. Any other CPU that works with the old time then fails to swap it, and begins again.
 *  4. Between the reads of `word` and `touched`, another CPU may have made the bucket FULL and taken from it. A CPU
 *     that admits then fails to swap `word`. A CPU that blocks reads `word` once more.
 *
 * tests/model/tokens.pml checks all orders of these steps.
 */
#ifndef WEIR_BPF_TOKENS_H
#define WEIR_BPF_TOKENS_H

#include "reservations.h"
#include "observe/drops.h"
#include "kinds/ghosts.h"
#include "window/shortcuts.h"
#include "window/threshold.h"

/* Attempts to read a pushed clock. They fail only if the controller writes during each, but it pauses for milliseconds.
 */
#define WEIR_PUSHED_ATTEMPTS 4
/* Attempts to take from a bucket. One fails if another CPU changes the bucket meanwhile; eight in a row were never
 * seen.
 */
#define WEIR_TOKEN_ATTEMPTS 8
/* Attempts to return tokens to a bucket: WEIR_PUT_BACK_CALLS calls of WEIR_PUT_BACK_ATTEMPTS each. Each attempt reads
 * the clock. When two CPUs work on one bucket as fast as they can, nine of ten attempts fail (Xeon, 2 virtual cores),
 * and 64 in a row failed once in some thousand packets. Tokens that cannot be returned are lost to the flow.
 */
#define WEIR_PUT_BACK_ATTEMPTS 64
#define WEIR_PUT_BACK_CALLS 16

/* ---- how the bucket fills ---- */

static __always_inline void weir_read_override_tokens(struct weir_scratch *s, const struct weir_rule *rule, __u32 place)
{
	const struct weir_override_units *found = weir_find_override(s, rule, place);

	if (!found)
		return;
	s->tokens.clock = (struct weir_token_clock){.rate = found->tokens.rate};
	s->tokens.capacity = found->tokens.capacity;
	s->tokens.batch_max = found->tokens.batch_max;
	s->tokens.mark = found->tokens.mark;
}

/* The clock of a rule whose rate moves: as it was pushed or, after that has expired, at the rule's own rate. */
static __always_inline bool weir_read_moving_clock(struct weir_scratch *s, const struct weir_rule *rule, __u32 place)
{
	const struct weir_pushed *pushed = bpf_map_lookup_elem(&thresholds, &place);

	for (int attempt = 0; pushed && attempt < WEIR_PUSHED_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(pushed->word);

		weir_order(s);
		s->tokens.clock = word >> WEIR_THRESHOLD_BITS & 1 ? pushed->clock[1] : pushed->clock[0];
		weir_order(s);
		if (READ_ONCE(pushed->word) != word)
			continue;
		weir_expire_token_clock(&s->tokens.clock, weir_expiry_ns(), weir_now_ns(s), &rule->tokens.clock.rate);
		return true;
	}
	return false;
}

/* Fill in s->tokens for the current packet, except the owner. False: the rule's clock cannot be read. */
__noinline int weir_find_tokens(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_token_time time;

	WEIR_GLOBAL(KIND(TOKENS), s, false);
	s->tokens.clock = rule->tokens.clock;
	s->tokens.capacity = rule->tokens.capacity;
	s->tokens.batch_max = rule->tokens.batch_max;
	s->tokens.mark = rule->tokens.mark;
	if (config.has_overrides && rule->has_overrides)
		weir_read_override_tokens(s, rule, place);
	if (config.has_moving && rule->threshold_moves && !weir_read_moving_clock(s, rule, place))
		return false;
	time = weir_token_time(&s->tokens.clock, weir_now_ns(s));
	s->tokens.now = weir_token_word(&time);
	s->tokens.epoch = weir_token_epoch(&time);
	return true;
}

/* ---- the flow's bucket ---- */

/* Find the set of the packet's flow and name it in s->view. Its first two lines are fetched while the clock is read. */
static __always_inline struct weir_token_set *weir_token_set(struct weir_scratch *s, const struct weir_rule *rule)
{
	struct weir_token_set *set;
	__u32 index;

	s->view.slot = rule->slot;
	s->view.flow = weir_shared_id(weir_flow_hash(s, rule), config.sizes[WEIR_TABLE_TOKEN_FLOWS]);
	index = s->view.flow.set;
	set = bpf_map_lookup_elem(&token_flows, &index);
	if (set) {
		(void)READ_ONCE(set->flows.tag[0]);
		(void)READ_ONCE(set->bucket[0].word);
	}
	return set;
}

/* The one bucket of a whole resource. */
static __always_inline struct weir_token_bucket *weir_lone_bucket(struct weir_scratch *s, const struct weir_rule *rule)
{
	__u32 index = rule->slot;

	s->view.slot = rule->slot;
	s->view.flow.tag = 0;
	return bpf_map_lookup_elem(&token_resources, &index);
}

/* Is the entry that weir_get_bucket() found still the flow's? */
__noinline int weir_has_bucket(struct weir_scratch *s)
{
	const struct weir_token_set *set;
	__u32 index;

	WEIR_GLOBAL(KIND(TOKENS), s, false);
	if (!s->view.flow.tag)
		return true; /* a whole resource has a bucket to itself */
	index = s->view.flow.set;
	set = bpf_map_lookup_elem(&token_flows, &index);
	return set && weir_owns_way(s, &set->flows, s->row_number, s->view.flow.tag);
}

/* When the bucket of s->row_number, which is about to lack this much, will be full, in ns from now. */
static __always_inline __u64 weir_full_in_ns(const struct weir_scratch *s, __u64 lacks)
{
	return (__u64)weir_token_steps(&s->tokens.clock.rate, lacks) << WEIR_TOKEN_STEP_BITS;
}

/* ---- WEIR_SHORTCUT_SOURCE: the flow that had no token just now has none until the next one comes ---- */

/* The longest time for which this is remembered, because a packet on another CPU may put tokens back. Chosen, not
 * derived: a thousand times as long as an evaluation takes, and still few evaluations in a flood.
 */
#define WEIR_SPENT_REMEMBERED_NS 1000000ull

/* Remember how much virtual time the packet's flow lacks before a packet of one unit fits. Exact to the nanosecond, so
 * that a token that arrives within this tick need not wait for the next tick.
 */
static __always_inline void weir_remember_spent(struct weir_scratch *s, const struct weir_rule *rule, __u64 lacks)
{
	bool is_known = s->over_source.tag == s->view.flow.tag;
	__u64 wait_ns;

	if (!weir_takes(WEIR_SHORTCUT_SOURCE) || rule->key_fields != WEIR_KEY_SOURCE || WEIR_UNITS_DIFFER(s, rule) ||
	    rule->threshold_moves)
		return;
	/* Virtual time is rounded at both ends. */
	wait_ns = weir_lesser(weir_token_wait_ns(&s->tokens.clock.rate, lacks - 1), WEIR_SPENT_REMEMBERED_NS);
	weir_remember_source(s, rule, s->view.flow.tag, s->tick, wait_ns / config.tick_ns);
	s->over_source.since_ns = weir_now_ns(s);
	if (is_known)
		s->over_source.sure_ns = wait_ns;
}

/* Does the packet belong to that flow? */
static __always_inline bool weir_is_spent_source(struct weir_scratch *s, const struct weir_rule *rule)
{
	if (!WEIR_IS_KIND(rule, TOKENS) || !weir_is_same_source(s, rule))
		return false;
	return s->tick - s->over_source.since_jiffies < s->over_source.sure_jiffies ||
	       (s->over_source.sure_ns && weir_now_ns(s) - s->over_source.since_ns < s->over_source.sure_ns);
}

/* ---- the decision ---- */

/* What is known about the bucket's deficit, from its word and from `touched`, which was read after it. */
enum weir_bucket_state {
	WEIR_BUCKET_KNOWN,   /* a time of this flow, not too far away to be represented */
	WEIR_BUCKET_IS_FULL, /* FULL, with this flow as the owner */
	WEIR_BUCKET_PAST,    /* a time long past, or another flow's words: full, but FULL has yet to be written */
	WEIR_BUCKET_AHEAD,   /* the clock moved back, in a capture, too far to be represented */
};

static __always_inline enum weir_bucket_state weir_bucket_state(const struct weir_scratch *s, __u64 word, __u64 touched)
{
	__s32 age = s->tokens.epoch - (__u32)touched;

	if (word & WEIR_BUCKET_FULL)
		return (__u32)word == s->tokens.owner ? WEIR_BUCKET_IS_FULL : WEIR_BUCKET_PAST;
	if (touched >> 32 != s->tokens.owner || age > WEIR_TOKEN_EPOCHS_KNOWN)
		return WEIR_BUCKET_PAST;
	return age < -WEIR_TOKEN_EPOCHS_KNOWN ? WEIR_BUCKET_AHEAD : WEIR_BUCKET_KNOWN;
}

/* Make `touched` name this flow and an epoch not older than the present one. False: another CPU has changed it. In a
 * full bucket, the epoch may be far ahead if the clock went back.
 */
static __always_inline bool weir_touch_bucket(const struct weir_scratch *s, struct weir_token_bucket *bucket,
					      __u64 touched, bool is_full)
{
	__s32 age = s->tokens.epoch - (__u32)touched;

	if (touched >> 32 == s->tokens.owner && age <= 0 && !(is_full && age < -WEIR_TOKEN_EPOCHS_KNOWN))
		return true;
	return __sync_val_compare_and_swap(&bucket->touched, touched, WEIR_TOUCHED(s->tokens.owner, s->tokens.epoch)) ==
	       touched;
}

/* Take the packet's tokens, if they are there. `set` is the flow's set; NULL for a whole resource. AGAIN: the flow has
 * just lost its entry, which is another's now.
 */
static __always_inline enum weir_answer weir_take_tokens(struct weir_scratch *s, struct weir_token_set *set,
							 struct weir_token_bucket *bucket, __u64 cost,
							 struct weir_taken *taken)
{
	for (int attempt = 0; attempt < WEIR_TOKEN_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(bucket->word), touched;
		enum weir_bucket_state state;
		__s64 ahead = 0;

		weir_order(s);
		touched = READ_ONCE(bucket->touched);
		state = weir_bucket_state(s, word, touched);
		if (state == WEIR_BUCKET_AHEAD)
			return weir_refuse(s, WEIR_EVENT_UNKNOWN, WEIR_EVENT_UNKNOWN);
		if (state == WEIR_BUCKET_PAST) {
			__u64 full = WEIR_BUCKET_FULL | s->tokens.owner;

			/* Long past; or the flow's first packet under this rule as it is now. */
			if (!weir_has_bucket(s))
				return WEIR_ANSWER_AGAIN;
			if (__sync_val_compare_and_swap(&bucket->word, word, full) != word)
				continue;
			word = full;
		}
		if (state == WEIR_BUCKET_KNOWN) {
			ahead = weir_token_ahead(word, s->tokens.now);
			ahead &= ~(ahead >> 63);
			if (ahead + cost > s->tokens.capacity) {
				weir_order(s);
				if (READ_ONCE(bucket->word) != word)
					continue;
				taken->lacks = ahead + cost - s->tokens.capacity;
				return weir_refuse(s, ahead, s->tokens.capacity);
			}
		}
		if (!weir_touch_bucket(s, bucket, touched, word & WEIR_BUCKET_FULL))
			continue;
		if (set && !weir_raise_keep(s, &set->flows, s->row_number, weir_full_in_ns(s, ahead + cost)))
			continue;
		if (__sync_val_compare_and_swap(&bucket->word, word,
						(s->tokens.now + ahead + cost) & WEIR_TOKEN_TIME_MASK) == word) {
			/* A bucket that was found full is full at any time, so the epoch beside it does not matter. */
			taken->former = ahead ? word : WEIR_BUCKET_FULL | s->tokens.owner;
			taken->word = ahead + cost;
			return WEIR_ANSWER_ADMIT;
		}
	}
	return weir_refuse_stalled(s, s->view.slot);
}

/* Remember what was taken, and where, because a later rule may block the packet. */
static __always_inline void weir_reserve_tokens(struct weir_scratch *s, struct weir_reservation *reservation,
						struct weir_taken *taken, __u64 lacks)
{
	taken->now = s->tokens.now;
	taken->word = (taken->now + lacks) & WEIR_TOKEN_TIME_MASK;
	taken->now_ns = weir_now_ns(s);
	taken->whole = s->tokens.clock.rate.whole;
	reservation->row = s->view.flow.tag ? s->view.flow.set : s->view.slot;
	reservation->cell = s->row_number;
	reservation->tag = s->view.flow.tag;
	reservation->kind = WEIR_RESERVATION_OF_KIND;
}

/* ---- a flow that was evicted ---- */

/* The deficit of a bucket that will be full in left_ns. It is 0 if left_ns exceeds the largest deficit plus the
 * rounding of a ghost: such a ghost is two months old.
 */
static __always_inline __u64 weir_lacks_of_ghost(const struct weir_scratch *s, __u64 left_ns)
{
	const struct weir_token_rate *rate = &s->tokens.clock.rate;
	__u64 lacks = left_ns * rate->whole + weir_product_high(left_ns, rate->fraction);
	__u64 late = ((__u64)rate->whole + 1) << (WEIR_KEEP_STEP_BITS + 1);

	if (weir_product_high(left_ns, rate->whole) || lacks > s->tokens.capacity + late)
		return 0;
	return lacks < s->tokens.capacity ? lacks : s->tokens.capacity;
}

/* The deficit of the overflow bucket, for a flow without a ghost. */
static __always_inline __u64 weir_overflow_ns(struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_token_rate *rate = &s->tokens.clock.rate;
	__u64 cost = weir_units(s, rule) * rule->tokens.unit;

	if (!config.has_overflow || !rule->overflow)
		return 0;
	return weir_join_overflow(s, s->view.flow.set, WEIR_OVERFLOW_TOKENS,
				  (__u64)weir_token_steps(rate, cost) << WEIR_TOKEN_STEP_BITS,
				  (__u64)weir_token_steps(rate, s->tokens.capacity) << WEIR_TOKEN_STEP_BITS);
}

/* What the bucket of the flow of s->view lacks, which has no entry. (By itself, because the stack has no room.) */
__noinline __u64 weir_restored_lacks(struct weir_scratch *s, __u32 nth)
{
	__u64 left_ns;

	WEIR_GLOBAL(KIND(TOKENS), s, 0);
	left_ns = weir_find_flow_ghost(s, s->view.flow.tag, s->view.flow.set, WEIR_TABLE_TOKEN_FLOWS);
	if (!left_ns)
		left_ns = weir_overflow_ns(s, weir_rule(s->rule[nth & (WEIR_PACKET_RULES_MAX - 1)]));
	return left_ns ? weir_lacks_of_ghost(s, left_ns) : 0;
}

/* The flow of s->view has claimed the bucket s->row_number. Leave a ghost of the former owner; make it a bucket that
 * lacks what the flow's own ghost records; then show it. Until that is done, the bucket is nobody's: a packet of the
 * flow on another CPU may have found this way before the flow was evicted. (The insertion's number is in that word, or
 * such a packet could take it for that of an earlier insertion.) False: that is not possible now.
 */
__noinline int weir_begin_bucket(struct weir_scratch *s, struct weir_token_set *set, __u32 nth)
{
	struct weir_token_bucket *bucket;
	__u64 lacks, nobodys, word;

	WEIR_GLOBAL(KIND(TOKENS), s && set, false);
	bucket = WEIR_ELEMENT(set->bucket, s->row_number);
	nobodys = WEIR_BUCKET_FULL | WEIR_INSERTED_COUNT(s->place.latest) << 32 | (__u32)~s->tokens.owner;
	if (!bucket ||
	    !weir_take_entry(s, &set->flows, &bucket->word, nobodys, s->view.flow.set, WEIR_TABLE_TOKEN_FLOWS))
		return false;
	lacks = weir_restored_lacks(s, nth);
	word = nobodys ^ (__u32)~0u; /* full, with the owner */
	if (lacks) {
		WRITE_ONCE(bucket->touched, WEIR_TOUCHED(s->tokens.owner, s->tokens.epoch));
		weir_set_keep(s, &set->flows, s->row_number, weir_full_in_ns(s, lacks));
		word = (s->tokens.now + lacks) & WEIR_TOKEN_TIME_MASK;
		weir_order(s);
	}
	WRITE_ONCE(bucket->word, word);
	weir_publish_flow(s, &set->flows);
	weir_remove_flow_ghost(s, s->view.flow.set, WEIR_TABLE_TOKEN_FLOWS);
	return true;
}

/* Find or insert the flow's bucket in its set; s->row_number then says where it is. */
static __always_inline struct weir_token_bucket *weir_get_bucket(struct weir_scratch *s, struct weir_token_set *set,
								 __u32 nth)
{
	__u32 way = weir_way_of(&set->flows, s->view.flow.tag);

	s->row_number = way;
	if (way == WEIR_FLOW_WAYS) {
		way = weir_claim_flow(s, &set->flows, s->view.flow.tag, s->view.slot);
		s->row_number = WEIR_WAY(way);
		if (way & WEIR_WAY_IS_NEW && !weir_begin_bucket(s, set, nth))
			return NULL;
	}
	return WEIR_ELEMENT(set->bucket, s->row_number);
}

/* Events report tokens, but this file counts virtual time. */
static __always_inline enum weir_answer weir_refuse_parts(struct weir_scratch *s, const struct weir_rule *rule,
							  enum weir_answer answer)
{
	s->refusal.unit = rule->tokens.unit;
	return answer;
}

/* Evaluate the packet by a rule with tokens. */
__noinline int weir_evaluate_tokens(struct weir_scratch *s, __u32 place, __u32 nth)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;
	struct weir_token_bucket *bucket;
	struct weir_token_set *set = NULL;
	struct weir_taken *taken;
	enum weir_answer answer;
	__u64 batch, lacks;

	WEIR_GLOBAL(KIND(TOKENS), reservation, WEIR_ANSWER_ERROR);
	taken = &s->taken[nth & (WEIR_PACKET_RULES_MAX - 1)];
	reservation->kind = WEIR_RESERVATION_NONE;
	taken->lacks = 0;
	batch = weir_units(s, rule);
	if (rule->key_fields)
		set = weir_token_set(s, rule);
	else
		s->view.flow.tag = 0;
	if (!weir_find_tokens(s, place))
		return weir_refuse_stalled(s, rule->slot);
	s->tokens.owner = s->tokens.mark ^ s->view.flow.tag;
	if (batch > s->tokens.batch_max)
		return weir_refuse_parts(s, rule, weir_refuse(s, WEIR_EVENT_UNKNOWN, s->tokens.capacity));
	if (rule->key_fields)
		bucket = set ? weir_get_bucket(s, set, nth) : NULL;
	else
		bucket = weir_lone_bucket(s, rule);
	if (!bucket)
		return set ? WEIR_ANSWER_AGAIN : weir_refuse_stalled(s, rule->slot);
	/* Not above the capacity, because the batch is at most what a full bucket has. */
	answer = weir_take_tokens(s, set, bucket, batch * rule->tokens.unit, taken);
	if (answer == WEIR_ANSWER_BLOCK && taken->lacks && !nth)
		weir_remember_spent(s, rule, taken->lacks);
	if (answer == WEIR_ANSWER_BLOCK && set)
		weir_keep_refused(&set->flows, s->row_number);
	if (answer != WEIR_ANSWER_ADMIT)
		return weir_refuse_parts(s, rule, answer);
	lacks = taken->word;
	weir_reserve_tokens(s, reservation, taken, lacks);
	reservation->batch = batch;
	return answer;
}

/* ---- a packet that a later rule blocks ---- */

/*
 * Other CPUs have taken tokens since. If the bucket has not been full since then, returning the tokens leaves it as if
 * the packet had never come. (It cannot have been full before the time that this packet wrote.) If it may have been
 * full, part of what was taken may have been refilled already. Returning everything would then be too much, so nothing
 * is returned.
 */
static __always_inline bool weir_may_have_been_full(struct weir_scratch *s, const struct weir_taken *taken)
{
	__u64 passed_ns;

	s->has_now = 0;
	passed_ns = weir_now_ns(s) - taken->now_ns;
	return passed_ns >> (64 - WEIR_TOKEN_RATE_BITS - 2) ||
	       passed_ns * (taken->whole + 1) + 2 >= (__u64)weir_token_ahead(taken->word, taken->now);
}

static __always_inline struct weir_token_bucket *weir_reserved_bucket(const struct weir_reservation *reservation,
								      const __u32 **ret_tag)
{
	struct weir_token_set *set;
	__u32 index = reservation->row;

	if (!reservation->tag)
		return bpf_map_lookup_elem(&token_resources, &index);
	set = bpf_map_lookup_elem(&token_flows, &index);
	if (!set)
		return NULL;
	*ret_tag = WEIR_ELEMENT(set->flows.tag, reservation->cell);
	return WEIR_ELEMENT(set->bucket, reservation->cell);
}

/* Return the tokens of reservation `nth`. If no other CPU changed the bucket, it is as before. True: done, or not
 * needed.
 */
__noinline int weir_try_put_back(struct weir_scratch *s, __u32 nth)
{
	const struct weir_reservation *reservation = s ? weir_reservation_at(s, nth) : NULL;
	const struct weir_taken *taken;
	struct weir_token_bucket *bucket;
	const __u32 *tag = NULL;
	__u64 cost;

	WEIR_GLOBAL(KIND(TOKENS), reservation, true);
	taken = &s->taken[nth & (WEIR_PACKET_RULES_MAX - 1)];
	cost = reservation->batch * weir_rule(s->rule[nth & (WEIR_PACKET_RULES_MAX - 1)])->tokens.unit;
	bucket = weir_reserved_bucket(reservation, &tag);
	for (int attempt = 0; bucket && attempt < WEIR_PUT_BACK_ATTEMPTS; attempt++) {
		__u64 word = READ_ONCE(bucket->word), less;

		weir_order(s);
		if (word & WEIR_BUCKET_FULL || (tag && READ_ONCE(*tag) != reservation->tag))
			return true;
		less = (word - cost) & WEIR_TOKEN_TIME_MASK;
		if (!((word ^ taken->word) & WEIR_TOKEN_TIME_MASK))
			less = taken->former;
		else if (weir_may_have_been_full(s, taken))
			return true;
		if (__sync_val_compare_and_swap(&bucket->word, word, less) == word)
			return true;
	}
	return !bucket;
}

static __always_inline void weir_put_back(struct weir_scratch *s, __u32 nth)
{
	for (int call = 0; call < WEIR_PUT_BACK_CALLS; call++)
		if (weir_try_put_back(s, nth))
			return;
	weir_count_stall(weir_rule(s->rule[nth & (WEIR_PACKET_RULES_MAX - 1)])->slot);
}

#endif
