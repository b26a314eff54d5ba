// SPDX-License-Identifier: GPL-2.0-only
/*
 * weir run: attach, control in the foreground, and detach at the end. The limiter itself is in the kernel and pinned;
 * this process only moves thresholds, so if it is killed, the limits stay in force.
 */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "control/controller.h"
#include "host/confine.h"
#include "host/host.h"
#include "host/service.h"
#include "rules/ruleset.h"
#include "sandbox/session.h"
#include "state/examine.h"
#include "weir/reloads.h"
#include "weir/weir.h"
#include "weir/server_process.h"

static const struct weir_command weir_run_command = {
	.name = "run",
	.options = "iImzZgNokfLYxCh",
	.arguments = "FILE...",
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.needs_interface = true,
	.about = "Attach, move thresholds where rules need it, and stay in the foreground. At its start, the command "
		 "prints what it limits, where its page is (--listen) and what to type next. It detaches and ends on "
		 "SIGINT and SIGTERM, and when 'weir detach' detaches its instance.\n\n"
		 "In a terminal, a hang-up (SIGHUP) ends it too: if an SSH session dies, so do the limits that may "
		 "have cut it off. Under nohup it keeps running. As a service, without a controlling terminal, "
		 "SIGHUP reads the rule files again. If they contain a mistake, it is printed and the old rules "
		 "stay. The same happens if standard input ('-') is one of the files, because it cannot be read "
		 "twice. In a terminal, use 'weir reload'.\n\n"
		 "If a run is killed, its rules stay attached: the next run on the same interfaces takes them over, "
		 "as a reload does, and detaches them when it ends. It also takes over what 'weir attach' left, but "
		 "leaves that attached. It refuses to start while another controller runs, or if the instance is "
		 "attached to other interfaces.\n\n"
		 "The command watches interfaces. If one disappears, this is reported, and the interface is limited "
		 "again when it returns. A pattern ('veth*', in quotes) matches all interfaces with such a name, now "
		 "and later, except 'lo' and interfaces that are stacked on other matching ones, such as a bridge on "
		 "its ports. '!veth0' excludes an interface. 'weir attach -i' and 'weir detach -i' add and remove "
		 "single interfaces.\n\n"
		 "Each load that needs no confirmation stores its rule set in $STATE_DIRECTORY or /var/lib/weir, as "
		 "NAME.last-good. If the rule files are wrong when a service starts, that set is loaded instead, and "
		 "'weir status' says so. A missing rule file is an error, as a wrong one is in a terminal.\n\n"
		 "weir refuses rules that would drop the SSH session in which you type this, or admit fewer than ten "
		 "of its packets a second." WEIR_ABOUT_FILES,
	.example = "  weir run -i eth0 rules/dns-per-client.yaml\n"
		   "  weir run -i 'veth*' -i '!veth-mgmt' rules/dns-per-client.yaml\n"
		   "  weir run -i eth0 --listen 127.0.0.1:9617 rules/dns-per-client.yaml",
};

static const struct weir_reload_options keeps_all;

/* An instance that this command controls. */
struct run {
	enum weir_hangup hangup;
	uint64_t attached_ns, read_ns;	    /* read_ns: CLOCK_REALTIME, when it began to read the rule files */
	bool leaves, observes;		    /* at the end it stays attached; at the start nothing is dropped */
	bool is_last_good;		    /* at the start the rule files were wrong */
	struct weir_controller *controller; /* NULL: not started yet */
	struct weir_server server;
	struct weir_reloads reloads;
};

static void free_run(struct run *run)
{
	weir_server_free(&run->server);
	weir_controller_free(run->controller);
}

/*
 * Take over an attached instance without a controller, which an earlier run left because it was killed or asked to. The
 * instance stays in force, with the rules that are now in the files. The controller is started first, so that only one
 * of two concurrent runs succeeds. It is started after the reload only if the reload is needed to make the instance
 * controllable: the last reload was interrupted, or was another version's.
 */
