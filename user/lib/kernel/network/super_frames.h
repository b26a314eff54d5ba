/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Super-frames from senders on this host. A program, a container or a virtual machine can hand over much data at once
 * (GSO: TCP up to 64 KB, with BIG TCP more; UDP_SEGMENT), and this stays one frame until something on its way needs
 * separate packets. A program in skb mode sees the whole frame. An xdp_buff does not say how many packets it will
 * become, so the frame is evaluated as one. (The skb behind the buffer has that number. To use it, every kind of limit
 * and the shortcuts of the fast path would have to count several packets in one step. Native mode sees the packets one
 * by one.) Changes nothing.
 *
 * These frames differ from packets merged by an offload: only senders on this host create them. So attach
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

/* ---- packets that an offload merges ----
 *
 * Which offloads merge packets before a program in skb mode sees them: GRO and LRO, in software or in the device, on
 * the interface or on those below it (ports of a bridge or a bond, the parent of a VLAN). A merged packet is evaluated
 * as one. Changes nothing.
 */

struct weir_merging {
	char interface[IF_NAMESIZE]; /* that has the offload: the one in question, or one below it */
	const char *offload;	     /* as 'ethtool -K' names it: "gro", "lro" or "rx-gro-hw" */
	bool is_fixed;		     /* it cannot be turned off: the host of a virtual machine decides */
};

/* The first such offload of an interface of the present network namespace; false: none is known. */
bool weir_merging_find(const char *name, uint32_t ifindex, struct weir_merging *ret_merging);

/* ---- features of a driver ----
 *
 * What ethtool(8) shows of an interface, by its ioctl: commands, and offloads by the names that 'ethtool -k' prints.
 * Reads only, sets nothing.
 */

/* Send a command, which begins with its number as every ethtool struct does, to an interface in the network namespace
 * of the socket fd. False: the driver does not answer the command.
 */
bool weir_ethtool_ask(int fd, const char *name, void *command);

#endif
