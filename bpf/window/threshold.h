/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the threshold in force for the current packet. For most rules, it is the constant in the rule. A threshold that
 * the controller moves is read from the map to which it was pushed, while the controller is alive. A threshold that
 * hosts share is this host's share, while its lease lasts. A flow that warms up by itself has its own threshold
 * (warm_up.h), and a flow under an override has the override's.
 */
#ifndef WEIR_BPF_THRESHOLD_H
#define WEIR_BPF_THRESHOLD_H

#include "window/rows.h"
#include "kinds/warm_up.h"

/* ---- pushed by the controller ---- */

/* When pushed values expire: some time after the controller's last heartbeat. 0 without a heartbeat. In replay, pushed
 * values never expire.
 */
static __always_inline __u64 weir_expiry_ns(void)
{
	const struct weir_control *signs;
	__u64 heartbeat_ns;
	__u32 zero = 0;

	if (config.is_virtual)
		return ~0ull;
	signs = bpf_map_lookup_elem(&control, &zero);
	if (!signs)
		return 0;
	heartbeat_ns = READ_ONCE(signs->heartbeat_ns);
	return heartbeat_ns ? heartbeat_ns + READ_ONCE(signs->validity_ns) : 0;
}

/* Use the tick, because reading the clock would wait for the lines that are being fetched. Read the tick after the
 * look-up; otherwise clang 19 keeps it on the stack meanwhile, which is too small on Linux 6.1 (tests/bpf/stack_test).
 */
static __always_inline bool weir_check_stale(struct weir_scratch *s)
{
	return !config.is_virtual && weir_expiry_ns() <= s->tick_ns;
}

/* Read a word and the emission interval that was pushed with it. While the word is in force, the copy that it points to
 * is not written. If the word changes twice while it is read, the rule's constant stays in force, because word and
 * emission interval might not belong together.
 */
static __always_inline void weir_read_pushed(struct weir_scratch *s, const struct weir_rule *rule, __u32 place)
{
	const struct weir_pushed *pushed = bpf_map_lookup_elem(&thresholds, &place);

	if (!pushed)
		return;
	for (int attempt = 0; attempt < 2; attempt++) {
		__u64 word = READ_ONCE(pushed->word);

		weir_order(s);
		s->allowed.word = word;
		s->allowed.emission = word >> WEIR_THRESHOLD_BITS & 1 ? pushed->emission[1] : pushed->emission[0];
		weir_order(s);
		if (READ_ONCE(pushed->word) == word)
			return;
	}
	s->allowed.word = rule->threshold;
	s->allowed.emission = rule->emission;
}

/* The packet's units. Narrow rows count packets, one by one. */
static __always_inline __u64 weir_batch(const struct weir_scratch *s, const struct weir_rule *rule,
					const enum weir_width wide)
{
	return wide ? weir_units(s, rule) : 1;
}

/* ---- shared by hosts ---- */

static __always_inline __u64 weir_share_units(const struct weir_share_stages *stages, __u64 now_ns)
{
	if (now_ns >= READ_ONCE(stages->stops_ns))
		return 0;
	if (now_ns < READ_ONCE(stages->until_ns[WEIR_SHARE_LEASED]))
		return READ_ONCE(stages->units[WEIR_SHARE_LEASED]);
	if (now_ns < READ_ONCE(stages->until_ns[WEIR_SHARE_ENDED]))
		return READ_ONCE(stages->units[WEIR_SHARE_ENDED]);
	return READ_ONCE(stages->units[WEIR_SHARE_FALLEN_BACK]);
}

/* Read a schedule that may change meanwhile, in at most two attempts. False: it changed each time. */
static __always_inline bool weir_read_schedule(struct weir_scratch *s, const __u64 *version,
					       const struct weir_share_stages *stages, __u64 *ret_units)
{
	for (int attempt = 0; attempt < 2; attempt++) {
		__u64 before = READ_ONCE(*version);

		weir_order(s);
		*ret_units = weir_share_units(before & 1 ? &stages[1] : &stages[0], s->tick_ns);
		weir_order(s);
		if (READ_ONCE(*version) == before)
			return true;
	}
	return false;
}

