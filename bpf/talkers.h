/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Talkers: whose row is it? Rows hold hashes; a talker is a flow's key in the clear, recorded now and then for `weir
 * flows`. Nothing is decided by it.
 */
#ifndef WEIR_TALKERS_H
#define WEIR_TALKERS_H

#include "rows.h"

/* Every flow that fills up is recorded. Of the other admissions that come by here the first of a tick is, and then one
 * after so many (one less than a prime, so that it is not always the same of a packet's rules): more would be lines of
 * memory fetched for each new flow, only to say who it was.
 */
#define WEIR_TALKERS_SKIPPED 60

static __always_inline bool weir_take_talker_turn(struct weir_scratch *s)
{
	if (s->talker_tick != s->tick) {
		s->talker_tick = s->tick;
		return true;
	}
	if (s->talkers_skipped++ < WEIR_TALKERS_SKIPPED)
		return false;
	s->talkers_skipped = 0;
	return true;
}

/* Record whose s->flow is under a rule. Direct-mapped by tag: the later one stays. */
__noinline int weir_write_talker(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_talker_chunk *chunk;
	struct weir_talker *talker;
	__u32 index, chunk_index;

	if (!s)
		return 0;
	index = s->flow.tag >> 4;
	chunk_index = index / WEIR_TALKERS_PER_CHUNK % WEIR_TALKER_CHUNKS;
	chunk = bpf_map_lookup_elem(&talkers, &chunk_index);
	if (!chunk)
		return 0;
	OPAQUE(index);
	index &= WEIR_TALKERS_PER_CHUNK - 1;
	talker = &chunk->talker[index];
	talker->tag = s->flow.tag;
	talker->set = s->flow.set;
	talker->rule_slot = rule->slot;
	weir_make_key(&talker->key, rule, &s->packet);
	return 0;
}

static __always_inline void weir_record_talker(struct weir_scratch *s, const struct weir_rule *rule, bool is_full)
{
	if (unlikely(is_full || weir_take_talker_turn(s)))
		weir_write_talker(s, rule->place);
}

#endif
