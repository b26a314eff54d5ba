// SPDX-License-Identifier: GPL-2.0-only
/* The output of --help: a command's text, and its options from the table. */
#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/terminal.h"

#define HELP_COLUMNS 80

static const struct weir_option known_options[] = {
	{'i', true, "interface", "IFACE", "interface, 'PATTERN*' or '!EXCEPTION'; repeatable"},
	{'I', false, "instance", "NAME",
	 "which instance (default: $" INSTANCE_VARIABLE ", or " WEIR_INSTANCE_DEFAULT ")"},
	{'A', false, "instance", "NAME", "which instance (default: $" INSTANCE_VARIABLE ", or all of them)"},
	{'m', false, "mode", "MODE",
	 "native (in the driver), skb or tc (any interface, slower; tc counts the segments of merged packets), auto "
	 "(default: native, else skb)"},
	{'N', false, "netns", "NAME", "network namespace, by name or path"},
	{'z', false, "before", "PROGRAM", "at tc, run before the tcx program of this number, or before 'all'"},
	{'Z', false, "after", "PROGRAM", "at tc, run right after the tcx program of this number (default: last)"},
	{'g', false, "allow-gro", NULL, "in skb mode, let packets that GRO or LRO merged count as one"},
	{'o', false, "observe", NULL, "evaluate and count everything, but drop nothing"},
	{'k', false, "keep", NULL, "stay attached, whatever ends this command"},
	{'f', false, "fresh", NULL,
	 "let what cannot be taken over start empty: tables of another version of weir, windows that a rule outgrew"},
	{'c', false, "confirm", "TIME",
	 "the previous rules return after this time (60s, 5m), unless 'weir confirm' comes first"},
	{'D', false, "dry-run", NULL,
	 "do everything but the reload, including the kernel's checks, and show what it would change"},
	{'E', false, "exit-code", NULL, "exit with 1 if something would change, and with 2 on any error"},
	{'b', false, "before", NULL, "show the rule set that 'weir rollback' would put in force"},
	{'x', false, "force", NULL, "do it even if it cuts off the SSH session in which you type this"},
	{'X', false, "force", NULL,
	 "accept even the source of your own SSH session, or a prefix shorter than /8 (IPv4) or /16 (IPv6)"},
	{'r', false, "rule", "NAME", "only flows that this rule has penalised"},
	{'a', false, "all", NULL, "all of them"},
	{'F', false, "for", "TIME", "for how long from now: 90s, 10m, 1h30m, 7d"},
	{'1', false, "once", NULL, "print one second's figures, and end"},
	{'l', false, "list", NULL, "list the entries in force, and the time that each has left"},
	{'R', false, "remove", NULL, "end entries at once"},
	{'B', false, "reason", "TEXT",
	 "the reason, at most 63 bytes, for sources without one; with --sync and --remove, only entries with this "
	 "reason"},
	{'G', false, "by", "NAME",
	 "the program that gives the order (default: hand), for sources without one; with --list, --sync, --save and "
	 "--remove, only its entries"},
	{'t', false, "extend", NULL, "keep existing entries that last longer than the new ones would"},
	{'u', false, "sync", "FILE",
	 "make the entries equal to a feed: add and renew the sources in it, and remove all others; '-': standard "
	 "input"},
	{'v', false, "save", "FILE", "write the entries in force to a file"},
	{'w', false, "restore", "FILE",
	 "put the entries of a file that --save wrote back in force, except those that have ended since"},
	{'L', false, "listen", "ADDRESS",
	 "serve a page, /metrics (Prometheus) and /api/v1 (JSON): 127.0.0.1:9617, [::1]:9617, "
	 "unix:/run/weir/main.sock; repeatable"},
	{'Y', false, "listen-anywhere", NULL,
	 "let --listen take an address that other hosts can reach: there is no password and no TLS"},
	{'n', true, "number", "N", "how many to show (default: 20)"},
	{'j', false, "json", NULL, "print one JSON document"},
	{'J', false, "json", NULL, "print one JSON document per event, one per line"},
	{WEIR_WIDE_OPTION, false, "wide", NULL, "do not cut table columns to the terminal's width"},
	{WEIR_COLOR_OPTION, false, "color", "WHEN",
	 "auto (in a terminal, unless NO_COLOR is set), always or never; default: auto"},
	{'h', true, "help", NULL, "this text"},
};

static const struct weir_option *find_option(int letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(known_options); i++)
		if (known_options[i].letter == letter)
			return &known_options[i];
	abort(); /* a command names an option that is not in the table */
}

const struct weir_option *weir_command_option(const struct weir_command *command, size_t place)
{
	const struct weir_option *own = command->own_options;

	for (; own && own->name; own++)
		if (place-- == 0)
			return own;
	return place < strlen(command->options) ? find_option(command->options[place]) : NULL;
}

const char *weir_command_exits(const struct weir_command *command)
{
	if (command->exits)
		return command->exits;
	return command->arguments && !strcmp(command->arguments, "FILE...")
		       ? "0 done, 1 it failed, 2 the request or a rule file is wrong"
		       : "0 done, 1 it failed, 2 the request is wrong";
}

/* Print text wrapped to a terminal's usual width. It starts at `column`, to which further lines are indented. An empty
 * line starts a paragraph; other line ends are spaces.
 */
static void print_filled(const char *text, int column, FILE *stream)
{
	int end = column;

	while (*text) {
		int bytes = strcspn(text, " \n");

		if (end > column && end + 1 + bytes > HELP_COLUMNS)
			end = fprintf(stream, "\n%*s", column, "") - 1;
		else if (end > column)
			end += fprintf(stream, " ");
		end += fprintf(stream, "%.*s", bytes, text);
		text += bytes;
		if (!strncmp(text, "\n\n", 2))
			end = fprintf(stream, "\n\n%*s", column, "") - 2;
		text += strspn(text, " \n");
	}
	fputc('\n', stream);
}

void weir_command_print_help(const struct weir_command *command, FILE *stream)
{
	const struct weir_option *option;

	fprintf(stream, "usage: weir %s [OPTIONS]%s%s\n\n", command->name, command->arguments ? " " : "",
		command->arguments ? command->arguments : "");
	print_filled(command->about, 0, stream);
	fputs("\noptions:\n", stream);
	for (size_t place = 0; (option = weir_command_option(command, place)); place++) {
		char form[40];

		snprintf(form, sizeof(form), "%s%c%s--%s%s%s", option->is_short ? "-" : "",
			 option->is_short ? option->letter : ' ', option->is_short ? ", " : "   ", option->name,
			 option->argument ? " " : "", option->argument ? option->argument : "");
		print_filled(option->help, fprintf(stream, "  %-24s ", form), stream);
	}
	fprintf(stream, "\nexample:\n%s\n\n", command->example);
	print_filled(weir_command_exits(command), fprintf(stream, "exit: "), stream);
}
