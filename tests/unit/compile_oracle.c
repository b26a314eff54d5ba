// SPDX-License-Identifier: GPL-2.0-only
#include "compile_oracle.h"

#include <string.h>

#include "../lib/claims.h"
#include "compile_by_hand.h"

/* ---- packets and the plain matcher ---- */

void drop_impossible(struct packet *packet)
{
	bool is_later = packet->fragment == WEIR_FRAGMENT_LATER;

	if (is_later || (packet->protocol != 6 && packet->protocol != 17 && packet->protocol != 132))
		packet->source_port = packet->destination_port = WEIR_PORT_NONE;
	if (is_later || packet->protocol != 6)
		packet->tcp_flags = WEIR_BYTE_NONE;
	if (is_later || (packet->protocol != 1 && packet->protocol != 58))
		packet->icmp_type = WEIR_BYTE_NONE;
}

static bool is_in_ranges(const struct weir_range *ranges, size_t count, uint32_t value)
{
	for (size_t i = 0; i < count; i++) {
		if (value >= ranges[i].low && value <= ranges[i].high)
			return true;
	}
	return !count;
}

static bool is_in_prefix(uint8_t family, const uint8_t *prefix, unsigned int bits, const struct packet *packet,
			 const uint8_t *address)
{
	if (packet->family != family)
		return false;
	for (unsigned int i = 0; i < bits; i++) {
		if ((prefix[i / 8] ^ address[i / 8]) & 0x80 >> i % 8)
			return false;
	}
	return true;
}

static bool is_in_prefixes(const struct weir_prefix *prefixes, size_t count, const struct packet *packet,
			   const uint8_t *address)
{
	for (size_t i = 0; i < count; i++) {
		if (is_in_prefix(prefixes[i].family, prefixes[i].address, prefixes[i].bits, packet, address))
			return true;
	}
	return !count;
}

static bool has_flags(const struct weir_match *match, uint32_t flags)
{
	for (size_t i = 0; i < match->tcp_flags_count; i++) {
		if (flags != WEIR_BYTE_NONE && (flags & match->tcp_flags[i].set) == match->tcp_flags[i].set &&
		    (flags & match->tcp_flags[i].clear) == 0)
			return true;
	}
	return !match->tcp_flags_count;
}

/* Of the names that rule sets by chance have, the one that comes only when they are compiled. */
#define GONE "gone0"
#define GONE_IFINDEX 3

static bool is_on_interface(const struct weir_match *match, uint32_t ifindex)
{
	for (size_t i = 0; i < match->interface_count; i++) {
		if (ifindex && test_ifindex(match->interface[i], NULL) == ifindex)
			return true;
		if (ifindex == GONE_IFINDEX && !strcmp(match->interface[i], GONE))
			return true;
	}
	return !match->interface_count;
}

/* What is forwarded has met resources of both directions where it came in. */
static bool goes_that_way(const struct weir_match *match, enum weir_direction direction)
{
	const uint8_t directions = match->directions ? match->directions : WEIR_MATCHES_IN;

	if (direction == WEIR_DIRECTION_FORWARDED)
		return directions == WEIR_MATCHES_OUT;
	return directions & (direction == WEIR_DIRECTION_OUT ? WEIR_MATCHES_OUT : WEIR_MATCHES_IN);
}

