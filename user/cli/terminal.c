// SPDX-License-Identifier: GPL-2.0-only
#include "cli/terminal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static enum { AUTO, ALWAYS, NEVER } color;
static bool is_wide;

static int set_color(const char *word)
{
	if (!strcmp(word, "auto"))
		color = AUTO;
	else if (!strcmp(word, "always"))
		color = ALWAYS;
	else if (!strcmp(word, "never"))
		color = NEVER;
	else
		return -EINVAL;
	return 0;
}

int weir_terminal_take_option(int letter, const char *argument)
{
	if (letter == WEIR_COLOR_OPTION)
		return set_color(argument);
	if (letter != WEIR_WIDE_OPTION)
		return -ENOENT;
	is_wide = true;
	return 0;
}

bool weir_terminal_has_colours(FILE *stream)
{
	const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");

	if (color != AUTO)
		return color == ALWAYS;
	return !(no_color && *no_color) && terminal && strcmp(terminal, "dumb") != 0 && isatty(fileno(stream));
}

int weir_terminal_columns(FILE *stream)
{
	struct winsize size;

	if (is_wide || !isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &size))
		return 0;
	return size.ws_col;
}
