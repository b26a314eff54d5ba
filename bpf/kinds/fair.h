/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair shares: before a rule with fairBy takes a packet into its window, the packet's child of the flow is asked.
 * While the flow (the parent) is contended, each child is limited to the level (include/weir_fair.h), and a packet
 * above it is dropped by the rule without being counted in the parent's window, which is evaluated as that of any
 * other rule: so children can be counted approximately, and the parent is exact all the same. (docs/semantics.md, 14)
 *
 * Children are described by a hidden rule of kind FAIR, whose key is that of the rule and fairBy together. No packet
 * has the hidden rule in its list; the rule itself asks.
 */
#ifndef WEIR_BPF_FAIR_H
#define WEIR_BPF_FAIR_H

#include "kinds/flow_set.h"
#include "observe/drops.h"
#include "observe/events.h"
#include "observe/key_samples.h"
#include "window/threshold.h"
#include "weir_fair.h"

static __always_inline void weir_add(__u64 *count, __u64 units)
{
	__sync_fetch_and_add(count, units);
}

/* ---- parents ---- */

/* The set of the packet's parent. */
static __always_inline struct weir_fair_parent_set *weir_parent_set(const struct weir_scratch *s)
{
	__u32 index = WEIR_FAIR_FIRST_PARENTS(config.sizes[WEIR_TABLE_FAIR_SHARES]) + s->fair.parent.set;
	struct weir_fair_chunk *chunk = bpf_map_lookup_elem(&fair_shares, &index);

	return chunk ? &chunk->parents : NULL;
}

/* The entry of the packet's parent, or NULL: it has had no drops. */
static __always_inline struct weir_fair_parent *weir_find_parent(struct weir_scratch *s)
{
	struct weir_fair_parent_set *set = weir_parent_set(s);
	__u32 way;

	if (!set)
		return NULL;
	way = weir_find_tag(set->tag, WEIR_FAIR_PARENT_WAYS, s->fair.parent.tag);
	if (likely(way == WEIR_FAIR_PARENT_WAYS))
		return NULL;
	FORGET(s->forgotten, way);
	return WEIR_ELEMENT(set->parent, way);
}

/* Drops in one interval make the parent contended until the end of the next. */
static __always_inline bool weir_is_contended(const struct weir_fair_parent *parent, __u64 interval)
{
	return READ_ONCE(parent->contended) + 1 > interval;
}

/* Give the packet's parent an entry: a free one, or that of a parent that is not contended any more. */
static __always_inline struct weir_fair_parent *weir_begin_parent(struct weir_scratch *s, __u32 place)
{
	struct weir_fair_parent_set *set = weir_parent_set(s);
	__u32 found = WEIR_FAIR_PARENT_WAYS;
	struct weir_fair_parent *parent;
	__u32 *tag;

	if (!set)
		return NULL;
#pragma unroll
	for (__u32 way = 0; way < WEIR_FAIR_PARENT_WAYS; way++)
		if (!READ_ONCE(set->tag[way]) || !weir_is_contended(&set->parent[way], s->fair.interval))
			found = way;
	FORGET(s->forgotten, found);
	parent = WEIR_ELEMENT(set->parent, found);
	tag = WEIR_ELEMENT(set->tag, found);
	if (!parent || !tag)
		return NULL;
	WRITE_ONCE(*tag, 0);
	parent->contended = 0;
	parent->step = 0;
	parent->level = 0;
	parent->margin = 0;
	parent->margin_at = 0;
	parent->newcomer_tat_ns = 0;
	parent->counts[0].interval = 0;
	parent->counts[1].interval = 0;
	parent->rule_slot = weir_rule(place)->slot;
	weir_make_key(&parent->key, weir_rule(place), s);
	weir_order(s);
	WRITE_ONCE(*tag, s->fair.parent.tag);
	return parent;
}

/* The counts of an interval. */
static __always_inline struct weir_fair_counts *weir_counts_of(struct weir_fair_parent *parent, __u64 interval)
{
	OPAQUE(interval); /* else clang branches, and the verifier follows both ways */
	return &parent->counts[interval & 1];
}

