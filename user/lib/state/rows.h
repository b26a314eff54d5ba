/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows of the flow tables, as one CPU left them, and how much each contributes to a window. They are copies; the time
 * is passed in.
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
	uint64_t threshold; /* the word that it was last evaluated by; for a narrow row only the version is known */
	uint64_t unspent;   /* the bit in a cell that says whether some of its units are unspent */
	uint64_t cell[WEIR_RING_CELLS];
};

/* The formats that the flow tables have, in chunks of WEIR_CHUNK_BYTES; in all of them the tag comes first. */
struct weir_row_format {
	enum weir_storage storage;
	enum weir_table_id table;
	uint32_t row_bytes, sets_per_chunk, page_sets;
	struct weir_row (*read)(const void *value);
};
enum weir_row_format_id { WEIR_ROWS_NARROW, WEIR_ROWS_MEDIUM, WEIR_ROWS_WIDE, WEIR_ROW_FORMATS };
extern const struct weir_row_format weir_row_formats[WEIR_ROW_FORMATS];

/* Also of rows outside of these tables, which have no other format. */
struct weir_row weir_row_of_wide(const void *value);

/* The number of the bucket at this time. */
uint64_t weir_row_bucket(const struct weir_window_spec *spec, uint64_t now_ns);

/* What the row has spent in the bucket that is `age` buckets before its newest. */
uint64_t weir_row_spent(const struct weir_row *row, uint32_t age);

/* The total of a flow's rows. */
struct weir_row_sum {
	uint64_t rest, oldest; /* oldest: units that smooth windows weigh */
};

/* Add what the row has spent within the window at now_ns. Newer buckets are included. */
void weir_row_add(const struct weir_window_spec *spec, uint64_t now_ns, const struct weir_row *row,
		  struct weir_row_sum *sum);

/* The units of the window. */
uint64_t weir_row_units(const struct weir_window_spec *spec, uint64_t now_ns, const struct weir_row_sum *sum);

#endif
