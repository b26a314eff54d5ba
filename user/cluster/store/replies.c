// SPDX-License-Identifier: GPL-2.0-only
#include "store/replies.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>

#include "shares/reply_scan.h"

static const char not_redis[] = "its answer is not a Redis reply";

struct weir_replies {
	redisReader *reader;
	struct weir_reply_scan scan;
};

struct weir_replies *weir_replies_open(void)
{
	struct weir_replies *replies = calloc(1, sizeof(*replies));

	if (replies)
		replies->reader = redisReaderCreate();
	if (replies && replies->reader)
		return replies;
	free(replies);
	return NULL;
}

void weir_replies_free(struct weir_replies *replies)
{
	if (!replies)
		return;
	redisReaderFree(replies->reader);
	free(replies);
}

const char *weir_replies_feed(struct weir_replies *replies, const char *data, size_t bytes)
{
	const char *why = weir_reply_scan(&replies->scan, data, bytes);

	if (!why && redisReaderFeed(replies->reader, data, bytes) != REDIS_OK)
		why = "out of memory";
	return why;
}

/* A store's errors are shown to people, so nothing in them may control a terminal. Lists may contain errors, too, as
 * deep as the scan allows.
 */
static void make_plain(const redisReply *reply)
{
	for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++)
		make_plain(reply->element[i]);
	if (reply->type != REDIS_REPLY_ERROR)
		return;
	for (char *at = reply->str; *at; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
}

const char *weir_replies_next(struct weir_replies *replies, struct weir_reply **ret_reply)
{
	void *reply = NULL;

	if (redisReaderGetReply(replies->reader, &reply) != REDIS_OK)
		return not_redis;
	if (reply)
		make_plain(reply);
	*ret_reply = reply;
	return NULL;
}

void weir_store_free_reply(struct weir_reply *reply)
{
	freeReplyObject(reply);
}

/* A reply is hiredis's own struct under another name, so that no other file needs hiredis's header. */
static const redisReply *of(const struct weir_reply *reply)
{
	return (const redisReply *)reply;
}

const char *weir_reply_error(const struct weir_reply *reply)
{
	return of(reply)->type == REDIS_REPLY_ERROR ? of(reply)->str : NULL;
}

const char *weir_reply_text(const struct weir_reply *reply)
{
	return of(reply)->type == REDIS_REPLY_STRING || of(reply)->type == REDIS_REPLY_STATUS ? of(reply)->str : NULL;
}

long long weir_reply_number(const struct weir_reply *reply)
{
	return of(reply)->type == REDIS_REPLY_INTEGER ? of(reply)->integer : 0;
}

size_t weir_reply_count(const struct weir_reply *reply)
{
	return of(reply)->type == REDIS_REPLY_ARRAY ? of(reply)->elements : 0;
}

const struct weir_reply *weir_reply_at(const struct weir_reply *reply, size_t index)
{
	return (const struct weir_reply *)of(reply)->element[index];
}

const char *weir_replies_version(void)
{
	static char words[32];

	snprintf(words, sizeof(words), "hiredis %d.%d.%d", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
	return words;
}
