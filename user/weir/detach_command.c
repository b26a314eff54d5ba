// SPDX-License-Identifier: GPL-2.0-only
/* weir detach: take an instance off its interfaces. */
#include <limits.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/command.h"
#include "control/calculator.h"
#include "instance/instance.h"
#include "cli/options.h"
#include "pins/pins.h"
#include "weir/weir.h"

static const struct weir_command weir_detach_command = {
	.name = "detach",
	.options = "iINCh",
	.means_attached = true,
	.changes_it = true,
	.holds_signals = true,
	.about = "Take the limits off the interfaces named, or off all of them. With the last interface the instance "
		 "ends and nothing is left. The other hosts of a cluster (clusterMode) then get this host's share. "
		 "The command tries for half a second to inform the store.\n\n"
		 "If the instance has a pattern that matches the interface, the interface is excluded from then on. "
		 "If you name the pattern itself ('veth*'), the limits are taken off all interfaces that it matches. "
		 "For a renamed interface, use the name that 'weir status' shows. If packets were paced "
		 "('throttling: pace') in a network namespace that weir cannot find by any process or mount, name it "
		 "with --netns.",
	.example = "  weir detach\n  weir detach -i eth1",
};

static int take_off(const struct weir_options *options, struct weir_diag *diag)
{
	int err = 0;

	if (!options->interface_count)
		return weir_instance_detach(options->instance, NULL, 0, diag);
	/* If one name is misspelled, nothing is done. */
	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = weir_instance_expect_on(options->instance, options->interfaces[i], diag);
	for (size_t i = 0; !err && i < options->interface_count; i++)
		err = weir_instance_detach(options->instance, options->interfaces[i], 0, diag);
	return err;
}

/* Prepare the messages to other hosts, one a calculator. An instance that cannot be opened is detached nevertheless. */
static void prepare_farewells(const char *name, void *farewells[WEIR_CALCULATORS_MAX])
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_diag ignored = {};

	if (!weir_instance_open_now(name, &instance, &ignored) && instance->is_settled)
		for (size_t i = 0; weir_calculators()[i]; i++)
			if (weir_calculators()[i]->prepare_farewell)
				farewells[i] = weir_calculators()[i]->prepare_farewell(instance);
	weir_diag_free(&ignored);
}

static int detach(const struct weir_options *options, struct weir_diag *diag)
{
	void *farewells[WEIR_CALCULATORS_MAX] = {};
	char path[PATH_MAX];
	int err;

	prepare_farewells(options->instance, farewells);
	err = take_off(options, diag);
	weir_pin_path(options->instance, NULL, path);
	for (size_t i = 0; weir_calculators()[i]; i++) {
		if (!farewells[i])
			continue;
		if (!err && access(path, F_OK))
			weir_calculators()[i]->say_farewell(farewells[i]);
		weir_calculators()[i]->free_farewell(farewells[i]);
	}
	return err;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_detach_command, argc, argv, detach);
}

const struct weir_command_entry weir_detach_entry = {&weir_detach_command, run_command,
						     "take the limits off interfaces"};
