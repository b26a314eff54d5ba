/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How allow and deny lists are laid out in maps, and the arithmetic that their compiler and the program must agree
 * on. Pure; compiles for BPF and for the host. Addresses are two words in host order; IPv4 has its 32 bits at the top
 * of the first.
 *
 * The list is cut at a few prefix lengths (levels). All prefixes that are at least as long as a cut, shorter than the
 * next, and alike up to the cut, make one *group*. A group knows the answer for every address that begins like it, what
 * shorter prefixes say included: so the group of the deepest level that has one for an address decides, and nobody else
 * need be asked. Inside it the answer is a step function of the address's next bits, kept as sorted boundaries.
 *
 *	list_roots	four bits for each /16 of each family: the answer of prefixes shorter than that, and whether
 *			there are groups below
 *	list_buckets	a hash table's rows: where a bucket's groups are, how many, and 32 bits of a filter, so that
 *			an address in no group mostly ends here
 *	list_words	bucket by bucket the groups, two words each, and behind them their boundaries: what one address
 *			needs lies together
 */
#ifndef WEIR_LISTS_H
#define WEIR_LISTS_H

#include "weir_abi.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

enum weir_list_answer {
	WEIR_LIST_NEITHER,
	WEIR_LIST_ALLOWS,
	WEIR_LIST_DENIES,
	WEIR_LIST_BROKEN, /* a map entry that must exist is missing; always a bug */
	WEIR_LIST_ABSENT, /* no group of this level: ask a shallower one */
};
#define WEIR_LIST_ANSWER_MASK 3u

/* Where lists are cut: at what people list most (/24; /32, /48, /64), and at 72 because what is left of an address then
 * fits a boundary's word. Prefixes shorter than 16 bits are in the roots.
 */
enum weir_list_level {
	WEIR_LIST_IPV4_16,
	WEIR_LIST_IPV4_24,
	WEIR_LIST_IPV6_16,
	WEIR_LIST_IPV6_32,
	WEIR_LIST_IPV6_48,
	WEIR_LIST_IPV6_64,
	WEIR_LIST_IPV6_72,
	WEIR_LIST_LEVELS
};

/* Prefix lengths of a level: from the cut on, below `beyond`. Boundaries count in units of one /`unit`. */
struct weir_list_cut {
	__u8 is_ipv6;
	__u8 cut;
	__u8 beyond;
	__u8 unit;
};

static const struct weir_list_cut weir_list_cuts[WEIR_LIST_LEVELS] = {
	[WEIR_LIST_IPV4_16] = {0, 16, 24, 64},	 [WEIR_LIST_IPV4_24] = {0, 24, 33, 64},
	[WEIR_LIST_IPV6_16] = {1, 16, 32, 64},	 [WEIR_LIST_IPV6_32] = {1, 32, 48, 64},
	[WEIR_LIST_IPV6_48] = {1, 48, 64, 64},	 [WEIR_LIST_IPV6_64] = {1, 64, 72, 72},
	[WEIR_LIST_IPV6_72] = {1, 72, 129, 128},
};

/* ---- roots ---- */

#define WEIR_LIST_ROOT_BITS 16 /* as the shallowest cut of both families */
#define WEIR_LIST_ROOTS_PER_WORD 16
#define WEIR_LIST_ROOT_WORDS (2 * (1u << WEIR_LIST_ROOT_BITS) / WEIR_LIST_ROOTS_PER_WORD) /* 64 KB */
#define WEIR_LIST_ROOT_IS_DEEP 4u /* groups below; beside the answer */
#define WEIR_LIST_ROOT_MASK 7u

static __always_inline __u32 weir_list_root_word(__u64 high, __u32 is_ipv6)
{
	return is_ipv6 * (WEIR_LIST_ROOT_WORDS / 2) + (__u32)(high >> 48) / WEIR_LIST_ROOTS_PER_WORD;
}

static __always_inline __u32 weir_list_root_shift(__u64 high)
{
	return (high >> 48) % WEIR_LIST_ROOTS_PER_WORD * 4;
}

