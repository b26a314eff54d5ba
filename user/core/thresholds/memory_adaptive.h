/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Threshold allowed at a given memory usage: a straight line between two water marks.
 *
 * If used_bytes is at or below low_mark_bytes, the threshold is low_units; at or above high_mark_bytes it is
 * high_units; in between it is the point on the line, as an exact rational. All thresholds are units per interval.
 * Pure: no clock, no I/O. What to do when memory cannot be read is the caller's decision. Source: memory-adaptive flow
 * control of Sentinel (sentinel-golang, core/flow/tc_adaptive.go).
 */
#ifndef WEIR_THRESHOLDS_MEMORY_ADAPTIVE_H
#define WEIR_THRESHOLDS_MEMORY_ADAPTIVE_H

#include "base/diag.h"
#include "rules/ruleset.h"
#include "weir_abi.h"

/* Set up the parameters of a MemoryAdaptive rule. Fails (-EINVAL) if a threshold exceeds the largest that a rule may
 * have.
 */
int weir_memory_adaptive_set_up(const struct weir_ruleset_rule *rule, struct weir_memory_adaptive *ret_params,
				struct weir_diag *diag);

/* floor(allowed): a window with whole units makes the same decisions with it. */
uint64_t weir_memory_adaptive_units(const struct weir_memory_adaptive *params, uint64_t used_bytes);

/* interval_ns / allowed, where allowed is the exact point on the line; for rules that throttle. */
void weir_memory_adaptive_emission(const struct weir_memory_adaptive *params, uint64_t used_bytes, uint64_t interval_ns,
				   struct weir_emission *ret_emission);

/* The same point as a rate of token buckets with this unit (thresholds/token_rates.h). */
void weir_memory_adaptive_token_rate(const struct weir_memory_adaptive *params, uint64_t used_bytes,
				     uint64_t interval_ns, uint64_t unit, struct weir_token_rate *ret_rate);

#endif
