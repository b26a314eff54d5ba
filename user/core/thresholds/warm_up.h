/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Setting up WarmUp: from what the user wrote to the numbers that include/weir_warm_up.h uses, by exact rational
 * arithmetic (docs/semantics.md, 3; sentinel-golang, core/flow/tc_warm_up.go). Pure: no clock; the caller decides which
 * process syncs, and when.
 */
#ifndef WEIR_THRESHOLDS_WARM_UP_H
#define WEIR_THRESHOLDS_WARM_UP_H

#include "base/diag.h"
#include "rules/ruleset.h"
#include "weir_tokens.h"
#include "weir_warm_up.h"

/*
 * Set up the parameters of a WarmUp rule, including the emission interval if it throttles. If the threshold is below
 * one unit, or the ramp would have no token, ramp is 0, which means the plain threshold. Fails (-EINVAL, with the rule
 * and what to lower in *diag) if a number exceeds the bounds in struct weir_warm_up.
 */
int weir_warm_up_set_up(const struct weir_ruleset_rule *rule, struct weir_warm_up *ret_params, struct weir_diag *diag);

/* The threshold at `stored` tokens, as a rate of token buckets with this unit (thresholds/token_rates.h). */
void weir_warm_up_token_rate(const struct weir_warm_up *params, uint64_t stored, uint64_t interval_ns, uint64_t unit,
			     struct weir_token_rate *ret_rate);

#endif