static int take_over(const struct weir_options *options, const struct weir_ruleset *ruleset, struct run *run,
		     struct weir_diag *diag)
{
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	const struct weir_reload_options terms = {
		.starts_afresh = options->starts_afresh,
	};
	const char *instance = options->instance;
	struct weir_diag ignored = {};
	int err = weir_controller_open(instance, run->attached_ns, &run->controller, &ignored);

	weir_diag_free(&ignored);
	if (err == -EAGAIN || (err == -EPROTO && options->starts_afresh))
		err = 0;
	else if (err)
		err = weir_controller_open(instance, run->attached_ns, &run->controller, diag); /* and report why */
	if (!err)
		err = weir_instance_reload(instance, ruleset, &terms, &result, diag);
	if (err)
		return err;
	fprintf(stderr, "weir run: instance '%s' was attached without a controller; took it over: ", instance);
	weir_print_reload(&result, stderr);
	return 0;
}

static int check_session(const struct weir_options *options, const struct weir_ruleset *ruleset, struct weir_diag *diag)
{
	const struct weir_attach_options attach_options = weir_options_attach(options);

	return options->forces ? 0 : weir_session_check_attach(&attach_options, ruleset, diag);
}

/* Attach with these rules, or take over what is attached. */
static int put_in_force(const struct weir_options *options, const struct weir_ruleset *ruleset, struct run *run,
			struct weir_diag *diag)
{
	struct weir_attach_options attach_options = weir_options_attach(options);
	struct weir_attachment there;
	int err;

	run->observes = ruleset->settings.observes;
	weir_hold_signals();
	attach_options.is_controlled = true;
	attach_options.ends_with_run = !options->keeps;
	attach_options.takes_over_incompatible = options->starts_afresh;
	if (weir_instance_is_attached_as(&attach_options, &there)) {
		run->attached_ns = there.attached_ns;
		run->leaves = options->keeps || !there.ends_with_run;
		err = take_over(options, ruleset, run, diag);
		if (!err)
			err = weir_instance_want(options->instance, &attach_options, diag);
	} else {
		run->leaves = options->keeps;
		err = weir_instance_attach(&attach_options, ruleset, &run->attached_ns, diag);
	}
	if (!err)
		weir_examine_attached(options->instance, ruleset, diag);
	return err;
}

/* A file that is missing is not a wrong one: somebody removed it, or it is not mounted yet. */
static bool are_files_there(const struct weir_options *options)
{
	_cleanup_(weir_rule_files_free) struct weir_rule_files files = {};
	_cleanup_(weir_diag_free) struct weir_diag ignored = {};
	bool are_there;

	weir_find_rule_files((const char *const *)options->arguments, options->argument_count, &files, &ignored);
	are_there = !files.is_incomplete && !files.is_out_of_memory;
	for (size_t i = 0; i < files.count; i++)
		are_there &= !strcmp(files.paths[i], "-") || !access(files.paths[i], F_OK);
	return are_there;
}

/*
 * The rule files are wrong (`err`). Nobody is there to correct them when a service starts, and without limits the host
 * would be open: the last good rule set is loaded instead. In a terminal, somebody is there.
 */
static int put_last_good(const struct weir_options *options, struct run *run, int err, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_diag_free) struct weir_diag messages = {};
	char stored[WEIR_LAST_GOOD_TIME_BYTES], path[WEIR_LAST_GOOD_PATH_BYTES];
	int last_err = weir_last_good_read(options->instance, &ruleset, stored, &messages);

	weir_controller_free(TAKE_PTR(run->controller)); /* of a take-over that these rules failed */
	if (!last_err) {
		ruleset->settings.observes |= options->observes;
		last_err = check_session(options, ruleset, &messages);
	}
	if (!last_err)
		last_err = put_in_force(options, ruleset, run, &messages);
	weir_diag_move(diag, &messages, false);
	weir_last_good_path(options->instance, path);
	if (last_err == -ENOENT && !ruleset)
		weir_diag_note(diag, "there is no '%s' of an earlier start, which would be loaded instead", path);
	if (last_err)
		return err;
	weir_diag_warning(diag, NULL, NULL, "correct the files, then reload: 'weir check' says whether they are right",
			  "the rule files are wrong: the last good rule set, stored %s in '%s', is in force instead",
			  stored, path);
	weir_instance_note(options->instance, WEIR_JOURNAL_RELOAD,
			   "the rule files are wrong: the last good rule set, stored %s, is in force instead", stored);
	run->is_last_good = true;
	return 0;
}

