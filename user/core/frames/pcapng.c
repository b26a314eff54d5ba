// SPDX-License-Identifier: GPL-2.0-only
#include "frames/pcapng.h"

#include <string.h>

#define SECTION 0x0a0d0d0a
#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define INTERFACE 1
#define PACKET 2 /* obsolete */
#define SIMPLE_PACKET 3
#define ENHANCED_PACKET 6

#define LINKTYPE_ETHERNET 1
#define END_OF_OPTIONS 0
#define OPTION_COMMENT 1
#define SECTION_APPLICATION 4 /* shb_userappl */
#define INTERFACE_NAME 2      /* if_name */
#define INTERFACE_TIMES 9     /* if_tsresol */
#define NANOSECONDS 9	      /* as a power of ten */
#define PACKET_FLAGS 2	      /* epb_flags */
#define FLAGS_COURSE 3

/* Type and length, and the length once more at the end of the block. */
#define BLOCK_BYTES 12
#define TRAILER_BYTES 4
#define OPTION_HEADER_BYTES 4
#define TEXT_BYTES_MAX 4096 /* of an option; its length has 16 bits. Chosen, not derived */

static uint32_t padded(uint32_t bytes)
{
	return (bytes + 3) & ~3u;
}

static uint32_t text_bytes(const char *text)
{
	return strnlen(text, TEXT_BYTES_MAX);
}

static uint32_t option_bytes(uint32_t bytes)
{
	return OPTION_HEADER_BYTES + padded(bytes);
}

static void put_bytes(FILE *stream, const void *bytes, uint32_t count)
{
	static const uint8_t zeros[3];

	fwrite(bytes, 1, count, stream);
	fwrite(zeros, 1, padded(count) - count, stream);
}

static void put_option(FILE *stream, uint16_t code, const void *bytes, uint16_t count)
{
	const uint16_t header[] = {code, count};

	fwrite(header, sizeof(header), 1, stream);
	put_bytes(stream, bytes, count);
}

static void put_end_of_options(FILE *stream)
{
	put_option(stream, END_OF_OPTIONS, "", 0);
}

void weir_pcapng_begin(FILE *stream, const char *application)
{
	const uint32_t bytes = BLOCK_BYTES + 16 + option_bytes(text_bytes(application)) + option_bytes(0);
	const uint32_t begin[] = {SECTION, bytes, BYTE_ORDER_MAGIC};
	const uint16_t version[] = {1, 0};
	const int64_t section_bytes = -1; /* it is not known yet */

	fwrite(begin, sizeof(begin), 1, stream);
	fwrite(version, sizeof(version), 1, stream);
	fwrite(&section_bytes, sizeof(section_bytes), 1, stream);
	put_option(stream, SECTION_APPLICATION, application, text_bytes(application));
	put_end_of_options(stream);
	fwrite(&bytes, sizeof(bytes), 1, stream);
}

void weir_pcapng_interface(FILE *stream, const char *name, uint32_t snap_bytes)
{
	const uint32_t bytes = BLOCK_BYTES + 8 + option_bytes(text_bytes(name)) + option_bytes(1) + option_bytes(0);
	const uint32_t begin[] = {INTERFACE, bytes};
	const uint16_t link_type[] = {LINKTYPE_ETHERNET, 0};
	const uint8_t times = NANOSECONDS;

	fwrite(begin, sizeof(begin), 1, stream);
	fwrite(link_type, sizeof(link_type), 1, stream);
	fwrite(&snap_bytes, sizeof(snap_bytes), 1, stream);
	put_option(stream, INTERFACE_NAME, name, text_bytes(name));
	put_option(stream, INTERFACE_TIMES, &times, sizeof(times));
	put_end_of_options(stream);
	fwrite(&bytes, sizeof(bytes), 1, stream);
}

void weir_pcapng_packet(FILE *stream, uint32_t interface, const struct weir_frame *frame, const char *comment)
{
	const uint32_t flags = frame->course, comment_bytes = text_bytes(comment);
	const uint32_t bytes = BLOCK_BYTES + 20 + padded(frame->captured_bytes) + option_bytes(comment_bytes) +
			       option_bytes(sizeof(flags)) + option_bytes(0);
	const uint32_t begin[] = {
		ENHANCED_PACKET,
		bytes,
		interface,
		frame->time_ns >> 32,
		(uint32_t)frame->time_ns,
		frame->captured_bytes,
		frame->wire_bytes,
	};

	fwrite(begin, sizeof(begin), 1, stream);
	put_bytes(stream, frame->bytes, frame->captured_bytes);
	put_option(stream, OPTION_COMMENT, comment, comment_bytes);
	put_option(stream, PACKET_FLAGS, &flags, sizeof(flags));
	put_end_of_options(stream);
	fwrite(&bytes, sizeof(bytes), 1, stream);
}

