/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Warm-up in integers. The program computes it for each flow, the controller for whole resources, with the same source.
 * A quiet flow stores tokens; what passes uses them up. The more tokens are stored, the colder the flow is and the less
 * it is allowed. Exact: numbers are rounded only where docs/semantics.md, 3, says trunc. Source: Sentinel
 * (sentinel-golang, core/flow/tc_warm_up.go), after Guava's SmoothWarmingUp; docs/semantics.md, 3, says where weir
 * departs from it.
 *
 * Pure. Loops do not branch on the numbers, so that the verifier follows a single path.
 */
#ifndef WEIR_WARM_UP_H
#define WEIR_WARM_UP_H

#include "weir_emission.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/*
 * WarmUp, set up by userspace (docs/semantics.md, 3). R is the rate per second, threshold * 1 s / interval. With these
 * bounds 64 bits are enough below: limit_den * ramp * (cold_less_one + 1) < 2^62, emission_den * ramp < 2^62.
 */
struct weir_warm_up {
	__u64 warning, max; /* tokens */
	__u64 ramp;	    /* max - warning; 0: no ramp, always the plain threshold */
	__u64 cold_less_one;
	__u64 refill;		    /* floor(R), tokens per second */
	__u64 refill_below;	    /* floor(floor(R) / cold factor): a second in which less passed refills */
	__u64 limit_num, limit_den; /* the threshold, units per interval, in lowest terms */
	__u64 emission_num,
		emission_den; /* interval / threshold, ns per unit, in lowest terms; 0 / 1 unless throttling */
};

struct weir_product {
	__u64 high, low;
};

static __always_inline struct weir_product weir_multiply(__u64 a, __u64 b)
{
	__u64 a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
	__u64 low = a_low * b_low;
	__u64 middle = a_high * b_low + (low >> 32);
	__u64 middle2 = a_low * b_high + (middle & 0xffffffff);

	return (struct weir_product){
		.high = a_high * b_high + (middle >> 32) + (middle2 >> 32),
		.low = middle2 << 32 | (low & 0xffffffff),
	};
}

/* One step of a long division, which gives the next bit of the quotient. remainder < divisor < 2^62. */
static __always_inline __u64 weir_divide_bit(__u64 *remainder, __u64 next_bit, __u64 divisor)
{
	__u64 doubled = *remainder << 1 | next_bit;
	__u64 bit = 1 ^ (doubled - divisor) >> 63;

	*remainder = doubled - divisor * bit;
	return bit;
}

/* dividend / divisor for divisor < 2^62 and a quotient that fits 64 bits (dividend.high < divisor). */
static __always_inline __u64 weir_divide(struct weir_product dividend, __u64 divisor, __u64 *ret_remainder)
{
	__u64 remainder = dividend.high, quotient = 0;
	int i;

	for (i = 0; i < 64; i++) {
		quotient = quotient << 1 | weir_divide_bit(&remainder, dividend.low >> 63, divisor);
		dividend.low <<= 1;
	}
	*ret_remainder = remainder;
	return quotient;
}

/* Tokens after the sync of one second, in which `passed` units passed. */
static __always_inline __u64 weir_warm_up_sync(const struct weir_warm_up *params, __u64 stored, __u64 passed)
{
	if (stored <= params->warning || passed < params->refill_below) {
		stored += params->refill;
		if (stored > params->max)
			stored = params->max;
	}
	return stored > passed ? stored - passed : 0;
}

/* Tokens after the syncs of that many `seconds`, in which nothing passed. */
static __always_inline __u64 weir_warm_up_idle(const struct weir_warm_up *params, __u64 stored, __u64 seconds)
{
	__u64 to_max, to_ramp;

	if (params->refill == 0 || stored >= params->max || seconds == 0)
		return stored;
	if (params->refill_below == 0) {
		/* Not even an idle second is below this bound. So only stored <= warning refills, and the last
		 * refill goes beyond the warning line.
		 */
		if (stored > params->warning)
			return stored;
		to_ramp = (params->warning - stored) / params->refill + 1;
		if (seconds > to_ramp)
			seconds = to_ramp;
	}
	to_max = (params->max - stored) / params->refill;
	return seconds > to_max ? params->max : stored + seconds * params->refill;
}

/* floor(allowed) in units per interval, with `stored` tokens. */
static __always_inline __u64 weir_warm_up_units(const struct weir_warm_up *params, __u64 stored)
{
	struct weir_product dividend;
	__u64 above, remainder;

	if (params->ramp == 0 || stored <= params->warning)
		return params->limit_num / params->limit_den;
	above = (stored - params->warning) * params->cold_less_one + params->ramp;
	dividend = weir_multiply(params->limit_num, params->ramp);
	if (dividend.high == 0) /* nearly always */
		return dividend.low / (params->limit_den * above);
	return weir_divide(dividend, params->limit_den * above, &remainder);
}

/* The emission interval of a unit, interval / allowed, with `stored` tokens. */
static __always_inline void weir_warm_up_emission(const struct weir_warm_up *params, __u64 stored,
						  struct weir_emission *ret_emission)
{
	__u64 above = params->ramp, divisor, remainder, bits;
	int part, i;

	if (stored > params->warning)
		above += (stored - params->warning) * params->cold_less_one;
	if (params->ramp == 0)
		above = 1;
	divisor = params->emission_den * (params->ramp ? params->ramp : 1);
	ret_emission->whole = weir_divide(weir_multiply(params->emission_num, above), divisor, &remainder);
	for (part = 0; part < 4; part++) {
		bits = 0;
		for (i = 0; i < 32; i++)
			bits = bits << 1 | weir_divide_bit(&remainder, 0, divisor);
		ret_emission->fraction[part] = bits;
	}
}

#endif
