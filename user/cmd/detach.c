// SPDX-License-Identifier: GPL-2.0-only
/* weir detach: take an instance off its interfaces. */
#include <limits.h>
#include <unistd.h>

#include "base/util.h"
#include "cmd.h"
#include "instance/instance.h"
#include "options.h"
#include "pins/pins.h"
#include "store/farewell.h"

const struct weir_command weir_detach_command = {
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

/* Prepare the message to other hosts. An instance that cannot be opened is detached nevertheless. */
static struct weir_farewell *prepare_farewell(const char *name)
{
	_cleanup_(weir_instance_freep) struct weir_instance *instance = NULL;
	struct weir_diag ignored = {};
	struct weir_farewell *farewell = NULL;

	if (!weir_instance_open_now(name, &instance, &ignored) && instance->is_settled)
		farewell = weir_farewell_prepare(instance);
	weir_diag_free(&ignored);
	return farewell;
}

static int detach(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_farewell_freep) struct weir_farewell *farewell = prepare_farewell(options->instance);
	char path[PATH_MAX];
	int err = take_off(options, diag);

	weir_pin_path(options->instance, NULL, path);
	if (!err && farewell && access(path, F_OK))
		weir_farewell_say(farewell);
	return err;
}

int weir_cmd_detach(int argc, char **argv)
{
	return weir_command_run(&weir_detach_command, argc, argv, detach);
}
