/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The circuit breakers and the connections of whole rules, from the maps of a loaded program, attached or not. The
 * meaning of the words in these maps is core's (tables/entry_state.h, tables/connection_counts.h).
 */
#ifndef WEIR_PROGRAM_SUMS_H
#define WEIR_PROGRAM_SUMS_H

#include <stdint.h>

#include "program/object.h"
#include "tables/connection_counts.h"
#include "tables/entry_state.h"

/* ---- circuit breakers ---- */

/* Called with each breaker that has seen a packet. For a whole resource, `key` is meaningless. */
typedef void (*weir_breaker_visitor)(void *data, uint32_t slot, const struct weir_flow_key *key,
				     const struct weir_breaker_view *view);

/* Returns 0 or -errno, with no message. */
int weir_breakers_visit(const struct weir_tables *tables, uint64_t now_ns, weir_breaker_visitor visit, void *data);

/* The sums by slot. `sums` has rule_slots elements, zeroed before the call. */
int weir_breakers_sum(const struct weir_tables *tables, uint64_t now_ns, struct weir_breaker_sum *ret_sums);

/* ---- connections ---- */

/* The figures of the rule in `slot`, which counts connections at `flows_slot` (weir_connections_slot()). Returns 0 or
 * -errno, with no message.
 */
int weir_connections_read_rule(const struct weir_tables *tables, uint32_t slot, uint32_t flows_slot,
			       const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures);

#endif
