/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traffic patterns for the wire, and when what of them is due. Pure: no clock, no wire. Times are ns since the
 * traffic began, which is on a whole second of the clock, so that windows' edges lie where the patterns think.
 */
#ifndef WEIR_BENCH_TRAFFIC_H
#define WEIR_BENCH_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

enum traffic_pattern {
	TRAFFIC_STEADY, /* evenly, above the limit */
	TRAFFIC_BURSTS, /* at once, after silences that drift against the windows' grid */
	TRAFFIC_EDGES,	/* the limit at a second's end, at the next one's start, and when leap's window has moved on */
	TRAFFIC_ON_OFF, /* half a second far above the limit, half a second nothing */
	TRAFFIC_PATTERNS
};

extern const char *const traffic_names[TRAFFIC_PATTERNS];

/* One group of flows: all the same, each by itself under the same limit. */
struct traffic {
	enum traffic_pattern pattern;
	uint32_t limit; /* packets a second */
	uint32_t flows;
};

/* Packets of the group, all flows together, that are due by this time. */
uint64_t traffic_due(const struct traffic *traffic, uint64_t since_ns);

#endif
