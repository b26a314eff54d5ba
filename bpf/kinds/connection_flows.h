/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries of flows that have connections: finding, making and taking over one, and counting connections in and out. A
 * resource without a flow key has one flow, which is "lone".
 *
 * An entry belongs to the flow that its `owner` names, by a rule's slot, the flow's tag, and the entry's turn. The turn
 * grows by one each time the entry changes its owner. Cells and words of connections contain the turn, so that
 * leftovers of a former owner do not count. (docs/internals/connections.md, tests/model/connections.pml)
 */
#ifndef WEIR_CONNECTION_FLOWS_H
#define WEIR_CONNECTION_FLOWS_H

#include "kinds/connection_totals.h"
#include "kinds/flow_set.h"

/* How long to wait for another CPU that is making a flow's entry; making one takes less. Real time, in replay as well.
 */
#define WEIR_OWNER_WAIT_NS 2000
#define WEIR_OWNER_LOOKS 256 /* for the verifier; each reads the clock */

#define WEIR_FIRST_FIGURES (1ull << 32 | 1) /* of a flow with its first connection: opened, max */

/* ---- entries by number ---- */

static __always_inline bool weir_is_lone_flow(__u32 number)
{
	return number & WEIR_CONNECTION_LONE;
}

/* The lone flow of a rule, which has no other owner. */
static __always_inline struct weir_connection_flow *weir_lone_flow(__u32 slot)
{
	struct weir_connection_flow *flow = bpf_map_lookup_elem(&lone_connections, &slot);
	__u64 owner = WEIR_CONNECTION_OWNER(slot | WEIR_CONNECTION_USES_CLASSES, WEIR_CONNECTION_LONE_TAG);

	if (flow && READ_ONCE(flow->owner) != owner)
		WRITE_ONCE(flow->owner, owner);
	return flow;
}

static __always_inline struct weir_connection_flow_set *weir_connection_flow_set(__u32 index)
{
	return bpf_map_lookup_elem(&connection_flows, &index);
}

static __always_inline struct weir_connection_flow *weir_flow_by_number(__u32 number)
{
	struct weir_connection_flow_set *set;

	if (weir_is_lone_flow(number))
		return weir_lone_flow(number & (WEIR_CONNECTION_LONE - 1));
	set = weir_connection_flow_set(number / 8);
	return set ? WEIR_ELEMENT(set->flow, number & 7) : NULL;
}

/* ---- taking over an entry ---- */

/* The class of a flow's first connection. */
static __always_inline __u32 weir_first_class(const struct weir_scratch *s)
{
	if (WEIR_PART_RETURNED_COOKIES && s->packet.tcp_flags & WEIR_TCP_COOKIE_FOUND)
		return WEIR_CONNECTION_CLASS_OPEN;
	return weir_protocol(&s->packet) == IPPROTO_TCP ? WEIR_CONNECTION_CLASS_HALF : WEIR_CONNECTION_CLASS_OTHER;
}

/* The bits, apart from the turn, in which an entry's owner differs from this tag. 0: the tag's flow owns the entry.
 * Otherwise the entry is being made, or a CPU that had stalled has just made it for another flow.
 */
static __always_inline __u64 weir_owner_differs(__u64 owner, __u32 tag)
{
	return (owner >> 32 ^ tag) & ~WEIR_CONNECTION_CHECK;
}

/* Take connections of turns before this one out of an entry's cells and out of the former rule's total, which counts
 * them as evicted. Cells of classes that the former owner has not used are empty.
 */
