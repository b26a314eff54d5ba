/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of a pcapng file. libpcap can read such files but not write them; unlike pcap, the format allows a comment on
 * each packet. Files are written in the byte order of this machine, which they state, with times in nanoseconds and
 * link type Ethernet. Write errors stay in the stream (ferror), as with stdio.
 *
 * The reader gets at packet options, which libpcap does not expose. It accepts files from any program. Source: PCAP
 * Next Generation Capture File Format (draft-ietf-opsawg-pcapng).
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

/* Walks through a file in parallel with libpcap, packet by packet. */
struct weir_pcapng_reader {
	FILE *stream; /* seekable; owned by the caller */
	bool is_swapped;
};

/* The stream must be at its start. Returns false if it is not pcapng. */
bool weir_pcapng_open(FILE *stream, struct weir_pcapng_reader *ret_reader);

/* The direction of the next packet. UNKNOWN also at the end of the file, and from the first damaged block on. */
enum weir_course weir_pcapng_next_course(struct weir_pcapng_reader *reader);

#endif
