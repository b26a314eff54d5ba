// SPDX-License-Identifier: GPL-2.0-only
/* weir diff: what a reload of these files would change. */
#include <errno.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "weir/weir.h"

static const struct weir_command weir_diff_command = {
	.name = "diff",
	.options = "EINofjCh",
	.means_attached = true,
	.arguments = "FILE...",
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.about = "Show what a reload of these files would change, line by line: settings, lists, resources and rules; "
		 "which rules keep their windows and counters, which start empty, and why; and how much memory it "
		 "takes. It evaluates the files exactly as a reload does, and changes nothing. 'weir reload --dry-run' "
		 "also asks the kernel.",
	.example = "  weir diff rules/dns-per-client.yaml\n"
		   "  weir diff --exit-code /etc/weir/rules.yaml || weir reload /etc/weir/rules.yaml",
	.exits = "0 done, 1 it failed, 2 the request or a rule file is wrong; with --exit-code 0 nothing would change, "
		 "1 something would, 2 any error",
};

/* Returned by act if there are differences and the exit code is to report them. */
#define DIFFERS 1

static int diff(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_reload_forecast_free) struct weir_reload_forecast forecast = {};
	const struct weir_reload_options how = {
		.starts_afresh = options->starts_afresh,
	};
	int err = weir_options_read_rules(options, &ruleset, diag);

	if (!err)
		err = weir_instance_foresee(options->instance, ruleset, &how, false, &forecast, diag);
	if (!err)
		err = weir_print_forecast(options->instance, options->wants_json, &forecast, diag);
	if (err)
		return options->sets_exit_code ? -EINVAL : err; /* 1 means that there are differences */
	return options->sets_exit_code && forecast.changes.changes_anything ? DIFFERS : 0;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_diff_command, argc, argv, diff);
}

const struct weir_command_entry weir_diff_entry = {&weir_diff_command, run_command,
						   "show what a reload would change, keep and start empty"};