/* Begin to count in the interval with this number. What other CPUs count meanwhile may be lost. */
__noinline int weir_begin_counts(struct weir_fair_counts *counts, __u64 interval)
{
	__u64 before;

	WEIR_GLOBAL(KIND(FAIR), counts, 0);
	before = READ_ONCE(counts->interval);
	if (before == interval + 1 || __sync_val_compare_and_swap(&counts->interval, before, interval + 1) != before)
		return 0;
	WRITE_ONCE(counts->offered, 0);
	WRITE_ONCE(counts->lost, 0);
	WRITE_ONCE(counts->children, 0);
	WRITE_ONCE(counts->newcomers, 0);
	WRITE_ONCE(counts->newcomer_units, 0);
	WRITE_ONCE(counts->joiners, 0);
#pragma nounroll
	for (__u32 octave = 0; octave < WEIR_FAIR_OCTAVES; octave++) {
#pragma unroll
		for (__u32 i = 0; i < 8; i++) {
			WRITE_ONCE(counts->units[octave * 8 + i], 0);
			WRITE_ONCE(counts->joined[octave * 8 + i], 0);
		}
	}
	return 0;
}

/* The rule's window has dropped a packet of the parent. Its child does not get back what the packet has taken: so
 * children that offer too much owe something, and do not fill the window at once when it has room again.
 */
__noinline int weir_note_fair_drop(struct weir_scratch *s, __u32 place)
{
	struct weir_fair_parent *parent;
	struct weir_fair_counts *counts;
	__u64 interval, before;

	WEIR_GLOBAL(KIND(FAIR), s, 0);
	interval = s->fair.interval;
	parent = weir_find_parent(s) ?: weir_begin_parent(s, place);
	if (!parent)
		return 0;
	if (!weir_is_contended(parent, interval))
		WRITE_ONCE(parent->level, 0); /* of long ago */
	before = READ_ONCE(parent->contended);
	if (before != interval + 1 && __sync_val_compare_and_swap(&parent->contended, before, interval + 1) == before &&
	    before + 1 <= interval)
		weir_emit_penalty_event(s, place, 1);
	counts = weir_counts_of(parent, interval);
	if (READ_ONCE(counts->interval) == interval + 1)
		weir_add(&counts->lost, weir_units(s, weir_rule(place)));
	return 0;
}

/* ---- the level ---- */

__noinline int weir_search_octave(const struct weir_fair_counts *counts, struct weir_fair_search *search, __u32 octave,
				  __u32 shift)
{
	WEIR_GLOBAL(KIND(FAIR), counts && search && octave < WEIR_FAIR_OCTAVES && shift < 32, 1);
	return weir_fair_search_octave(counts, search, octave, shift);
}

static __always_inline __u64 weir_find_level(struct weir_scratch *s, const struct weir_fair_counts *counts, __u64 aim,
					     __u32 shift)
{
	return weir_fair_find_level(counts, aim, shift, &s->fair.search, weir_search_octave);
}

/* The level aims at less than the threshold, so that packets that arrive unevenly are not dropped by the parent's
 * window, which does not know whose they are: by 1/256, and by a margin that grows with what the window drops
 * although there is a level, and falls slowly in intervals without such drops. Where small children have most of the
 * threshold, the margin would take much of the level, so that is bounded, too. Chosen, not derived.
 */
#define WEIR_FAIR_AIM_SHIFT 8
#define WEIR_FAIR_MARGIN_SHIFT 6  /* at first, the margin is this part of the threshold, and two units */
#define WEIR_FAIR_MARGIN_PARTS 24 /* the largest margin is this part of the threshold */
#define WEIR_FAIR_DECAY_SHIFT 5
#define WEIR_FAIR_LEVEL_SHIFT 4 /* the margin takes at most this part of the level */

