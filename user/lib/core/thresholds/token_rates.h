/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Setting up token buckets: from what the user wrote to the virtual time that include/weir_tokens.h uses. Pure.
 *
 * The unit (the virtual time of one token) has two bounds: a bucket holds at most 2^57, and a nanosecond is less than
 * 2^27. As far as these bounds leave room, the unit is a multiple of the denominators of threshold / interval and of
 * the burst, for the rule and its overrides. Then all arithmetic of the program is exact. These denominators can be too
 * large: thresholds of many digits with large bursts or long intervals. Then the unit is the largest that fits, and a
 * bucket is off by less than 2 / unit of a token. That is below a millionth if burst and rate are below a hundred
 * million tokens (a second).
 */
#ifndef WEIR_THRESHOLDS_TOKEN_RATES_H
#define WEIR_THRESHOLDS_TOKEN_RATES_H

#include <stdint.h>

#include "rules/ruleset.h"
#include "weir_emission.h"
#include "weir_tokens.h"

/* Room in a bucket that counts bytes, if the user gives no burst. Bytes usually belong to TCP, which needs some room,
 * but not much: with 200 ms of it, cubic, reno and bbr reach 92 to 99 % of a limit of 10 Mbit/s; with 64 KiB (52 ms),
 * 25 to 43 % (tests/e2e/tcp_rate_test). The minimum is a super-frame of 64 KiB, in the frames of an Ethernet with an
 * MTU of 1500 bytes.
 */
#define WEIR_TOKENS_ROOM_NS 200000000ull
#define WEIR_TOKENS_ROOM_BYTES_MIN 69644ull /* 46 * 1514 */

/* The capacity of a bucket, in millionths of a unit, for a rule or override with this threshold: `burst`, or else the
 * threshold plus the burst beyond it. If the rule counts bytes and gives neither, the capacity is what arrives in
 * WEIR_TOKENS_ROOM_NS. It is at least one unit.
 */
uint64_t weir_tokens_burst_micro(const struct weir_ruleset_rule *rule, uint64_t threshold_micro);

/* Convert allowed_num / allowed_den units per interval to virtual time per ns. allowed_den * interval_ns must be below
 * 2^126.
 */
void weir_tokens_rate(unsigned __int128 allowed_num, unsigned __int128 allowed_den, uint64_t interval_ns, uint64_t unit,
		      struct weir_token_rate *ret_rate);

static inline bool weir_tokens_same_rate(const struct weir_token_rate *a, const struct weir_token_rate *b)
{
	return a->whole == b->whole && a->fraction == b->fraction;
}

/* The tokens of a rule that starts: virtual time is 0 at time 0. The mark is left 0. */
void weir_tokens_make(const struct weir_ruleset_rule *rule, struct weir_tokens *ret_tokens);

/*
 * The same rule at a reload: its buckets keep their fill levels. If the unit of `previous` also fits `tokens`, as set
 * up by weir_tokens_make(), virtual time continues at the new rate. Otherwise this returns false, and the buckets start
 * over.
 */
bool weir_tokens_continue(const struct weir_ruleset_rule *rule, const struct weir_tokens *previous, uint64_t now_ns,
			  struct weir_tokens *tokens);

/* The tokens of an override: its rate, capacity and batch_max, with the rule's unit. The clock starts at 0. */
void weir_tokens_override(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t unit,
			  struct weir_tokens *ret_tokens);

/* ---- the time that a unit takes in a throttled flow ----
 *
 * From exact rationals to the form that the program multiplies with (include/weir_emission.h, which also says why that
 * is exact). The only rounding is down, in the last of 128 bits.
 */

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
