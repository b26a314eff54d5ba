/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The layout of allow and deny lists in maps, and the arithmetic that their compiler and the program share. Pure;
 * compiles for BPF and for the host. An address is two words in host order; IPv4 is in the upper 32 bits of the first.
 *
 * Lists are cut at a few prefix lengths (*levels*). Prefixes that are at least as long as one cut, shorter than the
 * next, and equal up to the cut form a *group*. A group has the answer for every address that begins like it, shorter
 * prefixes included. So the deepest level that has a group for an address decides, and no other level has to be asked.
 * Inside a group the answer is a step function of the address's next bits, kept as sorted boundaries.
 *
 *	list_roots	four bits for each /16 of each family: the answer of shorter prefixes, and whether there are
 *			groups below
 *	list_buckets	a hash table: where a bucket's groups are, how many, and a filter of 32 bits, at which the
 *			search for an address that is in no group mostly ends
 *	list_words	bucket by bucket: the groups, two words each, then their boundaries. All that one address
 *			needs lies together
 */
#ifndef WEIR_LISTS_H
#define WEIR_LISTS_H

#include <linux/types.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

enum weir_list_answer {
	WEIR_LIST_NEITHER,
	WEIR_LIST_ALLOWS,
	WEIR_LIST_DENIES,
	WEIR_LIST_BROKEN, /* a map entry that must exist is missing; always a bug */
	WEIR_LIST_ABSENT, /* this level has no group: ask a shallower one */
};
#define WEIR_LIST_ANSWER_MASK 3u

/* Lists are cut at the prefix lengths that people list most (/24; /32, /48, /64), and at 72 so that the rest of an
 * address fits a boundary's word. Prefixes shorter than 16 bits are in the roots.
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

/* A level has the prefix lengths from `cut` to below `beyond`. Its boundaries count in units of one /`unit`. */
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

#define WEIR_LIST_ROOT_BITS 16 /* the shallowest cut of both families */
#define WEIR_LIST_ROOTS_PER_WORD 16
#define WEIR_LIST_ROOT_WORDS (2 * (1u << WEIR_LIST_ROOT_BITS) / WEIR_LIST_ROOTS_PER_WORD) /* 64 KB */
#define WEIR_LIST_ROOT_IS_DEEP 4u /* beside the answer: there are groups below */
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

/* A group is found by level and address up to the cut. The key has 64 bits of the address; its identity has the level
 * and the last eight of 72 bits.
 */
#define WEIR_LIST_IDENTITY_BITS 11
#define WEIR_LIST_IDENTITY_MASK ((1u << WEIR_LIST_IDENTITY_BITS) - 1)

/* Bits to count words, and so boundaries. WEIR_LISTED_MAX groups of two words, with two boundaries each, fit. */
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

/* The address beyond the cut, in units of the level; below 2^56. */
static __always_inline __u64 weir_list_rest(__u32 cut, __u64 high, __u64 low)
{
	if (cut < 64)
		return high & (~0ull >> cut);
	return cut == 64 ? low >> 56 : low & (~0ull >> 8);
}

/* A boundary: from `rest` on, `answer` holds. The words sort in the order of the rests. */
#define WEIR_LIST_BOUND(rest, answer) ((rest) << 8 | (answer))

/* ---- buckets ---- */

/* Groups in one bucket. The average is two. With a good hash hardly one bucket in millions has 16; if one has more than
 * this, the compiler tries another salt.
 */
#define WEIR_LIST_BUCKET_GROUPS_MAX 32

/* A bucket's word, from the lowest bit: where its groups start in list_words, their count (8 bits), the filter (32). */
#define WEIR_LIST_BUCKET_COUNT_SHIFT WEIR_LIST_COUNT_BITS
#define WEIR_LIST_BUCKET_COUNT_MASK 0xffu
#define WEIR_LIST_BUCKET_FILTER_SHIFT 32

/*
 * The finalizer of MurmurHash3 (Appleby), with a salt. The salt is not a secret. Somebody who knows it and can choose
 * what is listed could fill a bucket. That costs listed packets a few more compares, and the compiler bounds it.
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

/* The highest bits of the hash name the bucket, and the five below them the bit of its filter. */
static __always_inline __u32 weir_list_bucket(__u64 hash, __u32 bucket_bits)
{
	return hash >> 32 >> (32 - bucket_bits);
}

static __always_inline __u32 weir_list_filter_bit(__u64 hash, __u32 bucket_bits)
{
	return hash >> (59 - bucket_bits) & 31;
}

#endif
