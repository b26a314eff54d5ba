/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interprets the words of the connection tables (weir_connections.h; docs/connections.md): how many connections of a
 * flow are open, and how the others ended. Pure: it takes copies of map entries, and a time. Packets keep arriving
 * while a map is copied, so counts may be from slightly different moments; impossible counts are corrected.
 */
#ifndef WEIR_TABLES_CONNECTION_COUNTS_H
#define WEIR_TABLES_CONNECTION_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "weir_abi.h"

/* The current step of each class. */
struct weir_connection_clock {
	uint64_t step[WEIR_CONNECTION_CLASSES];
};

struct weir_connection_clock weir_connection_clock(const __u64 step_ns[WEIR_CONNECTION_CLASSES], uint64_t now_ns);

/* A sixth of the timeout, in ns, rounded up. */
uint64_t weir_connection_step_ns(uint64_t timeout_ms);

/* The figures of a flow, or of a whole rule. */
struct weir_connection_figures {
	uint64_t now, max;
	uint64_t opened, learned, returned, refused;
	bool has_refused; /* false for a flow with a key: a refused packet leaves no count there */
	uint64_t closed_by_fin, closed_by_reset, closed_by_idle, reused, evicted;
	uint64_t handshakes, handshake_us; /* handshake_us: the sum over all of them */
	uint64_t shortest_us;		   /* 0 if there was none */
	uint64_t handshake_step[WEIR_HANDSHAKE_STEPS];
};

/* The sum of the flow's cells that count at this time. `tag` is the flow's mark, or WEIR_CONNECTION_LONE_TAG for a
 * resource without a flow key.
 */
uint64_t weir_connections_in_cells(const struct weir_connection_flow *flow, uint32_t tag,
				   const struct weir_connection_clock *clock);

/* The figures of one flow. `now` never exceeds `max`, and no figure is negative. */
void weir_connection_figures(const struct weir_connection_flow *flow, uint32_t tag,
			     const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures);

/* The figures of a whole rule: `totals` has each CPU's copy of the rule's total; `lone` is the entry that is evaluated
 * if the resource has no flow key (otherwise empty).
 */
void weir_connection_rule_figures(const struct weir_connection_total *totals, int cpus,
				  const struct weir_connection_flow *lone, const struct weir_connection_clock *clock,
				  struct weir_connection_figures *ret_figures);

/* The owner of a connection: the number of a flow (weir_connections.h), and the part of the flow's tag that is stored
 * in words.
 */
struct weir_connection_owner {
	uint32_t flow;
	uint32_t check;
};

/* Does this way hold a connection that counts at this time? If so, *ret_owner identifies its flow. */
bool weir_connection_is_counted(const struct weir_connection_set *set, uint32_t way,
				const struct weir_connection_clock *clock, struct weir_connection_owner *ret_owner);

#endif
