/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which classes of cells a flow uses (WEIR_CONNECTION_USES_CLASS; weir_use_entry(), weir_add_to_cell() and weir_sum_open()
 * of bpf/kinds/connection_counts.h) as a model for spin. A flow has one connection, half-open, which becomes an open one while
 * OPENERS CPUs want to open another each. Its limit is two.
 *
 * Checked: never are more than two admitted that are not taken out. So nobody who adds up misses the connection that
 * moves, nor both of two that come at once each other. tests/model/run leaves each safety step out by its macro, which
 * is then missed.
 *
 * A step touches what is shared once. That the entry changes hands is in connections.pml.
 */
#ifndef OPENERS
#define OPENERS 2
#endif
#define LIMIT 2
#define HALF 0
#define OPEN 1

bool uses[2];
byte cell[2];
byte admitted = 1;

inline count_in(class)
{
	uses[class] = 1;
	cell[class]++
}

/* Half-open ones first: connections move from there. */
inline sum_open()
{
	sum = 0;
#ifdef MARKS_FIRST
	saw_half = uses[HALF];
	saw_open = uses[OPEN];
#else
	saw_half = uses[HALF];
#endif
	if
	:: saw_half -> sum = sum + cell[HALF]
	:: else
	fi;
#ifndef MARKS_FIRST
	saw_open = uses[OPEN];
#endif
	if
	:: saw_open -> sum = sum + cell[OPEN]
	:: else
	fi
}

proctype mover()
{
#ifdef MARK_LATE
	cell[OPEN]++;
	cell[HALF]--;
	uses[OPEN] = 1
#else
	count_in(OPEN);
	cell[HALF]--
#endif
}

proctype opener()
{
	byte sum;
	bool saw_half, saw_open;

	count_in(HALF);
	sum_open();
	if
	:: sum <= LIMIT ->
		admitted++;
		assert(admitted <= LIMIT)
	:: else -> cell[HALF]--
	fi
}

init
{
	byte i;

	uses[HALF] = 1;
	cell[HALF] = 1;
	atomic {
		run mover();
		for (i : 1 .. OPENERS) {
			run opener()
		}
	}
}