__noinline int weir_drain_flow(struct weir_scratch *s, struct weir_connection_flow *flow, __u64 owner, __u32 turn)
{
	__u32 slot = WEIR_CONNECTION_OWNER_SLOT(owner), evicted = 0;
	struct weir_connection_total *total = weir_total_of(slot);

	WEIR_GLOBAL(CONNECTIONS, s && flow, 0);
#pragma nounroll
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES_COUNTED; class ++) {
		if (!(owner & WEIR_CONNECTION_USES_CLASS(class)))
			continue;
#pragma nounroll
		for (__u32 i = 0; i < WEIR_CONNECTION_CELLS; i++) {
			__u64 cell = weir_drain_cell(&flow->cell[class][i], turn);
			__u64 count = cell & WEIR_CONNECTION_COUNT_MASK;

			if (!count)
				continue;
			if (weir_change_total(s, total, class, weir_cell_step(cell), -count))
				evicted += count;
			FORGET(s->forgotten, evicted);
		}
	}
	if (evicted && total) {
		total->counts.evicted += evicted;
		weir_count_eviction(slot);
	}
	return 0;
}

/* Clear the former owner's counts from an entry that we are making. If we stalled, another CPU may have taken over and
 * counted since. So read the owner after each figure.
 */
__noinline int weir_clear_flow(struct weir_scratch *s, struct weir_connection_flow *flow, __u64 making)
{
	WEIR_GLOBAL(CONNECTIONS, s && flow, 0);
	for (__u32 i = 0; i < sizeof(flow->counts) / sizeof(__u64); i++) {
		__u64 *figures = (__u64 *)&flow->counts + i, old = READ_ONCE(*figures);

		weir_order(s);
		if (old && READ_ONCE(flow->owner) == making)
			__sync_val_compare_and_swap(figures, old, 0);
	}
	return 0;
}

/* Become the only CPU that makes this entry. Its owner becomes a turn without a tag, so that no CPU counts there. The
 * rest of the owner stays, because a CPU that takes over from us must know which cells the former owner used, and whose
 * total counts them. Where that allows it, the owner has `part`, too: the slot and the class of our first connection.
 * Returns the new owner word, or 0 if the entry already belongs to the flow of s->view, or no longer does.
 */
static __always_inline __u64 weir_begin_turn(struct weir_scratch *s, struct weir_connection_flow *flow,
					     const __u32 *tag, __u32 part, __u64 *ret_former)
{
	for (int attempt = 0; attempt < WEIR_DRAIN_ATTEMPTS; attempt++) {
		__u64 owner = READ_ONCE(flow->owner), making;
		__u32 turn;

		/* The tag is read after the owner. If the tag is ours, this owner is from before our insertion. */
		weir_order(s);
		if (READ_ONCE(*tag) != s->view.flow.tag || !weir_owner_differs(owner, s->view.flow.tag))
			return 0;
		turn = ((owner >> 32) + 1) & WEIR_CONNECTION_CHECK;
		turn += !turn; /* turn 0 is nobody's */
		making = WEIR_CONNECTION_OWNER((__u32)owner, turn);
		if (!(owner & WEIR_CONNECTION_USES_CLASSES))
			making = WEIR_CONNECTION_OWNER(part | (owner & WEIR_CONNECTION_USES_COUNTS), turn);
		else if (!WEIR_CONNECTION_OWNER_SLOT(owner ^ part))
			making |= part;
		if (__sync_val_compare_and_swap(&flow->owner, owner, making) == owner) {
			*ret_former = owner;
			return making;
		}
	}
	return 0;
}

/* Note the flow's key, which mostly is just the source. */
static __always_inline void weir_note_flow_key(struct weir_scratch *s, struct weir_flow_key *key,
					       const struct weir_rule *rule)
{
	const __u32 family = __builtin_offsetof(struct weir_flow_key, family);
	__u64 *words = (__u64 *)key;

	if (unlikely(rule->key_fields != WEIR_KEY_SOURCE || s->packet.is_ipv6)) {
		weir_hash_key(s, rule->place); /* makes s->key */
		*key = s->key;
		return;
	}
	WRITE_ONCE(words[0], s->packet.source[0] & rule->source_mask4);
#pragma unroll
	for (__u32 i = 1; i < sizeof(*key) / sizeof(*words); i++)
		WRITE_ONCE(words[i], i == family / sizeof(*words) ? 4ull << family % sizeof(*words) * 8 : 0);
}

