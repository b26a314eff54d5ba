/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Options of commands. Those that commands share are in one table, from which each command names those it takes by
 * their letters; what a command has alone is a table beside it. getopt, --help, the man page and completion all go by
 * these tables, so that none can lack what another has.
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
	bool is_short; /* has a one-letter form, too */
	const char *name;
	const char *argument; /* NULL: takes none */
	const char *help;
};

struct weir_command {
	const char *name;
	const struct weir_option *own_options; /* those it has alone, up to one without a name; first in --help */
	const char *options;		       /* letters of the table in options.c, in the order of --help */
	const char *arguments;		       /* "FILE...", or NULL: none */
	size_t arguments_min, arguments_max;
	bool needs_interface; /* at least one '-i' */
	bool holds_signals;   /* from the start: see weir_hold_signals() */
	bool means_attached;  /* an instance that is there already: of one alone the name need not be given */
	bool changes_it;      /* ... and says which it took */
	const char *about;    /* sentences; --help fills its lines */
	const char *example;  /* lines, indented by two */
	const char *exits;    /* what the exit codes say, where it is not the usual */
};

/* What a FILE of rules can be, for `about`. */
#define WEIR_ABOUT_FILES " A FILE that is a directory stands for its *.yaml, *.yml and *.json, in order of their names."

/* Options of one command at most, and bytes of their short forms as getopt_long() wants them. */
#define WEIR_OPTIONS_MAX 32
#define WEIR_SHORT_OPTIONS_BYTES (2 * WEIR_OPTIONS_MAX + 2)

struct weir_options {
	const char *instance; /* which is meant: weir_options_find_instance() */
	bool has_instance;
	char *only_instance;	 /* that one, when it is the only one attached */
	const char *netns;	 /* NULL: stay where we are */
	const char **interfaces; /* no two the same */
	size_t interface_count;
	enum weir_attach_mode mode;
	bool wants_json;
	bool keeps;
	bool allows_merging;
	bool observes; /* whatever settings.mode says */
	bool starts_afresh;
	bool forces; /* whatever becomes of the session that it is typed in */
	bool means_all;
	bool lists, removes, extends;
	bool wants_dropped;
	bool only_changes, means_past; /* of events */
	const char *pcap;	       /* a capture to write; NULL: none */
	bool is_dry_run;
	bool tells_by_exit_code;			      /* whether something differs */
	bool means_before;				      /* the rule set before the one in force */
	uint64_t confirm_ns;				      /* 0: not given */
	const char *lasts;				      /* --for, --since; NULL: not given */
	const char *reason, *feed, *saves_to, *restores_from; /* of block and allow; NULL: not given */
	const char *rule;				      /* its name; NULL: any */
	const char **rule_files;			      /* of -r, where it names files */
	size_t rule_file_count;
	bool once;
	uint32_t most;
	bool has_most;	     /* it was given */
	const char *source;  /* of events: an address or a prefix; NULL: any */
	const char **listen; /* addresses, as they were given */
	size_t listen_count;
	bool listens_anywhere;
	char **arguments;
	size_t argument_count;
};

/* The options of a command, in the order of --help; NULL after the last. */
const struct weir_option *weir_command_option(const struct weir_command *command, size_t place);

/* What its exit codes say. */
const char *weir_command_exits(const struct weir_command *command);

void weir_command_print_help(const struct weir_command *command, FILE *stream);

/* The tables of getopt_long(); short_options has WEIR_SHORT_OPTIONS_BYTES, long_options one more than _MAX. */
void weir_command_list_options(const struct weir_command *command, struct option *long_options, char *short_options);

/* As getopt_long(); of what is no option ('?') it says all that there is to say. */
int weir_options_next(const struct weir_command *command, int argc, char **argv, const char *short_options,
		      const struct option *long_options);

/*
 * Read the command line; mistakes and --help are printed. Returns 0 to continue, else one more than the
 * exit code. The caller frees *ret_options in any case.
 */
int weir_options_parse(const struct weir_command *command, int argc, char **argv, struct weir_options *ret_options);
void weir_options_free(struct weir_options *options);

/*
 * Which instance, where --instance did not say: WEIR_INSTANCE, or the only one that is attached, or the usual name.
 * Returns as weir_options_parse(), which has done it already.
 */
int weir_options_find_instance(const struct weir_command *command, struct weir_options *options);

/*
 * Options of what is printed, --color and --wide, for commands that read their command lines themselves: what
 * weir_options_parse() returns, or that the option is another one.
 */
#define WEIR_OPTION_IS_ANOTHER (-1)
int weir_options_take_terminal(const struct weir_command *command, int letter, const char *argument);

/* The argument of --direction. 0, or -EINVAL when it is neither. */
int weir_options_take_direction(const struct weir_command *command, const char *word,
				enum weir_direction *ret_direction);

/* An interface can be called so. */
bool weir_interface_name_is_valid(const char *name);

/*
 * Let no signal but SIGKILL end the command half-way from now on: it is soon done, and half an attach
 * would stay behind. Not before the rules are read: from a pipe they may never come, or, as Ctrl-C ends its writer,
 * only half of them. SIGPIPE is ignored, so that words to a closed terminal do not end it either. A SIGHUP that is
 * ignored (nohup) stays so: a signal that is held would be kept all the same.
 */
void weir_hold_signals(void);

/* Hold signals, and return a signalfd of those that end a command, which the caller closes; or -errno. */
int weir_open_end_signals(struct weir_diag *diag);

/* What a hang-up (SIGHUP) means to a command that stays in the foreground. */
enum weir_hangup {
	WEIR_HANGUP_ENDS,    /* a terminal controls it: it goes with the terminal, and with the session behind that */
	WEIR_HANGUP_RELOADS, /* a service, which no terminal controls: a word by which others ask for a reload */
	WEIR_HANGUP_IGNORED, /* whoever started it said so, as nohup does */
};

/* To be asked at the start: the terminal may be gone later. */
enum weir_hangup weir_hangup_meaning(void);

/* Go where --netns says; does nothing without it. */
int weir_options_enter_netns(const struct weir_options *options, struct weir_diag *diag);

/*
 * What most commands are: read the command line, go where --netns says, act, print what there is to say. Returns the
 * exit code.
 */
int weir_command_run(const struct weir_command *command, int argc, char **argv,
		     int (*act)(const struct weir_options *options, struct weir_diag *diag));

/* The attachment that the options ask for; it borrows from them. */
struct weir_attach_options weir_options_attach(const struct weir_options *options);

/* Read the rule files that the arguments name. */
int weir_options_read_rules(const struct weir_options *options, struct weir_ruleset **ret_ruleset,
			    struct weir_diag *diag);

/* Print what there is in the diag, in the journal with priorities, and empty it. */
void weir_tell(struct weir_diag *diag);

/* The exit code for what a function returned (-EINVAL: the request is wrong). */
int weir_exit_code_of(int err);

/* Both, as a command ends. */
int weir_exit_code(int err, struct weir_diag *diag);

#define INSTANCE_VARIABLE "WEIR_INSTANCE"

#endif
