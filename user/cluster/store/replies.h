/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replies of a store, parsed from the bytes of a connection. Each reply is scanned (shares/reply_scan.h) before hiredis
 * reads it.
 */
#ifndef WEIR_STORE_REPLIES_H
#define WEIR_STORE_REPLIES_H

#include <stdbool.h>
#include <stddef.h>

struct weir_reply; /* a reply of the store */
struct weir_replies;

/* NULL: no memory. */
struct weir_replies *weir_replies_open(void);
void weir_replies_free(struct weir_replies *replies);

/* Add bytes that have arrived, cut at any place. NULL, or why they are no reply: then the connection must end. */
const char *weir_replies_feed(struct weir_replies *replies, const char *data, size_t bytes);

/* The next complete reply; *ret_reply is NULL if there is none yet. Returns the same as weir_replies_feed(). */
const char *weir_replies_next(struct weir_replies *replies, struct weir_reply **ret_reply);
void weir_store_free_reply(struct weir_reply *reply);

/* A reply is an error, a text, a number, or a list of replies. The functions for the other kinds return NULL, 0 or
 * empty.
 */
const char *weir_reply_error(const struct weir_reply *reply);
const char *weir_reply_text(const struct weir_reply *reply);
long long weir_reply_number(const struct weir_reply *reply);
size_t weir_reply_count(const struct weir_reply *reply);
const struct weir_reply *weir_reply_at(const struct weir_reply *reply, size_t index);

/* "hiredis 0.14.1" */
const char *weir_replies_version(void);

#endif
