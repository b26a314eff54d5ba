// SPDX-License-Identifier: GPL-2.0-only
#include "files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"

#define COPY_BYTES 65536
#define LINKS_MAX 40 /* the kernel's own limit (path_resolution(7)) */

static int cannot_write(struct weir_diag *diag, int err, const char *path)
{
	return weir_diag_fail(
		diag, err, err == EPERM ? "is it a link that another user created? such links are not followed" : NULL,
		"cannot write '%s'", path);
}

/* ---- resolving a path ---- */

/* A link in /proc is not a name but an open object, such as the target of /dev/stdout. */
static bool is_in_proc(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* Where a link leads: what is opened next, or -errno; `rest` is the path from there, in `path`. What a link in /proc
 * leads to has no path.
 */
static int follow_link(int directory, const char *name, int link, char path[PATH_MAX], const char **rest)
{
	const bool is_object = is_in_proc(link);
	char target[PATH_MAX];
	ssize_t bytes = readlinkat(link, "", target, sizeof(target));
	int fd;

	if (bytes < 0)
		return -errno;
	if (!is_object) {
		if (!memccpy(target + bytes, *rest, '\0', sizeof(target) - bytes))
			return -ENAMETOOLONG;
		*rest = strcpy(path, target);
		name = *path == '/' ? "/" : ".";
	}
	fd = openat(directory, name, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * Find where a result is to appear. It is either a name in a directory, of a regular file or not in use yet; or an
 * existing object (a device, a pipe), which must be filled because renaming would replace it. Returns 0 or -errno.
 *
 * Another user who can create a symbolic link, or replace a file by one after we have checked it, could make us write
 * where he cannot. The kernel can refuse to follow links, but not only those of others. So the path is walked component
 * by component. Each is opened once, and no name is looked up again.
 */
static int find_place(struct weir_output *output)
{
	char path[PATH_MAX];
	const char *rest = output->path;
	int links = 0, next;

	output->fd = open(*rest == '/' ? "/" : ".", O_PATH | O_CLOEXEC);
	output->is_found = output->fd >= 0;
	if (!output->is_found)
		return -errno;
	if (!*rest)
		return -ENOENT;
	do {
		const char *name = rest + strspn(rest, "/");
		_cleanup_(weir_freep) char *part = *name ? strndup(name, strcspn(name, "/")) : strdup(".");
		_cleanup_(weir_closep) int fd = part ? openat(output->fd, part, O_PATH | O_NOFOLLOW | O_CLOEXEC) : -1;
		struct stat status = {};
		int directory = output->fd;

		rest = name + strcspn(name, "/");
		if (fd < 0 ? errno != ENOENT || *rest : fstat(fd, &status))
			return -errno;
		if (!*rest && (fd < 0 || S_ISREG(status.st_mode))) {
			output->name = TAKE_PTR(part);
			return 0;
		}
		if (S_ISLNK(status.st_mode)) {
			if (status.st_uid != 0 && status.st_uid != geteuid())
				return -EPERM;
			if (++links > LINKS_MAX)
				return -ELOOP;
			next = follow_link(directory, part, fd, path, &rest);
			weir_closep(&fd);
			fd = next;
			if (fd < 0)
				return fd;
		}
		output->fd = TAKE_FD(fd);
		close(directory);
	} while (*rest);
	return 0;
}

/* ---- the file ---- */

/* A temporary file is readable only by its owner. Give the result the permissions of the file that it replaces, or the
 * usual ones.
 */
static int use_mode(int fd, const struct weir_output *output)
{
	struct stat status;
	mode_t mask;

	if (!fstatat(output->fd, output->name, &status, AT_SYMLINK_NOFOLLOW))
		return fchmod(fd, status.st_mode & 0777);
	mask = umask(0);
	umask(mask);
	return fchmod(fd, 0666 & ~mask);
}

/* Create a file next to the final place, with an unpredictable name. Returns 0 or -errno. */
static int open_beside(struct weir_output *output)
{
	_cleanup_(weir_freep) char *temporary = NULL;
	_cleanup_(weir_closep) int fd = -1;

	if (asprintf(&temporary, "/proc/self/fd/%d/%s.XXXXXX", output->fd, output->name) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	output->temporary = TAKE_PTR(temporary);
	if (use_mode(fd, output))
		return -errno;
	output->stream = fdopen(fd, "w+");
	if (!output->stream)
		return -errno;
	TAKE_FD(fd);
	return 0;
}

int weir_output_open(struct weir_output *output, const char *path, struct weir_diag *diag)
{
	int err;

	*output = (struct weir_output){.path = path};
	err = find_place(output);
	if (!err && output->name) {
		err = open_beside(output);
	} else if (!err) {
		output->stream = tmpfile();
		err = output->stream ? 0 : -errno;
	}
	if (!err)
		return 0;
	weir_output_close(output);
	return cannot_write(diag, -err, path);
}

int weir_output_check(const struct weir_output *output, struct weir_diag *diag)
{
	return ferror(output->stream) ? cannot_write(diag, errno ? errno : EIO, output->path) : 0;
}

/* Open the object that was found, whatever has its name by now. Returns NULL with errno on failure. */
static FILE *open_there(const struct weir_output *output)
{
	_cleanup_(weir_closep) int fd = -1;
	char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", output->fd);
	fd = open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);
	stream = fd < 0 ? NULL : fdopen(fd, "w");
	if (stream)
		TAKE_FD(fd);
	return stream;
}

static int copy(FILE *from, FILE *to)
{
	char bytes[COPY_BYTES];
	size_t count;

	rewind(from);
	errno = 0;
	while ((count = fread(bytes, 1, sizeof(bytes), from)) > 0)
		if (fwrite(bytes, 1, count, to) != count)
			return errno ? -errno : -EIO;
	if (ferror(from) || fflush(to))
		return errno ? -errno : -EIO;
	return 0;
}

static int complete(const struct weir_output *output)
{
	errno = 0;
	if (fflush(output->stream) || ferror(output->stream))
		return errno ? -errno : -EIO;
	return 0;
}

static int fill(const struct weir_output *output)
{
	_cleanup_(weir_fclosep) FILE *to = NULL;

	if (output->name)
		return 0;
	to = open_there(output);
	return to ? copy(output->stream, to) : -errno;
}

static int put_in_place(const struct weir_output *output)
{
	return output->name && renameat(AT_FDCWD, output->temporary, output->fd, output->name) < 0 ? -errno : 0;
}

int weir_outputs_commit(struct weir_output *const *outputs, size_t count, struct weir_diag *diag)
{
	static int (*const steps[])(const struct weir_output *output) = {complete, fill, put_in_place};

	for (size_t step = 0; step < ARRAY_SIZE(steps); step++)
		for (size_t i = 0; i < count; i++) {
			int err = outputs[i] && outputs[i]->stream ? steps[step](outputs[i]) : 0;

			if (err)
				return cannot_write(diag, -err, outputs[i]->path);
		}
	for (size_t i = 0; i < count; i++)
		if (outputs[i])
			free(TAKE_PTR(outputs[i]->temporary));
	return 0;
}

static int show(struct weir_output *output)
{
	_cleanup_(weir_fclosep) FILE *to = NULL;
	int err = complete(output);

	if (!err)
		err = put_in_place(output);
	if (err || output->name)
		return err;
	to = open_there(output);
	err = to ? copy(output->stream, to) : -errno;
	if (err)
		return err;
	fclose(output->stream);
	output->stream = TAKE_PTR(to);
	return 0;
}

int weir_output_show(struct weir_output *output, struct weir_diag *diag)
{
	int err = show(output);

	if (err)
		return cannot_write(diag, -err, output->path);
	free(TAKE_PTR(output->temporary));
	return 0;
}

void weir_output_close(struct weir_output *output)
{
	if (output->stream)
		fclose(output->stream);
	if (output->temporary)
		unlink(output->temporary);
	if (output->is_found)
		close(output->fd);
	free(output->temporary);
	free(output->name);
	*output = (struct weir_output){.path = output->path};
}

bool weir_is_file(const char *path, const struct stat *file)
{
	struct stat status;

	return !stat(path, &status) && S_ISREG(status.st_mode) && status.st_dev == file->st_dev &&
	       status.st_ino == file->st_ino;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* For files that do not exist yet: do they have the same name in the same directory? */
static bool are_same_to_be(const char *path, const char *other)
{
	_cleanup_(weir_freep) char *path_copy = strdup(path), *other_copy = strdup(other);
	struct stat directory, other_directory;

	return path_copy && other_copy && !strcmp(last_name(path), last_name(other)) &&
	       !stat(dirname(path_copy), &directory) && !stat(dirname(other_copy), &other_directory) &&
	       directory.st_dev == other_directory.st_dev && directory.st_ino == other_directory.st_ino;
}

bool weir_are_same_file(const char *path, const char *other)
{
	struct stat file;

	if (!path || !other)
		return false;
	return !strcmp(path, other) || (!stat(other, &file) && weir_is_file(path, &file)) ||
	       are_same_to_be(path, other);
}
