/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room files: results that appear completely or not at all, and captures.
 *
 * A result file that appears completely or not at all. It is written under a temporary name in the directory of its
 * final place, and renamed when it is complete. Symbolic links owned by us or by root, in any part of the path, are
 * followed to that place; links of other users are not. Anything that is not a regular file (a pipe, a device,
 * /dev/stdout) is filled from an unnamed temporary file at the end. The final place is resolved once, when the output
 * is opened. A result that others want to watch as it grows can appear earlier (weir_output_show).
 */
#ifndef WEIR_FILES_OUTPUT_H
#define WEIR_FILES_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/diag.h"

struct weir_output {
	FILE *stream;	  /* to write to; also readable, so that the content can be sorted */
	const char *path; /* borrowed */
	bool is_found;	  /* fd is open */
	/* The directory in which it is to appear; if there is no name, the thing itself (O_PATH). */
	int fd;
	char *name;	 /* in that directory; NULL: it is not a regular file */
	char *temporary; /* its path, through /proc/self/fd; NULL: unnamed, or already renamed */
};

/* Start a new output. On failure *output is empty; an empty output may be closed. */
int weir_output_open(struct weir_output *output, const char *path, struct weir_diag *diag);

/* Check right after a write: 0, or the error, with a message in *diag. */
int weir_output_check(const struct weir_output *output, struct weir_diag *diag);

/*
 * Check that all outputs were written completely; then fill pipes and devices, and only then rename. So if space runs
 * out, it fails before anything has appeared (except that a pipe may have received a part). Empty outputs, and NULL,
 * are skipped.
 */
int weir_outputs_commit(struct weir_output *const *outputs, size_t count, struct weir_diag *diag);

/*
 * An alternative to commit: make the output appear now, with what has been written, and let it grow: everything that is
 * written and flushed from now on appears at once. For a pipe, this waits for a reader.
 */
int weir_output_show(struct weir_output *output, struct weir_diag *diag);

/* Remove whatever was not committed or shown. */
void weir_output_close(struct weir_output *output);

/* Would a result be written over its own input, which renaming or writing through a link would destroy?
 *
 * Is the file at `path` this file, under whatever name? */
bool weir_is_file(const char *path, const struct stat *file);

/* Are these two names of one file, which need not exist yet? False if one of them is NULL. */
bool weir_are_same_file(const char *path, const char *other);

#endif
