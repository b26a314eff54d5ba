/* SPDX-License-Identifier: GPL-2.0-only */
/* Times of the data plane, by the clock on the wall. */
#ifndef WEIR_REPORT_TIMES_H
#define WEIR_REPORT_TIMES_H

#include <jansson.h>
#include <stdint.h>

/* "2026-11-24T20:29:45.075Z" (RFC 3339, UTC) of a time of CLOCK_MONOTONIC; null of 0, which stands for none. */
json_t *weir_json_time(uint64_t monotonic_ns);

#endif
