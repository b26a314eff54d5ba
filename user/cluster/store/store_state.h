/* SPDX-License-Identifier: GPL-2.0-only */
/* A connection to the store, for store.c and its parts. */
#ifndef WEIR_STORE_STORE_STATE_H
#define WEIR_STORE_STORE_STATE_H

#include "rules/cluster.h"
#include "store/lookup.h"
#include "store/replies.h"
#include "store/store.h"
#include "store/tls.h"

/* For connecting, and for a reply: after 300 ms an answer counts as lost anyway (shares/share.h). Chosen, not derived.
 */
#define TIMEOUT_NS 1000000000ull

/* The pause between attempts: the first one, and the longest. Chosen, not derived: soon back, but no burden for a store
 * that is down.
 */
#define RETRY_NS_MIN 100000000ull
#define RETRY_NS_MAX 800000000ull
#define NEVER_NS UINT64_MAX

enum state { STATE_DOWN, STATE_LOOKING_UP, STATE_CONNECTING, STATE_SHAKING_HANDS, STATE_GREETING, STATE_READY };

struct weir_store {
	struct weir_store_address address;
	struct weir_cluster_info cluster;
	struct weir_lookup *lookup; /* the lookup of the store's name that is under way */
	struct weir_looked_up found;
	size_t next; /* index of the address to try next; after the last one, the name is looked up again */
	enum state state;
	int fd;
	struct weir_tls *tls; /* NULL: no TLS, or not yet */
	uint64_t connection;
	uint64_t due_ns;   /* if down: when to connect; otherwise: when the current step has taken too long */
	uint64_t retry_ns; /* the next pause between attempts */
	struct weir_replies *replies;
	unsigned int greetings; /* replies to AUTH and SELECT that are still expected */
	bool is_asked;
	struct weir_reply *reply;
	char *out;
	size_t out_bytes, out_done;
	char trouble[160];
};

/* ---- store_speak.c ---- */

void weir_store_drop(struct weir_store *store, uint64_t now_ns, const char *why);

/* Writes Redis's protocol directly: "*COUNT", and each word after its "$BYTES". A thousand rules have 80,000 words a
 * second, and hiredis, which calls sprintf() for each, took a quarter of the CPU time that a controller then needed.
 */
void weir_store_append(struct weir_store *store, size_t count, const char **words, const size_t *bytes,
		       uint64_t now_ns);
const char *weir_store_why_broken(const struct weir_store *store);

/* End a broken connection. A store that requires TLS closes the connection at the first word without TLS, and `trouble`
 * then suggests TLS. `why` is copied first, because it may belong to the TLS session that ends here.
 */
void weir_store_break_off(struct weir_store *store, uint64_t now_ns, const char *why);
void weir_store_write_out(struct weir_store *store, uint64_t now_ns);
void weir_store_greet(struct weir_store *store, uint64_t now_ns);
void weir_store_end_greeting(struct weir_store *store);

/* ---- store_reach.c ---- */

void weir_store_fail_to_connect(struct weir_store *store, uint64_t now_ns, const char *why);
void weir_store_shake_hands(struct weir_store *store, uint64_t now_ns);
void weir_store_look_at_connecting(struct weir_store *store, uint64_t now_ns);
bool weir_store_has_next(const struct weir_store *store);

/* When the lookup has ended, use its result; if it has not ended in time, use the addresses of an earlier lookup. */
void weir_store_look_at_lookup(struct weir_store *store, uint64_t now_ns);
void weir_store_begin_to_reach(struct weir_store *store, uint64_t now_ns);

#endif
