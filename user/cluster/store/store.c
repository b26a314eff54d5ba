// SPDX-License-Identifier: GPL-2.0-only
#include "rules/cluster.h"
#include "store/store.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/util.h"
#include "host/host.h"
#include "store/lookup.h"
#include "store/replies.h"
#include "store/store_state.h"
#include "store/tls.h"

/* ---- reading ---- */

/* Handle a reply. Returns whether the connection is still good. */
static bool take(struct weir_store *store, struct weir_reply *reply, uint64_t now_ns)
{
	const char *error = weir_reply_error(reply);

	if (store->state == STATE_GREETING && error) {
		snprintf(store->trouble, sizeof(store->trouble), "it says '%.120s'", error);
		weir_store_free_reply(reply);
		weir_store_drop(store, now_ns, store->trouble);
		return false;
	}
	if (store->state == STATE_GREETING) {
		weir_store_free_reply(reply);
		if (--store->greetings == 0)
			weir_store_end_greeting(store);
		return true;
	}
	if (!store->is_asked || store->reply) {
		weir_store_free_reply(reply);
		weir_store_drop(store, now_ns, "it sent an answer that nothing asked for");
		return false;
	}
	store->reply = reply;
	store->is_asked = false;
	store->due_ns = NEVER_NS;
	return true;
}

/* Parse the complete replies in the bytes that have arrived. Returns whether the connection is still good. */
static bool parse(struct weir_store *store, const char *data, size_t bytes, uint64_t now_ns)
{
	const char *why = weir_replies_feed(store->replies, data, bytes);
	struct weir_reply *reply = NULL;

	while (!why) {
		why = weir_replies_next(store->replies, &reply);
		if (!why && !reply)
			return true;
		if (!why && !take(store, reply, now_ns))
			return false;
	}
	weir_store_drop(store, now_ns, why);
	return false;
}

static void read_in(struct weir_store *store, uint64_t now_ns)
{
	char buffer[16384];

	for (;;) {
		ssize_t bytes = store->tls ? weir_tls_recv(store->tls, buffer, sizeof(buffer))
					   : recv(store->fd, buffer, sizeof(buffer), 0);

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0 && errno == EAGAIN)
			return;
		if (bytes <= 0) {
			weir_store_break_off(store, now_ns,
					     bytes ? weir_store_why_broken(store) : "it closed the connection");
			return;
		}
		if (!parse(store, buffer, (size_t)bytes, now_ns))
			return;
	}
}

/* ---- the contract ---- */

int weir_store_open(const struct weir_cluster_info *cluster, struct weir_store **ret_store, struct weir_diag *diag)
{
	_cleanup_(weir_store_freep) struct weir_store *store = calloc(1, sizeof(*store));
	struct weir_refusal refusal;

	if (!store)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot reach the store");
	store->fd = -1;
	store->cluster = *cluster;
	store->retry_ns = RETRY_NS_MIN;
	if (weir_parse_store(cluster->redis, &store->address, &refusal))
		return weir_diag_error(diag, NULL, NULL, refusal.hint, "%s", refusal.message);
	*ret_store = TAKE_PTR(store);
	return 0;
}

void weir_store_free(struct weir_store *store)
{
	if (!store)
		return;
	weir_store_drop(store, 0, "");
	weir_lookup_free(store->lookup);
	free(store);
}

struct pollfd weir_store_poll(const struct weir_store *store)
{
	bool writes = store->state == STATE_CONNECTING || store->out_done < store->out_bytes;

	if (store->state == STATE_LOOKING_UP)
		return (struct pollfd){.fd = weir_lookup_fd(store->lookup), .events = POLLIN};
	if (store->state == STATE_SHAKING_HANDS)
		return (struct pollfd){.fd = store->fd, .events = weir_tls_poll_events(store->tls)};
	return (struct pollfd){
		.fd = store->fd,
		.events = (short)((store->state == STATE_CONNECTING ? 0 : POLLIN) | (writes ? POLLOUT : 0)),
	};
}

uint64_t weir_store_due_ns(const struct weir_store *store)
{
	return store->due_ns;
}

