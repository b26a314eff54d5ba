/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many connections has a flow open? All CPUs share the answer: cells of connections that were last heard of in
 * one step of time, of each class of states. Who looks adds up the cells that are not over; so a connection that fell
 * silent drops out by itself, when its step is over, and no sweep is needed. (docs/connections.md)
 *
 * A cell names its step and its flow, and changes by compare-and-swap. So whoever takes a connection out after its step
 * is over, or after its flow was evicted, finds another cell there and changes nothing: a count neither leaks nor goes
 * below zero. Who adds a connection adds it first and then looks at the sum, as everybody does: the sum that is not
 * above the threshold was never too small. A connection that moves to another cell is added there first.
 *
 * Each rule has its connections counted as a whole, too: for the figures, or, where the resource has no flow key,
 * as its only flow.
 */
#ifndef WEIR_CONNECTION_FLOWS_H
#define WEIR_CONNECTION_FLOWS_H

#include "shared.h"

/* Tries to change one cell; another CPU got in between each time. More than a few have not been seen. */
#define WEIR_CELL_ATTEMPTS 16
#define WEIR_DRAIN_ATTEMPTS 4 /* only who had already looked at the owner can get in between */

/* Steps that another CPU's clock may be ahead of ours, should we have been stalled: what it counts then counts. Of the
 * shortest time-out they are eleven minutes. What lies farther ahead is left from when the numbers were here last.
 */
#define WEIR_STEPS_AHEAD (1u << 12)

/* How long to wait, each time, for another CPU that makes a flow's place, which takes it less. True time, in replay as
 * well.
 */
#define WEIR_OWNER_WAIT_NS 2000
#define WEIR_OWNER_LOOKS 256 /* for the verifier; each reads the clock */

/* ---- time ---- */

/* For connections time does not go back. */
static __always_inline __u64 weir_connections_now_ns(struct weir_work *w)
{
	__u64 now_ns = weir_now_ns(w);

	if (now_ns > w->connections_ns)
		w->connections_ns = now_ns;
	return w->connections_ns;
}

/* The present step of a class (a constant). */
static __always_inline __u64 weir_connection_step(struct weir_work *w, __u32 class)
{
	struct weir_clock *clk;
	__u64 now_ns;

	OPAQUE(class);
	class &= WEIR_CONNECTION_CLASSES - 1;
	clk = &w->connection_clock[class];
	/* With the length of a jiffy asked for, too, clang 14 takes 8 bytes less of the stack. */
	if (config.tick_ns && weir_clock_holds(clk))
		return clk->bucket;
	now_ns = weir_connections_now_ns(w);
	if (now_ns >= clk->end_ns) {
		__u64 step_ns = config.connection_step_ns[class];

		clk->bucket = now_ns / step_ns;
		clk->start_ns = clk->bucket * step_ns;
		clk->end_ns = clk->start_ns + step_ns;
		if (config.tick_ns)
			clk->until_jiffies = w->jiffies + (clk->end_ns - now_ns) / config.tick_ns;
	}
	return clk->bucket;
}

/* ---- cells ---- */

static __always_inline __u64 *weir_connection_cell(struct weir_connection_flow *flow, __u32 class, __u32 step)
{
	__u32 index = class * WEIR_CONNECTION_CELLS + (step & (WEIR_CONNECTION_CELLS - 1));

	OPAQUE(index);
	if (index >= WEIR_CONNECTION_CLASSES_COUNTED * WEIR_CONNECTION_CELLS)
		index = 0;
	return &flow->cell[0][0] + index;
}

/* Of a tag at least the ten bits are known that words and cells carry. */
static __always_inline bool weir_is_owner(const struct weir_connection_flow *flow, __u32 tag)
{
	return !((READ_ONCE(flow->owner) >> 32 ^ tag) & WEIR_CONNECTION_CHECK);
}