/* Once in an interval. `lost`: what the window dropped in the one before, or 0. */
static __always_inline void weir_move_margin(struct weir_fair_parent *parent, __u64 interval, __u64 lost, __u64 limit)
{
	__u64 margin = parent->margin;

	if (parent->margin_at == interval)
		return;
	if (!parent->margin_at)
		margin = (limit >> WEIR_FAIR_MARGIN_SHIFT) + 2;
	parent->margin_at = interval;
	if (!lost)
		margin -= margin >> WEIR_FAIR_DECAY_SHIFT;
	else
		margin += lost;
	parent->margin = weir_lesser(margin, limit / WEIR_FAIR_MARGIN_PARTS);
}

/* Work out the level from what was offered in the last interval, and so far in this one, which can only lower it. */
__noinline int weir_work_out_level(struct weir_scratch *s, struct weir_fair_parent *parent, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	const struct weir_fair_terms *terms = &weir_rule(rule->shadow)->fair;
	__u64 limit, aim, level = 0, sooner = 0, groups, interval, newcomer_units = 0;
	struct weir_fair_counts *last, *present;

	WEIR_GLOBAL(KIND(FAIR), s && parent && terms->aim_den, 0);
	interval = s->fair.interval;
	limit = (weir_threshold_word(s, rule, WEIR_WIDE) & WEIR_THRESHOLD_MASK) * terms->scale;
	last = weir_counts_of(parent, interval - 1);
	present = weir_counts_of(parent, interval);
	groups = weir_fair_groups(present->newcomers);
	aim = limit * terms->aim_num / terms->aim_den;
	aim -= aim >> WEIR_FAIR_AIM_SHIFT;
	if (READ_ONCE(last->interval) == interval) {
		if (parent->margin_at != interval)
			newcomer_units = last->newcomer_units;
		/* In the first intervals with a level, the window still drops what came before it. */
		weir_move_margin(parent, interval, parent->since + 2 < interval ? last->lost : 0, limit);
		groups = weir_greater(groups, weir_fair_groups(last->newcomers));
		if (last->offered > limit)
			level = weir_find_level(s, last, aim, terms->shift);
	}
	if (present->offered > aim)
		sooner = weir_find_level(s, present, aim, terms->shift);
	if (!level || (sooner && sooner < level)) {
		level = sooner;
		last = present;
	}
	if (level)
		level = weir_greater(weir_find_level(s, last, aim - weir_lesser(parent->margin, aim), terms->shift),
				     level - (level >> WEIR_FAIR_LEVEL_SHIFT));
	WRITE_ONCE(parent->limit, limit);
	WRITE_ONCE(parent->shift, terms->shift);
	if (level) {
		if (!parent->level)
			parent->since = interval;
		WRITE_ONCE(parent->cost, weir_fair_cost(level, terms->interval_ns));
		WRITE_ONCE(parent->newcomer_cost, weir_fair_cost(level, terms->interval_ns) / (groups ?: 1));
		/* As children who wanted more have nothing saved up. */
		if (newcomer_units > groups * level >> WEIR_FAIR_LEVEL_BITS)
			WRITE_ONCE(parent->newcomer_tat_ns, s->fair.now_ns + terms->interval_ns);
	}
	WRITE_ONCE(parent->level, level);
	return 0;
}

/* ---- children ---- */

/* Find a way for the packet's child, which has none. WEIR_FLOW_WAYS: there is none. */
__noinline __u32 weir_begin_child(struct weir_scratch *s, struct weir_fair_set *set, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_fair_child *child;
	struct weir_flow_id parent;
	__u32 way;

	WEIR_GLOBAL(KIND(FAIR), s && set, WEIR_FLOW_WAYS);
	parent = weir_shared_id(weir_hash_key(s, place), WEIR_FAIR_PARENT_SETS);
	s->fair.parent = parent;
	way = weir_insert_flow(s, &set->flows, s->fair.child.tag, weir_rule(rule->shadow)->slot);
	if (!(way & WEIR_WAY_IS_NEW))
		return way;
	way = WEIR_WAY(way);
	child = WEIR_ELEMENT(set->child, way);
	if (!child)
		return WEIR_FLOW_WAYS;
	/* The number of no interval near this one, so that its first packet begins one. */
	WRITE_ONCE(child->offered, (s->fair.interval ^ 1ull << 20) << WEIR_FAIR_STAMP_SHIFT);
	WRITE_ONCE(child->before, 0);
	WRITE_ONCE(child->tat_ns, 0);
	WRITE_ONCE(child->parent_tag, parent.tag);
	WRITE_ONCE(child->parent_set, parent.set);
	WRITE_ONCE(child->weight, 1);
	return way;
}

