// SPDX-License-Identifier: GPL-2.0-only
#include "store/store.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/util.h"
#include "host/host.h"
#include "rules/store.h"
#include "store/lookup.h"
#include "store/replies.h"
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
	size_t next; /* of what was found: the address to try next; when there is none, its name is looked up anew */
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

/* ---- the end of a connection ---- */

static void drop(struct weir_store *store, uint64_t now_ns, const char *why)
{
	weir_tls_free(TAKE_PTR(store->tls));
	weir_closep(&store->fd);
	store->fd = -1;
	weir_replies_free(TAKE_PTR(store->replies));
	free(TAKE_PTR(store->out));
	store->out_bytes = store->out_done = 0;
	if (store->reply)
		weir_store_free_reply(TAKE_PTR(store->reply));
	store->is_asked = false;
	store->state = STATE_DOWN;
	store->due_ns = now_ns + store->retry_ns;
	store->retry_ns = store->retry_ns * 2 > RETRY_NS_MAX ? RETRY_NS_MAX : store->retry_ns * 2;
	if (why != store->trouble)
		snprintf(store->trouble, sizeof(store->trouble), "%s", why);
}

/* ---- writing ---- */

/* Of a command and of a word: a sign, a number of up to 20 digits, and the line's end. */
#define HEAD_BYTES_MAX 23

static char *write_head(char *at, char sign, size_t number)
{
	char digits[20];
	size_t count = 0;

	*at++ = sign;
	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count > 0)
		*at++ = digits[--count];
	*at++ = '\r';
	*at++ = '\n';
	return at;
}

/* By hand, as Redis's protocol has it: "*COUNT", and each word behind its "$BYTES". A thousand rules have 80,000 words
 * a second, and hiredis, which asks sprintf() for each, took a quarter of what a controller then cost.
 */
static void append(struct weir_store *store, size_t count, const char **words, const size_t *bytes, uint64_t now_ns)
{
	size_t most = store->out_bytes + HEAD_BYTES_MAX;
	char *out, *at;

	for (size_t i = 0; i < count; i++)
		most += HEAD_BYTES_MAX + bytes[i] + strlen("\r\n");
	out = realloc(store->out, most);
	if (!out) {
		drop(store, now_ns, "out of memory");
		return;
	}
	at = write_head(out + store->out_bytes, '*', count);
	for (size_t i = 0; i < count; i++) {
		at = write_head(at, '$', bytes[i]);
		memcpy(at, words[i], bytes[i]);
		at += bytes[i];
		*at++ = '\r';
		*at++ = '\n';
	}
	store->out = out;
	store->out_bytes = (size_t)(at - out);
}

static ssize_t send_some(struct weir_store *store, const void *data, size_t bytes)
{
	return store->tls ? weir_tls_send(store->tls, data, bytes) : send(store->fd, data, bytes, MSG_NOSIGNAL);
}

static const char *why_broken(const struct weir_store *store)
{
	return store->tls ? weir_tls_trouble(store->tls) : strerror(errno);
}

/* A store that asks for TLS breaks off at the first word without. The words are copied first: TLS's end with it. */
static void break_off(struct weir_store *store, uint64_t now_ns, const char *why)
{
	bool may_ask_for_tls = !store->tls && store->state == STATE_GREETING && !store->address.path[0];

	snprintf(store->trouble, sizeof(store->trouble), "%s%s", why,
		 may_ask_for_tls ? ": does it ask for TLS, 'rediss://'?" : "");
	drop(store, now_ns, store->trouble);
}

static void write_out(struct weir_store *store, uint64_t now_ns)
{
	while (store->out_done < store->out_bytes) {
		ssize_t sent = send_some(store, store->out + store->out_done, store->out_bytes - store->out_done);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0) {
			break_off(store, now_ns, why_broken(store));
			return;
		}
		store->out_done += (size_t)sent;
	}
	store->out_bytes = store->out_done = 0;
}

/* ---- greeting ---- */

