/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Occupy windows: sliding windows whose later buckets prioritized packets may occupy. A packet of a prioritized
 * resource that does not fit now may be counted in a future bucket; it then waits until that bucket begins
 * (docs/semantics.md, 10; Sentinel (Java)'s StatisticNode.tryOccupyNext).
 *
 * All CPUs share a flow's window. A CPU first counts a packet by compare-and-swap, which is a barrier, and then reads
 * all cells once more. Among the packets in one window, the one that was counted last sees all others, so no window
 * exceeds its threshold, on any number of CPUs. A CPU that sees the total above the threshold undoes its increment and
 * retries. So two simultaneous packets may both be refused although one would have fitted. On one CPU, the second
 * reading always agrees with the first.
 *
 * A flow that is evicted from a full set leaves a ghost, as with other windows (row_ghosts.h). When it returns, its new
 * entry gets a copy of the ghost, which counts until it is over. The ghost itself stays, and the next eviction of the
 * flow adds to it.
 *
 * These windows use CLOCK_MONOTONIC, whatever their buckets, because waits are in ns.
 */
#ifndef WEIR_OCCUPY_H
#define WEIR_OCCUPY_H

#include "observe/drops.h"
#include "kinds/flow_set.h"
#include "window/row_ghosts.h"
#include "observe/key_samples.h"
#include "window/threshold.h"
#include "weir_occupy.h"

/* Evaluations of one packet. One fails if another CPU interferes or a bucket ends; eight in a row were never seen. */
#define WEIR_OCCUPY_ATTEMPTS 8
#define WEIR_CELL_ATTEMPTS 16 /* likewise, of changing one cell */
#define WEIR_NO_BUCKET WEIR_OCCUPY_CELLS

/* ---- the flow's entry ---- */

/* The set of the flow of s->view. */
static __always_inline struct weir_occupy_set *weir_occupy_set(const struct weir_scratch *s)
{
	__u32 index = s->view.flow.set;

	return bpf_map_lookup_elem(&occupy_flows, &index);
}

/* Buckets as ghosts number them. */
static __always_inline __u64 weir_occupy_bucket(const struct weir_rule *rule, __u64 now_ns)
{
	return now_ns / rule->bucket_ns - rule->base_bucket;
}

/* What an entry keeps for the ghost that it will leave: the ghost's name, and how to read the cells. */
#define WEIR_OCCUPY_LEAVES(tag, spec, unit_bits)                                                                       \
	((__u64)WEIR_ROW_GHOST_NAME(tag, spec) << WEIR_ROW_GHOST_NAME_SHIFT | (unit_bits))

/* In that word: ghost[0] is a copy of the overflow window, which no ghost of the flow has. */
#define WEIR_OCCUPY_INHERITED 64ull

/* The units in all cells of a flow's window, whose newest bucket is `newest` (numbered as in the ring), and whether any
 * of them are occupied: the highest bit.
 */
#define WEIR_OCCUPIED (1ull << 63)
__noinline __u64 weir_sum_occupy(const struct weir_occupy_window *flow, __u64 newest, __u32 window_cells, __u32 tag,
				 __u32 unit_bits)
{
	__u64 ring = 2 * window_cells, bucket = newest + 1 - window_cells, sum = 0, is_occupied = 0;

	WEIR_GLOBAL(OCCUPY, flow && ring, 0);
#pragma nounroll
	for (__u32 at = 0; at < WEIR_OCCUPY_CELLS; at++, bucket++) {
		const __u64 *cell = WEIR_ELEMENT(flow->cell, bucket % ring);
		__u64 word;

		if (at >= ring || !cell)
			break;
		word = READ_ONCE(*cell);
		if (word >> unit_bits != weir_occupy_mark(bucket / ring, tag, unit_bits))
			continue;
		sum += word & weir_occupy_units_max(unit_bits);
		if (at >= window_cells && word & weir_occupy_units_max(unit_bits))
			is_occupied = WEIR_OCCUPIED;
	}
	return sum | is_occupied;
}

/* The flow with this tag is evicted from this entry, in which no packet counts any more: leave a ghost of what its
 * cells hold, as if it were all in the newest bucket or, if units are occupied, in the last future bucket. Ghosts can
 * name only the first window specs.
 */
__noinline int weir_leave_occupy(struct weir_scratch *s, const struct weir_occupy_window *flow, __u64 newest_ns,
				 __u32 tag)
{
	const struct weir_window_spec *t;
	__u64 leaves, name, bucket, sum;
	__u32 spec;

	WEIR_GLOBAL(OCCUPY, s && flow, 0);
	leaves = READ_ONCE(flow->leaves);
	name = leaves >> WEIR_ROW_GHOST_NAME_SHIFT;
	spec = name & 15;
	t = bpf_map_lookup_elem(&window_specs, &spec);
	if (!t || !t->bucket_ns || spec == WEIR_ROW_GHOST_SPECS || name != WEIR_ROW_GHOST_NAME(tag, spec))
		return 0;
	bucket = newest_ns / t->bucket_ns;
	sum = weir_sum_occupy(flow, bucket + 2 * t->window_cells, t->window_cells, tag, leaves & 63);
	weir_name_row_ghost(s, tag, WEIR_OCCUPY_ROW_SET(s->view.flow.set, tag), WEIR_OCCUPY_PAGE_SETS, spec);
	s->row_ghost.expired = weir_expired_bucket(s, spec, WEIR_NARROW);
	s->row_ghost.newest = bucket - t->base_bucket + (sum & WEIR_OCCUPIED ? t->window_cells : 0);
	s->row_ghost.units = sum & ~WEIR_OCCUPIED;
	if (leaves & WEIR_OCCUPY_INHERITED)
		s->row_ghost.units +=
			weir_row_ghost_in_window(READ_ONCE(flow->ghost[0]), bucket - t->base_bucket, t->window_cells);
	if (!s->row_ghost.units ||
	    !weir_row_ghost_counts(WEIR_ROW_GHOST_WORD(name, s->row_ghost.newest, 0, 1, 0), s->row_ghost.expired))
		return 0;
	weir_stamp_row_ghost(s, t, spec, WEIR_NARROW);
	s->row_ghost.window_cells = t->window_cells;
	s->row_ghost.span_ns = (2 * t->window_cells + 1) * t->bucket_ns;
	s->row_ghost.overflow_class =
		spec < WEIR_OVERFLOW_SPECS ? WEIR_OVERFLOW_CLASS(spec, false) : WEIR_OVERFLOW_CLASSES;
	if (!weir_keep_row_ghost(s))
		weir_join_overflow_window(s);
	return 0;
}

/* The ghost in this set with the name in s->row_ghost; 0: there is none. */
static __always_inline __u64 weir_find_row_ghost(const struct weir_scratch *s, __u32 number)
{
	const struct weir_row_ghost_set *set = weir_row_ghost_set(number);

	for (__u32 way = 0; set && way < WEIR_ROW_GHOST_WAYS; way++) {
		__u64 word = READ_ONCE(set->word[way]);

		if (weir_is_named(s, word))
			return word;
	}
	return 0;
}

/* The flow of s->view has claimed the way s->row_number. Look for the flow's ghost or, if the rule aggregates, its
 * overflow window.
 */
static __always_inline void weir_restore_occupy(struct weir_scratch *s, struct weir_occupy_window *flow,
						const struct weir_rule *rule)
{
	__u64 one = 0, other = 0, newest = READ_ONCE(flow->newest), entered, *until_ns;
	__u32 tag = s->view.flow.tag;
	__u64 leaves = WEIR_OCCUPY_LEAVES(tag, rule->spec, rule->unit_bits);
	const __u64 *overflow;

	weir_name_row_ghost(s, tag, WEIR_OCCUPY_ROW_SET(s->view.flow.set, tag), WEIR_OCCUPY_PAGE_SETS, rule->spec);
	until_ns = weir_page_until_ns(s->row_ghost.set);
	if (until_ns && READ_ONCE(*until_ns) > s->tick_ns) {
		one = weir_find_row_ghost(s, s->row_ghost.set);
		other = weir_find_row_ghost(s, s->row_ghost.other_set);
		s->row_ghost.overflow_class = rule->overflow - 1;
		overflow = config.overflow_classes && rule->overflow && !(one | other) ? weir_overflow_window(s) : NULL;
		if (overflow) {
			leaves |= WEIR_OCCUPY_INHERITED;
			one = (READ_ONCE(*overflow) & ((1ull << WEIR_ROW_GHOST_NAME_SHIFT) - 1)) |
			      (__u64)s->row_ghost.name << WEIR_ROW_GHOST_NAME_SHIFT;
		}
	}
	WRITE_ONCE(flow->ghost[0], one);
	WRITE_ONCE(flow->ghost[1], other);
	WRITE_ONCE(flow->leaves, leaves);
	/* With a ghost, set the present bucket; otherwise it would look like a leftover from long ago. */
	entered = weir_now_ns(s) / rule->bucket_ns * rule->bucket_ns * 2;
	if (newest >= entered || !(one | other))
		entered = newest & ~WEIR_OCCUPY_TAKEN;
	__sync_val_compare_and_swap(&flow->newest, newest, entered);
}

/* The flow of s->view has claimed the way s->row_number. Leave a ghost of the former owner, rebuild the window, and
 * show it. From the mark in `newest` on, no packet of the former owner counts, because each reads `newest` once more
 * after it has counted. False: that is not possible now.
 */
__noinline int weir_begin_occupy(struct weir_scratch *s, struct weir_occupy_set *set, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_occupy_window *flow;
	__u32 *owner, *keep, tag, before;
	bool is_taken = false;
	__u64 newest = 0;

	WEIR_GLOBAL(OCCUPY, s && set && rule->bucket_ns, false);
	flow = WEIR_ELEMENT(set->flow, s->row_number);
	owner = WEIR_ELEMENT(set->flows.tag, s->row_number);
	keep = WEIR_ELEMENT(set->flows.keep, s->row_number);
	if (!flow || !owner || !keep)
		return false;
	before = READ_ONCE(*keep);
	for (int attempt = 0; attempt < WEIR_CELL_ATTEMPTS && !is_taken; attempt++) {
		newest = READ_ONCE(flow->newest);
		is_taken = __sync_val_compare_and_swap(&flow->newest, newest, newest | WEIR_OCCUPY_TAKEN) == newest;
	}
	if (!is_taken) {
		weir_release_flow_claim(s, &set->flows);
		return false;
	}
	tag = READ_ONCE(*owner);
	if (tag)
		weir_leave_occupy(s, flow, newest >> 1, tag);
	weir_restore_occupy(s, flow, rule);
	weir_reset_keep(s, &set->flows, s->row_number, before);
	weir_publish_flow(s, &set->flows);
	return true;
}

/* Find or insert the window of this packet's flow; s->view then names the flow, and s->row_number the entry. */
static __always_inline struct weir_occupy_window *weir_get_occupy(struct weir_scratch *s, const struct weir_rule *rule)
{
	struct weir_occupy_set *set;
	__u32 index = rule->slot, way;

	s->view.slot = rule->slot;
	s->view.flow.tag = 0;
	if (!rule->key_fields)
		return bpf_map_lookup_elem(&occupy_resources, &index);
	s->view.flow = weir_shared_id(weir_flow_hash(s, rule), config.sizes[WEIR_TABLE_OCCUPY_FLOWS]);
	set = weir_occupy_set(s);
	if (!set)
		return NULL;
	way = weir_way_of(&set->flows, s->view.flow.tag);
	/* The former owner's cells then belong to no flow. */
	if (way == WEIR_FLOW_WAYS)
		way = weir_claim_flow(s, &set->flows, s->view.flow.tag, s->view.slot);
	FORGET(s->forgotten, way);
	s->row_number = WEIR_WAY(way);
	if (way & WEIR_WAY_IS_NEW && !weir_begin_occupy(s, set, rule->place))
		return NULL;
	return WEIR_ELEMENT(set->flow, s->row_number);
}

/* Is the entry that weir_get_occupy() found still the flow's? */
static __always_inline bool weir_has_occupy_entry(struct weir_scratch *s)
{
	const struct weir_occupy_set *set;

	if (!s->view.flow.tag)
		return true; /* a whole resource has a window to itself */
	set = weir_occupy_set(s);
	return set && weir_owns_way(s, &set->flows, s->row_number, s->view.flow.tag);
}

/* ---- what the window holds ---- */

/*
 * Find the bucket in which the packet is evaluated, and record it as known. If the flow already knows a newer one,
 * there are two cases. In the harness, the clock has gone back: the packet counts in its own bucket, if the ring has
 * it, or else as if it were the first of the newest bucket. Otherwise another CPU has read the clock later than we did,
 * so we read it again.
 */
static __always_inline bool weir_enter_occupy(struct weir_scratch *s, struct weir_occupy_window *flow,
					      const struct weir_rule *rule)
{
	__u64 bucket_ns = rule->bucket_ns, ring = 2 * rule->window_cells, word, newest, bucket;
	struct weir_occupy_view *occupy = &s->occupy;

	if (!bucket_ns)
		return false;
	word = READ_ONCE(flow->newest);
	if (unlikely(word & WEIR_OCCUPY_TAKEN))
		return false;
	newest = (word >> 1) / bucket_ns + ring;
	occupy->time_ns = weir_now_ns(s);
	bucket = occupy->time_ns / bucket_ns + ring;
	if (bucket < newest) {
		s->has_now = 0;
		occupy->time_ns = weir_now_ns(s);
		bucket = occupy->time_ns / bucket_ns + ring;
	}
	if (bucket > newest) {
		__u64 entered = (bucket - ring) * bucket_ns * 2;

		if (__sync_val_compare_and_swap(&flow->newest, word, entered) != word)
			return false;
		/* No ghost counts that long, and its bucket numbers will soon wrap. */
		if (unlikely(bucket - newest > WEIR_ROW_GHOST_START_MASK - WEIR_ROW_GHOST_AHEAD)) {
			WRITE_ONCE(flow->ghost[0], 0);
			WRITE_ONCE(flow->ghost[1], 0);
		}
		word = entered;
		newest = bucket;
	} else if (newest - bucket >= rule->window_cells) {
		occupy->time_ns = (newest - ring) * bucket_ns;
		bucket = newest;
	}
	occupy->newest_ns = word >> 1;
	occupy->first = newest + 1 - rule->window_cells;
	occupy->own = bucket - occupy->first;
	occupy->next_ns = (newest + 1 - ring) * bucket_ns;
	return true;
}

/* The units of the flow's ghosts in the bucket of the evaluation, including ghosts that begin in a future bucket. A
 * ghost that is over is removed, because its bucket numbers would wrap.
 */
static __always_inline __u64 weir_units_of_ghosts(struct weir_scratch *s, struct weir_occupy_window *flow,
						  const struct weir_rule *rule)
{
	__u32 name = WEIR_ROW_GHOST_NAME(s->view.flow.tag, rule->spec);
	__u64 bucket = weir_occupy_bucket(rule, s->occupy.time_ns), units, sum = 0;

#pragma unroll
	for (int i = 0; i < 2; i++) {
		__u64 word = READ_ONCE(flow->ghost[i]);

		if (likely(word >> WEIR_ROW_GHOST_NAME_SHIFT != name))
			continue;
		if (WEIR_ROW_GHOST_AGE(word, bucket) >= WEIR_ROW_GHOST_AHEAD)
			units = weir_row_ghost_in_window(word, WEIR_ROW_GHOST_START(word), rule->window_cells);
		else
			units = weir_row_ghost_in_window(word, bucket, rule->window_cells);
		if (!units) /* unless it is the next owner's by now */
			__sync_val_compare_and_swap(&flow->ghost[i], word, 0);
		sum += units;
	}
	return sum;
}

/* Read all cells. False: a newer bucket has begun meanwhile, so that cells may belong to another round; or the entry is
 * being taken over, and whether our unit is in the ghost is not known.
 */
__noinline int weir_look_at_cells(struct weir_scratch *s, struct weir_occupy_window *flow, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 ring = 2 * rule->window_cells, total = 0, current = 0, cell, round;

	WEIR_GLOBAL(OCCUPY, s && flow && ring, false);
	weir_order(s); /* the newest bucket was read first */
	cell = s->occupy.first % ring;
	round = s->occupy.first / ring;
	for (__u32 at = 0; at < WEIR_OCCUPY_CELLS; at++) {
		const __u64 *from = WEIR_ELEMENT(flow->cell, cell);
		__u64 word, other, units, is_last;

		if (at >= ring || !from)
			break;
		word = READ_ONCE(*from);
		other = word >> rule->unit_bits ^ weir_occupy_mark(round, s->view.flow.tag, rule->unit_bits);
		units = word & weir_occupy_units_max(rule->unit_bits) & weir_sign_mask(other - 1);
		s->occupy.word[at] = word;
		s->occupy.units[at] = units;
		total += units;
		current += units & weir_sign_mask(at - (__u64)rule->window_cells);
		is_last = weir_sign_mask(ring - cell - 2);
		cell = (cell + 1) & ~is_last;
		round -= is_last;
	}
	s->occupy.occupied = total - current;
	s->occupy.ghost = s->view.flow.tag ? weir_units_of_ghosts(s, flow, rule) : 0;
	s->occupy.current = current + s->occupy.ghost;
	weir_order(s);
	return READ_ONCE(flow->newest) == s->occupy.newest_ns << 1;
}

/* The units of one of the buckets that were read. */
static __always_inline __u64 weir_units_at(const struct weir_scratch *s, __u64 at)
{
	const __u64 *units = WEIR_ELEMENT(s->occupy.units, at);

	return units ? *units : 0;
}

/*
 * Do all windows that contain the packet's bucket hold at most `most`? These are the present window and, if units are
 * occupied, future ones. (Future windows matter only if the threshold was raised or another CPU took a unit back.
 * Otherwise all windows up to the latest occupied bucket are full, including the present one.)
 */
__noinline int weir_has_room(struct weir_scratch *s, __u64 most, __u32 cells)
{
	__u64 sum;

	WEIR_GLOBAL(OCCUPY, s && s->occupy.current <= most, false);
	if (!s->occupy.occupied)
		return true;
	sum = s->occupy.current;
	for (__u32 left = 0; left < WEIR_SAMPLES_MAX; left++) {
		if (left >= s->occupy.own)
			break;
		sum += weir_units_at(s, cells + left) - weir_units_at(s, left);
		if (sum > most)
			return false;
	}
	return true;
}

/* The first future bucket in which the packet may occupy a unit, or WEIR_NO_BUCKET. s->occupy.wait_ns is set to the
 * time until it begins.
 */
__noinline __u32 weir_find_occupiable(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 sum, allowed, wait_ns;

	WEIR_GLOBAL(OCCUPY, s && s->is_prioritized, WEIR_NO_BUCKET);
	allowed = s->allowed.word & WEIR_THRESHOLD_MASK;
	if (s->occupy.occupied + WEIR_SEGMENTS(s) > allowed)
		return WEIR_NO_BUCKET;
	sum = s->occupy.current + s->occupy.occupied + WEIR_SEGMENTS(s);
	wait_ns = s->occupy.next_ns - s->occupy.time_ns;
	for (__u32 left = 0; left < WEIR_SAMPLES_MAX; left++) {
		if (left >= rule->window_cells || wait_ns >= rule->queueing_ns_max)
			break;
		sum -= weir_units_at(s, left);
		if (sum <= allowed) {
			s->occupy.wait_ns = wait_ns;
			return rule->window_cells + left;
		}
		wait_ns += rule->bucket_ns;
	}
	return WEIR_NO_BUCKET;
}

/* Is there still room, now that the packet is counted in the bucket `at`? */
__noinline int weir_still_fits(struct weir_scratch *s, __u32 place, __u32 at)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 sum, allowed;

	WEIR_GLOBAL(OCCUPY, s, false);
	allowed = s->allowed.word & WEIR_THRESHOLD_MASK;
	if (at < rule->window_cells)
		return weir_has_room(s, allowed, rule->window_cells);
	sum = s->occupy.current + s->occupy.occupied;
	for (__u32 left = 0; left < WEIR_SAMPLES_MAX; left++) {
		if (left + rule->window_cells > at)
			break;
		sum -= weir_units_at(s, left);
	}
	return sum <= allowed;
}

