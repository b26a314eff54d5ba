/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What an interface stands on: the ports of a bridge or a bond, the parent of a VLAN, down to the interfaces at the
 * bottom, where packets come in. By rtnetlink, of the present network namespace. Knows nothing of offloads.
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
	/* Packets of its ports arrive through it again if they are for it (bridge, bond, team); so do its parent's
	 * (VLAN, macvlan, ipvlan). Not so of a tunnel, which takes another packet out of the one that came.
	 */
	bool repeats_ports, repeats_parent;
	enum weir_link_kind kind;
	uint32_t peer;	      /* of a veth: its number in its own namespace; 0: not known */
	int32_t peer_netns;   /* what this namespace calls that one; -1: it is this one */
	bool has_vnet_header; /* of a tun: who feeds it may hand over more than a frame at once */
};

struct weir_stack {
	struct weir_stacked *links; /* all of the namespace */
	size_t count;
	struct weir_stacked *bottoms; /* below the one asked for, or it itself */
	size_t bottom_count;
};

/* An interface that cannot be read is taken for one of no kind, at the bottom. Starts as {}. */
void weir_stack_read(const char *name, uint32_t ifindex, struct weir_stack *stack);

/* Only the links, all of the namespace. Returns 0 or -errno. */
int weir_stack_read_links(struct weir_stack *stack);

/* NULL: there is none of this number. */
const struct weir_stacked *weir_stack_find(const struct weir_stack *stack, uint32_t ifindex);

/* Whether a packet that has come in by `lower` may come in by `upper` then, over however many levels. */
bool weir_stack_repeats(const struct weir_stack *stack, const struct weir_stacked *upper,
			const struct weir_stacked *lower);

/* Whether all that comes in by `link` has come in before by interfaces that `is_limited` says yes of. If so, one of
 * them is *ret_first.
 */
typedef bool (*weir_is_limited)(const struct weir_stacked *link, const void *data);
bool weir_stack_is_covered(const struct weir_stack *stack, const struct weir_stacked *link, weir_is_limited is_limited,
			   const void *data, const struct weir_stacked **ret_first);

void weir_stack_free(struct weir_stack *stack);

#endif
