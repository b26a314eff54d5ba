/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which resources does the packet belong to? Each field in use says by one look-up which resources
 * accept its value, as a vector of bits; the packet belongs to those in all of the vectors. The cost
 * grows with the fields in use, not with the number of resources: words that no resource of which is
 * left are skipped by the vectors' summaries (aggregated bit vectors: Baboescu and Varghese, SIGCOMM
 * 2001), and user/core/compile_order.c gives resources that are alike bits of the same words. Fields that no resource
 * asks about are constants to the verifier, which removes their code.
 */
#ifndef WEIR_MATCH_H
#define WEIR_MATCH_H

#include <bpf/bpf_endian.h>

#include "maps.h"

/* Number of the lowest bit that is set; the argument is not 0. BPF has no instruction for it, so:
 * a de Bruijn sequence, whose every six bits are different (Leiserson, Prokop, Randall, 1998).
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

	OPAQUE(bit); /* clang 19 knows how large it is, and leaves out the bound that the verifier asks for */
	return bit;
}

static __always_inline struct weir_vector *weir_vector(__u32 number)
{
	return bpf_map_lookup_elem(&vectors, &number);
}

/* Vector number for an address: that of the longest prefix that covers it. With WEIR_PREFIX_IS_NODE in it, a node was
 * missing, and no vector has this number.
 */
__noinline __u32 weir_prefix_search(__u64 high, __u64 low, __u32 entry)
{
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

/* An entry of a class array; an index beyond is clipped to the last, where the verifier can see it. */
#define WEIR_CLASS(array, value)                                                                                       \
	({                                                                                                             \
		__u32 _index = (value);                                                                                \
		OPAQUE(_index);                                                                                        \
		if (_index >= sizeof(array) / sizeof((array)[0]))                                                      \
			_index = sizeof(array) / sizeof((array)[0]) - 1;                                               \
		(array)[_index];                                                                                       \
	})

/* Number of the vector of field 1 << part (a constant) for this packet. */
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
	case WEIR_MATCH_SOURCE_PORT:
		return WEIR_CLASS(cls->source_port, pkt->source_port);
	case WEIR_MATCH_DESTINATION_PORT:
		return WEIR_CLASS(cls->destination_port, pkt->destination_port);
	case WEIR_MATCH_TCP_FLAGS:
		return WEIR_CLASS(cls->tcp_flags, pkt->tcp_flags);
	case WEIR_MATCH_ICMP_TYPE:
		return WEIR_CLASS(cls->icmp_type, pkt->icmp_type);
	case WEIR_MATCH_VLAN:
		return WEIR_CLASS(cls->vlan, pkt->vlan);
	case WEIR_MATCH_LENGTH:
		return WEIR_CLASS(cls->length, pkt->frame_bytes);
	default:
		return weir_interface_vector(pkt->ifindex);
	}
}

/* `fields` is config.match_fields, read once: the verifier, which knows it, takes the branches out of the program,
 * but never a load.
 */
#define WEIR_USES(fields, part) ((fields) >> (part)&1)

/* Look up the vector number of each field in use. */
static __always_inline void weir_classify(struct weir_work *w)
{
	__u32 fields = config.match_fields;

#pragma unroll
	for (int part = 0; part < WEIR_MATCH_PARTS; part++)
		if (WEIR_USES(fields, part))
			w->vector[part] = weir_vector_number(&w->packet, part);
}

/* What is taken for the words of a vector that is missing, which is always a bug: far more resources than may meet, so
 * that to list them fails.
 */
#define WEIR_WORD_MISSING (~0ull)
_Static_assert(WEIR_VECTOR_WORDS * 64 > WEIR_PACKET_RESOURCES_MAX + 64, "a second word must be one too many");

