/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Build a frame from a description of a packet: Ethernet, optionally a VLAN tag, IPv4 or IPv6, the transport header,
 * and zeros. It is only shown to the program and never sent. Checksums are zero, as no rule reads them.
 */
#ifndef WEIR_FRAMES_COMPOSE_H
#define WEIR_FRAMES_COMPOSE_H

#include <stdbool.h>
#include <stddef.h>
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
	uint8_t ttl; /* or hop limit */
	bool has_vlan;
	uint16_t vlan;
	/* ^0: the shortest frame (60 bytes on a wire, or all headers). Otherwise at least all headers, at most
	 * _BYTES_MAX.
	 */
	uint32_t frame_bytes;
	uint32_t ip_bytes; /* ipLength: what is beyond it in the frame is padding. 0: there is no padding */
};

/* The length of the shortest possible frame of such a packet: its headers, or ip_bytes if that is more. */
uint32_t weir_shortest_frame(const struct weir_packet_words *words);

/* Fill in `frame` (WEIR_COMPOSED_BYTES_MAX bytes). Returns its length, or 0 if frame_bytes is impossible. */
uint32_t weir_compose_frame(const struct weir_packet_words *words, uint8_t *frame);

/* ---- an SSH session, from the SSH_CONNECTION variable that sshd passes to the shell (ssh(1)) ---- */

/*
 * Parse "203.0.113.5 50022 198.51.100.1 22": the client and its port, the server and its port. Fills in a packet from
 * the client in an established session: one encrypted keystroke. Returns false if the text does not have this form.
 */
bool weir_ssh_session_parse(const char *text, struct weir_packet_words *ret_words);

/* The value of a variable in an environment block such as /proc/PID/environ; NULL if it is not set. */
const char *weir_environment_find(const char *environment, size_t bytes, const char *name);

#endif
