/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The terminal behind stdout and stderr: its width, and whether it shows colours. --color and --wide set this once for
 * the whole process, before anything is printed. NO_COLOR is respected as no-color.org asks: if it is set and not
 * empty. Also Ctrl-C, for commands that run for long and then clean up.
 */
#ifndef WEIR_TERMINAL_H
#define WEIR_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#define WEIR_COLOR_OPTION 'C'
#define WEIR_WIDE_OPTION 'W'

/* Take one of these two options. Returns 0; -EINVAL: the word is not valid for --color, which the caller reports;
 * -ENOENT: it is another option.
 */
int weir_terminal_take_option(int letter, const char *argument);
#define WEIR_COLOR_WORDS "auto, always or never"

bool weir_terminal_has_colours(FILE *stream);

/* Columns that a table may use; 0: as many as it needs, because there is no terminal, or --wide was given. */
int weir_terminal_columns(FILE *stream);

/* From now on Ctrl-C, SIGTERM and the end of the terminal set the flag that is returned. A second Ctrl-C, half a second
 * after the first or later, kills the process, in case the first has no effect.
 */
const volatile sig_atomic_t *weir_listen_for_stop(void);

#endif
