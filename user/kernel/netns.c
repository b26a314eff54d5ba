// SPDX-License-Identifier: GPL-2.0-only
#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "host.h"
#include "pins.h"
#include "util.h"

#define NAMED "/run/netns"

static bool is_netns(int fd, uint64_t inode)
{
	struct stat status;

	return fd >= 0 && !fstat(fd, &status) && status.st_ino == inode;
}

/* Open the one of this inode among DIRECTORY/NAME/SUFFIX. Returns it, or -ENOENT. */
static int find_in(const char *directory, const char *suffix, uint64_t inode, char ret_name[NAME_MAX + 1])
{
	_cleanup_(weir_names_free) struct weir_names names = {};

	if (weir_names_read(directory, &names))
		return -ENOENT;
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_(weir_closep) int fd = -1;
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s%s", directory, names.names[i], suffix);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (!is_netns(fd, inode))
			continue;
		snprintf(ret_name, NAME_MAX + 1, "%s", names.names[i]);
		return TAKE_FD(fd);
	}
	return -ENOENT;
}

/* Named namespaces first, then those of processes. */
int weir_netns_enter(uint64_t inode, int *ret_back_fd)
{
	_cleanup_(weir_closep) int fd = -1, back_fd = -1;
	char name[NAME_MAX + 1];

	if (!inode)
		return -ENOENT;
	if (inode == weir_host_netns()) {
		*ret_back_fd = -1;
		return 0;
	}
	fd = find_in(NAMED, "", inode, name);
	if (fd < 0)
		fd = find_in("/proc", "/ns/net", inode, name);
	if (fd < 0)
		return fd;
	back_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (back_fd < 0 || setns(fd, CLONE_NEWNET))
		return -errno;
	*ret_back_fd = TAKE_FD(back_fd);
	return 0;
}

void weir_netns_leave(int *back_fd)
{
	if (*back_fd < 0)
		return;
	setns(*back_fd, CLONE_NEWNET); /* we have just been there, ignoring */
	close(*back_fd);
}

bool weir_netns_name(uint64_t inode, char ret_name[NAME_MAX + 1])
{
	_cleanup_(weir_closep) int fd = find_in(NAMED, "", inode, ret_name);

	return fd >= 0;
}
