/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Super-frames from senders on this host. A program, a container or a virtual machine can hand over much data at once
 * (GSO: TCP up to 64 KB, with BIG TCP more; UDP_SEGMENT), and this stays one frame until something on its way needs
 * separate packets. A program in skb mode sees the whole frame. An xdp_buff does not say how many packets it will
 * become, so the frame is evaluated as one. (The skb behind the buffer has that number. To use it, every kind of limit
 * and the shortcuts of the fast path would have to count several packets in one step. Native mode sees the packets one
 * by one.) Changes nothing.
 *
 * These frames differ from packets merged by an offload (merging.h): only senders on this host create them. So attach
 * warns of them, but does not refuse.
 */
#ifndef WEIR_NETWORK_SUPER_FRAMES_H
#define WEIR_NETWORK_SUPER_FRAMES_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_super_frames {
	char interface[IF_NAMESIZE]; /* on which they arrive: the one in question, or one below it */
	bool is_below;	    /* it is below, and may have native mode even if the one above (a bridge) has not */
	bool evades_native; /* a tap delivers them whole in native mode, too */
	char text[200];	    /* who sends them */
	char advice[240];   /* how to get separate packets */
};

/* Whether super-frames arrive, or may arrive, on an interface of the present network namespace; false: none do. The
 * peer of a veth is examined in its own namespace if that can be found and entered.
 */
bool weir_super_frames_find(const char *name, uint32_t ifindex, struct weir_super_frames *ret_frames);

#endif