/* How a flow was found. */
enum weir_flow_found {
	WEIR_FLOW_NONE, /* no entry is available */
	WEIR_FLOW_FOUND,
	WEIR_FLOW_COUNTED,  /* its first connection is, in s->counted_step, but in no total */
	WEIR_FLOW_UNSOUGHT, /* to be looked for */
};

/* The entry with our first connection has gone to another CPU: take the connection out, unless that has done so, and
 * counted it as evicted.
 */
__noinline int weir_uncount_opening(struct weir_scratch *s, struct weir_connection_flow *flow, __u64 making)
{
	__u32 slot = WEIR_CONNECTION_OWNER_SLOT(making), class;
	struct weir_connection_total *total = weir_total_of(slot);

	WEIR_GLOBAL(CONNECTIONS, s && flow && total, 0);
	class = weir_first_class(s);
	if (!weir_subtract_from_cell(flow, WEIR_CONNECTION_CELL(s->counted_step, making >> 32), class, 1) &&
	    weir_change_total(s, total, class, s->counted_step, 1))
		total->counts.evicted--;
	return 0;
}

/*
 * Make the flow of s->view the owner of the entry at the way that has its tag. Another CPU may take over from us at any
 * moment, for this flow or for the next one. Its turn is later than ours, so we then neither empty its cells nor become
 * the owner.
 *
 * With `counts_first`, count the flow's first connection before the entry is the flow's. So none is counted before it,
 * and each that comes later sees it: it needs no sum. It is counted if the owner has our part and the cell is empty.
 * Else the cell belongs to a CPU that is about to undo what it added, or to a later step.
 */
static __always_inline enum weir_flow_found weir_take_over_flow(struct weir_scratch *s,
								struct weir_connection_flow *flow, const __u32 *tag,
								const struct weir_rule *rule, __u32 class,
								bool counts_first)
{
	__u64 *figures = (__u64 *)&flow->opened /* and max */, counted = 0, former = 0, opened, making, owner, *cell;
	__u32 part = rule->flows_slot | WEIR_CONNECTION_USES_CLASS(class);

	making = weir_begin_turn(s, flow, tag, part, &former);
	if (!making)
		return WEIR_FLOW_NONE;
	if (former & WEIR_CONNECTION_USES_CLASSES)
		weir_drain_flow(s, flow, former, making >> 32);
	weir_turn_steps(s);
	s->counted_step = s->connection_clock[class].bucket;
	cell = weir_step_cell(flow->cell, class, s->counted_step);
	counts_first = counts_first && !READ_ONCE(*cell) &&
		       !(((__u32)making ^ part) & (part | WEIR_CONNECTION_OWNER_SLOT(~0u)));
	opened = READ_ONCE(*figures);
	weir_order(s);
	if (READ_ONCE(flow->owner) != making)
		return WEIR_FLOW_NONE;
	if (making & WEIR_CONNECTION_USES_COUNTS)
		weir_clear_flow(s, flow, making);
	weir_note_flow_key(s, &flow->key, rule);
	if (counts_first &&
	    !__sync_val_compare_and_swap(cell, 0, WEIR_CONNECTION_CELL(s->counted_step, making >> 32) | 1))
		counted = WEIR_FIRST_FIGURES;
	if (opened != counted)
		__sync_val_compare_and_swap(figures, opened, counted);
	owner = WEIR_CONNECTION_OWNER(part, WEIR_CONNECTION_MARK(s->view.flow.tag, making >> 32));
	s->counted_tag = owner >> 32;
	if (__sync_val_compare_and_swap(&flow->owner, making, owner) == making)
		return counted ? WEIR_FLOW_COUNTED : WEIR_FLOW_FOUND;
	if (counted)
		weir_uncount_opening(s, flow, making);
	return WEIR_FLOW_NONE;
}

