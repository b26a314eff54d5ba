// SPDX-License-Identifier: GPL-2.0-only
/*
 * Blocks of pcapng are laid out as the draft says: read back here by the draft alone, block by block and option by
 * option. libpcap, which knows no comments, reads them in tests/e2e/events_test. The reader has files of its own making
 * here, as any host may have written them.
 */
#include <stdio.h>
#include <string.h>

#include "../lib/claims.h"
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
CLAIM(frames_and_comments_of_any_length_are_padded)
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
CLAIM(a_text_that_is_too_long_is_cut)
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

static void put_section(struct foreign *file)
{
	put(file, 0x0a0d0d0a);
	put(file, 28);
	put(file, 0x1a2b3c4d);
	put_halves(file, 1, 0);
	put(file, UINT32_MAX);
	put(file, UINT32_MAX);
	put(file, 28);
}

static void begin_foreign(struct foreign *file, bool is_swapped)
{
	*file = (struct foreign){.is_swapped = is_swapped};
	put_section(file);
}

/* An interface with these options, of which `option_words` are words of the file. */
static void put_interface(struct foreign *file, uint16_t number, uint32_t snap_bytes, const uint32_t *option_words,
			  size_t count)
{
	put(file, 1);
	put(file, 20 + 4 * count);
	put_halves(file, number, 0);
	put(file, snap_bytes);
	for (size_t i = 0; i < count; i++)
		put(file, option_words[i]);
	put(file, 20 + 4 * count);
}

/* if_tsresol alone: its byte is the first in the file whatever the order of bytes. */
static void put_timed_interface(struct foreign *file, uint8_t resolution)
{
	put(file, 1);
	put(file, 32);
	put_halves(file, 1, 0);
	put(file, 0);
	put_halves(file, 9, 1);
	file->words[file->count++] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? resolution : resolution << 24;
	put(file, 0);
	put(file, 32);
}

/* Of as many words of frame; `flags` 0: it has no such option. A comment stands before it. */
static void put_enhanced_of(struct foreign *file, uint32_t interface, uint64_t ticks, uint32_t frame_words,
			    uint32_t flags)
{
	const uint32_t length = 32 + 4 * frame_words + 8 + (flags ? 12 : 0);

	put(file, 6);
	put(file, length);
	put(file, interface);
	put(file, ticks >> 32);
	put(file, ticks);
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

static void put_enhanced(struct foreign *file, uint32_t frame_words, uint32_t flags)
{
	put_enhanced_of(file, 0, 0, frame_words, flags);
}

static void put_other(struct foreign *file, uint32_t type, uint32_t words)
{
	put(file, type);
	put(file, 12 + 4 * words);
	for (size_t i = 0; i < words; i++)
		put(file, 0);
	put(file, 12 + 4 * words);
}

static void open_foreign(struct foreign *file, size_t size, struct weir_pcapng_reader *ret_reader)
{
	FILE *stream = fmemopen(file->words, size, "r");
	int first;

	assert_non_null(stream);
	first = getc(stream);
	assert_true(weir_pcapng_begins_with(first));
	ungetc(first, stream);
	*ret_reader = (struct weir_pcapng_reader){.stream = stream};
}

static void close_foreign(struct weir_pcapng_reader *reader)
{
	fclose(reader->stream);
	weir_pcapng_free(reader);
}

/* In either byte order, between blocks of other types, and whatever else the flags say. */
CLAIM(courses_are_those_of_the_packets_in_their_order)
{
	static const enum weir_course courses[] = {WEIR_COURSE_IN,	WEIR_COURSE_OUT,     WEIR_COURSE_UNKNOWN,
						   WEIR_COURSE_UNKNOWN, WEIR_COURSE_UNKNOWN, WEIR_COURSE_UNKNOWN,
						   WEIR_COURSE_UNKNOWN};
	struct weir_pcapng_reader reader;
	struct weir_frame frame;
	struct foreign file;

	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		begin_foreign(&file, is_swapped);
		put_interface(&file, 1, 0, NULL, 0);
		put_enhanced(&file, 3, 1);
		put_other(&file, 5, 0);
		put_enhanced(&file, 0, 0xfffffffe);
		put_enhanced(&file, 2, 0xfffffffc);
		put_enhanced(&file, 2, 3);
		put_other(&file, 2, 8);
		put_other(&file, 3, 4);
		put_enhanced(&file, 1, 0);
		open_foreign(&file, file.count * sizeof(uint32_t), &reader);
		for (size_t i = 0; i < ARRAY_SIZE(courses); i++) {
			assert_int_equal(weir_pcapng_next(&reader, &frame), 1);
			assert_int_equal(frame.course, courses[i]);
		}
		assert_int_equal(weir_pcapng_next(&reader, &frame), 0);
		close_foreign(&reader);
	}
}

