// SPDX-License-Identifier: GPL-2.0-only
#include "replay/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"

#define COPY_BYTES 65536
#define LINKS_MAX 40 /* as many as the kernel follows (path_resolution(7)) */

static int cannot_write(struct weir_diag *diag, int err, const char *path)
{
	return weir_diag_fail(diag, err,
			      err == EPERM ? "is it a link that somebody else has made? it is not followed" : NULL,
			      "cannot write '%s'", path);
}

/* What is linked in /proc is no name but a thing that is open, such as what /dev/stdout leads to. */
static bool is_in_proc(const char *path)
{
	_cleanup_(weir_closep) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	return fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == PROC_SUPER_MAGIC;
}

/* What a link says, as seen from where we are. NULL: errno says why. */
static char *read_link(const char *path)
{
	const char *slash = strrchr(path, '/');
	char target[PATH_MAX], *next;
	ssize_t bytes = readlink(path, target, sizeof(target) - 1);

	if (bytes < 0)
		return NULL;
	target[bytes] = '\0';
	if (target[0] == '/' || !slash)
		return strdup(target);
	return asprintf(&next, "%.*s/%s", (int)(slash - path), path, target) < 0 ? NULL : next;
}

/* A link that somebody else has put there would lead us where he cannot write, and root can. */
static bool is_link_of_others(const struct stat *status)
{
	return S_ISLNK(status->st_mode) && status->st_uid != 0 && status->st_uid != geteuid();
}

/*
 * Where a result named `path` is to appear: a regular file, or a name that is not taken. *ret_place is NULL where
 * renaming would replace a thing (a device, a pipe) instead of filling it. Returns 0 or -errno.
 */
static int find_place(const char *path, char **ret_place)
{
	_cleanup_(weir_freep) char *place = strdup(path);

	for (int links = 0; place && links < LINKS_MAX; links++) {
		struct stat status;
		char *next;

		if (lstat(place, &status) < 0) {
			if (errno != ENOENT || !*place)
				return -errno;
			*ret_place = TAKE_PTR(place);
			return 0;
		}
		if (is_in_proc(place) || !(S_ISREG(status.st_mode) || S_ISLNK(status.st_mode))) {
			*ret_place = NULL;
			return 0;
		}
		if (is_link_of_others(&status))
			return -EPERM;
		if (S_ISREG(status.st_mode)) {
			*ret_place = TAKE_PTR(place);
			return 0;
		}
		next = read_link(place);
		if (!next)
			return -errno;
		free(place);
		place = next;
	}
	return place ? -ELOOP : -ENOMEM;
}

/* mkostemp makes files that only the owner reads; the result is to have the permissions of what it replaces, or the
 * usual ones.
 */
static int use_mode(int fd, const char *place)
{
	struct stat status;
	mode_t mask;

	if (!lstat(place, &status))
		return fchmod(fd, status.st_mode & 0777);
	mask = umask(0);
	umask(mask);
	return fchmod(fd, 0666 & ~mask);
}

static int open_beside(struct weir_output *output)
{
	_cleanup_(weir_freep) char *temporary = NULL;
	_cleanup_(weir_closep) int fd = -1;

	if (asprintf(&temporary, "%s.XXXXXX", output->place) < 0) {
		temporary = NULL;
		return -ENOMEM;
	}
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	output->temporary = TAKE_PTR(temporary);
	if (use_mode(fd, output->place))
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
	err = find_place(path, &output->place);
	if (!err && output->place) {
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

/* What is there already. NULL: errno says why. */
static FILE *open_there(const char *path)
{
	_cleanup_(weir_closep) int fd = open(path, O_WRONLY | O_TRUNC | O_NOCTTY | O_CLOEXEC);
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "w");

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

	if (output->place)
		return 0;
	to = open_there(output->path);
	return to ? copy(output->stream, to) : -errno;
}

static int put_in_place(const struct weir_output *output)
{
	return output->place && rename(output->temporary, output->place) < 0 ? -errno : 0;
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
	if (err || output->place)
		return err;
	to = open_there(output->path);
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
	free(output->temporary);
	free(output->place);
	*output = (struct weir_output){.path = output->path};
}
