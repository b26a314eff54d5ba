/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the resources to which the packet belongs. For each match field in use, one look-up gives a vector of bits: the
 * resources that accept the packet's value. The packet belongs to the resources that are in all vectors. So the cost
 * grows with the number of fields in use, not with that of resources. Summaries say which words of the vectors are not
 * zero, and only those are read (aggregated bit vectors: Baboescu and Varghese, SIGCOMM 2001).
 * core/compile/order.c gives similar resources bits in the same words. A field that no resource asks about is a
 * constant to the verifier, which removes its code.
 */
#ifndef WEIR_MATCH_H
#define WEIR_MATCH_H

#include <bpf/bpf_endian.h>

#include "maps.h"

/* Number of the lowest set bit of a word that is not 0. BPF has no instruction for it, so a de Bruijn sequence finds
 * it: every six bits in a row are different (Leiserson, Prokop, Randall, 1998).
 */
static const __u8 weir_bit_table[64] = {
	0,  1,	48, 2,	57, 49, 28, 3,	61, 58, 50, 42, 38, 29, 17, 4,	62, 55, 59, 36, 53, 51,
	43, 22, 45, 39, 33, 30, 24, 18, 12, 5,	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21,
	44, 32, 23, 11, 46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9,	13, 8,	7,  6,
};

static __always_inline __u32 weir_lowest_bit(__u64 word)
{
	__u64 index = ((word & -word) * 0x03f79d71b4cb0a89ull) >> 58;
	__u32 bit = weir_bit_table[index & 63];

	OPAQUE(bit); /* clang 19 knows its range, and drops the bound that the verifier needs */
	return bit;
}

static __always_inline struct weir_vector *weir_vector(__u32 number)
{
	return bpf_map_lookup_elem(&vectors, &number);
}

/* The vector number of an address: that of the longest prefix that covers it. Contains WEIR_PREFIX_IS_NODE when a node
 * is missing; no vector has such a number.
 */
__noinline __u32 weir_prefix_search(__u64 high, __u64 low, __u32 entry)
{
	WEIR_GLOBAL(PREFIXES, true, WEIR_PREFIX_IS_NODE);
	for (int i = 0; i < WEIR_PREFIX_STEPS_MAX && entry & WEIR_PREFIX_IS_NODE; i++) {
		__u32 number = entry & ~WEIR_PREFIX_IS_NODE;
		const struct weir_prefix_node *node = bpf_map_lookup_elem(&prefix_nodes, &number);

		if (!node)
			break;
		entry = weir_prefix_step(node, high, low);
	}
	return entry;
}

static __always_inline __u32 weir_prefix_vector(const __be32 address[4], bool is_ipv6, __u32 root4, __u32 root6)
{
	__u64 high = (__u64)bpf_ntohl(address[0]) << 32, low = 0;

	if (!is_ipv6)
		return weir_prefix_search(high, 0, root4);
	high |= bpf_ntohl(address[1]);
	low = (__u64)bpf_ntohl(address[2]) << 32 | bpf_ntohl(address[3]);
	return weir_prefix_search(high, low, root6);
}

static __always_inline __u32 weir_interface_vector(__u32 ifindex)
{
	__u32 *number = bpf_map_lookup_elem(&interfaces, &ifindex);

	return number ? *number : config.interface_default;
}

/* An entry of a class array. An index beyond its end is clipped to the last entry, where the verifier sees it. */
#define WEIR_CLASS(array, value)                                                                                       \
	({                                                                                                             \
		__u32 _index = (value);                                                                                \
		OPAQUE(_index);                                                                                        \
		if (_index >= sizeof(array) / sizeof((array)[0]))                                                      \
			_index = sizeof(array) / sizeof((array)[0]) - 1;                                               \
		(array)[_index];                                                                                       \
	})

