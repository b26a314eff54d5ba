/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures, by libpcap: pcap and pcapng in, microseconds or nanoseconds, of the link types that link_type.h knows, and
 * what an interface receives; pcap with nanoseconds out. Knows nothing of rules, and only listens.
 */
#ifndef WEIR_REPLAY_CAPTURE_H
#define WEIR_REPLAY_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "frames/link_type.h"

struct weir_capture;

/* Open for reading. -EINVAL when there is no such file, or it is no capture, or of a link type that is not read. */
int weir_capture_open(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag);
/* The same of what can be read but once, too: standard input ("-") and pipes. */
int weir_capture_open_once(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag);
bool weir_capture_is_stream(const char *path);

/* The headers of what an interface receives from now on, and never ends. XDP programs have dropped what they drop
 * before, and the kernel has merged what it merges (GRO).
 */
int weir_capture_listen(const char *interface, struct weir_capture **ret_capture, struct weir_diag *diag);

/* Frames that came while the ring of a live capture was full. */
uint64_t weir_capture_missed(const struct weir_capture *capture);

/* How much of the file has been read; of 0 bytes: it is no file. */
void weir_capture_position(const struct weir_capture *capture, uint64_t *ret_bytes, uint64_t *ret_of_bytes);

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
 * follow have another link type than those before. -EAGAIN when nothing came by an interface for a moment.
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