/* Is a cell of a step later than `step`, though not by the ring's length? */
static __always_inline bool weir_cell_is_later(__u64 cell, __u32 step)
{
	return (((__u32)(cell >> WEIR_CONNECTION_CELL_STEP_SHIFT) - step - 1) & WEIR_CONNECTION_CELL_STEP_MASK) <
	       WEIR_STEPS_AHEAD;
}

/* Does a cell still count for a flow that was evicted? Who added that is just taking it out again. */
static __always_inline bool weir_cell_is_being_emptied(__u64 cell, __u64 fresh)
{
	__u64 other = cell ^ fresh;

	return cell & WEIR_CONNECTION_COUNT_MASK && other >> WEIR_CONNECTION_COUNT_BITS & WEIR_CONNECTION_CHECK &&
	       !(other >> WEIR_CONNECTION_CELL_STEP_SHIFT);
}

/* `count` fewer. False: they had dropped out already. */
static __always_inline bool weir_cell_take(struct weir_connection_flow *flow, __u64 cell_word, __u32 class, __u32 count)
{
	__u64 *cell = weir_connection_cell(flow, class, cell_word >> WEIR_CONNECTION_CELL_STEP_SHIFT);

	for (int attempt = 0; attempt < WEIR_CELL_ATTEMPTS; attempt++) {
		__u64 old = READ_ONCE(*cell);

		if ((old ^ cell_word) >> WEIR_CONNECTION_COUNT_BITS || (old & WEIR_CONNECTION_COUNT_MASK) < count)
			return false;
		if (__sync_val_compare_and_swap(cell, old, old - count) == old)
			return true;
	}
	return false;
}

__noinline int weir_cell_remove(struct weir_connection_flow *flow, __u64 cell_word, __u32 class, __u32 count)
{
	return flow && weir_cell_take(flow, cell_word, class, count);
}

/* One more connection in a step. False: the flow has lost its place meanwhile, or the step is over. */
__noinline int weir_cell_add(struct weir_connection_flow *flow, __u32 tag, __u32 class, __u32 step)
{
	__u64 fresh = WEIR_CONNECTION_CELL(step, tag);
	bool is_added = false;
	__u64 *cell;

	if (!flow)
		return false;
	cell = weir_connection_cell(flow, class, step);
	for (int attempt = 0; attempt < WEIR_CELL_ATTEMPTS && !is_added; attempt++) {
		__u64 old = READ_ONCE(*cell), count = 0;

		if (READ_ONCE(flow->owner) >> 32 != tag)
			return false;
		if (!((old ^ fresh) >> WEIR_CONNECTION_COUNT_BITS))
			count = old & WEIR_CONNECTION_COUNT_MASK;
		else if (weir_cell_is_being_emptied(old, fresh) && attempt < WEIR_CELL_ATTEMPTS / 2)
			continue;
		else if (old && weir_cell_is_later(old, step))
			return false;
		is_added = __sync_val_compare_and_swap(cell, old, fresh | (count + 1)) == old;
	}
	if (!is_added || READ_ONCE(flow->owner) >> 32 == tag)
		return is_added;
	/* Who evicted the flow takes it out here and there, if we do not: then it was counted, and evicted. */
	return !weir_cell_take(flow, fresh, class, 1);
}

/*
 * Connections of a flow that are not over, in all classes. They move while we add them up, and none may be missed: so
 * half-open ones are read before open ones, and of a class the oldest step first, as a connection that is heard of
 * never moves the other way (weir_step_to_move_to). One that is opened once more does, but is judged by a sum
 * that we are in. Who is found in both cells counts twice. (Should we be stalled for a whole step meanwhile, all this
 * does not hold: the cell that we read first is then the one that they move to.)
 */
