// SPDX-License-Identifier: GPL-2.0-only
#include "pipe.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "base/util.h"
#include "wire.h"

#define SERVER "198.18.0.1"
#define CLIENT "198.18.0.2"
#define PORT 5001
#define BULK_BYTES 131072
#define REQUEST_BYTES 64
#define GOES_ON 0 /* first byte of a request */
#define ENDS 1

struct pipe {
	struct rig *rig;
	pthread_t thread;
	pthread_barrier_t barrier; /* both meet here when there is something to do, and when it is done */
	int listener_fd, server_fd, client_fd, link_fd;
	uint32_t ifindex;
	/* Written by the server while the client waits. */
	enum pipe_traffic traffic;
	uint64_t until_ns;
	bool is_over;
	/* Written by the client before both meet. */
	pid_t client_tid;
	uint64_t count; /* of bytes sent, or of answers */
	uint64_t took_ns;
	bool is_sent; /* the count of bytes is final */
};

static void fail_if(bool is_wrong, const char *what)
{
	if (is_wrong)
		rig_fail(errno, "TCP between two namespaces: %s", what);
}

static struct sockaddr_in address_of_server(void)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = inet_addr(SERVER)};
}

static void send_at_once(int fd)
{
	int one = 1;

	fail_if(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), "cannot send small segments");
}

static void move(int fd, uint8_t *bytes, size_t count, bool is_sent)
{
	ssize_t moved = is_sent ? send(fd, bytes, count, MSG_NOSIGNAL) : recv(fd, bytes, count, MSG_WAITALL);

	fail_if(moved != (ssize_t)count, "the connection broke");
}

/* ---- the client ---- */

static void send_bulk(struct pipe *pipe)
{
	static uint8_t bytes[BULK_BYTES];

	for (pipe->count = 0; rig_now_ns() < pipe->until_ns; pipe->count += sizeof(bytes))
		move(pipe->client_fd, bytes, sizeof(bytes), true);
	__atomic_store_n(&pipe->is_sent, true, __ATOMIC_RELEASE);
}

static void ask(struct pipe *pipe)
{
	uint8_t request[REQUEST_BYTES] = {GOES_ON};
	uint64_t begin_ns = rig_now_ns();

	for (pipe->count = 0; rig_now_ns() < pipe->until_ns; pipe->count++) {
		move(pipe->client_fd, request, sizeof(request), true);
		move(pipe->client_fd, request, sizeof(request), false);
	}
	pipe->took_ns = rig_now_ns() - begin_ns;
	request[0] = ENDS;
	move(pipe->client_fd, request, sizeof(request), true);
}

static void connect_client(struct pipe *pipe)
{
	struct sockaddr_in address = address_of_server();

	wire_command("ip addr add " CLIENT "/24 dev client && ip link set client up && "
		     "sysctl -qw net.ipv4.tcp_slow_start_after_idle=0");
	pipe->client_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fail_if(connect(pipe->client_fd, (struct sockaddr *)&address, sizeof(address)), "cannot connect");
	send_at_once(pipe->client_fd);
}

static void *client_thread(void *argument)
{
	struct pipe *pipe = argument;

	fail_if(unshare(CLONE_NEWNET), "cannot make a second namespace");
	pipe->client_tid = gettid();
	pthread_barrier_wait(&pipe->barrier); /* there is a namespace to move the device to */
	pthread_barrier_wait(&pipe->barrier); /* it has been moved */
	connect_client(pipe);
	pthread_barrier_wait(&pipe->barrier);
	for (;;) {
		pthread_barrier_wait(&pipe->barrier);
		if (pipe->is_over)
			return NULL;
		rig_pin(pipe->rig->cpu[pipe->traffic == PIPE_BULK ? pipe->rig->cpu_count - 1 : 0]);
		if (pipe->traffic == PIPE_BULK)
			send_bulk(pipe);
		else
			ask(pipe);
		pthread_barrier_wait(&pipe->barrier);
	}
}

/* ---- the server ---- */

struct pipe *pipe_open(struct rig *rig)
{
	struct pipe *pipe = calloc(1, sizeof(*pipe));
	struct sockaddr_in address = address_of_server();