/* The child's first packet in an interval. An entry is kept for as long as the child does not count as new. */
__noinline int weir_begin_child_interval(struct weir_scratch *s, struct weir_fair_set *set, __u32 way, __u32 place)
{
	const __u32 share = weir_rule(place)->shadow;
	struct weir_fair_child *child;
	__u64 before, word, interval_ns;
	__u32 weight = 1;

	WEIR_GLOBAL(KIND(FAIR), s && set, 0);
	child = WEIR_ELEMENT(set->child, way);
	if (!child)
		return 0;
	before = READ_ONCE(child->offered);
	word = s->fair.interval << WEIR_FAIR_STAMP_SHIFT;
	/* The difference of the numbers, at the top of the word, where it wraps. */
	if (word - (before & ~((1ull << WEIR_FAIR_STAMP_SHIFT) - 1)) > 2ull << WEIR_FAIR_STAMP_SHIFT)
		word |= WEIR_FAIR_NEW;
	if (__sync_val_compare_and_swap(&child->offered, before, word) != before)
		return 0;
	WRITE_ONCE(child->before, before);
	/* Here, so that a weight that a reload has changed holds from the next interval on. */
	if (WEIR_PART_LABELS && weir_rule(share)->fair.weighs & 1)
		weight = weir_find_weight(s, share, 0);
	if (WEIR_PART_LABELS && weir_rule(share)->fair.weighs & 2)
		weight *= weir_find_weight(s, share, 1);
	WRITE_ONCE(child->weight, weight);
	interval_ns = weir_rule(share)->fair.interval_ns;
	weir_keep_until(s, &set->flows, way, s->fair.now_ns + (word & WEIR_FAIR_NEW ? interval_ns : 3 * interval_ns));
	return 0;
}

/* Count a packet of a contended parent, whose child had offered `word` before it. */
static __always_inline void weir_count_offer(struct weir_scratch *s, struct weir_fair_counts *counts,
					     struct weir_fair_child *child, __u32 shift, __u64 batch)
{
	__u64 word = s->fair.word, before = word & WEIR_FAIR_UNITS, *units;
	__u32 weight = child->weight ?: 1, *joined;

	weir_add(&counts->offered, batch);
	if (!(word & WEIR_FAIR_COUNTED)) {
		__sync_fetch_and_or(&child->offered, WEIR_FAIR_COUNTED);
		weir_add(&counts->children, 1);
		weir_add(&counts->offered, before);
		if (word & WEIR_FAIR_NEW) {
			weir_add(&counts->newcomers, 1);
			weir_add(&counts->newcomer_units, before);
		} else if (before) {
			joined = WEIR_ELEMENT(counts->joined,
					      weir_fair_bucket(weir_fair_ordinal(before, weight), shift));
			if (joined) {
				__sync_fetch_and_add(joined, weight);
				weir_add(&counts->joiners, weight);
			}
		}
	}
	if (word & WEIR_FAIR_NEW) {
		weir_add(&counts->newcomer_units, batch);
		return;
	}
	/* A packet of bytes is counted in the middle of its ordinals. */
	units = WEIR_ELEMENT(counts->units,
			     weir_fair_bucket(weir_fair_ordinal(before + batch - batch / 2, weight), shift));
	if (units)
		weir_add(units, batch);
}

#define WEIR_FAIR_MIX 0x9e3779b97f4a7c15ull /* 2^64 by the golden ratio: hashes a time */

