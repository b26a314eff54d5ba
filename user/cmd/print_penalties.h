/* SPDX-License-Identifier: GPL-2.0-only */
/* How penalties look, wherever a command shows them. */
#ifndef WEIR_PRINT_PENALTIES_H
#define WEIR_PRINT_PENALTIES_H

#include "print.h"
#include "state/penalised_flows.h"

/* A table, and a line that says how many there are in all. */
void weir_print_penalties(const struct weir_instance *instance, const struct weir_penalised_flows *flows);

#endif
