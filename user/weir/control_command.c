// SPDX-License-Identifier: GPL-2.0-only
/* weir control: move the thresholds of an attached instance, in the foreground. */
#include <errno.h>

#include "base/util.h"
#include "cli/command.h"
#include "control/controller.h"
#include "host/confine.h"
#include "cli/options.h"
#include "weir/weir.h"

static const struct weir_command weir_control_command = {
	.name = "control",
	.options = "INCh",
	.means_attached = true,
	.holds_signals = true,
	.about = "Be the controller of an attached instance: while it runs, WarmUp rules warm up and MemoryAdaptive "
		 "rules follow the memory in use. It ends on SIGINT, SIGTERM, SIGHUP or a detach. After a signal, "
		 "the rules stay in force with safe thresholds. Interfaces that appear or return are limited, as "
		 "with 'weir run', in the network namespace in which this command runs. Failures are reported and "
		 "retried. 'weir run' is its own controller and does not need this command.",
	.example = "  weir control --instance main",
};

static int control(const struct weir_options *options, struct weir_diag *diag)
{
	const char *instance = options->instance;
	_cleanup_(weir_controller_freep) struct weir_controller *controller = NULL;
	_cleanup_(weir_closep) int signal_fd = weir_open_end_signals(diag);
	int err;

	if (signal_fd < 0)
		return signal_fd;
	err = weir_controller_open(instance, 0, &controller, diag);
	if (err)
		return err;
	weir_confine(WEIR_CONFINED_CONTROLLER, diag);
	fprintf(stderr, "weir control: controlling instance '%s'; rules that need a controller: %u\n", instance,
		weir_controller_rule_count(controller));
	do {
		weir_print_diag(diag);
		err = weir_controller_serve(controller, signal_fd, diag);
	} while (err > 0);
	if (err != -ENOENT)
		return err;
	weir_controller_give_back(controller);
	fprintf(stderr, "weir control: instance '%s' was detached; nothing is left to control\n", instance);
	return 0;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_control_command, argc, argv, control);
}

const struct weir_command_entry weir_control_entry = {&weir_control_command, run_command,
						      "move thresholds (WarmUp, MemoryAdaptive, ...) while it runs"};
