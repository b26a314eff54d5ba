/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CSV files of readings that hold from a time on, in order of time: of memory (memory_csv.h), of load and CPU usage
 * (system_csv.h).
 */
#ifndef WEIR_REPLAY_SERIES_CSV_H
#define WEIR_REPLAY_SERIES_CSV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

struct weir_series {
	const char *plural, *noun;	    /* of its entries: "memory readings", "reading" */
	const char *header;		    /* a first line that is skipped */
	const char *not_one, *how_to_write; /* of a line that is none */
	size_t entry_bytes;		    /* an entry begins with its time, a uint64_t in ns */
	bool (*parse)(const char *line, void *ret_entry);
	/* What cannot be, though it can be read, and what to write; NULL: nothing. May be NULL itself. */
	const char *(*refuse)(const void *entry, const char **ret_hint);
};

/* Decimal digits and nothing else, up to one of `ends` or the end of the text; *text is moved there. */
bool weir_series_parse_digits(const char **text, const char *ends, uint64_t *ret_value);

/* 0, or -EINVAL (the file is wrong) or another -errno, all mistakes in *diag. The caller frees the entries. */
int weir_series_read(const char *path, const struct weir_series *series, void **ret_entries, size_t *ret_count,
		     struct weir_diag *diag);

#endif
