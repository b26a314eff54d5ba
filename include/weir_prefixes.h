/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout of the prefixes of `match` in map `prefix_nodes`, and the search step that the program and the compiler's
 * tests share. Pure; compiles for BPF and for the host. An address is two words in host order; IPv4 is in the upper 32
 * bits of the first.
 *
 * Each field and family has a trie whose nodes look at four bits. A node with a single child is left out, and the child
 * compares the skipped bits (Morrison, PATRICIA, 1968). So the number of steps grows with the number of branches, not
 * with the length of prefixes. It is mostly three to five for thousands of prefixes, where a kernel trie
 * (BPF_MAP_TYPE_LPM_TRIE) takes one step per bit. An entry is the vector of the longest prefix that covers the address,
 * or another node.
 */
#ifndef WEIR_PREFIXES_H
#define WEIR_PREFIXES_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define WEIR_PREFIX_STEP_BITS 4
#define WEIR_PREFIX_STEPS_MAX (128 / WEIR_PREFIX_STEP_BITS)
#define WEIR_PREFIX_IS_NODE (1u << 31) /* in an entry: the other bits are a node's number; without it, a vector's */

struct weir_prefix_node {
	__u64 path[2]; /* the address bits in front of this node's ... */
	__u64 mask[2]; /* ... and which of them the previous node did not look at */
	__u32 outside; /* vector of addresses that differ in those bits */
	__u32 shift;   /* position of this node's four bits; 0: the lowest of 128 */
	__u32 entry[1 << WEIR_PREFIX_STEP_BITS];
};
_Static_assert(sizeof(struct weir_prefix_node) == 104, "an array map stores it without holes");

/* Behind the nodes, from element weir_config.label_first on: what is known of labels, by their numbers, so many in an
 * element. Number 0 stands for addresses without a label. (They have no map of their own, because a program may use
 * only 64.)
 */
#define WEIR_LABELS_PER_NODE 8
struct weir_label_node {
	__u64 hash[WEIR_LABELS_PER_NODE];   /* tables/labels.h; 0 of number 0 */
	__u16 weight[WEIR_LABELS_PER_NODE]; /* 1 to 1,000; 0: not given, which means 1 */
	__u64 pad[3];
};
_Static_assert(sizeof(struct weir_label_node) == sizeof(struct weir_prefix_node), "they are elements of one map");

/* The entry that a node has for an address. */
static __always_inline __u32 weir_prefix_step(const struct weir_prefix_node *node, __u64 high, __u64 low)
{
	__u64 word = node->shift & 64 ? high : low;

	if (((high ^ node->path[0]) & node->mask[0]) | ((low ^ node->path[1]) & node->mask[1]))
		return node->outside;
	return node->entry[word >> (node->shift & 63) & ((1 << WEIR_PREFIX_STEP_BITS) - 1)];
}

#endif
