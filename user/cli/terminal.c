// SPDX-License-Identifier: GPL-2.0-only
#include "cli/terminal.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "host/host.h"

/* ---- width and colours ---- */

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

/* ---- Ctrl-C ---- */

/* timeout(1) signals its child, and then the group that it is in: both are one request. Chosen, not derived. */
#define SAME_REQUEST_NS (500 * 1000000ull)

static volatile sig_atomic_t stop;
static volatile uint64_t stopped_ns;

static void on_signal(int number)
{
	const uint64_t now_ns = weir_host_now_ns();

	if (!stop) {
		stopped_ns = now_ns;
		stop = 1;
	} else if (now_ns - stopped_ns > SAME_REQUEST_NS) {
		signal(number, SIG_DFL);
		raise(number); /* it is blocked until this returns */
	}
}

const volatile sig_atomic_t *weir_listen_for_stop(void)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL); /* its terminal is closed */
	return &stop;
}