/* The vector number of this packet in field 1 << part, a constant. */
static __always_inline __u32 weir_vector_number(const struct weir_packet *pkt, const int part)
{
	const struct weir_classes *cls = &generation.classes;
	__u32 kind = pkt->kind;

	switch (1 << part) {
	case WEIR_MATCH_KIND:
		OPAQUE(kind);
		return kind < sizeof(cls->kind) / sizeof(__u16) ? ((const __u16 *)cls->kind)[kind] : 0;
	case WEIR_MATCH_SOURCE:
		return weir_prefix_vector(pkt->source, pkt->is_ipv6, config.source_root[0], config.source_root[1]);
	case WEIR_MATCH_DESTINATION:
		return weir_prefix_vector(pkt->destination, pkt->is_ipv6, config.destination_root[0],
					  config.destination_root[1]);
	case WEIR_MATCH_TCP_FLAGS:
		return WEIR_CLASS(cls->tcp_flags, pkt->tcp_flags);
	case WEIR_MATCH_INTERFACE:
		return weir_interface_vector(pkt->ifindex);
#define WEIR_LOOK_UP(constant, name, member, highest, none, who)                                                       \
	case WEIR_MATCH_##constant:                                                                                    \
		return WEIR_CLASS(cls->member, pkt->member);
		WEIR_RANGE_FIELDS(WEIR_LOOK_UP)
	}
	return 0;
}

/* `fields` is config.match_fields, read once: the verifier knows its value and removes the branches, but not the
 * instructions that compute their conditions. So one test leaves out all rare fields.
 */
#define WEIR_USES(fields, part) ((fields) >> (part)&1)
#define WEIR_USES_NO_MORE(fields, part) ((part) == WEIR_MATCH_FIRST_RARE && !((fields) >> WEIR_MATCH_FIRST_RARE))

static __always_inline void weir_classify(struct weir_scratch *s)
{
	__u32 fields = config.match_fields;

#pragma unroll
	for (int part = 0; part < WEIR_MATCH_PARTS && !WEIR_USES_NO_MORE(fields, part); part++)
		if (WEIR_USES(fields, part))
			s->vector[part] = weir_vector_number(&s->packet, part);
}

/* Used for a vector that is missing, which is always a bug. It has more resources than a packet may match, so that
 * listing them fails.
 */
#define WEIR_WORD_MISSING (~0ull)
_Static_assert(WEIR_VECTOR_WORDS * 64 > WEIR_PACKET_RESOURCES_MAX + 64, "a second word must be one too many");

/* The AND of all vectors in use: of their summaries (index < 0), or of their words number `index`. */
static __always_inline __u64 weir_and_vectors(const struct weir_scratch *s, int index)
{
	__u32 fields = config.match_fields;
	struct weir_vector *vector;
	__u64 word = ~0ull;

	if (index >= WEIR_VECTOR_WORDS)
		return 0;
	/* No resource asks about any field: vector 0 has them all. */
	if (!fields) {
		vector = weir_vector(0);
		return vector ? (index < 0 ? vector->summary : vector->word[index]) : WEIR_WORD_MISSING;
	}
#pragma unroll
	for (int part = 0; part < WEIR_MATCH_PARTS && !WEIR_USES_NO_MORE(fields, part); part++) {
		if (!WEIR_USES(fields, part))
			continue;
		vector = weir_vector(s->vector[part]);
		if (!vector)
			return WEIR_WORD_MISSING;
		word &= index < 0 ? vector->summary : vector->word[index];
	}
	return word;
}

static __always_inline __u16 weir_resource_place(__u32 bit)
{
	OPAQUE(bit);
	return generation.place[bit & (WEIR_RESOURCES_MAX - 1)];
}

/* Does the first resource of `word` except one that is in s->resource[]? A vector that is missing, which is always a
 * bug, excepts nothing: then the rules of both apply.
 */
