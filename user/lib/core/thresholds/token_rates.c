// SPDX-License-Identifier: GPL-2.0-only
#include "thresholds/token_rates.h"

#include <string.h>

#include "rules/scalars.h"

/* ---- throttling ---- */

void weir_emission_make(uint64_t interval_ns, unsigned __int128 allowed_num, unsigned __int128 allowed_den,
			struct weir_emission *ret_emission)
{
	unsigned __int128 dividend = interval_ns * allowed_den, remainder;
	int part, bit;

	memset(ret_emission, 0, sizeof(*ret_emission));
	if (allowed_num < allowed_den)
		return;
	ret_emission->whole = (uint64_t)(dividend / allowed_num);
	remainder = dividend % allowed_num;
	for (part = 0; part < 4; part++) {
		for (bit = 0; bit < 32; bit++) {
			remainder *= 2;
			ret_emission->fraction[part] = ret_emission->fraction[part] << 1 | (remainder >= allowed_num);
			if (remainder >= allowed_num)
				remainder -= allowed_num;
		}
	}
}

/* ---- token buckets ---- */

typedef unsigned __int128 u128;

/* Factor by which a reload may raise a rate or a burst, if the unit leaves that much room. Chosen, not derived. */
#define ROOM_FOR_RELOADS 256

/* A number with many divisors: more rates that a reload or a warm-up brings are then whole numbers. */
#define MANY_DIVISORS 720720

/* Rounded up to a byte, and at most as large as a burst may be. */
static uint64_t room_micro(uint64_t threshold_micro, uint64_t interval_ns)
{
	const u128 per_byte = (u128)interval_ns * WEIR_MICRO;
	u128 bytes = ((u128)threshold_micro * WEIR_TOKENS_ROOM_NS + per_byte - 1) / per_byte;

	if (bytes < WEIR_TOKENS_ROOM_BYTES_MIN)
		bytes = WEIR_TOKENS_ROOM_BYTES_MIN;
	if (bytes > WEIR_THRESHOLD_UNITS_MAX)
		bytes = WEIR_THRESHOLD_UNITS_MAX;
	return (uint64_t)bytes * WEIR_MICRO;
}

uint64_t weir_tokens_burst_micro(const struct weir_ruleset_rule *rule, uint64_t threshold_micro)
{
	uint64_t burst_micro;

	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		threshold_micro = rule->memory.low_units * WEIR_MICRO;
	if (rule->burst_micro)
		burst_micro = rule->burst_micro;
	else if (rule->counts_bytes && !rule->has_burst_beyond)
		burst_micro = room_micro(threshold_micro, rule->interval_ns);
	else
		burst_micro = threshold_micro + rule->burst_beyond_micro;
	return burst_micro < WEIR_MICRO ? WEIR_MICRO : burst_micro;
}

/* ---- the unit ---- */

