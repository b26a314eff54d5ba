// SPDX-License-Identifier: GPL-2.0-only
/* weir replay: what would these rules have done to this capture? */
#include "replay/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/diag.h"
#include "base/util.h"
#include "cli/command.h"
#include "kind/kind.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/terminal.h"
#include "rules/ruleset.h"
#include "files/output.h"

/* The request; the files point to main's arguments. */
struct replay_request {
	struct weir_replay_options options;
	const char **files; /* rule files; while the command line is read, also the capture */
	size_t file_count;
	size_t argument_end; /* one more than the index of the last argument without -r; 0: there was none */
	bool has_rules_option, wants_json;
};

static const struct weir_option own_options[] = {
	{'r', true, "rules", "FILE...", "rule files, or directories of them; merged in the order given"},
	{'v', false, "verdicts", "CSV",
	 "write a line for each packet: packet,time_ns,verdict,wait_ns,resources,rule; resources is empty if none was "
	 "looked up (malformed, in a list, ...)"},
	{'w', false, "verdicts-wide", "CSV", "like --verdicts, with the columns saddr,daddr,proto,sport,dport added"},
	{'p', false, "passed", "PCAP", "write the packets that pass, as captured, at the time they would leave"},
	{'a', false, "answers", "PCAP", "write the answers to blocked packets (onBlock), at the time of the packet"},
	{'P', false, "plot", "SVG", "draw offered, admitted and threshold over time, for each resource"},
	{'m', false, "memory", "CSV",
	 "memory readings, time_ns,used_bytes, each valid from its time on; before the first, highMemUsageThreshold "
	 "applies"},
	{'s', false, "system", "CSV",
	 "load and CPU usage, time_ns,load1,cpu_usage, each valid from its time on; before the first, Load and "
	 "CpuUsage rules admit"},
	{'i', false, "interface", "IFACE", "the interface that the capture was taken on, for match.interface"},
	{'d', false, "direction", "in|out",
	 "the direction of packets for which the capture has none (default: in); adds it to the verdicts as the last "
	 "column"},
	{'M', false, "mode", "xdp|tc",
	 "evaluate incoming packets by XDP or at tc ingress (default: xdp); the verdicts are the same"},
	{'n', false, "no-shortcuts", NULL, "evaluate without the program's shortcuts: slower, with the same verdicts"},
	{},
};

static const struct weir_command weir_replay_command = {
	.name = "replay",
	.own_options = own_options,
	.options = "jWCh",
	.arguments = "-r FILE... PCAP",
	.about = "Run the BPF program that would be attached over a capture, by the capture's timestamps, and show "
		 "what happens to every packet. It does not affect any interface or instance. A packet that went out, "
		 "according to pcapng's flags or the header of 'any', is evaluated by the resources of that direction. "
		 "The capture is pcap or pcapng, of Ethernet, 'any' (LINUX_SLL, LINUX_SLL2), raw IP, BSD loopback, PPP "
		 "or NFLOG; the interfaces of a pcapng file may differ. Byte counts include an Ethernet header.",
	.example = "  weir replay --verdicts verdicts.csv -r rules/dns-per-client.yaml traffic.pcap",
	.exits = "0 done, 1 it failed or the capture is damaged, 2 the request or a file that it reads is wrong",
};

/* ---- while it runs ---- */

static void print_progress(uint64_t done, uint64_t total)
{
	if (done < total)
		fprintf(stderr, "\rreplay: %3" PRIu64 " %% of %" PRIu64 " packets", done * 100 / total, total);
	else
		fprintf(stderr, "\r%60s\r", "");
}

/* ---- the output files ---- */

static int wrong(const char *reason)
{
	fprintf(stderr, "weir replay: %s; 'weir replay --help' shows how\n", reason);
	return WEIR_EXIT_WRONG;
}

static bool is_input(const struct replay_request *request, const char *path)
{
	struct stat file;

	if (!path || stat(path, &file))
		return false;
	for (size_t i = 0; i < request->file_count; i++)
		if (weir_is_file(request->files[i], &file))
			return true;
	return weir_is_file(request->options.run.capture, &file) ||
	       (request->options.memory && weir_is_file(request->options.memory, &file)) ||
	       (request->options.system && weir_is_file(request->options.system, &file));
}

static int refuse_output(const char *path)
{
	fprintf(stderr, "weir replay: '%s' is an input: writing a result there would destroy it\n", path);
	fputs("name another file for the result\n", stderr);
	return WEIR_EXIT_WRONG;
}

#define OUTPUTS_OF(options)                                                                                            \
	{                                                                                                              \
		(options)->verdicts, (options)->passed, (options)->answers, (options)->plot                            \
	}

static int check_outputs(const struct replay_request *request)
{
	const struct weir_replay_options *options = &request->options;
	const char *const outputs[] = OUTPUTS_OF(options);

	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		for (size_t j = 0; j < i; j++)
			if (weir_are_same_file(outputs[i], outputs[j]))
				return wrong("two of --verdicts, --passed, --answers and --plot name the same file");
	for (size_t i = 0; i < ARRAY_SIZE(outputs); i++)
		if (outputs[i] && !*outputs[i])
			return wrong("one of --verdicts, --passed, --answers and --plot has an empty file name");
		else if (outputs[i] && !strcmp(outputs[i], "-"))
			return wrong("'-' is not a file, and the summary goes to stdout: name a file, or /dev/stderr");
		else if (is_input(request, outputs[i]))
			return refuse_output(outputs[i]);
	return WEIR_EXIT_OK;
}

