// SPDX-License-Identifier: GPL-2.0-only
/*
 * weir run: attach, stay in the foreground, detach at the end. The limiter itself is in the kernel and
 * pinned; this process only waits for signals, and when it is killed the limiter goes on.
 */
#include <errno.h>
#include <signal.h>

#include "cmd.h"
#include "options.h"
#include "util.h"

static const struct weir_command command = {
	.name = "run",
	.options = "iImNkh",
	.arguments = "FILE...",
	.arguments_min = 1,
	.arguments_max = SIZE_MAX,
	.about = "Attach and stay in the foreground. SIGHUP reads the rule files again (a mistake in them is printed,\n"
		 "and the old rules go on); SIGINT and SIGTERM detach and end.",
	.example = "  weir run -i eth0 rules/dns-per-client.yaml",
};

static int start(const struct weir_options *options, uint64_t *ret_attached_ns, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	const struct weir_attach_options attach_options = {
		.instance = options->instance,
		.interfaces = options->interfaces,
		.interface_count = options->interface_count,
		.mode = options->mode,
	};
	int err = weir_options_read_rules(options, &ruleset, diag);

	return err ? err : weir_instance_attach(&attach_options, ruleset, ret_attached_ns, diag);
}

/* The process is in its network namespace already. */
static void reload(const struct weir_options *options)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	struct weir_reload_result result;
	struct weir_diag diag = {};
	int err;

	err = weir_ruleset_read((const char *const *)options->arguments, options->argument_count, &ruleset, &diag);
	if (!err)
		err = weir_instance_reload(options->instance, ruleset, &result, &diag);
	weir_exit_code(err, &diag);
	if (err)
		fputs("weir run: not reloaded, the old rules go on\n", stderr);
	else
		fprintf(stderr, "weir run: reloaded, %u rules, of which %u keep their windows\n", result.rules,
			result.kept_rules);
}

/* The signals are held since before the attach, so that none is lost. */
static void wait_for_end(const struct weir_options *options)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	for (;;) {
		int signal_number = sigwaitinfo(&signals, NULL);

		if (signal_number == SIGHUP)
			reload(options);
		else if (signal_number > 0)
			return;
	}
}

static int stop(const struct weir_options *options, uint64_t attached_ns, struct weir_diag *diag)
{
	int err;

	if (options->keeps) {
		fputs("weir run: ended, and left attached\n", stderr);
		return 0;
	}
	err = weir_instance_detach(options->instance, NULL, attached_ns, diag);
	if (!err)
		fputs("weir run: detached\n", stderr);
	return err;
}

int weir_cmd_run(int argc, char **argv)
{
	_cleanup_(weir_options_free) struct weir_options options = {};
	struct weir_diag diag = {};
	uint64_t attached_ns;
	int err, exit_code = weir_options_parse(&command, argc, argv, &options);

	if (exit_code)
		return exit_code - 1;
	if (!options.interface_count) {
		fputs("weir run: which interface? 'weir run -i IFACE FILE...'\n", stderr);
		return WEIR_EXIT_WRONG;
	}
	weir_hold_signals();
	err = start(&options, &attached_ns, &diag);
	exit_code = weir_exit_code(err, &diag);
	if (err)
		return exit_code;
	fprintf(stderr, "weir run: instance '%s' is attached; SIGHUP reloads, SIGINT and SIGTERM end\n",
		options.instance);
	wait_for_end(&options);
	return weir_exit_code(stop(&options, attached_ns, &diag), &diag);
}
