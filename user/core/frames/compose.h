/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A frame made of what somebody says of a packet: Ethernet, a VLAN tag perhaps, IPv4 or IPv6, the transport header, and
 * zeros. For the program to look at; it is never sent. Checksums are zero, which no rule reads.
 */
#ifndef WEIR_FRAMES_COMPOSE_H
#define WEIR_FRAMES_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_COMPOSED_BYTES_MAX 65535

struct weir_packet_words {
	uint8_t family; /* 4 or 6 */
	uint8_t protocol;
	uint8_t source[16], destination[16]; /* network order, IPv4 in the first four */
	uint16_t source_port, destination_port;
	uint8_t tcp_flags;
	uint8_t icmp_type;
	uint8_t dscp;
	bool has_vlan;
	uint16_t vlan;
	/* 0: the shortest on a wire (60 bytes, or all headers). Else at least all headers, at most _BYTES_MAX. */
	uint32_t frame_bytes;
};

/* The shortest frame of such a packet that can be: its headers. */
uint32_t weir_shortest_frame(const struct weir_packet_words *words);

/* Fill in `frame` (WEIR_COMPOSED_BYTES_MAX bytes); returns its length, or 0 when frame_bytes cannot be. */
uint32_t weir_compose_frame(const struct weir_packet_words *words, uint8_t *frame);

#endif
