// SPDX-License-Identifier: GPL-2.0-only
#include "state/rows.h"

#include <string.h>

#include "weir_window.h"

static struct weir_row read_narrow(const void *value)
{
	const struct weir_narrow_row *narrow = value;
	struct weir_row row = {
		.tag = narrow->tag,
		.spec = narrow->tag & (WEIR_SPECS_NARROW - 1),
		.newest = narrow->newest,
		.lease = narrow->lease & WEIR_NARROW_OVER ? 0 : narrow->lease,
		.threshold = WEIR_THRESHOLD_WORD(0, narrow->version),
		.unspent = WEIR_NARROW_UNSPENT,
	};

	for (int i = 0; i < WEIR_RING_CELLS; i++)
		row.cell[i] = narrow->cell[i];
	return row;
}

static struct weir_row read_medium(const void *value)
{
	const struct weir_medium_row *medium = value;
	struct weir_row row = {
		.tag = medium->tag,
		.spec = medium->tag & (WEIR_SPECS_NARROW - 1),
		.newest = medium->newest,
		.lease = medium->lease,
		.threshold = WEIR_THRESHOLD_WORD(medium->units, medium->version),
		.unspent = WEIR_MEDIUM_UNSPENT,
	};

	for (int i = 0; i < WEIR_RING_CELLS; i++)
		row.cell[i] = medium->cell[i];
	return row;
}

struct weir_row weir_row_of_wide(const void *value)
{
	const struct weir_wide_row *wide = value;
	struct weir_row row = {
		.tag = wide->tag,
		.spec = wide->spec,
		.newest = wide->newest,
		.lease = wide->lease,
		.threshold = wide->threshold,
		.unspent = WEIR_WIDE_UNSPENT,
	};

	memcpy(row.cell, wide->cell, sizeof(row.cell));
	return row;
}

_Static_assert(sizeof(struct weir_narrow_chunk) == WEIR_CHUNK_BYTES &&
		       sizeof(struct weir_wide_chunk) == WEIR_CHUNK_BYTES,
	       "chunks of all formats are walked alike");

#define FORMAT(PLACE, name, read)                                                                                      \
	[WEIR_ROWS_##PLACE] = {WEIR_STORAGE_##PLACE,	      WEIR_TABLE_##PLACE##_FLOWS, sizeof(struct name),         \
			       WEIR_##PLACE##_SETS_PER_CHUNK, WEIR_##PLACE##_PAGE_SETS,	  read}
const struct weir_row_format weir_row_formats[] = {
	FORMAT(NARROW, weir_narrow_row, read_narrow),
	FORMAT(MEDIUM, weir_medium_row, read_medium),
	FORMAT(WIDE, weir_wide_row, weir_row_of_wide),
};

uint64_t weir_row_bucket(const struct weir_window_spec *spec, uint64_t now_ns)
{
	uint64_t bucket = now_ns / spec->bucket_ns;

	return bucket > spec->base_bucket ? bucket - spec->base_bucket : 0;
}

uint64_t weir_row_spent(const struct weir_row *row, uint32_t age)
{
	uint64_t units = row->cell[(row->newest - age) % WEIR_RING_CELLS] & ~row->unspent;

	if (age == 0)
		units -= row->lease < units ? row->lease : units;
	return units;
}

void weir_row_add(const struct weir_window_spec *spec, uint64_t now_ns, const struct weir_row *row,
		  struct weir_row_sum *sum)
{
	uint64_t present = weir_row_bucket(spec, now_ns);

	for (uint32_t age = 0; age < WEIR_RING_CELLS && age <= row->newest; age++) {
		uint64_t bucket = row->newest - age;

		if (bucket + spec->window_cells <= present)
			break;
		if (spec->window == WEIR_WINDOW_SMOOTH && bucket + spec->window_cells - 1 == present)
			sum->oldest += weir_row_spent(row, age);
		else
			sum->rest += weir_row_spent(row, age);
	}
}

uint64_t weir_row_units(const struct weir_window_spec *spec, uint64_t now_ns, const struct weir_row_sum *sum)
{
	if (!sum->oldest)
		return sum->rest;
	return sum->rest + weir_smooth_share(sum->oldest, spec->bucket_ns, now_ns % spec->bucket_ns);
}
