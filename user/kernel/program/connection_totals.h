/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connections of a whole rule, from the maps of a loaded program, attached or not. The meaning of the words in
 * these maps is core's (tables/connection_counts.h).
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

/* The figures of the rule in this slot. Returns 0 or -errno, with no message. */
int weir_connections_read_rule(const struct weir_connection_fds *fds, uint32_t slot,
			       const struct weir_connection_clock *clock, struct weir_connection_figures *ret_figures);

#endif
