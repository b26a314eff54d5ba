// SPDX-License-Identifier: GPL-2.0-only
/*
 * knock: open a TCP connection every --every-ms, and close it as soon as it is open. Each is one SYN and no more: one
 * without an answer is given up after --wait-ms, which is to be less than the second after which Linux repeats a SYN
 * (RFC 6298, 2.1).
 *
 * Prints a line for each when it is known what became of it: when its SYN was sent (CLOCK_MONOTONIC, in ms), and "made"
 * with the microseconds that its handshake took, or "unanswered". On SIGTERM, after --seconds, or after --count of
 * them, it opens no more.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "tool.h"

#define MS 1000000ull
#define WAITING_MAX 1024

/* Those without an answer yet, in the order of their opening. */
static struct pollfd waiting[WAITING_MAX];
static uint64_t began_ns[WAITING_MAX];
static unsigned int waiting_count;

static struct sockaddr_in server = {.sin_family = AF_INET};
static uint64_t every_ns = 50 * MS, wait_ns = 800 * MS, left = UINT64_MAX, end_ns;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = 1;
}

static void knock(uint64_t now_ns)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || waiting_count == WAITING_MAX ||
	    (connect(fd, (struct sockaddr *)&server, sizeof(server)) && errno != EINPROGRESS)) {
		perror("knock: cannot open a connection");
		exit(1);
	}
	waiting[waiting_count] = (struct pollfd){.fd = fd, .events = POLLOUT};
	began_ns[waiting_count++] = now_ns;
}

/* Tell what became of one of them, and forget it. */
static void print_answer(unsigned int which, bool is_made, uint64_t now_ns)
{
	printf("%llu ", (unsigned long long)(began_ns[which] / MS));
	if (is_made)
		printf("made %llu\n", (unsigned long long)((now_ns - began_ns[which]) / 1000));
	else
		puts("unanswered");
	fflush(stdout);
	close(waiting[which].fd);
	waiting_count--;
	memmove(&waiting[which], &waiting[which + 1], (waiting_count - which) * sizeof(*waiting));
	memmove(&began_ns[which], &began_ns[which + 1], (waiting_count - which) * sizeof(*began_ns));
}

static bool is_open(int fd)
{
	int err = 0;
	socklen_t bytes = sizeof(err);

	return !getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &bytes) && !err;
}

static void look_at_all(uint64_t now_ns)
{
	for (unsigned int i = waiting_count; i-- > 0;) {
		if (waiting[i].revents)
			print_answer(i, is_open(waiting[i].fd), now_ns);
		else if (now_ns - began_ns[i] >= wait_ns)
			print_answer(i, false, now_ns);
	}
}

static void knock_until_the_end(void)
{
	uint64_t now_ns = weir_host_now_ns(), next_ns = now_ns;

	while (waiting_count || (!stopped && left && now_ns < end_ns)) {
		if (!stopped && left && now_ns < end_ns && now_ns >= next_ns) {
			knock(now_ns);
			left--;
			next_ns += every_ns;
			if (next_ns < now_ns) /* held up: it makes nothing good */
				next_ns = now_ns;
		}
		poll(waiting, waiting_count, 1);
		now_ns = weir_host_now_ns();
		look_at_all(now_ns);
	}
}

static const struct option long_options[] = {
	{"server", required_argument, NULL, 's'},
	{"port", required_argument, NULL, 'p'},
	{"every-ms", required_argument, NULL, 'e'},
	{"wait-ms", required_argument, NULL, 'w'},
	{"seconds", required_argument, NULL, 't'},
	{"count", required_argument, NULL, 'c'},
	{},
};

int main(int argc, char **argv)
{
	uint64_t seconds = 5;
	int option;

	server.sin_port = htons(80);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case 's':
			if (inet_pton(AF_INET, optarg, &server.sin_addr) != 1)
				wrong("not an address", optarg);
			break;
		case 'p':
			server.sin_port = htons(number("port", optarg));
			break;
		case 'e':
			every_ns = number("every-ms", optarg) * MS;
			break;
		case 'w':
			wait_ns = number("wait-ms", optarg) * MS;
			break;
		case 'c':
			left = number("count", optarg);
			break;
		case 't':
			seconds = number("seconds", optarg);
			break;
		default:
			return 2;
		}
	}
	if (!server.sin_addr.s_addr || !every_ns)
		return 2;
	end_ns = weir_host_now_ns() + seconds * 1000 * MS;
	signal(SIGTERM, on_signal);
	knock_until_the_end();
	return 0;
}
