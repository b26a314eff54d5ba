// SPDX-License-Identifier: GPL-2.0-only
#include "network/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/net_namespace.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"
#include "host/host.h"
#include "network/netlink.h"

#define NAMED "/run/netns"

/* Attempts, 10 ms apart. Chosen, not derived. */
#define BACK_TRIES 500

/* The namespace to look for. */
struct wanted {
	uint64_t inode;		      /* 0: look for it by its id */
	int32_t id;		      /* its id in the namespace of `netlink` */
	struct weir_netlink *netlink; /* a socket to the namespace that gave the id */
};

static bool has_id(int fd, const struct wanted *wanted)
{
	const struct rtgenmsg about = {.rtgen_family = AF_UNSPEC};
	struct nlmsghdr *request =
		weir_netlink_begin(wanted->netlink, RTM_GETNSID, 0, &about, MNL_ALIGN(sizeof(about)));
	int32_t id;

	mnl_attr_put_u32(request, NETNSA_FD, fd);
	return !weir_netlink_ask_value(wanted->netlink, MNL_ALIGN(sizeof(about)), NETNSA_NSID, &id, sizeof(id)) &&
	       id == wanted->id;
}

static bool is_netns(int fd, const struct wanted *wanted)
{
	struct stat status;

	if (fd < 0)
		return false;
	if (!wanted->inode)
		return has_id(fd, wanted);
	return !fstat(fd, &status) && status.st_ino == wanted->inode;
}

/* Open it among the files DIRECTORY/NAME SUFFIX. Returns the descriptor, or -ENOENT. */
static int find_in(const char *directory, const char *suffix, const struct wanted *wanted, char ret_name[NAME_MAX + 1])
{
	_cleanup_(weir_names_free) struct weir_names names = {};

	if (weir_names_read(directory, &names))
		return -ENOENT;
	for (size_t i = 0; i < names.count; i++) {
		_cleanup_(weir_closep) int fd = -1;
		char path[PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s%s", directory, names.names[i], suffix);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (!is_netns(fd, wanted))
			continue;
		snprintf(ret_name, NAME_MAX + 1, "%s", names.names[i]);
		return TAKE_FD(fd);
	}
	return -ENOENT;
}

/* Open it where it is mounted, for example by 'unshare --net=FILE'. Returns the descriptor, or -ENOENT. */
static int find_mounted(const struct wanted *wanted, char path[PATH_MAX])
{
	_cleanup_(weir_fclosep) FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[2 * PATH_MAX], root[64];

	/* "36 35 0:4 net:[4026532284] /run/somewhere rw shared:5 - nsfs nsfs rw" */
	while (mounts && fgets(line, sizeof(line), mounts)) {
		_cleanup_(weir_closep) int fd = -1;

		if (sscanf(line, "%*s %*s %*s %63s %4095s", root, path) != 2 || strncmp(root, "net:", 4))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (is_netns(fd, wanted))
			return TAKE_FD(fd);
	}
	return -ENOENT;
}

/* Open it among named namespaces, then those of processes, then other mounts. `ret_name` is set only for a named
 * namespace, else it is empty, and `ret_path` leads to it. Returns the descriptor, or -ENOENT.
 */
static int find(const struct wanted *wanted, char ret_name[NAME_MAX + 1], char ret_path[PATH_MAX])
{
	char number[NAME_MAX + 1];
	int fd = find_in(NAMED, "", wanted, ret_name);

	if (fd >= 0)
		return fd;
	ret_name[0] = '\0';
	fd = find_in("/proc", "/ns/net", wanted, number);
	if (fd < 0)
		return find_mounted(wanted, ret_path);
	snprintf(ret_path, PATH_MAX, "/proc/%s/ns/net", number);
	return fd;
}

static int enter(const struct wanted *wanted, char ret_name[NAME_MAX + 1], int *ret_back_fd)
{
	_cleanup_(weir_closep) int fd = -1, back_fd = -1;
	char path[PATH_MAX];

	fd = find(wanted, ret_name, path);
	if (fd < 0)
		return fd;
	back_fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	if (back_fd < 0 || setns(fd, CLONE_NEWNET))
		return -errno;
	*ret_back_fd = TAKE_FD(back_fd);
	return 0;
}

int weir_netns_enter(uint64_t inode, int *ret_back_fd)
{
	const struct wanted wanted = {.inode = inode};
	char name[NAME_MAX + 1];

	if (!inode)
		return -ENOENT;
	if (inode == weir_host_netns()) {
		*ret_back_fd = -1;
		return 0;
	}
	return enter(&wanted, name, ret_back_fd);
}

int weir_netns_enter_id(int32_t id, char ret_name[NAME_MAX + 1], int *ret_back_fd)
{
	_cleanup_(weir_netlink_close) struct weir_netlink netlink = {};
	const struct wanted wanted = {.id = id, .netlink = &netlink};
	int err = weir_netlink_open(&netlink, NETLINK_ROUTE);

	return err ? err : enter(&wanted, ret_name, ret_back_fd);
}

void weir_netns_leave(const int *back_fd)
{
	const struct timespec pause = {.tv_nsec = 10000000};

	if (*back_fd < 0)
		return;
	/* We came from that namespace, so only a lack of memory can make this fail. A thread that stays in the wrong
	 * namespace would take other interfaces for ours, so keep trying.
	 */
	for (int tries = 0; setns(*back_fd, CLONE_NEWNET) && tries < BACK_TRIES; tries++)
		nanosleep(&pause, NULL);
	close(*back_fd);
}

bool weir_netns_name(uint64_t inode, char ret_name[NAME_MAX + 1])
{
	const struct wanted wanted = {.inode = inode};
	_cleanup_(weir_closep) int fd = find_in(NAMED, "", &wanted, ret_name);

	return fd >= 0;
}

bool weir_netns_argument(uint64_t inode, char ret_argument[PATH_MAX])
{
	const struct wanted wanted = {.inode = inode};
	char name[NAME_MAX + 1];
	_cleanup_(weir_closep) int fd = find(&wanted, name, ret_argument);

	if (fd >= 0 && name[0])
		snprintf(ret_argument, PATH_MAX, "%s", name);
	return fd >= 0;
}
