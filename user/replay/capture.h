/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures on disk, by libpcap: pcap and pcapng in, microseconds or nanoseconds, of the link types that link_type.h
 * knows; pcap with nanoseconds out. Knows nothing of rules and never opens an interface.
 */
#ifndef WEIR_REPLAY_CAPTURE_H
#define WEIR_REPLAY_CAPTURE_H

#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "frames/link_type.h"

struct weir_capture;

/* Open for reading. -EINVAL when there is no such file, or it is no capture, or of a link type that is not read. */
int weir_capture_open(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag);
void weir_capture_close(struct weir_capture *capture);

static inline void weir_capture_closep(struct weir_capture **capture)
{
	weir_capture_close(*capture);
}

/* For all its frames. */
enum weir_link_type weir_capture_link_type(const struct weir_capture *capture);

/*
 * The next frame. Returns 1 with *ret_frame, 0 at the end, -EBADMSG when the file is damaged or cut off
 * from here on, with the reason in *diag; what was read before is good. -EINVAL when the frames that
 * follow have another link type than those before.
 */
int weir_capture_next(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag);

/* A new capture, written to a stream that stays the caller's. */
struct weir_capture_writer;
int weir_capture_writer_new(FILE *stream, enum weir_link_type link_type, struct weir_capture_writer **ret_writer,
			    struct weir_diag *diag);
void weir_capture_writer_free(struct weir_capture_writer *writer);

static inline void weir_capture_writer_freep(struct weir_capture_writer **writer)
{
	weir_capture_writer_free(*writer);
}

/* Append a frame as it was captured, of a time up to WEIR_CAPTURE_SECONDS_MAX. Write errors stay in the stream
 * (ferror), as with stdio.
 */
void weir_capture_write(struct weir_capture_writer *writer, const struct weir_frame *frame);

/* What a writer's file consists of: a header, then for each frame a header and its captured bytes. */
#define WEIR_CAPTURE_FILE_HEADER_BYTES 24
#define WEIR_CAPTURE_FRAME_HEADER_BYTES 16

/* Seconds of a frame's time are 32 bits without a sign: until February 2106. */
#define WEIR_CAPTURE_SECONDS_MAX UINT32_MAX

#endif
