/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is the packet's source in an `allow` or `deny` list? The longest listed prefix decides, before any rule is asked.
 * weir_lists.h describes the maps. A source that is not listed mostly costs one look-up in the roots. If a neighbour of
 * it is listed, each level in use costs one more. Without lists the verifier removes all of this.
 */
#ifndef WEIR_BPF_LISTS_H
#define WEIR_BPF_LISTS_H

#include <bpf/bpf_endian.h>

#include "maps.h"
#include "weir_lists.h"

/* Maps of the generation. Memory-mapped, so that a single copy fills in a million prefixes. The kernel does not allow
 * that together with BPF_F_RDONLY_PROG.
 */
WEIR_MAP(list_roots, BPF_MAP_TYPE_ARRAY, 1, __u64, BPF_F_MMAPABLE);
WEIR_MAP(list_buckets, BPF_MAP_TYPE_ARRAY, 1, __u64, BPF_F_MMAPABLE);
WEIR_MAP(list_words, BPF_MAP_TYPE_ARRAY, 1, __u64, BPF_F_MMAPABLE);

static __always_inline const __u64 *weir_list_word(__u32 at)
{
	return bpf_map_lookup_elem(&list_words, &at);
}

/* The answer of a group: binary search for the last boundary at or before `rest`. */
static __always_inline __u32 weir_list_step(__u64 info, __u64 rest)
{
	__u32 first = info >> WEIR_LIST_START_SHIFT & WEIR_LIST_COUNT_MASK;
	__u32 count = info >> WEIR_LIST_COUNT_SHIFT & WEIR_LIST_COUNT_MASK;
	__u32 answer = info & WEIR_LIST_ANSWER_MASK;

	for (int i = 0; i < WEIR_LIST_COUNT_BITS && count; i++) {
		__u32 half = count / 2;
		const __u64 *bound = weir_list_word(first + half);

		if (!bound)
			return WEIR_LIST_BROKEN;
		if (*bound >> 8 <= rest) {
			answer = *bound & WEIR_LIST_ANSWER_MASK;
			first += half + 1;
			count -= half + 1;
		} else {
			count = half;
		}
	}
	return answer;
}

/* Find a group in its bucket, and take its answer. Out of line: the filter keeps most packets from coming here. */
__noinline int weir_list_search(__u64 bucket, __u64 key, __u32 identity, __u64 rest)
{
	__u32 at = bucket & WEIR_LIST_COUNT_MASK;
	__u32 count = bucket >> WEIR_LIST_BUCKET_COUNT_SHIFT & WEIR_LIST_BUCKET_COUNT_MASK;

	WEIR_GLOBAL(LISTS, true, WEIR_LIST_ABSENT);
	for (__u32 i = 0; i < WEIR_LIST_BUCKET_GROUPS_MAX && i < count; i++) {
		const __u64 *group_key = weir_list_word(at), *info = weir_list_word(at + 1);

		if (!group_key || !info)
			return WEIR_LIST_BROKEN;
		if (*group_key == key && (*info >> WEIR_LIST_IDENTITY_SHIFT & WEIR_LIST_IDENTITY_MASK) == identity)
			return weir_list_step(*info, rest);
		at += WEIR_LIST_GROUP_WORDS;
	}
	return WEIR_LIST_ABSENT;
}

/* The answer of one level, which is a constant. */
static __always_inline __u32 weir_list_ask(const int level, const __u32 cut, __u64 high, __u64 low)
{
	__u64 key = weir_list_key(cut, high), hash;
	__u32 identity = weir_list_identity(level, cut, low), at;
	const __u64 *bucket;

	if (!(config.list_levels >> level & 1))
		return WEIR_LIST_ABSENT;
	hash = weir_list_hash(key, identity, config.list_salt);
	at = weir_list_bucket(hash, config.list_bucket_bits);
	bucket = bpf_map_lookup_elem(&list_buckets, &at);
	if (!bucket)
		return WEIR_LIST_BROKEN;
	if (!(*bucket >> WEIR_LIST_BUCKET_FILTER_SHIFT >> weir_list_filter_bit(hash, config.list_bucket_bits) & 1))
		return WEIR_LIST_ABSENT;
	return weir_list_search(*bucket, key, identity, weir_list_rest(cut, high, low));
}

/* The answer of the deepest level that has a group for this address. */
static __always_inline __u32 weir_list_ask_ipv4(__u64 high)
{
	__u32 answer = weir_list_ask(WEIR_LIST_IPV4_24, 24, high, 0);

	if (answer == WEIR_LIST_ABSENT)
		answer = weir_list_ask(WEIR_LIST_IPV4_16, 16, high, 0);
	return answer;
}

static __always_inline __u32 weir_list_ask_ipv6(__u64 high, __u64 low)
{
	__u32 answer = weir_list_ask(WEIR_LIST_IPV6_72, 72, high, low);

	if (answer == WEIR_LIST_ABSENT)
		answer = weir_list_ask(WEIR_LIST_IPV6_64, 64, high, low);
	if (answer == WEIR_LIST_ABSENT)
		answer = weir_list_ask(WEIR_LIST_IPV6_48, 48, high, low);
	if (answer == WEIR_LIST_ABSENT)
		answer = weir_list_ask(WEIR_LIST_IPV6_32, 32, high, low);
	if (answer == WEIR_LIST_ABSENT)
		answer = weir_list_ask(WEIR_LIST_IPV6_16, 16, high, low);
	return answer;
}

/* The lists' answer for this packet's source: enum weir_list_answer, never ABSENT. */
static __always_inline __u32 weir_listed(const struct weir_packet *pkt)
{
	__u64 high = (__u64)bpf_ntohl(pkt->source[0]) << 32, low = 0;
	__u32 at, root, answer;
	const __u64 *word;

	if (pkt->is_ipv6) {
		high |= bpf_ntohl(pkt->source[1]);
		low = (__u64)bpf_ntohl(pkt->source[2]) << 32 | bpf_ntohl(pkt->source[3]);
	}
	at = weir_list_root_word(high, pkt->is_ipv6 & 1);
	word = bpf_map_lookup_elem(&list_roots, &at);
	if (!word)
		return WEIR_LIST_BROKEN;
	root = *word >> weir_list_root_shift(high) & WEIR_LIST_ROOT_MASK;
	if (!(root & WEIR_LIST_ROOT_IS_DEEP))
		return root;
	answer = pkt->is_ipv6 ? weir_list_ask_ipv6(high, low) : weir_list_ask_ipv4(high);
	return answer == WEIR_LIST_ABSENT ? root & WEIR_LIST_ANSWER_MASK : answer;
}

#endif
