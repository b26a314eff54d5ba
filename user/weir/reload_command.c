// SPDX-License-Identifier: GPL-2.0-only
/* weir reload: replace the rules of an instance in one step. */
#include "base/util.h"
#include "cli/command.h"
#include "control/controller.h"
#include "sandbox/session.h"
#include "cli/options.h"
#include "state/examine.h"
#include "weir/weir.h"

static const struct weir_command weir_reload_command = {
	.name = "reload",
	.options = "INcDofxjCh",
	.means_attached = true,
	.changes_it = true,
	.arguments = "FILE...",
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.about = "Replace the rules of an attached instance. Each packet is evaluated by the old rules or by the new "
		 "ones, never by a mix. A rule that changes only its threshold or mode keeps its windows and "
		 "counters. If a file has a mistake, nothing changes. Name all files, even unchanged ones: rules in "
		 "files you leave out are removed. The command lists the rules that were removed, changed and added. "
		 "Reload rules that name interfaces from the network namespace of those interfaces (--netns).\n\n"
		 "Rules that another version of weir attached stay in force. If that version has another layout of "
		 "some table, the reload names what would start empty and changes nothing. With --fresh it reloads "
		 "all the same, and the old rules limit until the new ones are in place. The same applies to a rule "
		 "that cannot keep its windows because its threshold outgrew their rows or begins to move (WarmUp, "
		 "MemoryAdaptive).\n\n"
		 "With --confirm, the previous rules return by themselves unless you run 'weir confirm' in time. Use "
		 "it for rules that might lock you out. The kernel itself brings the previous rules back, whatever "
		 "happens to this command and its terminal. 'weir rollback' brings them back sooner. Until you "
		 "confirm or the previous rules are back, weir accepts no other reload. It refuses rules that would "
		 "drop the SSH session in which you type this, or admit fewer than ten of its packets a second.\n\n"
		 "With --dry-run, the command checks everything, makes the kernel load the program and discard it, "
		 "and shows what would change, as 'weir diff' does." WEIR_ABOUT_FILES,
	.example = "  weir reload rules/dns-per-client.yaml\n"
		   "  weir reload --confirm 60s rules/dns-per-client.yaml",
};

static int try_reload(const struct weir_options *options, const struct weir_ruleset *ruleset,
		      const struct weir_reload_options *how, struct weir_diag *diag)
{
	_cleanup_(weir_reload_forecast_free) struct weir_reload_forecast forecast = {};
	int err = weir_instance_foresee(options->instance, ruleset, how, true, &forecast, diag);

	if (!err)
		weir_examine_attached(options->instance, ruleset, diag);
	return err ? err : weir_print_forecast(options->instance, options->wants_json, &forecast, diag);
}

static int reload(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	const struct weir_reload_options how = {
		.starts_afresh = options->starts_afresh,
		.confirm_ns = options->confirm_ns,
	};
	int err = weir_options_read_rules(options, &ruleset, diag);

	if (!err && !options->forces)
		err = weir_session_check_reload(options->instance, ruleset, diag);
	weir_hold_signals();
	if (!err && options->is_dry_run)
		return try_reload(options, ruleset, &how, diag);
	if (!err)
		err = weir_instance_reload(options->instance, ruleset, &how, &result, diag);
	if (err)
		return err;
	err = weir_print_reload_result("reloaded", options->instance, options->wants_json, &result, diag);
	if (!err) {
		weir_controller_warn(options->instance, diag);
		weir_examine_attached(options->instance, ruleset, diag);
	}
	return err;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_reload_command, argc, argv, reload);
}

const struct weir_command_entry weir_reload_entry = {&weir_reload_command, run_command,
						     "replace the rules in force, atomically"};
