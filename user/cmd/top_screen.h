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
	WEIR_TOP_BY_DROPPED, /* or would be; of equal ones, and at first, in the order of the rule files */
	WEIR_TOP_BY_FILE,
	WEIR_TOP_BY_OFFERED,
	WEIR_TOP_BY_SHARE,
	WEIR_TOP_BY_NAME,
	WEIR_TOP_SORTS
};

struct weir_top_screen {
	enum weir_top_sort sort;
	char filter[64];
	bool is_filtering; /* the filter is being typed */
	bool is_frozen, shows_help;
	bool shows_dropped; /* in the lower pane: flows that lost packets, and not the busiest */
	bool is_in_flows;   /* the pane that keys move */
	size_t cursor;	    /* among the rules that are shown */
	size_t first_rule;  /* lines scrolled away */
	size_t first_flow;
	char asked[WEIR_NAME_BYTES]; /* a rule; empty: nothing is asked */
	bool would_observe;	     /* ... whether it shall */
	char said[256];		     /* what came of it; empty: nothing */
};

/* Take the terminal over. -ENOTTY, with words in diag, when it is none, or of a type that ncurses does not know. */
int weir_top_screen_begin(struct weir_diag *diag);
void weir_top_screen_end(void);

void weir_top_screen_draw(struct weir_top_screen *screen, const struct weir_top *top);

enum weir_top_key {
	WEIR_TOP_NONE,
	WEIR_TOP_END,
	WEIR_TOP_OBSERVE, /* the rule that was asked of shall observe, or not: would_observe */
};

/* Take the keys that wait, up to one that somebody else has to act on. */
enum weir_top_key weir_top_screen_take_keys(struct weir_top_screen *screen, const struct weir_top *top);

#endif
