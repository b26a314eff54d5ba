/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows of the flow tables, as one CPU left them: what of a window each of them counts. Copies; the time is handed in.
 */
#ifndef WEIR_STATE_ROWS_H
#define WEIR_STATE_ROWS_H

#include <stdint.h>

#include "weir_abi.h"

/* A row of any format. */
struct weir_row {
	uint32_t tag;
	uint32_t spec;
	uint64_t newest, lease;
	uint64_t threshold; /* the word it was last evaluated by; of a narrow row only the version is known */
	uint64_t unspent;   /* the bit of a cell that says whether some of its units are */
	uint64_t cell[WEIR_RING_CELLS];
};

struct weir_row weir_row_of_narrow(const struct weir_narrow_row *narrow);
struct weir_row weir_row_of_medium(const struct weir_medium_row *medium);
struct weir_row weir_row_of_wide(const struct weir_wide_row *wide);

/* The bucket of this time. */
uint64_t weir_row_bucket(const struct weir_window_spec *spec, uint64_t now_ns);

/* What the row has spent in the bucket that is `age` before its newest. */
uint64_t weir_row_spent(const struct weir_row *row, uint32_t age);

/* What the rows of a flow count together. */
struct weir_row_sum {
	uint64_t rest, oldest; /* oldest: to be weighed (smooth windows) */
};

/* Add what the row has spent within the window as it is at now_ns. Newer buckets belong to it too. */
void weir_row_add(const struct weir_window_spec *spec, uint64_t now_ns, const struct weir_row *row,
		  struct weir_row_sum *sum);

/* The units of the window. */
uint64_t weir_row_units(const struct weir_window_spec *spec, uint64_t now_ns, const struct weir_row_sum *sum);

#endif