/* The first line of the file. It is read for every connection, so that a change of it needs no reload. */
static int read_password(const char *path, char *password, size_t chars)
{
	_cleanup_(weir_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t bytes = fd < 0 ? -1 : read(fd, password, chars - 1);

	if (bytes < 0)
		return -errno;
	password[bytes] = '\0';
	password[strcspn(password, "\r\n")] = '\0';
	return 0;
}

static void send_words(struct weir_store *store, size_t count, const char **words, uint64_t now_ns)
{
	size_t bytes[4];

	for (size_t i = 0; i < count; i++)
		bytes[i] = strlen(words[i]);
	append(store, count, words, bytes, now_ns);
	store->greetings++;
}

static void greet_by_password(struct weir_store *store, uint64_t now_ns)
{
	const char *path = store->cluster.password_file;
	char password[512];
	int err = read_password(path, password, sizeof(password));

	if (err) {
		snprintf(store->trouble, sizeof(store->trouble), "its password cannot be read from '%.80s': %s", path,
			 strerror(-err));
		drop(store, now_ns, store->trouble);
		return;
	}
	if (store->address.user[0])
		send_words(store, 3, (const char *[]){"AUTH", store->address.user, password}, now_ns);
	else
		send_words(store, 2, (const char *[]){"AUTH", password}, now_ns);
	explicit_bzero(password, sizeof(password));
}

static void greet(struct weir_store *store, uint64_t now_ns)
{
	char database[16];

	store->state = STATE_GREETING;
	store->greetings = 0;
	store->replies = weir_replies_open();
	if (!store->replies) {
		drop(store, now_ns, "out of memory");
		return;
	}
	if (store->cluster.password_file[0])
		greet_by_password(store, now_ns);
	snprintf(database, sizeof(database), "%u", store->address.database);
	if (store->state == STATE_GREETING) /* also the proof that somebody answers */
		send_words(store, 2, (const char *[]){"SELECT", database}, now_ns);
}

static void end_greeting(struct weir_store *store)
{
	store->state = STATE_READY;
	store->next = store->found.count; /* when this ends, its name may be another address's */
	store->connection++;
	store->due_ns = NEVER_NS;
	store->retry_ns = RETRY_NS_MIN;
	store->trouble[0] = '\0';
}

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

static void fail_to_connect(struct weir_store *store, uint64_t now_ns, const char *why)
{
	char where[INET6_ADDRSTRLEN] = "";

	if (store->address.name[0] &&
	    inet_ntop(store->address.family == 4 ? AF_INET : AF_INET6, store->address.address, where, sizeof(where)))
		snprintf(store->trouble, sizeof(store->trouble), "%s: %s", where, why);
	else
		snprintf(store->trouble, sizeof(store->trouble), "%s", why);
	drop(store, now_ns, store->trouble);
}

/* ---- TLS ---- */

static void shake_hands(struct weir_store *store, uint64_t now_ns)
{
	char why[160];
	int err = weir_tls_shake_hands(store->tls);

	if (err == -EAGAIN)
		return;
	if (!err) {
		greet(store, now_ns);
		return;
	}
	snprintf(why, sizeof(why), "%s", weir_tls_trouble(store->tls));
	fail_to_connect(store, now_ns, why);
}

/* Authorities are read for every connection, as the password is: a change of them needs no reload. */
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
		drop(store, now_ns, why);
		return;
	}
	store->state = STATE_SHAKING_HANDS;
	shake_hands(store, now_ns);
}

/* A store that is reached has a second for both, and for the greeting. */
static void begin_to_speak(struct weir_store *store, uint64_t now_ns)
{
	if (store->address.is_tls)
		begin_to_shake_hands(store, now_ns);
	else
		greet(store, now_ns);
}

/* ---- its socket ---- */

static void begin_to_connect(struct weir_store *store, uint32_t scope, uint64_t now_ns)
{
	const struct weir_store_address *address = &store->address;
	int family = address->path[0] ? AF_UNIX : address->family == 4 ? AF_INET : AF_INET6;
	const int on = 1;

	store->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (store->fd < 0) {
		fail_to_connect(store, now_ns, strerror(errno));
		return;
	}
	if (family != AF_UNIX)
		(void)setsockopt(store->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower without */
	store->state = STATE_CONNECTING;
	store->due_ns = now_ns + TIMEOUT_NS;
	if (!connect_to(address, scope, store->fd))
		begin_to_speak(store, now_ns);
	else if (errno != EINPROGRESS)
		fail_to_connect(store, now_ns, strerror(errno));
}

static void look_at_connecting(struct weir_store *store, uint64_t now_ns)
{
	struct pollfd polled = {.fd = store->fd, .events = POLLOUT};
	socklen_t bytes = sizeof(int);
	int err = 0;

	if (poll(&polled, 1, 0) <= 0)
		return;
	if (getsockopt(store->fd, SOL_SOCKET, SO_ERROR, &err, &bytes))
		err = errno;
	if (err)
		fail_to_connect(store, now_ns, strerror(err));
	else
		begin_to_speak(store, now_ns);
}

/* ---- its name ---- */

static bool has_next(const struct weir_store *store)
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

/* A lookup that takes long goes on, and what it finds is for the attempt after. */
static void begin_to_look_up(struct weir_store *store, uint64_t now_ns)
{
	int err = store->lookup ? 0 : weir_lookup_begin(store->address.name, &store->lookup);

	if (err) {
		drop(store, now_ns, strerror(-err));
		return;
	}
	store->state = STATE_LOOKING_UP;
	store->due_ns = now_ns + TIMEOUT_NS;
	if (!store->trouble[0])
		snprintf(store->trouble, sizeof(store->trouble), "its name is being looked up");
}

/* With an answer, by what it found; without one, in time, by what was found before. */
static void look_at_lookup(struct weir_store *store, uint64_t now_ns)
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
	if (has_next(store)) {
		try_next(store, now_ns);
	} else if (has_ended) {
		drop(store, now_ns, found.trouble);
	} else {
		store->due_ns = now_ns + TIMEOUT_NS; /* what was wrong last stays the reason */
	}
}