static int start(const struct weir_options *options, struct run *run, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	int err = weir_options_enter_netns(&weir_run_command, options, diag);

	if (err)
		return err;
	run->read_ns = weir_file_time_ns();
	err = weir_options_read_rules(options, &ruleset, diag);
	if (!err) {
		/* Where there is a session, somebody is there. */
		err = check_session(options, ruleset, diag);
		if (err)
			return err;
		err = put_in_force(options, ruleset, run, diag);
	}
	if (err == -EINVAL && run->hangup == WEIR_HANGUP_RELOADS && are_files_there(options))
		err = put_last_good(options, run, err, diag);
	return err;
}

/* ---- the service manager ---- */

/* "Limits 'eth0' (native) by 12 rules": what is in force, read from the instance. */
static void notify_service(const struct weir_options *options, const char *remark)
{
	char status[WEIR_LIMITS_BYTES + 64], limits[WEIR_LIMITS_BYTES];

	if (!weir_limits_words(options->instance, limits)) {
		weir_service_ready(remark);
		return;
	}
	limits[0] = toupper(limits[0]);
	snprintf(status, sizeof(status), "%s%s%s", limits, remark[0] ? "; " : "", remark);
	weir_service_ready(status);
}

/* ---- reloading ---- */

/* The content of standard input is gone: without it, the other files would be a different rule set. */
static bool reads_standard_input(const struct weir_options *options)
{
	for (size_t i = 0; i < options->argument_count; i++)
		if (!strcmp(options->arguments[i], "-"))
			return true;
	return false;
}

/* The process is already in its network namespace. Signals that end a command end this child while it reads, but not
 * later: half a reload would be left behind.
 */
static int load_files(const struct weir_reloads *reloads)
{
	const struct weir_options *options = reloads->options;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL, *before = NULL;
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	struct weir_diag diag = {};
	int err;

	weir_reloads_let_signals_end();
	before = weir_reloads_in_force(options->instance, reloads->is_for_sets);
	err = weir_ruleset_read((const char *const *)options->arguments, options->argument_count, &ruleset, &diag);
	if (!err)
		ruleset->settings.observes |= options->observes;
	weir_hold_signals();
	if (!err)
		err = weir_instance_reload(options->instance, ruleset, &keeps_all, &result, &diag);
	if (!err && reloads->is_for_sets && before)
		weir_sets_note_taken(options->instance, before, ruleset);
	if (!err)
		weir_examine_attached(options->instance, ruleset, &diag);
	else if (err != -EBUSY)
		weir_sets_note_refused(options->instance, before, reloads->is_for_sets, &diag);
	weir_print_diag(&diag);
	if (err == WEIR_RELOAD_NOT_DESCRIBED) {
		fputs("weir run: the reload did not finish; SIGHUP tries again\n", stderr);
	} else if (err) {
		fputs("weir run: not reloaded, the old rules stay\n", stderr);
	} else {
		fputs("weir run: reloaded: ", stderr);
		weir_print_reload(&result, stderr);
	}
	return err;
}

static const char not_reloaded[] = "the last reload failed; the rules before it stay in force";

static void start_reload(struct run *run, bool is_for_sets)
{
	const struct weir_options *options = run->reloads.options;
	char option[WEIR_INSTANCE_OPTIONS_BYTES];

	run->reloads.is_for_sets = is_for_sets;
	if (reads_standard_input(options)) {
		fprintf(stderr,
			"weir run: not reloaded, the old rules stay: standard input cannot be read again; "
			"'weir reload%s FILE...' replaces them\n",
			weir_instance_options(options->instance, option));
		weir_server_note_reload(&run->server, true);
		weir_instance_note(options->instance, WEIR_JOURNAL_RELOAD, "%s", not_reloaded);
		return;
	}
	weir_service_reloading();
	if (!weir_reloads_begin(&run->reloads))
		notify_service(options, not_reloaded);
}

