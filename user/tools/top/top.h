/* SPDX-License-Identifier: GPL-2.0-only */
/* House top: `weir top`: figures, the screen that draws them, and the keys. */
#ifndef WEIR_TOP_H
#define WEIR_TOP_H

#include "cli/command.h"

extern const struct weir_command_entry weir_top_entry;

#endif
