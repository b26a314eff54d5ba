// SPDX-License-Identifier: GPL-2.0-only
#include "replay/memory_csv.h"

#include "replay/series_csv.h"

static bool parse_reading(const char *line, void *ret_entry)
{
	struct weir_memory_reading *reading = ret_entry;

	return weir_series_parse_digits(&line, ",", &reading->time_ns) && *line++ == ',' &&
	       weir_series_parse_digits(&line, "", &reading->used_bytes);
}

int weir_memory_csv_read(const char *path, struct weir_memory_reading **ret_readings, size_t *ret_count,
			 struct weir_diag *diag)
{
	static const struct weir_series series = {
		.plural = "memory readings",
		.noun = "reading",
		.header = "time_ns,used_bytes",
		.not_one = "not a memory reading 'time_ns,used_bytes'",
		.how_to_write = "write two numbers, as in 1700000000000000000,1048576",
		.entry_bytes = sizeof(struct weir_memory_reading),
		.parse = parse_reading,
	};

	return weir_series_read(path, &series, (void **)ret_readings, ret_count, diag);
}