/* The same for an entry that has never had an owner. This is its first turn: there is nothing to drain or to clear, and
 * no rightful owner whom a look at the tag would have to spare. NONE: another CPU has begun to make it, or taken it
 * over.
 */
static __always_inline enum weir_flow_found weir_make_first_owner(struct weir_scratch *s,
								  struct weir_connection_flow *flow,
								  const struct weir_rule *rule, __u32 class)
{
	const __u32 part = rule->flows_slot | WEIR_CONNECTION_USES_CLASS(class);
	const __u64 making = WEIR_CONNECTION_OWNER(part, 1);
	enum weir_flow_found found = WEIR_FLOW_FOUND;
	__u64 *cell;

	if (__sync_val_compare_and_swap(&flow->owner, 0, making))
		return WEIR_FLOW_NONE;
	weir_note_flow_key(s, &flow->key, rule);
	weir_turn_steps(s);
	s->counted_step = s->connection_clock[class].bucket;
	cell = weir_step_cell(flow->cell, class, s->counted_step);
	if (!__sync_val_compare_and_swap(cell, 0, WEIR_CONNECTION_CELL(s->counted_step, 1) | 1)) {
		found = WEIR_FLOW_COUNTED;
		__sync_val_compare_and_swap((__u64 *)&flow->opened, 0, WEIR_FIRST_FIGURES);
	}
	s->counted_tag = WEIR_CONNECTION_MARK(s->view.flow.tag, 1);
	if (__sync_val_compare_and_swap(&flow->owner, making, WEIR_CONNECTION_OWNER(part, s->counted_tag)) == making)
		return found;
	if (found == WEIR_FLOW_COUNTED)
		weir_uncount_opening(s, flow, making);
	return WEIR_FLOW_NONE;
}

/* ---- finding or making an entry ---- */

/* Insert the flow of s->view, after weir_take_free_way() has returned `way`. Returns its way, or one beyond the last;
 * with WEIR_WAY_IS_NEW if the caller must take the way over. (That is not done here, because the kernel allows only
 * eight nested calls.)
 */
__noinline __u32 weir_insert_connection_flow(struct weir_scratch *s, struct weir_flow_set *set, __u32 way)
{
	WEIR_GLOBAL(CONNECTIONS, s && set, WEIR_FLOW_WAYS);
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u32 tag = s->view.flow.tag;

		if (attempt || !(way & WEIR_WAY_IS_NEW))
			way = weir_look_in_order(s, set, tag);
		if (way == (WEIR_FLOW_WAYS | WEIR_WAY_IS_NEW))
			way = weir_choose_flow(set, s->place.latest, weir_keep_step(weir_now_ns(s))) | WEIR_WAY_IS_NEW;
		FORGET(s->forgotten, way);
		if (!(way & WEIR_WAY_IS_NEW) || weir_take_way(s, set, tag, way))
			return way;
	}
	return WEIR_FLOW_WAYS;
}

/* Wait until the owner of an entry has this tag, and return it. Until then, another CPU is making the entry, or has
 * stalled. (Not in line, because the verifier would go through the loop for every way of a set.)
 */
__noinline __u64 weir_await_owner(const struct weir_connection_flow *flow, __u32 tag)
{
	__u64 owner, until_ns;

	WEIR_GLOBAL(CONNECTIONS, flow, 0);
	owner = READ_ONCE(flow->owner);
	until_ns = bpf_ktime_get_ns() + WEIR_OWNER_WAIT_NS;
#pragma nounroll
	for (int look = 0; look < WEIR_OWNER_LOOKS && weir_owner_differs(owner, tag); look++) {
		if (bpf_ktime_get_ns() > until_ns)
			break;
		owner = READ_ONCE(flow->owner);
	}
	return owner;
}

