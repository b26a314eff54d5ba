// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command lines: the options that commands share (user/cli/options.h). Nothing runs: a command acts only on what
 * weir_options_parse() returns. The first byte names the command, and each line is an argument. Not check, explain and
 * replay, which read theirs themselves and give some letters another meaning.
 */
#include "fuzz.h"

#include <string.h>

#include "base/util.h"
#include "cli/command.h"
#include "cli/options.h"
#include "parts.h"

#define ARGUMENTS_MAX 64

static size_t split(char *text, char *argv[ARGUMENTS_MAX + 1])
{
	size_t count = 0;

	for (char *line = strtok(text, "\n"); line && count < ARGUMENTS_MAX; line = strtok(NULL, "\n"))
		argv[count++] = line;
	argv[count] = NULL;
	return count;
}

static bool reads_its_own(const char *command)
{
	return !strcmp(command, "check") || !strcmp(command, "explain") || !strcmp(command, "replay");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_(weir_options_free) struct weir_options options = {};
	const struct weir_command_entry *entry;
	char *argv[ARGUMENTS_MAX + 2] = {"weir"}, *text;
	size_t commands = 0, count;
	int exit_code;

	if (!bytes)
		return 0;
	weir_use_parts();
	while (weir_commands()[commands])
		commands++;
	FUZZ_CHECK(commands);
	entry = weir_commands()[data[0] % commands];
	if (reads_its_own(entry->command->name))
		return 0;
	text = strndup((const char *)data + 1, bytes - 1);
	FUZZ_CHECK(text);
	/* getopt keeps its place in a word of short options where the last input was refused; a command parses once. */
	optind = 0;
	getopt(1, argv, "");
	setenv("WEIR_INSTANCE", "fuzz", 1);
	count = 1 + split(text, argv + 1);
	exit_code = weir_options_parse(entry->command, (int)count, argv, &options);
	FUZZ_CHECK(exit_code >= 0 && exit_code <= WEIR_EXIT_WRONG + 1);
	if (!exit_code) {
		FUZZ_CHECK(options.argument_count >= entry->command->arguments_min);
		FUZZ_CHECK(options.argument_count <= entry->command->arguments_max);
		FUZZ_CHECK(options.instance && *options.instance && !strchr(options.instance, '/'));
		for (size_t i = 0; i < options.interface_count; i++)
			FUZZ_CHECK(*options.interfaces[i] && strlen(options.interfaces[i]) < WEIR_WANTED_BYTES);
	}
	free(text);
	return 0;
}
