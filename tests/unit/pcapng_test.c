// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks of pcapng are laid out as the draft says: read back here by the draft alone, block by block and option by
 * option. libpcap, which knows no comments, reads them in tests/e2e/events_test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "frames/pcapng.h"

#define TIME_NS 0x18a0000012345678u

static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7};

/* What was written, and where reading is. */
struct file {
	char *data;
	size_t size, at;
	FILE *stream;
};

static void begin(struct file *file)
{
	*file = (struct file){};
	file->stream = open_memstream(&file->data, &file->size);
	assert_non_null(file->stream);
}

static void begin_reading(struct file *file)
{
	fclose(file->stream);
}

static uint32_t number32(struct file *file)
{
	uint32_t number;

	assert_true(file->at + sizeof(number) <= file->size);
	memcpy(&number, file->data + file->at, sizeof(number));
	file->at += sizeof(number);
	return number;
}

/* A block's type and length are there, and the length is there again where it ends. Returns where that is. */
static size_t open_block(struct file *file, uint32_t type)
{
	size_t start = file->at;
	uint32_t length, again;

	assert_int_equal(number32(file), type);
	length = number32(file);
	assert_int_equal(length % 4, 0);
	assert_true(start + length <= file->size);
	memcpy(&again, file->data + start + length - 4, sizeof(again));
	assert_int_equal(again, length);
	return start + length - 4;
}

static void close_block(struct file *file, size_t end)
{
	assert_int_equal(file->at, end);
	file->at += 4;
}

static void expect_option(struct file *file, uint16_t code, const void *value, uint16_t count)
{
	assert_int_equal(number32(file), code | (uint32_t)count << 16);
	assert_true(file->at + count <= file->size);
	assert_memory_equal(file->data + file->at, value, count);
	for (file->at += count; file->at % 4; file->at++)
		assert_int_equal(file->data[file->at], 0);
}

static void expect_section(struct file *file, const char *application)
{
	size_t end = open_block(file, 0x0a0d0d0a);

	assert_int_equal(number32(file), 0x1a2b3c4d);
	assert_int_equal(number32(file), 1); /* 1.0 */
	assert_int_equal(number32(file), UINT32_MAX);
	assert_int_equal(number32(file), UINT32_MAX); /* the section's length is not said */
	expect_option(file, 4, application, strlen(application));
	expect_option(file, 0, "", 0);
	close_block(file, end);
}

static void expect_interface(struct file *file, const char *name, uint32_t snap_bytes)
{
	size_t end = open_block(file, 1);

	assert_int_equal(number32(file), 1); /* Ethernet */
	assert_int_equal(number32(file), snap_bytes);
	expect_option(file, 2, name, strlen(name));
	expect_option(file, 9, "\x09", 1); /* nanoseconds */
	expect_option(file, 0, "", 0);
	close_block(file, end);
}

static void expect_packet(struct file *file, uint32_t interface, uint32_t captured, uint32_t wire, uint32_t flags,
			  const char *comment, size_t comment_bytes)
{
	size_t end = open_block(file, 6);

	assert_int_equal(number32(file), interface);
	assert_int_equal(number32(file), TIME_NS >> 32);
	assert_int_equal(number32(file), (uint32_t)TIME_NS);
	assert_int_equal(number32(file), captured);
	assert_int_equal(number32(file), wire);
	assert_memory_equal(file->data + file->at, bytes, captured);
	for (file->at += captured; file->at % 4; file->at++)
		assert_int_equal(file->data[file->at], 0);
	expect_option(file, 1, comment, comment_bytes);
	expect_option(file, 2, &flags, sizeof(flags));
	expect_option(file, 0, "", 0);
	close_block(file, end);
}

static struct weir_frame frame_of(uint32_t captured, uint32_t wire)
{
	return (struct weir_frame){.time_ns = TIME_NS, .bytes = bytes, .captured_bytes = captured, .wire_bytes = wire};
}

#define INBOUND 1
#define OUTBOUND 2

/* Each remainder of a division by four, of frames and of texts. */
static void frames_and_comments_of_any_length_are_padded(void **state)
{
	static const char *const comments[] = {"", "a", "ab", "abc", "abcd"};
	struct file file;

	begin(&file);
	weir_pcapng_begin(file.stream, "weir events");
	weir_pcapng_interface(file.stream, "eth0", 128);
	weir_pcapng_interface(file.stream, "veth7", 128);
	for (size_t i = 0; i < ARRAY_SIZE(comments); i++) {
		struct weir_frame frame = frame_of(i, 1500);

		weir_pcapng_packet(file.stream, i % 2, &frame, false, comments[i]);
	}
	begin_reading(&file);
	expect_section(&file, "weir events");
	expect_interface(&file, "eth0", 128);
	expect_interface(&file, "veth7", 128);
	for (size_t i = 0; i < ARRAY_SIZE(comments); i++)
		expect_packet(&file, i % 2, i, 1500, INBOUND, comments[i], strlen(comments[i]));
	assert_int_equal(file.at, file.size);
	free(file.data);
}

/* The length of an option has 16 bits: a longer text would make the rest of the file unreadable. */
static void a_text_that_is_too_long_is_cut(void **state)
{
	struct weir_frame frame = frame_of(sizeof(bytes), sizeof(bytes));
	static char text[70000];
	struct file file;

	memset(text, 'x', sizeof(text) - 1);
	begin(&file);
	weir_pcapng_packet(file.stream, 0, &frame, false, text);
	begin_reading(&file);
	expect_packet(&file, 0, sizeof(bytes), sizeof(bytes), INBOUND, text, 4096);
	assert_int_equal(file.at, file.size);
	free(file.data);
}

static void the_direction_is_in_the_flags(void **state)
{
	struct weir_frame frame = frame_of(sizeof(bytes), sizeof(bytes));
	struct file file;

	begin(&file);
	weir_pcapng_packet(file.stream, 0, &frame, false, "in");
	weir_pcapng_packet(file.stream, 0, &frame, true, "out");
	begin_reading(&file);
	expect_packet(&file, 0, sizeof(bytes), sizeof(bytes), INBOUND, "in", 2);
	expect_packet(&file, 0, sizeof(bytes), sizeof(bytes), OUTBOUND, "out", 3);
	assert_int_equal(file.at, file.size);
	free(file.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_and_comments_of_any_length_are_padded),
		cmocka_unit_test(a_text_that_is_too_long_is_cut),
		cmocka_unit_test(the_direction_is_in_the_flags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
