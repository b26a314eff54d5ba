/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests load the program without shortcuts (enum weir_shortcut, or-ed; `all`) when the environment's
 * WEIR_WITHOUT_SHORTCUTS says so, and then also as it was compiled, unfolded (fold/fold.h): verdicts must be the same.
 * tests/run runs the suite `bpf` both ways.
 */
#ifndef WEIR_TEST_SHORTCUTS_H
#define WEIR_TEST_SHORTCUTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weir_abi.h"

static inline uint32_t shortcuts_left_out(void)
{
	const char *text = getenv("WEIR_WITHOUT_SHORTCUTS");

	if (!text || !*text)
		return 0;
	return !strcmp(text, "all") ? WEIR_SHORTCUTS_ALL : (uint32_t)strtoul(text, NULL, 0);
}

static inline bool is_left_unfolded(void)
{
	return shortcuts_left_out();
}

#endif
