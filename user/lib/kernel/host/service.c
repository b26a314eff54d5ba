// SPDX-License-Identifier: GPL-2.0-only
#include "host/service.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"
#include "host/host.h"

#define NSEC_PER_USEC 1000

/* A path or, after '@', a name in the abstract namespace. */
static bool find_socket(struct sockaddr_un *address, socklen_t *bytes)
{
	const char *name = getenv("NOTIFY_SOCKET");
	const size_t length = name ? strlen(name) : 0;

	if (length < 2 || length >= sizeof(address->sun_path) || (name[0] != '/' && name[0] != '@'))
		return false;
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path, name, length);
	if (name[0] == '@')
		address->sun_path[0] = '\0';
	*bytes = offsetof(struct sockaddr_un, sun_path) + length;
	return true;
}

bool weir_service_is_one(void)
{
	struct sockaddr_un address;
	socklen_t bytes;

	return find_socket(&address, &bytes);
}

static void notify(const char *lines)
{
	_cleanup_(weir_closep) int fd = -1;
	struct sockaddr_un address;
	socklen_t bytes;

	if (!find_socket(&address, &bytes))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		sendto(fd, lines, strlen(lines), MSG_NOSIGNAL, (const struct sockaddr *)&address, bytes);
}

void weir_service_ready(const char *status)
{
	char lines[512];

	snprintf(lines, sizeof(lines), "READY=1\nSTATUS=%s\n", status);
	notify(lines);
}

void weir_service_reloading(void)
{
	char lines[80];

	snprintf(lines, sizeof(lines), "RELOADING=1\nMONOTONIC_USEC=%llu\n",
		 (unsigned long long)weir_host_now_ns() / NSEC_PER_USEC);
	notify(lines);
}

void weir_service_stopping(void)
{
	notify("STOPPING=1\n");
}

/* 0: no watchdog waits for this process. */
static uint64_t watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && strtoul(pid, NULL, 10) != (unsigned long)getpid()))
		return 0;
	return strtoull(usec, NULL, 10) * NSEC_PER_USEC;
}

void weir_service_alive(void)
{
	static uint64_t notified_ns;
	const uint64_t waits_ns = watchdog_ns(), now_ns = weir_host_now_ns();

	if (!waits_ns || now_ns - notified_ns < waits_ns / 2)
		return;
	notified_ns = now_ns;
	notify("WATCHDOG=1\n");
}

bool weir_service_logs_to_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat status;

	if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(STDERR_FILENO, &status))
		return false;
	return status.st_dev == device && status.st_ino == inode;
}
