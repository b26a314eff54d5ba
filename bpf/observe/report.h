/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reports to the harness a packet's verdict, its resources and rules and, if asked, its flow under each rule. So
 * userspace can find a flow's state without a second implementation of keys and hashes.
 */
#ifndef WEIR_REPORT_H
#define WEIR_REPORT_H

#include "kinds/connection_table.h"
#include "kinds.h"

/* ---- which flow, beside the hash of its key: by the rule's kind (weir_kinds.def) ---- */

static __always_inline void weir_report_nothing(struct weir_scratch *s, const struct weir_rule *rule,
						struct weir_harness_flow *flow)
{
}

static __always_inline void weir_report_row(struct weir_scratch *s, const struct weir_rule *rule,
					    struct weir_harness_flow *flow)
{
	if (rule->bar == WEIR_BAR_LEVEL)
		flow->other = weir_hash_key(s, rule->shadow);
	if (rule->storage == WEIR_STORAGE_NARROW || rule->storage == WEIR_STORAGE_MEDIUM)
		flow->tag = weir_flow_id(s, rule, WEIR_NARROW).tag;
	else if (rule->storage == WEIR_STORAGE_WIDE)
		flow->tag = weir_flow_id(s, rule, WEIR_WIDE).tag;
}

static __always_inline void weir_report_shadow(struct weir_scratch *s, const struct weir_rule *rule,
					       struct weir_harness_flow *flow)
{
	flow->other = weir_hash_key(s, rule->shadow);
	weir_report_row(s, weir_rule(rule->shadow), flow);
}

static __always_inline void weir_report_connection(struct weir_scratch *s, const struct weir_rule *rule,
						   struct weir_harness_flow *flow)
{
	struct weir_flow_id id = weir_connection_id(rule, &s->packet, 0);

	flow->other = (__u64)id.tag << 32 | id.set;
}

/* Fill in the flow of the packet's rule number `nth`. */
__noinline int weir_report_flow(struct weir_scratch *s, struct weir_harness *l, __u32 nth)
{
	const struct weir_rule *rule;
	struct weir_harness_flow *flow;

	WEIR_GLOBAL(HARNESS, s && l && nth < WEIR_PACKET_RULES_MAX, 0);
	flow = &l->flow[nth];
	rule = weir_rule(s->rule[nth]);
	flow->place = rule->place;
	flow->hash = weir_hash_key(s, rule->place);
	flow->key = s->key;
	flow->other = 0;
	flow->tag = 0;
	if (0)
		;
#define KIND(identifier, name, lone, flows, find, evaluate, commit, abort, report)                                     \
	else if (WEIR_IS_KIND(rule, identifier))                                                                       \
	{                                                                                                              \
		report(s, rule, flow);                                                                                 \
	}
#define HIDDEN_KIND(...)
#include "weir_kinds.def"
	return 0;
}

/* ---- the packet ---- */

/* The packet's sender and receiver. */
static __always_inline void weir_report_packet(const struct weir_packet *pkt, struct weir_flow_key *ret_packet)
{
	const bool is_out = WEIR_IS_OUT(pkt); /* turned: weir_turn() */
	const __be32 *from = is_out ? pkt->destination : pkt->source, *to = is_out ? pkt->source : pkt->destination;
	const __u32 words = pkt->is_ipv6 ? 4 : 1;
	__be32 *source = (__be32 *)ret_packet->source, *destination = (__be32 *)ret_packet->destination;

	for (__u32 i = 0; i < 4; i++) {
		source[i] = i < words ? from[i] : 0;
		destination[i] = i < words ? to[i] : 0;
	}
	ret_packet->family = pkt->is_ipv6 ? 6 : 4;
	ret_packet->protocol = weir_protocol(pkt);
	/* None is a number beyond 16 bits, which becomes 0. */
	ret_packet->source_port = bpf_htons(is_out ? pkt->destination_port : pkt->source_port);
	ret_packet->destination_port = bpf_htons(is_out ? pkt->source_port : pkt->destination_port);
}

/* Report the packet's fate to the harness. */
static __always_inline void weir_report(struct weir_scratch *s, enum weir_verdict verdict)
{
	struct weir_harness *l = weir_harness();

	if (!l)
		return;
	l->verdict = verdict;
	l->rule = verdict == WEIR_VERDICT_BLOCK ? s->blocking_rule : WEIR_NO_RULE;
	l->wait_ns = verdict == WEIR_VERDICT_PASS ? s->wait_ns : 0;
	l->resource_count = s->resource_count;
	__builtin_memcpy(l->resource, s->resource, sizeof(l->resource));
	weir_report_packet(&s->packet, &l->packet);
	l->has_ports = s->packet.source_port != WEIR_PORT_NONE;
	if (!l->wants_flows)
		return;
	l->flow_count = s->resource_count ? s->rule_count : 0;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < l->flow_count; i++)
		weir_report_flow(s, l, i);
}

#endif
