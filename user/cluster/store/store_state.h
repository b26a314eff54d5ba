/* SPDX-License-Identifier: GPL-2.0-only */
/* A connection to the store, for store.c and its parts. */
#ifndef WEIR_STORE_STORE_STATE_H
#define WEIR_STORE_STORE_STATE_H

#include "rules/store_url.h"
#include "store/lookup.h"
#include "store/replies.h"
#include "store/store.h"
#include "store/tls.h"

/* To connect, and to reply: after 300 ms an answer is lost anyway (shares/share.h). Chosen, not derived. */
#define TIMEOUT_NS 1000000000ull

/* Between attempts: at first, and at most. Chosen, not derived: soon back, and no burden to a store that is down. */
#define RETRY_NS_MIN 100000000ull
#define RETRY_NS_MAX 800000000ull
#define NEVER_NS UINT64_MAX

enum state { STATE_DOWN, STATE_LOOKING_UP, STATE_CONNECTING, STATE_SHAKING_HANDS, STATE_GREETING, STATE_READY };

struct weir_store {
	struct weir_store_address address;
	struct weir_cluster_info cluster;
	struct weir_lookup *lookup; /* of its name, under way */
	struct weir_looked_up found;
	size_t next; /* of what was found: the address to try next; when there is none, its name is looked up again */
	enum state state;
	int fd;
	struct weir_tls *tls; /* NULL: none, or not yet */
	uint64_t connection;
	uint64_t due_ns;   /* down: when to try; else when what is under way has taken too long */
	uint64_t retry_ns; /* the next pause */
	struct weir_replies *replies;
	unsigned int greetings; /* replies to AUTH and SELECT that are to come */
	bool is_asked;
	struct weir_reply *reply;
	char *out;
	size_t out_bytes, out_done;
	char trouble[160];
};

/* ---- store_speak.c ---- */

void weir_store_drop(struct weir_store *store, uint64_t now_ns, const char *why);

/* By hand, as Redis's protocol has it: "*COUNT", and each word behind its "$BYTES". A thousand rules have 80,000 words
 * a second, and hiredis, which asks sprintf() for each, took a quarter of what a controller then cost.
 */
void weir_store_append(struct weir_store *store, size_t count, const char **words, const size_t *bytes,
		       uint64_t now_ns);
const char *weir_store_why_broken(const struct weir_store *store);

/* A store that asks for TLS breaks off at the first word without. The words are copied first: TLS's end with it. */
void weir_store_break_off(struct weir_store *store, uint64_t now_ns, const char *why);
void weir_store_write_out(struct weir_store *store, uint64_t now_ns);
void weir_store_greet(struct weir_store *store, uint64_t now_ns);
void weir_store_end_greeting(struct weir_store *store);

/* ---- store_reach.c ---- */

void weir_store_fail_to_connect(struct weir_store *store, uint64_t now_ns, const char *why);
void weir_store_shake_hands(struct weir_store *store, uint64_t now_ns);
void weir_store_look_at_connecting(struct weir_store *store, uint64_t now_ns);
bool weir_store_has_next(const struct weir_store *store);

/* With an answer, by what it found; without one, in time, by what was found before. */
void weir_store_look_at_lookup(struct weir_store *store, uint64_t now_ns);
void weir_store_begin_to_reach(struct weir_store *store, uint64_t now_ns);

#endif
