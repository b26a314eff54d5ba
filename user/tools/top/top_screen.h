/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The screen of `weir top`: draws figures (top_figures.h) with ncurses, and reads keys. The terminal is
 * restored however the program ends, except by SIGKILL.
 */
#ifndef WEIR_TOP_SCREEN_H
#define WEIR_TOP_SCREEN_H

#include <stdbool.h>

#include "base/diag.h"
#include "top/top_figures.h"

enum weir_top_sort {
	/* Dropped or would-be dropped. Ties, and the initial order, are as in the rule files. */
	WEIR_TOP_BY_DROPPED,
	WEIR_TOP_BY_FILE,
	WEIR_TOP_BY_OFFERED,
	WEIR_TOP_BY_SHARE,
	WEIR_TOP_BY_NAME,
	WEIR_TOP_SORTS
};

struct weir_top_screen {
	enum weir_top_sort sort;
	char filter[64];
	bool is_filtering; /* the user is typing the filter */
	bool is_frozen, shows_help;
	bool shows_dropped; /* the lower pane shows flows that lost packets, instead of the busiest */
	bool is_in_flows;   /* keys move the lower pane */
	size_t cursor;	    /* among the rules that are shown */
	size_t first_rule;  /* lines that are scrolled off */
	size_t first_flow;
	char asked[WEIR_NAME_BYTES]; /* the rule in question; empty: no question is open */
	bool would_observe;	     /* ... whether the question is to observe */
	char said[256];		     /* the result of the last change; empty: none */
};

/* Take over the terminal. -ENOTTY, with a message in *diag: it is not a terminal, or of a type that ncurses does not
 * know.
 */
int weir_top_screen_begin(struct weir_diag *diag);
void weir_top_screen_end(void);

void weir_top_screen_draw(struct weir_top_screen *screen, const struct weir_top *top);

enum weir_top_key {
	WEIR_TOP_NONE,
	WEIR_TOP_END,
	/* Make the rule in question observe, or enforce: would_observe. */
	WEIR_TOP_OBSERVE,
};

/* Process pending keys, up to the first that the caller must act on. */
enum weir_top_key weir_top_screen_take_keys(struct weir_top_screen *screen, const struct weir_top *top);

#endif
