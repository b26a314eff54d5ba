/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Commands: each file in user/cmd/ is one command, with its options, one call below, its output and its exit code. Exit
 * codes: 0 done, 1 it failed, 2 the request or a rule file is wrong. Results go to stdout, messages to stderr.
 */
#ifndef WEIR_CMD_H
#define WEIR_CMD_H

#define WEIR_EXIT_OK 0
#define WEIR_EXIT_FAILED 1
#define WEIR_EXIT_WRONG 2

struct weir_command;

/* argv[0] is "weir" plus the command's name. */
int weir_cmd_check(int argc, char **argv);
int weir_cmd_run(int argc, char **argv);
int weir_cmd_attach(int argc, char **argv);
int weir_cmd_reload(int argc, char **argv);
int weir_cmd_diff(int argc, char **argv);
int weir_cmd_confirm(int argc, char **argv);
int weir_cmd_rollback(int argc, char **argv);
int weir_cmd_show(int argc, char **argv);
int weir_cmd_detach(int argc, char **argv);
int weir_cmd_control(int argc, char **argv);
int weir_cmd_status(int argc, char **argv);
int weir_cmd_stats(int argc, char **argv);
int weir_cmd_flows(int argc, char **argv);
int weir_cmd_top(int argc, char **argv);
int weir_cmd_events(int argc, char **argv);
int weir_cmd_explain(int argc, char **argv);
int weir_cmd_block(int argc, char **argv);
int weir_cmd_allow(int argc, char **argv);
int weir_cmd_release(int argc, char **argv);
int weir_cmd_cluster(int argc, char **argv);
int weir_cmd_replay(int argc, char **argv);
int weir_cmd_suggest(int argc, char **argv);
int weir_cmd_doctor(int argc, char **argv);

/* The description of each command (options.h). */
extern const struct weir_command weir_check_command, weir_run_command, weir_attach_command, weir_reload_command,
	weir_diff_command, weir_confirm_command, weir_rollback_command, weir_show_command, weir_detach_command,
	weir_control_command, weir_status_command, weir_stats_command, weir_flows_command, weir_top_command,
	weir_events_command, weir_explain_command, weir_block_command, weir_allow_command, weir_release_command,
	weir_cluster_command, weir_replay_command, weir_suggest_command, weir_doctor_command;

/* All commands, in the order of 'weir --help'; the last entry has no `run`. */
struct weir_command_entry {
	const struct weir_command *command;
	int (*run)(int argc, char **argv);
	const char *does;
};
extern const struct weir_command_entry weir_commands[];

/* NULL: there is no command of that name. */
const struct weir_command_entry *weir_command_find(const char *name);

/* The command, perhaps with an option, that corresponds to another tool's name for it; or NULL. */
const char *weir_command_synonym(const char *name);

/* The command, perhaps with an option, that a mistyped name or another tool's name probably means; or NULL. */
const char *weir_command_nearest(const char *name);

#endif