/* The index of the packet's flow, s->flow, among the shared flows; WEIR_FLOW_SHARES if it is not shared. */
static __always_inline __u32 weir_find_flow_share(const struct weir_scratch *s, const struct weir_rule *rule,
						  struct weir_flow_share **ret_share)
{
	__u32 set_number = WEIR_FLOW_SHARE_SET(s->flow.tag, s->flow.set);
	struct weir_flow_share_set *set = bpf_map_lookup_elem(&flow_shares, &set_number);
	__u64 owner = WEIR_FLOW_OWNER(s->flow.tag, s->flow.set);

	if (!set)
		return WEIR_FLOW_SHARES;
#pragma unroll
	for (__u32 way = 0; way < WEIR_FLOW_SHARE_WAYS; way++) {
		*ret_share = &set->way[way];
		if (READ_ONCE(set->way[way].owner) == owner && set->way[way].slot == rule->slot)
			return set_number * WEIR_FLOW_SHARE_WAYS + way;
	}
	return WEIR_FLOW_SHARES;
}

/* Count the packet, and adjust the share by its flow's difference. If the flow loses its entry while we read, it is
 * admitted nothing for this packet, so it never gets more than its share.
 */
static __always_inline __u64 weir_move_share(struct weir_scratch *s, const struct weir_rule *rule, __u64 units)
{
	struct weir_flow_share *share;
	__u32 place = weir_find_flow_share(s, rule, &share);
	__u64 *demand, owner, difference;

	if (place == WEIR_FLOW_SHARES)
		return units;
	demand = bpf_map_lookup_elem(&flow_demands, &place);
	if (demand)
		*demand += weir_batch(s, rule, WEIR_WIDE);
	owner = WEIR_FLOW_OWNER(s->flow.tag, s->flow.set);
	if (!weir_read_schedule(s, &share->version, share->stages, &difference) || READ_ONCE(share->owner) != owner)
		return 0;
	units += difference;
	return units > WEIR_FLOW_BASE ? units - WEIR_FLOW_BASE : 0;
}

/* This host's share now. Like other expiries it is evaluated by the tick, so a share may end a tick late; the 50 ms
 * that the protocol allows include that. If the share changes twice while it is read, nothing is admitted. Replay knows
 * no other hosts.
 */
static __always_inline void weir_read_share(struct weir_scratch *s, const struct weir_rule *rule)
{
	const struct weir_shared_threshold *shared;
	__u32 slot = rule->slot;
	__u64 units;

	if (config.is_virtual)
		return;
	s->allowed.word &= ~WEIR_THRESHOLD_MASK;
	shared = bpf_map_lookup_elem(&shares, &slot);
	if (!shared)
		return;
	if (!weir_read_schedule(s, &shared->version, shared->stages, &units))
		return;
	if (config.shares_flows && rule->key_fields && READ_ONCE(shared->flows))
		units = weir_move_share(s, rule, units);
	s->allowed.word |= units & WEIR_THRESHOLD_MASK;
}

/* ---- overrides ---- */

/* A bit of a row's copy of the threshold's version says that the flow has no override, so that the search can be
 * skipped.
 */
#define WEIR_WORD_PLAIN ((__u64)WEIR_VERSION_PLAIN << WEIR_THRESHOLD_BITS)

/* Whose prefixes its overrides name. */
static __always_inline __u32 weir_override_field(const struct weir_rule *rule)
{
	return rule->overrides_destination ? WEIR_KEY_DESTINATION : WEIR_KEY_SOURCE;
}

