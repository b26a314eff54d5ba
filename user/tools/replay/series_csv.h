/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CSV files of readings, each valid from a time on, in order of time: for memory, and for load and CPU usage.
 * They are what the controller would have read from the machine during a capture.
 */
#ifndef WEIR_REPLAY_SERIES_CSV_H
#define WEIR_REPLAY_SERIES_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "harness/replay_run.h"

struct weir_series {
	const char *plural, *noun;	    /* names for its entries: "memory readings", "reading" */
	const char *header;		    /* a first line with this text is skipped */
	const char *not_one, *how_to_write; /* messages for a line that is not an entry */
	size_t entry_bytes;		    /* an entry begins with its time, a uint64_t in ns */
	bool (*parse)(const char *line, void *ret_entry);
	/* Returns why an entry is impossible although it can be parsed, and what to write; NULL: it is valid. May
	 * itself be NULL.
	 */
	const char *(*refuse)(const void *entry, const char **ret_hint);
};

/* Parse decimal digits and nothing else, up to one of `ends` or the end of the text; *text is advanced to there. */
bool weir_series_parse_digits(const char **text, const char *ends, uint64_t *ret_value);

/* Returns 0, -EINVAL (the file is wrong) or another -errno, with all mistakes in *diag. The caller frees the entries.
 */
int weir_series_read(const char *path, const struct weir_series *series, void **ret_entries, size_t *ret_count,
		     struct weir_diag *diag);

/*
 * Read a CSV file of time_ns,load1,cpu_usage, with or without that header line, with ascending times. All mistakes are
 * added to *diag. The caller frees *ret_samples.
 */
int weir_system_csv_read(const char *path, struct weir_system_sample **ret_samples, size_t *ret_count,
			 struct weir_diag *diag);

/*
 * Read a CSV file of time_ns,used_bytes, with or without that header line, with ascending times. All mistakes are added
 * to *diag. The caller frees *ret_readings.
 */
int weir_memory_csv_read(const char *path, struct weir_memory_reading **ret_readings, size_t *ret_count,
			 struct weir_diag *diag);

#endif