__noinline __u32 weir_count_open(struct weir_work *w, const struct weir_connection_flow *flow, __u32 tag)
{
	__u32 open = 0;

	if (!w || !flow)
		return 0;
#pragma nounroll /* three copies of it would take more stack */
	for (__u32 class = 0; class < WEIR_CONNECTION_CLASSES_COUNTED; class ++) {
		__u32 present = weir_connection_step(w, class), ahead = present + WEIR_STEPS_AHEAD;

#pragma unroll
		for (__u32 i = 0; i < WEIR_CONNECTION_CELLS; i++) {
			__u32 oldest_first = (present + 2 + i) & (WEIR_CONNECTION_CELLS - 1);
			__u64 cell = READ_ONCE(flow->cell[class][oldest_first]);
			__u32 age = ahead - (__u32)(cell >> WEIR_CONNECTION_CELL_STEP_SHIFT);
			bool is_own = !((cell >> WEIR_CONNECTION_COUNT_BITS ^ tag) & WEIR_CONNECTION_CHECK);

			weir_order(w); /* before the next cell is read: the order is the argument */
			if (is_own &&
			    (age & WEIR_CONNECTION_CELL_STEP_MASK) <= WEIR_CONNECTION_STEPS + WEIR_STEPS_AHEAD)
				open += cell & WEIR_CONNECTION_COUNT_MASK;
		}
	}
	return open;
}

/* ---- finding them ---- */

static __always_inline struct weir_connection_flow *weir_connection_total(__u32 slot)
{
	return bpf_map_lookup_elem(&connection_totals, &slot);
}

static __always_inline struct weir_connection_flow *weir_flow_at(struct weir_connection_flow_set *set, __u64 way)
{
	struct weir_connection_flow *flow;

	OPAQUE(way);
	if (way >= WEIR_CONNECTION_FLOW_WAYS)
		return NULL;
	flow = &set->flow[way];
	OPAQUE(flow); /* made where its bound was tested */
	return flow;
}

static __always_inline bool weir_is_lone_flow(__u32 number)
{
	return number & WEIR_CONNECTION_LONE;
}

static __always_inline struct weir_connection_flow *weir_connection_flow(__u32 number)
{
	struct weir_connection_flow_set *set;
	__u32 index = number / 8;

	if (weir_is_lone_flow(number))
		return weir_connection_total(number & (WEIR_CONNECTION_LONE - 1));
	set = bpf_map_lookup_elem(&connection_flows, &index);
	return set ? weir_flow_at(set, number & 7) : NULL;
}

/* ---- a place for a flow ---- */

/* The bits of a tag in which the owner of a place differs: all but those of the turn are compared. */
static __always_inline __u64 weir_owner_differs(__u64 owner, __u32 tag)
{
	return (owner >> 32 ^ tag) & ~WEIR_CONNECTION_CHECK;
}

/* Is this the owner of a place that has this tag? Not while the place is being made; and not if a CPU that was stalled
 * while it made the place for another has only now done so. (Of the tag, 22 bits are compared.)
 */
static __always_inline bool weir_is_rightful(__u64 owner, __u32 tag)
{
	return !weir_owner_differs(owner, tag);
}

/* At least a second from now, as until_s says it. */
static __always_inline __u32 weir_second_more(struct weir_work *w)
{
	return weir_connections_now_ns(w) / WEIR_NSEC_PER_SEC + 2;
}

/* When those connections are over that are first to be, and behind it, in 3 bits, their way; of `unmade` ones, a bit
 * a way, in a second more.
 */
static __always_inline __u64 weir_earliest_way(const struct weir_connection_flow_set *set, __u32 unmade,
					       __u32 second_more)
{
	__u64 earliest = ~0ull >> 1;

#pragma unroll
	for (__u32 i = 0; i < WEIR_CONNECTION_FLOW_WAYS; i++) {
		__u64 until_s = READ_ONCE(set->until_s[i]);

		until_s = weir_greater(until_s, (__u64)second_more * (unmade >> i & 1));
		earliest = weir_lesser(until_s * 8 + i, earliest);
	}
	return earliest;
}

