// SPDX-License-Identifier: GPL-2.0-only
/* weir control: move the thresholds of an attached instance, in the foreground. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/command.h"
#include "control/controller.h"
#include "host/confine.h"
#include "cli/options.h"
#include "cli/print.h"
#include "weir/reloads.h"
#include "weir/weir.h"

static const struct weir_command weir_control_command = {
	.name = "control",
	.options = "INCh",
	.means_attached = true,
	.holds_signals = true,
	.about = "Be the controller of an attached instance: while it runs, WarmUp rules warm up and MemoryAdaptive "
		 "rules follow the memory in use. Files of named sets that change are taken over within 2 s; the "
		 "rules stay as they are. Interfaces that appear or return are limited, as with 'weir run', in the "
		 "network namespace in which this command runs. Failures are reported and retried. It ends on "
		 "SIGINT, SIGTERM, SIGHUP or a detach; as a service, without a controlling terminal, SIGHUP reads the "
		 "files of sets again. After a signal, the rules stay in force with safe thresholds. 'weir run' is "
		 "its own controller and does not need this command.",
	.example = "  weir control --instance main",
};

/* In a child: load the rules in force with what is now in the files of their sets. */
static int load_sets(const struct weir_reloads *reloads)
{
	static const struct weir_reload_options keeps_all;
	const char *name = reloads->options->instance;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL, *before = NULL;
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	_cleanup_(weir_kept_set_freep) struct weir_kept_set *kept = NULL;
	struct weir_diag diag = {};
	int err;

	weir_reloads_let_signals_end();
	err = weir_instance_open(name, &instance, &diag);
	if (!err)
		err = weir_instance_kept(instance, &history, &diag);
	if (!err)
		err = weir_kept_set_read(history.sets[0], &before, &diag);
	if (!err)
		err = weir_kept_set_read_files(history.sets[0], &ruleset, &diag);
	if (!err)
		err = weir_kept_set_make(ruleset, &kept);
	weir_hold_signals();
	if (!err && kept->digest == history.sets[0]->digest) {
		weir_diag_free(&diag);
		weir_sets_note_loaded(name);
		return 0; /* nothing has changed, or it was changed back */
	}
	if (!err)
		err = weir_instance_reload(name, ruleset, &keeps_all, &result, &diag);
	if (!err)
		weir_sets_note_taken(name, before, ruleset);
	else if (err != -EBUSY)
		weir_sets_note_refused(name, before, true, &diag);
	weir_print_diag(&diag);
	if (err) {
		fputs("weir control: files of sets were not taken over, the old sets stay\n", stderr);
		return err;
	}
	fputs("weir control: files of sets were taken over: ", stderr);
	weir_print_reload(&result, stderr);
	return 0;
}

/* Returns true if it is time to end. */
static bool take_signal(struct weir_reloads *reloads, enum weir_hangup hangup, int signal_fd)
{
	struct signalfd_siginfo signal_info;
	int news;

	if (read(signal_fd, &signal_info, sizeof(signal_info)) != sizeof(signal_info))
		return false;
	if (signal_info.ssi_signo == SIGHUP && hangup == WEIR_HANGUP_RELOADS &&
	    weir_instance_has_sets(reloads->options->instance)) {
		weir_reloads_begin(reloads);
		return false;
	}
	if (signal_info.ssi_signo != SIGCHLD)
		return true;
	news = weir_reloads_look(reloads);
	if (news & WEIR_RELOADS_CHANGED || (news & WEIR_RELOADS_DONE && reloads->is_wanted))
		weir_reloads_begin(reloads);
	else if (news & WEIR_RELOADS_DONE)
		weir_reloads_watch(reloads);
	return false;
}

static int control(const struct weir_options *options, struct weir_diag *diag)
{
	const char *instance = options->instance;
	const enum weir_hangup hangup = weir_hangup_meaning();
	_cleanup_(weir_controller_freep) struct weir_controller *controller = NULL;
	_cleanup_(weir_closep) int signal_fd = weir_reloads_open_signals(diag);
	struct weir_reloads reloads = {
		.command = "weir control", .options = options, .load = load_sets, .is_for_sets = true};
	int err;

	if (signal_fd < 0)
		return signal_fd;
	err = weir_controller_open(instance, 0, &controller, diag);
	if (err)
		return err;
	reloads.controller = controller;
	weir_confine(WEIR_CONFINED_CONTROLLER, diag);
	fprintf(stderr, "weir control: controlling instance '%s'; rules that need a controller: %u\n", instance,
		weir_controller_rule_count(controller));
	/* Since nobody has watched, the files are read once in any case: since_ns is 0. */
	weir_reloads_watch(&reloads);
	do {
		weir_print_diag(diag);
		err = weir_controller_serve(controller, signal_fd, diag);
		if (err == WEIR_CONTROLLER_RELOADED)
			weir_reloads_watch(&reloads);
	} while (err > 0 || (!err && !take_signal(&reloads, hangup, signal_fd)));
	weir_reloads_end(&reloads);
	if (err != -ENOENT)
		return err;
	weir_controller_give_back(controller);
	fprintf(stderr, "weir control: instance '%s' was detached; nothing is left to control\n", instance);
	return 0;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_control_command, argc, argv, control);
}

const struct weir_command_entry weir_control_entry = {&weir_control_command, run_command,
						      "move thresholds (WarmUp, MemoryAdaptive, ...) while it runs"};
