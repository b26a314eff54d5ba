/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading a file as text, named by a user: a pipe that nobody writes to is reported, and does not wait for
 * ever; lines and files have an end, so that /dev/zero has one.
 */
#ifndef WEIR_BASE_TEXT_FILE_H
#define WEIR_BASE_TEXT_FILE_H

#include <stdint.h>
#include <stdio.h>

/* What a line of addresses or of figures may have, its end not counted: many times what it needs. Chosen, not derived.
 */
#define WEIR_LINE_BYTES_MAX 1000

/* 0 or -errno; -EPIPE: a pipe that nobody writes to, or no more. The caller owns *ret_stream. */
int weir_text_file_open(const char *path, FILE **ret_stream);

/* What is wrong, for people. */
const char *weir_text_file_explain(int err);

/* Begins as {.stream = ..., .bytes_max = ...}. */
struct weir_line_reader {
	FILE *stream;
	uint64_t bytes_max; /* of the file */
	uint64_t bytes;	    /* read so far */
	int number;	    /* of `line`, from 1 */
	char line[WEIR_LINE_BYTES_MAX + 2];
};

enum weir_line {
	WEIR_LINE_END, /* the file's; no line: ferror(stream) distinguishes end and failure, errno which */
	WEIR_LINE_TEXT,
	WEIR_LINE_TOO_LONG,  /* this and the next two: `line` has its first bytes, a zero byte in it shown as '?' */
	WEIR_LINE_ZERO_BYTE, /* it holds one */
	WEIR_LINE_TOO_MUCH,  /* the file is larger than bytes_max */
};

/* The next line into reader->line, without its end, as far as it fits, and without the byte order mark of a file. */
enum weir_line weir_read_line(struct weir_line_reader *reader);

#endif
