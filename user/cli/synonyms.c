// SPDX-License-Identifier: GPL-2.0-only
/* The names of our commands in other tools. */
#include <stddef.h>
#include <string.h>

#include "base/util.h"
#include "cli/command.h"

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
