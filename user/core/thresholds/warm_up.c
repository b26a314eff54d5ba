// SPDX-License-Identifier: GPL-2.0-only
#include "thresholds/warm_up.h"

#include <string.h>

#include "kind/kind.h"
#include "thresholds/token_rates.h"

/* The bound that struct weir_warm_up guarantees to code that computes in 64 bits. */
#define NUMBER_END ((unsigned __int128)1 << 62)

static uint64_t greatest_common_divisor(unsigned __int128 a, uint64_t b)
{
	uint64_t rest;

	while (b) {
		rest = (uint64_t)(a % b);
		a = b;
		b = rest;
	}
	return (uint64_t)a;
}

static int too_large(const struct weir_ruleset_rule *rule, const struct weir_warm_up *params, struct weir_diag *diag)
{
	return weir_diag_error(diag, &rule->place, NULL,
			       params->limit_den > 1 ? "write a threshold with fewer decimals, or lower warmUpPeriodSec"
						     : "lower warmUpPeriodSec, or write a rounder threshold",
			       "rule '%s' warms up with numbers too large for exact arithmetic", rule->name);
}

/* interval / threshold in lowest terms, or 0 / 1. Returns false if the numerator does not fit. */
static bool set_cost(const struct weir_ruleset_rule *rule, struct weir_warm_up *params)
{
	unsigned __int128 num = (unsigned __int128)rule->interval_ns * WEIR_MICRO;
	uint64_t divisor;

	params->emission_den = 1;
	if (!weir_kind_of(rule)->has_emission || rule->threshold_micro < WEIR_MICRO)
		return true;
	divisor = greatest_common_divisor(num, rule->threshold_micro);
	num /= divisor;
	params->emission_num = (uint64_t)num;
	params->emission_den = rule->threshold_micro / divisor;
	return num <= UINT64_MAX;
}

int weir_warm_up_set_up(const struct weir_ruleset_rule *rule, struct weir_warm_up *ret_params, struct weir_diag *diag)
{
	/* R, tokens a second: threshold / interval. At most 2^74; multiplied by a period, 2^107. */
	const unsigned __int128 rate_num = (unsigned __int128)rule->threshold_micro * (WEIR_NSEC_PER_SEC / WEIR_MICRO);
	const unsigned __int128 rate_den = rule->interval_ns;
	const uint64_t divisor = greatest_common_divisor(rule->threshold_micro, WEIR_MICRO);
	const uint64_t cold_factor = rule->warm_up.cold_factor;
	unsigned __int128 warning, ramp, ramp_or_one;
	struct weir_warm_up params;

	memset(&params, 0, sizeof(params));
	params.limit_num = rule->threshold_micro / divisor;
	params.limit_den = WEIR_MICRO / divisor;
	params.cold_less_one = cold_factor - 1;
	warning = rate_num * rule->warm_up.period_s / (rate_den * (cold_factor - 1));
	ramp = 2 * rate_num * rule->warm_up.period_s / (rate_den * (cold_factor + 1));
	ramp_or_one = ramp ?: 1;
	if (warning + ramp >= NUMBER_END || rate_num / rate_den >= NUMBER_END ||
	    params.limit_den * ramp_or_one * cold_factor >= NUMBER_END)
		return too_large(rule, &params, diag);
	if (!set_cost(rule, &params) || params.emission_den * ramp_or_one >= NUMBER_END)
		return too_large(rule, &params, diag);
	params.warning = (uint64_t)warning;
	params.ramp = (uint64_t)ramp;
	params.max = params.warning + params.ramp;
	params.refill = (uint64_t)(rate_num / rate_den);
	params.refill_below = params.refill / cold_factor;
	*ret_params = params;
	return 0;
}

/* The bounds of struct weir_warm_up keep den, including the interval, below 2^109. */
void weir_warm_up_token_rate(const struct weir_warm_up *params, uint64_t stored, uint64_t interval_ns, uint64_t unit,
			     struct weir_token_rate *ret_rate)
{
	unsigned __int128 num = params->limit_num, den = params->limit_den;

	if (params->ramp && stored > params->warning) {
		num *= params->ramp;
		den *= (stored - params->warning) * params->cold_less_one + params->ramp;
	}
	weir_tokens_rate(num, den, interval_ns, unit, ret_rate);
}
