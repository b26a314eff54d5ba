/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of a pcapng file. libpcap can read such files but not write them; unlike pcap, the format allows a comment on
 * each packet. Files are written in the byte order of this machine, which they state, with times in nanoseconds and
 * link type Ethernet. Write errors stay in the stream (ferror), as with stdio.
 *
 * The reader is our own: libpcap refuses files whose interfaces differ in link type or snapshot length, and does not
 * expose the options of packets, which have the direction. It accepts files from any program. Source: PCAP Next
 * Generation Capture File Format (draft-ietf-opsawg-pcapng).
 */
#ifndef WEIR_FRAMES_PCAPNG_H
#define WEIR_FRAMES_PCAPNG_H

#include <stdbool.h>
#include <stdio.h>

#include "frames/link_type.h"

/* Begin a file, or a new section in it, in which interfaces are numbered from 0 again. A text that is too long is cut.
 */
void weir_pcapng_begin(FILE *stream, const char *application);

/* Add an interface that packets will refer to; the first is number 0. Its frames are cut at `snap_bytes`. */
void weir_pcapng_interface(FILE *stream, const char *name, uint32_t snap_bytes);

void weir_pcapng_packet(FILE *stream, uint32_t interface, const struct weir_frame *frame, const char *comment);

/* ---- reading ---- */

/* What a packet takes from its interface. */
struct weir_pcapng_link {
	uint32_t number; /* LINKTYPE_* */
	uint32_t snap_bytes;
	uint64_t ticks_per_s;
	int64_t offset_s; /* of all its times */
};

struct weir_pcapng_reader {
	FILE *stream;			/* owned by the caller; need not be seekable */
	bool is_swapped, has_section;	/* it is a pcapng file: it begins with a section */
	struct weir_pcapng_link *links; /* of this section, by number */
	size_t link_count;
	uint8_t *block; /* the body of the block that was read last */
	uint32_t block_room;
	uint32_t link_number; /* LINKTYPE_* of the packet that was read last */
	const char *fault;    /* why the file is damaged */
};

/* Is this the first byte of a pcapng file? No other format that libpcap reads begins with it. */
bool weir_pcapng_begins_with(int byte);

/* Read the next packet; its bytes are valid until the next call, and its link type is left to the caller
 * (link_number). Returns 1, 0 at the end, or -EBADMSG with reader->fault: the file is damaged or truncated from here
 * on or, without reader->has_section, no pcapng file.
 */
int weir_pcapng_next(struct weir_pcapng_reader *reader, struct weir_frame *ret_frame);
void weir_pcapng_free(struct weir_pcapng_reader *reader);

#endif
