/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the prefixes of `match` are laid out in map `prefix_nodes`, and the step that their compiler's tests and the
 * program share. Pure; compiles for BPF and for the host. Addresses are two words in host order; IPv4 has its 32 bits
 * at the top of the first.
 *
 * A trie for each field and family, of four bits a node; nodes that would have one way on are left out, and the next
 * says which address bits it stands for (Morrison, PATRICIA, 1968). So the number of steps grows with the places where
 * prefixes part, not with their length: mostly three to five for thousands. An entry is the vector of the longest
 * prefix that covers the address, or another node. A kernel trie (BPF_MAP_TYPE_LPM_TRIE) takes a bit a step.
 */
#ifndef WEIR_PREFIXES_H
#define WEIR_PREFIXES_H

#include "weir_abi.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define WEIR_PREFIX_STEP_BITS 4
#define WEIR_PREFIX_STEPS_MAX (128 / WEIR_PREFIX_STEP_BITS)
#define WEIR_PREFIX_IS_NODE (1u << 31) /* of an entry: the rest is a node's number, else a vector's */

struct weir_prefix_node {
	__u64 path[2]; /* the address bits before this node's ... */
	__u64 mask[2]; /* ... and which of them the step from the node before did not look at */
	__u32 outside; /* vector of addresses that have others there */
	__u32 shift;   /* of this node's four bits, from the lowest of 128 */
	__u32 entry[1 << WEIR_PREFIX_STEP_BITS];
};
_Static_assert(sizeof(struct weir_prefix_node) == 104, "an array map keeps it without holes");

/* What the node says of an address: an entry. */
static __always_inline __u32 weir_prefix_step(const struct weir_prefix_node *node, __u64 high, __u64 low)
{
	__u64 word = node->shift & 64 ? high : low;

	if (((high ^ node->path[0]) & node->mask[0]) | ((low ^ node->path[1]) & node->mask[1]))
		return node->outside;
	return node->entry[word >> (node->shift & 63) & ((1 << WEIR_PREFIX_STEP_BITS) - 1)];
}

#endif
