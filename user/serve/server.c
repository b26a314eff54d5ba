// SPDX-License-Identifier: GPL-2.0-only
/*
 * The server: libmicrohttpd, driven by one thread that waits for the sockets of all addresses at once.
 *
 * Limits for clients: a connection is cut off if no request has ended on it for REQUEST_NS, even if it slowly keeps
 * sending or receiving. If more than CONNECTIONS_KEPT are open, the one that has been quiet longest is closed, so a
 * client that opens many loses its own. A request has at most CONNECTION_BYTES, and no body.
 */
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"
#include "serve/answer.h"
#include "serve/serve.h"

/* All chosen, not derived. */
#define CONNECTIONS_KEPT 48		    /* per address */
#define CONNECTIONS_MAX 64		    /* extra room for connections that were cut off but are not gone yet */
#define CONNECTION_BYTES 16384		    /* memory for the head of a request, and for that of its reply */
#define REQUEST_NS (10 * WEIR_NSEC_PER_SEC) /* Prometheus also allows 10 s for a scrape */
#define NICENESS 5			    /* packets and the controller have priority */
#define HANGS_S 60			    /* for one round of the loop, which reads a full table at most once */

/* An open connection. */
struct connection {
	bool is_open;
	int fd;
	uint64_t quiet_since_ns; /* when it was opened, or when the last request on it ended */
};

/* One listening address. */
struct door {
	struct MHD_Daemon *daemon;
	const struct weir_listener *listener;
	struct weir_source *source;
	int epoll_fd;
	struct connection connections[CONNECTIONS_MAX];
	size_t open_count;
};

const char *weir_serve_version(void)
{
	static char words[64];

	snprintf(words, sizeof(words), "libmicrohttpd %s%s", MHD_get_version(),
		 weir_page_is_built() ? "" : " (without page)");
	return words;
}

/* ---- connections ---- */

/* The library notices the end, and closes the connection. */
static void cut_off(struct connection *connection)
{
	if (connection->is_open)
		shutdown(connection->fd, SHUT_RDWR);
}

static struct connection *quietest(struct door *door)
{
	struct connection *found = NULL;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *each = &door->connections[i];

		if (each->is_open && (!found || each->quiet_since_ns < found->quiet_since_ns))
			found = each;
	}
	return found;
}

static void note_opened(struct door *door, struct MHD_Connection *made, void **socket_context)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(made, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *oldest = door->open_count >= CONNECTIONS_KEPT ? quietest(door) : NULL;

	*socket_context = NULL;
	if (oldest) {
		cut_off(oldest);
		oldest->quiet_since_ns = UINT64_MAX; /* choose another one next time, if this one takes a while to go */
	}
	for (size_t i = 0; info && i < CONNECTIONS_MAX; i++) {
		struct connection *each = &door->connections[i];

		if (each->is_open)
			continue;
		*each = (struct connection){
			.is_open = true,
			.fd = info->connect_fd,
			.quiet_since_ns = weir_host_now_ns(),
		};
		door->open_count++;
		*socket_context = each;
		return;
	}
}

static void note_connection(void *data, struct MHD_Connection *connection, void **socket_context,
			    enum MHD_ConnectionNotificationCode code)
{
	struct connection *known = *socket_context;
	struct door *door = data;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		note_opened(door, connection, socket_context);
	} else if (known) {
		known->is_open = false;
		door->open_count--;
	}
}

/* A request has ended: its reply has been sent, or it was aborted. */
static void note_request(void *data, struct MHD_Connection *connection, void **request_context,
			 enum MHD_RequestTerminationCode code)
{
	const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct connection *known = info ? info->socket_context : NULL;

	if (known && code == MHD_REQUEST_TERMINATED_COMPLETED_OK && known->quiet_since_ns != UINT64_MAX)
		known->quiet_since_ns = weir_host_now_ns();
}

/* ---- requests ---- */

/* Sent with every reply: nothing may be loaded from other origins, framed, sniffed or cached. */
static const struct {
	const char *name, *value;
} headers[] = {
	{MHD_HTTP_HEADER_CONTENT_SECURITY_POLICY,
	 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
	 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
};

static struct MHD_Response *make_response(const struct weir_reply *reply)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		reply->bytes, reply->body, reply->is_static ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
	char age[16];

	if (!response) {
		if (!reply->is_static)
			free(reply->body);
		return NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		MHD_add_response_header(response, headers[i].name, headers[i].value);
	if (reply->type)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type);
	if (reply->allow)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow);
	snprintf(age, sizeof(age), "%u", reply->age_s);
	if (reply->age_s)
		MHD_add_response_header(response, MHD_HTTP_HEADER_AGE, age);
	return response;
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

static const char *argument(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

static bool announces_body(struct MHD_Connection *connection)
{
	const char *length = header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);

	return header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) || (length && strcmp(length, "0"));
}

