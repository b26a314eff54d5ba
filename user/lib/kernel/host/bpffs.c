// SPDX-License-Identifier: GPL-2.0-only
#include "host/bpffs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include "base/util.h"
#include "host/host.h"

#define OWN_ROOT "/sys/fs/bpf"

/* Attaching 8,192 rules takes well under a second, attaching two million listed prefixes a few, and either ten times as
 * long on a busy machine. Chosen, not derived.
 */
#define LOCK_WAIT_MS 30000

/* A server has other clients. They wait meanwhile, and time out after some 10 s. Chosen, not derived. */
#define LOCK_ASK_WAIT_MS 5000
#define LOCK_ASK_PAUSE_MS 10

/* The location of the file system. Determined once: a process keeps its mount namespace, and we mount at most once. */
static struct {
	pid_t witness;	   /* whose mount namespace is the machine's; 0: no process may be inspected */
	bool is_elsewhere; /* and that namespace is not ours */
	char root[64];	   /* empty: not determined yet */
	char base[80];
} place;

static bool read_mount_namespace(pid_t pid, ino_t *ret_inode)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &status))
		return false;
	*ret_inode = status.st_ino;
	return true;
}

static pid_t parent_of(pid_t pid)
{
	char path[64], line[512];
	int parent;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (weir_host_read_text(path, line, sizeof(line)))
		return 0;
	/* A process's name may contain parentheses: the last one ends it. */
	return strrchr(line, ')') && sscanf(strrchr(line, ')'), ") %*c %d", &parent) == 1 ? parent : 0;
}

static pid_t find_witness(void)
{
	pid_t witness = 0;
	ino_t inode;

	if (read_mount_namespace(1, &inode))
		return 1;
	for (pid_t pid = getppid(); pid > 1; pid = parent_of(pid))
		if (read_mount_namespace(pid, &inode))
			witness = pid;
	return witness;
}

/* 1, 0, or -errno if this cannot be determined. */
static int is_bpffs(const char *path)
{
	struct statfs fs;

	if (statfs(path, &fs))
		return errno == ENOENT ? 0 : -errno;
	return fs.f_type == BPF_FS_MAGIC;
}

