/* SPDX-License-Identifier: GPL-2.0-only */
/* What the command lines of the tools have in common: a value that is wrong ends the tool with 2. */
#ifndef WEIR_TEST_TOOL_H
#define WEIR_TEST_TOOL_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline void wrong(const char *what, const char *value)
{
	fprintf(stderr, "%s: %s: '%s'\n", program_invocation_short_name, what, value);
	exit(2);
}

static inline uint64_t number(const char *what, const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);

	if (end == text || *end)
		wrong(what, text);
	return value;
}

#endif
