/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Blocks of a pcapng file. libpcap reads such files but does not write them; unlike a frame of pcap, each packet can
 * have a comment. In the byte order of this machine, which the file says; times in nanoseconds; Ethernet. Write
 * errors stay in the stream (ferror), as with stdio.
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

/* It came in by that interface, or was going out. */
void weir_pcapng_packet(FILE *stream, uint32_t interface, const struct weir_frame *frame, bool is_out,
			const char *comment);

#endif
