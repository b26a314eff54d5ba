// SPDX-License-Identifier: GPL-2.0-only
#include "network/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "host/host.h"
#include "host/names.h"

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

/* Open the one of this inode where it is mounted, as by 'unshare --net=FILE'. Returns it, or -ENOENT. */
static int find_mounted(uint64_t inode)
{
	_cleanup_(weir_fclosep) FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX], root[64], path[PATH_MAX], wanted[64];

	snprintf(wanted, sizeof(wanted), "net:[%llu]", (unsigned long long)inode);
	/* "36 35 0:4 net:[4026532284] /run/somewhere rw shared:5 - nsfs nsfs rw" */
	while (mounts && fgets(line, sizeof(line), mounts)) {
		_cleanup_(weir_closep) int fd = -1;

		if (sscanf(line, "%*s %*s %*s %63s %4095s", root, path) != 2 || strcmp(root, wanted))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (is_netns(fd, inode))
			return TAKE_FD(fd);
	}
	return -ENOENT;
}

/* Named namespaces first, then those of processes, then what is mounted elsewhere. */
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
		fd = find_mounted(inode);
	if (fd < 0)
		return fd;
	back_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (back_fd < 0 || setns(fd, CLONE_NEWNET))
		return -errno;
	*ret_back_fd = TAKE_FD(back_fd);
	return 0;
}

void weir_netns_leave(const int *back_fd)
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