static void watch_sets(struct run *run)
{
	if (!reads_standard_input(run->reloads.options))
		weir_reloads_watch(&run->reloads);
}

static void look_at_children(struct run *run)
{
	const char *instance = run->reloads.options->instance;
	const int news = weir_reloads_look(&run->reloads);
	const bool has_failed = news & WEIR_RELOADS_FAILED;

	if (news & WEIR_RELOADS_DONE) {
		weir_server_note_reload(&run->server, has_failed);
		if (has_failed)
			weir_instance_note(instance, WEIR_JOURNAL_RELOAD, "%s", not_reloaded);
		notify_service(run->reloads.options, has_failed ? not_reloaded : "");
		if (run->reloads.is_wanted)
			start_reload(run, run->reloads.is_for_sets);
		else
			watch_sets(run);
	}
	if (news & WEIR_RELOADS_CHANGED) {
		fputs("weir run: a file of a set has changed\n", stderr);
		start_reload(run, true);
	}
	weir_server_look(&run->server, instance, run->controller);
}

/* ---- in the foreground ---- */

/* Returns true if it is time to end. */
static bool take_signal(int signal_fd, struct run *run)
{
	struct signalfd_siginfo signal_info;

	if (read(signal_fd, &signal_info, sizeof(signal_info)) != sizeof(signal_info))
		return false;
	if (signal_info.ssi_signo == SIGHUP && run->hangup == WEIR_HANGUP_RELOADS)
		start_reload(run, false);
	else if (signal_info.ssi_signo == SIGCHLD)
		look_at_children(run);
	else
		return true;
	return false;
}

static int serve(struct run *run, int signal_fd)
{
	struct weir_diag diag = {};
	int err;

	do {
		err = weir_controller_serve(run->controller, signal_fd, &diag);
		weir_print_diag(&diag);
		if (err == WEIR_CONTROLLER_RELOADED)
			watch_sets(run);
	} while (err > 0);
	return err;
}

/* Control until a signal ends it (0), or the instance is gone (-ENOENT). Any other result: control never started. */
static int wait_for_end(const struct weir_options *options, struct run *run, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int signal_fd = weir_reloads_open_signals(diag);
	int err = signal_fd < 0 ? signal_fd : 0;

	if (!err && !run->controller)
		err = weir_controller_open(options->instance, run->attached_ns, &run->controller, diag);
	if (err)
		return err;
	weir_confine(WEIR_CONFINED_CONTROLLER, diag);
	weir_print_diag(diag); /* current warnings */
	weir_server_start(&run->server, options->instance, run->controller);
	notify_service(options, run->is_last_good ? "the rule files are wrong: the last good rule set" : "");
	run->reloads = (struct weir_reloads){
		.command = "weir run",
		.options = options,
		.controller = run->controller,
		.reads_rules = true,
		.load = load_files,
		.since_ns = run->read_ns,
	};
	watch_sets(run);
	do
		err = serve(run, signal_fd);
	while (!err && !take_signal(signal_fd, run));
	weir_service_stopping();
	weir_reloads_end(&run->reloads);
	weir_server_free(&run->server);
	if (err == -ENOENT || (!err && !run->leaves))
		weir_controller_give_back(run->controller);
	weir_controller_free(TAKE_PTR(run->controller));
	return err;
}

/* The controller has ended. */
static int stop(const struct weir_options *options, const struct run *run, struct weir_diag *diag)
{
	char option[WEIR_INSTANCE_OPTIONS_BYTES];
	int err;

	if (run->leaves && options->keeps)
		fputs("weir run: ended; the limits stay\n", stderr);
	else if (run->leaves)
		fprintf(stderr,
			"weir run: ended; the limits stay, as another command attached them: 'weir detach%s' takes "
			"them off\n",
			weir_instance_options(options->instance, option));
	if (run->leaves) {
		weir_controller_warn(options->instance, diag);
		return 0;
	}
	err = weir_instance_detach(options->instance, NULL, run->attached_ns, diag);
	if (!err)
		fputs("weir run: detached\n", stderr);
	return err;
}

