/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room cli: what commands have in common: their table, options, printing, help and completion.
 *
 * Each file NAME_command.c is one command, with its options, one call below, its output and its exit code;
 * user/parts.c has the list. Exit codes: 0 done, 1 it failed, 2 the request or a rule file is wrong. Results go to
 * stdout, messages to stderr.
 */
#ifndef WEIR_CMD_H
#define WEIR_CMD_H

#define WEIR_EXIT_OK 0
#define WEIR_EXIT_FAILED 1
#define WEIR_EXIT_WRONG 2

struct weir_command; /* its options and its description: options.h */

struct weir_command_entry {
	const struct weir_command *command;
	int (*run)(int argc, char **argv); /* argv[0] is "weir" plus the command's name */
	const char *does;		   /* for 'weir --help' */
};

/* All commands there are, in the order of 'weir --help'; NULL ends them. Called once, before anything else here. */
void weir_use_commands(const struct weir_command_entry *const *list);
const struct weir_command_entry *const *weir_commands(void);

/* NULL: there is no command of that name. */
const struct weir_command_entry *weir_command_find(const char *name);

/* The command, perhaps with an option, that corresponds to another tool's name for it; or NULL. */
const char *weir_command_synonym(const char *name);

/* Run the command that argv[1] names; or print help, the version, or candidates for completion. Returns the exit code.
 */
int weir_run_command_line(int argc, char **argv);

/* The version of weir: the release, the commit, the ABI of its maps, and the libraries it runs with. */

/* "GnuTLS 3.7.9", or what says that it is left out. */
typedef const char *(*weir_version_text)(void);

/* Those of libraries that a build can leave out; NULL ends them. Called once, before the next. */
void weir_use_versions(const weir_version_text *list);
void weir_print_version(void);

#endif
