/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The connections of a whole rule, from map `connection_totals` of a program that is loaded, attached or not. What the
 * words in it mean is core's (tables/connection_counts.h).
 */
#ifndef WEIR_PROGRAM_CONNECTION_TOTALS_H
#define WEIR_PROGRAM_CONNECTION_TOTALS_H

#include <stdint.h>

#include "tables/connection_counts.h"

/* Figures of the rule at this slot. Returns 0 or -errno; says nothing. */
int weir_connections_read_rule(int totals_fd, uint32_t slot, const struct weir_connection_clock *clock,
			       struct weir_connection_figures *ret_figures);

#endif
