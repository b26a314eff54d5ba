// SPDX-License-Identifier: GPL-2.0-only
#include "model_tokens.h"

#include <assert.h>
#include <stdlib.h>

/* What comes in 200 ms, rounded up to a byte; from 46 full frames up to what a burst may be. */
static uint64_t bytes_of_200_ms(uint64_t threshold_micro, uint64_t interval_ns)
{
	model_u128 drops = model_times(threshold_micro, 200000000), byte = model_times(WEIR_MICRO, interval_ns);
	model_u128 bytes = drops / byte;

	if (drops % byte != 0)
		bytes++;
	if (bytes < 69644)
		return 69644;
	return bytes > 10000000000000 ? 10000000000000 : (uint64_t)bytes;
}

/* B: `burst`, or else the threshold (of MemoryAdaptive the larger one), and what it holds beyond; one unit at least. Of
 * bytes, where neither is said, what comes in 200 ms.
 */
static model_u128 full_drops(const struct weir_ruleset_rule *rule, uint64_t threshold_micro)
{
	uint64_t burst_micro = rule->burst_micro;

	if (rule->strategy == WEIR_STRATEGY_MEMORY_ADAPTIVE)
		threshold_micro = rule->memory.low_units * WEIR_MICRO;
	if (!burst_micro)
		burst_micro = threshold_micro + rule->burst_beyond_micro;
	if (!rule->burst_micro && !rule->has_burst_beyond && rule->counts_bytes)
		burst_micro = bytes_of_200_ms(threshold_micro, rule->interval_ns) * WEIR_MICRO;
	if (burst_micro < WEIR_MICRO)
		burst_micro = WEIR_MICRO;
	return model_times(burst_micro, rule->interval_ns);
}

static model_u128 drops_of(const struct weir_ruleset_rule *rule, uint64_t units)
{
	return model_times(units, model_times(WEIR_MICRO, rule->interval_ns));
}

/* ---- rates ---- */

static struct model_ratio reduced(struct model_ratio ratio)
{
	model_u128 a = ratio.numerator, b = ratio.denominator, rest;

	while (b) {
		rest = a % b;
		a = b;
		b = rest;
	}
	return (struct model_ratio){ratio.numerator / a, ratio.denominator / a};
}

void model_rates_turn(struct model_rates *rates, uint64_t from_ns, struct model_ratio allowed)
{
	const struct model_rate *last = rates->count ? &rates->rate[rates->count - 1] : NULL;

	allowed = reduced(allowed);
	if (last && last->allowed.numerator == allowed.numerator && last->allowed.denominator == allowed.denominator)
		return;
	rates->rate = reallocarray(rates->rate, rates->count + 1, sizeof(*rates->rate));
	assert(rates->rate);
	rates->rate[rates->count++] = (struct model_rate){from_ns, allowed};
}

void model_rates_free(struct model_rates *rates)
{
	free(rates->rate);
}

/* ceil of ns * allowed * 10^6 */
static model_u128 gained(uint64_t ns, struct model_ratio allowed)
{
	model_u128 micro = model_times(allowed.numerator, WEIR_MICRO);
	model_u128 part = model_times(micro % allowed.denominator, ns);

	return model_times(micro / allowed.denominator, ns) + part / allowed.denominator +
	       (part % allowed.denominator != 0);
}

static model_u128 gained_between(const struct model_rates *rates, uint64_t from_ns, uint64_t to_ns)
{
	model_u128 sum = 0;

	for (size_t i = rates->count; i > 0 && to_ns > from_ns; i--) {
		const struct model_rate *rate = &rates->rate[i - 1];
		uint64_t start_ns = rate->from_ns > from_ns ? rate->from_ns : from_ns;

		if (start_ns >= to_ns)
			continue;
		sum += gained(to_ns - start_ns, rate->allowed);
		to_ns = start_ns;
	}
	return sum;
}

/* ---- buckets ---- */

static uint64_t not_before_change(const struct model_rates *rates, uint64_t time_ns)
{
	uint64_t change_ns = rates->rate[rates->count - 1].from_ns;

	return time_ns < change_ns ? change_ns : time_ns;
}

/* What it lacks now. A clock that goes back finds it as much emptier. */
static model_u128 lacks_now(const struct model_bucket *bucket, const struct model_rates *rates, uint64_t time_ns)
{
	model_u128 more;

	if (time_ns < bucket->at_ns)
		return bucket->lacks + gained_between(rates, time_ns, bucket->at_ns);
	if (!bucket->lacks)
		return 0;
	more = gained_between(rates, bucket->at_ns, time_ns);
	return bucket->lacks > more ? bucket->lacks - more : 0;
}

bool model_tokens_admit(struct model_bucket *bucket, const struct weir_ruleset_rule *rule, uint64_t threshold_micro,
			const struct model_rates *rates, uint64_t units, uint64_t time_ns)
{
	model_u128 full = full_drops(rule, threshold_micro);

	time_ns = not_before_change(rates, time_ns);
	/* A flow that gains nothing gets nothing; and nobody looks at what no bucket could hold. */
	if ((!threshold_micro && rule->strategy != WEIR_STRATEGY_MEMORY_ADAPTIVE) || drops_of(rule, units) > full)
		return false;
	if (!lacks_now(bucket, rates, time_ns))
		*bucket = (struct model_bucket){};
	return lacks_now(bucket, rates, time_ns) + drops_of(rule, units) <= full;
}

void model_tokens_take(struct model_bucket *bucket, const struct weir_ruleset_rule *rule,
		       const struct model_rates *rates, uint64_t units, uint64_t time_ns)
{
	time_ns = not_before_change(rates, time_ns);
	bucket->lacks = lacks_now(bucket, rates, time_ns) + drops_of(rule, units);
	bucket->at_ns = time_ns;
}
