/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection to the store of a cluster (Redis, Valkey), for one command at a time. Nothing here blocks: the owner
 * polls the descriptor and calls weir_store_step(). Everything has a time-out: if a step takes too long, the connection
 * ends, and a new one is tried soon. replies.h reads replies; commands and sockets are our own code. tls.h adds TLS
 * (rediss://).
 */
#ifndef WEIR_STORE_STORE_H
#define WEIR_STORE_STORE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "store/replies.h"
#include "weir_abi.h"

struct weir_store;

/* Does not connect yet. -EINVAL: the description is damaged. */
int weir_store_open(const struct weir_cluster_info *cluster, struct weir_store **ret_store, struct weir_diag *diag);
void weir_store_free(struct weir_store *store);

static inline void weir_store_freep(struct weir_store **store)
{
	weir_store_free(*store);
}

/* What to poll for, and until when. Call weir_store_step() when the descriptor is ready or the time has come. */
struct pollfd weir_store_poll(const struct weir_store *store);
uint64_t weir_store_due_ns(const struct weir_store *store);

/* Connect, write or read, as far as possible without blocking. */
void weir_store_step(struct weir_store *store, uint64_t now_ns);

/* Whether there is a connection without a command under way. Each new connection has a new number. */
bool weir_store_is_ready(const struct weir_store *store);
uint64_t weir_store_connection(const struct weir_store *store);

/* Send a command of `count` words. The store must be ready. Call weir_store_step() afterwards. */
void weir_store_send(struct weir_store *store, size_t count, const char **words, const size_t *bytes, uint64_t now_ns);

/* The reply to the command, once, or NULL. The caller frees it with weir_store_free_reply(). An error is a reply, too.
 */
struct weir_reply *weir_store_take_reply(struct weir_store *store);

/* Why there is no connection, for people; empty: there is one, or the first attempt is still running. */
const char *weir_store_trouble(const struct weir_store *store);

/* Send a command and wait up to a second for the reply; for commands, which have nothing else to do. NULL: no reply
 * came, and weir_store_trouble() says why.
 */
struct weir_reply *weir_store_ask(struct weir_store *store, size_t count, const char **words, const size_t *bytes);

/* The same, but connecting and waiting may take until end_ns. */
struct weir_reply *weir_store_ask_until(struct weir_store *store, size_t count, const char **words, const size_t *bytes,
					uint64_t end_ns);

/* "hiredis 0.14.1, GnuTLS 3.7.9"; in a build with make WITHOUT=cluster: "no clusters". */
const char *weir_store_version(void);

#endif
