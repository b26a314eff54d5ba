// SPDX-License-Identifier: GPL-2.0-only
/* Replaces store.c in a build with make WITHOUT=cluster. */
#include "store/store.h"

#include <stddef.h>

int weir_store_open(const struct weir_cluster_info *cluster, struct weir_store **ret_store, struct weir_diag *diag)
{
	return weir_diag_error(diag, NULL, NULL,
			       "leave 'clusterMode' out, or use a weir that was built without WITHOUT=cluster",
			       "this build of weir cannot share limits with other hosts");
}

void weir_store_free(struct weir_store *store)
{
}

struct pollfd weir_store_poll(const struct weir_store *store)
{
	return (struct pollfd){.fd = -1};
}

uint64_t weir_store_due_ns(const struct weir_store *store)
{
	return UINT64_MAX;
}

void weir_store_step(struct weir_store *store, uint64_t now_ns)
{
}

bool weir_store_is_ready(const struct weir_store *store)
{
	return false;
}

uint64_t weir_store_connection(const struct weir_store *store)
{
	return 0;
}

void weir_store_send(struct weir_store *store, size_t count, const char **words, const size_t *bytes, uint64_t now_ns)
{
}

struct weir_reply *weir_store_take_reply(struct weir_store *store)
{
	return NULL;
}

void weir_store_free_reply(struct weir_reply *reply)
{
}

const char *weir_reply_error(const struct weir_reply *reply)
{
	return NULL;
}

const char *weir_reply_text(const struct weir_reply *reply)
{
	return NULL;
}

long long weir_reply_number(const struct weir_reply *reply)
{
	return 0;
}

size_t weir_reply_count(const struct weir_reply *reply)
{
	return 0;
}

const struct weir_reply *weir_reply_at(const struct weir_reply *reply, size_t index)
{
	return NULL;
}

const char *weir_store_trouble(const struct weir_store *store)
{
	return "";
}

struct weir_reply *weir_store_ask(struct weir_store *store, size_t count, const char **words, const size_t *bytes)
{
	return NULL;
}

struct weir_reply *weir_store_ask_until(struct weir_store *store, size_t count, const char **words, const size_t *bytes,
					uint64_t end_ns)
{
	return NULL;
}

bool weir_store_is_built(void)
{
	return false;
}

const char *weir_store_version(void)
{
	return "no clusters";
}
