/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes the emission interval of a packet, which is how much of a throttled flow's time it takes. Exact to the
 * nanosecond, without a division. Pure; compiles for BPF and for the host.
 *
 * A unit takes interval / allowed, an exact rational. A packet of `batch` units takes ceil(batch * (whole + fraction /
 * 2^128)) ns, with the fraction rounded down. Why is that the exact ceil(batch * interval / allowed)? Let the true
 * interval of a unit be whole + r/d with r < d < 2^111. The stored fraction is less than 2^-128 below r/d, so the
 * product is less than 2^-111 below the true product (batch < 2^17). If the true product is not an integer, it lies at
 * least 1/d > 2^-111 above the next lower integer, and so the computed one lies above that integer, too. If it is an
 * integer, the computed one is equal or just below. In both cases, both products round up to the same number.
 */
#ifndef WEIR_EMISSION_H
#define WEIR_EMISSION_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* The emission interval of one unit. */
struct weir_emission {
	__u64 whole;	   /* ns */
	__u32 fraction[4]; /* most significant first */
};
#define WEIR_EMISSION_BATCH_MAX (1u << 17) /* the proof above needs it */

/* ceil(batch * emission interval) in ns, for batch below WEIR_EMISSION_BATCH_MAX and a result below 2^64. */
static __always_inline __u64 weir_emission_ns(const struct weir_emission *emission, __u64 batch)
{
	__u64 part3 = batch * emission->fraction[3];
	__u64 part2 = batch * emission->fraction[2] + (part3 >> 32);
	__u64 part1 = batch * emission->fraction[1] + (part2 >> 32);
	__u64 part0 = batch * emission->fraction[0] + (part1 >> 32);
	__u32 rest = part0 | part1 | part2 | part3;

	return batch * emission->whole + (part0 >> 32) + (rest != 0);
}

#endif
