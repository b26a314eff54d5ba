/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether rules have room for the super-frames of TCP that goes out. At tc egress such a frame counts as its segments,
 * and is admitted as a whole or not at all (docs/directions.md). Pure.
 */
#ifndef WEIR_COMPILE_TCP_ROOM_H
#define WEIR_COMPILE_TCP_ROOM_H

#include "rules/ruleset.h"

/* The largest super-frame of a device, unless somebody has raised it (the kernel's GSO_LEGACY_MAX_SIZE). */
#define WEIR_SUPER_FRAME_BYTES 65536

struct weir_tcp_device {
	const char *interface; /* NULL: any */
	uint32_t frame_bytes;  /* of its largest super-frame: IFLA_GSO_MAX_SIZE, IFLA_GSO_IPV4_MAX_SIZE */
	uint32_t segments_max; /* IFLA_GSO_MAX_SEGS */
};

struct weir_tcp_room {
	char text[200];	  /* "rule 'dns#1' can never admit ..." */
	char advice[160]; /* what to do about it */
};

/* Is there a rule that can never admit the largest super-frame of the device? *ret_room, which is touched only then, is
 * about the first one.
 */
bool weir_tcp_room_is_short(const struct weir_ruleset *ruleset, const struct weir_tcp_device *device,
			    struct weir_tcp_room *ret_room);

/* Does the match select TCP packets other than connection openings? */
bool weir_match_limits_tcp(const struct weir_match *match);

#endif
