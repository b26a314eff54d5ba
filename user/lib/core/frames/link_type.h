/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room frames: packets in captures. It knows nothing of files.
 *
 * Captures have different headers before the IP packet. This module replaces them by an Ethernet header, since the
 * program reads nothing else. Formats, from the tcpdump project's registry: Ethernet, the two "cooked" headers of
 * captures on 'any' (LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2), BSD's loopback (LINKTYPE_NULL and LINKTYPE_LOOP),
 * PPP (LINKTYPE_PPP and LINKTYPE_PPP_HDLC, which libpcap calls DLT_PPP_SERIAL), what netfilter logs (LINKTYPE_NFLOG),
 * and no header at all.
 */
#ifndef WEIR_FRAMES_LINK_TYPE_H
#define WEIR_FRAMES_LINK_TYPE_H

#include <linux/if_ether.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weir_hook.h"

enum weir_link_type {
	WEIR_LINK_TYPE_ETHERNET,
	WEIR_LINK_TYPE_SLL,	   /* 16 bytes; the protocol is the last field */
	WEIR_LINK_TYPE_SLL2,	   /* 20 bytes; the protocol is the first field */
	WEIR_LINK_TYPE_IP,	   /* none: the packet's version says which IP it is */
	WEIR_LINK_TYPE_IPV4,	   /* none */
	WEIR_LINK_TYPE_IPV6,	   /* none */
	WEIR_LINK_TYPE_NULL,	   /* 4 bytes: the address family, in the byte order of the capturing host */
	WEIR_LINK_TYPE_LOOP,	   /* the same in network byte order */
	WEIR_LINK_TYPE_PPP,	   /* optional address and control bytes, then a protocol of one or two bytes */
	WEIR_LINK_TYPE_PPP_SERIAL, /* the same, always with address and control */
	WEIR_LINK_TYPE_NFLOG,	   /* a family, then attributes of netlink; the last one is the packet */
};

/* The direction of a frame, with the numbers of pcapng (bits 0 and 1 of epb_flags). */
enum weir_course { WEIR_COURSE_UNKNOWN, WEIR_COURSE_IN, WEIR_COURSE_OUT };

/* One frame of a capture, as it was captured. */
struct weir_frame {
	uint64_t time_ns;     /* since the capture's epoch */
	const uint8_t *bytes; /* the captured bytes; valid until the next read */
	uint32_t captured_bytes;
	uint32_t wire_bytes; /* at least captured_bytes */
	enum weir_course course;
	enum weir_link_type link_type;
	bool is_swapped; /* numbers of its link header that are in the capturing host's byte order are not in ours */
};

/* The direction that the frame's link header gives: both cooked headers have a packet type. */
enum weir_course weir_frame_course(const struct weir_frame *frame);

/* The direction in which the packet is evaluated; `otherwise` if the capture does not record it. */
static inline enum weir_direction weir_frame_direction(const struct weir_frame *frame, enum weir_direction otherwise)
{
	if (frame->course == WEIR_COURSE_UNKNOWN)
		return otherwise;
	return frame->course == WEIR_COURSE_OUT ? WEIR_DIRECTION_OUT : WEIR_DIRECTION_IN;
}

/* The same packet as an Ethernet frame. If the frame was not Ethernet, both addresses are zeros. */
struct weir_ethernet {
	struct ethhdr header;	/* bytes that the capture cut off are zeros */
	const uint8_t *payload; /* borrowed from the frame */
	uint32_t payload_bytes; /* bytes that were captured */
	uint32_t wire_bytes;	/* of the header and the whole payload; at least ETH_HLEN + payload_bytes */
};

/* Returns false, and leaves *ret_ethernet untouched, if the frame on the wire had no complete link header. Where the
 * first byte of the packet distinguishes IPv4 from IPv6, a frame without link header must have that byte.
 */
bool weir_frame_to_ethernet(const struct weir_frame *frame, struct weir_ethernet *ret_ethernet);

/*
 * Where an Ethernet frame of `frame_bytes`, of which `bytes` were captured, states that its IP packet has length 0,
 * which the frame's own length contradicts; NULL: it does not. *ret_length is what would be right. In a capture made
 * by the sender itself, packets that its card will segment (TSO, LSO) look so: IPv4, and IPv6 with TCP or UDP. To a
 * receiver they are malformed. In a frame of more than 65,535 bytes a length of 0 is BIG TCP's, which the program
 * itself knows.
 */
uint8_t *weir_find_zero_length(uint8_t *frame, uint32_t bytes, uint32_t frame_bytes, uint16_t *ret_length);

/* For a packet that went out: state its length, as the card will. */
static inline bool weir_complete_length(uint8_t *frame, uint32_t bytes, uint32_t frame_bytes)
{
	uint16_t length;
	uint8_t *field = weir_find_zero_length(frame, bytes, frame_bytes, &length);

	if (!field)
		return false;
	field[0] = length >> 8;
	field[1] = length;
	return true;
}

/*
 * The ends of a packet, for people: who sent it, and to whom. They are read from the first bytes of a frame, even if
 * those are all that was captured. How the program parses a packet is up to bpf/packet/parse.h alone.
 */
struct weir_ends {
	uint8_t family; /* 4 or 6 */
	uint8_t source[16], destination[16];
	uint8_t protocol; /* for IPv6 the next header, which may be an extension header */
	bool has_ports;
	uint16_t source_port, destination_port;
};

/* Parse an Ethernet frame with at most two VLAN tags. Returns false if it is not IP, or if it ends before the addresses
 * do.
 */
bool weir_frame_ends(const uint8_t *frame, size_t bytes, struct weir_ends *ret_ends);

#endif
