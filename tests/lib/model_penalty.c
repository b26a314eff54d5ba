// SPDX-License-Identifier: GPL-2.0-only
#include "model_penalty.h"

bool model_penalty_runs(const struct model_penalty *penalty, uint64_t time_ns)
{
	return penalty->was_any && time_ns < penalty->end_ns;
}

void model_penalty_begin(struct model_penalty *penalty, const struct weir_ruleset_rule *rule, uint64_t time_ns)
{
	uint64_t ms = rule->penalty_ms;

	if (!ms)
		return;
	if (penalty->was_any && time_ns - penalty->end_ns <= penalty->last_ms * 1000000) {
		ms = 2 * penalty->last_ms;
		if (ms > rule->penalty_ms_max)
			ms = rule->penalty_ms_max;
	}
	*penalty = (struct model_penalty){.was_any = true, .end_ns = time_ns + ms * 1000000, .last_ms = ms};
}
