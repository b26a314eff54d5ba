/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * House weir: the limiter's own commands. Each is a file NAME_command.c: options, one call into lib, printing, and the
 * exit code. This header has their rows, for user/parts.c, and what they print of reloads.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/command.h"
#include "instance/instance.h"

extern const struct weir_command_entry weir_check_entry, weir_run_entry, weir_attach_entry, weir_reload_entry,
	weir_diff_entry, weir_confirm_entry, weir_rollback_entry, weir_show_entry, weir_detach_entry,
	weir_control_entry, weir_status_entry, weir_stats_entry, weir_flows_entry, weir_events_entry, weir_block_entry,
	weir_allow_entry, weir_release_entry, weir_sets_entry;

/*
 * The result of a reload, in words and as JSON. Removed rules are always shown: a user who forgets a file on the
 * command line removes its rules.
 *
 * "3 rules (1 keeps its counts)", then a line for what was removed, changed and added.
 */
void weir_print_reload(const struct weir_reload_result *result, FILE *stream);

/* Print everything, with the generation and the action (`done`, "reloaded"): in words, or with all names as JSON. */
int weir_print_reload_result(const char *done, const char *instance, bool wants_json,
			     const struct weir_reload_result *result, struct weir_diag *diag);

/* What a reload would do, for `weir diff` and `weir reload --dry-run`: to standard output, as text or as JSON. */
int weir_print_forecast(const char *instance, bool wants_json, const struct weir_reload_forecast *forecast,
			struct weir_diag *diag);

#endif
