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

static void expect_packet(struct file *file, uint32_t interface, uint32_t captured, uint32_t wire, const char *comment,
			  size_t comment_bytes, uint32_t flags)
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

		frame.course = i % 3;
		weir_pcapng_packet(file.stream, i % 2, &frame, comments[i]);
	}
	begin_reading(&file);
	expect_section(&file, "weir events");
	expect_interface(&file, "eth0", 128);
	expect_interface(&file, "veth7", 128);
	for (size_t i = 0; i < ARRAY_SIZE(comments); i++)
		expect_packet(&file, i % 2, i, 1500, comments[i], strlen(comments[i]), i % 3);
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
	weir_pcapng_packet(file.stream, 0, &frame, text);
	begin_reading(&file);
	expect_packet(&file, 0, sizeof(bytes), sizeof(bytes), text, 4096, 0);
	assert_int_equal(file.at, file.size);
	free(file.data);
}

/* ---- reading ---- */

/* A file as any host may have written it. */
struct foreign {
	uint32_t words[256];
	size_t count;
	bool is_swapped;
};

static void put(struct foreign *file, uint32_t word)
{
	assert_true(file->count < ARRAY_SIZE(file->words));
	file->words[file->count++] = file->is_swapped ? __builtin_bswap32(word) : word;
}

/* Two numbers of 16 bits, in the order of the file. */
static void put_halves(struct foreign *file, uint16_t first, uint16_t second)
{
	const bool is_low_first = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != file->is_swapped;

	put(file, is_low_first ? first | (uint32_t)second << 16 : second | (uint32_t)first << 16);
}

#define SECTION_WORDS 7

static void begin_foreign(struct foreign *file, bool is_swapped)
{
	*file = (struct foreign){.is_swapped = is_swapped};
	for (size_t i = 0; i < SECTION_WORDS; i++)
		put(file, (const uint32_t[]){0x0a0d0d0a, 28, 0x1a2b3c4d, 1, UINT32_MAX, UINT32_MAX, 28}[i]);
}

/* Of as many words of frame; `flags` 0: it has no such option. A comment stands before it. */
static void put_enhanced(struct foreign *file, uint32_t frame_words, uint32_t flags)
{
	const uint32_t length = 32 + 4 * frame_words + 8 + (flags ? 12 : 0);

	put(file, 6);
	put(file, length);
	for (size_t i = 0; i < 3; i++)
		put(file, 0); /* interface, time */
	put(file, frame_words ? 4 * frame_words - 3 : 0);
	put(file, 4 * frame_words);
	for (size_t i = 0; i < frame_words; i++)
		put(file, 6);
	put_halves(file, 1, 2);
	put(file, 2);
	if (flags) {
		put_halves(file, 2, 4);
		put(file, flags);
		put(file, 0);
	}
	put(file, length);
}

static void put_other(struct foreign *file, uint32_t type, uint32_t words)
{
	put(file, type);
	put(file, 12 + 4 * words);
	for (size_t i = 0; i < words; i++)
		put(file, 6);
	put(file, 12 + 4 * words);
}

static FILE *open_foreign(struct foreign *file, size_t size, struct weir_pcapng_reader *ret_reader)
{
	FILE *stream = fmemopen(file->words, size, "r");

	assert_non_null(stream);
	assert_true(weir_pcapng_open(stream, ret_reader));
	return stream;
}

/* In either byte order, between blocks of other types, in a second section, and whatever else the flags say. */
static void courses_are_those_of_the_packets_in_their_order(void **state)
{
	static const enum weir_course courses[] = {WEIR_COURSE_IN,	WEIR_COURSE_OUT,     WEIR_COURSE_UNKNOWN,
						   WEIR_COURSE_UNKNOWN, WEIR_COURSE_UNKNOWN, WEIR_COURSE_UNKNOWN,
						   WEIR_COURSE_UNKNOWN, WEIR_COURSE_OUT,     WEIR_COURSE_UNKNOWN};
	struct weir_pcapng_reader reader;
	struct foreign file;

	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		FILE *stream;

		begin_foreign(&file, is_swapped);
		put_other(&file, 1, 2);
		put_enhanced(&file, 3, 1);
		put_other(&file, 5, 0);
		put_enhanced(&file, 0, 0xfffffffe);
		put_enhanced(&file, 2, 0xfffffffc);
		put_enhanced(&file, 2, 3);
		put_other(&file, 2, 8);
		put_other(&file, 3, 4);
		put_enhanced(&file, 1, 0);
		put_other(&file, 0x0a0d0d0a, 4);
		put_enhanced(&file, 1, 2);
		stream = open_foreign(&file, file.count * sizeof(uint32_t), &reader);
		for (size_t i = 0; i < ARRAY_SIZE(courses); i++)
			assert_int_equal(weir_pcapng_next_course(&reader), courses[i]);
		fclose(stream);
	}
}

