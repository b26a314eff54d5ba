// SPDX-License-Identifier: GPL-2.0-only
#include "frames/pcapng.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "weir_abi.h"

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

#define SECTION_BYTES 16	    /* byte order, version, length of the section */
#define LINK_BYTES 8		    /* link type, reserved, snapshot length */
#define PACKET_BYTES 20		    /* of both blocks with times: up to the frame */
#define BLOCK_BYTES_MAX (16u << 20) /* of a block that is read, not skipped; libpcap's own */
#define MICROSECONDS 6
#define INTERFACE_OFFSET 14 /* if_tsoffset */
#define RESOLUTION_IS_BINARY 0x80

static int fail(struct weir_pcapng_reader *reader, const char *fault)
{
	reader->fault = fault;
	return -EBADMSG;
}

static uint32_t u32_at(const struct weir_pcapng_reader *reader, uint32_t at)
{
	uint32_t value;

	memcpy(&value, reader->block + at, sizeof(value));
	return reader->is_swapped ? __builtin_bswap32(value) : value;
}

static uint16_t u16_at(const struct weir_pcapng_reader *reader, uint32_t at)
{
	uint16_t value;

	memcpy(&value, reader->block + at, sizeof(value));
	return reader->is_swapped ? __builtin_bswap16(value) : value;
}

/* Find an option of this code and length in the block, from `at` to `end`; *ret_at is 0 if there is none. Returns false
 * if an option leads out of the block.
 */
static bool find_option(const struct weir_pcapng_reader *reader, uint32_t at, uint32_t end, uint16_t code,
			uint16_t bytes, uint32_t *ret_at)
{
	*ret_at = 0;
	while (end - at >= OPTION_HEADER_BYTES && u16_at(reader, at) != END_OF_OPTIONS) {
		const uint16_t found = u16_at(reader, at), found_bytes = u16_at(reader, at + 2);

		at += OPTION_HEADER_BYTES;
		if (padded(found_bytes) > end - at)
			return false;
		if (found == code && found_bytes == bytes) {
			*ret_at = at;
			return true;
		}
		at += padded(found_bytes);
	}
	return true;
}

/* The body of a block, with the length at its end. */
static int read_body(struct weir_pcapng_reader *reader, uint32_t have, uint32_t bytes)
{
	if (bytes > reader->block_room) {
		uint8_t *block = bytes > BLOCK_BYTES_MAX ? NULL : realloc(reader->block, bytes);

		if (!block)
			return fail(reader, "a block is too long");
		reader->block = block;
		reader->block_room = bytes;
	}
	return fread(reader->block + have, 1, bytes - have, reader->stream) == bytes - have
		       ? 1
		       : fail(reader, "the file ends within a block");
}

/* A section has its own byte order, which its first word says, and numbers interfaces from 0. */
static int begin_section(struct weir_pcapng_reader *reader)
{
	int got = read_body(reader, 0, sizeof(uint32_t));

	if (got < 0)
		return got;
	reader->is_swapped = false;
	reader->is_swapped = u32_at(reader, 0) != BYTE_ORDER_MAGIC;
	if (u32_at(reader, 0) != BYTE_ORDER_MAGIC)
		return fail(reader, "a section's byte order is unknown");
	reader->link_count = 0;
	free(reader->links);
	reader->links = NULL;
	return 1;
}

static int skip_body(struct weir_pcapng_reader *reader, uint32_t bytes)
{
	uint8_t skipped[4096];

	for (size_t part; bytes; bytes -= part) {
		part = bytes < sizeof(skipped) ? bytes : sizeof(skipped);
		if (fread(skipped, 1, part, reader->stream) != part)
			return fail(reader, "the file ends within a block");
	}
	return 1;
}

/* Read a block; reader->block has its body if it is of a type that we know. Returns 1, 0 at the end, or -EBADMSG. */
static int read_block(struct weir_pcapng_reader *reader, uint32_t *ret_type, uint32_t *ret_bytes)
{
	uint32_t begin[2], bytes; /* type, length */
	const size_t got = fread(begin, 1, sizeof(begin), reader->stream);
	bool is_section;
	int err;

	if (!got && !ferror(reader->stream))
		return 0;
	if (got != sizeof(begin))
		return fail(reader, "the file ends within a block");
	is_section = begin[0] == SECTION; /* the same in both byte orders */
	if (!is_section && !reader->has_section)
		return fail(reader, "it does not begin with a section header");
	if (is_section) {
		err = begin_section(reader);
		if (err < 0)
			return err;
	}
	*ret_type = reader->is_swapped ? __builtin_bswap32(begin[0]) : begin[0];
	bytes = reader->is_swapped ? __builtin_bswap32(begin[1]) : begin[1];
	if (bytes < BLOCK_BYTES + (is_section ? SECTION_BYTES : 0) || bytes % 4)
		return fail(reader, "a block's length is wrong");
	bytes -= sizeof(begin);
	if (*ret_type != SECTION && *ret_type != INTERFACE && *ret_type != PACKET && *ret_type != SIMPLE_PACKET &&
	    *ret_type != ENHANCED_PACKET)
		return skip_body(reader, bytes);
	err = read_body(reader, is_section ? sizeof(uint32_t) : 0, bytes);
	if (err < 0)
		return err;
	*ret_bytes = bytes - TRAILER_BYTES;
	if (u32_at(reader, *ret_bytes) != bytes + sizeof(begin))
		return fail(reader, "a block's two lengths differ");
	if (is_section && u16_at(reader, 4) != 1)
		return fail(reader, "a section is of another version than 1");
	reader->has_section = true;
	return 1;
}

