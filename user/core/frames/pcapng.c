// SPDX-License-Identifier: GPL-2.0-only
#include "frames/pcapng.h"

#include <string.h>

#define SECTION 0x0a0d0d0a
#define BYTE_ORDER_MAGIC 0x1a2b3c4d
#define INTERFACE 1
#define ENHANCED_PACKET 6

#define LINKTYPE_ETHERNET 1
#define OPTION_COMMENT 1
#define SECTION_APPLICATION 4 /* shb_userappl */
#define INTERFACE_NAME 2      /* if_name */
#define INTERFACE_TIMES 9     /* if_tsresol */
#define NANOSECONDS 9	      /* as a power of ten */
#define PACKET_FLAGS 2	      /* epb_flags */
#define FLAG_INBOUND 1
#define FLAG_OUTBOUND 2

/* Type and length, and the length once more at its end. */
#define BLOCK_BYTES 12
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
	put_option(stream, 0, "", 0);
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

void weir_pcapng_packet(FILE *stream, uint32_t interface, const struct weir_frame *frame, bool is_out,
			const char *comment)
{
	const uint32_t flags = is_out ? FLAG_OUTBOUND : FLAG_INBOUND, comment_bytes = text_bytes(comment);
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