/* May a packet be admitted that takes so much of an interval? `spent`: what was used up by now, if there was no level
 * in the last interval; `at_least`: if there was.
 *
 * Children that want more than the level wait for their turns, and they may all have begun to wait at one moment. So
 * each turn is put off by a random part of what the packet takes: otherwise a wave of packets would be admitted at once
 * and be dropped by the parent's window. The turns themselves stay where they are, so that the rate is exact. A level
 * may be below a packet, which is then saved up for.
 */
static __always_inline bool weir_take_share(__u64 *tat_ns, __u64 now_ns, __u64 interval_ns, __u64 cost_ns,
					    __u64 spent_ns, __u64 at_least_ns, __u32 tag)
{
	__u64 tat = READ_ONCE(*tat_ns), from = now_ns + at_least_ns, depth_ns = weir_greater(interval_ns, cost_ns), mix;

	if ((__s64)(tat + interval_ns - now_ns) < 0) /* not limited for an interval and more */
		from = now_ns + weir_lesser(spent_ns, depth_ns);
	else if ((__s64)(tat - from) > 0)
		from = tat;
	mix = (tat + tag) * WEIR_FAIR_MIX;
	mix = (mix ^ mix >> 32) * WEIR_FAIR_MIX;
	if (from - now_ns + (mix >> 48) * (cost_ns >> 16) >= depth_ns) {
		/* No more is owed than under the level in force. It may have been lower; or the clock went back. */
		from = weir_lesser(from, now_ns + depth_ns + cost_ns);
		if (from != tat)
			__sync_val_compare_and_swap(tat_ns, tat, from);
		return false;
	}
	if (from != tat)
		__sync_val_compare_and_swap(tat_ns, tat, from);
	__sync_fetch_and_add(tat_ns, cost_ns);
	return true;
}

/* Is the packet above the level of its child? */
__noinline int weir_evaluate_child(struct weir_scratch *s, struct weir_fair_set *set, struct weir_fair_parent *parent,
				   __u32 way, __u32 place)
{
	const struct weir_rule *share;
	struct weir_fair_counts *counts;
	struct weir_fair_child *child;
	__u64 batch, cost, before, word, interval_ns, spent_ns, at_least_ns = 0, step, level, weight;
	bool is_taken;

	WEIR_GLOBAL(KIND(FAIR), s && set && parent, false);
	child = WEIR_ELEMENT(set->child, way);
	if (!child)
		return false;
	share = weir_rule(weir_rule(place)->shadow);
	batch = weir_units(s, share);
	counts = weir_counts_of(parent, s->fair.interval);
	if (READ_ONCE(counts->interval) != s->fair.interval + 1)
		weir_begin_counts(counts, s->fair.interval);
	weir_count_offer(s, counts, child, share->fair.shift & 31, batch);
	interval_ns = share->fair.interval_ns;
	step = READ_ONCE(parent->step);
	if (share->fair.step_ns && step != s->fair.now_ns / share->fair.step_ns &&
	    __sync_val_compare_and_swap(&parent->step, step, s->fair.now_ns / share->fair.step_ns) == step)
		weir_work_out_level(s, parent, place);
	level = READ_ONCE(parent->level);
	if (!level)
		return false;
	weight = child->weight ?: 1;
	if (s->fair.word & WEIR_FAIR_NEW) {
		cost = READ_ONCE(parent->newcomer_cost);
		is_taken = weir_take_share(&parent->newcomer_tat_ns, s->fair.now_ns, interval_ns,
					   batch * cost >> WEIR_FAIR_COST_BITS, 0, 0, s->fair.child.tag);
	} else {
		level *= weight;
		cost = READ_ONCE(parent->cost) / weight;
		before = s->fair.word & WEIR_FAIR_UNITS;
		word = READ_ONCE(child->before);
		if (!((word ^ (s->fair.interval - 1) << WEIR_FAIR_STAMP_SHIFT) >> WEIR_FAIR_STAMP_SHIFT)) {
			/* Admitted more than the level in force: the level was higher, and what had been saved up was
			 * for bursts.
			 */
			if (!before && !(word & WEIR_FAIR_REFUSED) &&
			    (word & WEIR_FAIR_UNITS) > ((level + level / 32) >> WEIR_FAIR_LEVEL_BITS) + batch)
				at_least_ns = interval_ns;
			before = weir_greater(before, word & WEIR_FAIR_UNITS);
		}
		spent_ns = before ? interval_ns : 0;
		if (before < level >> WEIR_FAIR_LEVEL_BITS)
			spent_ns = before * cost >> WEIR_FAIR_COST_BITS;
		is_taken =
			weir_take_share(&child->tat_ns, s->fair.now_ns, interval_ns,
					batch * cost >> WEIR_FAIR_COST_BITS, spent_ns, at_least_ns, s->fair.child.tag);
	}
	if (is_taken)
		return false;
	if (READ_ONCE(parent->contended) != s->fair.interval + 1)
		WRITE_ONCE(parent->contended, s->fair.interval + 1);
	if (!(s->fair.word & WEIR_FAIR_REFUSED))
		__sync_fetch_and_or(&child->offered, WEIR_FAIR_REFUSED);
	if (!(s->fair.word & WEIR_FAIR_NEW)) /* a flood's sources go first */
		weir_keep_refused(&set->flows, way);
	if (weir_take_key_sample_turn(s)) { /* for `weir flows` */
		struct weir_flow_id flow = s->flow;

		s->flow = s->fair.child;
		weir_write_key_sample(s, share->place);
		s->flow = flow;
	}
	weir_refuse(s, s->fair.word & WEIR_FAIR_UNITS, level >> WEIR_FAIR_LEVEL_BITS);
	return true;
}

