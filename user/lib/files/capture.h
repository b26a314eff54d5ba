/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures: pcap by libpcap, pcapng by frames/pcapng.h. It reads files with times of any resolution, in the link types
 * that link_type.h knows, and live packets of an interface. It writes pcap with nanoseconds. Knows nothing of
 * rules, and sends nothing.
 */
#ifndef WEIR_FILES_CAPTURE_H
#define WEIR_FILES_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"
#include "frames/link_type.h"

struct weir_capture;

/* Open a file for reading. -EINVAL if there is no such file, if it is not a capture, or if its link type is not
 * supported.
 */
int weir_capture_open(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag);
/* The same, also for input that can be read only once: standard input ("-") and pipes. */
int weir_capture_open_once(const char *path, struct weir_capture **ret_capture, struct weir_diag *diag);
bool weir_capture_is_stream(const char *path);

/* Capture the headers of what an interface receives (WEIR_MATCHES_IN) and sends (_OUT) from now on; it never ends. By
 * then XDP and tc programs have dropped their packets, and the kernel has merged packets (GRO) or not yet split them.
 */
int weir_capture_listen(const char *interface, uint8_t directions, struct weir_capture **ret_capture,
			struct weir_diag *diag);

/* Frames that arrived while the ring of a live capture was full. */
uint64_t weir_capture_missed(const struct weir_capture *capture);

/* How much of the file has been read. *ret_of_bytes is 0 if it is not a file. */
void weir_capture_position(const struct weir_capture *capture, uint64_t *ret_bytes, uint64_t *ret_of_bytes);

void weir_capture_close(struct weir_capture *capture);

static inline void weir_capture_closep(struct weir_capture **capture)
{
	weir_capture_close(*capture);
}

/*
 * Read the next frame. Returns 1 with *ret_frame, or 0 at the end. -EBADMSG, with the reason in *diag: the file is
 * damaged or truncated from here on, but what was read before is good. -EINVAL: the next frame has a link type that is
 * not supported. -EAGAIN: nothing arrived on the interface for a moment.
 */
int weir_capture_next(struct weir_capture *capture, struct weir_frame *ret_frame, struct weir_diag *diag);

/* A new capture, written to a stream that the caller owns. */
struct weir_capture_writer;
int weir_capture_writer_new(FILE *stream, enum weir_link_type link_type, struct weir_capture_writer **ret_writer,
			    struct weir_diag *diag);
void weir_capture_writer_free(struct weir_capture_writer *writer);

static inline void weir_capture_writer_freep(struct weir_capture_writer **writer)
{
	weir_capture_writer_free(*writer);
}

/* Append a frame as it was captured; its time is at most WEIR_CAPTURE_SECONDS_MAX. Write errors stay in the stream
 * (ferror), as with stdio.
 */
void weir_capture_write(struct weir_capture_writer *writer, const struct weir_frame *frame);

/* The file that a writer makes: a header, then for each frame a header and its captured bytes. */
#define WEIR_CAPTURE_FILE_HEADER_BYTES 24
#define WEIR_CAPTURE_FRAME_HEADER_BYTES 16

/* The seconds of a frame's time are 32 bits, unsigned: until February 2106. */
#define WEIR_CAPTURE_SECONDS_MAX UINT32_MAX

#endif
