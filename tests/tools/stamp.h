/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a packet was sent, in its payload: CLOCK_MONOTONIC in nanoseconds, and all of its bits inverted, so that the
 * checksums of UDP and TCP are what they are for a payload of zeros. Both in the byte order of the machine, which
 * sender and receiver share.
 */
#ifndef WEIR_TEST_STAMP_H
#define WEIR_TEST_STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STAMP_PAYLOAD_BYTES 18 /* makes the shortest Ethernet frame of IPv4 and UDP; at the end of the frame */

static inline void stamp_put(uint8_t *frame, size_t frame_bytes, uint64_t sent_ns)
{
	const uint64_t words[] = {sent_ns, ~sent_ns};

	memcpy(frame + frame_bytes - STAMP_PAYLOAD_BYTES, words, sizeof(words));
}

/* False: this frame says nothing of when it was sent. */
static inline bool stamp_get(const uint8_t *frame, size_t frame_bytes, uint64_t *ret_sent_ns)
{
	uint64_t words[2];

	if (frame_bytes < STAMP_PAYLOAD_BYTES)
		return false;
	memcpy(words, frame + frame_bytes - STAMP_PAYLOAD_BYTES, sizeof(words));
	if (words[0] != ~words[1])
		return false;
	*ret_sent_ns = words[0];
	return true;
}

#endif
