/* SPDX-License-Identifier: GPL-2.0-only */
/* House cluster: one limit for many hosts (docs/cluster.md), its command and its calculator. */
#ifndef WEIR_CLUSTER_ROWS_H
#define WEIR_CLUSTER_ROWS_H

#include "cli/command.h"
#include "control/calculator.h"

extern const struct weir_command_entry weir_cluster_entry;
extern const struct weir_calculator weir_cluster_calculator;

#endif
