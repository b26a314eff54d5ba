/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures on disk, by libpcap: pcap and pcapng in, microseconds or nanoseconds, Ethernet only; pcap
 * with nanoseconds out. Knows nothing of rules and never opens an interface.
 */
#ifndef WEIR_CAPTURE_H
#define WEIR_CAPTURE_H

#include <stdint.h>
#include <stdio.h>

#include "diag.h"

/* One frame of a capture. */
struct weir_frame {
	uint64_t time_ns;     /* since the capture's epoch */
	const uint8_t *bytes; /* those captured; valid until the next read */
	uint32_t captured_bytes;
	uint32_t wire_bytes; /* at least captured_bytes */
};

struct weir_capture;

/* Open for reading. -EINVAL when there is no such file, or it is no capture, or not of Ethernet. */
int weir_capture_open(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag);
void weir_capture_close(struct weir_capture *capture);

static inline void weir_capture_closep(struct weir_capture **capture)
{
	weir_capture_close(*capture);
}

/*
 * The next frame. Returns 1 with *ret_frame, 0 at the end, -EBADMSG when the file is damaged or cut off
 * from here on, with the reason in *diag; what was read before is good.
 */
int weir_capture_next(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag);

/* A new capture, written to a stream that stays the caller's. */
struct weir_capture_writer;
int weir_capture_writer_new(FILE *stream, struct weir_capture_writer **ret_writer, struct weir_diag *diag);
void weir_capture_writer_free(struct weir_capture_writer *writer);

static inline void weir_capture_writer_freep(struct weir_capture_writer **writer)
{
	weir_capture_writer_free(*writer);
}

/* Append a frame as it was captured. Write errors stay in the stream (ferror), as with stdio. */
void weir_capture_write(struct weir_capture_writer *writer, const struct weir_frame *frame);

/* What a writer's file consists of: a header, then for each frame a header and its captured bytes. */
#define WEIR_CAPTURE_FILE_HEADER_BYTES 24
#define WEIR_CAPTURE_FRAME_HEADER_BYTES 16

#endif
