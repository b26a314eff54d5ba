/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Window arithmetic that the program, the controller and the tests share. Pure integer functions, without memory, clock
 * or division by zero; compile for BPF and for the host. Source: LeapArray of Sentinel (sentinel-golang,
 * core/stat/base), and docs/semantics.md, 1, for the two kinds of window that are weir's own.
 */
#ifndef WEIR_WINDOW_H
#define WEIR_WINDOW_H

#include "weir_state.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

/* Buckets in a window of this kind, the current one included. */
static __always_inline __u32 weir_window_cells(enum weir_window_kind kind, __u32 samples)
{
	return kind == WEIR_WINDOW_LEAP ? samples : samples + 1;
}

/*
 * ceil(count * part / whole) for part <= whole, exact although the product may need 128 bits. Only then, with large
 * counts in buckets longer than 4 s, it takes the long way, which is some fifteen times as slow.
 */
static __always_inline __u64 weir_scale_ceil(__u64 count, __u64 part, __u64 whole)
{
	__u64 quotient = 0, remainder = 0;
	int bit;

	/* part <= whole < 2^47 */
	if (count < (1ull << 16) || (count < (1ull << 31) && part < (1ull << 32)))
		return (count * part + whole - 1) / whole;

	/* Horner's rule over the bits of count. The running value is quotient * whole + remainder; each step doubles it
	 * and adds part or nothing. remainder stays below whole, and whole below 2^47 (24 h).
	 */
	for (bit = 63; bit >= 0; bit--) {
		remainder = 2 * remainder + (part & -(count >> bit & 1));
		quotient = 2 * quotient + remainder / whole;
		remainder = remainder % whole;
	}
	return quotient + (remainder != 0);
}

/* How much of the oldest bucket of a smooth window still counts, into_ns after the current bucket began. */
static __always_inline __u64 weir_smooth_share(__u64 count, __u64 bucket_ns, __u64 into_ns)
{
	return weir_scale_ceil(count, bucket_ns - into_ns, bucket_ns);
}

#endif
