/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What on this host, and about one interface, would stop or distort a limit. Only reads; changes nothing.
 */
#ifndef WEIR_STATE_EXAMINE_H
#define WEIR_STATE_EXAMINE_H

#include <stddef.h>

#include "base/diag.h"
#include "rules/ruleset.h"

enum weir_finding_level {
	WEIR_FINDING_OK,
	WEIR_FINDING_NOTE,    /* it works, but the user should know this */
	WEIR_FINDING_PROBLEM, /* weir cannot attach, or its limits would not hold */
};

#define WEIR_FINDING_CHARS 384
struct weir_finding {
	enum weir_finding_level level;
	const char *topic; /* one word that does not change: "kernel", "driver", ... */
	char text[WEIR_FINDING_CHARS];
	char advice[WEIR_FINDING_CHARS]; /* empty: none needed */
};

/* Enough for all findings. */
#define WEIR_FINDINGS_MAX 40
struct weir_findings {
	struct weir_finding finding[WEIR_FINDINGS_MAX];
	size_t count;
};

/* Add a finding. Those beyond WEIR_FINDINGS_MAX are left out. advice may be NULL. */
void weir_find(struct weir_findings *findings, enum weir_finding_level level, const char *topic, const char *advice,
	       const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * Add what affects this rule set on the interface: memory, what offloads hide, throttling. Loads nothing. A mistake in
 * the rules is an error (-EINVAL), as at attach.
 */
int weir_examine_rules(const char *interface, const struct weir_ruleset *ruleset, struct weir_findings *findings,
		       struct weir_diag *diag);

/* Warn about interfaces that the instance does not limit though it should, and about the findings of
 * weir_examine_rules() that an attach or reload has not reported: for rules that are in force, or on probation, on an
 * instance's interfaces, in the mode used there. ruleset NULL: the rules that the
 * instance keeps.
 */
void weir_examine_attached(const char *instance_name, const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* Examine an interface of the current network namespace. Returns 0, or -errno if there is no such interface. */
int weir_examine(const char *interface, struct weir_findings *ret_findings, struct weir_diag *diag);

#endif
