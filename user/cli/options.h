/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options of commands. Options that several commands share are in one table, and each command lists the letters of
 * those it takes; options of a single command are in a table of its own. getopt, --help, the man page and completion
 * all use these tables, so none of them can miss an option.
 */
#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "instance/instance.h"
#include "rules/ruleset.h"

struct weir_option {
	char letter;
	bool is_short; /* also has a one-letter form */
	const char *name;
	const char *argument; /* NULL: it takes no argument */
	const char *help;
};

struct weir_command {
	const char *name;
	/* Options that only this command has, ended by one without a name; they come first in --help. */
	const struct weir_option *own_options;
	const char *options;   /* letters from the table in options.c, in the order of --help */
	const char *arguments; /* "FILE...", or NULL: it takes none */
	size_t arguments_min, arguments_max;
	bool needs_interface; /* at least one '-i' is required */
	bool holds_signals;   /* from the start: see weir_hold_signals() */
	/* It acts on an attached instance: if only one is attached, the name may be omitted. */
	bool means_attached;
	bool changes_it;     /* ... and reports which one it took */
	const char *about;   /* sentences; --help wraps them */
	const char *example; /* lines, indented by two columns */
	const char *exits;   /* the meaning of exit codes, if not the usual */
};

/* What a FILE of rules can be, for use in `about`. */
#define WEIR_ABOUT_FILES " A FILE that is a directory stands for its *.yaml, *.yml and *.json, in order of their names."

struct weir_options {
	const char *instance; /* the selected instance: weir_options_find_instance() */
	bool has_instance;
	char *only_instance;	 /* its name, if it is the only one attached */
	const char *netns;	 /* NULL: stay in the current one */
	const char **interfaces; /* without duplicates */
	size_t interface_count;
	enum weir_attach_mode mode;
	struct weir_tcx_place place; /* --before, --after */
	bool wants_json;
	bool keeps;
	bool allows_merging;
	bool observes; /* overrides settings.mode */
	bool starts_afresh;
	bool forces; /* continue even if that may cut off the session in which it is typed */
	bool means_all, means_lost;
	bool lists, removes, extends;
	bool wants_dropped;
	bool only_changes, means_past; /* for events */
	const char *pcap;	       /* capture file to write; NULL: none */
	bool is_dry_run;
	bool sets_exit_code; /* report by exit code whether there are differences */
	bool means_before;   /* the rule set before the one in force */
	uint64_t confirm_ns; /* 0: not given */
	const char *lasts;   /* --for, --since; NULL: not given */
	const char *reason, *by, *feed, *saves_to, *restores_from; /* for block and allow; NULL: not given */
	const char *rule;					   /* a rule's name; NULL: any rule */
	const char **rule_files;				   /* from -r, if it names files */
	size_t rule_file_count;
	bool once;
	uint32_t most;
	bool has_most;	     /* it was given */
	const char *source;  /* for events: an address or a prefix; NULL: any */
	const char **listen; /* addresses, as they were given */
	size_t listen_count;
	bool listens_anywhere;
	char **arguments;
	size_t argument_count;
};

/* The options of a command, in the order of --help; NULL after the last one. */
const struct weir_option *weir_command_option(const struct weir_command *command, size_t place);

/* The meaning of its exit codes. */
const char *weir_command_exits(const struct weir_command *command);

void weir_command_print_help(const struct weir_command *command, FILE *stream);

/*
 * Read the options of a command that takes them itself; all do in the end. `take` gets each that not every command has,
 * and returns 0, or anything else after it has printed a mistake. keeps_order: it also gets arguments, as
 * WEIR_OPTION_ARGUMENT, in the order of the command line; otherwise these are in argv from optind on. Returns 0 to
 * continue, otherwise the exit code plus one.
 */
#define WEIR_OPTION_ARGUMENT 1
typedef int weir_option_taker(void *data, int letter, const char *argument);
int weir_options_read(const struct weir_command *command, int argc, char **argv, bool keeps_order,
		      weir_option_taker *take, void *data);

/*
 * Read the command line; print mistakes, and --help. Returns 0 to continue, otherwise the exit code plus one. The
 * caller frees *ret_options in any case.
 */
