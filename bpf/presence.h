/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who has seen this flow? A table that all CPUs share, one small cell a flow (found by its hash), says which
 * CPUs have counted it of late; who takes a lease reads the rows of those only. What a flow costs that one CPU
 * sees does so not grow with the number of CPUs. Nothing is admitted because of this table; it only says whom
 * not to ask.
 *
 * A cell holds an *epoch* and two fields: the CPUs that counted in this epoch, and in the one before. An epoch
 * is 2^presence_shift ns long, and no window that uses the table looks back further (others ask everybody:
 * weir_rule.asks_all). So what a CPU has counted matters in the epoch of its clock and in the next, and that is
 * how long it is named.
 *
 * The protocol: add to the own row; then make sure, by an atomic that is a full barrier, that the cell names
 * you; then read the rows of those that this very cell names. Let A and B do so at once. All that happens
 * to a cell has one order. Where A's look at it finds B and B's finds A, each has added, then fenced, then read
 * the other's row, so that one of them sees the other's units (Dekker). Where B's look does not find A, then A
 * is put in later, by a compare-and-swap that finds B, who has added before its look: A reads B's row and sees
 * the units. So nobody is overlooked by both. What could go wrong, and does not:
 *
 *   an epoch's edge		who finds an older epoch moves the fields on, and keeps who was named in the last
 *				one. What is dropped is two epochs old, and beyond every window.
 *   a CPU that stalls		Its clock is older than the cell's epoch: the cell may have dropped whom it should
 *				know. It reads everybody, and is named in the newer epoch (longer, not shorter).
 *				Epochs are told apart over 240 lengths, 17 minutes at least, from a stall of up to 16
 *				(a minute).
 *   a cell not used for long	looks like one of another epoch: such names are extra, none is missing. Does it look
 *				like one ahead of us, the clock is read again: if it still does, the cell is old.
 *   flows that share a cell	name more CPUs than need be.
 *   a clock that goes back	is a stall.
 *   others keep changing it	after WEIR_PRESENCE_TRIES the units are given back and all is judged again.
 *   a reload			keeps the table, its size and the length of an epoch with the rows it speaks of.
 *
 * Up to twelve CPUs are a bit each. Of more, one alone is a number, and several share bits: who is named along
 * with them is asked in vain.
 */
#ifndef WEIR_PRESENCE_H
#define WEIR_PRESENCE_H

#include "flow.h"

#define WEIR_PRESENCE_TRIES 8

/* Epochs from this age on, modulo 2^8, lie ahead of our clock, not behind. */
#define WEIR_PRESENCE_AHEAD (256 - 16)

/* Whose rows there may be of the flow in hand, as weir_presence_join() found it: two fields, or everybody. */
#define WEIR_PRESENT_ALL 0xffffffffu
#define WEIR_PRESENT_LOST 0xfffffffeu /* we could not get in */

#define WEIR_PRESENCE_FIELD ((1u << WEIR_PRESENCE_FIELD_BITS) - 1)
#define WEIR_PRESENCE_MANY (1u << (WEIR_PRESENCE_FIELD_BITS - 1))

/* The cell of a flow. */
static __always_inline __u32 *weir_presence_cell(const struct weir_flow_place *place)
{
	__u32 number = (place->set << 12 | place->tag >> 20) & (config.presence_cells - 1);
	__u32 index = number / WEIR_PRESENCE_LINE_CELLS;
	struct weir_presence_line *line = bpf_map_lookup_elem(&presence, &index);

	if (!line)
		return NULL;
	OPAQUE(number);
	return &line->cell[number & (WEIR_PRESENCE_LINE_CELLS - 1)];
}

/* Start to fetch the cell, so that its cache miss runs beside that of the row. Nothing is decided by it. */
static __always_inline void weir_presence_touch(const struct weir_flow_place *place)
{
	__u32 *cell = config.cpus > 1 ? weir_presence_cell(place) : NULL;

	if (cell)
		(void)READ_ONCE(*cell);
}

/* The bit that a CPU shares with others, where there are many. */
static __always_inline __u32 weir_presence_bit(__u32 cpu)
{
	OPAQUE(cpu); /* else clang divides where there are few, too */
	return 1u << cpu % (WEIR_PRESENCE_FIELD_BITS - 1);
}

/* A field that names this CPU too. */
static __always_inline __u32 weir_presence_with(__u32 field, __u32 cpu)
{
	if (config.cpus <= WEIR_PRESENCE_FIELD_BITS)
		return field | 1u << cpu;
	if (field == 0 || field == cpu + 1)
		return cpu + 1;
	if (!(field & WEIR_PRESENCE_MANY))
		field = WEIR_PRESENCE_MANY | weir_presence_bit(field - 1);
	return field | weir_presence_bit(cpu);
}

