/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Map `signals`, mapped into memory: load and CPU usage, for system rules. There is only one publisher: the controller
 * of an instance, replay, or a test. This file takes no samples (host/host.h does) and has no clock.
 */
#ifndef WEIR_PROGRAM_SIGNALS_H
#define WEIR_PROGRAM_SIGNALS_H

#include "base/diag.h"
#include "weir_abi.h"

struct weir_signals_map;

int weir_signals_open(int map_fd, struct weir_signals_map **ret_map, struct weir_diag *diag);
void weir_signals_close(struct weir_signals_map *map);

/* Each signal is one word, so a packet sees the previous signal or this one. */
void weir_signals_publish(struct weir_signals_map *map, const struct weir_signals *signals);

#endif
