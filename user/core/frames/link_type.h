/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room frames: packets of captures. It knows nothing of files.
 *
 * What stands before the IP packet in a capture, and the Ethernet header that the program is shown in its place: the
 * program reads Ethernet only. Formats, by the tcpdump project's registry: Ethernet, the two "cooked" headers that a
 * capture on 'any' has (LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2), BSD's loopback (LINKTYPE_NULL and LINKTYPE_LOOP),
 * PPP (LINKTYPE_PPP and LINKTYPE_PPP_HDLC, which libpcap calls DLT_PPP_SERIAL), and no header at all.
 */
#ifndef WEIR_FRAMES_LINK_TYPE_H
#define WEIR_FRAMES_LINK_TYPE_H

#include <linux/if_ether.h>
#include <stdbool.h>
#include <stdint.h>

#include "weir_hook.h"

enum weir_link_type {
	WEIR_LINK_TYPE_ETHERNET,
	WEIR_LINK_TYPE_SLL,	   /* 16 bytes; the protocol is the last field */
	WEIR_LINK_TYPE_SLL2,	   /* 20 bytes; the protocol is the first field */
	WEIR_LINK_TYPE_IP,	   /* none: the packet's version says which IP it is */
	WEIR_LINK_TYPE_IPV4,	   /* none */
	WEIR_LINK_TYPE_IPV6,	   /* none */
	WEIR_LINK_TYPE_NULL,	   /* 4 bytes: the address family, in the byte order of the host that captured */
	WEIR_LINK_TYPE_LOOP,	   /* the same in network byte order */
	WEIR_LINK_TYPE_PPP,	   /* address and control, or not, and a protocol of one or two bytes */
	WEIR_LINK_TYPE_PPP_SERIAL, /* the same, always with address and control */
};

/* Which way a frame went, with the numbers of pcapng (bits 0 and 1 of epb_flags). */
enum weir_course { WEIR_COURSE_UNKNOWN, WEIR_COURSE_IN, WEIR_COURSE_OUT };

/* One frame of a capture, as it was captured. */
struct weir_frame {
	uint64_t time_ns;     /* since the capture's epoch */
	const uint8_t *bytes; /* those captured; valid until the next read */
	uint32_t captured_bytes;
	uint32_t wire_bytes; /* at least captured_bytes */
	enum weir_course course;
};

/* What the frame's link header says: both cooked headers have a packet type. */
enum weir_course weir_frame_course(enum weir_link_type link_type, const struct weir_frame *frame);

/* Where the packet is evaluated; `otherwise` where the capture does not say which way it went. */
static inline enum weir_direction weir_frame_direction(const struct weir_frame *frame, enum weir_direction otherwise)
{
	if (frame->course == WEIR_COURSE_UNKNOWN)
		return otherwise;
	return frame->course == WEIR_COURSE_OUT ? WEIR_DIRECTION_OUT : WEIR_DIRECTION_IN;
}

/* The same packet in a frame of Ethernet. If the frame was not Ethernet, both addresses are zeros. */
struct weir_ethernet {
	struct ethhdr header;	/* what the capture cut off is zeros */
	const uint8_t *payload; /* borrowed from the frame */
	uint32_t payload_bytes; /* captured ones */
	uint32_t wire_bytes;	/* of the header and the whole payload; at least ETH_HLEN + payload_bytes */
};

/* False, and *ret_ethernet untouched, when the frame had no whole link header on the wire. A frame of a link without
 * headers must have a byte, where that distinguishes IPv4 from IPv6.
 */
bool weir_frame_to_ethernet(enum weir_link_type link_type, const struct weir_frame *frame,
			    struct weir_ethernet *ret_ethernet);

#endif
