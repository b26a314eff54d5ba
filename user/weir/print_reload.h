/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The result of a reload, in words and as JSON. Removed rules are always shown: a user who forgets a file on the
 * command line removes its rules.
 */
#ifndef WEIR_PRINT_RELOAD_H
#define WEIR_PRINT_RELOAD_H

#include <stdbool.h>
#include <stdio.h>

#include "instance/instance.h"

/* "3 rules (1 keeps its counts)", then a line for what was removed, changed and added. */
void weir_print_reload(const struct weir_reload_result *result, FILE *stream);

/* Print everything, with the generation and the action (`done`, "reloaded"): in words, or with all names as JSON. */
int weir_print_reload_result(const char *done, const char *instance, bool wants_json,
			     const struct weir_reload_result *result, struct weir_diag *diag);

#endif