/* ---- counting ---- */

/* Add the reservation's units to its cell, which held `word`. Units that others have added or taken back since then do
 * not matter, because all cells are read once more. Another round or owner does matter.
 */
static __always_inline bool weir_add_units(const struct weir_scratch *s, __u64 *cell, __u64 word, __u64 next,
					   const struct weir_occupy_reservation *reservation)
{
	for (int attempt = 0; attempt < WEIR_CELL_ATTEMPTS; attempt++) {
		__u64 found = __sync_val_compare_and_swap(cell, word, next);

		if (found == word)
			return true;
		word = found;
		next = word + WEIR_SEGMENTS(s);
		if (word >> reservation->unit_bits != reservation->mark ||
		    next >> reservation->unit_bits != reservation->mark)
			break;
	}
	return false;
}

/* Count the packet in bucket `at`. False: its cell has changed since it was read. */
__noinline int weir_reserve_unit(struct weir_scratch *s, struct weir_occupy_window *flow, __u32 place, __u32 at,
				 __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 ring = 2 * rule->window_cells, bucket, word, next, *cell;
	struct weir_occupy_reservation *reservation;
	const __u64 *seen;

	WEIR_GLOBAL(OCCUPY, s && flow && ring && index < WEIR_PACKET_RULES_MAX, false);
	reservation = &s->occupy_reservation[index];
	bucket = s->occupy.first + at;
	reservation->mark = weir_occupy_mark(bucket / ring, s->view.flow.tag, rule->unit_bits);
	reservation->cell = bucket % ring;
	reservation->unit_bits = rule->unit_bits;
	reservation->is_keyed = s->view.flow.tag != 0;
	reservation->set = s->view.flow.set;
	reservation->way = s->row_number;
	reservation->slot = rule->slot;
	reservation->wait_ns = at < rule->window_cells ? 0 : s->occupy.wait_ns;
	seen = WEIR_ELEMENT(s->occupy.word, at);
	cell = WEIR_ELEMENT(flow->cell, bucket % ring);
	if (!seen || !cell)
		return false;
	word = *seen;
	next = word + WEIR_SEGMENTS(s);
	if (word >> rule->unit_bits != reservation->mark) {
		/* The cell belongs to an older round or another flow. If the entry has a new owner, we must not
		 * overwrite that owner's cell. So we read the owner after the cell: a new owner changes cells only
		 * after it has become the owner.
		 */
		if (!weir_has_occupy_entry(s))
			return false;
		next = weir_occupy_word(reservation->mark, WEIR_SEGMENTS(s), rule->unit_bits);
	} else if (next >> rule->unit_bits != reservation->mark) {
		return false; /* the cell is full: it has counted one packet for each ns of the interval */
	}
	return weir_add_units(s, cell, word, next, reservation);
}

