// SPDX-License-Identifier: GPL-2.0-only
/* weir rollback: return to the rule set before the last reload. */
#include "base/util.h"
#include "cli/command.h"
#include "control/controller.h"
#include "sandbox/session.h"
#include "cli/options.h"
#include "rules/history.h"
#include "weir/weir.h"

static const struct weir_command weir_rollback_command = {
	.name = "rollback",
	.options = "INxjCh",
	.means_attached = true,
	.changes_it = true,
	.holds_signals = true,
	.about = "Put the rule set from before the last reload back in force. Like a reload, this is atomic: each "
		 "packet is evaluated by one set or the other, and rules that both sets have keep their windows and "
		 "counters. A second rollback undoes the first. If the last reload is not confirmed yet, rollback "
		 "undoes it completely. 'weir show --before' shows the set it would return to. The instance keeps "
		 "both sets; a detach deletes them. Like 'weir reload', rollback refuses rules that would drop the "
		 "SSH session in which you type this.",
	.example = "  weir rollback",
};

/*
 * Check that the rollback would not cut off the session. A rollback must stay possible, so this check is skipped if the
 * instance cannot be read, as after an interrupted reload, or if the earlier rule set is not kept. It is also skipped
 * while rules await confirmation: the earlier ones will return in any case.
 */
static int check_session(const char *name, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	struct weir_diag messages = {};

	if (weir_instance_open_now(name, &instance, &messages)) {
		weir_diag_free(&messages); /* the rollback will report it */
		return 0;
	}
	weir_diag_move(diag, &messages, true);
	weir_instance_history(instance, &history);
	if (instance->unconfirmed.is_so || !history.sets[1])
		return 0;
	if (weir_kept_set_read(history.sets[1], &ruleset, &messages)) {
		weir_diag_free(&messages);
		return 0;
	}
	return weir_session_check_reload(name, ruleset, diag);
}

static int rollback(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	int err = options->forces ? 0 : check_session(options->instance, diag);

	if (!err)
		err = weir_instance_rollback(options->instance, &result, diag);
	if (!err)
		err = weir_print_reload_result("previous rules restored", options->instance, options->wants_json,
					       &result, diag);
	if (!err)
		weir_controller_warn(options->instance, diag);
	return err;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_rollback_command, argc, argv, rollback);
}

const struct weir_command_entry weir_rollback_entry = {&weir_rollback_command, run_command,
						       "return to the rule set before the last reload"};
