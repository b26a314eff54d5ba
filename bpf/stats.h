/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters. Per CPU and written here only, so plain additions do. Nothing in this file influences a
 * verdict.
 */
#ifndef WEIR_STATS_H
#define WEIR_STATS_H

#include "clock.h"

static __always_inline void weir_tally(struct weir_tally *tally, __u32 bytes)
{
	tally->packets++;
	tally->bytes += bytes;
}

static __always_inline struct weir_rule_counters *weir_rule_counters(__u32 slot)
{
	return bpf_map_lookup_elem(&rule_counters, &slot);
}

static __always_inline void weir_count_eviction(__u32 slot)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (counters)
		counters->evicted++;
}

static __always_inline void weir_count_stall(__u32 slot)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (counters)
		counters->stalled++;
}

static __always_inline void weir_count_lease(__u32 slot)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (counters)
		counters->leases++;
}

static __always_inline void weir_count_delay(__u32 slot, __u64 wait_ns)
{
	struct weir_rule_counters *counters = weir_rule_counters(slot);

	if (!counters)
		return;
	counters->delayed++;
	counters->delay_ns += wait_ns;
}

static __always_inline void weir_count_block(const struct weir_rule *rule, __u32 bytes)
{
	struct weir_rule_counters *counters = weir_rule_counters(rule->slot);

	if (counters)
		weir_tally(rule->observes ? &counters->would_drop : &counters->blocked, bytes);
}

static __always_inline void weir_count_resource(struct weir_work *w, __u32 slot, bool passes)
{
	struct weir_resource_counters *counters = bpf_map_lookup_elem(&resource_counters, &slot);
	__u32 bytes = w->packet.frame_bytes, now_s;
	struct weir_second *second;

	if (unlikely(!counters))
		return;
	now_s = weir_now_second(w);
	second = &counters->second[now_s & (WEIR_SECONDS - 1)];
	if (unlikely(second->second != now_s)) {
		second->second = now_s;
		second->passed = 0;
		second->blocked = 0;
	}
	if (passes) {
		weir_tally(&counters->passed, bytes);
		second->passed++;
	} else {
		weir_tally(&counters->blocked, bytes);
		second->blocked++;
	}
}

__noinline int weir_count_further_resources(struct weir_work *w, __u32 passes)
{
	if (!w)
		return 0;
	for (__u32 i = 1; i < WEIR_PACKET_RESOURCES_MAX && i < w->resource_count; i++)
		weir_count_resource(w, weir_resource(w->resource[i])->slot, passes);
	return 0;
}

/* There is one at least: the first in line, as mostly it is the only one. */
static __always_inline void weir_count_resources(struct weir_work *w, bool passes)
{
	weir_count_resource(w, w->first_slot, passes);
	if (unlikely(w->resource_count > 1))
		weir_count_further_resources(w, passes);
}

/* Every packet comes by here once. */
static __always_inline void weir_count_verdict(struct weir_totals *totals_here, enum weir_verdict verdict, __u32 bytes)
{
	if (verdict >= WEIR_VERDICT_COUNT)
		return;
	weir_tally(&totals_here->seen, bytes);
	weir_tally(&totals_here->verdict[verdict], bytes);
}

/* ---- talkers: whose row is it? For `weir flows` only ---- */

/* Every flow that fills up is noted. Of the admissions that needed a lease, or that wide rows counted, the first of a
 * tick is, and then one after so many (one less than a prime, so that it is not always the same of a packet's rules):
 * more would be lines of memory fetched for each new flow, only to say who it was.
 */
#define WEIR_NOTES_LEFT_OUT 60

static __always_inline bool weir_note_is_due(struct weir_work *w)
{
	__u64 jiffies = bpf_jiffies64();

	if (w->noted_jiffies != jiffies) {
		w->noted_jiffies = jiffies;
		return true;
	}
	if (w->notes_left_out++ < WEIR_NOTES_LEFT_OUT)
		return false;
	w->notes_left_out = 0;
	return true;
}

static __always_inline void weir_mask_address(__u8 *ret_address, const __be32 address[4], const __be32 mask6[4],
					      __be32 mask4, bool is_ipv6)
{
	__be32 *words = (__be32 *)ret_address;

	words[0] = address[0] & (is_ipv6 ? mask6[0] : mask4);
	words[1] = is_ipv6 ? address[1] & mask6[1] : 0;
	words[2] = is_ipv6 ? address[2] & mask6[2] : 0;
	words[3] = is_ipv6 ? address[3] & mask6[3] : 0;
}

/* The key of a packet under a rule, in the clear. */
static __always_inline void weir_describe_key(struct weir_flow_key *ret_key, const struct weir_rule *rule,
					      const struct weir_packet *pkt)
{
	__u32 fields = rule->key_fields;

	__builtin_memset(ret_key, 0, sizeof(*ret_key));
	if (fields & WEIR_KEY_SOURCE)
		weir_mask_address(ret_key->source, pkt->source, rule->source_mask6, rule->source_mask4, pkt->is_ipv6);
	if (fields & WEIR_KEY_DESTINATION)
		weir_mask_address(ret_key->destination, pkt->destination, rule->destination_mask6,
				  rule->destination_mask4, pkt->is_ipv6);
	if (fields & WEIR_KEY_SOURCE_PORT)
		ret_key->source_port = bpf_htons(pkt->source_port);
	if (fields & WEIR_KEY_DESTINATION_PORT)
		ret_key->destination_port = bpf_htons(pkt->destination_port);
	if (fields & WEIR_KEY_PROTOCOL)
		ret_key->protocol = weir_protocol(pkt);
	if (fields & WEIR_KEY_VLAN)
		ret_key->vlan = pkt->vlan & 0xfff;
	if (fields & WEIR_KEY_INTERFACE)
		ret_key->ifindex = pkt->ifindex;
	ret_key->family = pkt->is_ipv6 ? 6 : 4;
}

/* Whose w->question.place is, under `rule`. Direct-mapped by tag: the later one stays. */
static __always_inline void weir_write_talker(struct weir_work *w, const struct weir_rule *rule)
{
	const struct weir_question *q = &w->question;
	__u32 index = q->place.tag >> 4, chunk_index;
	struct weir_talker_chunk *chunk;
	struct weir_talker *talker;

	chunk_index = index / WEIR_TALKERS_PER_CHUNK % WEIR_TALKER_CHUNKS;
	chunk = bpf_map_lookup_elem(&talkers, &chunk_index);
	if (!chunk)
		return;
	OPAQUE(index);
	index &= WEIR_TALKERS_PER_CHUNK - 1;
	talker = &chunk->talker[index];
	talker->tag = q->place.tag;
	talker->set = q->place.set;
	talker->rule_slot = rule->slot;
	weir_describe_key(&talker->key, rule, &w->packet);
}

static __always_inline void weir_note_talker(struct weir_work *w, const struct weir_rule *rule, bool is_full)
{
	if (unlikely(is_full || config.is_virtual || weir_note_is_due(w)))
		weir_write_talker(w, rule);
}

#endif