/* ---- reading ---- */

static bool get(const struct weir_pcapng_reader *reader, uint32_t *ret_words, size_t count)
{
	if (fread(ret_words, sizeof(*ret_words), count, reader->stream) != count)
		return false;
	for (size_t i = 0; reader->is_swapped && i < count; i++)
		ret_words[i] = __builtin_bswap32(ret_words[i]);
	return true;
}

/* Skipping beyond the end is no error: the next read finds nothing there. */
static bool skip(const struct weir_pcapng_reader *reader, uint32_t bytes)
{
	return !fseeko(reader->stream, bytes, SEEK_CUR);
}

static bool get_option(const struct weir_pcapng_reader *reader, uint16_t *ret_code, uint16_t *ret_bytes)
{
	uint16_t header[2];

	if (fread(header, sizeof(header), 1, reader->stream) != 1)
		return false;
	*ret_code = reader->is_swapped ? __builtin_bswap16(header[0]) : header[0];
	*ret_bytes = reader->is_swapped ? __builtin_bswap16(header[1]) : header[1];
	return true;
}

/* Read the rest of a block: `left` bytes of options. */
static bool read_options(const struct weir_pcapng_reader *reader, uint32_t left, enum weir_course *ret_course)
{
	while (left >= OPTION_HEADER_BYTES) {
		uint16_t code, bytes;
		uint32_t flags;

		if (!get_option(reader, &code, &bytes))
			return false;
		left -= OPTION_HEADER_BYTES;
		if (code == END_OF_OPTIONS || padded(bytes) > left)
			break;
		left -= padded(bytes);
		if (code == PACKET_FLAGS && bytes == sizeof(flags)) {
			if (!get(reader, &flags, 1))
				return false;
			*ret_course = flags & FLAGS_COURSE;
			break;
		}
		if (!skip(reader, padded(bytes)))
			return false;
	}
	return skip(reader, left);
}

/* Read an enhanced packet block that has `left` bytes before its trailer. */
static bool read_packet(const struct weir_pcapng_reader *reader, uint32_t left, enum weir_course *ret_course)
{
	uint32_t header[5]; /* interface, time, captured length, wire length */

	if (left < sizeof(header) || !get(reader, header, 5))
		return false;
	left -= sizeof(header);
	if (header[3] > left || padded(header[3]) > left || !skip(reader, padded(header[3])))
		return false;
	return read_options(reader, left - padded(header[3]), ret_course);
}

/* Advance to the end of the next packet's block. */
static bool next_packet(const struct weir_pcapng_reader *reader, enum weir_course *ret_course)
{
	uint32_t begin[2]; /* type, length */

	for (;;) {
		if (!get(reader, begin, 2) || begin[1] < BLOCK_BYTES || begin[1] % 4)
			return false;
		if (begin[0] == ENHANCED_PACKET)
			return read_packet(reader, begin[1] - BLOCK_BYTES, ret_course) && skip(reader, TRAILER_BYTES);
		if (!skip(reader, begin[1] - sizeof(begin)))
			return false;
		if (begin[0] == SIMPLE_PACKET || begin[0] == PACKET)
			return true;
	}
}

bool weir_pcapng_open(FILE *stream, struct weir_pcapng_reader *ret_reader)
{
	struct weir_pcapng_reader reader = {.stream = stream};
	uint32_t begin[3]; /* type, which is the same in both byte orders; length; byte order */

	if (!get(&reader, begin, 3) || begin[0] != SECTION)
		return false;
	reader.is_swapped = begin[2] == __builtin_bswap32(BYTE_ORDER_MAGIC);
	if (!reader.is_swapped && begin[2] != BYTE_ORDER_MAGIC)
		return false;
	rewind(stream);
	*ret_reader = reader;
	return true;
}

enum weir_course weir_pcapng_next_course(struct weir_pcapng_reader *reader)
{
	enum weir_course course = WEIR_COURSE_UNKNOWN;

	if (!reader->stream)
		return WEIR_COURSE_UNKNOWN;
	if (!next_packet(reader, &course))
		reader->stream = NULL;
	return course > WEIR_COURSE_OUT ? WEIR_COURSE_UNKNOWN : course;
}
