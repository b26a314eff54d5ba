// SPDX-License-Identifier: GPL-2.0-only
/*
 * crowd: many TCP clients of an echo server (echo_server), each with an address of its own, that open connections,
 * talk, close, reset and vanish at random, and take the same port again. Each wants up to --most at once. Those that a
 * client has it talks on all the time, and every byte must come back: one that fails is *disturbed*.
 *
 * With --hold they open --most each and keep them. The last --mortal of the clients fall silent after --mortal-ms, and
 * stay so. When the time (--seconds) is over everybody is silent for --pause-ms, and then the process ends, with
 * whatever is open. With --settle they talk on what is open then, and change nothing, until SIGUSR1. Prints "ready"
 * when all that hold have their connections, "settled" when nobody opens or ends any more, "silent" when nobody talks,
 * and at the end:
 *
 *	final OPENED refused N rounds N disturbed N closed N reset N vanished N again N
 *
 * --shown FILE: what clients have open, for echo_server, as shown.h says.
 *
 * "refused" are those that had no answer in time, "again" those opened from a port just used.
 */
#include <assert.h>
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "shown.h"

#define CLIENTS_MAX 1000
#define WANTED_MAX 64
#define MESSAGE_BYTES_MAX 4096
#define MS 1000000ull
#define SECOND (1000 * MS)
/* An answer that takes longer is none. Well above what a busy machine needs. */
#define ANSWER_MS 2000
/* The server is right to close a connection on which it was we who did not talk for so long. */
#define SILENCE_NS SECOND

struct connection {
	int fd; /* 0: none */
	uint16_t port;
	uint64_t talked_ns; /* when we last had an answer */
};

struct client {
	struct in_addr address;
	bool is_mortal;
	uint64_t random;
	struct connection connection[WANTED_MAX];
	pthread_t thread;
};

static struct client clients[CLIENTS_MAX];
static struct sockaddr_in server = {.sin_family = AF_INET};
static unsigned int client_count = 50, mortals, most = 8;
static bool holds, settles;
static uint8_t *shown; /* NULL: to nobody */
static uint64_t end_ns, mortal_ns = UINT64_MAX;
static atomic_uint opened, refused, rounds, disturbed, closed, were_reset, vanished, again, holding, settled;
static volatile sig_atomic_t stopped, is_quiet;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		is_quiet = 1;
	else
		stopped = 1;
}

static void sleep_ms(uint32_t ms)
{
	const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * MS};

	nanosleep(&pause, NULL);
}

/* xorshift64 (Marsaglia, 2003). */
static uint64_t draw(struct client *client, uint64_t below)
{
	assert(below);
	client->random ^= client->random << 13;
	client->random ^= client->random >> 7;
	client->random ^= client->random << 17;
	return client->random % below;
}

/* ---- one connection ---- */

static void show(const struct client *client, uint16_t port, bool is_open)
{
	if (shown)
		shown_at(shown, client->address, port)[0] = is_open;
}

/* Wait for the connection that was begun. */
static bool is_made(int fd, int wait_ms)
{
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	int err = 0;
	socklen_t bytes = sizeof(err);

	return poll(&ready, 1, wait_ms) == 1 && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes) && !err;
}

/* Open from this port, or any (0). Time for the first SYN alone, or for one more (a second later) too. */
static bool open_connection(struct client *client, uint16_t port, struct connection *connection)
{
	struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = client->address, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1;
	socklen_t bytes = sizeof(from);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		return false;
	if (bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
	    (connect(fd, (struct sockaddr *)&server, sizeof(server)) && errno != EINPROGRESS) ||
	    !is_made(fd, draw(client, 20) ? 50 : 1100)) {
		close(fd);
		refused++;
		return false;
	}
	getsockname(fd, (struct sockaddr *)&from, &bytes);
	*connection = (struct connection){.fd = fd, .port = ntohs(from.sin_port), .talked_ns = weir_host_now_ns()};
	show(client, connection->port, true);
	return true;
}

static bool send_all(int fd, const uint8_t *bytes, size_t count)
{
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	while (count) {
		ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN && poll(&room, 1, ANSWER_MS) == 1)
			continue;
		if (sent <= 0)
			return false;
		bytes += sent;
		count -= sent;
	}
	return true;
}

static bool receive_all(int fd, uint8_t *bytes, size_t count)
{
	struct pollfd some = {.fd = fd, .events = POLLIN};

	while (count) {
		ssize_t received;

		if (poll(&some, 1, ANSWER_MS) != 1) {
			errno = ETIMEDOUT;
			return false;
		}
		errno = 0;
		received = recv(fd, bytes, count, 0);
		if (received <= 0)
			return false;
		bytes += received;
		count -= received;
	}
	return true;
}

/* Say something, and have it back. False: the connection is gone. */
static bool talk(struct client *client, struct connection *connection)
{
	size_t bytes = 1 + draw(client, MESSAGE_BYTES_MAX);
	uint8_t said[MESSAGE_BYTES_MAX], heard[MESSAGE_BYTES_MAX];
	uint64_t began_ns = weir_host_now_ns();

	for (size_t i = 0; i < bytes; i++)
		said[i] = draw(client, 256);
	if (send_all(connection->fd, said, bytes) && receive_all(connection->fd, heard, bytes) &&
	    !memcmp(said, heard, bytes)) {
		rounds++;
		connection->talked_ns = weir_host_now_ns();
		return true;
	}
	if (began_ns - connection->talked_ns < SILENCE_NS) {
		fprintf(stderr, "disturbed: port %u: %s\n", connection->port,
			errno ? strerror(errno) : "ended, or other bytes");
		disturbed++;
	}
	show(client, connection->port, false);
	close(connection->fd);
	connection->fd = 0;
	return false;
}

