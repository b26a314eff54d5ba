/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connections of a whole rule, from the maps of a program that is loaded, attached or not. What the words in them
 * mean is core's (tables/connection_counts.h).
 */
#ifndef WEIR_PROGRAM_CONNECTION_TOTALS_H
#define WEIR_PROGRAM_CONNECTION_TOTALS_H

#include <stdint.h>

#include "program/object.h"
#include "tables/connection_counts.h"

/* Maps `connection_totals` and `lone_connections`. */
struct weir_connection_fds {
	int totals, lone;
};

struct weir_connection_fds weir_object_connection_fds(const struct weir_object *object);

/* Figures of the rule at this slot. Returns 0 or -errno; says nothing. */
int weir_connections_read_rule(const struct weir_connection_fds *fds, uint32_t slot,
			       const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures);

#endif
