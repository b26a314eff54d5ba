/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is behind stdout and stderr: how wide it is, and whether it shows colours. Said once for the whole process by
 * --color and --wide, before anything is printed. NO_COLOR is obeyed as no-color.org asks: when set and not empty.
 */
#ifndef WEIR_TERMINAL_H
#define WEIR_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#define WEIR_COLOR_OPTION 'C'
#define WEIR_WIDE_OPTION 'W'

/* Take one of the two. 0; -EINVAL: --color has no such word, which the caller reports; -ENOENT: another option. */
int weir_terminal_take_option(int letter, const char *argument);
#define WEIR_COLOR_WORDS "auto, always or never"

bool weir_terminal_has_colours(FILE *stream);

/* Columns that a table may take; 0: as many as it needs, as it is not a terminal, or was asked to be wide. */
int weir_terminal_columns(FILE *stream);

#endif