int weir_options_parse(const struct weir_command *command, int argc, char **argv, struct weir_options *ret_options);
void weir_options_free(struct weir_options *options);

/*
 * Select the instance if --instance was not given: WEIR_INSTANCE, or the only one attached, or the usual name. Returns
 * the same values as weir_options_parse(), which already calls this.
 */
int weir_options_find_instance(const struct weir_command *command, struct weir_options *options);

/* Take the argument of --direction. Returns 0, or -EINVAL if the word is not a direction. */
int weir_options_take_direction(const struct weir_command *command, const char *word,
				enum weir_direction *ret_direction);

/* Is this a valid name for an interface? */
bool weir_interface_name_is_valid(const char *name);

/*
 * From now on, let no signal except SIGKILL end the command half-way: it will finish soon, and would otherwise leave
 * half an attachment behind. Call this only after the rules have been read: input from a pipe may never come, or be
 * incomplete if Ctrl-C ends its writer. SIGPIPE is ignored, so that messages to a closed terminal do not end the
 * command either. A SIGHUP that is ignored (nohup) stays ignored: if it were blocked, it would be kept pending
 * nevertheless.
 */
void weir_hold_signals(void);

/* Hold signals, and return a signalfd for those that end a command; the caller closes it. Returns -errno on failure. */
int weir_open_end_signals(struct weir_diag *diag);

/* The meaning of a hang-up (SIGHUP) for a command that stays in the foreground. */
enum weir_hangup {
	/* A terminal controls it: it ends with the terminal, and with the session behind it. */
	WEIR_HANGUP_ENDS,
	/* It is a service, which no terminal controls: SIGHUP asks for a reload. */
	WEIR_HANGUP_RELOADS,
	/* Whoever started it asked to ignore it, as nohup does. */
	WEIR_HANGUP_IGNORED,
};

/* Must be called at the start, since the terminal may be gone later. */
enum weir_hangup weir_hangup_meaning(void);

/*
 * Enter the network namespace `netns` of --netns (NULL: stay). If it or an interface was named, `instance` (NULL: none)
 * must have its interfaces there: an instance has one name on the whole host, and a command must not act on one of
 * another namespace than it was given. -EINVAL: it is elsewhere.
 */
int weir_enter_netns(const char *netns, const char *instance, bool has_interface, struct weir_diag *diag);

/* The same, by the options of a command. */
int weir_options_enter_netns(const struct weir_command *command, const struct weir_options *options,
			     struct weir_diag *diag);

/*
 * The frame of most commands: read the command line, enter the namespace of --netns, act, and print the messages.
 * Returns the exit code.
 */
int weir_command_run(const struct weir_command *command, int argc, char **argv,
		     int (*act)(const struct weir_options *options, struct weir_diag *diag));

/* The options for an attachment, from the command line, from which they borrow. */
struct weir_attach_options weir_options_attach(const struct weir_options *options);

/* Read the rule files that the arguments name. */
int weir_options_read_rules(const struct weir_options *options, struct weir_ruleset **ret_ruleset,
			    struct weir_diag *diag);

/* Print the messages in the diag, with priorities if they go to the journal, and empty it. */
void weir_print_diag(struct weir_diag *diag);

/* The exit code for a function's result (-EINVAL: the request is wrong). */
int weir_exit_code_of(int err);

/* Both of these, at the end of a command. */
int weir_exit_code(int err, struct weir_diag *diag);

#define INSTANCE_VARIABLE "WEIR_INSTANCE"

/*
 * What can come next on a command line: commands, options and their values, from the tables that --help prints. For
 * shell completion (contrib/completion/), which calls 'weir --complete WORD...' when Tab is pressed.
 *
 * `words` are all words after "weir" up to the cursor. The last is the one to complete; it may be empty, and
 * "--option=" before it has been removed. Prints lines "candidate<tab>description"; the description may be empty.
 * Instead of file names it prints ":files", or ":rules" for the names of rule files. Never fails: what cannot be found
 * out is not offered.
 */
int weir_complete(int count, char **words);

#endif