static __always_inline bool weir_presence_names(__u32 field, __u32 cpu)
{
	if (config.cpus <= WEIR_PRESENCE_FIELD_BITS)
		return field >> cpu & 1;
	if (field & WEIR_PRESENCE_MANY)
		return field >> cpu % (WEIR_PRESENCE_FIELD_BITS - 1) & 1;
	return field == cpu + 1;
}

/* How many epochs, of which we are in this one, the cell's lies behind; from WEIR_PRESENCE_AHEAD on it seems to lie
 * ahead. A cell that was never used, and no other is zero, may be of any.
 */
static __always_inline __u32 weir_presence_age(__u32 cell, __u32 epoch)
{
	return cell ? (epoch - (cell >> WEIR_PRESENCE_EPOCH_SHIFT)) & 0xff : 2;
}

/*
 * What is known from a cell whose epoch seems to lie ahead: all, when we have stalled; nothing, when it has not been
 * used for a quarter of an hour. The clock, read again, has passed every epoch that a CPU has entered; but for the
 * second that is added, more than what CPUs' clocks may differ.
 */
__noinline __u32 weir_presence_recall(__u32 cell)
{
	__u32 epoch = (bpf_ktime_get_ns() + WEIR_NSEC_PER_SEC) >> config.presence_shift & 0xff;

	/* In replay the clock goes back, and stalls as tests say. */
	return config.is_virtual || weir_presence_age(cell, epoch) < WEIR_PRESENCE_AHEAD ? cell : 0;
}

/* The cell as this CPU, whose clock is in `epoch`, wants it: naming itself. The same cell: it does already. */
static __always_inline __u32 weir_presence_joined(__u32 cell, __u32 epoch, __u32 cpu)
{
	__u32 age = weir_presence_age(cell, epoch);

	if (age == 0 || age >= WEIR_PRESENCE_AHEAD)
		return (cell & ~WEIR_PRESENCE_FIELD) | weir_presence_with(cell & WEIR_PRESENCE_FIELD, cpu);
	return epoch << WEIR_PRESENCE_EPOCH_SHIFT |
	       (age == 1 ? (cell & WEIR_PRESENCE_FIELD) << WEIR_PRESENCE_FIELD_BITS : 0) | weir_presence_with(0, cpu);
}

/*
 * To be called after units were added to the own row. A full barrier. Returns whom the cell names, or
 * WEIR_PRESENT_LOST when it did not hold still: then nothing may be admitted. w->now_ns may be that of an earlier
 * packet; it is of the present epoch all the same, as weir_span_of() lets no clock be spared beyond the epoch's end.
 */
static __always_inline __u32 weir_presence_join(struct weir_work *w, __u32 cpu)
{
	__u32 epoch = w->now_ns >> config.presence_shift & 0xff;
	__u32 *cell = weir_presence_cell(&w->question.place);

	if (!cell)
		return WEIR_PRESENT_LOST;
	for (int i = 0; i < WEIR_PRESENCE_TRIES; i++) {
		__u32 seen = READ_ONCE(*cell), known = seen, joined;

		if (weir_presence_age(seen, epoch) >= WEIR_PRESENCE_AHEAD)
			known = weir_presence_recall(seen);
		joined = weir_presence_joined(known, epoch, cpu);
		if (joined != seen) {
			if (__sync_val_compare_and_swap(cell, seen, joined) != seen)
				continue;
		} else {
			/* Named already. Look again behind the barrier: only that look counts. */
			weir_fence(w);
			joined = READ_ONCE(*cell);
			if (weir_presence_joined(joined, epoch, cpu) != joined)
				continue;
		}
		return joined >> WEIR_PRESENCE_EPOCH_SHIFT == epoch
			       ? joined & (WEIR_PRESENCE_FIELD << WEIR_PRESENCE_FIELD_BITS | WEIR_PRESENCE_FIELD)
			       : WEIR_PRESENT_ALL;
	}
	return WEIR_PRESENT_LOST;
}

static __always_inline bool weir_is_present(__u32 present, __u32 cpu)
{
	return present == WEIR_PRESENT_ALL || weir_presence_names(present & WEIR_PRESENCE_FIELD, cpu) ||
	       weir_presence_names(present >> WEIR_PRESENCE_FIELD_BITS & WEIR_PRESENCE_FIELD, cpu);
}

/* Nobody but this CPU is named. */
static __always_inline bool weir_is_alone(__u32 present, __u32 cpu)
{
	__u32 earlier = present >> WEIR_PRESENCE_FIELD_BITS, own = weir_presence_with(0, cpu);

	return (present & WEIR_PRESENCE_FIELD) == own && (earlier == 0 || earlier == own);
}

#endif
