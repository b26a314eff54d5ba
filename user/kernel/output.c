// SPDX-License-Identifier: GPL-2.0-only
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "util.h"

#define COPY_BYTES 65536

static int cannot_write(struct weir_diag *diag, int err, const char *path)
{
	return weir_diag_fail(diag, err, NULL, "cannot write '%s'", path);
}

/* Renaming over a device, a pipe or a link would replace the thing instead of filling it. */
static bool can_be_replaced(const char *path)
{
	struct stat status;

	if (lstat(path, &status) < 0)
		return errno == ENOENT;
	return S_ISREG(status.st_mode);
}

/* mkostemp makes files that only the owner reads; the result is to have the usual permissions. */
static int use_default_mode(int fd)
{
	mode_t mask = umask(0);

	umask(mask);
	return fchmod(fd, 0666 & ~mask);
}

int weir_output_open(struct weir_output *output, const char *path, struct weir_diag *diag)
{
	_cleanup_(weir_freep) char *temporary = NULL;
	int fd;

	*output = (struct weir_output){.path = path};
	if (!can_be_replaced(path)) {
		output->stream = tmpfile();
		return output->stream ? 0 : cannot_write(diag, errno, path);
	}
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0)
		return cannot_write(diag, ENOMEM, path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return cannot_write(diag, errno, path);
	output->temporary = TAKE_PTR(temporary);
	if (use_default_mode(fd) == 0)
		output->stream = fdopen(fd, "w+");
	if (!output->stream) {
		int err = errno;

		close(fd);
		weir_output_close(output);
		return cannot_write(diag, err, path);
	}
	return 0;
}

static int copy_to(FILE *from, const char *path)
{
	_cleanup_(weir_fclosep) FILE *to = fopen(path, "we");
	char bytes[COPY_BYTES];
	size_t count;

	if (!to)
		return -errno;
	rewind(from);
	errno = 0;
	while ((count = fread(bytes, 1, sizeof(bytes), from)) > 0)
		if (fwrite(bytes, 1, count, to) != count)
			return errno ? -errno : -EIO;
	if (ferror(from) || fflush(to))
		return errno ? -errno : -EIO;
	return 0;
}

int weir_output_commit(struct weir_output *output, struct weir_diag *diag)
{
	int err;

	if (!output->stream)
		return 0;
	errno = 0;
	if (fflush(output->stream) || ferror(output->stream))
		return cannot_write(diag, errno ? errno : EIO, output->path);
	if (!output->temporary) {
		err = copy_to(output->stream, output->path);
		return err ? cannot_write(diag, -err, output->path) : 0;
	}
	if (rename(output->temporary, output->path) < 0)
		return cannot_write(diag, errno, output->path);
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
	*output = (struct weir_output){.path = output->path};
}
