/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A slow and obvious oracle of matching, and packets and rule sets by chance to ask it about. Packets are what the
 * parser would have made of them: field by field, with a field's _NONE where a packet has none.
 */
#ifndef WEIR_TEST_COMPILE_ORACLE_H
#define WEIR_TEST_COMPILE_ORACLE_H

#include "compile/build_steps.h"

/* ---- packets and the plain matcher ---- */

struct packet {
	enum weir_direction direction;
	uint8_t family; /* 4 or 6 */
	uint8_t fragment;
	uint8_t protocol;
	uint8_t source[16], destination[16];
	/* or the field's _NONE */
	uint32_t tcp_flags, ifindex;
#define PACKET_VALUE(constant, name, member, highest, none, who) uint32_t member;
	WEIR_RANGE_FIELDS(PACKET_VALUE)
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

/* Kinds of conditions: eight that are no ranges, and a field of ranges each. */
#define CONDITION_OF_RANGE(constant, name, member, highest, none, who) RANGE_##constant,
enum { RANGES_FOLLOW = 7, WEIR_RANGE_FIELDS(CONDITION_OF_RANGE) CONDITIONS };
#define CONDITIONS_ALL ((1u << CONDITIONS) - 1)

/* Up to `resources` resources that use, of the conditions given (a bit each), about one in three. */
struct weir_ruleset *chance_ruleset(uint32_t resources, uint32_t conditions);

struct packet chance_packet(void);

#endif