/* Find the packet's flow among those with connections. An owner that is only a turn is no owner. */
static __always_inline struct weir_flow_id weir_connection_flow_id(__u64 hash)
{
	struct weir_flow_id id = weir_shared_id(hash, config.sizes[WEIR_TABLE_CONNECTION_FLOWS]);

	if (!(id.tag & ~WEIR_CONNECTION_CHECK))
		id.tag |= WEIR_CONNECTION_CHECK + 1;
	return id;
}

/* This packet's flow, whose cells contain s->counted_tag. NULL: it has no entry. */
static __always_inline struct weir_connection_flow *weir_find_connection_flow(struct weir_scratch *s,
									      const struct weir_rule *rule)
{
	struct weir_connection_flow_set *set;
	struct weir_connection_flow *flow;
	struct weir_flow_id id;
	__u64 owner;

	s->counted_tag = WEIR_CONNECTION_LONE_TAG;
	if (!rule->key_fields)
		return weir_lone_flow(rule->flows_slot);
	id = weir_connection_flow_id(weir_hash_key(s, rule->place));
	set = weir_connection_flow_set(id.set);
	if (!set)
		return NULL;
	flow = WEIR_ELEMENT(set->flow, weir_way_of(&set->flows, id.tag));
	if (!flow)
		return NULL;
	owner = READ_ONCE(flow->owner);
	s->counted_tag = owner >> 32;
	return weir_owner_differs(owner, id.tag) ? NULL : flow;
}

#define WEIR_GET_IMPATIENT 1u
#define WEIR_GET_COUNTS_FIRST 2u

/* Find this packet's flow, or make its entry; s->counted_flow and s->counted_tag then name it. When impatient, take
 * over an entry that another CPU has not finished. If asked to, count the first connection of an entry that is made.
 */
__noinline int weir_get_connection_flow(struct weir_scratch *s, __u32 place, __u32 how)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_flow_set *set;
	struct weir_connection_flow *flow;
	__u32 way, tag, class;
	bool is_fresh = false, takes;
	__u64 owner;

	WEIR_GLOBAL(CONNECTIONS, s, WEIR_FLOW_NONE);
	if (!rule->key_fields) {
		s->counted_tag = WEIR_CONNECTION_LONE_TAG;
		s->counted_flow = WEIR_CONNECTION_LONE | rule->flows_slot;
		return WEIR_FLOW_FOUND;
	}
	s->view.flow = weir_connection_flow_id(weir_flow_hash(s, rule));
	set = weir_connection_flow_set(s->view.flow.set);
	if (!set)
		return WEIR_FLOW_NONE;
	tag = s->view.flow.tag;
	way = weir_take_free_way(s, &set->flows, tag, &is_fresh);
	takes = is_fresh;
	if (way >= WEIR_FLOW_WAYS) {
		way = weir_insert_connection_flow(s, &set->flows, way);
		takes = way & WEIR_WAY_IS_NEW;
		way = WEIR_WAY(way);
	}
	OPAQUE(way);
	if (way >= WEIR_FLOW_WAYS)
		return WEIR_FLOW_NONE;
	s->counted_flow = s->view.flow.set * 8 + way;
	flow = &set->flow[way];
	OPAQUE(flow); /* else clang computes the address of each field again */
	class = weir_first_class(s);
	if (takes) {
		WRITE_ONCE(set->flows.keep[way],
			   how & WEIR_GET_COUNTS_FIRST ? weir_flow_end(s, class) : weir_step_after(s->tick_ns));
	} else {
		owner = READ_ONCE(flow->owner);
		if (unlikely(weir_owner_differs(owner, tag)))
			owner = weir_await_owner(flow, tag);
		takes = how & WEIR_GET_IMPATIENT && weir_owner_differs(owner, tag);
	}
	if (takes) {
		if (is_fresh && how & WEIR_GET_COUNTS_FIRST &&
		    weir_make_first_owner(s, flow, rule, class) == WEIR_FLOW_COUNTED)
			return WEIR_FLOW_COUNTED;
		if (weir_take_over_flow(s, flow, &set->flows.tag[way], rule, class, how & WEIR_GET_COUNTS_FIRST) ==
		    WEIR_FLOW_COUNTED)
			return WEIR_FLOW_COUNTED;
		owner = READ_ONCE(flow->owner);
	}
	/* Turn 0 belongs to no flow, so counting in fails, and the packet is evaluated again. */
	s->counted_tag = weir_owner_differs(owner, tag) ? tag & ~(__u32)WEIR_CONNECTION_CHECK : owner >> 32;
	return WEIR_FLOW_FOUND;
}

