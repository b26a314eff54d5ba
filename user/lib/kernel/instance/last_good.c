// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last good rule set of an instance, in a file: what `weir run` loads as a service if its rule files are wrong. The
 * kernel forgets everything at a boot, and without limits a host is open. The file is a history (rules/history.h) of a
 * single set, with its lists. It may hold the password of a cluster's store, so only its owner can read it; and since
 * it is loaded without being asked for, nobody else may have been able to write it.
 */
#include "instance/instance_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define DIRECTORY "/var/lib/weir"
#define NAME_BYTES (WEIR_INSTANCE_NAME_BYTES + 16)
#define WRITABLE_BY_OTHERS (S_IWGRP | S_IWOTH)

/* systemd names the directory of StateDirectory=, and separates several by colons. */
static const char *find_directory(char ret_path[PATH_MAX])
{
	const char *given = getenv("STATE_DIRECTORY");

	snprintf(ret_path, PATH_MAX, "%.*s", given ? (int)strcspn(given, ":") : PATH_MAX - 1,
		 given && *given ? given : DIRECTORY);
	return ret_path;
}

void weir_last_good_path(const char *instance, char ret_path[WEIR_LAST_GOOD_PATH_BYTES])
{
	char directory[PATH_MAX];

	snprintf(ret_path, WEIR_LAST_GOOD_PATH_BYTES, "%s/%s.last-good", find_directory(directory), instance);
}

/* It belongs to us or to root, and nobody else could have written it. */
static bool is_trusted(const struct stat *status)
{
	return (!status->st_uid || status->st_uid == geteuid()) && !(status->st_mode & WRITABLE_BY_OTHERS);
}

/* Returns a descriptor or -errno; -EPERM: others can write to the directory. A link is followed, to a directory that
 * is checked in the same way.
 */
static int open_directory(void)
{
	char path[PATH_MAX];
	_cleanup_(weir_closep) int fd = open(find_directory(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	return is_trusted(&status) ? TAKE_FD(fd) : -EPERM;
}

/* ---- writing ---- */

static int write_all(int fd, const uint8_t *bytes, size_t count)
{
	while (count) {
		ssize_t written = write(fd, bytes, count);

		if (written < 0 && errno != EINTR)
			return -errno;
		bytes += written > 0 ? written : 0;
		count -= written > 0 ? written : 0;
	}
	return fsync(fd) ? -errno : 0;
}

/* A new file takes the old one's place at once, and when it is on the disk: after a crash there is one of both. */
static int replace(int directory_fd, const char *instance, const uint8_t *bytes, size_t count)
{
	_cleanup_(weir_closep) int fd = -1;
	char name[NAME_BYTES], new_name[NAME_BYTES + 8];
	int err;

	snprintf(name, sizeof(name), "%s.last-good", instance);
	snprintf(new_name, sizeof(new_name), ".%s.new", name);
	unlinkat(directory_fd, new_name, 0); /* of a command that was killed: ours holds the lock */
	fd = openat(directory_fd, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	err = write_all(fd, bytes, count);
	if (!err && renameat(directory_fd, new_name, directory_fd, name))
		err = -errno;
	if (err)
		unlinkat(directory_fd, new_name, 0);
	else if (fsync(directory_fd))
		(void)errno; /* the file is complete; some file systems cannot do this */
	return err;
}

static int store(const char *instance, struct weir_kept_set *set)
{
	const struct weir_history history = {.sets = {set}};
	_cleanup_(weir_closep) int directory_fd = open_directory();
	_cleanup_(weir_freep) uint8_t *bytes = NULL;
	size_t count;
	int err = directory_fd < 0 ? directory_fd : weir_history_pack(&history, &bytes, &count);

	return err ? err : replace(directory_fd, instance, bytes, count);
}

void weir_last_good_write(const char *instance, struct weir_kept_set *set, struct weir_diag *diag)
{
	char path[WEIR_LAST_GOOD_PATH_BYTES], directory[PATH_MAX], hint[PATH_MAX + 128];
	int err = store(instance, set);
	struct stat older;

	if (!err)
		return;
	find_directory(directory);
	weir_last_good_path(instance, path);
	snprintf(hint, sizeof(hint),
		 err == -ENOENT	 ? "'install -d -m 700 %s' makes the directory"
		 : err == -EPERM ? "'%s' has to be a directory that only root can write"
				 : "look at '%s'",
		 directory);
	weir_diag_warning(diag, NULL, NULL, hint,
			  "the rules are in force, but not stored in '%s' for a boot with a wrong rule file: %s%s",
			  path, strerror(-err), lstat(path, &older) ? "" : "; the set that is there is an older one");
}

/* ---- reading ---- */

/* The file's bytes; *ret_stored_s is when it was written. */
static int read_file(const char *instance, uint8_t **ret_bytes, size_t *ret_count, time_t *ret_stored_s)
{
	_cleanup_(weir_closep) int directory_fd = open_directory(), fd = -1;
	_cleanup_(weir_freep) uint8_t *bytes = NULL;
	char name[NAME_BYTES];
	struct stat status;
	size_t count = 0;

	if (directory_fd < 0)
		return directory_fd;
	snprintf(name, sizeof(name), "%s.last-good", instance);
	fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || !is_trusted(&status))
		return -EPERM;
	bytes = malloc(status.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	while (count < (size_t)status.st_size) {
		ssize_t got = read(fd, bytes + count, status.st_size - count);

		if (got < 0)
			return -errno;
		if (!got)
			return -EPROTO;
		count += got;
	}
	*ret_bytes = TAKE_PTR(bytes);
	*ret_count = count;
	*ret_stored_s = status.st_mtime;
	return 0;
}

static int unpack(const uint8_t *bytes, size_t count, const char *path, struct weir_ruleset **ret_ruleset,
		  struct weir_diag *diag)
{
	_cleanup_(weir_history_free) struct weir_history history = {};
	int err = weir_history_unpack(bytes, count, &history);

	if (err || !history.sets[0] || !weir_kept_set_is_whole(history.sets[0]))
		return weir_diag_fail(diag, 0, NULL, "'%s' is damaged, or another version of weir wrote it", path);
	return weir_kept_set_read_as(history.sets[0], path, ret_ruleset, diag);
}

int weir_last_good_read(const char *instance, struct weir_ruleset **ret_ruleset,
			char ret_stored[WEIR_LAST_GOOD_TIME_BYTES], struct weir_diag *diag)
{
	_cleanup_(weir_freep) uint8_t *bytes = NULL;
	char path[WEIR_LAST_GOOD_PATH_BYTES];
	time_t stored_s;
	struct tm day;
	size_t count = 0;
	int err = read_file(instance, &bytes, &count, &stored_s);

	weir_last_good_path(instance, path);
	if (err == -ENOENT)
		return err;
	if (err)
		return weir_diag_fail(diag, -err,
				      err == -EPERM ? "only root may be able to write it and its directory" : NULL,
				      "the last good rule set is not loaded from '%s'", path);
	err = unpack(bytes, count, path, ret_ruleset, diag);
	if (err)
		return err;
	(*ret_ruleset)->is_last_good = true;
	strftime(ret_stored, WEIR_LAST_GOOD_TIME_BYTES, "%F %T", localtime_r(&stored_s, &day));
	return 0;
}