/* A file may be two that were put together: the second section may have another byte order, and other interfaces. */
CLAIM(each_section_has_its_byte_order_and_interfaces)
{
	struct weir_pcapng_reader reader;
	struct weir_frame frame;
	struct foreign file;

	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		begin_foreign(&file, is_swapped);
		put_interface(&file, 1, 0, NULL, 0);
		put_interface(&file, 113, 0, NULL, 0);
		put_enhanced_of(&file, 1, 5, 2, 0);
		file.is_swapped = !is_swapped;
		put_section(&file);
		put_interface(&file, 276, 0, NULL, 0);
		put_enhanced_of(&file, 0, 6, 2, 2);
		put_enhanced_of(&file, 1, 7, 2, 2);
		open_foreign(&file, file.count * sizeof(uint32_t), &reader);
		assert_int_equal(weir_pcapng_next(&reader, &frame), 1);
		assert_int_equal(reader.link_number, 113);
		assert_int_equal(frame.time_ns, 5000);
		assert_int_equal(weir_pcapng_next(&reader, &frame), 1);
		assert_int_equal(reader.link_number, 276);
		assert_int_equal(frame.time_ns, 6000);
		assert_int_equal(frame.course, WEIR_COURSE_OUT);
		assert_int_equal(weir_pcapng_next(&reader, &frame), -EBADMSG);
		assert_non_null(strstr(reader.fault, "does not describe"));
		close_foreign(&reader);
	}
}

/* Microseconds where nothing is said; powers of ten and of two; and what 64 bits cannot count is refused. */
CLAIM(times_have_the_resolution_of_their_interface)
{
	static const struct {
		int resolution; /* -1: not said */
		uint64_t ticks, ns;
	} cases[] = {{-1, 7, 7000},
		     {6, 1700000000000001, 1700000000000001000},
		     {9, 1700000000000000001, 1700000000000000001},
		     {0, 1700000000, 1700000000000000000},
		     {3, 5, 5000000},
		     {12, 1999, 1},
		     {0x80, 3, 3000000000},
		     {0x81, 3, 1500000000},
		     {0x80 | 20, 1 << 19, 500000000},
		     {0x80 | 63, 1ull << 63, 1000000000}};
	struct weir_pcapng_reader reader;
	struct weir_frame frame;
	struct foreign file;

	for (int is_swapped = 0; is_swapped < 2; is_swapped++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			begin_foreign(&file, is_swapped);
			put_timed_interface(&file, 3);
			if (cases[i].resolution < 0)
				put_interface(&file, 1, 0, NULL, 0);
			else
				put_timed_interface(&file, cases[i].resolution);
			put_enhanced_of(&file, 1, cases[i].ticks, 2, 0);
			open_foreign(&file, file.count * sizeof(uint32_t), &reader);
			assert_int_equal(weir_pcapng_next(&reader, &frame), 1);
			assert_int_equal(frame.time_ns, cases[i].ns);
			close_foreign(&reader);
		}
	for (size_t i = 0; i < 3; i++) {
		begin_foreign(&file, false);
		put_timed_interface(&file, (const uint8_t[]){20, 0x80 | 64, 9}[i]);
		put_enhanced_of(&file, 0, i == 2 ? UINT64_MAX : 1, 2, 0);
		open_foreign(&file, file.count * sizeof(uint32_t), &reader);
		assert_int_equal(weir_pcapng_next(&reader, &frame), i == 2 ? 1 : -EBADMSG);
		close_foreign(&reader);
	}
}

