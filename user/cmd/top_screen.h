/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The screen of `weir top`: draws figures (top_figures.h) with ncurses, and takes keys. The terminal is given back
 * however the program ends, but for SIGKILL.
 */
#ifndef WEIR_TOP_SCREEN_H
#define WEIR_TOP_SCREEN_H

#include <stdbool.h>

#include "base/diag.h"
#include "top_figures.h"

enum weir_top_sort {
	WEIR_TOP_BY_FILE, /* in the order of the rule files */
	WEIR_TOP_BY_OFFERED,
	WEIR_TOP_BY_DROPPED,
	WEIR_TOP_BY_SHARE,
	WEIR_TOP_BY_NAME,
	WEIR_TOP_SORTS
};

struct weir_top_screen {
	enum weir_top_sort sort;
	char filter[64];
	bool is_filtering; /* the filter is being typed */
	bool is_frozen, shows_help;
	bool is_in_flows;  /* the pane that keys move */
	size_t first_rule; /* lines scrolled away */
	size_t first_flow;
};

/* Take the terminal over. -ENOTTY, with words in diag, when it is none, or of a type that ncurses does not know. */
int weir_top_screen_begin(struct weir_diag *diag);
void weir_top_screen_end(void);

void weir_top_screen_draw(struct weir_top_screen *screen, const struct weir_top *top);

/* All keys that wait. Returns whether it is time to end. */
bool weir_top_screen_take_keys(struct weir_top_screen *screen);

#endif
