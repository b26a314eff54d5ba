// SPDX-License-Identifier: GPL-2.0-only
#include "frames/link_type.h"

#include <arpa/inet.h>
#include <linux/if_arp.h>
#include <linux/if_packet.h>
#include <string.h>

/* Both cooked headers are in network byte order. */
struct sll_header {
	__be16 packet_type;
	__be16 device_type; /* ARPHRD_* */
	__be16 address_bytes;
	uint8_t address[8];
	__be16 protocol;
};

struct sll2_header {
	__be16 protocol;
	__be16 zero;
	__be32 ifindex;
	__be16 device_type; /* ARPHRD_* */
	uint8_t packet_type;
	uint8_t address_bytes;
	uint8_t address[8];
};

_Static_assert(sizeof(struct sll_header) == 16 && sizeof(struct sll2_header) == 20, "they are read from captures");

/* The first `bytes` of a frame; bytes that the capture cut off are zeros. */
static void read_header(const struct weir_frame *frame, void *header, uint32_t bytes)
{
	uint32_t captured = frame->captured_bytes < bytes ? frame->captured_bytes : bytes;

	memset(header, 0, bytes);
	if (captured)
		memcpy(header, frame->bytes, captured);
}

enum weir_course weir_frame_course(enum weir_link_type link_type, const struct weir_frame *frame)
{
	uint32_t packet_type;
	struct sll_header sll;
	struct sll2_header sll2;

	switch (link_type) {
	case WEIR_LINK_TYPE_SLL:
		if (frame->captured_bytes < sizeof(sll))
			return WEIR_COURSE_UNKNOWN;
		read_header(frame, &sll, sizeof(sll));
		packet_type = ntohs(sll.packet_type);
		break;
	case WEIR_LINK_TYPE_SLL2:
		if (frame->captured_bytes < sizeof(sll2))
			return WEIR_COURSE_UNKNOWN;
		read_header(frame, &sll2, sizeof(sll2));
		packet_type = sll2.packet_type;
		break;
	default:
		return WEIR_COURSE_UNKNOWN;
	}
	return packet_type == PACKET_OUTGOING ? WEIR_COURSE_OUT : WEIR_COURSE_IN;
}

/* The protocol field of a cooked header has the values of an Ethernet header's type. A value below 0x600 is one of
 * Linux's own numbers (802.3 and 802.2 frames, among others); in Ethernet it would be a length. Neither means IP. For
 * the device types below, the field has another meaning or none.
 */
static __be16 cooked_ethertype(__be16 device_type, __be16 protocol)
{
	switch (ntohs(device_type)) {
	case ARPHRD_FRAD:
	case ARPHRD_IEEE80211_RADIOTAP:
	case ARPHRD_NETLINK:
		return 0;
	}
	return protocol;
}

static __be16 ip_ethertype(const struct weir_frame *frame)
{
	uint8_t first;

	read_header(frame, &first, sizeof(first));
	switch (first >> 4) {
	case 4:
		return htons(ETH_P_IP);
	case 6:
		return htons(ETH_P_IPV6);
	}
	return 0;
}

/* AF_INET is 2 everywhere. AF_INET6 differs between Linux, Windows, NetBSD and OpenBSD, FreeBSD, and Darwin. Neither
 * the capturing system nor its byte order is known, but no family is above 65535.
 */
static __be16 family_ethertype(const struct weir_frame *frame)
{
	uint32_t family;

	read_header(frame, &family, sizeof(family));
	if (family > UINT16_MAX)
		family = __builtin_bswap32(family);
	switch (family) {
	case 2:
		return htons(ETH_P_IP);
	case 10:
	case 23:
	case 24:
	case 28:
	case 30:
		return htons(ETH_P_IPV6);
	}
	return 0;
}

/* RFC 1661, 2: the protocol is either two bytes, the first of which is even, or one odd byte. RFC 1662, 3.1: it is
 * preceded by an address (255) and a control field (3), which peers may agree to omit.
 */
#define PPP_ADDRESS_BYTES 2
#define PPP_PROTOCOL_BYTES 2

static uint32_t ppp_protocol_at(enum weir_link_type link_type, const struct weir_frame *frame)
{
	uint8_t start[PPP_ADDRESS_BYTES];

	read_header(frame, start, sizeof(start));
	return link_type == WEIR_LINK_TYPE_PPP_SERIAL || (start[0] == 0xff && start[1] == 0x03) ? PPP_ADDRESS_BYTES : 0;
}

