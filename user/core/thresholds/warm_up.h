/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * WarmUp, set up: from what the user wrote to the numbers that include/weir_warm_up.h computes with, by exact
 * rational arithmetic (docs/semantics.md, 3; sentinel-golang, core/flow/tc_warm_up.go). Pure: no clock; who syncs
 * when is the caller's.
 */
#ifndef WEIR_THRESHOLDS_WARM_UP_H
#define WEIR_THRESHOLDS_WARM_UP_H

#include "base/diag.h"
#include "rules/ruleset.h"
#include "weir_tokens.h"
#include "weir_warm_up.h"

/*
 * The parameters of a WarmUp rule; the emission interval too, if it throttles. A threshold below one unit, or a ramp of
 * no token, makes ramp 0: the plain threshold. Fails (-EINVAL, with the rule and what to lower in *diag) when the
 * numbers exceed the bounds that struct weir_warm_up names.
 */
int weir_warm_up_set_up(const struct weir_ruleset_rule *rule, struct weir_warm_up *ret_params, struct weir_diag *diag);

/* What `stored` tokens allow, as the rate of token buckets with this unit (thresholds/token_rates.h). */
void weir_warm_up_token_rate(const struct weir_warm_up *params, uint64_t stored, uint64_t interval_ns, uint64_t unit,
			     struct weir_token_rate *ret_rate);

#endif
