/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which CPUs have counted this flow lately? A table that all CPUs share has a small cell for each flow, found by its
 * hash. A CPU that takes a lease reads the rows of the CPUs that the cell names, and no others: so a flow that one CPU
 * sees costs the same however many CPUs there are. The table admits nothing; it only says whom not to ask.
 *
 * A cell has an *epoch* and two fields: the CPUs that counted in this epoch, and those of the one before. An epoch is
 * 2^presence_shift ns long, and no window that uses the table looks back further (others ask everybody:
 * weir_rule.asks_all). Up to twelve CPUs have a bit each. Of more, one alone is a number, and several share bits: CPUs
 * that share a named bit are asked in vain. docs/lease.md has the proof, and what happens at an epoch's edge.
 */
#ifndef WEIR_PRESENCE_H
#define WEIR_PRESENCE_H

#include "rows.h"

#define WEIR_PRESENCE_TRIES 8

/* Epochs from this age on, modulo 2^8, lie ahead of our clock, not behind. */
#define WEIR_PRESENCE_AHEAD (256 - 16)

/* What weir_announce_cpu() returns: the two fields of the cell, or one of these. */
#define WEIR_PRESENT_ALL 0xffffffffu  /* everybody may have counted the flow */
#define WEIR_PRESENT_LOST 0xfffffffeu /* the cell kept changing: nothing may be admitted */

#define WEIR_PRESENCE_FIELD ((1u << WEIR_PRESENCE_FIELD_BITS) - 1)
#define WEIR_PRESENCE_FIELDS ((1u << WEIR_PRESENCE_EPOCH_SHIFT) - 1)
#define WEIR_PRESENCE_MANY (1u << (WEIR_PRESENCE_FIELD_BITS - 1))

static __always_inline __u32 *weir_presence_cell(const struct weir_flow_id *id)
{
	__u32 number = (id->set << 12 | id->tag >> 20) & (config.sizes[WEIR_TABLE_PRESENCE] - 1);
	__u32 index = number / WEIR_PRESENCE_LINE_CELLS;
	struct weir_presence_line *line = bpf_map_lookup_elem(&presence, &index);

	if (!line)
		return NULL;
	OPAQUE(number);
	return &line->cell[number & (WEIR_PRESENCE_LINE_CELLS - 1)];
}

/* ---- fields ---- */

/* The bit that a CPU shares with others, where there are many. */
static __always_inline __u32 weir_presence_bit(__u32 cpu)
{
	OPAQUE(cpu); /* else clang divides where there are few, too */
	return 1u << cpu % (WEIR_PRESENCE_FIELD_BITS - 1);
}

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

static __always_inline bool weir_is_present(__u32 present, __u32 cpu)
{
	return present == WEIR_PRESENT_ALL || weir_presence_names(present & WEIR_PRESENCE_FIELD, cpu) ||
	       weir_presence_names(present >> WEIR_PRESENCE_FIELD_BITS & WEIR_PRESENCE_FIELD, cpu);
}

static __always_inline bool weir_is_alone(__u32 present, __u32 cpu)
{
	__u32 earlier = present >> WEIR_PRESENCE_FIELD_BITS, own = weir_presence_with(0, cpu);

	return (present & WEIR_PRESENCE_FIELD) == own && (earlier == 0 || earlier == own);
}

/* ---- epochs ---- */

/* How many epochs the cell's lies behind ours; from WEIR_PRESENCE_AHEAD on it seems to lie ahead. A cell that was never
 * used is zero, and no other is: it may be of any epoch.
 */
static __always_inline __u32 weir_presence_age(__u32 cell, __u32 epoch)
{
	return cell ? (epoch - (cell >> WEIR_PRESENCE_EPOCH_SHIFT)) & 0xff : 2;
}

/*
 * What a cell says whose epoch seems to lie ahead: all of it if we have stalled, nothing if it has not been used for a
 * quarter of an hour. The clock is read again to tell. The added second is more than the clocks of two CPUs may differ.
 */
__noinline __u32 weir_presence_recall(__u32 cell)
{
	__u32 epoch = (bpf_ktime_get_ns() + WEIR_NSEC_PER_SEC) >> config.presence_shift & 0xff;

	/* In the lab the clock goes back, and stalls as tests say. */
	return config.is_virtual || weir_presence_age(cell, epoch) < WEIR_PRESENCE_AHEAD ? cell : 0;
}

/* The cell as this CPU, whose clock is in `epoch`, wants it: naming itself. */
static __always_inline __u32 weir_presence_joined(__u32 cell, __u32 epoch, __u32 cpu)
{
	__u32 age = weir_presence_age(cell, epoch);

	if (age == 0 || age >= WEIR_PRESENCE_AHEAD)
		return (cell & ~WEIR_PRESENCE_FIELD) | weir_presence_with(cell & WEIR_PRESENCE_FIELD, cpu);
	return epoch << WEIR_PRESENCE_EPOCH_SHIFT |
	       (age == 1 ? (cell & WEIR_PRESENCE_FIELD) << WEIR_PRESENCE_FIELD_BITS : 0) | weir_presence_with(0, cpu);
}

/* Make the flow's cell name this CPU, and return whom else it names. A full barrier, to be called after units were
 * added to the own row. now_ns is the time that the evaluation goes by.
 */
static __always_inline __u32 weir_announce_cpu(struct weir_scratch *s, const struct weir_flow_id *id, __u32 cpu,
					       __u64 now_ns)
{
	__u32 epoch = now_ns >> config.presence_shift & 0xff;
	__u32 *cell = weir_presence_cell(id);

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
			weir_fence(s);
			joined = READ_ONCE(*cell);
			if (weir_presence_joined(joined, epoch, cpu) != joined)
				continue;
		}
		return joined >> WEIR_PRESENCE_EPOCH_SHIFT == epoch ? joined & WEIR_PRESENCE_FIELDS : WEIR_PRESENT_ALL;
	}
	return WEIR_PRESENT_LOST;
}

#endif
