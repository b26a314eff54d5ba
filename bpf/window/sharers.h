/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sharers, as a cache directory has them: which CPUs may have counted a flow lately. A table that all CPUs share (map
 * `sharers`) has a small cell for each flow, found by its hash. A CPU that takes a lease reads the rows of the CPUs
 * that the cell names, and no others: so a flow that one CPU sees costs the same however many CPUs there are. The table
 * itself admits nothing; it only says which CPUs need not be asked.
 *
 * A cell has an *epoch* and two fields: the CPUs that counted in this epoch, and those of the one before. An epoch is
 * 2^sharers_shift ns long, and no window that uses the table looks back further. (Other rules ask all CPUs:
 * weir_rule.asks_all.) With up to twelve CPUs, each has a bit. With more, a single CPU is stored as a number, and
 * several CPUs share bits; then some CPUs may be asked without need. docs/internals/lease.md has the proof, and what
 * happens at an epoch's edge.
 */
#ifndef WEIR_SHARERS_H
#define WEIR_SHARERS_H

#include "window/rows.h"

#define WEIR_SHARERS_TRIES 8

/* Epochs from this age on, modulo 2^8, lie ahead of our clock, not behind. */
#define WEIR_SHARERS_AHEAD (256 - 16)

/* What weir_announce_cpu() returns: the two fields of the cell, or one of these. */
#define WEIR_PRESENT_ALL 0xffffffffu  /* every CPU may have counted the flow */
#define WEIR_PRESENT_LOST 0xfffffffeu /* the cell kept changing: nothing may be admitted */

#define WEIR_SHARERS_FIELD ((1u << WEIR_SHARERS_FIELD_BITS) - 1)
#define WEIR_SHARERS_FIELDS ((1u << WEIR_SHARERS_EPOCH_SHIFT) - 1)
#define WEIR_SHARERS_MANY (1u << (WEIR_SHARERS_FIELD_BITS - 1))

static __always_inline __u32 *weir_sharers_cell(const struct weir_flow_id *id)
{
	__u32 number = (id->set << 12 | id->tag >> 20) & (config.sizes[WEIR_TABLE_SHARERS] - 1);
	__u32 index = number / WEIR_SHARERS_LINE_CELLS;
	struct weir_sharers_line *line = bpf_map_lookup_elem(&sharers, &index);

	if (!line)
		return NULL;
	OPAQUE(number);
	return &line->cell[number & (WEIR_SHARERS_LINE_CELLS - 1)];
}

/* ---- fields ---- */

/* The bit that a CPU shares with others, where there are many. */
static __always_inline __u32 weir_sharers_bit(__u32 cpu)
{
	OPAQUE(cpu); /* else clang divides where there are few, too */
	return 1u << cpu % (WEIR_SHARERS_FIELD_BITS - 1);
}

static __always_inline __u32 weir_sharers_with(__u32 field, __u32 cpu)
{
	if (config.cpus <= WEIR_SHARERS_FIELD_BITS)
		return field | 1u << cpu;
	if (field == 0 || field == cpu + 1)
		return cpu + 1;
	if (!(field & WEIR_SHARERS_MANY))
		field = WEIR_SHARERS_MANY | weir_sharers_bit(field - 1);
	return field | weir_sharers_bit(cpu);
}

static __always_inline bool weir_sharers_names(__u32 field, __u32 cpu)
{
	if (config.cpus <= WEIR_SHARERS_FIELD_BITS)
		return field >> cpu & 1;
	if (field & WEIR_SHARERS_MANY)
		return field >> cpu % (WEIR_SHARERS_FIELD_BITS - 1) & 1;
	return field == cpu + 1;
}

static __always_inline bool weir_is_present(__u32 present, __u32 cpu)
{
	return present == WEIR_PRESENT_ALL || weir_sharers_names(present & WEIR_SHARERS_FIELD, cpu) ||
	       weir_sharers_names(present >> WEIR_SHARERS_FIELD_BITS & WEIR_SHARERS_FIELD, cpu);
}

static __always_inline bool weir_is_alone(__u32 present, __u32 cpu)
{
	__u32 earlier = present >> WEIR_SHARERS_FIELD_BITS, own = weir_sharers_with(0, cpu);

	return (present & WEIR_SHARERS_FIELD) == own && (earlier == 0 || earlier == own);
}

