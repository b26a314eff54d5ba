/* SPDX-License-Identifier: GPL-2.0-only */
/* House top: `weir top`: figures, the screen that draws them, and the keys. */
#ifndef WEIR_TOP_H
#define WEIR_TOP_H

#include <stdbool.h>

#include "base/diag.h"
#include "cli/command.h"

extern const struct weir_command_entry weir_top_entry;

/*
 * The one setting that `weir top` can change: whether a rule only observes. Reloads the rule set in force, with
 * this rule set to observe or to enforce. As with any reload, no packet meets a half-changed rule set, windows keep
 * their counts, and 'weir rollback' undoes it.
 */
int weir_top_observe(const char *instance, const char *rule, bool observes, struct weir_diag *diag);

#endif
