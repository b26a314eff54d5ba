/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which offloads merge packets before a program in skb mode sees them: GRO and LRO, in software or in the device, on
 * the interface or on those below it (ports of a bridge or a bond, the parent of a VLAN). A merged packet is evaluated
 * as one. Changes nothing.
 */
#ifndef WEIR_NETWORK_MERGING_H
#define WEIR_NETWORK_MERGING_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct weir_merging {
	char interface[IF_NAMESIZE]; /* that has the offload: the one in question, or one below it */
	const char *offload;	     /* as 'ethtool -K' names it: "gro", "lro" or "rx-gro-hw" */
	bool is_fixed;		     /* it cannot be turned off: the host of a virtual machine decides */
};

/* The first such offload of an interface of the present network namespace; false: none is known. */
bool weir_merging_find(const char *name, uint32_t ifindex, struct weir_merging *ret_merging);

#endif
