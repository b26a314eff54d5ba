// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tries of match.source and match.destination (include/weir_prefixes.h). Prefixes are sorted by address, and
 * prefixes of one address by length. So enclosing prefixes come first, and all prefixes of one node are adjacent.
 */
#include "compile/build_steps.h"

#include <string.h>

#include "base/util.h"
#include "weir_prefixes.h"

#define STEP WEIR_PREFIX_STEP_BITS

struct address {
	uint64_t high, low; /* as in weir_prefixes.h */
};

static struct address address_of(const struct weir_image_prefix *prefix)
{
	struct address address = {};

	for (int i = 0; i < 8; i++) {
		address.high = address.high << 8 | prefix->prefix.address[i];
		address.low = address.low << 8 | prefix->prefix.address[i + 8];
	}
	return address;
}

/* A mask of the first `bits` of an address. */
static struct address mask_of(unsigned int bits)
{
	return (struct address){
		.high = bits >= 64 ? ~0ull : ~(~0ull >> bits),
		.low = bits <= 64    ? 0
		       : bits == 128 ? ~0ull
				     : ~(~0ull >> (bits - 64)),
	};
}

static unsigned int common_bits(struct address a, struct address b)
{
	if (a.high != b.high)
		return (unsigned int)__builtin_clzll(a.high ^ b.high);
	return a.low != b.low ? 64 + (unsigned int)__builtin_clzll(a.low ^ b.low) : 128;
}

static unsigned int step_of(const struct weir_image_prefix *prefix, unsigned int depth)
{
	return prefix->prefix.address[depth / 8] >> (depth % 8 ? 0 : STEP) & ((1 << STEP) - 1);
}

/* Prefixes that all begin with the same `depth` bits, and the prefix that encloses them. */
struct branch {
	const struct weir_image_prefix *first, *end;
	unsigned int depth;
	uint32_t outside;
};

/* The number of bits that all prefixes share before the first one ends or two differ, rounded down to the start of a
 * step.
 */
static unsigned int node_depth(const struct branch *branch)
{
	unsigned int depth = common_bits(address_of(branch->first), address_of(branch->end - 1));
	const struct weir_image_prefix *prefix;

	for (prefix = branch->first; prefix < branch->end; prefix++) {
		if (prefix->prefix.bits <= depth)
			depth = prefix->prefix.bits - 1u;
	}
	return depth / STEP * STEP;
}

static int add_node(struct weir_image *image, const struct branch *branch, unsigned int depth, uint32_t *ret_number)
{
	struct address mask = mask_of(depth), skipped = mask_of(branch->depth), path = address_of(branch->first);
	struct weir_prefix_node *node;

	node = weir_array_add((void **)&image->prefix_nodes, image->prefix_node_count, sizeof(*node));
	if (!node)
		return -ENOMEM;
	*node = (struct weir_prefix_node){
		.path = {path.high & mask.high, path.low & mask.low},
		.mask = {mask.high & ~skipped.high, mask.low & ~skipped.low},
		.outside = branch->outside,
		.shift = 128 - STEP - depth,
	};
	*ret_number = image->prefix_node_count++;
	return 0;
}

static int make_entry(struct weir_image *image, struct branch branch, uint32_t *ret_entry);

/* Make the entries of a node at `depth`. They are filled in last, since the array moves when children are added. */
static int make_entries(struct weir_image *image, const struct branch *branch, unsigned int depth, uint32_t number)
{
	uint32_t entries[1 << STEP];
	const struct weir_image_prefix *prefix, *end;
	unsigned int step, i;
	int err;

	for (i = 0; i < ARRAY_SIZE(entries); i++)
		entries[i] = branch->outside;
	for (prefix = branch->first; prefix < branch->end; prefix = end) {
		step = step_of(prefix, depth);
		for (; prefix < branch->end && step_of(prefix, depth) == step && prefix->prefix.bits <= depth + STEP;
		     prefix++) {
			for (i = 0; i < 1u << (depth + STEP - prefix->prefix.bits); i++)
				entries[step + i] = prefix->vector;
		}
		for (end = prefix; end < branch->end && step_of(end, depth) == step; end++)
			;
		err = make_entry(image, (struct branch){prefix, end, depth + STEP, entries[step]}, &entries[step]);
		if (err)
			return err;
	}
	memcpy(image->prefix_nodes[number].entry, entries, sizeof(entries));
	return 0;
}

static int make_entry(struct weir_image *image, struct branch branch, uint32_t *ret_entry)
{
	unsigned int depth;
	uint32_t number;
	int err;

	/* This prefix covers everything that is left. That happens only at the root, where a prefix may have no bits.
	 */
	if (branch.first < branch.end && branch.first->prefix.bits <= branch.depth)
		branch.outside = branch.first++->vector;
	if (branch.first == branch.end) {
		*ret_entry = branch.outside;
		return 0;
	}
	depth = node_depth(&branch);
	err = add_node(image, &branch, depth, &number);
	if (!err)
		err = make_entries(image, &branch, depth, number);
	if (err)
		return err;
	*ret_entry = WEIR_PREFIX_IS_NODE | number;
	return 0;
}

int weir_compile_prefixes(struct weir_image *image, const struct weir_image_prefix *prefixes, uint32_t count,
			  uint32_t outside, uint32_t ret_roots[2])
{
	uint32_t ipv4_count = 0;
	int err;

	while (ipv4_count < count && prefixes[ipv4_count].prefix.family == 4)
		ipv4_count++;
	err = make_entry(image, (struct branch){prefixes, prefixes + ipv4_count, 0, outside}, &ret_roots[0]);
	if (err)
		return err;
	return make_entry(image, (struct branch){prefixes + ipv4_count, prefixes + count, 0, outside}, &ret_roots[1]);
}
