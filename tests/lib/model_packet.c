// SPDX-License-Identifier: GPL-2.0-only
#include "model_packet.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

/* ---- reading a frame ---- */

/* Bytes not yet read. */
struct rest {
	const uint8_t *at;
	size_t left;
	size_t frame_bytes; /* of the whole frame */
};

/* A length of 16 bits cannot say how long a frame of more than 65,535 bytes is (BIG TCP), and is 0: then it is as long
 * as the frame.
 */
static bool is_too_long_to_say(size_t frame_bytes, unsigned int stated_bytes)
{
	return stated_bytes == 0 && frame_bytes > 65535;
}

static unsigned int be16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void skip(struct rest *rest, size_t bytes)
{
	assert(bytes <= rest->left);
	rest->at += bytes;
	rest->left -= bytes;
}

static uint32_t sum_words(const uint8_t *at, size_t bytes)
{
	uint32_t sum = 0;

	for (; bytes > 1; at += 2, bytes -= 2)
		sum += be16(at);
	return bytes ? sum + (at[0] << 8) : sum;
}

static bool is_same_sum(uint32_t a, uint32_t b)
{
	return a % 0xffff == b % 0xffff;
}

/* docs/connections.md, "Packets that close": a first fragment never does; of a segment of more than 512 bytes, nobody
 * looks. The unfinished sum is to the bit.
 */
static bool closes_nothing(struct rest segment, const struct model_packet *packet)
{
	const size_t address_bytes = packet->family == 4 ? 4 : 16;
	uint32_t pseudo = sum_words(packet->source, address_bytes) + sum_words(packet->destination, address_bytes) + 6 +
			  segment.left;

	if (!(packet->tcp_flags & 5))
		return false;
	if (packet->fragment != WEIR_FRAGMENT_NONE)
		return true;
	if (segment.left > 512 || is_same_sum(pseudo + sum_words(segment.at, segment.left), 0))
		return false;
	return !is_same_sum(pseudo, be16(segment.at + 16)) || be16(segment.at + 16) == 0;
}

static enum model_class parse_tcp(struct rest payload, struct model_packet *packet)
{
	unsigned int header_bytes;

	if (payload.left < 20)
		return CLASS_MALFORMED;
	header_bytes = (payload.at[12] >> 4) * 4;
	if (header_bytes < 20 || header_bytes > payload.left)
		return CLASS_MALFORMED;
	packet->has_tcp_flags = true;
	packet->tcp_flags = payload.at[13];
	packet->closes_nothing = closes_nothing(payload, packet);
	return CLASS_IP;
}

static enum model_class parse_udp(struct rest payload, const struct model_packet *packet)
{
	unsigned int udp_bytes;

	if (payload.left < 8)
		return CLASS_MALFORMED;
	udp_bytes = be16(payload.at + 4);
	if (packet->family == 6 && udp_bytes == 0)
		return CLASS_IP; /* the length of its packet */
	if (udp_bytes < 8)
		return CLASS_MALFORMED;
	/* The length of a fragmented datagram is that of the whole, which no fragment can show. */
	if (packet->fragment == WEIR_FRAGMENT_NONE && udp_bytes > payload.left)
		return CLASS_MALFORMED;
	return CLASS_IP;
}

static enum model_class parse_icmp(struct rest payload, struct model_packet *packet)
{
	if (payload.left < 8)
		return CLASS_MALFORMED;
	packet->has_icmp_type = true;
	packet->icmp_type = payload.at[0];
	return CLASS_IP;
}

static enum model_class parse_transport(struct rest payload, struct model_packet *packet)
{
	enum model_class class = CLASS_IP;
	bool has_ports = false;

