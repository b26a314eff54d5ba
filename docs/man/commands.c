// SPDX-License-Identifier: GPL-2.0-only
/*
 * What man pages say of weir's commands, from the tables that --help prints. With the name of a command: its
 * description, options, example and exit codes, as sections; without one: all commands, a subsection each. With
 * "fields": what each field of a rule file may be, from the rows by which it is read.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/options.h"
#include "parts.h"
#include "rules/field_rows.h"

/* Text as it is: no character has a meaning to roff. */
static void print_literal(const char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (text[i] == '\\')
			fputs("\\e", stdout);
		else if (text[i] == '-')
			fputs("\\-", stdout);
		else if (text[i] == '\'')
			fputs("\\(aq", stdout);
		else if (text[i] == '^')
			fputs("\\(ha", stdout);
		else
			putchar(text[i]);
	}
}

/* The end of what is quoted here, or NULL: it is an apostrophe. */
static const char *find_quoted_end(const char *start, const char *quote)
{
	const char *end;

	if (quote > start && isalnum((unsigned char)quote[-1]))
		return NULL;
	for (end = quote + 1; (end = strchr(end, '\'')); end++)
		if (end > quote + 1 && !isalnum((unsigned char)end[1]))
			return end;
	return NULL;
}

/* Sentences of --help, one a line, in which what is quoted is bold. */
static void print_prose(const char *text)
{
	for (const char *at = text; *at; at++) {
		const char *end = *at == '\'' ? find_quoted_end(text, at) : NULL;

		if (end) {
			fputs("\\fB", stdout);
			print_literal(at + 1, end - at - 1);
			fputs("\\fR", stdout);
			at = end;
		} else if (*at == ' ' && at > text && at[-1] == '.') {
			putchar('\n');
		} else if (*at == '\n') {
			putchar(at[1] == '\n' ? '\n' : at > text && at[-1] == '.' ? '\n' : ' ');
			if (at[1] == '\n') {
				puts(".PP");
				at++;
			}
		} else if (*at == '.' && (at == text || at[-1] == '\n')) {
			fputs("\\&.", stdout);
		} else {
			print_literal(at, 1);
		}
	}
	putchar('\n');
}

static void print_options(const struct weir_command *command)
{
	const struct weir_option *option;

	for (size_t place = 0; (option = weir_command_option(command, place)); place++) {
		if (!strcmp(option->name, "help") || !strcmp(option->name, "color"))
			continue; /* every command has them */
		printf(".TP\n");
		if (option->is_short)
			printf("\\fB\\-%c\\fR, ", option->letter);
		fputs("\\fB\\-\\-", stdout);
		print_literal(option->name, strlen(option->name));
		fputs("\\fR", stdout);
		if (option->argument)
			printf(" \\fI%s\\fR", option->argument);
		putchar('\n');
		print_prose(option->help);
	}
}

static void print_example(const struct weir_command *command)
{
	puts(".EX");
	print_literal(command->example, strlen(command->example));
	puts("\n.EE");
}

static void print_synopsis(const struct weir_command *command)
{
	printf("\\fBweir %s\\fR [\\fIOPTIONS\\fR]", command->name);
	if (command->arguments) {
		fputs(" \\fI", stdout);
		print_literal(command->arguments, strlen(command->arguments));
		fputs("\\fR", stdout);
	}
	putchar('\n');
}

static void print_all(void)
{
	puts(".PD 0");
	for (const struct weir_command_entry *const *entry = weir_commands(); *entry; entry++) {
		printf(".TP 10\n.B %s\n", (*entry)->command->name);
		print_prose((*entry)->does);
	}
	puts(".PD\n.PP\nEvery command has\n.BR \\-\\-help ,\nand");
	puts(".BR \\-\\-color =\\fIWHEN\\fR:\n.B auto\n(the default: in a terminal, unless");
	puts(".B NO_COLOR\nis set or the terminal is\n.BR dumb ),\n.BR always ,\nor\n.BR never .");
	for (const struct weir_command_entry *const *entry = weir_commands(); *entry; entry++) {
		const struct weir_command *command = (*entry)->command;

		printf(".SS \"weir %s\"\n", command->name);
		print_synopsis(command);
		puts(".PP");
		print_prose(command->about);
		print_options(command);
		puts(".PP");
		print_example(command);
	}
}

static void print_one(const struct weir_command *command)
{
	puts(".SH SYNOPSIS");
	print_synopsis(command);
	puts(".SH DESCRIPTION");
	print_prose(command->about);
	puts(".SH OPTIONS");
	print_options(command);
	puts(".SH EXAMPLE");
	print_example(command);
	puts(".SH \"EXIT STATUS\"");
	print_prose(weir_command_exits(command));
}

/* What messages advise is stricter than the bounds where a field must be used or left out. */
static void print_values(const struct weir_field_row *row)
{
	const char *unit = row->form == WEIR_FIELD_BYTES ? " bytes" : "";
	static const char advises[] = "write ";

	if (row->form == WEIR_FIELD_OWN)
		puts("a form of its own");
	else if (row->advice && !strncmp(row->advice, advises, strlen(advises)))
		printf("%s%s\n", row->advice + strlen(advises), unit);
	else if (row->form != WEIR_FIELD_CHOICE)
		printf("%llu to %llu%s\n", (unsigned long long)row->low, (unsigned long long)row->high, unit);
	if (row->form != WEIR_FIELD_CHOICE)
		return;
	for (size_t i = 0; i < row->word_count; i++) {
		fputs(i == 0 ? "\\fB" : i + 1 < row->word_count ? ", \\fB" : " or \\fB", stdout);
		print_literal(row->words[i], strlen(row->words[i]));
		fputs("\\fR", stdout);
		if (row->has_numbers)
			printf(" (%zu)", i);
	}
	putchar('\n');
}

static void print_fields(void)
{
	static const struct {
		const char *of;
		const struct weir_field_row *rows;
		size_t count;
	} tables[] = {
		{"settings", weir_setting_rows, WEIR_SETTING_COUNT},
		{"rules", weir_rule_rows, RULE_FIELD_COUNT},
		{"circuitBreakers", weir_breaker_rows, WEIR_BREAKER_FIELD_COUNT},
	};

	for (size_t table = 0; table < sizeof(tables) / sizeof(tables[0]); table++) {
		printf(".SS \"%s\"\n.PD 0\n", tables[table].of);
		for (size_t i = 0; i < tables[table].count; i++) {
			printf(".TP 32\n.B %s\n", tables[table].rows[i].name);
			print_values(&tables[table].rows[i]);
		}
		puts(".PD");
	}
}

int main(int argc, char **argv)
{
	const struct weir_command_entry *entry;

	if (argc > 1 && !strcmp(argv[1], "fields")) {
		print_fields();
		return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	weir_use_parts();
	entry = argc > 1 ? weir_command_find(argv[1]) : NULL;
	if (argc > 1 && !entry) {
		fprintf(stderr, "no command '%s'\n", argv[1]);
		return EXIT_FAILURE;
	}
	if (entry)
		print_one(entry->command);
	else
		print_all();
	return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}
