// SPDX-License-Identifier: GPL-2.0-only
#include "frames/ends.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <string.h>

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
