/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opening a file that is to be read as text, named by a user: who names a pipe that nobody writes to is told so, and
 * does not wait for ever.
 */
#ifndef WEIR_BASE_TEXT_FILE_H
#define WEIR_BASE_TEXT_FILE_H

#include <stdio.h>

/* 0 or -errno; -EPIPE: a pipe that nobody writes to, or no more. The caller owns *ret_stream. */
int weir_text_file_open(const char *path, FILE **ret_stream);

/* What is wrong, for people. */
const char *weir_text_file_explain(int err);

#endif
