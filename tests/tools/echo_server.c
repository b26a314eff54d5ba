// SPDX-License-Identifier: GPL-2.0-only
/*
 * echo_server: give back what comes in over TCP, and know how many connections are really open at once: those that the
 * kernel says are established. One that is silent for --idle-ms is closed.
 *
 * At each connection that is accepted they are looked at twice. A connection established in both looks was open all
 * the time between, so those of both looks were open at once, whatever came and went meanwhile. What a client has begun
 * to end is open no more (--shown FILE, shown.h), nor is what is about to be closed for its silence.
 *
 * Prints "ready"; on SIGUSR1 "now COUNT"; at the end, and the most at once of any one source and of all:
 *
 *	final ACCEPTED source MOST all MOST idle CLOSED
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/util.h"
#include "host/host.h"
#include "shown.h"

#define CONNECTIONS_MAX 4096
#define SOURCES_MAX 65536 /* by the last two bytes of the address */
#define PIECE_BYTES 65536
#define TICK_MS 50

struct connection {
	int fd; /* 0: no connection */
	struct in_addr source;
	uint16_t port;
	uint64_t received_ns;
	bool was_established; /* in the first of two looks */
};

static struct connection connections[CONNECTIONS_MAX]; /* by descriptor */
static uint32_t open_by_source[SOURCES_MAX];
static uint64_t accepted, closed_idle, most_of_source, most_of_all, idle_ns = 2400000000ull;
static volatile sig_atomic_t stopped, asked;
static uint8_t *shown; /* NULL: to nobody */

static void on_signal(int number)
{
	if (number == SIGUSR1)
		asked = 1;
	else
		stopped = 1;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* Established, and not silent for as long as ends it, by what the kernel has of its client. */
static bool is_established(int fd)
{
	struct tcp_info info;
	socklen_t bytes = sizeof(info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) && info.tcpi_state == TCP_ESTABLISHED &&
	       (info.tcpi_last_data_recv * 1000000ull < idle_ns || info.tcpi_last_ack_recv * 1000000ull < idle_ns);
}

static bool is_shown(const struct connection *connection)
{
	return !shown || *shown_at(shown, connection->source, connection->port);
}

/* How many are open at once, now. Fills open_by_source. */
static uint64_t count_open(void)
{
	uint64_t open = 0;

	memset(open_by_source, 0, sizeof(open_by_source));
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		connections[i].was_established = connections[i].fd && is_established(i);
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (!connections[i].was_established || !is_established(i) || !is_shown(&connections[i]))
			continue;
		open_by_source[(uint16_t)ntohl(connections[i].source.s_addr)]++;
		open++;
	}
	return open;
}

static void note_most(void)
{
	uint64_t open = count_open();

	if (open > most_of_all)
		most_of_all = open;
	for (int i = 0; i < SOURCES_MAX; i++)
		if (open_by_source[i] > most_of_source)
			most_of_source = open_by_source[i];
}

static void end(struct connection *connection)
{
	close(connection->fd);
	connection->fd = 0;
}

static void accept_all(int listener, int epoll)
{
	struct sockaddr_in client = {};
	socklen_t bytes = sizeof(client);
	uint64_t before = accepted;
	int fd;

	while ((fd = accept4(listener, (struct sockaddr *)&client, &bytes, SOCK_NONBLOCK)) >= 0) {
		struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

		if (fd >= CONNECTIONS_MAX) {
			fputs("echo_server: too many connections\n", stderr);
			exit(1);
		}
		connections[fd] = (struct connection){
			.fd = fd,
			.source = client.sin_addr,
			.port = ntohs(client.sin_port),
			.received_ns = weir_host_now_ns(),
		};
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event))
			die("epoll_ctl");
		accepted++;
	}
	if (accepted != before)
		note_most();
}

/* Clients wait for their answer before they send more, so that there is always room for it. */
static void answer(struct connection *connection)
{
	static char piece[PIECE_BYTES];
	ssize_t bytes = recv(connection->fd, piece, sizeof(piece), 0);

	if (bytes < 0 && errno == EAGAIN)
		return;
	if (bytes <= 0) {
		end(connection);
		return;
	}
	connection->received_ns = weir_host_now_ns();
	if (send(connection->fd, piece, bytes, MSG_NOSIGNAL) != bytes)
		end(connection);
}

static void end_silent(void)
{
	uint64_t now = weir_host_now_ns();

	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		if (!connections[i].fd || now - connections[i].received_ns < idle_ns)
			continue;
		end(&connections[i]);
		closed_idle++;
	}
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1024))
		die("cannot listen");
	return fd;
}

static void serve(int listener)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
	int epoll = epoll_create1(0);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event))
		die("epoll");
	while (!stopped) {
		/* Who asks is answered when nobody waits any more to be accepted, or closed. */
		int count = epoll_wait(epoll, events, ARRAY_SIZE(events), asked ? 0 : TICK_MS);

		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == listener)
				accept_all(listener, epoll);
			else if (connections[events[i].data.fd].fd)
				answer(&connections[events[i].data.fd]);
		}
		end_silent();
		if (asked && count == 0) {
			asked = 0;
			printf("now %llu\n", (unsigned long long)count_open());
			fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{"port", required_argument, NULL, 'p'},
		{"idle-ms", required_argument, NULL, 'i'},
		{"shown", required_argument, NULL, 's'},
		{},
	};
	uint16_t port = 80;
	int option, listener;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == 'p')
			port = atoi(optarg);
		else if (option == 'i')
			idle_ns = atoll(optarg) * 1000000ull;
		else if (option == 's')
			shown = shown_map(optarg);
		else
			return 2;
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_signal);
	listener = listen_on(port);
	puts("ready");
	fflush(stdout);
	serve(listener);
	printf("final %llu source %llu all %llu idle %llu\n", (unsigned long long)accepted,
	       (unsigned long long)most_of_source, (unsigned long long)most_of_all, (unsigned long long)closed_idle);
	return 0;
}