/* ---- epochs ---- */

/* How many epochs the cell's epoch lies behind ours; from WEIR_SHARERS_AHEAD on, it seems to lie ahead. A cell is zero
 * only if it was never used; its epoch then has no meaning.
 */
static __always_inline __u32 weir_sharers_age(__u32 cell, __u32 epoch)
{
	return cell ? (epoch - (cell >> WEIR_SHARERS_EPOCH_SHIFT)) & 0xff : 2;
}

/*
 * The meaning of a cell whose epoch seems to lie ahead. If we have stalled, all of the cell counts; if the cell has not
 * been used for a quarter of an hour, nothing does. Reading the clock again distinguishes the two. The added second is
 * more than the clocks of two CPUs can differ.
 */
__noinline __u32 weir_sharers_recall(__u32 cell)
{
	__u32 epoch = (bpf_ktime_get_ns() + WEIR_NSEC_PER_SEC) >> config.sharers_shift & 0xff;

	/* In the test harness, the clock may go back, and tests decide when a CPU stalls. */
	return config.is_virtual || weir_sharers_age(cell, epoch) < WEIR_SHARERS_AHEAD ? cell : 0;
}

/* The cell after this CPU, whose clock is in `epoch`, has added itself. */
static __always_inline __u32 weir_sharers_joined(__u32 cell, __u32 epoch, __u32 cpu)
{
	__u32 age = weir_sharers_age(cell, epoch);

	if (age == 0 || age >= WEIR_SHARERS_AHEAD)
		return (cell & ~WEIR_SHARERS_FIELD) | weir_sharers_with(cell & WEIR_SHARERS_FIELD, cpu);
	return epoch << WEIR_SHARERS_EPOCH_SHIFT |
	       (age == 1 ? (cell & WEIR_SHARERS_FIELD) << WEIR_SHARERS_FIELD_BITS : 0) | weir_sharers_with(0, cpu);
}

static __always_inline __u32 weir_epoch(const struct weir_scratch *s)
{
	return s->view.now_ns >> config.sharers_shift & 0xff;
}

/* Change the cell from `seen` to `joined`, or find that it is so already. A full barrier, if it returns true. */
static __always_inline bool weir_join(struct weir_scratch *s, __u32 *cell, __u32 seen, __u32 joined)
{
	if (joined != seen)
		return __sync_val_compare_and_swap(cell, seen, joined) == seen;
	/* This CPU is named already. Read again after the barrier; only that reading counts. */
	weir_fence(s);
	return READ_ONCE(*cell) == seen;
}

/* weir_announce_cpu() where the cell changes meanwhile, or seems to lie ahead. */
__noinline __u32 weir_announce_again(struct weir_scratch *s)
{
	__u32 *cell = s ? weir_sharers_cell(&s->view.flow) : NULL;

	for (int i = 1; cell && i < WEIR_SHARERS_TRIES; i++) {
		__u32 epoch = weir_epoch(s), seen = READ_ONCE(*cell), known = seen, joined;

		if (weir_sharers_age(seen, epoch) >= WEIR_SHARERS_AHEAD)
			known = weir_sharers_recall(seen);
		joined = weir_sharers_joined(known, epoch, weir_this_cpu(s));
		if (weir_join(s, cell, seen, joined))
			return joined >> WEIR_SHARERS_EPOCH_SHIFT == epoch ? joined & WEIR_SHARERS_FIELDS
									   : WEIR_PRESENT_ALL;
	}
	return WEIR_PRESENT_LOST;
}

/* Make the cell of s->view.flow name this CPU, and return the other CPUs that it names. A full barrier; call it after
 * adding units to the own row.
 */
static __always_inline __u32 weir_announce_cpu(struct weir_scratch *s, __u32 cpu)
{
	__u32 *cell = weir_sharers_cell(&s->view.flow), epoch = weir_epoch(s), seen, joined;

	if (!cell)
		return WEIR_PRESENT_LOST;
	seen = READ_ONCE(*cell);
	if (likely(weir_sharers_age(seen, epoch) < WEIR_SHARERS_AHEAD)) {
		joined = weir_sharers_joined(seen, epoch, cpu);
		if (likely(weir_join(s, cell, seen, joined)))
			return joined & WEIR_SHARERS_FIELDS;
	}
	return weir_announce_again(s);
}

#endif
