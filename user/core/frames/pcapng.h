/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of a pcapng file. libpcap reads such files but does not write them; unlike a frame of pcap, each packet can
 * have a comment. In the byte order of this machine, which the file says; times in nanoseconds; Ethernet. Write errors
 * stay in the stream (ferror), as with stdio.
 *
 * What libpcap keeps to itself, the options of packets, is read here, of files by anybody.
 * Source: PCAP Next Generation Capture File Format (draft-ietf-opsawg-pcapng).
 */
#ifndef WEIR_FRAMES_PCAPNG_H
#define WEIR_FRAMES_PCAPNG_H

#include <stdbool.h>
#include <stdio.h>

#include "frames/link_type.h"

/* Begin a file, or continue with interfaces that are numbered from 0 again. What is too long of a text is cut. */
void weir_pcapng_begin(FILE *stream, const char *application);

/* One more interface, of which packets come; the first is number 0. Its frames are cut at `snap_bytes`. */
void weir_pcapng_interface(FILE *stream, const char *name, uint32_t snap_bytes);

void weir_pcapng_packet(FILE *stream, uint32_t interface, const struct weir_frame *frame, const char *comment);

/* ---- reading ---- */

/* Goes through a file beside libpcap, from packet to packet. */
struct weir_pcapng_reader {
	FILE *stream; /* that can seek; the caller's */
	bool is_swapped;
};

/* From the stream's begin. False: it is no pcapng. */
bool weir_pcapng_open(FILE *stream, struct weir_pcapng_reader *ret_reader);

/* Which way the next packet went. UNKNOWN as well at the end of the file, and from where it is damaged on. */
enum weir_course weir_pcapng_next_course(struct weir_pcapng_reader *reader);

#endif