/* Count what the packet's child offers. Returns whether that is above the level of a contended parent. */
__noinline int weir_is_above_level(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place), *share;
	struct weir_fair_parent *parent;
	struct weir_fair_child *child;
	struct weir_fair_chunk *chunk;
	struct weir_fair_set *set;
	__u64 interval_ns, contended;
	__u32 index, way;

	WEIR_GLOBAL(KIND(FAIR), s, false);
	share = weir_rule(rule->shadow);
	s->fair.child = weir_shared_id(weir_flow_hash(s, share), config.sizes[WEIR_TABLE_FAIR_SHARES]);
	index = s->fair.child.set / WEIR_FAIR_SETS_PER_CHUNK;
	chunk = bpf_map_lookup_elem(&fair_shares, &index);
	set = chunk ? WEIR_ELEMENT(chunk->children, s->fair.child.set % WEIR_FAIR_SETS_PER_CHUNK) : NULL;
	interval_ns = share->fair.interval_ns;
	if (!set || !interval_ns)
		return false;
	s->fair.now_ns = weir_rule_time_ns(s, rule);
	s->fair.interval = s->fair.now_ns / interval_ns;
	way = weir_way_of(&set->flows, s->fair.child.tag);
	if (unlikely(way == WEIR_FLOW_WAYS))
		way = weir_begin_child(s, set, place);
	FORGET(s->forgotten, way);
	child = WEIR_ELEMENT(set->child, way);
	if (!child) /* the set changes too fast: the parent's window decides */
		return false;
	s->fair.parent.tag = READ_ONCE(child->parent_tag);
	s->fair.parent.set = READ_ONCE(child->parent_set);
	if (unlikely((READ_ONCE(child->offered) ^ s->fair.interval << WEIR_FAIR_STAMP_SHIFT) >> WEIR_FAIR_STAMP_SHIFT))
		weir_begin_child_interval(s, set, way, place);
	s->fair.word = __sync_fetch_and_add(&child->offered, weir_units(s, share));
	parent = weir_find_parent(s);
	if (likely(!parent))
		return false;
	if (!weir_is_contended(parent, s->fair.interval)) {
		contended = READ_ONCE(parent->contended);
		if (contended && __sync_val_compare_and_swap(&parent->contended, contended, 0) == contended)
			weir_emit_penalty_event(s, place, 0);
		return false;
	}
	return weir_evaluate_child(s, set, parent, way, place);
}

#endif
