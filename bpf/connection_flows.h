/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries of flows that have connections: finding, making and taking over one, and counting connections in and out. A
 * resource without a flow key has one flow, which is "lone".
 *
 * An entry belongs to the flow that its `owner` names: a rule's slot, the flow's tag, and the entry's turn, which is
 * one more each time the entry changes hands. Cells and words of connections carry the turn, so that what a former
 * owner left behind does not count. (docs/connections-internals.md, tests/model/connections.pml)
 */
#ifndef WEIR_CONNECTION_FLOWS_H
#define WEIR_CONNECTION_FLOWS_H

#include "connection_totals.h"
#include "flow_set.h"

/* How long to wait for another CPU that is making a flow's entry, which takes it less. True time, in replay as well. */
#define WEIR_OWNER_WAIT_NS 2000
#define WEIR_OWNER_LOOKS 256 /* for the verifier; each reads the clock */

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

static __always_inline struct weir_connection_flow *weir_flow_by_number(__u32 number)
{
	struct weir_connection_flow_set *set;
	__u32 index = number / 8;

	if (weir_is_lone_flow(number))
		return weir_lone_flow(number & (WEIR_CONNECTION_LONE - 1));
	set = bpf_map_lookup_elem(&connection_flows, &index);
	return set ? WEIR_ELEMENT(set->flow, number & 7) : NULL;
}

/* Where the set says until when a flow may have connections. */
static __always_inline __u32 *weir_until_s_by_number(__u32 number)
{
	struct weir_connection_flow_set *set;
	__u32 index = number / 8;

	set = bpf_map_lookup_elem(&connection_flows, &index);
	return set ? WEIR_ELEMENT(set->until_s, number & 7) : NULL;
}

/* ---- who leaves a full set ---- */

/* The bits in which an entry's owner differs from this tag, those of the turn apart. 0: the tag's flow owns the entry.
 * Otherwise the entry is being made; or a CPU that stalled has only now made it, for another flow.
 */
static __always_inline __u64 weir_owner_differs(__u64 owner, __u32 tag)
{
	return (owner >> 32 ^ tag) & ~WEIR_CONNECTION_CHECK;
}

/* The earliest second by which a way's connections are all over, and behind it, in 3 bits, the way. Ways in the mask
 * `unmade` last for a second more.
 */
static __always_inline __u64 weir_earliest_way(const struct weir_connection_flow_set *set, __u32 unmade,
					       __u32 second_more)
{
	__u64 earliest = ~0ull >> 1;

#pragma unroll
	for (__u32 way = 0; way < WEIR_CONNECTION_FLOW_WAYS; way++) {
		__u64 until_s = READ_ONCE(set->until_s[way]);

		until_s = weir_greater(until_s, (__u64)second_more * (unmade >> way & 1));
		earliest = weir_lesser(until_s * 8 + way, earliest);
	}
	return earliest;
}

/*
 * The victim: the flow whose connections are over first. An entry that is being made still has its former owner's time.
 * It counts as lasting for a second more, as it will before it has an owner; otherwise two CPUs with a new flow each
 * would take the same way, and one flow would lose count.
 */
__noinline __u32 weir_choose_connection_flow(struct weir_scratch *s, const struct weir_connection_flow_set *set)
{
	const struct weir_connection_flow *flow;
	const __u32 *tag, *until_s;
	__u32 unmade = 0;
	__u64 earliest;

	WEIR_GLOBAL(CONNECTIONS, s && set, 0);
	/* Mostly the earliest is made: the others' owners, a line each, need not be fetched then. If it is made and
	 * still lasts as long as when it was chosen, it was made before that.
	 */
	earliest = weir_earliest_way(set, 0, 0);
	flow = WEIR_ELEMENT(set->flow, earliest & 7);
	tag = WEIR_ELEMENT(set->tag, earliest & 7);
	if (!flow || !tag)
		return 0;
	weir_order(s);
	if (likely(!weir_owner_differs(READ_ONCE(flow->owner), READ_ONCE(*tag)))) {
		weir_order(s);
		until_s = WEIR_ELEMENT(set->until_s, earliest & 7);
		if (until_s && READ_ONCE(*until_s) == earliest / 8)
			return earliest & 7;
	}
#pragma unroll
	for (__u32 i = 0; i < WEIR_CONNECTION_FLOW_WAYS; i++)
		unmade |= -weir_owner_differs(READ_ONCE(set->flow[i].owner), READ_ONCE(set->tag[i])) >> 63 << i;
	weir_order(s);
	return weir_earliest_way(set, unmade, weir_second_from_now(s)) & 7;
}

