/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ends of a packet, for people: who sent it, and to whom. From a frame's first bytes, which may be all there is;
 * what the program makes of a packet is for bpf/packet/parse.h alone.
 */
#ifndef WEIR_FRAMES_ENDS_H
#define WEIR_FRAMES_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir_ends {
	uint8_t family; /* 4 or 6 */
	uint8_t source[16], destination[16];
	uint8_t protocol; /* of IPv6 the next header, which may be an extension */
	bool has_ports;
	uint16_t source_port, destination_port;
};

/* From an Ethernet frame with two VLAN tags at most. False: it is not IP, or cut short before its addresses. */
bool weir_frame_ends(const uint8_t *frame, size_t bytes, struct weir_ends *ret_ends);

#endif