/* An output must not be a file in a directory of rules either, or a file that the rules name. */
static int check_lists(const struct replay_request *request, const struct weir_ruleset *ruleset)
{
	const struct weir_replay_options *options = &request->options;
	const char *const outputs[] = OUTPUTS_OF(options);
	bool is_read = false;

	for (size_t j = 0; j < ARRAY_SIZE(outputs) && !is_read; j++) {
		for (size_t i = 0; i < ruleset->list_count; i++)
			is_read |= weir_are_same_file(outputs[j], ruleset->list_names[i]);
		for (size_t i = 0; i < ruleset->file_count; i++)
			is_read |= weir_are_same_file(outputs[j], ruleset->file_names[i]);
		if (is_read)
			refuse_output(outputs[j]);
	}
	return is_read ? -EINVAL : 0;
}

/* ---- the command ---- */

static int replay(struct replay_request *request, struct weir_diag *diag)
{
	_cleanup_(weir_ruleset_freep) struct weir_ruleset *ruleset = NULL;
	_cleanup_(weir_replay_report_free) struct weir_replay_report report = {};
	int err;

	err = weir_ruleset_read(request->files, request->file_count, &ruleset, diag);
	if (!err)
		err = check_lists(request, ruleset);
	if (err)
		return err;
	request->options.run.stop = weir_listen_for_stop();
	request->options.run.progress = isatty(STDERR_FILENO) ? print_progress : NULL;
	err = weir_replay(ruleset, &request->options, &report, diag);
	if (err)
		return err;
	if (request->wants_json) {
		err = weir_replay_print_json(ruleset, &report, diag);
	} else {
		weir_replay_print_text(ruleset, &report);
		err = weir_flush_results(diag);
	}
	if (err)
		return err;
	return report.is_damaged ? -EBADMSG : 0;
}

static void take_file(struct replay_request *request, const char *path, bool is_argument)
{
	request->files[request->file_count++] = path;
	if (is_argument)
		request->argument_end = request->file_count;
}

/* The last argument is the capture; those before it are further rule files of a -r. */
static void part_capture(struct replay_request *request)
{
	size_t end = request->argument_end;

	if (!end)
		return;
	request->options.run.capture = request->files[end - 1];
	memmove(&request->files[end - 1], &request->files[end],
		(request->file_count-- - end) * sizeof(*request->files));
}

static int take_option(void *data, int option, const char *argument)
{
	struct replay_request *request = data;

	switch (option) {
	case WEIR_OPTION_ARGUMENT:
		take_file(request, argument, true);
		return 0;
	case 'r':
		request->has_rules_option = true;
		take_file(request, argument, false);
		return 0;
	case 'v':
	case 'w':
		if (request->options.verdicts && request->options.verdicts_are_wide != (option == 'w')) {
			wrong("--verdicts and --verdicts-wide exclude each other: leave one out");
			return -EINVAL;
		}
		request->options.verdicts = argument;
		request->options.verdicts_are_wide = option == 'w';
		return 0;
	case 'p':
		request->options.passed = argument;
		return 0;
	case 'a':
		request->options.answers = argument;
		return 0;
	case 'P':
		request->options.plot = argument;
		return 0;
	case 'm':
		request->options.memory = argument;
		return 0;
	case 's':
		request->options.system = argument;
		return 0;
	case 'i':
		request->options.run.interface = argument;
		return 0;
	case 'd':
		request->options.run.shows_direction = true;
		return weir_options_take_direction(&weir_replay_command, argument, &request->options.run.direction);
	case 'M':
		request->options.run.is_at_tc = !strcmp(argument, "tc");
		if (request->options.run.is_at_tc || !strcmp(argument, "xdp"))
			return 0;
		wrong("--mode: write xdp or tc");
		return -EINVAL;
	case 'n':
		request->options.run.is_without_shortcuts = true;
		return 0;
	case 'j':
		request->wants_json = true;
		return 0;
	}
	return -EINVAL;
}

static int check_request(const struct replay_request *request)
{
	const struct weir_replay_options *options = &request->options;

	if (!options->run.capture)
		return wrong("no capture given");
	if (!request->has_rules_option)
		return wrong("no rule file given: name it with '-r FILE'");
	if (options->run.interface && !weir_interface_name_is_valid(options->run.interface))
		return wrong("--interface: not a valid interface name");
	return check_outputs(request);
}

static int run_command(int argc, char **argv)
{
	_cleanup_(weir_freep) const char **files = calloc(argc, sizeof(*files));
	struct replay_request request = {.files = files};
	struct weir_diag diag = {};
	int code;

	if (!files)
		return WEIR_EXIT_FAILED;
	/* In order, so that rule files keep theirs. */
	code = weir_options_read(&weir_replay_command, argc, argv, true, take_option, &request);
	if (code)
		return code - 1;
	while (optind < argc) /* arguments after "--" */
		take_file(&request, argv[optind++], true);
	part_capture(&request);
	code = check_request(&request);
	if (code)
		return code;
	return weir_exit_code(replay(&request, &diag), &diag);
}

const struct weir_command_entry weir_replay_entry = {&weir_replay_command, run_command,
						     "run the rules over a capture, in the capture's own time"};
