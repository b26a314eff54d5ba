// SPDX-License-Identifier: GPL-2.0-only
/* weir rollback: return to the rule set before the last reload. */
#include "base/util.h"
#include "cmd.h"
#include "control/controller.h"
#include "options.h"
#include "print_reload.h"

const struct weir_command weir_rollback_command = {
	.name = "rollback",
	.options = "INjCh",
	.means_attached = true,
	.changes_it = true,
	.holds_signals = true,
	.about = "Put the rule set before the last reload in force again, as a reload of its files would: each packet "
		 "meets the one or the other, and rules that both sets have keep their windows and counters. A second "
		 "rollback goes forth again. When the last reload is not confirmed yet, it is as if that had never "
		 "been. 'weir show --before' shows where it leads. The sets are kept with what is attached: a detach "
		 "forgets them.",
	.example = "  weir rollback",
};

static int rollback(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_reload_result_free) struct weir_reload_result result = {};
	int err = weir_instance_rollback(options->instance, &result, diag);

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
