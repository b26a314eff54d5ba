// SPDX-License-Identifier: GPL-2.0-only
/* weir: the command table. Each command is a file in user/cmd/. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cmd.h"
#include "version.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *does;
} commands[] = {
	{"check", weir_cmd_check, "validate rule files, show what would be loaded and the memory it takes"},
	{"run", weir_cmd_run, "attach, control and stay: reload on SIGHUP, detach on SIGINT or SIGTERM"},
	{"attach", weir_cmd_attach, "attach to interfaces and return; it goes on in the kernel"},
	{"reload", weir_cmd_reload, "replace the rules of what is attached, atomically"},
	{"detach", weir_cmd_detach, "take it off again"},
	{"control", weir_cmd_control, "move the thresholds of what is attached, as long as it runs"},
	{"status", weir_cmd_status, "what is attached, and with which rules"},
	{"stats", weir_cmd_stats, "counters, and the last minute per resource"},
	{"flows", weir_cmd_flows, "the busiest flows"},
	{"block", weir_cmd_block, "drop the packets of sources for a while"},
	{"allow", weir_cmd_allow, "let the packets of sources pass for a while"},
	{"release", weir_cmd_release, "end penalties of flows"},
	{"replay", weir_cmd_replay, "run the BPF program over a capture, in the capture's own time"},
	{"doctor", weir_cmd_doctor, "what on this host would stop or bend a limit"},
};

static void print_usage(FILE *stream)
{
	fprintf(stream, "usage: weir COMMAND [OPTIONS]\n\n"
			"weir limits packets in the kernel, per flow and exactly.\n\ncommands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].does);
	fprintf(stream, "\n'weir COMMAND --help' shows options and an example.\n"
			"exit: 0 done, 1 it failed, 2 the request or a file that it reads is wrong\n");
}

/* getopt begins its messages with argv[0]. */
static int run(size_t command, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "weir %s", commands[command].name);
	argv[0] = name;
	return commands[command].run(argc, argv);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return WEIR_EXIT_WRONG;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_usage(stdout);
		return WEIR_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version")) {
		weir_print_version();
		return WEIR_EXIT_OK;
	}
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return run(i, argc - 1, argv + 1);

	fprintf(stderr, "weir: no command '%s'; 'weir --help' lists them\n", argv[1]);
	return WEIR_EXIT_WRONG;
}
