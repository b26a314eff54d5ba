/* SPDX-License-Identifier: GPL-2.0-only */
/* The panes of weir top's screen. */
#ifndef WEIR_CMD_TOP_PANES_H
#define WEIR_CMD_TOP_PANES_H

#include "top/top_screen.h"

#define FLOW_COLUMNS_MIN 24
#define RATE_COLUMNS 10
#define SHARE_COLUMNS 6
#define UNITS_COLUMNS 11
#define WIDE_COLUMNS 110	       /* from this width on, there is room for the resource */
#define VERY_WIDE_COLUMNS 170	       /* ... and for longer names beside the last minute */
#define OLD_NS (2 * WEIR_NSEC_PER_SEC) /* from this age on, the age of the flows is shown */
#define TEXT_MAX 512

enum { PAIR_DROPS = 1, PAIR_NEAR, PAIR_GOOD };

/* ---- top_panes.c ---- */

/* Must be called first: finds out whether the terminal can show more than ASCII. */
void weir_top_take_locale(void);

/* The caller frees what is returned; NULL: out of memory. */
const struct weir_top_rule **weir_top_choose_rules(const struct weir_top_screen *screen, const struct weir_top *top,
						   size_t *ret_count);

#endif
