/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ends of a packet, for people: who sent it, and to whom. They are read from the first bytes of a frame, even if
 * those are all that was captured. How the program parses a packet is up to bpf/packet/parse.h alone.
 */
#ifndef WEIR_FRAMES_ENDS_H
#define WEIR_FRAMES_ENDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
