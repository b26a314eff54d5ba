/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room thresholds: what a rule allows, in exact arithmetic. emission.h has what a unit takes of a
 * throttled flow's time, warm_up.h and memory_adaptive.h have how a threshold moves, and this header has the
 * controller's step, which moves them.
 *
 * One step of the controller: what the thresholds that move shall be, given the time, what passed, and how
 * much memory is in use. Pure: no clock, no map, no I/O; the same for the loop that serves what is attached
 * (user/kernel/control/controller.h) and for replay, whose time is the capture's.
 */
#ifndef WEIR_THRESHOLDS_CONTROL_H
#define WEIR_THRESHOLDS_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

/* How much memory is in use, as far as anyone knows. All zero: it is not known. */
struct weir_memory_use {
	bool is_known;
	uint64_t used_bytes;	 /* the latest reading that did not fail */
	uint64_t holds_until_ns; /* a reading that fails keeps that one so long; UINT64_MAX: for ever */
};

/* What a rule allows now. */
struct weir_allowance {
	uint64_t units;		       /* floor(allowed), per interval */
	struct weir_emission emission; /* of rules that throttle; else zero */
	struct weir_token_rate rate;   /* of rules with tokens; else zero */
};

/* The rule's threshold comes from the controller, second by second; else, if it moves, from memory. */
bool weir_control_warms_up(const struct weir_rule_info *rule);

/* A WarmUp rule begins, all cold. */
void weir_control_warm_start(const struct weir_rule_info *rule, uint64_t now_ns, struct weir_warm_state *ret_state);

/*
 * Bring a WarmUp rule's state to the whole second that now_ns is in: one sync for each second since the last, with
 * what passed in the second before it. `of_cpus` has what each of `cpus` CPUs counted. Seconds that a CPU has
 * forgotten, after 16 of them without a controller, are taken to have passed what is known of all of them
 * together in equal parts; of more than a day of such seconds only the last day. A time before the
 * state's changes nothing.
 */
void weir_control_sync(const struct weir_rule_info *rule, const struct weir_rule_seconds *of_cpus, uint32_t cpus,
		       uint64_t now_ns, struct weir_warm_state *state);

/* The threshold of a rule that moves. `state` is a WarmUp rule's, synced; others may have NULL. */
void weir_control_allow(const struct weir_rule_info *rule, const struct weir_warm_state *state,
			const struct weir_memory_use *memory, uint64_t now_ns, struct weir_allowance *ret_allowance);

/*
 * Push a threshold to a program that may be reading it at this moment, if it is another than was pushed before.
 * Who publishes is alone in doing so. Returns whether anything was stored.
 */
bool weir_control_publish(struct weir_pushed *pushed, const struct weir_allowance *allowance);

/* The clock of a rule with tokens, as it was pushed last. Somebody else may be pushing. */
void weir_control_read_clock(const struct weir_pushed *pushed, struct weir_token_clock *ret_clock);

/* The same for a rule with tokens: from at_ns on virtual time grows at the new rate. A time before the latest change
 * changes nothing.
 */
bool weir_control_publish_rate(struct weir_pushed *pushed, const struct weir_allowance *allowance, uint64_t at_ns);

/* Push what has come of a clock that expired: since then the program has gone by the rule's own rate. */
void weir_control_expire(struct weir_pushed *pushed, const struct weir_rule_info *rule, uint64_t expiry_ns,
			 uint64_t now_ns);

#endif
