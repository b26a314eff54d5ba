/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time that a unit takes in a throttled flow: from exact rationals to the form that the program multiplies with
 * (include/weir_emission.h, which also says why that is exact). Pure. The only rounding is down, in the last of 128
 * bits.
 */
#ifndef WEIR_THRESHOLDS_COST_H
#define WEIR_THRESHOLDS_COST_H

#include <stdint.h>

#include "weir_emission.h"

/* The largest denominator of interval / allowed for which weir_emission_ns is exact. */
#define WEIR_EMISSION_DENOMINATOR_BITS 111

/*
 * Compute interval_ns / (allowed_num / allowed_den) ns, where allowed_num / allowed_den is the number of units allowed
 * per interval. If less than one unit is allowed, nothing is ever admitted; the emission interval is then zero and must
 * not be used. interval_ns * allowed_den must fit 128 bits; allowed_num must be below 2^WEIR_EMISSION_DENOMINATOR_BITS;
 * allowed_den must not be 0.
 */
void weir_emission_make(uint64_t interval_ns, unsigned __int128 allowed_num, unsigned __int128 allowed_den,
			struct weir_emission *ret_emission);

#endif
