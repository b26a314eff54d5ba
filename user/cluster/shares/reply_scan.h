/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks a store's replies before anything is allocated according to their contents: hiredis 0.14.1 allocates as many
 * elements as thirteen bytes announce ("*2147483647\r\n": 16 GB). It accepts only what a ledger, a greeting or an INFO
 * can be: version 2 of Redis's protocol, with lists no deeper and no larger than weir requests. Pure.
 */
#ifndef WEIR_SHARES_REPLY_SCAN_H
#define WEIR_SHARES_REPLY_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The longest reply. The answers for 8,192 rules have some 800 kB. Chosen, not derived. */
#define WEIR_REPLY_BYTES_MAX (4u << 20)
/* A list of rules, each a list of numbers; one of its elements is a list of flows. */
#define WEIR_REPLY_DEPTH_MAX 3
/* The elements of a reply, over all lists: 8,192 rules have 9 each. hiredis uses some 70 bytes for each. Chosen. */
#define WEIR_REPLY_ELEMENTS_MAX (128u * 1024)
/* A line: a number, a status or an error. Redis cuts script errors long before this length. Chosen, not derived. */
#define WEIR_REPLY_LINE_BYTES_MAX 4096

/* When it is all zero, it is at the beginning of a connection. */
struct weir_reply_scan {
	uint32_t left[WEIR_REPLY_DEPTH_MAX]; /* elements still missing in each open list */
	uint32_t depth;
	uint32_t bytes, elements; /* of this reply so far */
	uint32_t text_left;	  /* bytes of a text still to come, including its end */
	uint32_t line_bytes;	  /* of the current line so far, without its end */
	char sign;		  /* the first byte of the line */
	char digits[24];	  /* the part read so far of a line that is a number */
	char previous;
};

/* Scan the next bytes of a connection, cut at any place. Returns NULL, or why weir does not accept the reply: then
 * nothing more may be read from the connection.
 */
const char *weir_reply_scan(struct weir_reply_scan *scan, const char *data, size_t bytes);

#endif
