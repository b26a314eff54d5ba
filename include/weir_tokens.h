/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Token buckets: virtual time, which needs no division. Pure; compiles for BPF and for the host.
 *
 * The *virtual time* V of a rule grows at the rate at which its buckets fill; one token is `unit` of it. A bucket is
 * represented by the virtual time W at which it is full again: W - V is its deficit. It holds `capacity`, and a packet
 * costs batch * unit. So a packet fits if max(W, V) + cost <= V + capacity, and W then becomes max(W, V) + cost.
 *
 * Where `unit` can be a multiple of the denominator of threshold / interval, V is a whole number at every ns, and all
 * of this is exact. Otherwise `rate` has a fraction. V is then rounded down to a whole number, and the fraction is
 * rounded up to 64 bits, so that exact whole numbers stay exact. V is always less than two off. The error does not
 * accumulate, and is 2 / unit of a token (user/lib/core/thresholds/token_rates.c says how large `unit` is).
 *
 * When the rate moves, V continues from its value, so the deficit of each bucket stays the same. Each change begins
 * with all 64 bits of the fraction, so that V is ahead of the truth by 2^-34 more for each second at such a rate.
 */
#ifndef WEIR_TOKENS_H
#define WEIR_TOKENS_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* The growth of virtual time per ns. */
struct weir_token_rate {
	__u64 fraction; /* of 2^64 parts */
	__u32 whole;	/* below 2^WEIR_TOKEN_RATE_BITS */
	__u32 pad;
};

/* Virtual time, from one moment on. */
struct weir_token_clock {
	__u64 start_ns;
	__u64 high; /* at start_ns: 2^32 each */
	__u64 rest; /* ... of 2^64 parts */
	__u32 low;  /* ... and between the two */
	__u32 pad;
	struct weir_token_rate rate;
};

/* The data that a rule or an override needs to evaluate by tokens. */
struct weir_tokens {
	struct weir_token_clock clock;
	__u64 unit;	 /* virtual time of a token */
	__u64 capacity;	 /* of a full bucket */
	__u32 batch_max; /* the largest packet for which a full bucket has tokens; 0: nothing is ever admitted */
	__u32 mark;	 /* marks buckets of this virtual time; buckets with another mark count as full */
};

#define WEIR_TOKEN_RATE_BITS 27
#define WEIR_TOKEN_STEP_BITS 20

/*
 * A bucket's word is the lowest 62 bits of W, or FULL with the bucket's owner. A second word has the *epoch* in which a
 * packet of the flow was last admitted: 2^57 of virtual time, a second or more. A capacity is at most an epoch. If the
 * epoch is at most two old or two ahead, W can be found from its lowest bits: W is not before that epoch, and at most
 * an epoch after its end. So W lies at most four epochs after V and three before it, and 62 bits distinguish 32. If the
 * epoch is older, the bucket has been full for an epoch by now, and so for all packets that are being evaluated. If the
 * epoch is farther ahead, which is possible if the clock goes back in a capture, the bucket lacks two epochs and more,
 * so nothing fits.
 */
#define WEIR_TOKEN_TIME_BITS 62
#define WEIR_TOKEN_TIME_MASK ((1ull << WEIR_TOKEN_TIME_BITS) - 1)
#define WEIR_BUCKET_FULL (1ull << 63) /* the lowest 32 bits: owner */
#define WEIR_TOKEN_EPOCH_BITS 57
#define WEIR_TOKEN_EPOCHS_KNOWN 2
#define WEIR_TOKEN_CAPACITY_MAX (1ull << WEIR_TOKEN_EPOCH_BITS)
#define WEIR_TOUCHED(owner, epoch) ((__u64)(owner) << 32 | (__u32)(epoch))

struct weir_token_time {
	__u64 high; /* 2^32 each */
	__u64 rest; /* of 2^64 parts */
	__u32 low;
};