/* if_tsoffset: whole seconds, which may be negative; what is before 1970 then, or after 2554, is a damage. */
CLAIM(times_have_the_offset_of_their_interface)
{
	static const struct {
		int64_t offset_s;
		uint64_t ticks, ns;
		int got;
	} cases[] = {
		{100, 5000000, 105000000000, 1}, {-4, 5000000, 1000000000, 1}, {-5, 5000000, 0, 1},
		{-6, 5000000, 0, -EBADMSG},	 {INT64_MAX, 5, 0, -EBADMSG},  {INT64_MIN, UINT64_MAX, 0, -EBADMSG}};
	struct weir_pcapng_reader reader;
	struct weir_frame frame;
	struct foreign file;

	for (int is_swapped = 0; is_swapped < 2; is_swapped++)
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			const uint32_t low = cases[i].offset_s, high = (uint64_t)cases[i].offset_s >> 32;
			const bool is_low_first = (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) != is_swapped;

			begin_foreign(&file, is_swapped);
			put(&file, 1);
			put(&file, 32);
			put_halves(&file, 1, 0);
			put(&file, 0);
			put_halves(&file, 14, 8);
			put(&file, is_low_first ? low : high);
			put(&file, is_low_first ? high : low);
			put(&file, 32);
			put_enhanced_of(&file, 0, cases[i].ticks, 2, 0);
			open_foreign(&file, file.count * sizeof(uint32_t), &reader);
			assert_int_equal(weir_pcapng_next(&reader, &frame), cases[i].got);
			if (cases[i].got == 1)
				assert_int_equal(frame.time_ns, cases[i].ns);
			close_foreign(&reader);
		}
}

/* A simple packet is of the first interface, whose snapshot length says how much of it is there; it has no time. An
 * obsolete packet has its interface in half a word.
 */
CLAIM(packets_of_the_older_blocks_are_read)
{
	struct weir_pcapng_reader reader;
	struct weir_frame frame;
	struct foreign file;

	for (int is_swapped = 0; is_swapped < 2; is_swapped++) {
		begin_foreign(&file, is_swapped);
		put_interface(&file, 1, 6, NULL, 0);
		put_interface(&file, 101, 100, NULL, 0);
		put(&file, 3);
		put(&file, 24);
		put(&file, 1500);
		put(&file, 0x01020304);
		put(&file, 0x05060708);
		put(&file, 24);
		put(&file, 2);
		put(&file, 36);
		put_halves(&file, 1, 77);
		put(&file, 0);
		put(&file, 9);
		put(&file, 4);
		put(&file, 60);
		put(&file, 0x01020304);
		put(&file, 36);
		open_foreign(&file, file.count * sizeof(uint32_t), &reader);
		assert_int_equal(weir_pcapng_next(&reader, &frame), 1);
		assert_int_equal(frame.captured_bytes, 6);
		assert_int_equal(frame.wire_bytes, 1500);
		assert_int_equal(frame.time_ns, 0);
		assert_int_equal(reader.link_number, 1);
		assert_int_equal(weir_pcapng_next(&reader, &frame), 1);
		assert_int_equal(frame.captured_bytes, 4);
		assert_int_equal(frame.wire_bytes, 60);
		assert_int_equal(frame.time_ns, 9000);
		assert_int_equal(reader.link_number, 101);
		assert_int_equal(weir_pcapng_next(&reader, &frame), 0);
		close_foreign(&reader);
	}
}

/* What this room writes, it reads. */
CLAIM(what_is_written_is_read)
{
	struct weir_frame frame = frame_of(sizeof(bytes), sizeof(bytes));
	struct weir_pcapng_reader reader;
	struct weir_frame got;
	struct file file;

	begin(&file);
	weir_pcapng_begin(file.stream, "weir events");
	weir_pcapng_interface(file.stream, "eth0", 128);
	for (frame.course = WEIR_COURSE_UNKNOWN; frame.course <= WEIR_COURSE_OUT; frame.course++)
		weir_pcapng_packet(file.stream, 0, &frame, "dropped");
	begin_reading(&file);
	reader = (struct weir_pcapng_reader){.stream = fmemopen(file.data, file.size, "r")};
	assert_non_null(reader.stream);
	for (enum weir_course course = WEIR_COURSE_UNKNOWN; course <= WEIR_COURSE_OUT; course++) {
		assert_int_equal(weir_pcapng_next(&reader, &got), 1);
		assert_int_equal(got.course, course);
		assert_int_equal(got.time_ns, TIME_NS);
		assert_int_equal(got.captured_bytes, sizeof(bytes));
		assert_memory_equal(got.bytes, bytes, sizeof(bytes));
	}
	assert_int_equal(weir_pcapng_next(&reader, &got), 0);
	close_foreign(&reader);
	free(file.data);
}

