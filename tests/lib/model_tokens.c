// SPDX-License-Identifier: GPL-2.0-only
#include "model_tokens.h"

/* B: `burst`, or else the threshold; one unit at least. */
static model_u128 full_drops(const struct weir_ruleset_rule *rule, uint64_t threshold_micro)
{
	uint64_t burst_micro = rule->burst_micro ? rule->burst_micro : threshold_micro + rule->burst_beyond_micro;

	if (burst_micro < WEIR_MICRO)
		burst_micro = WEIR_MICRO;
	return model_times(burst_micro, rule->interval_ns);
}

static model_u128 drops_of(const struct weir_ruleset_rule *rule, uint64_t units)
{
	return model_times(units, model_times(WEIR_MICRO, rule->interval_ns));
}

/* What it lacks now. A clock that goes back finds it as much emptier. */
static model_u128 lacks_now(const struct model_bucket *bucket, uint64_t threshold_micro, uint64_t time_ns)
{
	model_u128 gained;

	if (time_ns < bucket->at_ns)
		return bucket->lacks + model_times(bucket->at_ns - time_ns, threshold_micro);
	gained = model_times(time_ns - bucket->at_ns, threshold_micro);
	return bucket->lacks > gained ? bucket->lacks - gained : 0;
}

bool model_tokens_admit(struct model_bucket *bucket, const struct weir_ruleset_rule *rule, uint64_t threshold_micro,
			uint64_t units, uint64_t time_ns)
{
	/* A flow that gains nothing gets nothing; and nobody looks at what no bucket could hold. */
	if (!threshold_micro || drops_of(rule, units) > full_drops(rule, threshold_micro))
		return false;
	if (!lacks_now(bucket, threshold_micro, time_ns))
		*bucket = (struct model_bucket){};
	return lacks_now(bucket, threshold_micro, time_ns) + drops_of(rule, units) <= full_drops(rule, threshold_micro);
}

void model_tokens_take(struct model_bucket *bucket, const struct weir_ruleset_rule *rule, uint64_t threshold_micro,
		       uint64_t units, uint64_t time_ns)
{
	bucket->lacks = lacks_now(bucket, threshold_micro, time_ns) + drops_of(rule, units);
	bucket->at_ns = time_ns;
}
