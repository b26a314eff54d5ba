/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A result file that appears whole or not at all: it is written under a temporary name beside its place, which is
 * behind whatever links of ours or of root's lead there, in any part of the path, and renamed when done; links of
 * others are not followed. What is no regular file (a pipe, a device, /dev/stdout) is filled from an unnamed temporary
 * file when done. Where that is to be is found once, when it is opened. A result that is to grow under the eyes of
 * others appears sooner (weir_output_show).
 */
#ifndef WEIR_REPLAY_OUTPUT_H
#define WEIR_REPLAY_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/diag.h"

struct weir_output {
	FILE *stream;	  /* to write to; also readable, so that what was written can be put in order */
	const char *path; /* borrowed */
	bool is_found;	  /* fd is open */
	int fd;		  /* of the directory where it is to appear; without a name, of the thing itself (O_PATH) */
	char *name;	  /* there; NULL: it is no regular file */
	char *temporary;  /* name to rename from; NULL: unnamed, or renamed already */
};

/* Start afresh; on failure *output is empty. An empty output may be closed. */
int weir_output_open(struct weir_output *output, const char *path, struct weir_diag *diag);

/* Right after something was written: 0, or that it could not be. */
int weir_output_check(const struct weir_output *output, struct weir_diag *diag);

/*
 * Check that all was written, of all of them; then fill pipes and devices, and only then rename: whatever lacks space
 * fails before anything has appeared (in a pipe, a part may have). Empty outputs, and NULL, are passed over.
 */
int weir_outputs_commit(struct weir_output *const *outputs, size_t count, struct weir_diag *diag);

/*
 * Instead: let it appear now, with what has been written, and grow: whatever is written and flushed from now on is
 * there at once. A pipe waits for its reader here.
 */
int weir_output_show(struct weir_output *output, struct weir_diag *diag);

/* Leave nothing behind, unless committed or shown. */
void weir_output_close(struct weir_output *output);

#endif
