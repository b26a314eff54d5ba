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

struct weir_device {
	char driver[32];    /* empty: not known */
	uint32_t mtu;	    /* 0: not known */
	uint32_t rx_queues; /* 0: not known */
	bool is_up;
	/* offloads that are on */
	bool has_offloads; /* the next two are known */
	bool strips_vlan;
	bool merges_in_hardware; /* LRO */
	bool merges_in_software; /* GRO */
	bool has_xdp_features;	 /* the next three are known: Linux 6.3 and later */
	bool has_native_xdp;
	bool has_native_frags;
	/* XDP programs on it; 0: none */
	uint32_t native_program, skb_program, offloaded_program;
};

/* Interface of the present network namespace. What cannot be learnt stays zero. Returns 0 or -errno. */
int weir_device_read(const char *name, uint32_t ifindex, struct weir_device *ret_device);

/* The XDP program on it, of whatever mode; 0: none. */
uint32_t weir_device_program(const struct weir_device *device);

/* The word by which 'ip link set dev NAME WORD off' takes that program off. */
const char *weir_device_xdp_word(const struct weir_device *device);

/* Name of a loaded program ("?" when it cannot be told). */
void weir_program_name(uint32_t program_id, char name[16]);

#endif