/* The override that this packet's flow is under, or NULL. The longest prefix wins. */
static __always_inline const struct weir_override_units *weir_find_override(struct weir_scratch *s,
									    const struct weir_rule *rule, __u32 place)
{
	const struct weir_packet *pkt = &s->packet;
	struct weir_override_key key = {};
	const bool is_turned = WEIR_IS_TURNED(rule, pkt, weir_override_field(rule));
	const __be32 *address = rule->overrides_destination != is_turned ? pkt->destination : pkt->source;

	key.place = place;
	if (WEIR_PART_LABELS && rule->key_fields & WEIR_KEY_LABEL(weir_override_field(rule))) {
		const __u64 hash = weir_find_label(s, place, rule->overrides_destination);

		key.prefix_bits = WEIR_OVERRIDE_LABEL_BITS;
		__builtin_memcpy(key.address, &hash, sizeof(hash));
		return bpf_map_lookup_elem(&overrides, &key);
	}
	key.family = pkt->is_ipv6 ? 6 : 4;
	key.prefix_bits = WEIR_OVERRIDE_FIXED_BITS + (pkt->is_ipv6 ? 128 : 32);
	__builtin_memcpy(key.address, address, sizeof(key.address));
	return bpf_map_lookup_elem(&overrides, &key);
}

/* Threshold word of this packet's flow, by the trie. */
__noinline __u64 weir_override_word(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	const struct weir_override_units *found;

	WEIR_GLOBAL(OVERRIDES, s, 0);
	found = weir_find_override(s, rule, place);
	if (!found)
		return rule->threshold | WEIR_WORD_PLAIN;
	return (rule->threshold & ~WEIR_THRESHOLD_MASK) | (found->units & WEIR_THRESHOLD_MASK);
}

static __always_inline void weir_read_override(struct weir_scratch *s, const struct weir_rule *rule, __u32 place)
{
	const struct weir_override_units *found = weir_find_override(s, rule, place);

	if (!found)
		return;
	s->allowed.word = found->units & WEIR_THRESHOLD_MASK;
	s->allowed.emission = found->emission;
}

/* The same, without the search if the flow's row has the answer: the row must count, and must have been evaluated under
 * this load. A narrow row can record only that there is no override, not what an override says.
 */
static __always_inline __u64 weir_override_word_of(struct weir_scratch *s, const struct weir_rule *rule, void *row,
						   __u64 bucket, const enum weir_width wide)
{
	__u64 word;

	if (config.shortcuts && row && ROW_GET(row, wide, newest) + rule->window_cells > bucket) {
		word = weir_row_word(row, wide);
		if (!((word ^ rule->threshold) >> WEIR_THRESHOLD_BITS & ~WEIR_VERSION_PLAIN)) {
			if (wide)
				return word;
			if (word & WEIR_WORD_PLAIN)
				return rule->threshold | WEIR_WORD_PLAIN;
		}
	}
	return weir_override_word(s, rule->place);
}

/* ---- what is in force ---- */

/* Fill in s->allowed, for a rule whose constant is not the answer (weir_rule.needs_allowed). */
__noinline int weir_find_allowed(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);

	if (!s)
		return 0;
	s->allowed.word = rule->threshold;
	s->allowed.emission = rule->emission;
	if (config.has_shares && rule->threshold_moves == WEIR_MOVES_SHARED) {
		weir_read_share(s, rule);
	} else if (config.has_moving && rule->threshold_moves) {
		if (!weir_check_stale(s))
			weir_read_pushed(s, rule, place);
	} else if (config.warms_flows && rule->warms_flows) {
		weir_warm_flow(s, place);
	} else if (config.has_overrides && rule->has_overrides) {
		weir_read_override(s, rule, place);
	}
	return 0;
}

/* The threshold in force for the packet in hand. Narrow rows are for constant thresholds only. */
static __always_inline __u64 weir_threshold_word(const struct weir_scratch *s, const struct weir_rule *rule,
						 const enum weir_width wide)
{
	return wide && rule->needs_allowed ? s->allowed.word : rule->threshold;
}

#endif
