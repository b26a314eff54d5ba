/* SPDX-License-Identifier: GPL-2.0-only */
/* Times of the data plane, converted to wall-clock time. */
#ifndef WEIR_REPORT_TIMES_H
#define WEIR_REPORT_TIMES_H

#include <jansson.h>
#include <stdint.h>

/* Convert a time of CLOCK_MONOTONIC to "2026-11-24T20:29:45.075Z" (RFC 3339, UTC); 0, which stands for no time, becomes
 * null.
 */
json_t *weir_json_time(uint64_t monotonic_ns);

#endif
