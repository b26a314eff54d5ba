// SPDX-License-Identifier: GPL-2.0-only
#include "thresholds/memory_adaptive.h"

#include "rules/scalars.h"
#include "thresholds/emission.h"
#include "thresholds/token_rates.h"

struct rational {
	unsigned __int128 num, den;
};

/* With thresholds up to 10^13 and marks up to 2^64, num is below 2^108; weir_emission_make requires less than 2^111. */
static struct rational allowed(const struct weir_memory_adaptive *params, uint64_t used_bytes)
{
	unsigned __int128 span_bytes;

	if (used_bytes <= params->low_mark_bytes)
		return (struct rational){params->low_units, 1};
	if (used_bytes >= params->high_mark_bytes)
		return (struct rational){params->high_units, 1};
	span_bytes = params->high_mark_bytes - params->low_mark_bytes;
	return (struct rational){
		.num = params->low_units * span_bytes - (unsigned __int128)(params->low_units - params->high_units) *
								(used_bytes - params->low_mark_bytes),
		.den = span_bytes,
	};
}

int weir_memory_adaptive_set_up(const struct weir_ruleset_rule *rule, struct weir_memory_adaptive *ret_params,
				struct weir_diag *diag)
{
	const struct weir_memory_fields *fields = &rule->memory;

	/* The other threshold is smaller, so it need not be checked. */
	if (fields->low_units > WEIR_THRESHOLD_UNITS_MAX)
		return weir_diag_error(diag, &rule->place, NULL, "lower it to 10000000000000 at most",
				       "rule '%s' has a lowMemUsageThreshold that is too large", rule->name);
	*ret_params = (struct weir_memory_adaptive){
		.low_units = fields->low_units,
		.high_units = fields->high_units,
		.low_mark_bytes = fields->low_mark_bytes,
		.high_mark_bytes = fields->high_mark_bytes,
	};
	return 0;
}

uint64_t weir_memory_adaptive_units(const struct weir_memory_adaptive *params, uint64_t used_bytes)
{
	struct rational units = allowed(params, used_bytes);

	return (uint64_t)(units.num / units.den);
}

void weir_memory_adaptive_emission(const struct weir_memory_adaptive *params, uint64_t used_bytes, uint64_t interval_ns,
				   struct weir_emission *ret_emission)
{
	struct rational units = allowed(params, used_bytes);

	weir_emission_make(interval_ns, units.num, units.den, ret_emission);
}

void weir_memory_adaptive_token_rate(const struct weir_memory_adaptive *params, uint64_t used_bytes,
				     uint64_t interval_ns, uint64_t unit, struct weir_token_rate *ret_rate)
{
	struct rational units = allowed(params, used_bytes);

	weir_tokens_rate(units.num, units.den, interval_ns, unit, ret_rate);
}