/* ---- taking over an entry ---- */

/* Take what turns before this one still count out of an entry's cells, and out of the former rule's total. Cells of
 * classes that the former owner has not used hold nothing. Returns how many connections there were.
 */
__noinline __u32 weir_drain_flow(struct weir_scratch *s, struct weir_connection_flow *flow, __u64 owner, __u32 turn)
{
	__u32 slot = WEIR_CONNECTION_OWNER_SLOT(owner), evicted = 0;

	WEIR_GLOBAL(CONNECTIONS, s && flow, 0);
#pragma nounroll
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES_COUNTED; class ++) {
		if (!(owner & WEIR_CONNECTION_USES_CLASS(class)))
			continue;
#pragma nounroll
		for (__u32 i = 0; i < WEIR_CONNECTION_CELLS; i++) {
			__u64 cell = weir_drain_cell(&flow->cell[class][i], turn);
			__u64 count = cell & WEIR_CONNECTION_COUNT_MASK;

			if (count && weir_change_total(s, slot, class, weir_cell_step(cell), -count))
				evicted += count;
			FORGET(s->forgotten, evicted);
		}
	}
	return evicted;
}

/* Clear the former owner's figures from an entry that we are making, and let it last for a second more. A CPU that took
 * over from us while we were stalled may have counted anew: so we look at the owner after each figure.
 */
__noinline int weir_clear_flow(struct weir_scratch *s, struct weir_connection_flow_set *set, __u32 way, __u64 making)
{
	struct weir_connection_flow *flow;
	__u32 *until_s, old_s;
	__u64 *figures, old;

	WEIR_GLOBAL(CONNECTIONS, s && set, 0);
	flow = WEIR_ELEMENT(set->flow, way);
	until_s = WEIR_ELEMENT(set->until_s, way);
	if (!flow || !until_s)
		return 0;
	figures = (__u64 *)&flow->opened; /* and max */
	old_s = READ_ONCE(*until_s);
	old = READ_ONCE(*figures);
	weir_order(s);
	if (READ_ONCE(flow->owner) == making) {
		__sync_val_compare_and_swap(until_s, old_s, weir_second_from_now(s));
		__sync_val_compare_and_swap(figures, old, 0);
	}
	if (!(making & WEIR_CONNECTION_USES_COUNTS))
		return 0;
	for (__u32 i = 0; i < sizeof(flow->counts) / sizeof(__u64); i++) {
		figures = (__u64 *)&flow->counts + i;
		old = READ_ONCE(*figures);
		weir_order(s);
		if (old && READ_ONCE(flow->owner) == making)
			__sync_val_compare_and_swap(figures, old, 0);
	}
	return 0;
}

/* Become the only one who makes this entry: its owner is then a turn without a tag, so that nobody counts there. The
 * rest stays: a CPU that takes over from us must know whose cells these were, and which. Returns the new owner word, or
 * 0: the entry is already of the flow of s->view, or no longer its own.
 */
static __always_inline __u64 weir_begin_turn(struct weir_scratch *s, struct weir_connection_flow *flow,
					     const __u32 *tag)
{
	for (int attempt = 0; attempt < WEIR_DRAIN_ATTEMPTS; attempt++) {
		__u64 owner = READ_ONCE(flow->owner);
		__u32 turn;

		/* The tag is read after the owner: if it is ours, this owner came before us. */
		weir_order(s);
		if (READ_ONCE(*tag) != s->view.flow.tag || !weir_owner_differs(owner, s->view.flow.tag))
			return 0;
		turn = ((owner >> 32) + 1) & WEIR_CONNECTION_CHECK;
		turn += !turn; /* turn 0 is nobody's */
		if (__sync_val_compare_and_swap(&flow->owner, owner, WEIR_CONNECTION_OWNER((__u32)owner, turn)) ==
		    owner)
			return WEIR_CONNECTION_OWNER((__u32)owner, turn);
	}
	return 0;
}