__noinline int weir_is_excepted(struct weir_scratch *s, __u32 index, __u64 word)
{
	const struct weir_vector *except;
	__u32 place;

	WEIR_GLOBAL(EXCEPTS, s, 0);
	place = weir_resource_place(index * 64 + weir_lowest_bit(word));
	OPAQUE(place);
	place = generation.except[place & (WEIR_RESOURCES_MAX - 1)];
	except = place ? weir_vector(place) : NULL;
	for (__u32 i = 0; except && i < WEIR_PACKET_RESOURCES_MAX && i < s->resource_count; i++) {
		__u32 other = s->resource[i];

		OPAQUE(other);
		if (except->word[other / 64 & (WEIR_VECTOR_WORDS - 1)] >> (other & 63) & 1)
			return 1;
	}
	return 0;
}

/* Append the resources of one word to s->resource[]. Userspace refuses rule sets in which a packet could match more.
 * What others except comes first, in the order of the bits. Where resources are left out, the count is kept in memory:
 * in a register the verifier would follow each of its values.
 */
__noinline int weir_append_resources(struct weir_scratch *s, __u32 index, __u64 word)
{
	__u32 count;

	WEIR_GLOBAL(SEVERAL_RESOURCES, s, -1);
	count = s->resource_count;
	for (int i = 0; i < 64 && word; i++, word &= word - 1) {
		if (config.has_excepts) {
			if (weir_is_excepted(s, index, word))
				continue;
			count = s->resource_count;
		}
		OPAQUE(count);
		if (count >= WEIR_PACKET_RESOURCES_MAX)
			return -1;
		s->resource[count] = weir_resource_place(index * 64 + weir_lowest_bit(word));
		count++;
		if (config.has_excepts)
			s->resource_count = count;
	}
	s->resource_count = count;
	return 0;
}

/* The same for the first or only word, which usually has one resource. */
static __always_inline int weir_take_resources(struct weir_scratch *s, __u32 index, __u64 word)
{
	if (word & (word - 1))
		return weir_append_resources(s, index, word);
	if (word) {
		s->resource[0] = weir_resource_place(index * 64 + weir_lowest_bit(word));
		s->resource_count = 1;
	}
	return 0;
}

__noinline int weir_match_words(struct weir_scratch *s, __u64 summary)
{
	WEIR_GLOBAL(MANY_RESOURCES, s, -1);
	for (int i = 0; i < WEIR_VECTOR_WORDS && summary; i++) {
		__u32 index = weir_lowest_bit(summary);

		if (weir_append_resources(s, index, weir_and_vectors(s, index & (WEIR_VECTOR_WORDS - 1))))
			return -1;
		summary &= summary - 1;
	}
	return 0;
}

/* Match against up to 64 resources, which fit into one word. */
static __always_inline int weir_match_only_word(struct weir_scratch *s)
{
	__u64 word = generation.only_word[0];
	__u32 fields = config.match_fields, numbers = 0;

#pragma unroll
	for (int part = 0; part < WEIR_MATCH_PARTS && !WEIR_USES_NO_MORE(fields, part); part++)
		if (WEIR_USES(fields, part)) {
			__u32 number = weir_vector_number(&s->packet, part);

			numbers |= number;
			word &= WEIR_CLASS(generation.only_word, number);
		}
	if (unlikely(numbers & WEIR_PREFIX_IS_NODE))
		return -1;
	return weir_take_resources(s, 0, word);
}

/* Fill in s->resource[]. Fails if a map entry that must exist is missing. */
static __always_inline int weir_match(struct weir_scratch *s)
{
	__u64 summary;
	__u32 index;

	s->resource_count = 0;
	if (config.resource_count == 0)
		return 0;
	if (config.has_only_words)
		return weir_match_only_word(s);
	weir_classify(s);
	summary = weir_and_vectors(s, -1);
	if (summary & (summary - 1))
		return weir_match_words(s, summary);
	if (!summary)
		return 0;
	index = weir_lowest_bit(summary) & (WEIR_VECTOR_WORDS - 1);
	return weir_take_resources(s, index, weir_and_vectors(s, index));
}

#endif
