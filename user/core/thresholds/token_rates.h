/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Token buckets, set up: from what the user wrote to the virtual time that include/weir_tokens.h counts with. Pure.
 *
 * The unit, which is the virtual time of a token, has two bounds: a bucket holds at most 2^57, and a nanosecond is less
 * than 2^27. Within them it is a multiple of the denominators of threshold / interval and of the burst, of the rule and
 * of its overrides as far as there is room, and all arithmetic of the program is exact. Where these denominators are
 * too large (thresholds of many digits with large bursts or long intervals) the unit is the largest there is room for,
 * and a bucket is less than 2 / unit of a token off: below a millionth where burst and rate are below a hundred million
 * tokens (a second).
 */
#ifndef WEIR_THRESHOLDS_TOKEN_RATES_H
#define WEIR_THRESHOLDS_TOKEN_RATES_H

#include "rules/ruleset.h"
#include "weir_tokens.h"

/* Bytes are TCP's as a rule, which needs some room, and no more: of 10 Mbit/s cubic, reno and bbr come to 92 to 99 %
 * with 200 ms of it, to 25 to 43 % with 64 KiB (52 ms; tests/e2e/tcp_rate_test). At least a super-frame of 64 KiB, in
 * the frames of an Ethernet of 1500 bytes MTU.
 */
#define WEIR_TOKENS_ROOM_NS 200000000ull
#define WEIR_TOKENS_ROOM_BYTES_MIN 69644ull /* 46 * 1514 */

/* What a full bucket holds, in millionths of a unit, of a rule or override with this threshold: `burst`, or else the
 * threshold and what it holds beyond; of bytes, where nothing is said of either, what comes in that time. One unit at
 * least.
 */
uint64_t weir_tokens_burst_micro(const struct weir_ruleset_rule *rule, uint64_t threshold_micro);

/* allowed_num / allowed_den units per interval, in virtual time a ns. allowed_den * interval_ns must be below 2^126. */
void weir_tokens_rate(unsigned __int128 allowed_num, unsigned __int128 allowed_den, uint64_t interval_ns, uint64_t unit,
		      struct weir_token_rate *ret_rate);

static inline bool weir_tokens_same_rate(const struct weir_token_rate *a, const struct weir_token_rate *b)
{
	return a->whole == b->whole && a->fraction == b->fraction;
}

/* A rule with tokens that begins: virtual time is 0 at time 0. The mark is left 0. */
void weir_tokens_make(const struct weir_ruleset_rule *rule, struct weir_tokens *ret_tokens);

/*
 * The same rule at a reload: its buckets keep what they lack. If the unit of `previous` also serves `tokens`, as
 * weir_tokens_make() has left it, virtual time continues at the new rate. Else false: the buckets start over.
 */
bool weir_tokens_continue(const struct weir_ruleset_rule *rule, const struct weir_tokens *previous, uint64_t now_ns,
			  struct weir_tokens *tokens);

/* What an override of the rule says: rate, capacity, batch_max; with the rule's unit. The clock starts at 0. */
void weir_tokens_override(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t unit,
			  struct weir_tokens *ret_tokens);

#endif
