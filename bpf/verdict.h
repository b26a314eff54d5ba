/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Verdicts that need no rule: for packets that the parser could not parse, and for packets that match no resource.
 */
#ifndef WEIR_VERDICT_H
#define WEIR_VERDICT_H

#include "packet/lists.h"
#include "maps.h"
#include "packet/parse.h"

/* Without neighbour discovery (RFC 4861, 4; types 133 to 137), an IPv6 host is unreachable. Without multicast listener
 * discovery (RFC 2710, 3, and RFC 3810, 5; types 130 to 132 and 143), it becomes unreachable after a while, because a
 * snooping switch stops forwarding neighbours' queries to its solicited-node group.
 */
static __always_inline bool weir_is_neighbour_discovery(const struct weir_packet *pkt)
{
	if (!pkt->is_ipv6 || weir_protocol(pkt) != IPPROTO_ICMPV6)
		return false;
	return (pkt->icmp_type >= 130 && pkt->icmp_type <= 137) || pkt->icmp_type == 143;
}

/* nonIp, but for the EtherTypes of nonIpExcept. */
static __always_inline bool weir_drops_non_ip(const struct weir_packet *pkt)
{
	for (__u32 i = 0; i < WEIR_NON_IP_EXCEPT_MAX && i < config.non_ip_except_count; i++)
		if (pkt->ethertype >= config.non_ip_except[i].low && pkt->ethertype <= config.non_ip_except[i].high)
			return !config.drop_non_ip;
	return config.drop_non_ip;
}

static __always_inline enum weir_verdict weir_class_verdict(const struct weir_packet *pkt, enum weir_parsed parsed)
{
	const bool is_out = WEIR_IS_OUT(pkt); /* these settings apply to incoming packets */

	switch (parsed) {
	case WEIR_PARSED_MALFORMED:
		return config.drop_malformed && !is_out ? WEIR_VERDICT_MALFORMED_DROP : WEIR_VERDICT_MALFORMED_PASS;
	case WEIR_PARSED_UNSUPPORTED:
		return config.drop_unsupported && !is_out ? WEIR_VERDICT_UNSUPPORTED_DROP
							  : WEIR_VERDICT_UNSUPPORTED_PASS;
	case WEIR_PARSED_NON_IP:
		return !is_out && weir_drops_non_ip(pkt) ? WEIR_VERDICT_NON_IP_DROP : WEIR_VERDICT_NON_IP_PASS;
	default:
		return WEIR_VERDICT_ERROR;
	}
}

static __always_inline enum weir_verdict weir_unmatched_verdict(const struct weir_packet *pkt)
{
	return config.drop_unmatched && !WEIR_IS_OUT(pkt) && !weir_is_neighbour_discovery(pkt)
		       ? WEIR_VERDICT_UNMATCHED_DROP
		       : WEIR_VERDICT_UNMATCHED_PASS;
}

#endif
