/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Super-frames of senders on this host: what a program, a container or a virtual machine hands over at once (GSO: TCP
 * of up to 64 KB, with BIG TCP more; UDP_SEGMENT) stays one frame as long as nothing on its way needs it in pieces. A
 * program in skb mode sees it whole, and an xdp_buff does not say of how many packets it is to be; so it is evaluated
 * as one. (That number is in the skb behind the buffer. To count by it, every kind of limit would have to take several
 * packets in one step, the shortcuts of the fast path, too; native mode has them one by one.) Changes nothing.
 *
 * They differ from what an offload merges (merging.h): only what runs on this host makes them, so attach warns of them,
 * and does not refuse.
 */
#ifndef WEIR_NETWORK_SUPER_FRAMES_H
#define WEIR_NETWORK_SUPER_FRAMES_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_super_frames {
	char interface[IF_NAMESIZE]; /* by which they come: the one asked for, or one below it */
	bool is_below;		     /* one below it, which may have native mode where it has none, as a bridge */
	bool evades_native;	     /* a tap hands them over whole in native mode, too */
	char text[200];		     /* whose they are */
	char advice[240];	     /* how they come in pieces */
};

/* Whether such frames come, or may come, by an interface of the present network namespace; false: none do. A veth's
 * peer is looked at in its own namespace, where that can be found and entered.
 */
bool weir_super_frames_find(const char *name, uint32_t ifindex, struct weir_super_frames *ret_frames);

#endif