/*
 * The way of a flow that is to go: a free one, else the one whose connections are over first. A place that another CPU
 * is just making still has the time of the flow before: it is as good as one that lasts for a second more, as it does
 * when it is made. Else two CPUs with a new flow each would take the same place, and one flow would lose count.
 * Whoever makes a place says how long it lasts, and then becomes its owner.
 */
__noinline __u32 weir_connection_flow_victim(struct weir_work *w, struct weir_connection_flow_set *set)
{
	const struct weir_connection_flow *flow;
	__u32 way, made = 0;
	__u64 earliest;

	if (!w || !set)
		return 0;
	way = weir_shared_way(set->tag, WEIR_CONNECTION_FLOW_WAYS, 0);
	if (way < WEIR_CONNECTION_FLOW_WAYS)
		return way;
	/* Mostly it is made, and only its owner is looked at: the others' lines need not be fetched. If it is, and
	 * lasts as long as when it was chosen, it was made before.
	 */
	earliest = weir_earliest_way(set, 0, 0);
	way = earliest & 7;
	flow = weir_flow_at(set, way);
	OPAQUE(way);
	if (!flow || way >= WEIR_CONNECTION_FLOW_WAYS)
		return 0;
	weir_order(w);
	if (likely(weir_is_rightful(READ_ONCE(flow->owner), READ_ONCE(set->tag[way])))) {
		weir_order(w);
		if (READ_ONCE(set->until_s[way]) == earliest / 8)
			return way;
	}
#pragma unroll
	for (__u32 i = 0; i < WEIR_CONNECTION_FLOW_WAYS; i++)
		made |= (weir_owner_differs(READ_ONCE(set->flow[i].owner), READ_ONCE(set->tag[i])) - 1) >> 63 << i;
	weir_order(w);
	return weir_earliest_way(set, ~made, weir_second_more(w)) & 7;
}

/* Is a cell of a flow that had the place before this turn? */
static __always_inline bool weir_cell_is_left_over(__u64 cell, __u32 turn)
{
	__u32 age = (turn - (__u32)(cell >> WEIR_CONNECTION_COUNT_BITS)) & WEIR_CONNECTION_CHECK;

	return age && age <= WEIR_CONNECTION_CHECK / 2;
}

/* Empty a cell, unless it is of this turn or a later one: another CPU may have been faster. Returns what was in it. */
static __always_inline __u64 weir_cell_drain(__u64 *at, __u32 turn)
{
	for (int attempt = 0; attempt < WEIR_DRAIN_ATTEMPTS; attempt++) {
		__u64 cell = READ_ONCE(*at);

		if (!weir_cell_is_left_over(cell, turn))
			return 0;
		if (__sync_val_compare_and_swap(at, cell, 0) == cell)
			return cell;
	}
	return 0;
}

/* Take what flows of before this turn still count out of a place's cells, and out of the rule's. Returns how many. */
__noinline __u32 weir_empty_flow(struct weir_work *w, struct weir_connection_flow *flow, __u32 slot, __u32 turn)
{
	struct weir_connection_flow *total = weir_connection_total(slot);
	__u32 evicted = 0;

	if (!w || !flow)
		return 0;
	for (__u32 i = 0; i < WEIR_CONNECTION_CLASSES_COUNTED * WEIR_CONNECTION_CELLS; i++) {
		__u64 cell = weir_cell_drain(&flow->cell[0][0] + i, turn);
		__u32 count = cell & WEIR_CONNECTION_COUNT_MASK;

		if (!count || !total)
			continue;
		OPAQUE(total); /* else clang 19 adds to it before the test, which Linux 6.1 refuses */
		cell &= ~(WEIR_CONNECTION_CHECK << WEIR_CONNECTION_COUNT_BITS);
		cell |= (__u64)WEIR_CONNECTION_LONE_TAG << WEIR_CONNECTION_COUNT_BITS;
		/* In line: the stack is at its end here. */
		if (weir_cell_take(total, cell, i / WEIR_CONNECTION_CELLS, count))
			evicted += count;
	}
	return evicted;
}

