/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inbound work: finds the system rules that apply to a packet. They come before all other rules, and evaluate packets
 * of every resource: TCP openings, and packets of other protocols. Only those that count connections see other TCP
 * packets.
 */
#ifndef WEIR_INBOUND_H
#define WEIR_INBOUND_H

#include <linux/in.h>

#include "maps.h"

#define WEIR_TCP_FIN 0x01u
#define WEIR_TCP_SYN 0x02u
#define WEIR_TCP_RST 0x04u
#define WEIR_TCP_ACK 0x10u

/* A later fragment has no flags, so it opens nothing. */
static __always_inline __u32 weir_work_of(const struct weir_packet *pkt)
{
	const __u32 decisive = WEIR_TCP_SYN | WEIR_TCP_ACK | WEIR_TCP_FIN | WEIR_TCP_RST;

	if (weir_protocol(pkt) != IPPROTO_TCP)
		return WEIR_WORK_OTHER;
	return (pkt->tcp_flags & decisive) == WEIR_TCP_SYN ? WEIR_WORK_OPENING : WEIR_WORK_ESTABLISHED;
}

/* Begin the packet's list of rules with the system rules that apply to it. */
__noinline int weir_list_system_rules(struct weir_scratch *s)
{
	__u32 work;

	WEIR_GLOBAL(SYSTEM_RULES, s, -1);
	if (WEIR_IS_OUT(&s->packet))
		return 0;
	work = weir_work_of(&s->packet);
	for (__u32 place = 0; place < WEIR_PACKET_RULES_MAX && place < config.system_rules; place++) {
		__u32 count = s->rule_count;

		OPAQUE(count);
		if (!(weir_rule(place)->evaluates & work))
			continue;
		if (count >= WEIR_PACKET_RULES_MAX)
			return -1;
		s->rule[count] = place;
		s->rule_count = count + 1;
		s->last_rule = place;
	}
	return 0;
}

/* End the list with the hidden rule that follows connections, which need not see packets that other rules drop. */
__noinline int weir_list_tracker(struct weir_scratch *s)
{
	__u32 count;

	WEIR_GLOBAL(TRACKER, s, -1);
	if (weir_work_of(&s->packet) == WEIR_WORK_OTHER || WEIR_IS_OUT(&s->packet))
		return 0;
	count = s->rule_count;
	OPAQUE(count);
	if (count >= WEIR_PACKET_RULES_MAX)
		return -1;
	s->rule[count] = config.tracker;
	s->rule_count = count + 1;
	return 0;
}

#endif
