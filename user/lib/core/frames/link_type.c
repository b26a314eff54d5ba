// SPDX-License-Identifier: GPL-2.0-only
#include "frames/link_type.h"

#include <arpa/inet.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
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

enum weir_course weir_frame_course(const struct weir_frame *frame)
{
	uint32_t packet_type;
	struct sll_header sll;
	struct sll2_header sll2;

	switch (frame->link_type) {
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

static uint32_t ppp_protocol_at(const struct weir_frame *frame)
{
	uint8_t start[PPP_ADDRESS_BYTES];

	read_header(frame, start, sizeof(start));
	return frame->link_type == WEIR_LINK_TYPE_PPP_SERIAL || (start[0] == 0xff && start[1] == 0x03)
		       ? PPP_ADDRESS_BYTES
		       : 0;
}

static uint32_t ppp_header_bytes(const struct weir_frame *frame)
{
	const uint32_t at = ppp_protocol_at(frame);
	uint8_t header[PPP_ADDRESS_BYTES + PPP_PROTOCOL_BYTES];

	read_header(frame, header, sizeof(header));
	return at + (header[at] & 1 ? 1 : PPP_PROTOCOL_BYTES);
}

static __be16 ppp_ethertype(const struct weir_frame *frame)
{
	const uint32_t bytes = ppp_header_bytes(frame), at = ppp_protocol_at(frame);
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

/* What netfilter's log group sends (struct nfgenmsg, then struct nlattr): lengths and types are in the byte order of
 * the host, and each attribute begins at a multiple of four.
 */
#define NFLOG_HEADER_BYTES 4
#define NFLOG_ATTRIBUTE_BYTES 4
#define NFLOG_PACKET_HEADER 1 /* NFULA_PACKET_HDR: the EtherType is its first field */
#define NFLOG_PAYLOAD 9	      /* NFULA_PAYLOAD */

struct nflog_payload {
	__be16 ethertype;
	uint32_t at;	/* 0: there is none */
	uint32_t bytes; /* as logged; the capture may have fewer */
};

static uint16_t host_half(const struct weir_frame *frame, uint32_t at)
{
	uint16_t half;

	memcpy(&half, frame->bytes + at, sizeof(half));
	return frame->is_swapped ? __builtin_bswap16(half) : half;
}

static struct nflog_payload find_nflog_payload(const struct weir_frame *frame)
{
	struct nflog_payload payload = {};
	uint32_t at = NFLOG_HEADER_BYTES;

	if (frame->captured_bytes < NFLOG_HEADER_BYTES)
		return payload;
	if (frame->bytes[0] == PF_INET)
		payload.ethertype = htons(ETH_P_IP);
	else if (frame->bytes[0] == PF_INET6)
		payload.ethertype = htons(ETH_P_IPV6);
	while (at < frame->captured_bytes && frame->captured_bytes - at >= NFLOG_ATTRIBUTE_BYTES) {
		const uint16_t length = host_half(frame, at), type = host_half(frame, at + 2);

		if (length < NFLOG_ATTRIBUTE_BYTES)
			break;
		if (type == NFLOG_PAYLOAD) {
			payload.at = at + NFLOG_ATTRIBUTE_BYTES;
			payload.bytes = length - NFLOG_ATTRIBUTE_BYTES;
			break;
		}
		/* Bridges and devices have families of their own. */
		if (type == NFLOG_PACKET_HEADER && !payload.ethertype &&
		    frame->captured_bytes - at >= NFLOG_ATTRIBUTE_BYTES + sizeof(payload.ethertype))
			memcpy(&payload.ethertype, frame->bytes + at + NFLOG_ATTRIBUTE_BYTES,
			       sizeof(payload.ethertype));
		at += (length + 3u) & ~3u;
	}
	return payload;
}

/* A log has no length on the wire, and tcpdump lets the kernel cut packets there. So a packet is at least as long as
 * its IP header says, which the kernel has checked: IPv4's total length, or the payload of IPv6 and its header.
 */
static uint32_t nflog_wire_bytes(const struct weir_frame *frame, const struct nflog_payload *payload)
{
	const uint8_t *ip = frame->bytes + payload->at;
	const uint32_t left = frame->captured_bytes - payload->at,
		       captured = left < payload->bytes ? left : payload->bytes;
	uint32_t stated = 0;

	if (payload->ethertype == htons(ETH_P_IP) && captured >= 4)
		stated = ip[2] << 8 | ip[3];
	else if (payload->ethertype == htons(ETH_P_IPV6) && captured >= 6)
		stated = 40 + (ip[4] << 8 | ip[5]);
	return ETH_HLEN + (stated > payload->bytes ? stated : payload->bytes);
}

static bool nflog_to_ethernet(const struct weir_frame *frame, struct weir_ethernet *ret_ethernet)
{
	const struct nflog_payload payload = find_nflog_payload(frame);
	uint32_t left;

	if (!payload.at)
		return false;
	left = frame->captured_bytes - payload.at;
	*ret_ethernet = (struct weir_ethernet){
		.header.h_proto = payload.ethertype,
		.payload = frame->bytes + payload.at,
		.payload_bytes = left < payload.bytes ? left : payload.bytes,
		.wire_bytes = nflog_wire_bytes(frame, &payload),
	};
	return true;
}

/* An Ethernet header equivalent to the frame's own link header. */
static void make_header(const struct weir_frame *frame, struct ethhdr *ethernet)
{
	struct sll_header sll;
	struct sll2_header sll2;

	*ethernet = (struct ethhdr){};
	switch (frame->link_type) {
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
		ethernet->h_proto = ppp_ethertype(frame);
		break;
	case WEIR_LINK_TYPE_NFLOG:
		break; /* nflog_to_ethernet() */
	}
}

static uint32_t header_bytes(const struct weir_frame *frame)
{
	switch (frame->link_type) {
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
		return ppp_header_bytes(frame);
	case WEIR_LINK_TYPE_IP:
	case WEIR_LINK_TYPE_IPV4:
	case WEIR_LINK_TYPE_IPV6:
	case WEIR_LINK_TYPE_NFLOG:
		break;
	}
	return 0;
}

bool weir_frame_to_ethernet(const struct weir_frame *frame, struct weir_ethernet *ret_ethernet)
{
	const uint32_t skipped = header_bytes(frame), captured = frame->captured_bytes;

	if (frame->link_type == WEIR_LINK_TYPE_NFLOG)
		return nflog_to_ethernet(frame, ret_ethernet);
	if (frame->wire_bytes < skipped || (frame->link_type == WEIR_LINK_TYPE_IP && frame->wire_bytes == 0))
		return false;
	make_header(frame, &ret_ethernet->header);
	ret_ethernet->payload = frame->bytes + (captured < skipped ? captured : skipped);
	ret_ethernet->payload_bytes = captured < skipped ? 0 : captured - skipped;
	/* A file may claim any length. */
	if (__builtin_add_overflow(frame->wire_bytes - skipped, ETH_HLEN, &ret_ethernet->wire_bytes))
		ret_ethernet->wire_bytes = UINT32_MAX;
	return true;
}

/* The length field, behind at most two tags: of IPv4 at 2, of IPv6 at 4, where it is followed by the next header. */
uint8_t *weir_find_zero_length(uint8_t *frame, uint32_t bytes, uint32_t frame_bytes, uint16_t *ret_length)
{
	uint32_t at = ETH_HLEN;

	if (frame_bytes > UINT16_MAX || bytes > frame_bytes)
		return NULL;
	for (int tags = 0;; tags++, at += 4) {
		const uint8_t *ip = frame + at;

		if (at + 20 > bytes)
			return NULL;
		switch (ip[-2] << 8 | ip[-1]) {
		case ETH_P_IP:
			*ret_length = frame_bytes - at;
			return ip[2] || ip[3] ? NULL : frame + at + 2;
		case ETH_P_IPV6:
			if (at + 40 > bytes || ip[4] || ip[5] || (ip[6] != IPPROTO_TCP && ip[6] != IPPROTO_UDP))
				return NULL;
			*ret_length = frame_bytes - at - 40;
			return frame + at + 4;
		case ETH_P_8021Q:
		case ETH_P_8021AD:
			if (tags < 2)
				continue;
		}
		return NULL;
	}
}

/* ---- ends ---- */

#define IPV4_BYTES 20
#define IPV6_BYTES 40

static uint16_t number_at(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static bool is_vlan(uint16_t ethertype)
{
	return ethertype == ETH_P_8021Q || ethertype == ETH_P_8021AD;
}

static bool is_with_ports(uint8_t protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP ||
	       protocol == IPPROTO_UDPLITE;
}

static void take_ports(const uint8_t *at, size_t bytes, struct weir_ends *ends)
{
	if (!is_with_ports(ends->protocol) || bytes < 4)
		return;
	ends->has_ports = true;
	ends->source_port = number_at(at);
	ends->destination_port = number_at(at + 2);
}

static bool take_ipv4(const uint8_t *ip, size_t bytes, struct weir_ends *ends)
{
	size_t header_bytes;

	if (bytes < IPV4_BYTES || ip[0] >> 4 != 4)
		return false;
	ends->family = 4;
	ends->protocol = ip[9];
	memcpy(ends->source, ip + 12, 4);
	memcpy(ends->destination, ip + 16, 4);
	header_bytes = (ip[0] & 15) * 4ul;
	/* A later fragment has no transport header. */
	if (header_bytes >= IPV4_BYTES && header_bytes <= bytes && !(number_at(ip + 6) & 0x1fff))
		take_ports(ip + header_bytes, bytes - header_bytes, ends);
	return true;
}

static bool take_ipv6(const uint8_t *ip, size_t bytes, struct weir_ends *ends)
{
	if (bytes < IPV6_BYTES || ip[0] >> 4 != 6)
		return false;
	ends->family = 6;
	ends->protocol = ip[6];
	memcpy(ends->source, ip + 8, 16);
	memcpy(ends->destination, ip + 24, 16);
	take_ports(ip + IPV6_BYTES, bytes - IPV6_BYTES, ends);
	return true;
}

bool weir_frame_ends(const uint8_t *frame, size_t bytes, struct weir_ends *ret_ends)
{
	struct weir_ends ends = {};
	size_t at = 12;
	bool is_ip;

	for (int tags = 0; tags < 2 && at + 2 <= bytes && is_vlan(number_at(frame + at)); tags++)
		at += 4;
	if (at + 2 > bytes)
		return false;
	if (number_at(frame + at) == ETH_P_IP)
		is_ip = take_ipv4(frame + at + 2, bytes - at - 2, &ends);
	else
		is_ip = number_at(frame + at) == ETH_P_IPV6 && take_ipv6(frame + at + 2, bytes - at - 2, &ends);
	if (is_ip)
		*ret_ends = ends;
	return is_ip;
}