/*
 * Make the flow of s->view the owner of the way that has its tag. Another CPU may take over from us at any moment, for
 * this flow or for the next: its turn is later, so we neither empty its cells nor become the owner.
 */
__noinline int weir_take_over_flow(struct weir_scratch *s, struct weir_connection_flow_set *set, __u32 way, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_total *total;
	struct weir_connection_flow *flow;
	__u32 evicted, slot, turn, part, *tag;
	__u64 owner, making;

	WEIR_GLOBAL(CONNECTIONS, s && set, 0);
	flow = WEIR_ELEMENT(set->flow, way);
	tag = WEIR_ELEMENT(set->tag, way);
	if (!flow || !tag)
		return 0;
	making = weir_begin_turn(s, flow, tag);
	if (!making)
		return 0;
	slot = WEIR_CONNECTION_OWNER_SLOT(making);
	turn = making >> 32;
	evicted = weir_drain_flow(s, flow, making, turn);
	total = weir_total_of(slot);
	if (evicted && total) {
		total->counts.evicted += evicted;
		weir_count_eviction(slot);
	}
	if (READ_ONCE(flow->owner) != making)
		return 0;
	weir_clear_flow(s, set, way, making);
	weir_make_key(&flow->key, rule, &s->packet);
	/* It is about to count its first connection. */
	part = WEIR_CONNECTION_USES_CLASS(weir_protocol(&s->packet) == IPPROTO_TCP ? WEIR_CONNECTION_CLASS_HALF
										   : WEIR_CONNECTION_CLASS_OTHER);
	owner = WEIR_CONNECTION_OWNER(rule->slot | part, WEIR_CONNECTION_MARK(s->view.flow.tag, turn));
	__sync_val_compare_and_swap(&flow->owner, making, owner);
	return 0;
}

/* ---- finding or making an entry ---- */

static __always_inline __u32 weir_connection_flow_victim(struct weir_scratch *s, void *set, __u64 latest, void *context)
{
	return weir_choose_connection_flow(s, set);
}

/* Insert the flow of s->view. Returns its way, or one beyond the last; and WEIR_WAY_IS_NEW if the caller is to take it
 * over. (Not here, within a call within a call: the kernel allows eight.)
 */
__noinline __u32 weir_insert_connection_flow(struct weir_scratch *s, struct weir_connection_flow_set *set)
{
	WEIR_GLOBAL(CONNECTIONS, s && set, WEIR_CONNECTION_FLOW_WAYS);
	return weir_insert_tag(s, set, WEIR_CONNECTION_FLOW_WAYS, s->view.flow.tag, weir_connection_flow_victim, NULL);
}

/* The owner of an entry, once it has this tag: while it has not, another CPU is making the entry, or was stalled. (Not
 * in line: the verifier would go through the loop for every way of a set.)
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

/* Which flow is the packet of, among those with connections? An owner that is but a turn is none. */
static __always_inline struct weir_flow_id weir_connection_flow_id(__u64 hash)
{
	struct weir_flow_id id = weir_shared_id(hash, config.sizes[WEIR_TABLE_CONNECTION_FLOWS]);

	if (!(id.tag & ~WEIR_CONNECTION_CHECK))
		id.tag |= WEIR_CONNECTION_CHECK + 1;
	return id;
}

/* This packet's flow, whose cells bear s->counted_tag; NULL: it has none. */
static __always_inline struct weir_connection_flow *weir_find_connection_flow(struct weir_scratch *s,
									      const struct weir_rule *rule)
{
	struct weir_connection_flow_set *set;
	struct weir_connection_flow *flow;
	struct weir_flow_id id;
	__u64 owner;

	s->counted_tag = WEIR_CONNECTION_LONE_TAG;
	if (!rule->key_fields)
		return weir_lone_flow(rule->slot);
	id = weir_connection_flow_id(weir_hash_key(s, rule->place));
	set = bpf_map_lookup_elem(&connection_flows, &id.set);
	if (!set)
		return NULL;
	flow = WEIR_ELEMENT(set->flow, weir_find_tag(set, WEIR_CONNECTION_FLOW_WAYS, id.tag));
	if (!flow)
		return NULL;
	owner = READ_ONCE(flow->owner);
	s->counted_tag = owner >> 32;
	return weir_owner_differs(owner, id.tag) ? NULL : flow;
}