bool matches(const struct weir_match *match, const struct packet *packet)
{
	if (!goes_that_way(match, packet->direction))
		return false;
	if (match->families && !(match->families >> (packet->family == 6) & 1))
		return false;
	if (match->fragments && !(match->fragments >> packet->fragment & 1))
		return false;
	if (match->has_protocol && !(match->protocol[packet->protocol / 8] >> packet->protocol % 8 & 1))
		return false;
#define REFUSE_BEYOND_RANGES(constant, name, member, highest, none, who)                                               \
	if (!is_in_ranges(match->member, match->member##_count, packet->member))                                       \
		return false;
	WEIR_RANGE_FIELDS(REFUSE_BEYOND_RANGES)
	return is_in_prefixes(match->source, match->source_count, packet, packet->source) &&
	       is_in_prefixes(match->destination, match->destination_count, packet, packet->destination) &&
	       has_flags(match, packet->tcp_flags) && is_on_interface(match, packet->ifindex);
}

/* ---- the image's answer, as the program would find it ---- */

uint32_t prefix_steps;

uint32_t longest_prefix(const struct weir_image *image, const uint32_t roots[2], const struct packet *packet,
			const uint8_t *address)
{
	uint32_t entry = roots[packet->family == 6], steps = 0;
	uint64_t words[2] = {};

	for (int i = 0; i < (packet->family == 6 ? 16 : 4); i++)
		words[i / 8] |= (uint64_t)address[i] << (56 - i % 8 * 8);
	while (entry & WEIR_PREFIX_IS_NODE) {
		assert_true((entry & ~WEIR_PREFIX_IS_NODE) < image->prefix_node_count);
		assert_true(++steps <= WEIR_PREFIX_STEPS_MAX);
		entry = weir_prefix_step(&image->prefix_nodes[entry & ~WEIR_PREFIX_IS_NODE], words[0], words[1]);
	}
	prefix_steps = steps;
	return entry;
}

static uint32_t interface_vector(const struct weir_image *image, uint32_t ifindex)
{
	uint32_t vector = image->config.interface_default;

	for (uint32_t i = 0; i < image->interface_count; i++) {
		if (image->interfaces[i].ifindex == ifindex)
			return image->interfaces[i].vector;
	}
	if (ifindex == GONE_IFINDEX)
		weir_interface_cases_find(image->cases, image->case_count, GONE, &vector);
	return vector;
}

static void meet(const struct weir_image *image, struct weir_vector *set, uint32_t field, uint32_t vector)
{
	assert_true(vector < image->vector_count);
	if (!(image->config.match_fields & field))
		return;
	set->summary &= image->vectors[vector].summary;
	for (uint32_t i = 0; i < image->config.vector_words; i++)
		set->word[i] &= image->vectors[vector].word[i];
}

struct weir_vector look_up(const struct weir_image *image, const struct packet *packet)
{
	const struct weir_classes *classes = image->classes;
	struct weir_vector set = image->vectors[0];

	meet(image, &set, WEIR_MATCH_KIND,
	     classes->kind[packet->direction][packet->family == 6][packet->fragment][packet->protocol]);
	meet(image, &set, WEIR_MATCH_SOURCE, longest_prefix(image, image->config.source_root, packet, packet->source));
	meet(image, &set, WEIR_MATCH_DESTINATION,
	     longest_prefix(image, image->config.destination_root, packet, packet->destination));
	meet(image, &set, WEIR_MATCH_TCP_FLAGS, classes->tcp_flags[packet->tcp_flags]);
#define MEET_RANGE(constant, name, member, highest, none, who)                                                         \
	meet(image, &set, WEIR_MATCH_##constant, classes->member[packet->member]);
	WEIR_RANGE_FIELDS(MEET_RANGE)
	meet(image, &set, WEIR_MATCH_INTERFACE, interface_vector(image, packet->ifindex));
	return set;
}

/* ---- chance ---- */

static uint64_t chance_state = 1;

uint32_t chance(uint32_t below)
{
	chance_state = chance_state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(chance_state >> 33) % below;
}

/* Few different bytes, so that prefixes nest and packets hit them. */
static void chance_address(uint8_t family, uint8_t *address)
{
	static const uint8_t bytes[] = {0, 1, 0x80, 0xff};

	memset(address, 0, 16);
	for (size_t i = 0; i < (family == 6 ? 16 : 4); i++)
		address[i] = i < 3 || i == 15 ? bytes[chance(4)] : 0;
}

static void chance_prefixes(struct weir_prefix **prefixes, size_t *count)
{
	uint32_t n = 1 + chance(3);
	uint8_t address[16];
	uint8_t family;

	while (n--) {
		family = chance(2) ? 4 : 6;
		chance_address(family, address);
		add_prefix(prefixes, count, family, address, chance(4) ? chance(25) : chance(family == 6 ? 129 : 33));
	}
}

static void chance_ranges(struct weir_range **ranges, size_t *count, uint32_t values)
{
	uint32_t n = 1 + chance(3), low, high;

	while (n--) {
		low = chance(4) ? chance(10) : values - 1 - chance(10);
		high = chance(3) ? low : low + chance(values - low);
		add_range(ranges, count, low, high);
	}
}

#define CHANCE_RANGES(match, field, values) chance_ranges(&(match)->field, &(match)->field##_count, values)

static void chance_match(struct weir_match *match, uint32_t conditions)
{
	static const uint8_t protocols[] = {1, 6, 17, 58, 132, 47};
	static const uint8_t flags[] = {0x02, 0x10, 0x04};
	static const char *const interfaces[] = {"eth1", "eth2", GONE};

	if (conditions & 1 << 0)
		match->families = 1 + chance(3);
	if (conditions & 1 << 1)
		match->fragments = 1 + chance(7);
	if (conditions & 1 << 2)
		add_protocol(match, protocols[chance(6)]), add_protocol(match, protocols[chance(6)]);
	if (conditions & 1 << 3)
		chance_prefixes(&match->source, &match->source_count);
	if (conditions & 1 << 4)
		chance_prefixes(&match->destination, &match->destination_count);
	if (conditions & 1 << 5)
		add_flags(match, flags[chance(3)], 0), add_flags(match, 0, flags[chance(3)]);
	if (conditions & 1 << 6)
		add_interface(match, interfaces[chance(3)]);
	if (conditions & 1 << 7)
		match->directions = 1 + chance(3);
#define CHANCE_RANGE(constant, name, member, highest, none, who)                                                       \
	if (conditions & 1 << RANGE_##constant)                                                                        \
		CHANCE_RANGES(match, member, (highest) + 1);
	WEIR_RANGE_FIELDS(CHANCE_RANGE)
}

struct weir_ruleset *chance_ruleset(uint32_t resources, uint32_t conditions)
{
	struct weir_ruleset *ruleset = new_ruleset();
	uint32_t chosen;
	char name[32];

	for (uint32_t i = 0; i < resources; i++) {
		snprintf(name, sizeof(name), "r%u", i);
		chosen = 0;
		for (uint32_t bit = 0; bit < CONDITIONS; bit++)
			chosen |= chance(3) ? 0 : 1u << bit;
		chance_match(add_resource(ruleset, name, 0), chosen & conditions);
	}
	return ruleset;
}

static uint32_t chance_value(uint32_t values)
{
	switch (chance(4)) {
	case 0:
		return values; /* none, or longer */
	case 1:
		return values - 1 - chance(12);
	case 2:
		return chance(values);
	}
	return chance(12);
}

struct packet chance_packet(void)
{
	static const uint8_t protocols[] = {1, 6, 17, 58, 132, 47};
	struct packet packet = {
		.direction = chance(WEIR_DIRECTIONS),
		.family = chance(2) ? 4 : 6,
		.fragment = chance(WEIR_FRAGMENT_KINDS),
		.protocol = chance(8) ? protocols[chance(6)] : chance(256),
		.tcp_flags = chance(256),
#define CHANCE_VALUE(constant, name, member, highest, none, who) .member = chance_value(none),
		WEIR_RANGE_FIELDS(CHANCE_VALUE).ifindex = chance(4),
	};

	chance_address(packet.family, packet.source);
	chance_address(packet.family, packet.destination);
	drop_impossible(&packet);
	return packet;
}
