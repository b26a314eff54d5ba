// SPDX-License-Identifier: GPL-2.0-only
#include "model_limit.h"

#include <assert.h>

#include "weir_abi.h"

model_u128 model_times(model_u128 a, model_u128 b)
{
	model_u128 product;
	bool overflows = __builtin_mul_overflow(a, b, &product);

	assert(!overflows);
	return product;
}

struct model_ratio model_direct(uint64_t threshold_micro)
{
	return (struct model_ratio){threshold_micro, WEIR_MICRO};
}

/*
 * The straight line from (low mark, low threshold) down to (high mark, high threshold):
 *
 *	low - (low - high) / (high mark - low mark) * (used - low mark)
 */
struct model_ratio model_memory_adaptive(const struct weir_memory_adaptive *memory, uint64_t used_bytes)
{
	model_u128 marks, fall;

	if (used_bytes <= memory->low_mark_bytes)
		return (struct model_ratio){memory->low_units, 1};
	if (used_bytes >= memory->high_mark_bytes)
		return (struct model_ratio){memory->high_units, 1};
	marks = memory->high_mark_bytes - memory->low_mark_bytes;
	fall = model_times(memory->low_units - memory->high_units, used_bytes - memory->low_mark_bytes);
	return (struct model_ratio){model_times(memory->low_units, marks) - fall, marks};
}

/* ---- WarmUp; N is the threshold, T the interval, R = N / T the rate per second, P the period, c the factor ---- */

/* R, in units per second: N / 10^6 (it is in millionths) * 10^9 / T (which is in ns). */
static struct model_ratio rate(const struct weir_ruleset_rule *rule, uint64_t threshold_micro)
{
	return (struct model_ratio){model_times(threshold_micro, 1000), rule->interval_ns};
}

/* trunc(factor * R / divisor) */
static uint64_t part_of_rate(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t factor,
			     uint64_t divisor)
{
	struct model_ratio r = rate(rule, threshold_micro);
	model_u128 part = model_times(factor, r.numerator) / model_times(divisor, r.denominator);

	assert(part <= UINT64_MAX);
	return part;
}

/* trunc(P * R / (c - 1)) */
static uint64_t warning_of(const struct weir_ruleset_rule *rule, uint64_t threshold_micro)
{
	return part_of_rate(rule, threshold_micro, rule->warm_up.period_s, rule->warm_up.cold_factor - 1);
}

/* warning + trunc(2 * P * R / (1 + c)) */
uint64_t model_warm_up_max(const struct weir_ruleset_rule *rule, uint64_t threshold_micro)
{
	return warning_of(rule, threshold_micro) +
	       part_of_rate(rule, threshold_micro, 2ull * rule->warm_up.period_s, rule->warm_up.cold_factor + 1ull);
}

/*
 * In units per second it is R * D / ((stored - warning) * (c - 1) + D), with D = max - warning; scaled back to T,
 * where R * T = N, the same with N in place of R.
 */
struct model_ratio model_warm_up(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t stored)
{
	uint64_t warning = warning_of(rule, threshold_micro), ramp = model_warm_up_max(rule, threshold_micro) - warning;
	model_u128 above;

	if (stored < warning || ramp == 0)
		return model_direct(threshold_micro);
	above = model_times(stored - warning, rule->warm_up.cold_factor - 1) + ramp;
	return (struct model_ratio){model_times(threshold_micro, ramp), model_times(WEIR_MICRO, above)};
}

uint64_t model_warm_up_sync(const struct weir_ruleset_rule *rule, uint64_t threshold_micro, uint64_t stored,
			    uint64_t passed)
{
	uint64_t max = model_warm_up_max(rule, threshold_micro);
	uint64_t floor_rate = part_of_rate(rule, threshold_micro, 1, 1);

	if (stored <= warning_of(rule, threshold_micro) || passed < floor_rate / rule->warm_up.cold_factor) {
		stored += floor_rate; /* trunc(stored + 1 s * R), stored being whole */
		if (stored > max)
			stored = max;
	}
	return stored > passed ? stored - passed : 0;
}

/* ---- comparing and paying ---- */

bool model_exceeds(uint64_t units, struct model_ratio allowed)
{
	return model_times(units, allowed.denominator) > allowed.numerator;
}

uint64_t model_floor(struct model_ratio allowed)
{
	return allowed.numerator / allowed.denominator;
}

model_u128 model_emission_ns(uint64_t batch, uint64_t interval_ns, struct model_ratio allowed)
{
	model_u128 dividend = model_times(model_times(batch, interval_ns), allowed.denominator);

	return dividend / allowed.numerator + (dividend % allowed.numerator != 0);
}