/* Never zero: that is nobody's. */
static __always_inline __u32 weir_next_turn(__u64 owner)
{
	__u32 turn = ((owner >> 32) + 1) & WEIR_CONNECTION_CHECK;

	return turn ? turn : 1;
}

/* A place that is being made has nothing of the flow before, and lasts for a second more. Each by compare-and-swap, and
 * only if the place was still ours to make after it was read: another CPU that took over from us, as we were stalled,
 * may have counted anew.
 */
__noinline int weir_clear_place(struct weir_work *w, struct weir_connection_flow_set *set, __u32 way, __u64 making)
{
	struct weir_connection_flow *flow;
	__u32 until_s;

	if (!w || !set)
		return 0;
	flow = weir_flow_at(set, way);
	OPAQUE(way);
	if (!flow || way >= WEIR_CONNECTION_FLOW_WAYS)
		return 0;
	until_s = READ_ONCE(set->until_s[way]);
	weir_order(w);
	if (READ_ONCE(flow->owner) == making)
		__sync_val_compare_and_swap(&set->until_s[way], until_s, weir_second_more(w));
	for (__u32 i = 0; i < sizeof(flow->counts) / sizeof(__u64); i++) {
		__u64 *figure = (__u64 *)&flow->counts + i, old = READ_ONCE(*figure);

		weir_order(w);
		if (old && READ_ONCE(flow->owner) == making)
			__sync_val_compare_and_swap(figure, old, 0);
	}
	return 0;
}

/*
 * The flow of w->question becomes the owner of the place that has its tag. Meanwhile the owner is but a turn, and as it
 * has no tag nobody counts there. Another CPU may take over from us at any moment, for this flow or for the next: its
 * turn is later, so that we neither empty its cells nor become the owner.
 */
__noinline int weir_take_over_flow(struct weir_work *w, struct weir_connection_flow_set *set, __u32 way, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_flow *flow, *total;
	__u32 evicted, open, slot;
	__u64 owner, making;

	if (!w || !set)
		return 0;
	flow = weir_flow_at(set, way);
	OPAQUE(way);
	if (!flow || way >= WEIR_CONNECTION_FLOW_WAYS)
		return 0;
	owner = READ_ONCE(flow->owner);
	/* The tag is looked at after the owner: so this one came before. */
	weir_order(w);
	if (READ_ONCE(set->tag[way]) != w->question.place.tag || weir_is_rightful(owner, w->question.place.tag))
		return 0;
	slot = (__u32)owner;
	open = weir_count_open(w, flow, owner >> 32);
	/* The slot remains: whoever takes over from us is to know whose cells these were. */
	making = WEIR_CONNECTION_OWNER(slot, weir_next_turn(owner));
	if (__sync_val_compare_and_swap(&flow->owner, owner, making) != owner)
		return 0;
	evicted = weir_empty_flow(w, flow, slot, making >> 32);
	total = weir_connection_total(slot);
	if (open && total) {
		__sync_fetch_and_add(&total->counts.evicted, evicted < open ? evicted : open);
		weir_count_eviction(slot);
	}
	if (READ_ONCE(flow->owner) != making)
		return 0;
	weir_clear_place(w, set, way, making);
	weir_describe_key(&flow->key, rule, &w->packet);
	owner = WEIR_CONNECTION_OWNER(rule->slot, WEIR_CONNECTION_MARK(w->question.place.tag, making >> 32));
	__sync_val_compare_and_swap(&flow->owner, making, owner);
	return 0;
}