/*
 * The library calls this when the head of a request has arrived, and again at the request's end. A request with a body
 * is answered at once, because the body is never read; its connection is then closed. Other requests are answered at
 * their end, so that their connections can be reused.
 */
static enum MHD_Result take_request(void *data, struct MHD_Connection *connection, const char *path, const char *method,
				    const char *version, const char *upload, size_t *upload_bytes,
				    void **request_context)
{
	const struct door *door = data;
	const struct weir_request request = {
		.method = method,
		.path = path,
		.host = header(connection, MHD_HTTP_HEADER_HOST),
		.accept = header(connection, MHD_HTTP_HEADER_ACCEPT),
		.fetch_site = header(connection, "Sec-Fetch-Site"),
		.number = argument(connection, "number"),
		.drops = argument(connection, "drops"),
		.has_body = announces_body(connection),
		.is_loopback = door->listener->is_loopback && !door->listener->path[0],
	};
	const bool is_whole = *request_context;
	struct MHD_Response *response;
	struct weir_reply reply;
	enum MHD_Result result;

	*request_context = data; /* anything but NULL, to mark the second call */
	if (!is_whole && !request.has_body)
		return MHD_YES;
	weir_answer(door->source, &request, &reply);
	response = make_response(&reply);
	if (!response)
		return MHD_NO;
	result = MHD_queue_response(connection, reply.status, response);
	MHD_destroy_response(response);
	return result;
}

/* ---- the loop ---- */

static int open_door(struct door *door, struct weir_diag *diag)
{
	const union MHD_DaemonInfo *info;

	door->daemon = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, take_request, door, MHD_OPTION_LISTEN_SOCKET,
					door->listener->fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
					MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
					MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)(REQUEST_NS / WEIR_NSEC_PER_SEC),
					MHD_OPTION_NOTIFY_CONNECTION, note_connection, door,
					MHD_OPTION_NOTIFY_COMPLETED, note_request, door, MHD_OPTION_END);
	info = door->daemon ? MHD_get_daemon_info(door->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
	if (!info)
		return weir_diag_fail(diag, errno ? errno : ENOMEM, NULL, "cannot start the server");
	door->epoll_fd = info->epoll_fd;
	return 0;
}

/* The time until something needs to be done, in ms; -1: not before a socket is ready. */
static int patience_ms(const struct door *door)
{
	MHD_UNSIGNED_LONG_LONG ms;

	if (MHD_get_timeout(door->daemon, &ms) == MHD_YES && ms < 500)
		return ms;
	return door->open_count ? 500 : -1;
}

static int serve_once(struct door *doors, size_t count, struct pollfd *polled)
{
	int timeout_ms = -1;

	for (size_t i = 0; i < count; i++) {
		const int ms = patience_ms(&doors[i]);

		polled[i] = (struct pollfd){.fd = doors[i].epoll_fd, .events = POLLIN};
		if (ms >= 0 && (timeout_ms < 0 || ms < timeout_ms))
			timeout_ms = ms;
	}
	alarm(0);
	if (poll(polled, count, timeout_ms) < 0 && errno != EINTR)
		return -errno;
	alarm(HANGS_S); /* if a round hangs, this ends the process, which is then restarted */
	for (size_t i = 0; i < count; i++) {
		const uint64_t now_ns = weir_host_now_ns();

		for (size_t c = 0; c < CONNECTIONS_MAX; c++) /* those that are too slow */
			if (doors[i].connections[c].is_open &&
			    now_ns > doors[i].connections[c].quiet_since_ns + REQUEST_NS)
				cut_off(&doors[i].connections[c]);
		MHD_run(doors[i].daemon);
	}
	return 0;
}

static int serve(const struct weir_serve *serve, struct weir_diag *diag)
{
	_cleanup_(weir_freep) struct pollfd *polled = calloc(serve->count, sizeof(*polled));
	struct door *doors = calloc(serve->count, sizeof(*doors));
	_cleanup_(weir_source_free) struct weir_source source = {
		.instance_name = serve->instance,
		.notes = serve->notes,
	};
	int err = 0;

	if (!polled || !doors) {
		free(doors);
		return weir_diag_fail(diag, ENOMEM, NULL, "cannot start the server");
	}
	for (size_t i = 0; !err && i < serve->count; i++) {
		doors[i].listener = &serve->listeners[i];
		doors[i].source = &source;
		err = open_door(&doors[i], diag);
	}
	if (!err && setpriority(PRIO_PROCESS, 0, NICENESS))
		err = 0; /* serving works without it, ignoring */
	while (!err)
		err = serve_once(doors, serve->count, polled);
	for (size_t i = 0; i < serve->count; i++)
		if (doors[i].daemon)
			MHD_stop_daemon(doors[i].daemon);
	free(doors);
	return err;
}

const struct weir_server_row weir_serve_row = {.serve = serve};
