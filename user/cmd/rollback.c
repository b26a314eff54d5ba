// SPDX-License-Identifier: GPL-2.0-only
/* weir rollback: return to the rule set before the last reload. */
#include <errno.h>

#include "base/util.h"
#include "cmd.h"
#include "control/controller.h"
#include "explain/session.h"
#include "options.h"
#include "print_reload.h"
#include "rules/history.h"

const struct weir_command weir_rollback_command = {
	.name = "rollback",
	.options = "INxjCh",
	.means_attached = true,
	.changes_it = true,
	.holds_signals = true,
	.about = "Put the rule set before the last reload in force again, as a reload of its files would: each packet "
		 "meets the one or the other, and rules that both sets have keep their windows and counters. A second "
		 "rollback goes forth again. When the last reload is not confirmed yet, it is as if that had never "
		 "been. 'weir show --before' shows where it leads. The sets are kept with what is attached: a detach "
		 "forgets them. Rules that would drop the SSH session that it is typed in are refused, as by 'weir "
		 "reload'.",
	.example = "  weir rollback",
};

/* What is not kept cannot be judged, and the rollback itself says that it is not there. */
static int check_session(const char *name, struct weir_diag *diag)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_history_free) struct weir_history history = {};
	int err = weir_instance_open(name, &instance, diag);

	if (err)
		return err;
	weir_instance_history(instance, &history);
	if (!history.sets[1])
		return 0;
	err = weir_kept_set_read(history.sets[1], &ruleset, diag);
	return err ? -EIO : weir_session_check_reload(name, ruleset, diag);
}

static int rollback(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	int err = options->forces ? 0 : check_session(options->instance, diag);

	if (!err)
		err = weir_instance_rollback(options->instance, &result, diag);
	if (!err)
		err = weir_tell_reload(options->instance, options->wants_json, &result, diag);
	if (!err)
		weir_controller_warn(options->instance, diag);
	return err;
}

int weir_cmd_rollback(int argc, char **argv)
{
	return weir_command_run(&weir_rollback_command, argc, argv, rollback);
}