/* if_tsresol: a negative power of ten or, with the highest bit, of two. 0: finer than 64 bits can count. */
static uint64_t ticks_per_s(uint8_t resolution)
{
	const uint8_t exponent = resolution & ~RESOLUTION_IS_BINARY;
	uint64_t ticks = 1;

	if (resolution & RESOLUTION_IS_BINARY)
		return exponent < 64 ? 1ull << exponent : 0;
	for (uint8_t i = 0; i < exponent; i++)
		if (__builtin_mul_overflow(ticks, 10, &ticks))
			return 0;
	return ticks;
}

static int add_link(struct weir_pcapng_reader *reader, uint32_t bytes)
{
	struct weir_pcapng_link *link;
	uint32_t resolution_at, offset_at;
	uint64_t offset = 0;

	if (bytes < LINK_BYTES ||
	    !find_option(reader, LINK_BYTES, bytes, INTERFACE_TIMES, sizeof(uint8_t), &resolution_at) ||
	    !find_option(reader, LINK_BYTES, bytes, INTERFACE_OFFSET, sizeof(offset), &offset_at))
		return fail(reader, "an interface's options lead out of their block");
	link = weir_array_add((void **)&reader->links, reader->link_count, sizeof(*link));
	if (!link)
		return fail(reader, "there is no memory for its interfaces");
	reader->link_count++;
	if (offset_at)
		memcpy(&offset, reader->block + offset_at, sizeof(offset));
	*link = (struct weir_pcapng_link){
		.number = u16_at(reader, 0),
		.snap_bytes = u32_at(reader, 4),
		.ticks_per_s = ticks_per_s(resolution_at ? reader->block[resolution_at] : MICROSECONDS),
		.offset_s = reader->is_swapped ? __builtin_bswap64(offset) : offset,
	};
	return link->ticks_per_s ? 1 : fail(reader, "an interface's resolution of time is too fine");
}

/* Convert the time at `at`, of two words. Returns false if it is before 1970 or after 2554. */
static bool read_time(const struct weir_pcapng_reader *reader, uint32_t at, const struct weir_pcapng_link *link,
		      uint64_t *ret_ns)
{
	const uint64_t ticks = (uint64_t)u32_at(reader, at) << 32 | u32_at(reader, at + 4);
	const __int128 ns = (unsigned __int128)ticks * WEIR_NSEC_PER_SEC / link->ticks_per_s +
			    (__int128)link->offset_s * WEIR_NSEC_PER_SEC;

	*ret_ns = ns;
	return ns >= 0 && ns <= UINT64_MAX;
}

/* The frame at `at`, of a block with `bytes`. Options follow in an enhanced packet block. */
static int take_packet(struct weir_pcapng_reader *reader, uint32_t type, uint32_t bytes, struct weir_frame *frame)
{
	const uint32_t fixed = type == SIMPLE_PACKET ? sizeof(uint32_t) : PACKET_BYTES;
	uint32_t link_at = 0, flags_at;
	const struct weir_pcapng_link *link;

	if (bytes < fixed)
		return fail(reader, "a packet's block is too short");
	if (type != SIMPLE_PACKET)
		link_at = type == PACKET ? u16_at(reader, 0) : u32_at(reader, 0);
	if (link_at >= reader->link_count)
		return fail(reader, "a packet is of an interface that the file does not describe");
	link = &reader->links[link_at];
	*frame = (struct weir_frame){.bytes = reader->block + fixed};
	if (type == SIMPLE_PACKET) {
		frame->wire_bytes = u32_at(reader, 0);
		frame->captured_bytes = frame->wire_bytes;
		if (link->snap_bytes && frame->captured_bytes > link->snap_bytes)
			frame->captured_bytes = link->snap_bytes;
	} else {
		if (!read_time(reader, 4, link, &frame->time_ns))
			return fail(reader, "the time of the next one cannot be read");
		frame->captured_bytes = u32_at(reader, 12);
		frame->wire_bytes = u32_at(reader, 16);
	}
	if (frame->captured_bytes > bytes - fixed)
		return fail(reader, "a packet is longer than its block");
	if (frame->wire_bytes < frame->captured_bytes)
		frame->wire_bytes = frame->captured_bytes;
	/* What leads out of the block is no flags; the packet is good all the same. */
	if (type == ENHANCED_PACKET && padded(frame->captured_bytes) <= bytes - fixed &&
	    find_option(reader, fixed + padded(frame->captured_bytes), bytes, PACKET_FLAGS, sizeof(uint32_t),
			&flags_at) &&
	    flags_at)
		frame->course = u32_at(reader, flags_at) & FLAGS_COURSE;
	if (frame->course > WEIR_COURSE_OUT)
		frame->course = WEIR_COURSE_UNKNOWN;
	reader->link_number = link->number;
	return 1;
}

bool weir_pcapng_begins_with(int byte)
{
	return byte == (SECTION & 0xff);
}

int weir_pcapng_next(struct weir_pcapng_reader *reader, struct weir_frame *ret_frame)
{
	uint32_t type = 0, bytes = 0;
	int got;

	if (reader->fault)
		return -EBADMSG;
	for (;;) {
		got = read_block(reader, &type, &bytes);
		if (got > 0 && type == INTERFACE)
			got = add_link(reader, bytes);
		else if (got > 0 && (type == PACKET || type == SIMPLE_PACKET || type == ENHANCED_PACKET))
			return take_packet(reader, type, bytes, ret_frame);
		if (got <= 0)
			return got;
	}
}

void weir_pcapng_free(struct weir_pcapng_reader *reader)
{
	free(reader->links);
	free(reader->block);
}
