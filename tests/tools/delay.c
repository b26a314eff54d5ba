// SPDX-License-Identifier: GPL-2.0-only
/*
 * delay: a path that can be made slow. What comes in at --client goes out at --server at once; what comes in at
 * --server goes out at --client after --ms, in order. A line on standard input is another delay from then on, also for
 * what is on its way. So a server behind it answers as slowly as one likes, with real TCP at both ends.
 *
 * Prints "ready"; and when the delay has changed "changed AT_MS MS", the former by CLOCK_MONOTONIC. Ends on SIGTERM.
 *
 * Frames pass with their virtio_net_hdr: what a veth has not cut or summed up yet stays so.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "host/host.h"
#include "tool.h"

#define MS 1000000ull
#define FRAME_BYTES_MAX (sizeof(struct virtio_net_hdr) + 65536 + ETH_HLEN)

struct frame {
	struct frame *next;
	uint64_t due_ns;
	size_t bytes;
	uint8_t data[];
};

static struct frame *first, *last;
static uint64_t delay_ns;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "delay: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- the two ends ---- */

static int open_end(const char *interface)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	struct packet_mreq promiscuous = {.mr_type = PACKET_MR_PROMISC};
	int fd = socket(AF_PACKET, SOCK_RAW, 0), on = 1;

	address.sll_ifindex = promiscuous.mr_ifindex = if_nametoindex(interface);
	if (!address.sll_ifindex)
		wrong("no such interface", interface);
	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof(promiscuous)) ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		die("cannot open a packet socket");
	return fd;
}

static void send_frame(int fd, const void *data, size_t bytes)
{
	/* A queue that is full loses a frame, as any path does. */
	if (send(fd, data, bytes, 0) < 0 && errno != ENOBUFS && errno != EAGAIN && errno != ENETDOWN)
		die("cannot send");
}

/* ---- what is on its way ---- */

static void put_on_the_way(const void *data, size_t bytes)
{
	struct frame *frame = malloc(sizeof(*frame) + bytes);

	if (!frame)
		die("cannot keep a frame");
	*frame = (struct frame){.due_ns = weir_host_now_ns() + delay_ns, .bytes = bytes};
	memcpy(frame->data, data, bytes);
	if (last)
		last->next = frame;
	else
		first = frame;
	last = frame;
}

static void deliver_due(int fd)
{
	while (first && first->due_ns <= weir_host_now_ns()) {
		struct frame *frame = first;

		send_frame(fd, frame->data, frame->bytes);
		first = frame->next;
		if (!first)
			last = NULL;
		free(frame);
	}
}

/* In order all the same: nothing waits longer than what comes behind it. */
static void set_delay(uint64_t ms)
{
	uint64_t now_ns = weir_host_now_ns();

	delay_ns = ms * MS;
	for (struct frame *frame = first; frame; frame = frame->next)
		if (frame->due_ns > now_ns + delay_ns)
			frame->due_ns = now_ns + delay_ns;
	printf("changed %llu %llu\n", (unsigned long long)(now_ns / MS), (unsigned long long)ms);
	fflush(stdout);
}

/* ---- the loop ---- */

/* Until the next frame is due. */
static int pause_ms(void)
{
	uint64_t now_ns = weir_host_now_ns();

	if (!first)
		return 100;
	return first->due_ns > now_ns ? (first->due_ns - now_ns) / MS + 1 : 0;
}

static void pass_on(int client_fd, int server_fd)
{
	static uint8_t frame[FRAME_BYTES_MAX];
	struct pollfd ready[] = {
		{.fd = client_fd, .events = POLLIN},
		{.fd = server_fd, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	char line[32];
	ssize_t bytes;

	while (!stopped) {
		if (poll(ready, ARRAY_SIZE(ready), pause_ms()) < 0 && errno != EINTR)
			die("cannot wait");
		while ((bytes = recv(client_fd, frame, sizeof(frame), MSG_DONTWAIT)) > 0)
			send_frame(server_fd, frame, bytes);
		while ((bytes = recv(server_fd, frame, sizeof(frame), MSG_DONTWAIT)) > 0)
			put_on_the_way(frame, bytes);
		deliver_due(client_fd);
		if (!ready[2].revents)
			continue;
		bytes = read(STDIN_FILENO, line, sizeof(line) - 1);
		if (bytes <= 0) {
			ready[2].fd = -1; /* nobody changes it any more */
			continue;
		}
		line[bytes] = 0;
		line[strcspn(line, "\n")] = '\0';
		set_delay(number("delay", line));
	}
}

static const struct option long_options[] = {
	{"client", required_argument, NULL, 'c'},
	{"server", required_argument, NULL, 's'},
	{"ms", required_argument, NULL, 'm'},
	{},
};

int main(int argc, char **argv)
{
	const char *client = NULL, *server = NULL;
	int option, client_fd, server_fd;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (option) {
		case 'c':
			client = optarg;
			break;
		case 's':
			server = optarg;
			break;
		case 'm':
			delay_ns = number("ms", optarg) * MS;
			break;
		default:
			return 2;
		}
	}
	if (!client || !server)
		return 2;
	signal(SIGTERM, on_signal);
	client_fd = open_end(client);
	server_fd = open_end(server);
	puts("ready");
	fflush(stdout);
	pass_on(client_fd, server_fd);
	return 0;
}
