/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a reload has done, in words and as JSON. What it took away is always told: who forgets a file on the command
 * line takes its rules off.
 */
#ifndef WEIR_PRINT_RELOAD_H
#define WEIR_PRINT_RELOAD_H

#include <jansson.h>
#include <stdio.h>

#include "instance/instance.h"

/* "3 rules, of which 1 keeps its windows", then a line for what was removed, changed and added. */
void weir_print_reload(const struct weir_reload_result *result, FILE *stream);

/* The same, with all names. */
json_t *weir_json_reload(const char *instance, const struct weir_reload_result *result);

#endif