/* Find this packet's flow, or make its entry; s->counted_flow and s->counted_tag then name it. An impatient caller also
 * takes over an entry that another CPU has not finished. False: there is none to be had.
 */
__noinline int weir_get_connection_flow(struct weir_scratch *s, __u32 place, __u32 is_impatient)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_flow_set *set;
	struct weir_connection_flow *flow;
	__u32 index, way, tag;
	__u64 owner;

	WEIR_GLOBAL(CONNECTIONS, s, false);
	s->counted_tag = WEIR_CONNECTION_LONE_TAG;
	s->counted_flow = WEIR_CONNECTION_LONE | rule->slot;
	if (!rule->key_fields)
		return true;
	s->view.flow = weir_connection_flow_id(weir_flow_hash(s, rule));
	index = s->view.flow.set;
	set = bpf_map_lookup_elem(&connection_flows, &index);
	if (!set)
		return false;
	way = weir_find_tag(set, WEIR_CONNECTION_FLOW_WAYS, s->view.flow.tag);
	if (way == WEIR_CONNECTION_FLOW_WAYS) {
		way = weir_insert_connection_flow(s, set);
		if (way & WEIR_WAY_IS_NEW)
			weir_take_over_flow(s, set, WEIR_WAY(way), place);
		way = WEIR_WAY(way);
	}
	s->counted_flow = index * 8 + way;
	flow = WEIR_ELEMENT(set->flow, way);
	if (!flow)
		return false;
	tag = s->view.flow.tag;
	owner = READ_ONCE(flow->owner);
	if (unlikely(weir_owner_differs(owner, tag)))
		owner = weir_await_owner(flow, tag);
	if (is_impatient && weir_owner_differs(owner, tag)) {
		weir_take_over_flow(s, set, way, place);
		owner = READ_ONCE(flow->owner);
	}
	/* Turn 0 is nobody's: counting in fails, and the packet is judged again. */
	s->counted_tag = weir_owner_differs(owner, tag) ? tag & ~(__u32)WEIR_CONNECTION_CHECK : owner >> 32;
	return true;
}

/* ---- counting a connection in, and out ---- */

/* Write until when the flow may have connections, now that it has one of this class. */
static __always_inline void weir_extend_flow(struct weir_scratch *s, __u32 number, __u32 class)
{
	__u32 second = weir_until_s(s, class), *until_s = weir_until_s_by_number(number);

	if (until_s && READ_ONCE(*until_s) < second)
		WRITE_ONCE(*until_s, second);
}

/* A flow that has no connection left may go before any other. */
static __always_inline void weir_release_flow(struct weir_scratch *s, struct weir_connection_flow *flow, __u32 number,
					      __u32 tag)
{
	__u32 *until_s, old_s;

	if (weir_sum_open(s, flow, tag))
		return;
	until_s = weir_until_s_by_number(number);
	if (!until_s)
		return;
	old_s = READ_ONCE(*until_s);
	WRITE_ONCE(*until_s, 0);
	/* Another CPU may have counted one in since: it adds first, and then writes the time. */
	weir_fence(s);
	if (weir_sum_open(s, flow, tag))
		WRITE_ONCE(*until_s, old_s);
}

/* Count a connection in, in the flow s->counted_flow and its rule's total. False: judge again. */
__noinline int weir_count_in(struct weir_scratch *s, __u32 slot, __u32 class, __u32 step)
{
	__u32 number;

	WEIR_GLOBAL(CONNECTIONS, s, false);
	number = s->counted_flow;
	if (!weir_add_to_cell(weir_flow_by_number(number), s->counted_tag, class, step))
		return false;
	if (!weir_is_lone_flow(number)) {
		weir_change_total(s, slot, class, step, 1);
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
	weir_change_total(s, slot, class, step, -1ull);
	weir_release_flow(s, flow, number, tag);
	return true;
}

#endif
