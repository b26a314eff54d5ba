/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replies of a store, looked at before anything is allocated by what they say: hiredis 0.14.1 makes room for as many
 * elements as thirteen bytes announce ("*2147483647\r\n": 16 GB). Only what a ledger, a greeting or an INFO can be
 * passes: Redis's protocol of version 2, lists no deeper and no larger than weir asks for. Pure.
 */
#ifndef WEIR_SHARES_REPLY_SCAN_H
#define WEIR_SHARES_REPLY_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* The longest reply. 8,192 rules' answers have some 800 kB. Chosen, not derived. */
#define WEIR_REPLY_BYTES_MAX (4u << 20)
/* A list of rules, of lists of numbers, of which one is a list of flows. */
#define WEIR_REPLY_DEPTH_MAX 3
/* Elements of a reply, all lists together: 8,192 rules have 9 each. hiredis keeps some 70 bytes for each. Chosen. */
#define WEIR_REPLY_ELEMENTS_MAX (128u * 1024)
/* A line: a number, a status, an error. Redis cuts errors of scripts short long before. Chosen, not derived. */
#define WEIR_REPLY_LINE_BYTES_MAX 4096

/* Zeroed, it is at the beginning of a connection. */
struct weir_reply_scan {
	uint32_t left[WEIR_REPLY_DEPTH_MAX]; /* elements that the open lists still lack */
	uint32_t depth;
	uint32_t bytes, elements; /* of this reply, until now */
	uint32_t text_left;	  /* bytes of a text that are to come, with its end */
	uint32_t line_bytes;	  /* of the line that has begun, without its end */
	char sign;		  /* its first byte */
	char digits[24];	  /* of a line that is a number, as far as it has come */
	char previous;
};

/* The next bytes of a connection, however they were cut. NULL, or why they are no reply that weir takes: then nothing
 * more may be read from it.
 */
const char *weir_reply_scan(struct weir_reply_scan *scan, const char *data, size_t bytes);

#endif
