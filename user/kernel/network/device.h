/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room network: interfaces and network namespaces without weir: what a device can do (this header), which namespace
 * one is in, and requests by netlink (netlink.h) for devices, queues and filters (tc.h).
 *
 * What can be learnt of an interface without changing it: by ioctl and netlink, because a command that
 * has entered another network namespace still sees the old one under /sys.
 */
#ifndef WEIR_NETWORK_DEVICE_H
#define WEIR_NETWORK_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "network/hardware.h"

struct weir_device {
	char driver[32];	       /* empty: not known */
	uint16_t type;		       /* weir_device_type() */
	uint32_t mtu;		       /* 0: not known */
	uint32_t rx_queues;	       /* 0: not known */
	uint32_t rss_queues;	       /* of these, to which RSS sends packets; 0: not known */
	uint32_t rx_ring, rx_ring_max; /* packets that wait for the driver, of one queue; 0: not known */
	bool is_up;
	/* offloads that are on */
	bool has_offloads; /* the next two are known */
	bool strips_vlan;
	bool merges_in_hardware; /* LRO */
	bool merges_in_software; /* GRO */
	bool has_xdp_features;	 /* the next three are known: Linux 6.3 and later */
	bool has_native_xdp;	 /* and would not refuse it (hardware.keeps_merging) */
	bool has_native_frags;
	struct weir_hardware hardware;
	/* XDP programs on it; 0: none */
	uint32_t native_program, skb_program, offloaded_program;
};

/* Interface of the present network namespace. What cannot be learnt stays zero. Returns 0 or -errno. */
int weir_device_read(const char *name, uint32_t ifindex, struct weir_device *ret_device);

/* Its type of link layer alone: ARPHRD_*, as in linux/if_arp.h. What cannot be determined is taken for Ethernet. */
uint16_t weir_device_type(const char *name);

/* The program reads Ethernet. What bears another header, or none (tun, WireGuard, IPIP, GRE), would be evaluated
 * against the wrong bytes: then this is what `ip link` calls its type, behind "link/". NULL: it has Ethernet.
 */
#define WEIR_LINK_TYPE_BYTES 16
const char *weir_link_type_without_ethernet(uint16_t type, char buffer[WEIR_LINK_TYPE_BYTES]);

/* What to do about one. */
#define WEIR_NO_ETHERNET_ADVICE                                                                                        \
	"'--mode tc' reads them from the IP header on; or attach to the Ethernet interface that carries it, where "    \
	"its outer packets are limited"

/* The XDP program on it, of whatever mode; 0: none. */
uint32_t weir_device_program(const struct weir_device *device);

/* Name of a loaded program ("?" when it cannot be determined). */
void weir_program_name(uint32_t program_id, char name[16]);

#define WEIR_REMOVAL_BYTES 160

/* The command that takes that program off, by what put it there: 'ip link' would leave behind what libxdp keeps of its
 * own, and cannot take off what a BPF link holds. Which link it is takes CAP_SYS_ADMIN to see.
 */
void weir_device_removal(const char *name, uint32_t ifindex, const struct weir_device *device,
			 char ret_words[WEIR_REMOVAL_BYTES]);

#endif