/* The current step has taken its full second. */
static void end_silence(struct weir_store *store, uint64_t now_ns)
{
	if (store->state == STATE_CONNECTING)
		weir_store_fail_to_connect(store, now_ns, "it did not accept a connection within a second");
	else if (store->state == STATE_SHAKING_HANDS)
		weir_store_fail_to_connect(store, now_ns,
					   "it did not answer TLS within a second: is this its 'tls-port'?");
	else if (store->state >= STATE_GREETING)
		weir_store_drop(store, now_ns, "it did not answer within a second");
}

void weir_store_step(struct weir_store *store, uint64_t now_ns)
{
	if (store->state == STATE_DOWN && now_ns >= store->due_ns)
		weir_store_begin_to_reach(store, now_ns);
	else if (store->state == STATE_LOOKING_UP)
		weir_store_look_at_lookup(store, now_ns);
	else if (store->state == STATE_CONNECTING)
		weir_store_look_at_connecting(store, now_ns);
	else if (store->state == STATE_SHAKING_HANDS)
		weir_store_shake_hands(store, now_ns);
	if (store->state >= STATE_GREETING)
		weir_store_write_out(store, now_ns);
	if (store->state >= STATE_GREETING)
		read_in(store, now_ns);
	if (now_ns >= store->due_ns)
		end_silence(store, now_ns);
}

bool weir_store_is_ready(const struct weir_store *store)
{
	return store->state == STATE_READY && !store->is_asked && !store->reply;
}

uint64_t weir_store_connection(const struct weir_store *store)
{
	return store->connection;
}

void weir_store_send(struct weir_store *store, size_t count, const char **words, const size_t *bytes, uint64_t now_ns)
{
	store->is_asked = true;
	store->due_ns = now_ns + TIMEOUT_NS;
	weir_store_append(store, count, words, bytes, now_ns);
}

struct weir_reply *weir_store_take_reply(struct weir_store *store)
{
	return TAKE_PTR(store->reply);
}

const char *weir_store_trouble(const struct weir_store *store)
{
	return store->trouble;
}

/* Poll and step once, until end_ns at most. */
static void wait_for(struct weir_store *store, uint64_t end_ns)
{
	struct pollfd polled = weir_store_poll(store);
	uint64_t now_ns = weir_host_now_ns(), due_ns = weir_store_due_ns(store);

	if (due_ns > end_ns)
		due_ns = end_ns;
	if (due_ns > now_ns)
		(void)poll(&polled, 1, (int)((due_ns - now_ns) / 1000000 + 1)); /* the step handles errors */
	weir_store_step(store, weir_host_now_ns());
}

static bool waits_until_ready(struct weir_store *store, uint64_t end_ns)
{
	weir_store_step(store, weir_host_now_ns());
	while (!weir_store_is_ready(store)) {
		if (weir_host_now_ns() >= end_ns)
			end_silence(store, weir_host_now_ns());
		if (weir_host_now_ns() >= end_ns || (store->state == STATE_DOWN && !weir_store_has_next(store)))
			return false;
		wait_for(store, end_ns);
	}
	return true;
}

static struct weir_reply *wait_for_reply(struct weir_store *store, uint64_t end_ns)
{
	while (!store->reply) {
		if (weir_host_now_ns() >= end_ns)
			end_silence(store, weir_host_now_ns());
		if (store->state == STATE_DOWN)
			return NULL;
		wait_for(store, end_ns);
	}
	return weir_store_take_reply(store);
}

struct weir_reply *weir_store_ask_until(struct weir_store *store, size_t count, const char **words, const size_t *bytes,
					uint64_t end_ns)
{
	if (!waits_until_ready(store, end_ns))
		return NULL;
	weir_store_send(store, count, words, bytes, weir_host_now_ns());
	weir_store_step(store, weir_host_now_ns());
	return wait_for_reply(store, end_ns);
}

struct weir_reply *weir_store_ask(struct weir_store *store, size_t count, const char **words, const size_t *bytes)
{
	if (!waits_until_ready(store, weir_host_now_ns() + TIMEOUT_NS))
		return NULL;
	return weir_store_ask_until(store, count, words, bytes, weir_host_now_ns() + TIMEOUT_NS);
}

const char *weir_store_version(void)
{
	static char words[64];

	snprintf(words, sizeof(words), "%s, %s", weir_replies_version(), weir_tls_version());
	return words;
}
