/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What on this host, and about one interface, would stop or bend a limit. Looks only; changes nothing.
 */
#ifndef WEIR_STATE_EXAMINE_H
#define WEIR_STATE_EXAMINE_H

#include <stddef.h>

#include "base/diag.h"
#include "rules/ruleset.h"

enum weir_finding_level {
	WEIR_FINDING_OK,
	WEIR_FINDING_NOTE,    /* works, but know this */
	WEIR_FINDING_PROBLEM, /* weir cannot attach, or its limits would not hold */
};

#define WEIR_FINDING_CHARS 200
struct weir_finding {
	enum weir_finding_level level;
	const char *topic; /* one word, stable: "kernel", "driver", ... */
	char text[WEIR_FINDING_CHARS];
	char advice[WEIR_FINDING_CHARS]; /* empty: none needed */
};

/* Room for every finding there is. */
#define WEIR_FINDINGS_MAX 40
struct weir_findings {
	struct weir_finding finding[WEIR_FINDINGS_MAX];
	size_t count;
};

/* Add one. Beyond WEIR_FINDINGS_MAX they are left out. advice may be NULL. */
void weir_find(struct weir_findings *findings, enum weir_finding_level level, const char *topic, const char *advice,
	       const char *format, ...) __attribute__((format(printf, 5, 6)));

/*
 * What this rule set would meet there, added to the findings about the interface: memory, what offloads hide,
 * throttling. Loads nothing. A mistake in the rules is an error (-EINVAL), as at attach.
 */
int weir_examine_rules(const char *interface, const struct weir_ruleset *ruleset, struct weir_findings *findings,
		       struct weir_diag *diag);

/* Warn of what weir_examine_rules() notes, as far as an attach or a reload has not said it: of rules that are in force
 * now, or are tried, on the interfaces of an instance, in the mode that it has there. NULL: the rules that it keeps.
 */
void weir_examine_attached(const char *instance_name, const struct weir_ruleset *ruleset, struct weir_diag *diag);

/* Interface of the present network namespace. Returns 0, or -errno when it is not there. */
int weir_examine(const char *interface, struct weir_findings *ret_findings, struct weir_diag *diag);

#endif