static void begin_to_reach(struct weir_store *store, uint64_t now_ns)
{
	if (!store->address.name[0])
		begin_to_connect(store, 0, now_ns);
	else if (has_next(store))
		try_next(store, now_ns);
	else
		begin_to_look_up(store, now_ns);
}

/* ---- reading ---- */

/* A reply is there. Returns whether the connection is still good. */
static bool take(struct weir_store *store, struct weir_reply *reply, uint64_t now_ns)
{
	const char *error = weir_reply_error(reply);

	if (store->state == STATE_GREETING && error) {
		snprintf(store->trouble, sizeof(store->trouble), "it says '%.120s'", error);
		weir_store_free_reply(reply);
		drop(store, now_ns, store->trouble);
		return false;
	}
	if (store->state == STATE_GREETING) {
		weir_store_free_reply(reply);
		if (--store->greetings == 0)
			end_greeting(store);
		return true;
	}
	if (!store->is_asked || store->reply) {
		weir_store_free_reply(reply);
		drop(store, now_ns, "it answers what was not asked");
		return false;
	}
	store->reply = reply;
	store->is_asked = false;
	store->due_ns = NEVER_NS;
	return true;
}

/* Whole replies of what has come. Returns whether the connection is still good. */
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
	drop(store, now_ns, why);
	return false;
}

static ssize_t receive_some(struct weir_store *store, void *data, size_t bytes)
{
	return store->tls ? weir_tls_recv(store->tls, data, bytes) : recv(store->fd, data, bytes, 0);
}

static void read_in(struct weir_store *store, uint64_t now_ns)
{
	char buffer[16384];

	for (;;) {
		ssize_t bytes = receive_some(store, buffer, sizeof(buffer));

		if (bytes < 0 && errno == EINTR)
			continue;
		if (bytes < 0 && errno == EAGAIN)
			return;
		if (bytes <= 0) {
			break_off(store, now_ns, bytes ? why_broken(store) : "it closed the connection");
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
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot speak to the store");
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
	drop(store, 0, "");
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

/* What is under way has had its second. */
static void end_silence(struct weir_store *store, uint64_t now_ns)
{
	if (store->state == STATE_CONNECTING)
		fail_to_connect(store, now_ns, "it does not let us connect, for a second");
	else if (store->state == STATE_SHAKING_HANDS)
		fail_to_connect(store, now_ns, "it does not answer TLS, for a second: is this its 'tls-port'?");
	else if (store->state >= STATE_GREETING)
		drop(store, now_ns, "it does not answer, for a second");
}

void weir_store_step(struct weir_store *store, uint64_t now_ns)
{
	if (store->state == STATE_DOWN && now_ns >= store->due_ns)
		begin_to_reach(store, now_ns);
	else if (store->state == STATE_LOOKING_UP)
		look_at_lookup(store, now_ns);
	else if (store->state == STATE_CONNECTING)
		look_at_connecting(store, now_ns);
	else if (store->state == STATE_SHAKING_HANDS)
		shake_hands(store, now_ns);
	if (store->state >= STATE_GREETING)
		write_out(store, now_ns);
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
	append(store, count, words, bytes, now_ns);
}

struct weir_reply *weir_store_take_reply(struct weir_store *store)
{
	return TAKE_PTR(store->reply);
}

const char *weir_store_trouble(const struct weir_store *store)
{
	return store->trouble;
}

/* Until the store is ready, or has replied. */
static void wait_for(struct weir_store *store, uint64_t end_ns)
{
	struct pollfd polled = weir_store_poll(store);
	uint64_t now_ns = weir_host_now_ns(), due_ns = weir_store_due_ns(store);

	if (due_ns > end_ns)
		due_ns = end_ns;
	if (due_ns > now_ns)
		(void)poll(&polled, 1, (int)((due_ns - now_ns) / 1000000 + 1)); /* an error is met by the step */
	weir_store_step(store, weir_host_now_ns());
}

static bool waits_until_ready(struct weir_store *store, uint64_t end_ns)
{
	weir_store_step(store, weir_host_now_ns());
	while (!weir_store_is_ready(store)) {
		if (weir_host_now_ns() >= end_ns)
			end_silence(store, weir_host_now_ns());
		if (weir_host_now_ns() >= end_ns || (store->state == STATE_DOWN && !has_next(store)))
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

bool weir_store_is_built(void)
{
	return true;
}

const char *weir_store_version(void)
{
	static char words[64];

	snprintf(words, sizeof(words), "%s, %s", weir_replies_version(), weir_tls_version());
	return words;
}
