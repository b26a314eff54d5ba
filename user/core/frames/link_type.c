// SPDX-License-Identifier: GPL-2.0-only
#include "frames/link_type.h"

#include <arpa/inet.h>
#include <linux/if_arp.h>
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

/* The first `bytes` of a frame; those that the capture cut off are zeros. */
static void read_header(const struct weir_frame *frame, void *header, uint32_t bytes)
{
	uint32_t captured = frame->captured_bytes < bytes ? frame->captured_bytes : bytes;

	memset(header, 0, bytes);
	if (captured)
		memcpy(header, frame->bytes, captured);
}

/* A cooked header's protocol is what an Ethernet header would have as its type. Below 0x600 it is one of Linux's own
 * numbers, of 802.3 and 802.2 frames among others; in Ethernet a length stands there, and neither means IP. These
 * devices have something else in its place, or nothing.
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

/* The Ethernet header that says what the frame's own one says. */
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
	}
}

bool weir_frame_to_ethernet(enum weir_link_type link_type, const struct weir_frame *frame,
			    struct weir_ethernet *ret_ethernet)
{
	static const uint32_t header_bytes[] = {
		[WEIR_LINK_TYPE_ETHERNET] = ETH_HLEN,
		[WEIR_LINK_TYPE_SLL] = sizeof(struct sll_header),
		[WEIR_LINK_TYPE_SLL2] = sizeof(struct sll2_header),
		[WEIR_LINK_TYPE_IP] = 0,
		[WEIR_LINK_TYPE_IPV4] = 0,
		[WEIR_LINK_TYPE_IPV6] = 0,
	};
	uint32_t skipped = header_bytes[link_type], captured = frame->captured_bytes;

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