/* ---- counting a connection in, and out ---- */

/* Now that the flow has a connection of this class, raise the time until which it may have connections, in its set. In
 * seconds, so that it is seldom written.
 */
static __always_inline void weir_extend_flow(struct weir_scratch *s, __u32 number, __u32 class)
{
	struct weir_connection_flow_set *set = weir_connection_flow_set(number / 8);
	__u32 *keep = set ? WEIR_ELEMENT(set->flows.keep, number & 7) : NULL, over, left, now;

	if (!keep)
		return;
	over = weir_flow_end(s, class);
	now = weir_keep_step(weir_now_ns(s));
	left = (READ_ONCE(*keep) - now) & WEIR_KEEP_STEP_MASK;
	if (left < ((over - now) & WEIR_KEEP_STEP_MASK) || left > WEIR_KEEP_STEPS_MAX)
		WRITE_ONCE(*keep, over);
}

/* A flow without connections may be evicted before any other. */
static __always_inline void weir_release_flow(struct weir_scratch *s, struct weir_connection_flow *flow, __u32 number,
					      __u32 tag)
{
	struct weir_connection_flow_set *set;
	__u32 *keep, old;

	if (weir_sum_open(s, flow, tag))
		return;
	set = weir_connection_flow_set(number / 8);
	keep = set ? WEIR_ELEMENT(set->flows.keep, number & 7) : NULL;
	if (!keep)
		return;
	old = READ_ONCE(*keep);
	WRITE_ONCE(*keep, weir_step_before(s));
	/* Another CPU may have counted one in since; it adds first, and then writes the time. */
	weir_fence(s);
	if (weir_sum_open(s, flow, tag))
		WRITE_ONCE(*keep, old);
}

/* Count a connection in, in the flow s->counted_flow and its rule's total. False: evaluate again. */
__noinline int weir_count_in(struct weir_scratch *s, __u32 slot, __u32 class, __u32 step)
{
	__u32 number;

	WEIR_GLOBAL(CONNECTIONS, s, false);
	number = s->counted_flow;
	if (!weir_add_to_cell(weir_flow_by_number(number), s->counted_tag, class, step))
		return false;
	if (!weir_is_lone_flow(number)) {
		weir_change_total(s, weir_total_of(slot), class, step, 1);
		weir_extend_flow(s, number, class);
	}
	return true;
}

/* Count a connection out, or a reservation. False: its flow was evicted, or its step is over. */
__noinline int weir_count_out(struct weir_scratch *s, __u32 number, __u32 tag, __u32 class, __u32 step)
{
	struct weir_connection_flow *flow = weir_flow_by_number(number);
	__u32 slot;

	WEIR_GLOBAL(CONNECTIONS, s && flow, false);
	slot = WEIR_CONNECTION_OWNER_SLOT(READ_ONCE(flow->owner));
	if (!weir_is_owner(flow, tag) || !weir_remove_from_cell(flow, tag, class, step))
		return false;
	if (weir_is_lone_flow(number))
		return true;
	weir_change_total(s, weir_total_of(slot), class, step, -1ull);
	weir_release_flow(s, flow, number, tag);
	return true;
}

#endif