	fail_if(!pipe, "no memory");
	*pipe = (struct pipe){.rig = rig, .link_fd = -1};
	pthread_barrier_init(&pipe->barrier, NULL, 2);
	fail_if(pthread_create(&pipe->thread, NULL, client_thread, pipe) != 0, "cannot start a thread");
	pthread_barrier_wait(&pipe->barrier);
	wire_command("ip link add server type veth peer name client netns %d && ip addr add " SERVER
		     "/24 dev server && ip link set server up",
		     pipe->client_tid);
	pipe->ifindex = if_nametoindex("server");
	pipe->listener_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fail_if(bind(pipe->listener_fd, (struct sockaddr *)&address, sizeof(address)) || listen(pipe->listener_fd, 1),
		"cannot listen");
	pthread_barrier_wait(&pipe->barrier);
	pipe->server_fd = accept4(pipe->listener_fd, NULL, NULL, SOCK_CLOEXEC);
	fail_if(pipe->server_fd < 0, "cannot accept");
	send_at_once(pipe->server_fd);
	pthread_barrier_wait(&pipe->barrier);
	return pipe;
}

void pipe_close(struct pipe *pipe)
{
	pipe->is_over = true;
	pthread_barrier_wait(&pipe->barrier);
	pthread_join(pipe->thread, NULL);
	pipe_attach(pipe, -1, true);
	close(pipe->client_fd);
	close(pipe->server_fd);
	close(pipe->listener_fd);
	wire_try("ip link del server"); /* it may have gone with the client's namespace */
	free(pipe);
}

void pipe_attach(struct pipe *pipe, int program_fd, bool is_native)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = is_native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);

	if (pipe->link_fd >= 0)
		close(pipe->link_fd);
	pipe->link_fd = -1;
	if (program_fd < 0)
		return;
	pipe->link_fd = bpf_link_create(program_fd, pipe->ifindex, BPF_XDP, &options);
	fail_if(pipe->link_fd < 0, "cannot attach a program");
}

void pipe_set_gro(bool is_on)
{
	wire_set_gro("server", is_on);
}

/* What has arrived, at most a millisecond later. Never waits for longer: the client may have sent its last. */
static size_t take(struct pipe *pipe)
{
	static uint8_t bytes[BULK_BYTES];
	struct pollfd ready = {.fd = pipe->server_fd, .events = POLLIN};
	ssize_t count = recv(pipe->server_fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (count > 0)
		return count;
	fail_if(count == 0 || errno != EAGAIN, "the connection broke");
	poll(&ready, 1, 1);
	return 0;
}

/* Bytes that arrive in time are what counts; the rest is taken so that the next measurement begins with nothing. */
static double take_bulk(struct pipe *pipe)
{
	uint64_t begin_ns = rig_now_ns(), now_ns = begin_ns, taken = 0, in_time;

	for (; now_ns < pipe->until_ns; now_ns = rig_now_ns())
		taken += take(pipe);
	in_time = taken;
	while (!__atomic_load_n(&pipe->is_sent, __ATOMIC_ACQUIRE) || taken < pipe->count)
		taken += take(pipe);
	return in_time * 1e9 / (now_ns - begin_ns);
}

static void answer(struct pipe *pipe)
{
	uint8_t request[REQUEST_BYTES];

	for (;;) {
		move(pipe->server_fd, request, sizeof(request), false);
		if (request[0] == ENDS)
			return;
		move(pipe->server_fd, request, sizeof(request), true);
	}
}

double pipe_measure(struct pipe *pipe, enum pipe_traffic traffic, uint64_t duration_ns)
{
	double rate = 0;

	pipe->traffic = traffic;
	pipe->until_ns = rig_now_ns() + duration_ns;
	pipe->is_sent = false;
	pthread_barrier_wait(&pipe->barrier);
	if (traffic == PIPE_BULK)
		rate = take_bulk(pipe);
	else
		answer(pipe);
	pthread_barrier_wait(&pipe->barrier);
	return traffic == PIPE_BULK ? rate : pipe->count * 1e9 / pipe->took_ns;
}
