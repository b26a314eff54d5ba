/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a packet is evaluated: at which hook of the kernel, and in which direction it goes.
 */
#ifndef WEIR_ABI_HOOK_H
#define WEIR_ABI_HOOK_H

/* The programs, by the hook that each is for. Bare devices have no Ethernet header (tun, WireGuard, IPIP). */
enum weir_hook {
	WEIR_HOOK_XDP,
	WEIR_HOOK_TC_IN,
	WEIR_HOOK_TC_OUT,
	WEIR_HOOK_TC_BARE_IN,
	WEIR_HOOK_TC_BARE_OUT,
	WEIR_HOOKS
};

enum weir_direction {
	WEIR_DIRECTION_IN,	  /* received on the interface */
	WEIR_DIRECTION_OUT,	  /* about to be sent by it */
	WEIR_DIRECTION_FORWARDED, /* the same, for a packet that its `both` resources have already counted */
	WEIR_DIRECTIONS
};

/* weir_match.directions. */
#define WEIR_MATCHES_IN (1 << WEIR_DIRECTION_IN)
#define WEIR_MATCHES_OUT (1 << WEIR_DIRECTION_OUT)

#endif
