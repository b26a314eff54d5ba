// SPDX-License-Identifier: GPL-2.0-only
#include "files/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"

#define COPY_BYTES 65536
#define LINKS_MAX 40	    /* the kernel's own limit (path_resolution(7)) */
#define TEMPORARY_TRIES 100 /* names in use are retried this often; chosen, not derived */

static int cannot_write(struct weir_diag *diag, int err, const char *path)
{
	return weir_diag_fail(
		diag, err, err == EPERM ? "is it a link that another user created? such links are not followed" : NULL,
		"cannot write '%s'", path);
}

/* ---- resolving a path ---- */

/* Another user who can create a symbolic link, or replace a file by one after we have checked it, could make us write
 * where he cannot. So the path is walked component by component. Each is opened once, and no name is looked up again.
 */
struct walk {
	int directory;	  /* the current directory of the walk (O_PATH) */
	char *path;	  /* owned; `rest` points into it */
	const char *rest; /* the part of the path that has not been walked yet */
	int links;	  /* number of links followed */
};

static void end_walk(struct walk *walk)
{
	weir_closep(&walk->directory);
	free(walk->path);
}

/* A link in /proc is not a name but an open object, such as the target of /dev/stdout. */
static bool is_in_proc(int fd)
{
	struct statfs fs;

	return !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

static bool is_link_of_others(const struct stat *status)
{
	return S_ISLNK(status->st_mode) && status->st_uid != 0 && status->st_uid != geteuid();
}

static int enter(struct walk *walk, int fd)
{
	if (fd < 0)
		return -errno;
	close(walk->directory);
	walk->directory = fd;
	return 0;
}

/* Replace the link's name in the path by its target. */
static int follow(struct walk *walk, int link, const char *behind)
{
	char target[PATH_MAX], *path;
	ssize_t bytes = readlinkat(link, "", target, sizeof(target) - 1);

	if (bytes < 0)
		return -errno;
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	target[bytes] = '\0';
	if (asprintf(&path, "%s%s", target, behind) < 0)
		return -ENOMEM;
	free(walk->path);
	walk->rest = walk->path = path;
	return *target == '/' ? enter(walk, open("/", O_PATH | O_CLOEXEC)) : 0;
}

/* The path ends with a name in the current directory of the walk. */
static int end_at_name(struct walk *walk, struct weir_output *output, char *name)
{
	output->name = name;
	output->fd = TAKE_FD(walk->directory);
	output->is_found = true;
	return 0;
}

static int end_at_thing(struct weir_output *output, int fd)
{
	output->fd = fd;
	output->is_found = true;
	return 0;
}

/* Walk one component of the path. Returns 0 or -errno. */
static int take_step(struct walk *walk, struct weir_output *output)
{
	const char *name = walk->rest + strspn(walk->rest, "/"), *behind = name + strcspn(name, "/");
	_cleanup_(weir_freep) char *part = *name ? strndup(name, behind - name) : strdup(".");
	_cleanup_(weir_closep) int fd = -1;
	bool is_name = true;
	struct stat status;

	if (!part)
		return -ENOMEM;
	fd = openat(walk->directory, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT && !*behind ? end_at_name(walk, output, TAKE_PTR(part)) : -errno;
	if (fstat(fd, &status))
		return -errno;
	if (is_link_of_others(&status))
		return -EPERM;
	if (S_ISLNK(status.st_mode)) {
		if (!is_in_proc(fd))
			return follow(walk, fd, behind);
		weir_closep(&fd);
		fd = openat(walk->directory, part, O_PATH | O_CLOEXEC);
		if (fd < 0)
			return -errno;
		is_name = false;
	}
	walk->rest = behind;
	if (*behind)
		return enter(walk, TAKE_FD(fd));
	return is_name && S_ISREG(status.st_mode) ? end_at_name(walk, output, TAKE_PTR(part))
						  : end_at_thing(output, TAKE_FD(fd));
}

/*
 * Find where a result is to appear. It is either a name in a directory, of a regular file or not in use yet; or an
 * existing object (a device, a pipe), which must be filled because renaming would replace it. Returns 0 or -errno.
 */
static int find_place(struct weir_output *output)
{
	_cleanup_(end_walk) struct walk walk = {
		.directory = open(*output->path == '/' ? "/" : ".", O_PATH | O_CLOEXEC),
		.path = strdup(output->path),
	};
	int err = walk.directory < 0 ? -errno : *output->path ? 0 : -ENOENT;

	if (!walk.path)
		return -ENOMEM;
	walk.rest = walk.path;
	while (!err && !output->is_found)
		err = take_step(&walk, output);
	return err;
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

/* Create a file next to the final place, with an unpredictable name. Returns a descriptor, or -errno. */
static int make_temporary(struct weir_output *output)
{
	for (int tries = 0; tries < TEMPORARY_TRIES; tries++) {
		_cleanup_(weir_freep) char *temporary = NULL;
		uint32_t drawn;
		int fd;

		if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
			return -errno;
		if (asprintf(&temporary, "%s.%06x", output->name, drawn & 0xffffff) < 0) {
			temporary = NULL;
			return -ENOMEM;
		}
		fd = openat(output->fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0)
			output->temporary = TAKE_PTR(temporary);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static int open_beside(struct weir_output *output)
{
	_cleanup_(weir_closep) int fd = make_temporary(output);

	if (fd < 0)
		return fd;
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
	return output->name && renameat(output->fd, output->temporary, output->fd, output->name) < 0 ? -errno : 0;
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
		unlinkat(output->fd, output->temporary, 0);
	if (output->is_found)
		close(output->fd);
	free(output->temporary);
	free(output->name);
	*output = (struct weir_output){.path = output->path};
}
