// SPDX-License-Identifier: GPL-2.0-only
/* Reaching the store: resolving its name, connecting the socket, and TLS. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/util.h"
#include "store/lookup.h"
#include "store/store_state.h"
#include "store/tls.h"

/* ---- connecting ---- */

static int connect_to(const struct weir_store_address *address, uint32_t scope, int fd)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct sockaddr_in ipv4 = {.sin_family = AF_INET, .sin_port = htons(address->port)};
	struct sockaddr_in6 ipv6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(address->port),
		.sin6_scope_id = scope,
	};

	if (address->path[0]) {
		memcpy(local.sun_path, address->path, sizeof(local.sun_path));
		return connect(fd, (struct sockaddr *)&local, sizeof(local));
	}
	if (address->family == 4) {
		memcpy(&ipv4.sin_addr, address->address, sizeof(ipv4.sin_addr));
		return connect(fd, (struct sockaddr *)&ipv4, sizeof(ipv4));
	}
	memcpy(&ipv6.sin6_addr, address->address, sizeof(ipv6.sin6_addr));
	return connect(fd, (struct sockaddr *)&ipv6, sizeof(ipv6));
}

void weir_store_fail_to_connect(struct weir_store *store, uint64_t now_ns, const char *why)
{
	char where[INET6_ADDRSTRLEN] = "";

	if (store->address.name[0] &&
	    inet_ntop(store->address.family == 4 ? AF_INET : AF_INET6, store->address.address, where, sizeof(where)))
		snprintf(store->trouble, sizeof(store->trouble), "%s: %s", where, why);
	else
		snprintf(store->trouble, sizeof(store->trouble), "%s", why);
	weir_store_drop(store, now_ns, store->trouble);
}

/* ---- TLS ---- */

void weir_store_shake_hands(struct weir_store *store, uint64_t now_ns)
{
	char why[160];
	int err = weir_tls_shake_hands(store->tls);

	if (err == -EAGAIN)
		return;
	if (!err) {
		weir_store_greet(store, now_ns);
		return;
	}
	snprintf(why, sizeof(why), "%s", weir_tls_trouble(store->tls));
	weir_store_fail_to_connect(store, now_ns, why);
}

/* The authorities are read for every connection, like the password, so that a change needs no reload. */
static void begin_to_shake_hands(struct weir_store *store, uint64_t now_ns)
{
	const struct weir_store_address *address = &store->address;
	char name[WEIR_STORE_URL_CHARS], why[160];

	if (address->name[0])
		strcpy(name, address->name);
	else
		inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->address, name, sizeof(name));
	store->tls = weir_tls_open(store->fd, name, store->cluster.ca_file, why, sizeof(why));
	if (!store->tls) {
		weir_store_drop(store, now_ns, why);
		return;
	}
	store->state = STATE_SHAKING_HANDS;
	weir_store_shake_hands(store, now_ns);
}

/* The store has a second for the TLS handshake and the greeting together. */
static void begin_to_speak(struct weir_store *store, uint64_t now_ns)
{
	if (store->address.is_tls)
		begin_to_shake_hands(store, now_ns);
	else
		weir_store_greet(store, now_ns);
}

/* ---- its socket ---- */

static void begin_to_connect(struct weir_store *store, uint32_t scope, uint64_t now_ns)
{
	const struct weir_store_address *address = &store->address;
	int family = address->path[0] ? AF_UNIX : address->family == 4 ? AF_INET : AF_INET6;
	const int on = 1;

	store->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (store->fd < 0) {
		weir_store_fail_to_connect(store, now_ns, strerror(errno));
		return;
	}
	if (family != AF_UNIX)
		(void)setsockopt(store->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* without it, only slower */
	store->state = STATE_CONNECTING;
	store->due_ns = now_ns + TIMEOUT_NS;
	if (!connect_to(address, scope, store->fd))
		begin_to_speak(store, now_ns);
	else if (errno != EINPROGRESS)
		weir_store_fail_to_connect(store, now_ns, strerror(errno));
}

void weir_store_look_at_connecting(struct weir_store *store, uint64_t now_ns)
{
	struct pollfd polled = {.fd = store->fd, .events = POLLOUT};
	socklen_t bytes = sizeof(int);
	int err = 0;

	if (poll(&polled, 1, 0) <= 0)
		return;
	if (getsockopt(store->fd, SOL_SOCKET, SO_ERROR, &err, &bytes))
		err = errno;
	if (err)
		weir_store_fail_to_connect(store, now_ns, strerror(err));
	else
		begin_to_speak(store, now_ns);
}

/* ---- its name ---- */

bool weir_store_has_next(const struct weir_store *store)
{
	return store->next < store->found.count;
}

static void try_next(struct weir_store *store, uint64_t now_ns)
{
	const struct weir_found_address *found = &store->found.addresses[store->next++];

	store->address.family = found->family;
	memcpy(store->address.address, found->address, sizeof(found->address));
	begin_to_connect(store, found->scope, now_ns);
}

/* A lookup that takes too long continues, and its result is for a later attempt. */
static void begin_to_look_up(struct weir_store *store, uint64_t now_ns)
{
	int err = store->lookup ? 0 : weir_lookup_begin(store->address.name, &store->lookup);

	if (err) {
		weir_store_drop(store, now_ns, strerror(-err));
		return;
	}
	store->state = STATE_LOOKING_UP;
	store->due_ns = now_ns + TIMEOUT_NS;
	if (!store->trouble[0])
		snprintf(store->trouble, sizeof(store->trouble), "its name is being looked up");
}

void weir_store_look_at_lookup(struct weir_store *store, uint64_t now_ns)
{
	struct weir_looked_up found;
	bool has_ended = weir_lookup_has_ended(store->lookup, &found);

	if (!has_ended && now_ns < store->due_ns)
		return;
	if (has_ended)
		weir_lookup_free(TAKE_PTR(store->lookup));
	if (has_ended && found.count)
		store->found = found;
	store->next = 0;
	if (weir_store_has_next(store)) {
		try_next(store, now_ns);
	} else if (has_ended) {
		weir_store_drop(store, now_ns, found.trouble);
	} else {
		store->due_ns = now_ns + TIMEOUT_NS; /* keep the previous reason in `trouble` */
	}
}

void weir_store_begin_to_reach(struct weir_store *store, uint64_t now_ns)
{
	if (!store->address.name[0])
		begin_to_connect(store, 0, now_ns);
	else if (weir_store_has_next(store))
		try_next(store, now_ns);
	else
		begin_to_look_up(store, now_ns);
}