static void find_place(void)
{
	ino_t own = 0, witnessed = 0;
	int fd;

	place.witness = find_witness();
	if (place.witness &&
	    (!read_mount_namespace(getpid(), &own) || !read_mount_namespace(place.witness, &witnessed)))
		place.witness = 0;
	place.is_elsewhere = place.witness && own != witnessed;
	snprintf(place.root, sizeof(place.root), OWN_ROOT);
	if (place.is_elsewhere)
		snprintf(place.root, sizeof(place.root), "/proc/%d/root" OWN_ROOT, place.witness);
	/* `weir run` may outlive the ancestor, so keep the directory open until the process ends. */
	fd = place.is_elsewhere && is_bpffs(place.root) > 0 ? open(place.root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (fd >= 0)
		snprintf(place.root, sizeof(place.root), "/proc/self/fd/%d", fd);
	snprintf(place.base, sizeof(place.base), "%s/weir", place.root);
}

bool weir_bpffs_is_elsewhere(void)
{
	if (!place.root[0])
		find_place();
	return place.is_elsewhere;
}

const char *weir_bpffs_root(void)
{
	if (!place.root[0])
		find_place();
	return place.root;
}

const char *weir_bpffs_base(void)
{
	if (!place.root[0])
		find_place();
	return place.base;
}

bool weir_bpffs_is_mounted(void)
{
	return is_bpffs(weir_bpffs_root()) > 0;
}

bool weir_bpffs_is_out_of_sight(void)
{
	ino_t inode;

	return !weir_bpffs_is_mounted() && !read_mount_namespace(1, &inode);
}

static int mount_here(void)
{
	return mount("bpf", OWN_ROOT, "bpf", 0, "mode=0700") ? -errno : 0;
}

/* Mount it where the witness sees it. A child enters that namespace, and need not come back. */
static int mount_elsewhere(void)
{
	_cleanup_(weir_closep) int fd = -1;
	char path[64];
	int status;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", place.witness);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0)
		_exit(setns(fd, CLONE_NEWNS) ? errno : -mount_here());
	if (waitpid(child, &status, 0) < 0)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int mount_root(struct weir_diag *diag)
{
	static const char by_hand[] = "mount it by hand: mount -t bpf bpf " OWN_ROOT;
	int err, is_mounted = is_bpffs(weir_bpffs_root());

	if (is_mounted > 0)
		return 0;
	/* Mounting another one on top would hide all pins. */
	if (is_mounted < 0)
		return weir_diag_fail(diag, -is_mounted, is_mounted == -EACCES ? "run it as root" : NULL,
				      "cannot find out whether the BPF file system is mounted at '%s'",
				      weir_bpffs_root());
	/* This might be a private mount namespace, and the pins would vanish with it. */
	if (!place.witness) {
		weir_diag_error(diag, NULL, NULL, by_hand,
				"the BPF file system is not mounted, and weir cannot find out whether this mount "
				"namespace will last");
		return -EPERM;
	}
	err = place.is_elsewhere ? mount_elsewhere() : mount_here();
	if (err)
		return weir_diag_fail(diag, -err, by_hand,
				      "the BPF file system is not mounted and cannot be mounted at '%s'",
				      weir_bpffs_root());
	find_place();
	return 0;
}

/* -EAGAIN: another command's weir_bpffs_tidy() removed the directory in between, so it has to be created again. */
static int open_base(int *ret_fd, struct weir_diag *diag)
{
	const char *base = weir_bpffs_base();

	*ret_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0 && errno == ENOENT) { /* only then: a confined server may not call mkdir at all */
		if (mkdir(base, 0700) && errno != EEXIST)
			return weir_diag_fail(diag, errno, errno == EACCES ? "run it as root" : NULL,
					      "cannot make '%s'", base);
		*ret_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	if (*ret_fd < 0 && errno == ENOENT)
		return -EAGAIN;
	if (*ret_fd < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot open '%s'", base);
	return 0;
}

/* Wait until the child has ended. After LOCK_WAIT_MS it is killed. */
static void await_child(pid_t child)
{
	_cleanup_(weir_closep) int fd = pidfd_open(child, 0);
	struct pollfd polled = {.fd = fd, .events = POLLIN};

	while (poll(&polled, 1, LOCK_WAIT_MS) < 0 && errno == EINTR)
		;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A process that may not fork cannot wait in the queue and has to be lucky. It only reads, and reading rarely needs the
 * lock.
 */
static int wait_by_asking(int fd)
{
	for (int waited_ms = 0; waited_ms < LOCK_ASK_WAIT_MS; waited_ms += LOCK_ASK_PAUSE_MS) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		poll(NULL, 0, LOCK_ASK_PAUSE_MS);
	}
	return 0; /* the caller tries once more, and reports the error */
}

/*
 * The kernel grants a lock to waiters in order, but a waiter may wait for ever. Polling avoids that, but other
 * processes may be faster each time. So a child waits in the queue: the lock belongs to the open file, which the child
 * shares with us.
 */
static int wait_in_turn(int fd)
{
	pid_t child = fork();

	if (child < 0 && errno == EPERM) /* denied by confine.c */
		return wait_by_asking(fd);
	if (child < 0)
		return -errno;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(flock(fd, LOCK_EX) ? 1 : 0);
	}
	await_child(child);
	return 0;
}

static int wait_for_lock(int fd, struct weir_diag *diag)
{
	int err = 0;

	if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		err = wait_in_turn(fd);
	if (!err && flock(fd, LOCK_EX | LOCK_NB)) /* if the child got the lock, we hold it already and this succeeds */
		err = -errno;
	if (err != -EWOULDBLOCK)
		return err ? weir_diag_fail(diag, -err, NULL, "cannot lock '%s'", weir_bpffs_base()) : 0;
	weir_diag_error(diag, NULL, NULL, "wait for it to end, or look for a stopped one: 'pgrep -a weir'",
			"another weir command is working on '%s'", weir_bpffs_base());
	return -EBUSY;
}

int weir_bpffs_lock(int *ret_lock_fd, struct weir_diag *diag)
{
	struct stat locked, present;
	int err;

	err = mount_root(diag);
	if (err)
		return err;
	for (;;) {
		_cleanup_(weir_closep) int fd = -1;

		err = open_base(&fd, diag);
		if (err == -EAGAIN)
			continue;
		if (!err)
			err = wait_for_lock(fd, diag);
		if (err)
			return err;
		/* The previous holder may have removed the directory that we have now locked. */
		if (fstat(fd, &locked) || stat(weir_bpffs_base(), &present) || locked.st_ino != present.st_ino)
			continue;
		*ret_lock_fd = TAKE_FD(fd);
		return 0;
	}
}

int weir_bpffs_try_lock(int *ret_lock_fd)
{
	_cleanup_(weir_closep) int fd = open(weir_bpffs_base(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	*ret_lock_fd = TAKE_FD(fd);
	return 0;
}

bool weir_bpffs_is_locked(void)
{
	_cleanup_(weir_closep) int fd = open(weir_bpffs_base(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

void weir_bpffs_tidy(void)
{
	/* Fails if the directory is not empty because there are instances, ignoring. */
	rmdir(weir_bpffs_base());
}