/* The cell that a reservation has counted in, or NULL. */
static __always_inline __u64 *weir_reserved_cell(const struct weir_occupy_reservation *reservation)
{
	__u32 index = reservation->is_keyed ? reservation->set : reservation->slot;
	struct weir_occupy_set *set;
	struct weir_occupy_window *flow;

	if (reservation->is_keyed) {
		set = bpf_map_lookup_elem(&occupy_flows, &index);
		flow = set ? WEIR_ELEMENT(set->flow, reservation->way) : NULL;
	} else {
		flow = bpf_map_lookup_elem(&occupy_resources, &index);
	}
	return flow ? WEIR_ELEMENT(flow->cell, reservation->cell) : NULL;
}

/* The packet's reservation number `index` is over: it passes, or its unit is taken back. A cell that has begun another
 * round, or has another owner, does not have the unit any more.
 */
__noinline int weir_end_occupy(struct weir_scratch *s, __u32 index, __u32 passes)
{
	const struct weir_occupy_reservation *reservation;
	__u64 *cell, word;

	WEIR_GLOBAL(OCCUPY, s && index < WEIR_PACKET_RULES_MAX, 0);
	reservation = &s->occupy_reservation[index];
	if (passes) {
		if (reservation->wait_ns)
			weir_count_delay(s, reservation->slot, reservation->wait_ns);
		return 0;
	}
	cell = weir_reserved_cell(reservation);
	for (int attempt = 0; cell && attempt < WEIR_CELL_ATTEMPTS; attempt++) {
		word = READ_ONCE(*cell);
		if (word >> reservation->unit_bits != reservation->mark ||
		    (word & weir_occupy_units_max(reservation->unit_bits)) < WEIR_SEGMENTS(s) ||
		    __sync_val_compare_and_swap(cell, word, word - WEIR_SEGMENTS(s)) == word)
			return 0;
	}
	weir_count_stall(reservation->slot); /* the unit stays counted, so the window admits one less */
	return 0;
}

