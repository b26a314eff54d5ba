/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A result file that appears whole or not at all: it is written under a temporary name beside its
 * place and renamed when done. What is not a regular file (a pipe, /dev/stdout, a link) is filled
 * from an unnamed temporary file when done.
 */
#ifndef WEIR_OUTPUT_H
#define WEIR_OUTPUT_H

#include <stdio.h>

#include "diag.h"

struct weir_output {
	FILE *stream;	  /* to write to; also readable, so that what was written can be put in order */
	const char *path; /* borrowed */
	char *temporary;  /* name to rename from; NULL: unnamed */
};

/* Start afresh; on failure *output is empty. An empty output may be aborted and freed. */
int weir_output_open(struct weir_output *output, const char *path, struct weir_diag *diag);

/* Check that all was written, and put it in its place. */
int weir_output_commit(struct weir_output *output, struct weir_diag *diag);

/* Leave nothing behind, unless committed. */
void weir_output_close(struct weir_output *output);

#endif
