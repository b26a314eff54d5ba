/* SPDX-License-Identifier: GPL-2.0-only */
/* What `weir top` can change: whether a rule only observes. */
#ifndef WEIR_TOP_OBSERVE_H
#define WEIR_TOP_OBSERVE_H

#include <stdbool.h>

#include "base/diag.h"

/*
 * Put the rule set in force in force again, with this rule observing or enforcing: a reload, so that no packet meets
 * half of it, windows continue, and 'weir rollback' undoes it.
 */
int weir_top_observe(const char *instance, const char *rule, bool observes, struct weir_diag *diag);

#endif