/* Make a place for the flow of w->question, unless another CPU just did. Returns its way, or beyond the last. */
__noinline __u32 weir_insert_connection_flow(struct weir_work *w, __u32 place)
{
	struct weir_connection_flow_set *set;
	__u32 index, way, tag;

	if (!w)
		return WEIR_CONNECTION_FLOW_WAYS;
	index = w->question.place.set;
	tag = w->question.place.tag;
	set = bpf_map_lookup_elem(&connection_flows, &index);
	if (!set)
		return WEIR_CONNECTION_FLOW_WAYS;
	for (int attempt = 0; attempt < WEIR_INSERT_ATTEMPTS; attempt++) {
		__u64 latest = weir_shared_latest(w, &set->inserted, set->tag, WEIR_CONNECTION_FLOW_WAYS);

		way = weir_shared_way(set->tag, WEIR_CONNECTION_FLOW_WAYS, tag);
		if (way < WEIR_CONNECTION_FLOW_WAYS)
			return way;
		way = weir_connection_flow_victim(w, set);
		if (!weir_shared_take(w, &set->inserted, set->tag, WEIR_CONNECTION_FLOW_WAYS, latest, way, tag))
			continue;
		weir_take_over_flow(w, set, way, place);
		return way;
	}
	return WEIR_CONNECTION_FLOW_WAYS;
}

/* The owner of a place that has this tag. While it is not the rightful one, another CPU is making the place, which is
 * waited for; or was stalled. (Not in line: the verifier would go through the loop for every way of a set.)
 */
__noinline __u64 weir_await_owner(const struct weir_connection_flow *flow, __u32 tag)
{
	__u64 owner, until_ns;

	if (!flow)
		return 0;
	owner = READ_ONCE(flow->owner);
	until_ns = bpf_ktime_get_ns() + WEIR_OWNER_WAIT_NS;
#pragma nounroll
	for (int look = 0; look < WEIR_OWNER_LOOKS && !weir_is_rightful(owner, tag); look++) {
		if (bpf_ktime_get_ns() > until_ns)
			break;
		owner = READ_ONCE(flow->owner);
	}
	return owner;
}

/* Number and tag of this packet's flow under rule `place`, in w->counted. Who is impatient makes a place that another
 * CPU has not made yet. False: no place could be made.
 */
__noinline int weir_find_connection_flow(struct weir_work *w, __u32 place, __u32 is_impatient)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_connection_flow_set *set;
	struct weir_connection_flow *flow;
	__u32 index, way, tag;
	__u64 owner;

	if (!w)
		return false;
	w->counted_tag = WEIR_CONNECTION_LONE_TAG;
	w->counted_flow = WEIR_CONNECTION_LONE | rule->slot;
	if (!rule->key_fields)
		return true;
	w->question.place = weir_shared_place(rule, &w->packet, config.connection_flow_sets);
	/* An owner that is but a turn is none. */
	if (!(w->question.place.tag & ~WEIR_CONNECTION_CHECK))
		w->question.place.tag |= WEIR_CONNECTION_CHECK + 1;
	index = w->question.place.set;
	set = bpf_map_lookup_elem(&connection_flows, &index);
	if (!set)
		return false;
	way = weir_shared_way(set->tag, WEIR_CONNECTION_FLOW_WAYS, w->question.place.tag);
	if (way == WEIR_CONNECTION_FLOW_WAYS)
		way = weir_insert_connection_flow(w, place);
	w->counted_flow = index * 8 + way;
	flow = weir_flow_at(set, way);
	if (!flow)
		return false;
	tag = w->question.place.tag;
	owner = READ_ONCE(flow->owner);
	if (unlikely(!weir_is_rightful(owner, tag)))
		owner = weir_await_owner(flow, tag);
	if (is_impatient && !weir_is_rightful(owner, tag)) {
		weir_take_over_flow(w, set, way, place);
		owner = READ_ONCE(flow->owner);
	}
	/* A turn of zero is nobody's: whoever would count in judges again. */
	w->counted_tag = weir_is_rightful(owner, tag) ? owner >> 32 : tag & ~(__u32)WEIR_CONNECTION_CHECK;
	return true;
}

/* ---- counting a connection in, and out ---- */