/* Words of all vectors in use, and-ed: their summaries (index < 0) or word number `index`. */
static __always_inline __u64 weir_and_vectors(const struct weir_work *w, int index)
{
	__u32 fields = config.match_fields;
	struct weir_vector *vector;
	__u64 word = ~0ull;

	if (index >= WEIR_VECTOR_WORDS)
		return 0;
	/* Vector 0 holds all resources, for when nobody asks about anything. */
	if (!fields) {
		vector = weir_vector(0);
		return vector ? (index < 0 ? vector->summary : vector->word[index]) : WEIR_WORD_MISSING;
	}
#pragma unroll
	for (int part = 0; part < WEIR_MATCH_PARTS; part++) {
		if (!WEIR_USES(fields, part))
			continue;
		vector = weir_vector(w->vector[part]);
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

/* Append the resources of one word to w->resource[]. Userspace refuses rule sets in which more could meet. */
__noinline int weir_append_resources(struct weir_work *w, __u32 index, __u64 word)
{
	__u32 count;

	if (!w)
		return -1;
	count = w->resource_count;
	for (int i = 0; i < WEIR_PACKET_RESOURCES_MAX && word; i++) {
		OPAQUE(count);
		if (count >= WEIR_PACKET_RESOURCES_MAX)
			return -1;
		w->resource[count] = weir_resource_place(index * 64 + weir_lowest_bit(word));
		count++;
		word &= word - 1;
	}
	w->resource_count = count;
	return 0;
}

/* The same when there is mostly one. */
static __always_inline int weir_take_resources(struct weir_work *w, __u32 index, __u64 word)
{
	if (word & (word - 1))
		return weir_append_resources(w, index, word);
	if (word) {
		w->resource[0] = weir_resource_place(index * 64 + weir_lowest_bit(word));
		w->resource_count = 1;
	}
	return 0;
}

/* The words that `summary` names. */
__noinline int weir_match_words(struct weir_work *w, __u64 summary)
{
	if (!w)
		return -1;
	for (int i = 0; i < WEIR_VECTOR_WORDS && summary; i++) {
		__u32 index = weir_lowest_bit(summary);

		if (weir_append_resources(w, index, weir_and_vectors(w, index & (WEIR_VECTOR_WORDS - 1))))
			return -1;
		summary &= summary - 1;
	}
	return 0;
}

/* Up to 64 resources: one word, and mostly one resource in it. */
static __always_inline int weir_match_only_word(struct weir_work *w)
{
	__u64 word = generation.only_word[0];
	__u32 fields = config.match_fields, numbers = 0;

#pragma unroll
	for (int part = 0; part < WEIR_MATCH_PARTS; part++)
		if (WEIR_USES(fields, part)) {
			__u32 number = weir_vector_number(&w->packet, part);

			numbers |= number;
			word &= WEIR_CLASS(generation.only_word, number);
		}
	if (unlikely(numbers & WEIR_PREFIX_IS_NODE))
		return -1;
	return weir_take_resources(w, 0, word);
}

/* ---- once for many packets ---- */

/* Fields that differ from packet to packet, or can't be compared at once: when asked for, matched for each packet. */
#define WEIR_MATCH_EACH (WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION | WEIR_MATCH_LENGTH | WEIR_MATCH_INTERFACE)

static __always_inline bool weir_seldom_differs(const struct weir_packet *pkt, const struct weir_meeting *met,
						__u32 fields)
{
	__u32 differs = 0;

	if (fields & WEIR_MATCH_SOURCE_PORT)
		differs |= pkt->source_port ^ met->source_port;
	if (fields & WEIR_MATCH_TCP_FLAGS)
		differs |= pkt->tcp_flags ^ met->tcp_flags;
	if (fields & WEIR_MATCH_ICMP_TYPE)
		differs |= pkt->icmp_type ^ met->icmp_type;
	if (fields & WEIR_MATCH_VLAN)
		differs |= pkt->vlan ^ met->vlan;
	return differs;
}

/* The packet meets what the packet before has met: it stands in *w. */
static __always_inline bool weir_meets_the_same(const struct weir_work *w)
{
	const struct weir_meeting *met = &w->meeting;
	const struct weir_packet *pkt = &w->packet;
	__u32 fields = config.match_fields;

	/* Another program, of a load before or after this one, may have been here. */
	if (met->load != config.load || pkt->kind != met->kind)
		return false;
	if (fields & WEIR_MATCH_DESTINATION_PORT && pkt->destination_port != met->destination_port)
		return false;
	return !(fields & WEIR_MATCH_SELDOM) || !weir_seldom_differs(pkt, met, fields);
}

static __always_inline void weir_remember_meeting(struct weir_work *w)
{
	struct weir_meeting *met = &w->meeting;
	const struct weir_packet *pkt = &w->packet;

	met->kind = pkt->kind;
	met->source_port = pkt->source_port;
	met->destination_port = pkt->destination_port;
	met->vlan = pkt->vlan;
	met->tcp_flags = pkt->tcp_flags;
	met->icmp_type = pkt->icmp_type;
	met->load = config.match_fields & WEIR_MATCH_EACH ? 0 : config.load;
}

/* The packet is none that meets anything. */
static __always_inline void weir_meet_nothing(struct weir_work *w)
{
	w->meeting.load = 0;
	w->resource_count = 0;
}

/* Fill in w->resource[]. Fails when something is missing that must be there. */
static __always_inline int weir_match(struct weir_work *w)
{
	__u64 summary;
	__u32 index;

	w->resource_count = 0;
	if (config.resource_count == 0)
		return 0;
	if (config.has_only_words)
		return weir_match_only_word(w);
	weir_classify(w);
	summary = weir_and_vectors(w, -1);
	if (summary & (summary - 1))
		return weir_match_words(w, summary);
	if (!summary)
		return 0;
	index = weir_lowest_bit(summary) & (WEIR_VECTOR_WORDS - 1);
	return weir_take_resources(w, index, weir_and_vectors(w, index));
}

#endif