	if (packet->fragment == WEIR_FRAGMENT_LATER)
		return CLASS_IP;
	switch (packet->protocol) {
	case 1:	 /* ICMP */
	case 58: /* ICMPv6 */
		class = parse_icmp(payload, packet);
		break;
	case 6:
		class = parse_tcp(payload, packet);
		has_ports = true;
		break;
	case 17:
		class = parse_udp(payload, packet);
		has_ports = true;
		break;
	case 132: /* SCTP: a common header of 12 bytes */
		class = payload.left < 12 ? CLASS_MALFORMED : CLASS_IP;
		has_ports = true;
		break;
	}
	if (class == CLASS_IP && has_ports) {
		packet->has_ports = true;
		packet->source_port = be16(payload.at);
		packet->destination_port = be16(payload.at + 2);
	}
	return class;
}

static enum model_class parse_ipv4(struct rest rest, struct model_packet *packet)
{
	unsigned int header_bytes, fragment;
	size_t total_bytes;

	if (rest.left < 20)
		return CLASS_MALFORMED;
	header_bytes = (rest.at[0] & 0x0f) * 4;
	total_bytes = be16(rest.at + 2);
	if (is_too_long_to_say(rest.frame_bytes, total_bytes))
		total_bytes = rest.left;
	if (rest.at[0] >> 4 != 4)
		return CLASS_MALFORMED;
	if (header_bytes < 20 || header_bytes > rest.left)
		return CLASS_MALFORMED;
	if (total_bytes < header_bytes || total_bytes > rest.left)
		return CLASS_MALFORMED;

	packet->family = 4;
	packet->dscp = rest.at[1] >> 2;
	packet->ttl = rest.at[8];
	packet->ip_bytes = total_bytes;
	memcpy(packet->source, rest.at + 12, 4);
	memcpy(packet->destination, rest.at + 16, 4);
	packet->protocol = rest.at[9];
	fragment = be16(rest.at + 6);
	if (fragment & 0x1fff)
		packet->fragment = WEIR_FRAGMENT_LATER;
	else if (fragment & 0x2000)
		packet->fragment = WEIR_FRAGMENT_FIRST;

	rest.left = total_bytes; /* what follows is Ethernet padding */
	skip(&rest, header_bytes);
	return parse_transport(rest, packet);
}

static bool is_walked(uint8_t protocol)
{
	switch (protocol) {
	case 0:	 /* hop-by-hop options */
	case 43: /* routing */
	case 44: /* fragment */
	case 51: /* authentication */
	case 60: /* destination options */
		return true;
	}
	return false;
}

static enum model_class walk_extension_headers(struct rest *rest, struct model_packet *packet)
{
	unsigned int headers = 0;
	size_t header_bytes;

	while (is_walked(packet->protocol)) {
		if (++headers > 8)
			return CLASS_UNSUPPORTED;
		if (rest->left < 8)
			return CLASS_MALFORMED;
		if (packet->protocol == 44)
			header_bytes = 8;
		else if (packet->protocol == 51)
			header_bytes = (rest->at[1] + 2) * 4;
		else
			header_bytes = (rest->at[1] + 1) * 8;
		if (header_bytes > rest->left)
			return CLASS_MALFORMED;
		if (packet->protocol == 44) {
			unsigned int fragment = be16(rest->at + 2);

			if (fragment & 0xfff8) {
				packet->fragment = WEIR_FRAGMENT_LATER;
				packet->protocol = rest->at[0];
				return CLASS_IP;
			}
			if (fragment & 1)
				packet->fragment = WEIR_FRAGMENT_FIRST;
		}
		packet->protocol = rest->at[0];
		skip(rest, header_bytes);
	}
	return CLASS_IP;
}

static enum model_class parse_ipv6(struct rest rest, struct model_packet *packet)
{
	size_t payload_bytes;
	enum model_class class;

	if (rest.left < 40)
		return CLASS_MALFORMED;
	payload_bytes = be16(rest.at + 4);
	if (is_too_long_to_say(rest.frame_bytes, payload_bytes))
		payload_bytes = rest.left - 40;
	if (rest.at[0] >> 4 != 6 || payload_bytes > rest.left - 40)
		return CLASS_MALFORMED;
	packet->family = 6;
	packet->dscp = (rest.at[0] & 0x0f) << 2 | rest.at[1] >> 6;
	packet->ttl = rest.at[7];
	packet->ip_bytes = 40 + payload_bytes;
	packet->protocol = rest.at[6];
	if (payload_bytes == 0 && packet->protocol == 0)
		return CLASS_UNSUPPORTED; /* a jumbogram */
	memcpy(packet->source, rest.at + 8, 16);
	memcpy(packet->destination, rest.at + 24, 16);

