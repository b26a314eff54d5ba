/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The origin of the tick clock. The data plane numbers the buckets of leap windows by jiffies, in ns of
 * CLOCK_MONOTONIC: jiffies * tick_ns + origin_ns. The kernel advances jiffies by that same clock, so the origin is
 * valid until the machine reboots. Every load of an instance uses the origin that was found at attach.
 */
#ifndef WEIR_TICK_H
#define WEIR_TICK_H

#include <stdint.h>

#include "base/diag.h"

/* Determine the origin, modulo 2^64, for ticks of tick_ns. Takes three ticks (12 ms at 250 Hz). Returns 0, or a
 * negative errno with the reason in *diag.
 */
int weir_tick_find_origin(uint64_t tick_ns, uint64_t *ret_origin_ns, struct weir_diag *diag);

#endif