/* What this room writes, it reads. */
static void what_is_written_is_read(void **state)
{
	struct weir_frame frame = frame_of(sizeof(bytes), sizeof(bytes));
	struct weir_pcapng_reader reader;
	struct file file;
	FILE *stream;

	begin(&file);
	weir_pcapng_begin(file.stream, "weir events");
	weir_pcapng_interface(file.stream, "eth0", 128);
	for (frame.course = WEIR_COURSE_UNKNOWN; frame.course <= WEIR_COURSE_OUT; frame.course++)
		weir_pcapng_packet(file.stream, 0, &frame, "dropped");
	begin_reading(&file);
	stream = fmemopen(file.data, file.size, "r");
	assert_non_null(stream);
	assert_true(weir_pcapng_open(stream, &reader));
	for (enum weir_course course = WEIR_COURSE_UNKNOWN; course <= WEIR_COURSE_OUT; course++)
		assert_int_equal(weir_pcapng_next_course(&reader), course);
	assert_int_equal(weir_pcapng_next_course(&reader), WEIR_COURSE_UNKNOWN);
	fclose(stream);
	free(file.data);
}

static void expect_unknown(struct foreign *file)
{
	struct weir_pcapng_reader reader;
	FILE *stream = open_foreign(file, file->count * sizeof(uint32_t), &reader);

	assert_int_equal(weir_pcapng_next_course(&reader), WEIR_COURSE_UNKNOWN);
	fclose(stream);
}

/* A length that leads out of its block, to what looks like flags there, or to a whole packet. */
static void a_length_that_lies_leads_to_no_flags(void **state)
{
	static const struct {
		size_t at; /* word of the packet's block: bytes captured, and of the first option */
		uint32_t lie;
	} cases[] = {{5, 24}, {8, 1 | 16 << 16}};
	struct foreign file;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		begin_foreign(&file, false);
		put_enhanced(&file, 1, 0);
		file.words[SECTION_WORDS + cases[i].at] = cases[i].lie;
		for (int n = 0; n < 8; n++) {
			put(&file, 2 | 4 << 16);
			put(&file, 2);
		}
		expect_unknown(&file);
	}
	begin_foreign(&file, false);
	put(&file, 5);
	put(&file, 8); /* shorter than any block */
	put_enhanced(&file, 1, 2);
	expect_unknown(&file);
}

/* A file that ends anywhere, and lengths that lie: never a wrong course, and never an endless search. */
static void nothing_is_known_from_where_a_file_is_damaged(void **state)
{
	static const uint32_t lies[] = {0, 1, 8, 11, 12, 31, 35, 0x7ffffffc, 0xfffffffc, UINT32_MAX};
	const size_t first = SECTION_WORDS, length_at = first + 1, captured_at = first + 5, option_at = first + 8;
	struct weir_pcapng_reader reader;
	struct foreign file;
	FILE *stream;

	for (size_t place = 0; place < 3; place++)
		for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
			begin_foreign(&file, false);
			put_enhanced(&file, 1, 2);
			file.words[(const size_t[]){length_at, captured_at, option_at}[place]] = lies[i];
			stream = open_foreign(&file, file.count * sizeof(uint32_t), &reader);
			for (int n = 0; n < 3; n++)
				assert_true(weir_pcapng_next_course(&reader) <= WEIR_COURSE_OUT);
			assert_int_equal(weir_pcapng_next_course(&reader), WEIR_COURSE_UNKNOWN);
			fclose(stream);
		}
	begin_foreign(&file, true);
	put_enhanced(&file, 1, 2);
	for (size_t size = 12; size < file.count * sizeof(uint32_t); size++) {
		/* The flags stand before the end of options and the trailer. */
		const bool has_flags = size >= (file.count - 2) * sizeof(uint32_t);

		stream = open_foreign(&file, size, &reader);
		assert_int_equal(weir_pcapng_next_course(&reader), has_flags ? WEIR_COURSE_OUT : WEIR_COURSE_UNKNOWN);
		assert_int_equal(weir_pcapng_next_course(&reader), WEIR_COURSE_UNKNOWN);
		fclose(stream);
	}
}

static void other_files_are_no_pcapng(void **state)
{
	static const uint32_t others[][3] = {
		{0xa1b2c3d4, 0x00040002, 0}, {0x0a0d0d0a, 28, 0x1a2b3c4e}, {6, 28, 0x1a2b3c4d}};
	struct weir_pcapng_reader reader;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		FILE *stream = fmemopen((void *)(uintptr_t)others[i], sizeof(others[i]), "r");

		assert_non_null(stream);
		assert_false(weir_pcapng_open(stream, &reader));
		fclose(stream);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_and_comments_of_any_length_are_padded),
		cmocka_unit_test(a_text_that_is_too_long_is_cut),
		cmocka_unit_test(courses_are_those_of_the_packets_in_their_order),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(a_length_that_lies_leads_to_no_flags),
		cmocka_unit_test(nothing_is_known_from_where_a_file_is_damaged),
		cmocka_unit_test(other_files_are_no_pcapng),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