static uint32_t ppp_header_bytes(enum weir_link_type link_type, const struct weir_frame *frame)
{
	const uint32_t at = ppp_protocol_at(link_type, frame);
	uint8_t header[PPP_ADDRESS_BYTES + PPP_PROTOCOL_BYTES];

	read_header(frame, header, sizeof(header));
	return at + (header[at] & 1 ? 1 : PPP_PROTOCOL_BYTES);
}

static __be16 ppp_ethertype(enum weir_link_type link_type, const struct weir_frame *frame)
{
	const uint32_t bytes = ppp_header_bytes(link_type, frame), at = ppp_protocol_at(link_type, frame);
	uint8_t header[PPP_ADDRESS_BYTES + PPP_PROTOCOL_BYTES];

	read_header(frame, header, sizeof(header));
	if (bytes - at == PPP_PROTOCOL_BYTES && header[at])
		return 0;
	switch (header[bytes - 1]) {
	case 0x21:
		return htons(ETH_P_IP);
	case 0x57:
		return htons(ETH_P_IPV6);
	}
	return 0;
}

/* An Ethernet header equivalent to the frame's own link header. */
static void make_header(enum weir_link_type link_type, const struct weir_frame *frame, struct ethhdr *ethernet)
{
	struct sll_header sll;
	struct sll2_header sll2;

	*ethernet = (struct ethhdr){};
	switch (link_type) {
	case WEIR_LINK_TYPE_ETHERNET:
		read_header(frame, ethernet, sizeof(*ethernet));
		break;
	case WEIR_LINK_TYPE_SLL:
		read_header(frame, &sll, sizeof(sll));
		ethernet->h_proto = cooked_ethertype(sll.device_type, sll.protocol);
		break;
	case WEIR_LINK_TYPE_SLL2:
		read_header(frame, &sll2, sizeof(sll2));
		ethernet->h_proto = cooked_ethertype(sll2.device_type, sll2.protocol);
		break;
	case WEIR_LINK_TYPE_IP:
		ethernet->h_proto = ip_ethertype(frame);
		break;
	case WEIR_LINK_TYPE_IPV4:
		ethernet->h_proto = htons(ETH_P_IP);
		break;
	case WEIR_LINK_TYPE_IPV6:
		ethernet->h_proto = htons(ETH_P_IPV6);
		break;
	case WEIR_LINK_TYPE_NULL:
	case WEIR_LINK_TYPE_LOOP:
		ethernet->h_proto = family_ethertype(frame);
		break;
	case WEIR_LINK_TYPE_PPP:
	case WEIR_LINK_TYPE_PPP_SERIAL:
		ethernet->h_proto = ppp_ethertype(link_type, frame);
		break;
	}
}

static uint32_t header_bytes(enum weir_link_type link_type, const struct weir_frame *frame)
{
	switch (link_type) {
	case WEIR_LINK_TYPE_ETHERNET:
		return ETH_HLEN;
	case WEIR_LINK_TYPE_SLL:
		return sizeof(struct sll_header);
	case WEIR_LINK_TYPE_SLL2:
		return sizeof(struct sll2_header);
	case WEIR_LINK_TYPE_NULL:
	case WEIR_LINK_TYPE_LOOP:
		return sizeof(uint32_t);
	case WEIR_LINK_TYPE_PPP:
	case WEIR_LINK_TYPE_PPP_SERIAL:
		return ppp_header_bytes(link_type, frame);
	case WEIR_LINK_TYPE_IP:
	case WEIR_LINK_TYPE_IPV4:
	case WEIR_LINK_TYPE_IPV6:
		break;
	}
	return 0;
}

bool weir_frame_to_ethernet(enum weir_link_type link_type, const struct weir_frame *frame,
			    struct weir_ethernet *ret_ethernet)
{
	const uint32_t skipped = header_bytes(link_type, frame), captured = frame->captured_bytes;

	if (frame->wire_bytes < skipped || (link_type == WEIR_LINK_TYPE_IP && frame->wire_bytes == 0))
		return false;
	make_header(link_type, frame, &ret_ethernet->header);
	ret_ethernet->payload = frame->bytes + (captured < skipped ? captured : skipped);
	ret_ethernet->payload_bytes = captured < skipped ? 0 : captured - skipped;
	/* A file may claim any length. */
	if (__builtin_add_overflow(frame->wire_bytes - skipped, ETH_HLEN, &ret_ethernet->wire_bytes))
		ret_ethernet->wire_bytes = UINT32_MAX;
	return true;
}