#define INTERFACE_WORDS 5

/* A length of an option that leads out of its block, to what looks like flags there: the packet has no direction. */
CLAIM(an_option_that_lies_leads_to_no_flags)
{
	_cleanup_(close_foreign) struct weir_pcapng_reader reader = {};
	struct weir_frame frame;
	struct foreign file;

	begin_foreign(&file, false);
	put_interface(&file, 1, 0, NULL, 0);
	put_enhanced(&file, 1, 0);
	file.words[SECTION_WORDS + INTERFACE_WORDS + 8] = 1 | 16 << 16;
	for (int n = 0; n < 8; n++) {
		put(&file, 2 | 4 << 16);
		put(&file, 2);
	}
	open_foreign(&file, file.count * sizeof(uint32_t), &reader);
	assert_int_equal(weir_pcapng_next(&reader, &frame), 1);
	assert_int_equal(frame.course, WEIR_COURSE_UNKNOWN);
}

/* A file that ends anywhere, and words that lie: the packets before are read, then there is a reason, and never an
 * endless search.
 */
CLAIM(nothing_is_read_from_where_a_file_is_damaged)
{
	static const uint32_t lies[] = {0, 1, 8, 11, 12, 31, 35, 0x7ffffffc, 0xfffffffc, UINT32_MAX};
	const size_t first = SECTION_WORDS + INTERFACE_WORDS;
	/* The block's length, its interface, the bytes captured, and the length at its end. */
	const size_t places[] = {first + 1, first + 2, first + 5, first + 13};
	struct weir_pcapng_reader reader;
	struct weir_frame frame;
	struct foreign file;

	for (size_t place = 0; place < ARRAY_SIZE(places); place++)
		for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
			begin_foreign(&file, i & 1);
			put_interface(&file, 1, 0, NULL, 0);
			put_enhanced(&file, 1, 2);
			if (lies[i] == (place == 1 || place == 2 ? 0 : 56) || (place == 2 && lies[i] <= 4))
				continue; /* that is no lie */
			if (place == 2 && lies[i] < 24)
				continue; /* it is longer than the frame, but not than the block: the options are it */
			file.words[places[place]] = file.is_swapped ? __builtin_bswap32(lies[i]) : lies[i];
			open_foreign(&file, file.count * sizeof(uint32_t), &reader);
			assert_int_equal(weir_pcapng_next(&reader, &frame), -EBADMSG);
			assert_non_null(reader.fault);
			assert_int_equal(weir_pcapng_next(&reader, &frame), -EBADMSG);
			close_foreign(&reader);
		}
	begin_foreign(&file, true);
	put_interface(&file, 1, 0, NULL, 0);
	put_enhanced(&file, 1, 2);
	for (size_t size = 1; size < file.count * sizeof(uint32_t); size++) {
		const bool ends_between = size == SECTION_WORDS * sizeof(uint32_t) ||
					  size == (SECTION_WORDS + INTERFACE_WORDS) * sizeof(uint32_t);

		open_foreign(&file, size, &reader);
		assert_int_equal(weir_pcapng_next(&reader, &frame), ends_between ? 0 : -EBADMSG);
		assert_int_equal(reader.has_section, size >= SECTION_WORDS * sizeof(uint32_t));
		close_foreign(&reader);
	}
}

/* Any block may begin with the same byte, a line feed. */
CLAIM(nothing_is_read_before_a_section)
{
	_cleanup_(close_foreign) struct weir_pcapng_reader reader = {};
	struct weir_frame frame;
	struct foreign file = {};

	put_other(&file, 10, 2); /* secrets of TLS, which only belong into a section */
	put_section(&file);
	put_interface(&file, 1, 0, NULL, 0);
	put_enhanced(&file, 1, 2);
	open_foreign(&file, file.count * sizeof(uint32_t), &reader);
	assert_int_equal(weir_pcapng_next(&reader, &frame), -EBADMSG);
	assert_string_equal(reader.fault, "it does not begin with a section header");
	assert_false(reader.has_section);
}

RUN_CLAIMS(NULL, NULL)
