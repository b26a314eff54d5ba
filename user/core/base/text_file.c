// SPDX-License-Identifier: GPL-2.0-only
#include "base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

/* What a pipe has, if anything: a byte, *ret_byte; or EOF where somebody may write yet. -EPIPE: nobody will. */
static int look_into(int fd, int *ret_byte)
{
	unsigned char byte;
	ssize_t bytes = read(fd, &byte, 1);

	if (bytes == 0)
		return -EPIPE;
	if (bytes < 0 && errno != EAGAIN)
		return -errno;
	*ret_byte = bytes > 0 ? byte : EOF;
	return 0;
}

int weir_text_file_open(const char *path, FILE **ret_stream)
{
	_cleanup_(weir_closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	int byte = EOF, err = 0;
	FILE *stream;

	if (fd < 0 || fstat(fd, &status))
		return -errno;
	if (S_ISFIFO(status.st_mode))
		err = look_into(fd, &byte);
	if (err)
		return err;
	/* Whoever writes may take his time. */
	if (fcntl(fd, F_SETFL, O_RDONLY))
		return -errno;
	stream = fdopen(fd, "r");
	if (!stream)
		return -errno;
	TAKE_FD(fd);
	if (byte != EOF)
		ungetc(byte, stream);
	*ret_stream = stream;
	return 0;
}

const char *weir_text_file_explain(int err)
{
	return err == -EPIPE ? "it is a pipe that nobody writes to" : strerror(-err);
}
