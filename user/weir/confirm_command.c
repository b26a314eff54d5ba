// SPDX-License-Identifier: GPL-2.0-only
/* weir confirm: keep rules that were reloaded with --confirm. */
#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "weir/weir.h"

static const struct weir_command weir_confirm_command = {
	.name = "confirm",
	.options = "INjCh",
	.means_attached = true,
	.changes_it = true,
	.holds_signals = true,
	.about = "Keep the rules that 'weir reload --confirm' put in force. Without it, the previous rules return "
		 "when the time is over. Run it in the session that the new rules might have cut off. If the command "
		 "gets through, that session still works.",
	.example = "  weir reload --confirm 60s rules/ssh.yaml && weir confirm",
};

static int confirm(const struct weir_options *options, struct weir_diag *diag)
{
	uint64_t generation;
	int err = weir_instance_confirm(options->instance, &generation, diag);

	if (err)
		return err;
	if (options->wants_json)
		return weir_json_print(json_pack("{s:s, s:I}", "instance", options->instance, "generation",
						 (json_int_t)generation),
				       diag);
	fprintf(stderr, "confirmed: the new rules stay (generation %llu)\n", (unsigned long long)generation);
	return 0;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_confirm_command, argc, argv, confirm);
}

const struct weir_command_entry weir_confirm_entry = {&weir_confirm_command, run_command,
						      "keep the rules of 'weir reload --confirm'"};
