// SPDX-License-Identifier: GPL-2.0-only
/* What --help prints: the text of a command, and its options from the table. */
#include <string.h>

#include "base/util.h"
#include "cmd.h"
#include "options.h"
#include "print.h"
#include "terminal.h"

#define HELP_COLUMNS 80

static const struct weir_option known_options[] = {
	{'i', true, "interface", "IFACE", "interface, 'PATTERN*' or '!EXCEPTION'; may be given several times"},
	{'I', false, "instance", "NAME",
	 "which instance (default: $" INSTANCE_VARIABLE ", or " WEIR_INSTANCE_DEFAULT ")"},
	{'A', false, "instance", "NAME", "which instance (default: $" INSTANCE_VARIABLE ", or all of them)"},
	{'m', false, "mode", "MODE", "native (in the driver), skb (any interface, slower), auto (default)"},
	{'N', false, "netns", "NAME", "network namespace, by name or path"},
	{'g', false, "allow-gro", NULL, "in skb mode, let packets that GRO or LRO merged count as one"},
	{'o', false, "observe", NULL, "evaluate and count everything, and drop nothing"},
	{'k', false, "keep", NULL, "whatever ends it, leave it attached"},
	{'f', false, "fresh", NULL,
	 "what cannot be taken over starts afresh: tables of another version of weir, windows that a rule outgrew"},
	{'c', false, "confirm", "TIME",
	 "the rules before return after that time (60s, 5m), unless 'weir confirm' comes"},
	{'D', false, "dry-run", NULL, "do all but the reload, the kernel's part too, and say what it would change"},
	{'E', false, "exit-code", NULL, "exit with 1 if something would change, and with 2 on any trouble"},
	{'b', false, "before", NULL, "the rule set that 'weir rollback' would put in force"},
	{'x', false, "force", NULL, "even if it would shut out the SSH session that it is typed in"},
	{'X', false, "force", NULL,
	 "even the source of the SSH session that it is typed in, or a prefix shorter than /8 or, of IPv6, /16"},
	{'r', false, "rule", "NAME", "only what this rule has penalised"},
	{'a', false, "all", NULL, "all that there are"},
	{'F', false, "for", "TIME", "for how long from now: 90s, 10m, 1h30m, 7d"},
	{'1', false, "once", NULL, "print once what happens in a second, and end"},
	{'l', false, "list", NULL, "print those in force, and the time that each has left"},
	{'R', false, "remove", NULL, "end it at once"},
	{'B', false, "reason", "TEXT",
	 "why, in at most 63 bytes, for sources that say none; with --sync: whose set it is; with --remove: only what "
	 "has this reason"},
	{'t', false, "extend", NULL, "leave alone what is blocked for longer than that"},
	{'u', false, "sync", "FILE",
	 "make the set equal to the lines of a feed: add, renew, and remove what is not in it; '-': standard input"},
	{'v', false, "save", "FILE", "write those in force into a file"},
	{'w', false, "restore", "FILE", "put those of such a file in force, but what has ended since"},
	{'L', false, "listen", "ADDRESS",
	 "serve a page, /metrics (Prometheus) and /api/v1 (JSON): 127.0.0.1:9617, [::1]:9617, "
	 "unix:/run/weir/main.sock; may be "
	 "given several times"},
	{'Y', false, "listen-anywhere", NULL,
	 "allow --listen to be an address that other hosts can reach: no password, no TLS"},
	{'n', true, "number", "N", "how many to show (default: 20)"},
	{'j', false, "json", NULL, "print one JSON document"},
	{'J', false, "json", NULL, "print a JSON document a line, one for each event"},
	{WEIR_WIDE_OPTION, false, "wide", NULL, "cut nothing in tables, however narrow the terminal is"},
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

/* A text in lines of a terminal's usual width. It begins at `column`, where its further lines begin as well; line ends
 * that it has itself are spaces.
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
		text += strspn(text, " \n");
	}
	fputc('\n', stream);
}

static void print_option(const struct weir_option *option, FILE *stream)
{
	char form[40];

	snprintf(form, sizeof(form), "%s%c%s--%s%s%s", option->is_short ? "-" : "",
		 option->is_short ? option->letter : ' ', option->is_short ? ", " : "   ", option->name,
		 option->argument ? " " : "", option->argument ? option->argument : "");
	print_filled(option->help, fprintf(stream, "  %-24s ", form), stream);
}

void weir_command_print_help(const struct weir_command *command, FILE *stream)
{
	const struct weir_option *option;

	fprintf(stream, "usage: weir %s [OPTIONS]%s%s\n\n", command->name, command->arguments ? " " : "",
		command->arguments ? command->arguments : "");
	print_filled(command->about, 0, stream);
	fputs("\noptions:\n", stream);
	for (size_t place = 0; (option = weir_command_option(command, place)); place++)
		print_option(option, stream);
	fprintf(stream, "\nexample:\n%s\n\n", command->example);
	print_filled(weir_command_exits(command), fprintf(stream, "exit: "), stream);
}