	skip(&rest, 40);
	rest.left = payload_bytes;
	class = walk_extension_headers(&rest, packet);
	if (class != CLASS_IP)
		return class;
	return parse_transport(rest, packet);
}

enum model_class model_parse(const uint8_t *frame, size_t frame_bytes, struct model_packet *packet)
{
	struct rest rest = {frame, frame_bytes, frame_bytes};
	unsigned int ethertype;

	if (rest.left < 14)
		return CLASS_MALFORMED;
	ethertype = be16(rest.at + 12);
	skip(&rest, 14);
	for (unsigned int tags = 0; ethertype == 0x8100 || ethertype == 0x88a8; tags++) {
		if (tags == 2)
			return CLASS_UNSUPPORTED;
		if (rest.left < 4)
			return CLASS_MALFORMED;
		/* The VLAN is that of the first tag that names one. */
		packet->has_vlan = true;
		if (packet->vlan == 0)
			packet->vlan = be16(rest.at) & 0x0fff;
		ethertype = be16(rest.at + 2);
		skip(&rest, 4);
	}
	if (ethertype == 0x0800)
		return parse_ipv4(rest, packet);
	if (ethertype == 0x86dd)
		return parse_ipv6(rest, packet);
	packet->ethertype = ethertype;
	return CLASS_NON_IP;
}

/* ---- does a resource want the packet? ---- */