/* The attached instance cannot be controlled: detach it, unless another controller has taken over. Returns `err`. */
static int give_up(const struct weir_options *options, const struct run *run, int err, struct weir_diag *diag)
{
	weir_print_diag(diag);
	if (err == -EBUSY)
		fputs("weir run: ended; the limits stay, as another controller runs\n", stderr);
	else if (err == -EPROTO)
		fputs("weir run: ended; the limits stay, as another version of weir has reloaded them\n", stderr);
	else if (err != -ESTALE)
		stop(options, run, diag);
	return err;
}

static const char *hangup_words(const struct weir_options *options, enum weir_hangup hangup)
{
	if (hangup == WEIR_HANGUP_ENDS)
		return ", SIGTERM or a hang-up";
	return hangup == WEIR_HANGUP_RELOADS && !reads_standard_input(options) ? " or SIGTERM (SIGHUP reloads)"
									       : " or SIGTERM";
}

/* Print the addresses that it serves on, except unix sockets, which a browser cannot open. */
static void print_addresses(const struct weir_server *server)
{
	char address[WEIR_LISTENER_BYTES];

	for (size_t i = 0; i < server->count; i++) {
		weir_listener_address(&server->listeners[i], address);
		if (server->listeners[i].path[0])
			fprintf(stderr, "weir run: serves a page, /metrics and /api/v1 on %s\n", address);
		else
			fprintf(stderr, "weir run: the page is at %s, metrics for Prometheus at %smetrics\n", address,
				address);
	}
}

/* Print what it limits, and what to type next. */
static void print_begin(const struct weir_options *options, const struct run *run)
{
	char limits[WEIR_LIMITS_BYTES], option[WEIR_INSTANCE_OPTIONS_BYTES];
	const bool is_read = weir_limits_words(options->instance, limits);

	fprintf(stderr, "weir run: instance '%s' is attached%s%s%s\n", options->instance, is_read ? ": " : "",
		is_read ? limits : "", run->observes ? "; nothing is dropped" : "");
	print_addresses(&run->server);
	weir_instance_options(options->instance, option);
	fprintf(stderr, "weir run: 'weir top%s' and 'weir stats%s' show it at work; Ctrl-C%s ends it and %s\n", option,
		option, hangup_words(options, run->hangup),
		run->leaves ? "leaves it attached" : "takes the limits off (--keep would leave them)");
}

static int run_command(int argc, char **argv)
{
	_cleanup_(weir_options_free) struct weir_options options = {};
	_cleanup_(free_run) struct run run = {};
	struct weir_diag diag = {};
	int err, exit_code = weir_options_parse(&weir_run_command, argc, argv, &options);

	if (exit_code)
		return exit_code - 1;
	run.hangup = weir_hangup_meaning();
	err = weir_server_open(&options, &run.server, &diag);
	if (!err)
		err = start(&options, &run, &diag);
	exit_code = weir_exit_code(err, &diag);
	if (err)
		return exit_code;
	print_begin(&options, &run);
	err = wait_for_end(&options, &run, &diag);
	if (err == -ENOENT) {
		/* Exit as requested: a manager that restarts failed runs must not attach what was detached. */
		fprintf(stderr, "weir run: instance '%s' was detached by another command\n", options.instance);
		return weir_exit_code(0, &diag);
	}
	if (err)
		err = give_up(&options, &run, err, &diag);
	else
		err = stop(&options, &run, &diag);
	return weir_exit_code(err, &diag);
}

const struct weir_command_entry weir_run_entry = {
	&weir_run_command, run_command, "attach, control and stay: reload on SIGHUP, detach on SIGINT or SIGTERM"};
