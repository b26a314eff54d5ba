/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading a file that a user named as text. A pipe without a writer is reported instead of waited for; lines and files
 * have a maximum size, so that reading /dev/zero ends.
 */
#ifndef WEIR_BASE_TEXT_FILE_H
#define WEIR_BASE_TEXT_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Most bytes in a line of addresses or figures, without its line end: many times what such a line needs. Chosen, not
 * derived.
 */
#define WEIR_LINE_BYTES_MAX 1000

/* Returns 0 or -errno; -EPIPE: the file is a pipe that has no writer, or no longer has one. The caller owns
 * *ret_stream.
 */
int weir_text_file_open(const char *path, FILE **ret_stream);

/* Does anybody have this file open for writing? Only its owner can ask: for others, and for what is no regular file,
 * the answer is no.
 */
bool weir_file_has_writer(int fd);

/* The reason for this error, for people. */
const char *weir_text_file_explain(int err);

/* Initialise as {.stream = ..., .bytes_max = ...}. */
struct weir_line_reader {
	FILE *stream;
	uint64_t bytes_max; /* of the file */
	uint64_t bytes;	    /* read so far */
	int number;	    /* of `line`, from 1 */
	char line[WEIR_LINE_BYTES_MAX + 2];
};

enum weir_line {
	WEIR_LINE_END, /* end of file or read error; ferror(stream) distinguishes them, errno has the error */
	WEIR_LINE_TEXT,
	WEIR_LINE_TOO_LONG,  /* this and the next two: `line` has its first bytes, with '?' for a zero byte */
	WEIR_LINE_ZERO_BYTE, /* the line contains a zero byte */
	WEIR_LINE_TOO_MUCH,  /* the file is larger than bytes_max */
};

/* Read the next line into reader->line, without its line end and without the file's byte order mark. A line that is too
 * long is cut.
 */
enum weir_line weir_read_line(struct weir_line_reader *reader);

#endif
