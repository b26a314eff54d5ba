// SPDX-License-Identifier: GPL-2.0-only
#include "listener.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

#include "claims.h"

int listen_apart(uint16_t port)
{
	const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	FILE *cookies;
	int fd;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	cookies = fopen("/proc/sys/net/ipv4/tcp_syncookies", "we");
	assert_non_null(cookies);
	assert_true(fputs("2", cookies) >= 0);
	assert_int_equal(fclose(cookies), 0);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}
