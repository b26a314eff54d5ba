/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cost of a packet in a throttled flow's time, exact to the nanosecond, without a division. Pure; compiles
 * for BPF and for the host.
 *
 * Why ceil(batch * floored fraction) is exact: let the true cost of a unit be whole + r/d with r < d < 2^111.
 * The stored fraction is below r/d by less than 2^-128, so the product is below the true one by less than
 * 2^-111 (batch < 2^17). A true product that is no integer lies at least 1/d > 2^-111 above the integer below
 * it, so the stored one is above that integer too; one that is an integer is met from just below. Both round up to the
 * same number.
 */
#ifndef WEIR_COST_H
#define WEIR_COST_H

#include "weir_abi.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* ceil(batch * cost) in ns, for batch below WEIR_COST_BATCH_MAX and a result below 2^64. */
static __always_inline __u64 weir_cost_ns(const struct weir_cost *cost, __u64 batch)
{
	__u64 part3 = batch * cost->fraction[3];
	__u64 part2 = batch * cost->fraction[2] + (part3 >> 32);
	__u64 part1 = batch * cost->fraction[1] + (part2 >> 32);
	__u64 part0 = batch * cost->fraction[0] + (part1 >> 32);
	__u32 rest = part0 | part1 | part2 | part3;

	return batch * cost->whole + (part0 >> 32) + (rest != 0);
}

#endif