static __always_inline void weir_commit_occupy(struct weir_scratch *s, __u32 nth)
{
	weir_end_occupy(s, nth, true);
}

static __always_inline void weir_abort_occupy(struct weir_scratch *s, __u32 nth)
{
	weir_end_occupy(s, nth, false);
}

/* ---- the decision ---- */

/* Remember that a packet of the flow did not fit, so that a flood of other flows does not evict it. The first time,
 * also record a key sample.
 */
static __always_inline void weir_mark_refused(struct weir_scratch *s, __u32 place)
{
	struct weir_occupy_set *set = s->view.flow.tag ? weir_occupy_set(s) : NULL;

	if (set && weir_keep_refused(&set->flows, s->row_number))
		weir_write_key_sample(s, place);
}

/* Record until when the unit just counted is in a window, and what a ghost of the flow will be called. */
static __always_inline void weir_note_occupy(struct weir_scratch *s, struct weir_occupy_window *flow,
					     const struct weir_rule *rule)
{
	struct weir_occupy_set *set = s->view.flow.tag ? weir_occupy_set(s) : NULL;
	__u64 ahead = s->occupy.occupied ? rule->window_cells : 0, leaves, seen;

	if (!set)
		return;
	weir_keep_until(s, &set->flows, s->row_number,
			s->occupy.newest_ns + (ahead + rule->window_cells + 1) * rule->bucket_ns);
	leaves = WEIR_OCCUPY_LEAVES(s->view.flow.tag, rule->spec, rule->unit_bits);
	/* If the rule has changed; not if the entry is another flow's by now, which would leave no ghost by our
	 * name.
	 */
	seen = READ_ONCE(flow->leaves);
	if (unlikely((seen ^ leaves) & ~WEIR_OCCUPY_INHERITED) &&
	    !((seen ^ leaves) >> (WEIR_ROW_GHOST_NAME_SHIFT + WEIR_ROW_GHOST_NAME_SPEC_BITS)))
		__sync_val_compare_and_swap(&flow->leaves, seen, leaves);
}

