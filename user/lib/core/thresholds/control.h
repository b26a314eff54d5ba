/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room thresholds: what a rule allows, in exact arithmetic. token_rates.h computes how much of a throttled flow's
 * time, or of a token bucket, a unit takes; this header has the moving thresholds, and the step of the controller,
 * which applies them.
 *
 * One step of the controller computes the moving thresholds from the time, the packets that passed, and the memory in
 * use. Pure: no clock, no map, no I/O. The loop that serves an attached instance (kernel/control/controller.h) and
 * replay, which runs in the capture's time, use the same code.
 */
#ifndef WEIR_THRESHOLDS_CONTROL_H
#define WEIR_THRESHOLDS_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/diag.h"
#include "rules/ruleset.h"
#include "weir_abi.h"
#include "weir_tokens.h"
#include "weir_warm_up.h"

/* How much memory is in use, as far as known. All zero: unknown. */
struct weir_memory_use {
	bool is_known;
	uint64_t used_bytes;	 /* the latest reading that succeeded */
	uint64_t holds_until_ns; /* until then that reading stays valid if newer ones fail; UINT64_MAX: for ever */
};

/* What a rule allows now. */
struct weir_allowance {
	uint64_t units;		       /* floor(allowed), per interval */
	struct weir_emission emission; /* for rules that throttle; otherwise zero */
	struct weir_token_rate rate;   /* for rules with tokens; otherwise zero */
};

/* Does the rule's threshold come from the controller, second by second? Other moving thresholds depend on memory. */
bool weir_control_warms_up(const struct weir_rule_info *rule);

/* Start a WarmUp rule in the cold state. */
void weir_control_warm_start(const struct weir_rule_info *rule, uint64_t now_ns, struct weir_warm_state *ret_state);

/*
 * Advance a WarmUp rule's state to the whole second that contains now_ns: one sync for each second since the last, with
 * the number of units that passed in the second before it. `of_cpus` has the counts of each of `cpus` CPUs. CPUs forget
 * seconds after 16 of them without a controller; the total known for the forgotten seconds is then divided equally
 * among them. If more than a day is missing, only the last day is synced. If now_ns is before the state's time, nothing
 * changes.
 */
void weir_control_sync(const struct weir_rule_info *rule, const struct weir_rule_seconds *of_cpus, uint32_t cpus,
		       uint64_t now_ns, struct weir_warm_state *state);

/* Compute the threshold of a moving rule. For a WarmUp rule, `state` is its synced state; other rules may pass NULL. */
void weir_control_allow(const struct weir_rule_info *rule, const struct weir_warm_state *state,
			const struct weir_memory_use *memory, uint64_t now_ns, struct weir_allowance *ret_allowance);

/*
 * Push a threshold to a program that may be reading it at the same time, if it differs from the last one pushed. There
 * must be no other publisher at the same time. Returns whether anything was stored.
 */
bool weir_control_publish(struct weir_pushed *pushed, const struct weir_allowance *allowance);

/* Read the clock of a rule with tokens, as it was last pushed. Another process may be pushing at the same time. */
void weir_control_read_clock(const struct weir_pushed *pushed, struct weir_token_clock *ret_clock);

/* The same for a rule with tokens: from at_ns on, virtual time advances at the new rate. If at_ns is before the latest
 * change, nothing changes.
 */
bool weir_control_publish_rate(struct weir_pushed *pushed, const struct weir_allowance *allowance, uint64_t at_ns);

/* Push the result of a clock that expired: since then the program has used the rule's own rate. */
void weir_control_expire(struct weir_pushed *pushed, const struct weir_rule_info *rule, uint64_t expiry_ns,
			 uint64_t now_ns);

/* ---- WarmUp ----
 *
 * From what the user wrote to the numbers that include/weir_warm_up.h uses, by exact rational arithmetic
 * (docs/semantics.md, 3; sentinel-golang, core/flow/tc_warm_up.go). The caller decides which process syncs, and when.
 */

/*
 * Set up the parameters of a WarmUp rule, including the emission interval if it throttles. If the threshold is below
 * one unit, or the ramp would have no token, ramp is 0, which means the plain threshold. Fails (-EINVAL, with the rule
 * and what to lower in *diag) if a number exceeds the bounds in struct weir_warm_up.
 */
int weir_warm_up_set_up(const struct weir_ruleset_rule *rule, struct weir_warm_up *ret_params, struct weir_diag *diag);

/* The threshold at `stored` tokens, as a rate of token buckets with this unit (thresholds/token_rates.h). */
void weir_warm_up_token_rate(const struct weir_warm_up *params, uint64_t stored, uint64_t interval_ns, uint64_t unit,
			     struct weir_token_rate *ret_rate);

/* ---- MemoryAdaptive: a straight line between two water marks ----
 *
 * If used_bytes is at or below low_mark_bytes, the threshold is low_units; at or above high_mark_bytes it is
 * high_units; in between it is the point on the line, as an exact rational. All thresholds are units per interval.
 * What to do when memory cannot be read is the caller's decision. Source: memory-adaptive flow control of Sentinel
 * (sentinel-golang, core/flow/tc_adaptive.go).
 */

/* floor(allowed): a window with whole units makes the same decisions with it. */
uint64_t weir_memory_adaptive_units(const struct weir_memory_adaptive *params, uint64_t used_bytes);

/* interval_ns / allowed, where allowed is the exact point on the line; for rules that throttle. */
void weir_memory_adaptive_emission(const struct weir_memory_adaptive *params, uint64_t used_bytes, uint64_t interval_ns,
				   struct weir_emission *ret_emission);

/* The same point as a rate of token buckets with this unit (thresholds/token_rates.h). */
void weir_memory_adaptive_token_rate(const struct weir_memory_adaptive *params, uint64_t used_bytes,
				     uint64_t interval_ns, uint64_t unit, struct weir_token_rate *ret_rate);

#endif
