/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * House weir: the limiter's own commands. Each is a file NAME_command.c: options, one call into lib, printing, and the
 * exit code. This header has their rows, for user/parts.c.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include "cli/command.h"

extern const struct weir_command_entry weir_check_entry, weir_run_entry, weir_attach_entry, weir_reload_entry,
	weir_diff_entry, weir_confirm_entry, weir_rollback_entry, weir_show_entry, weir_detach_entry,
	weir_control_entry, weir_status_entry, weir_stats_entry, weir_flows_entry, weir_events_entry, weir_block_entry,
	weir_allow_entry, weir_release_entry;

#endif
