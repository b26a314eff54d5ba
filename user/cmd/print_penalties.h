/* SPDX-License-Identifier: GPL-2.0-only */
/* Penalties in a table, for all commands that show them. */
#ifndef WEIR_PRINT_PENALTIES_H
#define WEIR_PRINT_PENALTIES_H

#include "print.h"
#include "state/penalised_flows.h"

/* Print a table, and a line with the total number. */
void weir_print_penalties(const struct weir_instance *instance, const struct weir_penalised_flows *flows);

#endif
