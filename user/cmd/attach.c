// SPDX-License-Identifier: GPL-2.0-only
/* weir attach: put rules on interfaces and leave; they go on in the kernel. */
#include "base/util.h"
#include "cmd.h"
#include "control/controller.h"
#include "options.h"

const struct weir_command weir_attach_command = {
	.name = "attach",
	.options = "iImgNoh",
	.arguments = "FILE...",
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.needs_interface = true,
	.about = "Load rule files and attach them to interfaces. Nothing needs to stay running: links and maps are\n"
		 "pinned under /sys/fs/bpf/weir. When anything fails nothing is left behind. Rules whose thresholds "
		 "move\n"
		 "(WarmUp of whole resources, MemoryAdaptive) need a controller beside it: 'weir "
		 "control'." WEIR_ABOUT_FILES,
	.example = "  weir attach -i eth0 rules/dns-per-client.yaml",
};

static int attach(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	const struct weir_attach_options attach_options = weir_options_attach(options);
	int err = weir_options_read_rules(options, &ruleset, diag);

	weir_hold_signals();
	if (!err)
		err = weir_instance_attach(&attach_options, ruleset, NULL, diag);
	return err ? err : weir_controller_warn(options->instance, diag);
}

int weir_cmd_attach(int argc, char **argv)
{
	return weir_command_run(&weir_attach_command, argc, argv, attach);
}
