// SPDX-License-Identifier: GPL-2.0-only
#include "bpffs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>

#include "util.h"

#define OWN_ROOT "/sys/fs/bpf"
#define INIT_ROOT "/proc/1/root" OWN_ROOT

/* Attaching the largest rule set takes well under a second. Chosen, not derived. */
#define LOCK_ATTEMPTS 100
#define LOCK_PAUSE_NS 100000000

bool weir_bpffs_is_elsewhere(void)
{
	struct stat own, init;

	/* Who may not look at process 1 may not go there either. */
	return !stat("/proc/self/ns/mnt", &own) && !stat("/proc/1/ns/mnt", &init) && own.st_ino != init.st_ino;
}

const char *weir_bpffs_root(void)
{
	return weir_bpffs_is_elsewhere() ? INIT_ROOT : OWN_ROOT;
}

const char *weir_bpffs_base(void)
{
	return weir_bpffs_is_elsewhere() ? INIT_ROOT "/weir" : OWN_ROOT "/weir";
}

bool weir_bpffs_is_mounted(void)
{
	struct statfs fs;

	return !statfs(weir_bpffs_root(), &fs) && fs.f_type == BPF_FS_MAGIC;
}

static int mount_here(void)
{
	return mount("bpf", OWN_ROOT, "bpf", 0, "mode=0700") ? -errno : 0;
}

/* Mount it where process 1 sees it: a child goes there, since a process cannot come back from everywhere. */
static int mount_at_init(void)
{
	_cleanup_(weir_closep) int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
	int status;
	pid_t child;

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
	int err;

	if (weir_bpffs_is_mounted())
		return 0;
	err = weir_bpffs_is_elsewhere() ? mount_at_init() : mount_here();
	if (err)
		return weir_diag_fail(diag, -err, "mount it by hand: mount -t bpf bpf " OWN_ROOT,
				      "the BPF file system is not mounted, and cannot be mounted at '%s'",
				      weir_bpffs_root());
	return 0;
}

static int open_base(int *ret_fd, struct weir_diag *diag)
{
	const char *base = weir_bpffs_base();

	if (mkdir(base, 0700) && errno != EEXIST)
		return weir_diag_fail(diag, errno, errno == EACCES ? "run it as root" : NULL, "cannot make '%s'", base);
	*ret_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret_fd < 0)
		return weir_diag_fail(diag, errno, NULL, "cannot open '%s'", base);
	return 0;
}

static int wait_for_lock(int fd, struct weir_diag *diag)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

	for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return 0;
		if (errno != EWOULDBLOCK)
			return weir_diag_fail(diag, errno, NULL, "cannot lock '%s'", weir_bpffs_base());
		nanosleep(&pause, NULL);
	}
	weir_diag_error(diag, NULL, NULL, "wait for it, or look for a stopped one: 'pgrep -a weir'",
			"another weir command is at work on '%s'", weir_bpffs_base());
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
		if (!err)
			err = wait_for_lock(fd, diag);
		if (err)
			return err;
		/* Who held the lock before may have removed the directory that we now hold. */
		if (fstat(fd, &locked) || stat(weir_bpffs_base(), &present) || locked.st_ino != present.st_ino)
			continue;
		*ret_lock_fd = TAKE_FD(fd);
		return 0;
	}
}

void weir_bpffs_tidy(void)
{
	/* Not empty as long as there are instances, ignoring. */
	rmdir(weir_bpffs_base());
}
