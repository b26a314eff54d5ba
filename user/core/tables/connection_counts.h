/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the words of the connection tables say (weir_connections.h; docs/connections.md): how many connections of a flow
 * are open, and how the others ended. Pure: entries as they were copied from a map, and a time. Packets keep arriving
 * while a map is copied, so a count may be of an earlier moment than the next; impossible ones are not shown.
 */
#ifndef WEIR_TABLES_CONNECTION_COUNTS_H
#define WEIR_TABLES_CONNECTION_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

/* The present step of each class. */
struct weir_connection_clock {
	uint64_t step[WEIR_CONNECTION_CLASSES];
};

struct weir_connection_clock weir_connection_clock(const __u64 step_ns[WEIR_CONNECTION_CLASSES], uint64_t now_ns);

/* A sixth of the time-out, in ns, rounded up. */
uint64_t weir_connection_step_ns(uint64_t timeout_ms);

/* What a flow, or a whole rule, has to show. */
struct weir_connection_figures {
	uint64_t now, max;
	uint64_t opened, learned, returned, refused;
	bool has_refused; /* not of a flow with a key: a packet that is refused writes nothing there */
	uint64_t closed_by_fin, closed_by_reset, closed_by_idle, reused, evicted;
	uint64_t handshakes, handshake_us; /* handshake_us: all of them together */
	uint64_t shortest_us;		   /* 0 when there was none */
	uint64_t handshake_step[WEIR_HANDSHAKE_STEPS];
};

/* The sum of the flow's cells that count at this time. `tag` is the flow's mark; WEIR_CONNECTION_LONE_TAG of a resource
 * without a flow key.
 */
uint64_t weir_connections_in_cells(const struct weir_connection_flow *flow, uint32_t tag,
				   const struct weir_connection_clock *clock);

/* At no time `now` above `max`, nor anything below zero. */
void weir_connection_figures(const struct weir_connection_flow *flow, uint32_t tag,
			     const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures);

/* A whole rule's: every CPU's copy of its total, and the entry that decides if the resource has no flow key (else it
 * is empty).
 */
void weir_connection_rule_figures(const struct weir_connection_total *totals, int cpus,
				  const struct weir_connection_flow *lone, const struct weir_connection_clock *clock,
				  struct weir_connection_figures *ret_figures);

/* Whose a connection is: the number of a flow (weir_connections.h) and the part of the flow's tag that words carry. */
struct weir_connection_owner {
	uint32_t flow;
	uint32_t check;
};

/* Is there a connection in this way that counts at this time? Then *ret_owner says whose. */
bool weir_connection_is_counted(const struct weir_connection_set *set, uint32_t way,
				const struct weir_connection_clock *clock, struct weir_connection_owner *ret_owner);

#endif