static u128 common_divisor(u128 a, u128 b)
{
	while (b) {
		u128 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The largest threshold and burst of a rule and its overrides. */
static void find_largest(const struct weir_ruleset_rule *rule, uint64_t *ret_rate_micro, uint64_t *ret_burst_micro)
{
	uint64_t rate_micro = rule->threshold_micro;

	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		rate_micro = rule->memory.low_units * WEIR_MICRO;
	*ret_burst_micro = weir_tokens_burst_micro(rule, rate_micro);
	for (size_t i = 0; i < rule->override_count; i++) {
		uint64_t micro = rule->overrides[i].threshold_micro, burst_micro = weir_tokens_burst_micro(rule, micro);

		if (micro > rate_micro)
			rate_micro = micro;
		if (burst_micro > *ret_burst_micro)
			*ret_burst_micro = burst_micro;
	}
	*ret_rate_micro = rate_micro;
}

/* The largest unit with which no bucket or rate exceeds its bounds. */
static uint64_t unit_max(const struct weir_ruleset_rule *rule)
{
	uint64_t rate_micro, burst_micro, by_burst;
	u128 by_rate;

	find_largest(rule, &rate_micro, &burst_micro);
	by_burst = (uint64_t)((u128)WEIR_TOKEN_CAPACITY_MAX * WEIR_MICRO / burst_micro);
	if (!rate_micro)
		return by_burst;
	by_rate = (((u128)1 << WEIR_TOKEN_RATE_BITS) - 1) * WEIR_MICRO * rule->interval_ns / rate_micro;
	return by_rate < by_burst ? (uint64_t)by_rate : by_burst;
}

/* If there is room, make `unit` a multiple of the denominators of this rate and this burst. */
static void include(u128 *unit, uint64_t most, const struct weir_ruleset_rule *rule, uint64_t threshold_micro)
{
	const u128 interval = (u128)rule->interval_ns * WEIR_MICRO;
	u128 wanted = interval / common_divisor(interval, threshold_micro), factor;
	uint64_t burst_micro = weir_tokens_burst_micro(rule, threshold_micro);

	if (!wanted)
		return; /* never: no divisor of the interval is larger, but clang's analyzer cannot see that */
	factor = WEIR_MICRO / common_divisor(WEIR_MICRO, burst_micro);
	wanted *= factor / common_divisor(wanted, factor);
	wanted /= common_divisor(wanted, *unit);
	if (wanted > 0 && wanted <= most && *unit <= most / wanted)
		*unit *= wanted;
}

static uint64_t choose_unit(const struct weir_ruleset_rule *rule)
{
	const uint64_t most = unit_max(rule);
	u128 unit = 1;
	uint64_t room;

	include(&unit, most, rule,
		rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? WEIR_MICRO : rule->threshold_micro);
	for (size_t i = 0; i < rule->override_count; i++)
		include(&unit, most, rule, rule->overrides[i].threshold_micro);
	room = most / (uint64_t)unit;
	if (room >= (uint64_t)MANY_DIVISORS * ROOM_FOR_RELOADS) {
		unit *= MANY_DIVISORS;
		room /= MANY_DIVISORS;
	}
	for (; room >= 2ull * ROOM_FOR_RELOADS; room /= 2)
		unit *= 2;
	/* If no unit makes anything whole, the finest is used. */
	return unit == 1 ? most : (uint64_t)unit;
}

/* ---- rates ---- */

/* Compute unit * num / den, virtual time per ns, with den below 2^126: first the bits of the whole part one by one,
 * then those of the fraction.
 */
static void set_rate(u128 num, u128 den, uint64_t unit, struct weir_token_rate *rate)
{
	u128 whole = 0, rest = 0, num_whole = num / den, num_rest = num % den;

	for (int bit = 63; bit >= 0; bit--) {
		whole *= 2;
		rest *= 2;
		if (unit >> bit & 1) {
			whole += num_whole;
			rest += num_rest;
		}
		whole += rest / den;
		rest %= den;
	}
	*rate = (struct weir_token_rate){.whole = (uint32_t)whole};
	for (int bit = 0; bit < 64; bit++) {
		rest *= 2;
		rate->fraction = rate->fraction << 1 | (rest >= den);
		if (rest >= den)
			rest -= den;
	}
	/* Rounded up: include/weir_tokens.h. */
	if (rest && rate->fraction != UINT64_MAX)
		rate->fraction++;
}

void weir_tokens_rate(u128 allowed_num, u128 allowed_den, uint64_t interval_ns, uint64_t unit,
		      struct weir_token_rate *ret_rate)
{
	set_rate(allowed_num, allowed_den * interval_ns, unit, ret_rate);
}

static void set_terms(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, struct weir_tokens *tokens)
{
	const uint64_t burst_micro = weir_tokens_burst_micro(rule, threshold_micro);
	const uint64_t burst = burst_micro / WEIR_MICRO;

	weir_tokens_rate(threshold_micro, WEIR_MICRO, rule->interval_ns, tokens->unit, &tokens->clock.rate);
	tokens->capacity = (uint64_t)((u128)burst_micro * tokens->unit / WEIR_MICRO);
	/* If no tokens are gained, none are given. */
	tokens->batch_max = !threshold_micro ? 0 : burst < UINT32_MAX ? (uint32_t)burst : UINT32_MAX;
}

static uint64_t first_threshold_micro(const struct weir_ruleset_rule *rule)
{
	return rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE ? rule->memory.high_units * WEIR_MICRO
							       : rule->threshold_micro;
}

void weir_tokens_make(const struct weir_ruleset_rule *rule, struct weir_tokens *ret_tokens)
{
	memset(ret_tokens, 0, sizeof(*ret_tokens));
	ret_tokens->unit = choose_unit(rule);
	set_terms(rule, first_threshold_micro(rule), ret_tokens);
}

void weir_tokens_override(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t unit,
			  struct weir_tokens *ret_tokens)
{
	memset(ret_tokens, 0, sizeof(*ret_tokens));
	ret_tokens->unit = unit;
	set_terms(rule, threshold_micro, ret_tokens);
}

/* ---- reloads ---- */

/* Does this unit make the same values whole as the rule's own unit does? */
static bool serves(const struct weir_ruleset_rule *rule, uint64_t unit, const struct weir_tokens *tokens)
{
	struct weir_tokens with = {.unit = unit};

	if (!unit || unit > unit_max(rule))
		return false;
	set_terms(rule, first_threshold_micro(rule), &with);
	if ((with.clock.rate.fraction && !tokens->clock.rate.fraction) ||
	    (u128)with.capacity * WEIR_MICRO != (u128)weir_tokens_burst_micro(rule, first_threshold_micro(rule)) * unit)
		return unit >= 1ull << 32;
	return true;
}

bool weir_tokens_continue(const struct weir_ruleset_rule *rule, const struct weir_tokens *previous, uint64_t now_ns,
			  struct weir_tokens *tokens)
{
	const struct weir_token_clock *before = &previous->clock;
	struct weir_tokens next = {.unit = previous->unit, .mark = previous->mark};
	struct weir_token_rate rate;

	if (!previous->mark || !serves(rule, previous->unit, tokens))
		return false;
	set_terms(rule, first_threshold_micro(rule), &next);
	rate = next.clock.rate;
	next.clock = *before;
	if (!weir_tokens_same_rate(&rate, &before->rate))
		weir_turn_token_clock(&next.clock, now_ns, &rate);
	*tokens = next;
	return true;
}
