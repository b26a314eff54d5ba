// SPDX-License-Identifier: GPL-2.0-only
/* The command line: the command that it names, help, the version, or candidates for completion. */
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "rules/scalars.h"

/* Most commands; two more are built in here. */
#define NAMES_MAX 64

static const char *find_nearest(const char *name)
{
	const struct weir_command_entry *const *commands = weir_commands();
	const char *names[NAMES_MAX] = {"help", "version"};
	size_t count = 2;

	for (size_t i = 0; commands[i] && count < NAMES_MAX; i++)
		names[count++] = commands[i]->command->name;
	return weir_command_synonym(name) ?: weir_nearest(name, names, count, sizeof(names[0]));
}

static void print_usage(FILE *stream)
{
	const struct weir_command_entry *const *commands = weir_commands();

	fprintf(stream, "usage: weir COMMAND [OPTIONS]\n\n"
			"weir limits packets in the kernel, per flow and exactly.\n\ncommands:\n");
	for (size_t i = 0; commands[i]; i++)
		fprintf(stream, "  %-8s %s\n", commands[i]->command->name, commands[i]->does);
	fprintf(stream, "\n'weir help COMMAND' shows options and an example; weir(8) the first steps,\n"
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

__attribute__((format(printf, 1, 2))) static int say(const char *format, ...)
{
	va_list args;

	fputs("weir: ", stderr);
	va_start(args, format);
	weir_print_clean(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	return WEIR_EXIT_WRONG;
}

static int refuse(const char *word)
{
	const char *nearest = find_nearest(word);

	if (*word == '-')
		return say("options come after the command: 'weir COMMAND %s'; 'weir --help' lists commands", word);
	if (nearest)
		return say("no command '%s'; did you mean '%s'?", word, nearest);
	return say("no command '%s'; 'weir --help' lists them", word);
}

/* name: of a command, or NULL. */
static int help(const char *name)
{
	const struct weir_command_entry *entry = name ? weir_command_find(name) : NULL;

	if (name && !strcmp(name, "version"))
		puts("usage: weir version\n\nPrint the version of weir, and of the libraries that it uses.");
	else if (name && !entry && strcmp(name, "help") != 0)
		return refuse(name);
	else if (entry)
		weir_command_print_help(entry->command, stdout);
	else
		print_usage(stdout);
	return WEIR_EXIT_OK;
}

static bool is_one_of(const char *word, const char *first, const char *second, const char *third)
{
	return !strcmp(word, first) || !strcmp(word, second) || !strcmp(word, third);
}

int weir_run_command_line(int argc, char **argv)
{
	const struct weir_command_entry *entry;

	/* A write beyond the limit of file sizes fails then, and what was begun is cleaned up. */
	signal(SIGXFSZ, SIG_IGN);
	if (argc < 2) {
		print_usage(stderr);
		return WEIR_EXIT_WRONG;
	}
	if (is_one_of(argv[1], "--help", "-h", "help"))
		return help(argv[2]);
	if (is_one_of(argv[1], "--version", "-V", "version")) {
		weir_print_version();
		return WEIR_EXIT_OK;
	}
	if (!strcmp(argv[1], "--complete"))
		return weir_complete(argc - 2, argv + 2);
	entry = weir_command_find(argv[1]);
	return entry ? run(entry, argc - 1, argv + 1) : refuse(argv[1]);
}
