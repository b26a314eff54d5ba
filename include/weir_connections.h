/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of connections, in maps of the instance: the tables, their words and cells. docs/connections.md says what a
 * connection is; only bpf/kinds/connections.h and bpf/kinds/connection_flows.h write here. All of it survives a reload:
 * a table whose layout changes here gets another version (weir_tables.h).
 */
#ifndef WEIR_ABI_CONNECTIONS_H
#define WEIR_ABI_CONNECTIONS_H

#include "weir_state.h"

/* How long a connection may be silent depends on the class of its state. A step is a sixth of that time. */
enum weir_connection_class {
	WEIR_CONNECTION_CLASS_HALF,  /* half-open, refused */
	WEIR_CONNECTION_CLASS_OPEN,  /* TCP: open, learned */
	WEIR_CONNECTION_CLASS_OTHER, /* UDP and all other protocols */
	WEIR_CONNECTION_CLASS_CLOSED,
	WEIR_CONNECTION_CLASSES
};
#define WEIR_CONNECTION_CLASSES_COUNTED 3 /* the first three; closed ones do not count */
#define WEIR_CONNECTION_STEPS 6		  /* last heard more steps ago than this, a connection is over */

enum weir_connection_state {
	WEIR_CONNECTION_NONE,
	WEIR_CONNECTION_HALF_OPEN,
	WEIR_CONNECTION_LEARNED, /* nobody saw it open: it counts for nothing */
	WEIR_CONNECTION_OPEN,
	WEIR_CONNECTION_OTHER_ONCE, /* heard once: among the first to be evicted */
	WEIR_CONNECTION_OTHER,
	WEIR_CONNECTION_CLOSED,
	WEIR_CONNECTION_REFUSED,
};

/*
 * Map `connections`: shared sets. A connection is decided by its word alone, which changes by compare-and-swap. From
 * the lowest bit it holds: the step in which the connection was last heard (23 bits of the step's number), its state
 * (3), 4 bits of its tag, to recognise a stale word of the previous owner, and the flow that counts it: 10 bits of the
 * flow's tag, and the flow's number (24).
 */
#define WEIR_CONNECTION_STEP_BITS 23 /* 16 days at the shortest time-out */
#define WEIR_CONNECTION_STEP_MASK ((1ull << WEIR_CONNECTION_STEP_BITS) - 1)
#define WEIR_CONNECTION_STATE_SHIFT 23
#define WEIR_CONNECTION_TAG_SHIFT 26
#define WEIR_CONNECTION_TAG_MASK 0xfull
#define WEIR_CONNECTION_FLOW_TAG_SHIFT 30
#define WEIR_CONNECTION_FLOW_SHIFT 40
#define WEIR_CONNECTION_CHECK 0x3ffull /* 10 bits of a tag */

/* How many ways such connections may take, because a flood can create any number of them. */
#define WEIR_CONNECTION_BUDGET 2
/* A TCP connection that is evicted while it counts, or whose time is over, leaves its tag as a ghost, by which it
 * counts again when it talks. Half-open connections have separate ghosts, so that a flood of SYNs replaces no others.
 * These are in the line of the words, which such a flood writes anyway. The other sixteen are enough for twice as many
 * connections as a set has ways, with two to spare.
 */
#define WEIR_CONNECTION_HALF_OPEN_GHOSTS 2
#define WEIR_CONNECTION_OPEN_GHOSTS 16
#define WEIR_CONNECTION_GHOSTS (WEIR_CONNECTION_HALF_OPEN_GHOSTS + WEIR_CONNECTION_OPEN_GHOSTS)
struct weir_connection_set {
	struct weir_flow_set flows; /* opened_us: time of a half-open one's SYN, modulo 2^32 */
	__u64 word[WEIR_FLOW_WAYS];
	__u32 ghost[WEIR_CONNECTION_GHOSTS]; /* tags: of half-open ones first; 0: none */
};
_Static_assert(sizeof(struct weir_connection_set) == 192, "three cache lines");
_Static_assert(__builtin_offsetof(struct weir_connection_set, ghost) + 8 == 128, "those of open ones have the third");

/* A cell counts a flow's connections that were last heard in one step. From the highest bit it holds: the step (30 bits
 * of its number), 10 bits of the flow's tag, the count (24). A cell of another flow or step does not count, so nothing
 * has to clear the cells of steps that are over.
 */
#define WEIR_CONNECTION_CELLS 8 /* the current step, the six before it, and one for a CPU whose clock is ahead */
#define WEIR_CONNECTION_COUNT_BITS 24
#define WEIR_CONNECTION_COUNT_MASK ((1ull << WEIR_CONNECTION_COUNT_BITS) - 1)
#define WEIR_CONNECTION_CELL_STEP_SHIFT 34
#define WEIR_CONNECTION_CELL_STEP_MASK ((1u << 30) - 1)
#define WEIR_CONNECTION_CELL(step, flow_tag)                                                                           \
	((__u64)((step)&WEIR_CONNECTION_CELL_STEP_MASK) << WEIR_CONNECTION_CELL_STEP_SHIFT |                           \
	 ((flow_tag)&WEIR_CONNECTION_CHECK) << WEIR_CONNECTION_COUNT_BITS)

