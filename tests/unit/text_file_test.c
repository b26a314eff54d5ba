// SPDX-License-Identifier: GPL-2.0-only
/* Files that users name: whoever names a pipe gets what is written into it, and does not wait for nobody. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/claims.h"
#include "base/text_file.h"
#include "base/util.h"

static char directory[] = "/tmp/weir-text-file-XXXXXX";
static char path[sizeof(directory) + sizeof("/pipe")];

static int make_pipe(void **state)
{
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/pipe", directory);
	return mkfifo(path, 0600);
}

static int remove_pipe(void **state)
{
	unlink(path);
	return rmdir(directory);
}

CLAIM(a_pipe_that_nobody_writes_to_is_reported)
{
	FILE *stream;

	assert_int_equal(weir_text_file_open(path, &stream), -EPIPE);
	assert_string_not_equal(weir_text_file_explain(-EPIPE), strerror(EPIPE));
}

CLAIM(what_is_in_a_pipe_is_read_from_its_first_byte)
{
	/* Not to wait for a reader. */
	int writer = open(path, O_RDWR | O_CLOEXEC);
	struct weir_line_reader reader = {.bytes_max = 100};

	assert_true(writer >= 0);
	assert_int_equal(write(writer, "one\ntwo\n", 8), 8);
	assert_int_equal(weir_text_file_open(path, &reader.stream), 0);
	close(writer);
	assert_int_equal(weir_read_line(&reader), WEIR_LINE_TEXT);
	assert_string_equal(reader.line, "one");
	assert_int_equal(weir_read_line(&reader), WEIR_LINE_TEXT);
	assert_string_equal(reader.line, "two");
	assert_int_equal(weir_read_line(&reader), WEIR_LINE_END);
	fclose(reader.stream);
}

CLAIM(a_writer_that_has_not_written_yet_is_awaited)
{
	int writer = open(path, O_RDWR | O_CLOEXEC);
	struct weir_line_reader reader = {.bytes_max = 100};

	assert_true(writer >= 0);
	assert_int_equal(weir_text_file_open(path, &reader.stream), 0);
	assert_false(fcntl(fileno(reader.stream), F_GETFL) & O_NONBLOCK);
	assert_int_equal(write(writer, "late\n", 5), 5);
	close(writer);
	assert_int_equal(weir_read_line(&reader), WEIR_LINE_TEXT);
	assert_string_equal(reader.line, "late");
	fclose(reader.stream);
}

CLAIM(what_is_not_there_is_reported)
{
	FILE *stream;

	assert_int_equal(weir_text_file_open("/nowhere/at/all", &stream), -ENOENT);
	assert_string_equal(weir_text_file_explain(-ENOENT), strerror(ENOENT));
}

/* And nobody is ended by the signal that a lease sends when a writer comes. */
CLAIM(a_file_that_is_open_for_writing_has_a_writer)
{
	char name[] = "/tmp/weir-text-file-XXXXXX";
	int writer = mkstemp(name), reader = open(name, O_RDONLY | O_CLOEXEC), ends[2];

	assert_true(writer >= 0 && reader >= 0);
	assert_true(weir_file_has_writer(reader));
	close(writer);
	for (int i = 0; i < 100; i++) {
		assert_false(weir_file_has_writer(reader));
		writer = open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
		assert_true(weir_file_has_writer(reader));
		close(writer);
	}
	close(reader);
	unlink(name);
	assert_int_equal(pipe(ends), 0);
	assert_false(weir_file_has_writer(ends[0]));
	close(ends[0]);
	close(ends[1]);
}

RUN_CLAIMS(make_pipe, remove_pipe)