/* One evaluation. ADMIT: counted, and the reservation says where. */
__noinline int weir_try_occupy(struct weir_scratch *s, struct weir_occupy_window *flow, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	__u64 allowed;
	__u32 at;

	WEIR_GLOBAL(OCCUPY, s && flow, WEIR_ANSWER_ERROR);
	allowed = s->allowed.word & WEIR_THRESHOLD_MASK;
	if (!weir_enter_occupy(s, flow, rule) || !weir_look_at_cells(s, flow, place))
		return WEIR_ANSWER_AGAIN;
	at = s->occupy.own;
	if (!weir_has_room(s, allowed - WEIR_SEGMENTS(s), rule->window_cells)) {
		at = weir_find_occupiable(s, place);
		weir_mark_refused(s, place);
	}
	if (at >= WEIR_NO_BUCKET)
		return weir_refuse(s, s->occupy.current, allowed);
	if (!weir_reserve_unit(s, flow, place, at, index))
		return WEIR_ANSWER_AGAIN;
	/* The entry may have been another flow's from the start, with cells that this flow has left there long ago. */
	if (weir_look_at_cells(s, flow, place) && weir_still_fits(s, place, at) && weir_has_occupy_entry(s))
		return WEIR_ANSWER_ADMIT;
	weir_end_occupy(s, index, false);
	return WEIR_ANSWER_AGAIN;
}

