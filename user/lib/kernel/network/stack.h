/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is below an interface: the ports of a bridge or a bond, the parent of a VLAN, down to the interfaces at the
 * bottom, where packets arrive. It is read by rtnetlink, for the present network namespace. Independent of offloads.
 */
#ifndef WEIR_NETWORK_STACK_H
#define WEIR_NETWORK_STACK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum weir_link_kind {
	WEIR_LINK_OTHER,
	WEIR_LINK_LOOPBACK,
	WEIR_LINK_VETH,
	WEIR_LINK_TUN, /* and tap */
};

struct weir_stacked {
	char name[IF_NAMESIZE];
	uint32_t ifindex;
	uint16_t type;		 /* ARPHRD_*: weir_link_type_without_ethernet() */
	uint32_t master, parent; /* 0: none in this namespace */
	/* The upper interface receives the packets of its ports again if they are addressed to it (bridge, bond, team).
	 * The same holds for the packets of its parent (VLAN, macvlan, ipvlan). It does not hold for a tunnel, which
	 * receives the inner packet.
	 */
	bool repeats_ports, repeats_parent;
	enum weir_link_kind kind;
	uint32_t peer;	      /* of a veth: the index of its peer in the peer's namespace; 0: unknown */
	int32_t peer_netns;   /* this namespace's id for the peer's namespace; -1: the peer is in this namespace */
	bool has_vnet_header; /* of a tun: its user may hand over more than one frame at once */
};

struct weir_stack {
	struct weir_stacked *links; /* all links of the namespace */
	size_t count;
	struct weir_stacked *bottoms; /* the lowest interfaces below the one in question, or that interface itself */
	size_t bottom_count;
};

/* An interface that cannot be read counts as one of no particular kind, at the bottom. `stack` starts as {}. */
void weir_stack_read(const char *name, uint32_t ifindex, struct weir_stack *stack);

/* Read only the links, all those of the namespace. Returns 0 or -errno. */
int weir_stack_read_links(struct weir_stack *stack);

/* NULL: no interface has this index. */
const struct weir_stacked *weir_stack_find(const struct weir_stack *stack, uint32_t ifindex);

/* Whether a packet that has arrived on `lower` may then arrive on `upper`, over any number of levels. */
bool weir_stack_repeats(const struct weir_stack *stack, const struct weir_stacked *upper,
			const struct weir_stacked *lower);

/* Whether all packets that arrive on `link` have already arrived on interfaces for which `is_limited` returns true. If
 * so, *ret_first is one of those interfaces.
 */
typedef bool (*weir_is_limited)(const struct weir_stacked *link, const void *data);
bool weir_stack_is_covered(const struct weir_stack *stack, const struct weir_stacked *link, weir_is_limited is_limited,
			   const void *data, const struct weir_stacked **ret_first);

void weir_stack_free(struct weir_stack *stack);

#endif
