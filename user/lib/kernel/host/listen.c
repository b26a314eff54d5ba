// SPDX-License-Identifier: GPL-2.0-only
#include "host/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"

#define UNIX_PREFIX "unix:"
#define BACKLOG 64

/* The server of a killed 'weir run' ends soon after it, and holds the address until then. So a new 'weir run' waits for
 * the address. Chosen, not derived.
 */
#define IN_USE_WAIT_MS 3000
#define IN_USE_LOOK_MS 20

static int refuse(const char *address, const char *why, struct weir_diag *diag)
{
	return weir_diag_error(diag, NULL, NULL, "write '127.0.0.1:9617', '[::1]:9617' or 'unix:/run/weir/main.sock'",
			       "cannot listen on '%s': %s", address, why);
}

static const char in_use_hint[] = "another process has it: 'ss -lntxp' shows which; stop that, or use another address";

/* ---- network addresses ---- */

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

/* Split "127.0.0.1:9617" or "[::1]:9617" into host and port. Both are terminated by zeros that are written into `text`.
 */
static bool split(char *text, char **ret_host, char **ret_port)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text)
		return false;
	*colon = '\0';
	*ret_port = colon + 1;
	*ret_host = text;
	if (text[0] != '[')
		return !strchr(text, ':');
	if (colon[-1] != ']')
		return false;
	colon[-1] = '\0';
	*ret_host = text + 1;
	return true;
}

static int bind_to(const struct addrinfo *found, const char *address, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int fd =
		socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	const int yes = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, BACKLOG))
		return weir_diag_fail(diag, errno, errno == EADDRINUSE ? in_use_hint : NULL, "cannot listen on '%s'",
				      address);
	return TAKE_FD(fd);
}

static int listen_tcp(const char *address, bool anywhere, struct weir_listener *ret_listener, struct weir_diag *diag)
{
	const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
	_cleanup_(weir_freep) char *text = strdup(address);
	struct addrinfo *found;
	char *host, *port;
	int fd;

	if (!text)
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot listen on '%s'", address);
	if (!split(text, &host, &port))
		return refuse(address, "that is not an address with a port", diag);
	if (!*port || strspn(port, "0123456789") != strlen(port) || strlen(port) > 5 || atoi(port) > 65535)
		return refuse(address, "its port is not valid", diag);
	if (getaddrinfo(host, port, &hints, &found))
		return refuse(address, "its address is not valid; names are not looked up", diag);
	ret_listener->is_loopback = is_loopback(found->ai_addr);
	if (!ret_listener->is_loopback && !anywhere)
		fd = weir_diag_error(diag, NULL, NULL,
				     "there is no password and no TLS: put a reverse proxy in front of 127.0.0.1, or "
				     "add '--listen-anywhere'",
				     "will not listen on '%s': other hosts can reach it", address);
	else
		fd = bind_to(found, address, diag);
	freeaddrinfo(found);
	ret_listener->fd = fd;
	return fd < 0 ? fd : 0;
}

/* ---- unix sockets ---- */

/* Whether the socket was left by a process that no longer listens. */
static bool is_left_behind(const struct sockaddr_un *name)
{
	_cleanup_(weir_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat status;

	return fd >= 0 && !lstat(name->sun_path, &status) && S_ISSOCK(status.st_mode) &&
	       connect(fd, (const struct sockaddr *)name, sizeof(*name)) && errno == ECONNREFUSED;
}

/* Bind with the right mode from the start. */
static int bind_private(int fd, const struct sockaddr_un *name)
{
	const mode_t before = umask(0117);
	int err = bind(fd, (const struct sockaddr *)name, sizeof(*name)) ? -errno : 0;

	umask(before);
	return err;
}

static const char *explain_in_use(const char *path)
{
	struct stat status;

	return lstat(path, &status) || S_ISSOCK(status.st_mode) ? in_use_hint
								: "a file that is no socket has this name: use another";
}

static int listen_unix(const char *address, struct weir_listener *ret_listener, struct weir_diag *diag)
{
	_cleanup_(weir_closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const char *path = address + strlen(UNIX_PREFIX);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int err;

	if (path[0] != '/' || strlen(path) >= sizeof(name.sun_path))
		return refuse(address, "its path does not begin with '/', or has more than 107 characters", diag);
	strcpy(name.sun_path, path);
	if (fd < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot listen on '%s'", address);
	err = bind_private(fd, &name);
	if (err == -EADDRINUSE && is_left_behind(&name) && !unlink(path))
		err = bind_private(fd, &name);
	if (!err && listen(fd, BACKLOG))
		err = -errno;
	if (err)
		return weir_diag_fail(diag, -err, err == -EADDRINUSE ? explain_in_use(path) : NULL,
				      "cannot listen on '%s'", address);
	strcpy(ret_listener->path, path);
	ret_listener->is_loopback = true;
	ret_listener->fd = TAKE_FD(fd);
	return 0;
}

/* ---- the contract ---- */

int weir_listen(const char *address, bool anywhere, struct weir_listener *ret_listener, struct weir_diag *diag)
{
	const struct timespec pause = {.tv_nsec = IN_USE_LOOK_MS * 1000000L};

	for (int waited_ms = 0;; waited_ms += IN_USE_LOOK_MS) {
		struct weir_listener listener = {.fd = -1};
		struct weir_diag messages = {};
		int err = strncmp(address, UNIX_PREFIX, strlen(UNIX_PREFIX))
				  ? listen_tcp(address, anywhere, &listener, &messages)
				  : listen_unix(address, &listener, &messages);

		if (err == -EADDRINUSE && waited_ms < IN_USE_WAIT_MS) {
			weir_diag_free(&messages);
			nanosleep(&pause, NULL);
			continue;
		}
		weir_diag_move(diag, &messages, false);
		if (!err)
			*ret_listener = listener;
		return err;
	}
}

void weir_listener_address(const struct weir_listener *listener, char words[WEIR_LISTENER_BYTES])
{
	struct sockaddr_storage address = {};
	socklen_t bytes = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "?", port[6] = "?";

	if (listener->path[0]) {
		snprintf(words, WEIR_LISTENER_BYTES, UNIX_PREFIX "%s", listener->path);
		return;
	}
	if (!getsockname(listener->fd, (struct sockaddr *)&address, &bytes))
		getnameinfo((struct sockaddr *)&address, bytes, host, sizeof(host), port, sizeof(port),
			    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(words, WEIR_LISTENER_BYTES, address.ss_family == AF_INET6 ? "http://[%s]:%s/" : "http://%s:%s/", host,
		 port);
}

void weir_listener_close(struct weir_listener *listener)
{
	if (listener->path[0])
		unlink(listener->path);
	weir_closep(&listener->fd);
	*listener = (struct weir_listener){.fd = -1};
}