static bool in_ranges(const struct weir_range *ranges, size_t count, bool has_value, uint64_t value)
{
	if (count == 0)
		return true;
	for (size_t i = 0; has_value && i < count; i++)
		if (ranges[i].low <= value && value <= ranges[i].high)
			return true;
	return false;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned int bits)
{
	for (unsigned int i = 0; i < bits; i++)
		if ((a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1)
			return false;
	return true;
}

bool model_in_prefix(const struct weir_prefix *prefix, int family, const uint8_t *address)
{
	return prefix->family == family && same_bits(prefix->address, address, prefix->bits);
}

static bool in_prefixes(const struct weir_prefix *prefixes, size_t count, int family, const uint8_t *address)
{
	if (count == 0)
		return true;
	for (size_t i = 0; i < count; i++)
		if (model_in_prefix(&prefixes[i], family, address))
			return true;
	return false;
}

static bool flags_match(const struct weir_match *match, const struct model_packet *packet)
{
	if (match->tcp_flags_count == 0)
		return true;
	for (size_t i = 0; packet->has_tcp_flags && i < match->tcp_flags_count; i++) {
		const struct weir_tcp_flags *flags = &match->tcp_flags[i];

		if ((packet->tcp_flags & flags->set) == flags->set && (packet->tcp_flags & flags->clear) == 0)
			return true;
	}
	return false;
}

static bool interface_matches(const struct weir_match *match, const struct model_packet *packet, model_ifindex ifindex)
{
	if (match->interface_count == 0)
		return true;
	for (size_t i = 0; ifindex && i < match->interface_count; i++) {
		uint32_t number = ifindex(match->interface[i]);

		if (number != 0 && number == packet->ifindex)
			return true;
	}
	return false;
}

bool model_matches(const struct weir_match *match, const struct model_packet *packet, model_ifindex ifindex)
{
	const uint8_t directions = match->directions ? match->directions : WEIR_MATCHES_IN;
	bool has_ports = packet->has_ports;

	if (!(directions & (packet->is_out ? WEIR_MATCHES_OUT : WEIR_MATCHES_IN)))
		return false;
	if (match->families && !(match->families & (packet->family == 4 ? 1 : 2)))
		return false;
	if (match->has_protocol && !(match->protocol[packet->protocol / 8] >> packet->protocol % 8 & 1))
		return false;
	if (match->fragments && !(match->fragments >> packet->fragment & 1))
		return false;
	return in_prefixes(match->source, match->source_count, packet->family, packet->source) &&
	       in_prefixes(match->destination, match->destination_count, packet->family, packet->destination) &&
	       in_ranges(match->source_port, match->source_port_count, has_ports, packet->source_port) &&
	       in_ranges(match->destination_port, match->destination_port_count, has_ports, packet->destination_port) &&
	       in_ranges(match->vlan, match->vlan_count, packet->has_vlan, packet->vlan) &&
	       in_ranges(match->dscp, match->dscp_count, true, packet->dscp) &&
	       in_ranges(match->icmp_type, match->icmp_type_count, packet->has_icmp_type, packet->icmp_type) &&
	       in_ranges(match->length, match->length_count, true, packet->frame_bytes) &&
	       in_ranges(match->ip_length, match->ip_length_count, true, packet->ip_bytes) &&
	       in_ranges(match->ttl, match->ttl_count, true, packet->ttl) && flags_match(match, packet) &&
	       interface_matches(match, packet, ifindex);
}

/* ---- flows ---- */

static void copy_bits(uint8_t *to, const uint8_t *from, unsigned int bits)
{
	for (unsigned int i = 0; i < bits; i++)
		to[i / 8] |= from[i / 8] & 0x80 >> i % 8;
}

const uint8_t *model_remote_of(const struct model_packet *packet)
{
	return packet->is_out ? packet->destination : packet->source;
}

const uint8_t *model_local_of(const struct model_packet *packet)
{
	return packet->is_out ? packet->source : packet->destination;
}

/* Is a field of the key called remote or local, and is that the other end than the packet calls so? */
static bool is_other_end(const struct weir_flow *flow, uint32_t field, const struct model_packet *packet)
{
	return packet->is_out && flow->fields & WEIR_KEY_RELATIVE(field);
}

struct model_key model_key_of(const struct weir_flow *flow, uint32_t rule, const struct model_packet *packet)
{
	int family_index = packet->family == 4 ? 0 : 1;
	struct model_key key;

	memset(&key, 0, sizeof(key));
	key.rule = rule;
	if (flow->fields == 0)
		return key;
	if (flow->fields & (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION))
		key.flow.family = packet->family;
	if (flow->fields & WEIR_KEY_SOURCE)
		copy_bits(key.flow.source,
			  is_other_end(flow, WEIR_KEY_SOURCE, packet) ? packet->destination : packet->source,
			  flow->source_bits[family_index]);
	if (flow->fields & WEIR_KEY_DESTINATION)
		copy_bits(key.flow.destination,
			  is_other_end(flow, WEIR_KEY_DESTINATION, packet) ? packet->source : packet->destination,
			  flow->destination_bits[family_index]);
	if (flow->fields & WEIR_KEY_SOURCE_PORT && packet->has_ports)
		key.flow.source_port = htons(is_other_end(flow, WEIR_KEY_SOURCE_PORT, packet) ? packet->destination_port
											      : packet->source_port);
	if (flow->fields & WEIR_KEY_DESTINATION_PORT && packet->has_ports)
		key.flow.destination_port =
			htons(is_other_end(flow, WEIR_KEY_DESTINATION_PORT, packet) ? packet->source_port
										    : packet->destination_port);
	if (flow->fields & WEIR_KEY_PROTOCOL)
		key.flow.protocol = packet->protocol;
	if (flow->fields & WEIR_KEY_VLAN && packet->has_vlan)
		key.flow.vlan = packet->vlan;
	if (flow->fields & WEIR_KEY_INTERFACE)
		key.flow.ifindex = packet->ifindex;
	if (flow->fields & WEIR_KEY_DSCP)
		key.flow.dscp = packet->dscp;
	if (flow->fields & WEIR_KEY_TTL)
		key.flow.ttl = packet->ttl;
	return key;
}
