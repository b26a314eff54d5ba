/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room network: interfaces and network namespaces, independent of weir: what a device can do (this header), network
 * namespaces (netns.h), and requests by netlink (netlink.h) for devices, queues and filters (tc.h).
 *
 * This header reads what can be found out about an interface without changing it. It uses ioctl and netlink, because a
 * command that has entered another network namespace still sees the old one under /sys.
 */
#ifndef WEIR_NETWORK_DEVICE_H
#define WEIR_NETWORK_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- hardware ----
 *
 * What /sys and /proc show of it: which CPUs get its interrupts, whether RPS spreads its packets,
 * and whether a virtio host permits native XDP. All of it belongs to the interface of this name under /sys. If the
 * command has entered another network namespace, that is not the interface in question, and then nothing is known.
 */

struct weir_hardware {
	bool is_known;
	/* Interrupts for received packets, and the CPUs that handle them now; 0: none, or unknown. */
	uint32_t interrupts, interrupt_cpus;
	uint32_t last_cpu; /* one of these CPUs */
	uint32_t rps_cpus; /* CPUs to which RPS passes packets, over all queues; 0: RPS is off */
	/* virtio_net: the host merges packets, and does not permit the guest to turn that off. */
	bool keeps_merging;
};

/* `root` is "" except in tests, which have a directory tree of their own. */
void weir_hardware_read(const char *root, const char *name, uint32_t ifindex, struct weir_hardware *ret_hardware);

/* ---- devices ---- */

struct weir_device {
	char driver[32];	       /* empty: unknown */
	uint16_t type;		       /* weir_device_type() */
	uint32_t mtu;		       /* 0: unknown */
	uint32_t rx_queues;	       /* 0: unknown */
	uint32_t rss_queues;	       /* the receive queues to which RSS sends packets; 0: unknown */
	uint32_t rx_ring, rx_ring_max; /* packets that one queue can hold for the driver; 0: unknown */
	/* The largest super-frame that it accepts from the stack, and the most segments; 0: unknown. They do not depend
	 * on TSO and GSO: without these the kernel takes frames apart too, but behind tc.
	 */
	uint32_t gso_bytes_max, gso_segments_max;
	bool is_up;
	/* Offloads that are on. */
	bool has_offloads; /* the next three are known */
	bool strips_vlan;
	bool merges_in_hardware; /* LRO */
	bool merges_in_software; /* GRO */
	bool has_xdp_features;	 /* the next two are known: Linux 6.3 and later */
	bool has_native_xdp;	 /* and the driver would accept the program (hardware.keeps_merging) */
	bool has_native_frags;
	struct weir_hardware hardware;
	/* XDP programs on it; 0: none */
	uint32_t native_program, skb_program, offloaded_program;
};

/* Read an interface of the present network namespace. Anything that cannot be determined stays zero. Returns 0 or
 * -errno.
 */
int weir_device_read(const char *name, uint32_t ifindex, struct weir_device *ret_device);

/* Only the type of its link layer: ARPHRD_*, as in linux/if_arp.h. If it cannot be determined, Ethernet is assumed. */
uint16_t weir_device_type(const char *name);

/* Whether its driver, given an XDP program, has its ports run it, so that the program sees their indexes: a bond. */
bool weir_device_runs_in_ports(const char *name);

/* The program expects Ethernet headers. On an interface with another header or none (tun, WireGuard, IPIP, GRE) it
 * would evaluate the wrong bytes. For such an interface this returns the name that `ip link` shows for its type after
 * "link/". NULL: it has Ethernet headers.
 */
#define WEIR_LINK_TYPE_BYTES 16
const char *weir_link_type_without_ethernet(uint16_t type, char buffer[WEIR_LINK_TYPE_BYTES]);

/* What to do about such an interface. */
#define WEIR_NO_ETHERNET_ADVICE                                                                                        \
	"'--mode tc' reads them from the IP header on; or attach to the Ethernet interface that carries it, where "    \
	"its outer packets are limited"

/* The XDP program on it, in any mode; 0: none. */
uint32_t weir_device_program(const struct weir_device *device);

/* The name of a loaded program ("?" if it cannot be determined). */
void weir_program_name(uint32_t program_id, char name[16]);

#define WEIR_REMOVAL_BYTES 160

/* The command that removes that program, depending on what attached it: 'ip link' would leave libxdp's own state
 * behind, and cannot remove a program that a BPF link holds. Finding the link takes CAP_SYS_ADMIN.
 */
void weir_device_removal(const char *name, uint32_t ifindex, const struct weir_device *device,
			 char ret_words[WEIR_REMOVAL_BYTES]);

/* ---- what a program in native mode on a veth must know of its peer ---- */

struct weir_veth_loss {
	bool is_known; /* false: the peer cannot be examined from here, so that they may be lost */
	char words[224];
	char advice[160];
};

/*
 * Whether what the program sends by XDP_TX is lost: a veth hands such frames over to its peer, but wakes it only if
 * that has an XDP program, too. If the peer has but GRO, they lie in its ring until another packet wakes it; otherwise
 * they are dropped (veth_xdp_flush() and veth_xdp_xmit() of the kernel's driver, up to 6.18 at least). Then *ret_loss
 * says so, and what to do. False for any other device.
 */
bool weir_veth_loses_answers(const char *name, uint32_t ifindex, struct weir_veth_loss *ret_loss);

#endif
