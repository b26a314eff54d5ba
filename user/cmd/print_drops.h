/* SPDX-License-Identifier: GPL-2.0-only */
/* A table of flows that were dropped, for people. */
#ifndef WEIR_PRINT_DROPS_H
#define WEIR_PRINT_DROPS_H

#include "state/dropped_flows.h"

void weir_print_drops(const struct weir_instance *instance, const struct weir_drops *drops);

#endif