/* ---- groups ---- */

/* Which group: level and the address down to the cut. Up to 64 bits of it are the key, the last eight of 72 here. */
#define WEIR_LIST_IDENTITY_BITS 11
#define WEIR_LIST_IDENTITY_MASK ((1u << WEIR_LIST_IDENTITY_BITS) - 1)

/* Of words, and so of boundaries: WEIR_LISTED_MAX groups of two words, with two boundaries each, fit. */
#define WEIR_LIST_COUNT_BITS 24
#define WEIR_LIST_COUNT_MASK ((1u << WEIR_LIST_COUNT_BITS) - 1)

struct weir_list_group {
	__u64 key;
	__u64 info; /* from the lowest bit: answer before the first boundary, identity, boundaries' start and count */
};
#define WEIR_LIST_GROUP_WORDS (sizeof(struct weir_list_group) / sizeof(__u64))
#define WEIR_LIST_IDENTITY_SHIFT 2
#define WEIR_LIST_START_SHIFT (WEIR_LIST_IDENTITY_SHIFT + WEIR_LIST_IDENTITY_BITS)
#define WEIR_LIST_COUNT_SHIFT (WEIR_LIST_START_SHIFT + WEIR_LIST_COUNT_BITS)
_Static_assert(WEIR_LIST_COUNT_SHIFT + WEIR_LIST_COUNT_BITS <= 64, "a group's info is one word");

static __always_inline __u64 weir_list_key(__u32 cut, __u64 high)
{
	return cut < 64 ? high >> (64 - cut) : high;
}

static __always_inline __u32 weir_list_identity(__u32 level, __u32 cut, __u64 low)
{
	return level | (cut > 64 ? (__u32)(low >> 56) << 3 : 0);
}

/* The rest of the address, in units of the level; below 2^56. */
static __always_inline __u64 weir_list_rest(__u32 cut, __u64 high, __u64 low)
{
	if (cut < 64)
		return high & (~0ull >> cut);
	return cut == 64 ? low >> 56 : low & (~0ull >> 8);
}

/* A boundary: from `rest` on, this is the answer. The words sort as the rests do. */
#define WEIR_LIST_BOUND(rest, answer) ((rest) << 8 | (answer))

/* ---- buckets ---- */

/* Groups of one bucket. Two on average; with a good hash 16 are hardly ever seen in millions of buckets, and the
 * compiler takes another salt when one has more than this.
 */
#define WEIR_LIST_BUCKET_GROUPS_MAX 32

/* A word: where its groups start in list_words, 8 bits of their count, 32 bits of filter. */
#define WEIR_LIST_BUCKET_COUNT_SHIFT WEIR_LIST_COUNT_BITS
#define WEIR_LIST_BUCKET_COUNT_MASK 0xffu
#define WEIR_LIST_BUCKET_FILTER_SHIFT 32

/*
 * The finalizer of MurmurHash3 (Appleby) with a salt. Not a secret: whoever can choose what is listed and knows the
 * salt could fill buckets, which costs a listed packet a few compares more, and the compiler bounds it.
 */
static __always_inline __u64 weir_list_hash(__u64 key, __u32 identity, __u32 salt)
{
	__u64 hash = key ^ ((__u64)identity << 48 | salt) * 0x9e3779b97f4a7c15ull;

	hash ^= hash >> 33;
	hash *= 0xff51afd7ed558ccdull;
	hash ^= hash >> 33;
	hash *= 0xc4ceb9fe1a85ec53ull;
	return hash;
}

/* A bucket is named by the highest bits of the hash, and the filter's bit by the five below them. */
static __always_inline __u32 weir_list_bucket(__u64 hash, __u32 bucket_bits)
{
	return hash >> 32 >> (32 - bucket_bits);
}

static __always_inline __u32 weir_list_filter_bit(__u64 hash, __u32 bucket_bits)
{
	return hash >> (59 - bucket_bits) & 31;
}

#endif
