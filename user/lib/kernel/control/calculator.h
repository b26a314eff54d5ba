/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calculators: what moves thresholds for reasons outside of a host's packets, and stands outside of lib. The controller
 * asks each in its loop; commands ask them what they find. The data plane knows thresholds, not their reasons.
 * user/parts.c hands the list down; without one, rules that need a calculator have their safe thresholds.
 */
#ifndef WEIR_CONTROL_CALCULATOR_H
#define WEIR_CONTROL_CALCULATOR_H

#include <jansson.h>
#include <poll.h>
#include <stdint.h>

#include "base/diag.h"
#include "instance/instance.h"
#include "rules/ruleset.h"

struct weir_findings;

/* `state` is the calculator's own, and never NULL but for follow(). What commands ask may be NULL: nothing to do. */
struct weir_calculator {
	const char *name;

	/* ---- in the controller ---- */

	/* Bring *state in line with the instance: at the start, when it is NULL, and after each reload. It stays NULL
	 * if no rule needs the calculator.
	 */
	int (*follow)(void **state, const struct weir_instance *instance, struct weir_diag *diag);
	void (*free)(void *state);
	/* What to poll for, and until when. Call step() when the descriptor is ready or the time has come. */
	struct pollfd (*poll)(const void *state);
	uint64_t (*due_ns)(const void *state);
	/* Read what has arrived, send what is due, and push what has changed. */
	void (*step)(void *state, struct weir_diag *diag);
	/* The program no longer limits anything: give back what other hosts could use. */
	void (*leave)(void *state);
	/* The number of rules that it works for. */
	uint32_t (*rule_count)(const void *state);

	/* ---- in commands ---- */

	/* Report a rule that needs what this build lacks: it would stay at its safe threshold. */
	int (*check)(const struct weir_ruleset *ruleset, struct weir_diag *diag);
	/* Add what would stop or bend these rules (state/examine.h). May take seconds; changes nothing. */
	void (*examine)(const struct weir_ruleset *ruleset, struct weir_findings *findings);
	/* A document about the instance, from its maps alone; *ret_document may be NULL: out of memory. */
	int (*describe)(const struct weir_instance *instance, json_t **ret_document, struct weir_diag *diag);
	/*
	 * leave() where no controller does it: what is to be said is prepared while the instance exists (NULL:
	 * nothing), and said once it is gone.
	 */
	void *(*prepare_farewell)(const struct weir_instance *instance);
	void (*say_farewell)(const void *farewell);
	void (*free_farewell)(void *farewell);
};

#define WEIR_CALCULATORS_MAX 4

/* NULL ends the list. Called once, before anything else here. */
void weir_use_calculators(const struct weir_calculator *const *list);
const struct weir_calculator *const *weir_calculators(void);

/* NULL: there is none of that name. */
const struct weir_calculator *weir_calculator_find(const char *name);

/* Ask each in turn, until one has an objection. */
int weir_calculators_check(const struct weir_ruleset *ruleset, struct weir_diag *diag);
void weir_calculators_examine(const struct weir_ruleset *ruleset, struct weir_findings *findings);

#endif