/* The upper half of a product. */
static __always_inline __u64 weir_product_high(__u64 a, __u64 b)
{
	__u64 a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
	__u64 middle = a_high * b_low + (a_low * b_low >> 32);
	__u64 middle2 = a_low * b_high + (middle & 0xffffffff);

	return a_high * b_high + (middle >> 32) + (middle2 >> 32);
}

/* Before its start, the clock stands still. whole * 2^32 and the sum of `low` below stay under 2^64. */
static __always_inline struct weir_token_time weir_token_time(const struct weir_token_clock *clock, __u64 now_ns)
{
	__u64 ns = now_ns > clock->start_ns ? now_ns - clock->start_ns : 0;
	__u64 low = clock->low + (ns & 0xffffffff) * clock->rate.whole;
	__u64 parts = weir_product_high(ns, clock->rate.fraction), rest = clock->rest + ns * clock->rate.fraction;

	parts += rest < clock->rest;
	low += parts & 0xffffffff;
	return (struct weir_token_time){
		.high = clock->high + (ns >> 32) * clock->rate.whole + (parts >> 32) + (low >> 32),
		.low = (__u32)low,
		.rest = rest,
	};
}

/* From that moment on virtual time grows at another rate. Nothing of it is lost, and nothing is added. */
static __always_inline void weir_turn_token_clock(struct weir_token_clock *clock, __u64 at_ns,
						  const struct weir_token_rate *rate)
{
	struct weir_token_time time = weir_token_time(clock, at_ns);

	clock->start_ns = at_ns;
	clock->high = time.high;
	clock->low = time.low;
	clock->rest = time.rest;
	clock->rate = *rate;
}

/* If the rule's rate moves: what was pushed expires at expiry_ns (0: it has been expired ever since it was pushed).
 * From then on virtual time grows at the rule's own rate.
 */
static __always_inline void weir_expire_token_clock(struct weir_token_clock *clock, __u64 expiry_ns, __u64 now_ns,
						    const struct weir_token_rate *own)
{
	if (now_ns >= expiry_ns)
		weir_turn_token_clock(clock, expiry_ns > clock->start_ns ? expiry_ns : clock->start_ns, own);
}

/* How many steps of 2^WEIR_TOKEN_STEP_BITS ns virtual time takes to grow by this much. Never too few. */
static __always_inline __u32 weir_token_steps(const struct weir_token_rate *rate, __u64 growth)
{
	__u64 step = (__u64)rate->whole << WEIR_TOKEN_STEP_BITS | rate->fraction >> (64 - WEIR_TOKEN_STEP_BITS);
	__u64 steps = step ? growth / step + 1 : ~0ull;

	return steps >> 31 ? 0x7fffffff : steps;
}

/* How many ns virtual time takes to grow by this much. Never too many, and at most a sixteenth too few. */
static __always_inline __u64 weir_token_wait_ns(const struct weir_token_rate *rate, __u64 growth)
{
	__u64 parts; /* 2^24 in a ns; the remainder makes one more at most */

	if (rate->whole >> 12)
		return growth / ((__u64)rate->whole + 1);
	parts = ((__u64)rate->whole << 24 | rate->fraction >> 40) + 1;
	return growth >> 40 ? growth / parts << 24 : (growth << 24) / parts;
}

static __always_inline __u64 weir_token_word(const struct weir_token_time *time)
{
	return (time->high << 32 | time->low) & WEIR_TOKEN_TIME_MASK;
}

static __always_inline __u32 weir_token_epoch(const struct weir_token_time *time)
{
	return (__u32)(time->high >> (WEIR_TOKEN_EPOCH_BITS - 32));
}

/* W - V, if their distance is known. */
static __always_inline __s64 weir_token_ahead(__u64 word, __u64 now)
{
	return (__s64)((word - now) << (64 - WEIR_TOKEN_TIME_BITS)) >> (64 - WEIR_TOKEN_TIME_BITS);
}

#endif
