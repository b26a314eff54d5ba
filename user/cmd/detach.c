// SPDX-License-Identifier: GPL-2.0-only
/* weir detach: take an instance off its interfaces. */
#include "base/util.h"
#include "cmd.h"
#include "options.h"

const struct weir_command weir_detach_command = {
	.name = "detach",
	.options = "iINCh",
	.means_attached = true,
	.changes_it = true,
	.holds_signals = true,
	.about = "Take the rules off the interfaces named, or off all of them. With the last one the instance goes,\n"
		 "and nothing is left. One that a pattern means is excepted from then on; a pattern ('veth*', as it "
		 "was\n"
		 "given) takes off all that it means. An interface that was renamed is named as 'weir status' shows "
		 "it. Where packets\n"
		 "were held back ('throttling: pace') in a network namespace that no process and no mount leads to,\n"
		 "--netns says where.",
	.example = "  weir detach\n  weir detach -i eth1",
};

static int detach(const struct weir_options *options, struct weir_diag *diag)
{
	int err = 0;

	if (!options->interface_count)
		return weir_instance_detach(options->instance, NULL, 0, diag);
	/* One that is misspelled: then nothing is done. */
	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = weir_instance_expect_on(options->instance, options->interfaces[i], diag);
	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = weir_instance_detach(options->instance, options->interfaces[i], 0, diag);
	return err;
}

int weir_cmd_detach(int argc, char **argv)
{
	return weir_command_run(&weir_detach_command, argc, argv, detach);
}