/* The whole rule's counts belong to nobody else. */
static __always_inline struct weir_connection_flow *weir_own_total(__u32 slot)
{
	struct weir_connection_flow *total = weir_connection_total(slot);
	__u64 owner = WEIR_CONNECTION_OWNER(slot, WEIR_CONNECTION_LONE_TAG);

	if (total && READ_ONCE(total->owner) != owner)
		WRITE_ONCE(total->owner, owner);
	return total;
}

/* Remember until when the flow may have connections. */
static __always_inline void weir_flow_lasts(struct weir_work *w, __u32 number, __u32 class)
{
	struct weir_connection_flow_set *set;
	__u32 index = number / 8, until_s;
	__u64 way = number & 7;

	set = bpf_map_lookup_elem(&connection_flows, &index);
	OPAQUE(class);
	class &= WEIR_CONNECTION_CLASSES - 1;
	until_s = (weir_connections_now_ns(w) + (WEIR_CONNECTION_STEPS + 1) * config.connection_step_ns[class]) /
			  WEIR_NSEC_PER_SEC +
		  1;
	OPAQUE(way);
	if (set && way < WEIR_CONNECTION_FLOW_WAYS && READ_ONCE(set->until_s[way]) < until_s)
		WRITE_ONCE(set->until_s[way], until_s);
}

/* One connection more in the flow w->counted, in the present step of `class`. False: judge again. */
__noinline int weir_count_in(struct weir_work *w, __u32 slot, __u32 class, __u32 step)
{
	struct weir_connection_flow *total = weir_own_total(slot), *flow;
	__u32 tag, number;

	if (!w || !total || !weir_cell_add(total, WEIR_CONNECTION_LONE_TAG, class, step))
		return false;
	number = w->counted_flow;
	if (weir_is_lone_flow(number))
		return true;
	tag = w->counted_tag;
	flow = weir_connection_flow(number);
	if (flow && weir_cell_add(flow, tag, class, step)) {
		weir_flow_lasts(w, number, class);
		return true;
	}
	weir_cell_remove(total, WEIR_CONNECTION_CELL(step, WEIR_CONNECTION_LONE_TAG), class, 1);
	return false;
}

/* A flow that has no connection left may go before any other. */
static __always_inline void weir_flow_ends(struct weir_work *w, struct weir_connection_flow *flow, __u32 number,
					   __u32 tag)
{
	struct weir_connection_flow_set *set;
	__u32 index = number / 8, until_s;
	__u64 way = number & 7;

	if (weir_count_open(w, flow, tag))
		return;
	set = bpf_map_lookup_elem(&connection_flows, &index);
	OPAQUE(way);
	if (!set || way >= WEIR_CONNECTION_FLOW_WAYS)
		return;
	until_s = READ_ONCE(set->until_s[way]);
	WRITE_ONCE(set->until_s[way], 0);
	/* Another CPU may have counted one in since; it adds first and then writes the time. */
	weir_fence(w);
	if (weir_count_open(w, flow, tag))
		WRITE_ONCE(set->until_s[way], until_s);
}

/* One connection less in a flow: as its word says, or a reservation. */
__noinline int weir_count_out(struct weir_work *w, __u32 number, __u32 tag, __u32 class, __u32 step)
{
	struct weir_connection_flow *flow = weir_connection_flow(number), *total;
	__u32 slot;

	if (!w || !flow)
		return false;
	slot = READ_ONCE(flow->owner);
	if (!weir_is_owner(flow, tag) || !weir_cell_remove(flow, WEIR_CONNECTION_CELL(step, tag), class, 1))
		return false;
	if (weir_is_lone_flow(number))
		return true;
	total = weir_connection_total(slot);
	if (total)
		weir_cell_remove(total, WEIR_CONNECTION_CELL(step, WEIR_CONNECTION_LONE_TAG), class, 1);
	weir_flow_ends(w, flow, number, tag);
	return true;
}

#endif
