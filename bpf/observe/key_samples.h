/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Key samples say which flow a row belongs to. Rows hold only hashes; a key sample is a flow's key in clear text,
 * recorded now and then for `weir flows`. No verdict depends on it.
 */
#ifndef WEIR_KEY_SAMPLES_H
#define WEIR_KEY_SAMPLES_H

#include "window/rows.h"

/* Every flow that reaches its limit is recorded. Among other admissions that come here, the first in a tick is
 * recorded, and then one after this many. (The number is one less than a prime, so that it is not always the same one
 * of a packet's rules.) Recording more would fetch lines of memory for each new flow, only to name it.
 */
#define WEIR_KEY_SAMPLES_SKIPPED 60

static __always_inline bool weir_take_key_sample_turn(struct weir_scratch *s)
{
	if (s->key_sample_tick != s->tick) {
		s->key_sample_tick = s->tick;
		return true;
	}
	if (s->key_samples_skipped++ < WEIR_KEY_SAMPLES_SKIPPED)
		return false;
	s->key_samples_skipped = 0;
	return true;
}

/* Record the key of s->flow under a rule. Direct-mapped by tag: a later sample replaces an earlier one. */
__noinline int weir_write_key_sample(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_key_sample_chunk *chunk;
	struct weir_key_sample *sample;
	__u32 index, chunk_index;

	if (!s)
		return 0;
	index = s->flow.tag >> 4;
	chunk_index = index / WEIR_KEY_SAMPLES_PER_CHUNK % WEIR_KEY_SAMPLE_CHUNKS;
	chunk = bpf_map_lookup_elem(&key_samples, &chunk_index);
	if (!chunk)
		return 0;
	OPAQUE(index);
	index &= WEIR_KEY_SAMPLES_PER_CHUNK - 1;
	sample = &chunk->sample[index];
	sample->tag = s->flow.tag;
	sample->set = s->flow.set;
	sample->rule_slot = rule->slot;
	weir_make_key(&sample->key, rule, s);
	return 0;
}

static __always_inline void weir_sample_key(struct weir_scratch *s, const struct weir_rule *rule, bool is_full)
{
	if (unlikely(is_full || weir_take_key_sample_turn(s)))
		weir_write_key_sample(s, rule->place);
}

#endif