#define WEIR_HANDSHAKE_STEPS 24 /* step n counts times from 2^n us on; step 0 from 0 */

/* How many connections were opened, ended and so on. Those that ended by silence are the rest: opened + returned -
 * ended - now.
 */
struct weir_connection_counts {
	__u64 learned;	/* count for nothing */
	__u64 returned; /* count again: they talked after they were evicted, or silent for too long */
	__u64 refused;	/* of rules only */
	__u64 closed_by_fin;
	__u64 closed_by_reset;
	__u64 reused;
	__u64 evicted;
	__u64 handshakes;
	__u64 handshake_us;	 /* the sum of all */
	__u64 handshake_less_us; /* 2^32 minus the shortest; 0: none was timed */
	__u32 handshake_step[WEIR_HANDSHAKE_STEPS];
};

/*
 * An entry: the connections of one flow. From the highest bit, `owner` holds the flow's *mark* (32 bits): its tag, with
 * the entry's *turn* in the bits of WEIR_CONNECTION_CHECK; then what the flow has used of the entry (8), and the rule's
 * slot (24). The turn counts how often the entry changed its owner (1 to 1023, then again from 1). The ten bits of "the
 * flow's tag" in words and cells are this turn, so that a flow that returns does not count its own leftovers. While the
 * entry changes its owner, the mark is the new turn alone, and the rest is still the previous owner's.
 *
 * A flow that has only half-open connections needs just the first two cache lines. Parts that it has not used contain
 * nothing of it, and are not read.
 */
struct weir_connection_flow {
	__u64 owner;
	struct weir_flow_key key; /* for `weir flows` */
	__u32 opened;		  /* modulo 2^32 */
	__u32 max;
	__u64 cell[WEIR_CONNECTION_CLASSES_COUNTED][WEIR_CONNECTION_CELLS]; /* [class][step modulo 8] */
	struct weir_connection_counts counts;				    /* zero, unless the owner has used it */
	__u64 pad[2];
};
_Static_assert(__builtin_offsetof(struct weir_connection_flow, cell) == 64, "cells begin with a cache line");
_Static_assert(sizeof(struct weir_connection_flow) == 448, "seven cache lines");
#define WEIR_CONNECTION_OWNER(rest, mark) ((__u64)(mark) << 32 | (rest))
#define WEIR_CONNECTION_OWNER_SLOT(owner) ((__u32)(owner)&0xffffffu)
#define WEIR_CONNECTION_USES_CLASS(class) (1u << 24 << (class)) /* its cells */
#define WEIR_CONNECTION_USES_CLASSES (7u << 24)
#define WEIR_CONNECTION_USES_COUNTS (1u << 27)
#define WEIR_CONNECTION_MARK(tag, turn) ((__u32)(((tag) & ~WEIR_CONNECTION_CHECK) | ((turn)&WEIR_CONNECTION_CHECK)))

/* Map `connection_flows`: shared sets of entries. Map `lone_connections`, by rule slot: the only flow of a resource
 * without a flow key; its number is WEIR_CONNECTION_LONE | slot.
 */
struct weir_connection_flow_set {
	struct weir_flow_set flows;
	struct weir_connection_flow flow[WEIR_FLOW_WAYS];
};
_Static_assert(sizeof(struct weir_connection_flow_set) == 50 * 64ul, "");
#define WEIR_CONNECTION_LONE (1u << 23)
#define WEIR_CONNECTION_FLOW_SETS_MAX (WEIR_CONNECTION_LONE / 8) /* number of a flow: set * 8 + way */
#define WEIR_CONNECTION_LONE_TAG 1u				 /* of a whole resource */

/*
 * Map `connection_totals`, by rule slot, a copy on each CPU: all connections of a rule, for the figures alone. Each CPU
 * writes its own copy; the sums are the rule's. The count of a CPU may fall below zero, if it counts out a connection
 * that another CPU has counted in. A cell holds the step (30 bits of its number), then 34 bits with a sign. Rules
 * without a flow key use no cells here: their lone flow has them.
 */
#define WEIR_CONNECTION_TOTAL_MASK ((1ull << WEIR_CONNECTION_CELL_STEP_SHIFT) - 1)
struct weir_connection_total {
	__u64 cell[WEIR_CONNECTION_CLASSES_COUNTED][WEIR_CONNECTION_CELLS];
	__u64 opened;
	__u64 max; /* the most that this CPU has seen */
	struct weir_connection_counts counts;
	/* What all CPUs had open at a tick and in these steps (their sum), and this CPU's changes since. */
	__u64 open;
	__u64 open_tick;
	__u64 open_steps;
};

#endif