static __always_inline enum weir_answer
weir_evaluate_attempts_at(struct weir_scratch *s, struct weir_occupy_window *flow, __u32 place, __u32 index)
{
	for (int attempt = 0; attempt < WEIR_OCCUPY_ATTEMPTS; attempt++) {
		enum weir_answer answer = weir_try_occupy(s, flow, place, index);

		if (answer != WEIR_ANSWER_AGAIN || !weir_has_occupy_entry(s))
			return answer;
		s->has_now = 0;
	}
	return weir_refuse_stalled(s, s->view.slot);
}

/* Evaluate the packet by a rule with an occupy window; weir_find_allowed() has filled in s->allowed. */
__noinline int weir_evaluate_occupy(struct weir_scratch *s, __u32 place, __u32 index)
{
	const struct weir_rule *rule = weir_rule(place);
	struct weir_occupy_window *flow;
	enum weir_answer answer;
	__u64 wait_ns;

	WEIR_GLOBAL(OCCUPY, s && index < WEIR_PACKET_RULES_MAX, WEIR_ANSWER_ERROR);
	OPAQUE(index); /* clang 14 puts it on the stack before its bound is tested */
	index &= WEIR_PACKET_RULES_MAX - 1;
	s->reservation[index].kind = WEIR_RESERVATION_NONE;
	if ((s->allowed.word & WEIR_THRESHOLD_MASK) < WEIR_SEGMENTS(s))
		return weir_refuse(s, WEIR_EVENT_UNKNOWN, s->allowed.word & WEIR_THRESHOLD_MASK);
	flow = weir_get_occupy(s, rule);
	if (!flow)
		return weir_refuse_stalled(s, rule->slot);
	s->flow = s->view.flow; /* the flow for key samples */
	answer = weir_evaluate_attempts_at(s, flow, place, index);
	if (rule->key_fields)
		weir_sample_key(s, rule, false);
	if (answer != WEIR_ANSWER_ADMIT)
		return answer;
	s->reservation[index].kind = WEIR_RESERVATION_OF_KIND;
	weir_note_occupy(s, flow, rule);
	wait_ns = s->occupy_reservation[index].wait_ns;
	if (!wait_ns)
		return answer;
	s->must_commit = 1;
	if (!rule->observes && wait_ns > s->wait_ns)
		s->wait_ns = wait_ns;
	return answer;
}

#endif
