/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A slow and obvious oracle of matching, and packets and rule sets by chance to ask it about. Packets are what the
 * parser would have made of them: field by field, with a field's _NONE where a packet has none.
 */
#ifndef WEIR_TEST_COMPILE_ORACLE_H
#define WEIR_TEST_COMPILE_ORACLE_H

#include "compile_parts.h"

/* ---- packets and the plain matcher ---- */

struct packet {
	uint8_t family; /* 4 or 6 */
	uint8_t fragment;
	uint8_t protocol;
	uint8_t source[16], destination[16];
	/* or the field's _NONE */
	uint32_t source_port, destination_port, tcp_flags, icmp_type, vlan;
	uint32_t length, ifindex;
};

/* What a packet of this kind cannot have, it has not. */
void drop_impossible(struct packet *packet);

/* The plain matcher. */
bool matches(const struct weir_match *match, const struct packet *packet);

/* ---- the image's answer, as the program would find it ---- */

/* The vector of the longest prefix that the address is in. */
uint32_t longest_prefix(const struct weir_image *image, const uint32_t roots[2], const struct packet *packet,
			const uint8_t *address);
extern uint32_t prefix_steps; /* of the latest search */

/* The bits of all resources that the packet belongs to. */
struct weir_vector look_up(const struct weir_image *image, const struct packet *packet);

/* ---- chance ---- */

/* A number below `below`; the same ones in every run. */
uint32_t chance(uint32_t below);

#define CONDITIONS 12 /* kinds of them */

/* Up to `resources` resources that use, of the conditions given (a bit each), about one in three. */
struct weir_ruleset *chance_ruleset(uint32_t resources, uint32_t conditions);

struct packet chance_packet(void);

#endif
