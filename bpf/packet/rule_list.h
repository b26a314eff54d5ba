/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lists the rules of all resources that the packet matches, in the order of the files. Usually resources and rules are
 * the same as for the previous packet.
 */
#ifndef WEIR_RULE_LIST_H
#define WEIR_RULE_LIST_H

#include "kinds/inbound.h"
#include "packet/match.h"
#include "verdict.h"

/*
 * Insert a rule into the ascending list, not at its end. It takes the place of the first larger rule, which takes the
 * next place, and so on. Free places have larger numbers than any rule. Without branches, because the verifier would
 * follow each.
 */
__noinline int weir_insert_rule(struct weir_scratch *s, __u32 rule)
{
	__s64 carried = rule;

	WEIR_GLOBAL(SEVERAL_RULES, s, -1);
#pragma unroll
	for (int i = 0; i < WEIR_PACKET_RULES_MAX; i++) {
		__s64 here = s->rule[i];
		__s64 swap = (carried - here) * ((__u64)(carried - here) >> 63); /* 0, or their difference */

		s->rule[i] = here + swap;
		carried -= swap;
	}
	return 0;
}

/* Add one resource's rules to the list. Usually they come after those of the previous resource. */
__noinline int weir_list_rules(struct weir_scratch *s, __u32 place)
{
	const struct weir_resource *resource = weir_resource(place);

	if (!s)
		return -1;
	s->is_prioritized |= resource->is_prioritized;
	for (__u32 i = 0; i < WEIR_PACKET_RULES_MAX && i < resource->rule_count; i++) {
		__u32 count = s->rule_count, rule = resource->rule[i];

		OPAQUE(count);
		if (count >= WEIR_PACKET_RULES_MAX)
			return -1;
		s->rule_count = count + 1;
		if (rule > s->last_rule || count == 0) {
			s->rule[count] = rule;
			s->last_rule = rule;
		} else {
			weir_insert_rule(s, rule);
		}
	}
	return 0;
}

__noinline int weir_list_all_rules(struct weir_scratch *s)
{
	if (!s)
		return -1;
	__builtin_memset(s->rule, 0xff, sizeof(s->rule));
	s->is_prioritized = 0;
	if (config.system_rules && weir_list_system_rules(s))
		return -1;
	for (__u32 i = 0; i < WEIR_PACKET_RESOURCES_MAX && i < s->resource_count; i++)
		if (weir_list_rules(s, s->resource[i]))
			return -1;
	return config.has_tracker ? weir_list_tracker(s) : 0;
}

/* Fill in s->rule[]. The common case, one resource with one rule, in line. */
static __always_inline int weir_gather_rules(struct weir_scratch *s)
{
	const struct weir_resource *resource = weir_resource(s->resource[0]);

	s->rule_count = 0;
	s->last_rule = 0;
	if (WEIR_PART_SEVERAL_RULES)
		s->flows_and_one = 0;
	s->first_slot = resource->slot;
	if (config.system_rules || s->resource_count > 1 || resource->rule_count > 1)
		return weir_list_all_rules(s);
	s->rule[0] = resource->rule[0];
	s->rule_count = resource->rule_count;
	if (WEIR_PART_OCCUPY)
		s->is_prioritized = resource->is_prioritized;
	return 0;
}

/* ---- match memory ----
 *
 * Successive packets often have the same values in the fields that resources use. Then they match the same resources
 * and rules, which are still in *s.
 */

/* Fields that differ from packet to packet, or that take long to compare. A load that uses them remembers no matches.
 */
#define WEIR_MATCH_EACH                                                                                                \
	(WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION | WEIR_MATCH_INTERFACE | WEIR_MATCH_DSCP | WEIR_MATCH_LENGTH |     \
	 WEIR_MATCH_IP_LENGTH | WEIR_MATCH_TTL)
_Static_assert((WEIR_MATCH_EACH | WEIR_MATCH_KIND | WEIR_MATCH_DESTINATION_PORT | WEIR_MATCH_SELDOM) == WEIR_MATCH_ALL,
	       "each field is matched for every packet, or compared with that of the packet before");

/* The previous packet's matches hold for this packet. Saves 16 of 60 ns (one flow, admitted; test run), 33 of 324 (10k
 * sources over their limit; end to end): `make bench-shortcuts`, Zen 4, 2 virtual cores.
 */
static __always_inline bool weir_is_matched_as_before(const struct weir_scratch *s)
{
	const struct weir_match_memory *memory = &s->match_memory;
	const struct weir_packet *pkt = &s->packet;
	__u32 fields = config.compared_fields, differs = 0;

	if (pkt->kind + 1 != memory->kind_and_one)
		return false;
	if (fields & WEIR_MATCH_DESTINATION_PORT && pkt->destination_port != memory->destination_port)
		return false;
	if (!(fields & (WEIR_MATCH_SELDOM | WEIR_COMPARE_WORK)))
		return true;
	if (fields & WEIR_COMPARE_WORK)
		differs |= weir_work_of(pkt) ^ memory->work;
	if (fields & WEIR_MATCH_SOURCE_PORT)
		differs |= pkt->source_port ^ memory->source_port;
	if (fields & WEIR_MATCH_TCP_FLAGS)
		differs |= pkt->tcp_flags ^ memory->tcp_flags;
	if (fields & WEIR_MATCH_ICMP_TYPE)
		differs |= pkt->icmp_type ^ memory->icmp_type;
	if (fields & WEIR_MATCH_VLAN)
		differs |= pkt->vlan ^ memory->vlan;
	return !differs;
}

static __always_inline void weir_remember_match(struct weir_scratch *s)
{
	struct weir_match_memory *memory = &s->match_memory;
	const struct weir_packet *pkt = &s->packet;

	if (config.match_fields & WEIR_MATCH_EACH || !(config.shortcuts & WEIR_SHORTCUT_MATCH))
		return;
	memory->kind_and_one = pkt->kind + 1;
	memory->source_port = pkt->source_port;
	memory->destination_port = pkt->destination_port;
	memory->vlan = pkt->vlan;
	memory->tcp_flags = pkt->tcp_flags;
	memory->icmp_type = pkt->icmp_type;
	if (config.system_rules)
		memory->work = weir_work_of(pkt);
}

/* No rule is asked about this packet, because it is not an IP packet or a list decides. The next packet has no matches
 * to reuse.
 */
static __always_inline void weir_match_nothing(struct weir_scratch *s)
{
	s->match_memory.kind_and_one = 0;
	s->resource_count = 0;
}

/* ---- all of it ---- */

/* Find the resources that the packet matches and the rules to ask. Fills s->resource[] and s->rule[]. */
static __always_inline enum weir_verdict weir_match_packet(struct weir_scratch *s)
{
	if (unlikely(!weir_is_matched_as_before(s))) {
		s->match_memory.kind_and_one = 0;
		if (weir_match(s) || (s->resource_count && weir_gather_rules(s))) {
			s->resource_count = 0; /* none of the rules in the list has been asked yet */
			return WEIR_VERDICT_ERROR;
		}
		weir_remember_match(s);
	}
	return likely(s->resource_count) ? WEIR_VERDICT_OPEN : weir_unmatched_verdict(&s->packet);
}

#endif