enum ending { CLOSE, RESET, VANISH, ENDINGS };

/* A socket under repair is closed without a word: it stays open for the server, and so it is still shown. */
static void end_connection(const struct client *client, struct connection *connection, enum ending ending)
{
	const struct linger at_once = {.l_onoff = 1};
	int on = TCP_REPAIR_ON;

	if (ending == RESET)
		setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (ending == VANISH && setsockopt(connection->fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)))
		perror("TCP_REPAIR");
	if (ending != VANISH)
		show(client, connection->port, false);
	close(connection->fd);
	connection->fd = 0;
	atomic_fetch_add(ending == RESET ? &were_reset : ending == VANISH ? &vanished : &closed, 1);
}

/* ---- one client ---- */

static void open_another(struct client *client, struct connection *connection, uint16_t port)
{
	if (!open_connection(client, port, connection))
		return;
	opened++;
	again += port != 0;
	talk(client, connection);
}

static void change_something(struct client *client)
{
	struct connection *connection = &client->connection[draw(client, most)];
	enum ending ending = draw(client, ENDINGS);
	uint16_t port = connection->port;

	if (!connection->fd) {
		open_another(client, connection, 0);
	} else if (draw(client, 3) == 0) {
		end_connection(client, connection, ending);
		if (draw(client, 2))
			open_another(client, connection, port);
	}
}

static void hold(struct client *client)
{
	for (unsigned int i = 0; i < most; i++)
		while (!client->connection[i].fd && weir_host_now_ns() < end_ns)
			open_another(client, &client->connection[i], 0);
	holding++;
}

static void talk_on_all(struct client *client)
{
	for (unsigned int i = 0; i < most; i++)
		if (client->connection[i].fd)
			talk(client, &client->connection[i]);
}

static void *live(void *data)
{
	struct client *client = data;
	uint64_t until_ns = client->is_mortal && mortal_ns < end_ns ? mortal_ns : end_ns;

	if (holds)
		hold(client);
	while (!stopped && weir_host_now_ns() < until_ns) {
		talk_on_all(client);
		if (!holds)
			change_something(client);
		sleep_ms(10 + draw(client, 40));
	}
	settled += !client->is_mortal;
	while (settles && !client->is_mortal && !stopped && !is_quiet) {
		talk_on_all(client);
		sleep_ms(10 + draw(client, 40));
	}
	return NULL;
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

static void join(unsigned int first, unsigned int end)
{
	for (unsigned int i = first; i < end; i++)
		pthread_join(clients[i].thread, NULL);
}

static void let_all_live(uint32_t first_address, uint32_t pause_ms)
{
	for (unsigned int i = 0; i < client_count; i++) {
		clients[i].address.s_addr = htonl(first_address + i);
		clients[i].random = first_address * 1000003ull + i + 1;
		clients[i].is_mortal = i + mortals >= client_count;
		if (pthread_create(&clients[i].thread, NULL, live, &clients[i]))
			exit(1);
	}
	while (holds && holding < client_count)
		sleep_ms(5);
	say("ready");
	if (mortals) {
		join(client_count - mortals, client_count);
		say("mortals have ended");
	}
	while (settled < client_count - mortals)
		sleep_ms(5);
	say("settled");
	join(0, client_count - mortals);
	say("silent");
	for (uint32_t ms = 0; ms < pause_ms && !stopped; ms += 10)
		sleep_ms(10);
	printf("final %u refused %u rounds %u disturbed %u closed %u reset %u vanished %u again %u\n", opened, refused,
	       rounds, disturbed, closed, were_reset, vanished, again);
}

static const struct option long_options[] = {
	{"server", required_argument, NULL, 's'},
	{"port", required_argument, NULL, 'p'},
	{"from", required_argument, NULL, 'f'},
	{"clients", required_argument, NULL, 'c'},
	{"most", required_argument, NULL, 'n'},
	{"seconds", required_argument, NULL, 't'},
	{"hold", no_argument, NULL, 'h'},
	{"mortal", required_argument, NULL, 'm'},
	{"mortal-ms", required_argument, NULL, 'M'},
	{"pause-ms", required_argument, NULL, 'w'},
	{"settle", no_argument, NULL, 'e'},
	{"shown", required_argument, NULL, 'o'},
	{},
};

int main(int argc, char **argv)
{
	uint32_t seconds = 5, pause_ms = 0;
	struct in_addr from = {};
	int option;

	server.sin_port = htons(80);
	end_ns = weir_host_now_ns();
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case 's':
			inet_pton(AF_INET, optarg, &server.sin_addr);
			break;
		case 'p':
			server.sin_port = htons(atoi(optarg));
			break;
		case 'f':
			inet_pton(AF_INET, optarg, &from);
			break;
		case 'c':
			client_count = atoi(optarg);
			break;
		case 'n':
			most = atoi(optarg);
			break;
		case 't':
			seconds = atoi(optarg);
			break;
		case 'h':
			holds = true;
			break;
		case 'm':
			mortals = atoi(optarg);
			break;
		case 'M':
			mortal_ns = end_ns + atoll(optarg) * MS;
			break;
		case 'w':
			pause_ms = atoi(optarg);
			break;
		case 'e':
			settles = true;
			break;
		case 'o':
			shown = shown_map(optarg);
			break;
		default:
			return 2;
		}
	}
	if (!server.sin_addr.s_addr || !from.s_addr || !client_count || client_count > CLIENTS_MAX || !most ||
	    most > WANTED_MAX || mortals > client_count)
		return 2;
	end_ns += seconds * SECOND;
	signal(SIGTERM, on_signal);
	signal(SIGUSR1, on_signal);
	let_all_live(ntohl(from.s_addr), pause_ms);
	return 0;
}
