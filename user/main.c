// SPDX-License-Identifier: GPL-2.0-only
/* weir: one command of the table in user/cmd/commands.c. Each is a file in user/cmd/. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "complete.h"
#include "options.h"
#include "version.h"

static void print_usage(FILE *stream)
{
	fprintf(stream, "usage: weir COMMAND [OPTIONS]\n\n"
			"weir limits packets in the kernel, per flow and exactly.\n\ncommands:\n");
	for (const struct weir_command_entry *entry = weir_commands; entry->run; entry++)
		fprintf(stream, "  %-8s %s\n", entry->command->name, entry->does);
	fprintf(stream, "\n'weir COMMAND --help' shows options and an example; weir(8) the first steps,\n"
			"weir-rules(5) rule files.\n"
			"exit: 0 done, 1 it failed, 2 the request or a file that it reads is wrong\n");
}

/* getopt begins its messages with argv[0]. */
static int run(const struct weir_command_entry *entry, int argc, char **argv)
{
	char name[32];

	snprintf(name, sizeof(name), "weir %s", entry->command->name);
	argv[0] = name;
	return entry->run(argc, argv);
}

int main(int argc, char **argv)
{
	const struct weir_command_entry *entry;
	const char *nearest;

	/* A write beyond the limit of file sizes fails then, and what was begun is cleaned up. */
	signal(SIGXFSZ, SIG_IGN);
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
	if (!strcmp(argv[1], "--complete"))
		return weir_complete(argc - 2, argv + 2);
	entry = weir_command_find(argv[1]);
	if (entry)
		return run(entry, argc - 1, argv + 1);

	nearest = weir_command_nearest(argv[1]);
	if (nearest)
		fprintf(stderr, "weir: no command '%s'; did you mean '%s'?\n", argv[1], nearest);
	else
		fprintf(stderr, "weir: no command '%s'; 'weir --help' lists them\n", argv[1]);
	return WEIR_EXIT_WRONG;
}
