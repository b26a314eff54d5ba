// SPDX-License-Identifier: GPL-2.0-only
/* weir reload: replace the rules of an instance in one step. */
#include "base/util.h"
#include "cmd.h"
#include "control/controller.h"
#include "explain/session.h"
#include "options.h"
#include "print_diff.h"
#include "print_reload.h"
#include "state/examine.h"

const struct weir_command weir_reload_command = {
	.name = "reload",
	.options = "INcDofxjCh",
	.means_attached = true,
	.changes_it = true,
	.arguments = "FILE...",
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.about =
		"Replace the rules of what is attached. Each packet meets the old rules or the new ones, never a mix.\n"
		"A rule that stays the same but for its threshold or mode keeps its windows and counters. A mistake\n"
		"in a file changes nothing. Name all the files, also those that did not change: the rules of others\n"
		"go. It says which rules went, changed and came. Rules that name interfaces are reloaded from the\n"
		"network namespace that these are in (--netns).\n"
		"What another version of weir attached goes on, too. Where it laid out tables differently, a reload\n"
		"names what would start afresh, and changes nothing; --fresh does so, and the old rules hold until\n"
		"the new ones are in place. The same of a rule whose windows the new rules cannot go on with: its\n"
		"threshold outgrew the rows that hold them, or begins to move (WarmUp, MemoryAdaptive).\n"
		"With --confirm the rules before return by themselves unless 'weir confirm' comes in time: for rules\n"
		"that might shut out who types them. The kernel itself returns, whatever becomes of this command and\n"
		"its terminal. 'weir rollback' returns sooner; until then nothing else is reloaded.\n"
		"Rules that would drop the SSH session that it is typed in, or let fewer than ten of its packets a\n"
		"second through, are refused.\n"
		"With --dry-run everything is checked, the program is loaded by the kernel and thrown away, and it "
		"says what would change, as 'weir diff' does." WEIR_ABOUT_FILES,
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
	err = weir_tell_reload(options->instance, options->wants_json, &result, diag);
	if (!err) {
		weir_controller_warn(options->instance, diag);
		weir_examine_attached(options->instance, ruleset, diag);
	}
	return err;
}

int weir_cmd_reload(int argc, char **argv)
{
	return weir_command_run(&weir_reload_command, argc, argv, reload);
}
