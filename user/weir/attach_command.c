// SPDX-License-Identifier: GPL-2.0-only
/* weir attach: put rules on interfaces and leave; they stay in force in the kernel. */
#include <errno.h>

#include "base/util.h"
#include "cli/command.h"
#include "control/controller.h"
#include "sandbox/session.h"
#include "cli/options.h"
#include "cli/print.h"
#include "state/examine.h"
#include "words/words.h"
#include "weir/weir.h"

static const struct weir_command weir_attach_command = {
	.name = "attach",
	.options = "iImzZgNoxCh",
	.arguments = "FILE...",
	.arguments_min = 0,
	.arguments_max = SIZE_MAX,
	.needs_interface = true,
	.about = "Load rule files and attach them to interfaces, then return. No process has to keep running, "
		 "because links and maps are pinned under /sys/fs/bpf/weir. If anything fails, nothing is left "
		 "behind. Rules whose thresholds move (WarmUp of whole resources, MemoryAdaptive) also need a "
		 "controller; start 'weir control' for them.\n\n"
		 "Without a FILE, attach puts the rules in force on more interfaces. A pattern ('veth*', in quotes) "
		 "matches all present interfaces with such a name, except 'lo' and interfaces that are stacked on "
		 "other matching ones, such as a bridge on its ports. '!veth0' excludes an interface. While a "
		 "controller runs, interfaces that appear later are limited as well.\n\n"
		 "weir refuses rules that would drop the SSH session in which you type this, or admit fewer than ten "
		 "of its packets a second." WEIR_ABOUT_FILES,
	.example = "  weir attach -i eth0 rules/dns-per-client.yaml\n  weir attach -i eth1",
};

/* Without a rule file: add interfaces to an attached instance. */
static int add(const struct weir_options *options, const struct weir_attach_options *attach_options,
	       struct weir_diag *diag)
{
	int err = 0;

	if (options->observes)
		err = weir_diag_error(diag, NULL, NULL, "name the rule files as well, or leave '--observe' out",
				      "'--observe' needs rule files, and none are named");
	if (!err && !options->forces)
		err = weir_session_check_add(attach_options, diag);
	weir_hold_signals();
	if (!err)
		err = weir_instance_add(attach_options, diag);
	if (err != -ENOENT || weir_instance_exists(options->instance))
		return err;
	weir_diag_free(diag);
	return weir_diag_error(
		diag, NULL, NULL, "name the rule files: 'weir attach -i IFACE FILE...'",
		"no rule file given, and instance '%s' is not attached: it has no rules to put on more interfaces",
		options->instance);
}

/* "instance 'main' limits 'eth0' (native), 'eth1' (skb) by 2 rules" */
static void print_attached(const char *name, struct weir_diag *diag)
{
	char limits[WEIR_LIMITS_BYTES];

	if (weir_limits_words(name, limits))
		weir_diag_note(diag, "instance '%s' %s", name, limits);
}

static int attach(const struct weir_options *options, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	const struct weir_attach_options attach_options = weir_options_attach(options);
	char words[WEIR_NEEDS_BYTES];
	uint32_t in;
	int err;

	if (!options->argument_count) {
		err = add(options, &attach_options, diag);
		if (!err) {
			weir_examine_attached(options->instance, NULL, diag);
			print_attached(options->instance, diag);
		}
		return err;
	}
	err = weir_options_read_rules(options, &ruleset, diag);
	if (!err && !options->forces)
		err = weir_session_check_attach(&attach_options, ruleset, diag);
	weir_hold_signals();
	if (!err)
		err = weir_instance_attach(&attach_options, ruleset, NULL, diag);
	if (!err) {
		weir_controller_warn(options->instance, diag);
		weir_examine_attached(options->instance, ruleset, diag);
		print_attached(options->instance, diag);
		/* Rules of outgoing packets may need incoming ones for something else. */
		in = weir_ruleset_needs(ruleset, WEIR_DIRECTION_IN);
		if (in && !(in >> WEIR_NEED_RESOURCES & 1) && weir_ruleset_needs(ruleset, WEIR_DIRECTION_OUT))
			weir_diag_note(diag, "incoming packets are evaluated as well, for %s",
				       weir_needs_words(in, words));
	}
	return err;
}

static int run_command(int argc, char **argv)
{
	return weir_command_run(&weir_attach_command, argc, argv, attach);
}

const struct weir_command_entry weir_attach_entry = {&weir_attach_command, run_command,
						     "attach to interfaces and return; the limits stay in the kernel"};
