// SPDX-License-Identifier: GPL-2.0-only
/* The list of commands, which --help and the man page show and completion offers. */
#include "cli/command.h"

#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "cli/options.h"

static const struct weir_command_entry *const none[] = {NULL};
static const struct weir_command_entry *const *commands = none;

void weir_use_commands(const struct weir_command_entry *const *list)
{
	commands = list;
}

const struct weir_command_entry *const *weir_commands(void)
{
	return commands;
}

const struct weir_command_entry *weir_command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (!strcmp(commands[i]->command->name, name))
			return commands[i];
	return NULL;
}

/* The names of our commands in other tools. */
static const struct {
	const char *theirs, *ours;
} synonyms[] = {
	{"ban", "block"},   {"unban", "block --remove"}, {"unblock", "block --remove"},
	{"log", "events"},  {"logs", "events"},		 {"start", "run"},
	{"stop", "detach"},
};

const char *weir_command_synonym(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(synonyms); i++)
		if (!strcmp(name, synonyms[i].theirs))
			return synonyms[i].ours;
	return NULL;
}
