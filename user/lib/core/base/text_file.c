// SPDX-License-Identifier: GPL-2.0-only
#include "base/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"

/* Look into a pipe: *ret_byte is a byte, or EOF if it is empty but has a writer. -EPIPE: it has no writer. */
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
	/* From now on reads may block: the writer may be slow. */
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

bool weir_file_has_writer(int fd)
{
	/* A lease is refused where there is a writer. A writer that comes while we have it waits until we give it up,
	 * which is at once, and we get a signal: by default SIGIO, which would end us; SIGURG is ignored by default.
	 */
	if (fcntl(fd, F_SETSIG, SIGURG))
		return false;
	if (fcntl(fd, F_SETLEASE, F_RDLCK))
		return errno == EAGAIN;
	fcntl(fd, F_SETLEASE, F_UNLCK);
	return false;
}

const char *weir_text_file_explain(int err)
{
	return err == -EPIPE ? "it is a pipe without a writer" : strerror(-err);
}

enum weir_line weir_read_line(struct weir_line_reader *reader)
{
	bool has_zero = false;
	size_t bytes = 0;
	int byte = EOF;

	while (reader->bytes <= reader->bytes_max && (byte = getc_unlocked(reader->stream)) != EOF) {
		reader->bytes++;
		if (byte == '\n')
			break;
		has_zero |= byte == '\0';
		if (bytes <= WEIR_LINE_BYTES_MAX)
			reader->line[bytes++] = byte ?: '?';
	}
	reader->line[bytes] = '\0';
	if (reader->bytes > reader->bytes_max)
		return WEIR_LINE_TOO_MUCH;
	if (byte == EOF && !bytes)
		return WEIR_LINE_END;
	if (!reader->number++ && !strncmp(reader->line, "\xef\xbb\xbf", 3))
		memmove(reader->line, reader->line + 3, bytes - 2);
	if (bytes > WEIR_LINE_BYTES_MAX)
		return WEIR_LINE_TOO_LONG;
	return has_zero ? WEIR_LINE_ZERO_BYTE : WEIR_LINE_TEXT;
}
