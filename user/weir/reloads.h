/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Child processes of a command that controls an instance: one that loads rules again, so that the controller misses no
 * tick while a long file is read, and one that waits for a file of a set to change (docs/sets.md).
 */
#ifndef WEIR_CMD_RELOADS_H
#define WEIR_CMD_RELOADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/options.h"
#include "control/controller.h"

struct weir_reloads {
	const char *command; /* "weir run" */
	const struct weir_options *options;
	struct weir_controller *controller;
	bool reads_rules; /* it loads the files that the options name; otherwise, those of the sets in force */
	/* The child's work. Returns 0, or -errno after printing why; -EBUSY: rules are not confirmed yet. */
	int (*load)(const struct weir_reloads *reloads);
	bool is_for_sets; /* the load is made, or was, because a file of a set has changed */
	bool is_wanted;	  /* load again when the child is done */
	pid_t child, watcher;
	/* CLOCK_REALTIME: files may have changed since then. before_ns: the same, as it was before the last load. */
	uint64_t since_ns, before_ns;
};

/* Now, by the clock of which files have their times. */
uint64_t weir_file_time_ns(void);

/* The signals that end or reload such a command, and SIGCHLD. Returns a descriptor of signalfd(2), or -errno. */
int weir_reloads_open_signals(struct weir_diag *diag);

/* Begin a load. If one is under way, another one follows. Returns false if no child could be made; why is printed. */
bool weir_reloads_begin(struct weir_reloads *reloads);

/* Watch the files of the sets in force, from now on: without sets, and while a load is under way, nothing. */
void weir_reloads_watch(struct weir_reloads *reloads);

/* After SIGCHLD, which may stand for several children. */
enum weir_reloads_news {
	WEIR_RELOADS_DONE = 1,	  /* a load has ended; the caller begins another, if is_wanted, or watches again */
	WEIR_RELOADS_FAILED = 2,  /* ... and the rules are as before */
	WEIR_RELOADS_CHANGED = 4, /* a file of a set has changed */
};
int weir_reloads_look(struct weir_reloads *reloads);

/* Ends both children; one that is beyond reading its files is allowed to finish. */
void weir_reloads_end(struct weir_reloads *reloads);

/* For a load: until now, signals that end a command ended the child while it read, which may take for ever (a pipe). */
void weir_reloads_let_signals_end(void);

/* The rule set in force, or NULL if it has no sets, or cannot be read; without prefixes it takes less time. */
struct weir_ruleset *weir_reloads_in_force(const char *instance, bool with_prefixes);

#endif
