// SPDX-License-Identifier: GPL-2.0-only
/* Sending words to the store: how a connection ends, how commands are written, and how a connection begins. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "store/replies.h"
#include "store/store_state.h"
#include "store/tls.h"

/* ---- the end of a connection ---- */

void weir_store_drop(struct weir_store *store, uint64_t now_ns, const char *why)
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

/* The head of a command or a word: a sign, a number of up to 20 digits, and the line's end. */
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

void weir_store_append(struct weir_store *store, size_t count, const char **words, const size_t *bytes, uint64_t now_ns)
{
	size_t most = store->out_bytes + HEAD_BYTES_MAX;
	char *out, *at;

	for (size_t i = 0; i < count; i++)
		most += HEAD_BYTES_MAX + bytes[i] + strlen("\r\n");
	out = realloc(store->out, most);
	if (!out) {
		weir_store_drop(store, now_ns, "out of memory");
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

const char *weir_store_why_broken(const struct weir_store *store)
{
	return store->tls ? weir_tls_trouble(store->tls) : strerror(errno);
}

void weir_store_break_off(struct weir_store *store, uint64_t now_ns, const char *why)
{
	bool may_ask_for_tls = !store->tls && store->state == STATE_GREETING && !store->address.path[0];

	snprintf(store->trouble, sizeof(store->trouble), "%s%s", why,
		 may_ask_for_tls ? ": does it require TLS ('rediss://')?" : "");
	weir_store_drop(store, now_ns, store->trouble);
}

void weir_store_write_out(struct weir_store *store, uint64_t now_ns)
{
	while (store->out_done < store->out_bytes) {
		const char *rest = store->out + store->out_done;
		const size_t bytes = store->out_bytes - store->out_done;
		ssize_t sent = store->tls ? weir_tls_send(store->tls, rest, bytes)
					  : send(store->fd, rest, bytes, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			return;
		if (sent < 0) {
			weir_store_break_off(store, now_ns, weir_store_why_broken(store));
			return;
		}
		store->out_done += (size_t)sent;
	}
	store->out_bytes = store->out_done = 0;
}

/* ---- greeting ---- */

/* Read the first line of the file. It is read for every connection, so that a change needs no reload. */
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
	weir_store_append(store, count, words, bytes, now_ns);
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
		weir_store_drop(store, now_ns, store->trouble);
		return;
	}
	if (store->address.user[0])
		send_words(store, 3, (const char *[]){"AUTH", store->address.user, password}, now_ns);
	else
		send_words(store, 2, (const char *[]){"AUTH", password}, now_ns);
	explicit_bzero(password, sizeof(password));
}

void weir_store_greet(struct weir_store *store, uint64_t now_ns)
{
	char database[16];

	store->state = STATE_GREETING;
	store->greetings = 0;
	store->replies = weir_replies_open();
	if (!store->replies) {
		weir_store_drop(store, now_ns, "out of memory");
		return;
	}
	if (store->cluster.password_file[0])
		greet_by_password(store, now_ns);
	snprintf(database, sizeof(database), "%u", store->address.database);
	if (store->state == STATE_GREETING) /* this also proves that somebody answers */
		send_words(store, 2, (const char *[]){"SELECT", database}, now_ns);
}

void weir_store_end_greeting(struct weir_store *store)
{
	store->state = STATE_READY;
	store->next = store->found.count; /* when this connection ends, the name may have another address */
	store->connection++;
	store->due_ns = NEVER_NS;
	store->retry_ns = RETRY_NS_MIN;
	store->trouble[0] = '\0';
}
