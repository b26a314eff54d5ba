/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the packet's flow. The fields in a rule's key make a flow key. Key, rule and window spec are hashed with a
 * secret. The hash gives the flow's id: a tag, and the first of the two sets in which its row may be.
 *
 * Multilinear hashing (Lemire and Kaser, "Strongly universal string hashing is fast", 2014): each 32-bit word of the
 * input times a secret 64-bit number of its own, summed; two inputs collide with a chance of 2^-32 however they are
 * chosen. The sum is linear, so one collision would give others; a bijection with two more secrets (xor-shift,
 * multiply) prevents that. A sender sees no hash, only whether its own packets pass.
 */
#ifndef WEIR_FLOW_H
#define WEIR_FLOW_H

#include <bpf/bpf_endian.h>

#include "maps.h"
#include "packet/match.h"

/* ---- the key ---- */

#define WEIR_KEY_ADDRESSES (WEIR_KEY_SOURCE | WEIR_KEY_DESTINATION)

static __always_inline void weir_mask_address(__u8 *ret_address, const __be32 address[4], const __be32 mask6[4],
					      __be32 mask4, bool is_ipv6)
{
	__be32 *words = (__be32 *)ret_address;

	words[0] = address[0] & (is_ipv6 ? mask6[0] : mask4);
	words[1] = is_ipv6 ? address[1] & mask6[1] : 0;
	words[2] = is_ipv6 ? address[2] & mask6[2] : 0;
	words[3] = is_ipv6 ? address[3] & mask6[3] : 0;
}

/* Half of an IPv6 address, as it was copied. */
static __always_inline __u64 weir_half(const __be32 address[4], const int half)
{
	typedef __u64 __attribute__((may_alias)) half_address;

	return ((const half_address *)address)[half];
}

/* Is the packet from that source, of its own family, under the rule's mask? Both are aligned to 64 bits. */
static __always_inline bool weir_is_source(const struct weir_packet *pkt, const struct weir_rule *rule,
					   const __be32 source[4])
{
	if (!pkt->is_ipv6)
		return (pkt->source[0] & rule->source_mask4) == source[0];
	return !(((weir_half(pkt->source, 0) & weir_half(rule->source_mask6, 0)) ^ weir_half(source, 0)) |
		 ((weir_half(pkt->source, 1) & weir_half(rule->source_mask6, 1)) ^ weir_half(source, 1)));
}

/* How a field is taken from the packet, by its form in WEIR_KEY_FIELDS (weir_fields.h). A packet without ports or tag
 * has a number beyond the field's bits (WEIR_PORT_NONE, WEIR_VLAN_NONE), which becomes 0.
 */
#define WEIR_TAKE_ADDRESS(member)                                                                                      \
	weir_mask_address(ret_key->member, pkt->member, rule->member##_mask6, rule->member##_mask4, pkt->is_ipv6)
#define WEIR_TAKE_PORT(member) ret_key->member = bpf_htons(pkt->member)
#define WEIR_TAKE_PROTOCOL(member) ret_key->member = weir_protocol(pkt)
#define WEIR_TAKE_VLAN(member) ret_key->member = pkt->member & 0xfff
#define WEIR_TAKE_NUMBER(member) ret_key->member = pkt->member
#define WEIR_TAKE_FIELD(constant, name, member, part, form)                                                            \
	if (rule->key_fields & WEIR_KEY_##constant)                                                                    \
		WEIR_TAKE_##form(member);

#ifdef WEIR_TC
/* A field that a rule on both directions takes from the packet's own source or destination. */
#define WEIR_IS_TURNED(rule, pkt, field) (WEIR_IS_OUT(pkt) && ((rule)->key_fields & WEIR_KEY_TURNED(field)) != 0)

static __always_inline void weir_turn_key(struct weir_flow_key *key, const struct weir_rule *rule,
					  const struct weir_packet *pkt)
{
	if (WEIR_IS_TURNED(rule, pkt, WEIR_KEY_SOURCE))
		weir_mask_address(key->source, pkt->destination, rule->source_mask6, rule->source_mask4, pkt->is_ipv6);
	if (WEIR_IS_TURNED(rule, pkt, WEIR_KEY_DESTINATION))
		weir_mask_address(key->destination, pkt->source, rule->destination_mask6, rule->destination_mask4,
				  pkt->is_ipv6);
	if (WEIR_IS_TURNED(rule, pkt, WEIR_KEY_SOURCE_PORT))
		key->source_port = bpf_htons(pkt->destination_port);
	if (WEIR_IS_TURNED(rule, pkt, WEIR_KEY_DESTINATION_PORT))
		key->destination_port = bpf_htons(pkt->source_port);
}
#else
#define WEIR_IS_TURNED(rule, pkt, field) false
#define weir_turn_key(key, rule, pkt) ((void)0)
#endif

/* The number of the label that a set gives the packet's source (end 0) or destination (end 1), under a rule whose key
 * has WEIR_KEY_LABEL; 0 if it has none. *ret_node: what is known of labels with this number (weir_prefixes.h), or NULL.
 */
static __always_inline __u32 weir_label_number(struct weir_scratch *s, __u32 place, __u32 end,
					       const struct weir_label_node **ret_node)
{
	const struct weir_rule *rule = weir_rule(place);
	__u32 set, number, element;
	bool is_turned;

	is_turned = WEIR_IS_TURNED(rule, &s->packet, end ? WEIR_KEY_DESTINATION : WEIR_KEY_SOURCE);
	set = end ? rule->label_set[1] : rule->label_set[0];
	OPAQUE(set);
	set &= WEIR_KEY_SETS_MAX;
	number = weir_prefix_vector((end != 0) != is_turned ? s->packet.destination : s->packet.source,
				    s->packet.is_ipv6, generation.label_root[set][0], generation.label_root[set][1]);
	element = config.label_first + number / WEIR_LABELS_PER_NODE;
	*ret_node = bpf_map_lookup_elem(&prefix_nodes, &element);
	return number;
}

/* The hash of that label, 0 if there is none. */
__noinline __u64 weir_find_label(struct weir_scratch *s, __u32 place, __u32 end)
{
	const struct weir_label_node *node;
	__u32 number;

	WEIR_GLOBAL(LABELS, s, 0);
	number = weir_label_number(s, place, end, &node);
	return node ? node->hash[number % WEIR_LABELS_PER_NODE] : 0;
}

/* Its weight, 1 if there is none. */
__noinline __u32 weir_find_weight(struct weir_scratch *s, __u32 place, __u32 end)
{
	const struct weir_label_node *node;
	__u32 number;

	WEIR_GLOBAL(LABELS, s, 1);
	number = weir_label_number(s, place, end, &node);
	return node ? node->weight[number % WEIR_LABELS_PER_NODE] ?: 1 : 1;
}

/* In the place of the address. A flow key is aligned to four bytes. */
static __always_inline void weir_take_label(__u8 *ret_address, __u64 hash)
{
	__u32 *words = (__u32 *)ret_address;

	words[0] = hash;
	words[1] = hash >> 32;
}

/* The key of a packet under a rule. Fields that the key does not list are zero. A key with an address distinguishes the
 * families, so that a sender of one cannot reach a row of the other; a key without an address does not.
 */
static __always_inline void weir_make_key(struct weir_flow_key *ret_key, const struct weir_rule *rule,
					  struct weir_scratch *s)
{
	const struct weir_packet *pkt = &s->packet;

	__builtin_memset(ret_key, 0, sizeof(*ret_key));
	WEIR_KEY_FIELDS(WEIR_TAKE_FIELD)
	weir_turn_key(ret_key, rule, pkt);
	if (rule->key_fields & WEIR_KEY_ADDRESSES)
		ret_key->family = pkt->is_ipv6 ? 6 : 4;
	if (!WEIR_PART_LABELS)
		return;
	if (rule->key_fields & WEIR_KEY_LABEL(WEIR_KEY_SOURCE))
		weir_take_label(ret_key->source, weir_find_label(s, rule->place, 0));
	if (rule->key_fields & WEIR_KEY_LABEL(WEIR_KEY_DESTINATION))
		weir_take_label(ret_key->destination, weir_find_label(s, rule->place, 1));
}

/* ---- the hash ---- */

#define WEIR_KEY_WORDS (sizeof(struct weir_flow_key) / sizeof(__u32))
_Static_assert(WEIR_SEED_KEY + WEIR_KEY_WORDS <= WEIR_SEED_FINISH, "each word has a secret of its own");
_Static_assert(sizeof(struct weir_flow_key) % sizeof(__u32) == 0, "the key is hashed word by word");
_Static_assert(WEIR_WINDOW_SPECS_MAX *(__u64)WEIR_RULE_SLOTS_MAX < 1ull << 32,
	       "a word of the hash's input has 32 bits");

static __always_inline __u64 weir_hash_finish(__u64 sum, const volatile __u64 *seed)
{
	sum ^= sum >> 32;
	sum *= seed[WEIR_SEED_FINISH]; /* odd: the loader sees to it */
	sum ^= sum >> 29;
	sum *= seed[WEIR_SEED_FINISH + 1];
	return sum ^ sum >> 32;
}

/* The window spec is part of the hash, because a rule that gets another rule's old slot must not find rows with buckets
 * of another length.
 */
static __always_inline __u64 weir_hash_rule(const struct weir_rule *rule)
{
	return weir_rule_hash(rule, config.seed[0], config.seed[1]);
}

/* Hash of the packet's flow under any rule. Out of line: the usual key is hashed without it. */
__noinline __u64 weir_hash_key(struct weir_scratch *s, __u32 place)
{
	const struct weir_rule *rule = weir_rule(place);
	const __u32 *words;
	__u64 sum;

	if (!s)
		return 0;
	weir_make_key(&s->key, rule, s);
	words = (const __u32 *)&s->key;
	sum = weir_hash_rule(rule);
#pragma unroll
	for (__u32 i = 0; i < WEIR_KEY_WORDS; i++)
		sum += (__u64)words[i] * config.seed[WEIR_SEED_KEY + i];
	return weir_hash_finish(sum, config.seed);
}

/* The same for a key of just the source. Words that are zero add nothing to the sum, so they are left out; the part
 * that does not depend on the packet has been added up before (weir_source_hash).
 */
static __always_inline __u64 weir_hash_source(const struct weir_rule *rule, const struct weir_packet *pkt)
{
	const volatile __u64 *seed = config.seed;
	__u64 sum;

	OPAQUE(seed); /* keeps its address instead of computing it again for each word */
	if (!pkt->is_ipv6) {
		sum = (__u64)(pkt->source[0] & rule->source_mask4) * seed[WEIR_SEED_KEY];
		return weir_hash_finish(sum + rule->source_hash[0], seed);
	}
	sum = rule->source_hash[1];
#pragma unroll
	for (int i = 0; i < 4; i++)
		sum += (__u64)(pkt->source[i] & rule->source_mask6[i]) * seed[WEIR_SEED_KEY + i];
	return weir_hash_finish(sum, seed);
}
_Static_assert(__builtin_offsetof(struct weir_flow_key, source) == 0, "the source is the key's first four words");

static __always_inline __u64 weir_flow_hash(struct weir_scratch *s, const struct weir_rule *rule)
{
	return likely(rule->key_fields == WEIR_KEY_SOURCE) ? weir_hash_source(rule, &s->packet)
							   : weir_hash_key(s, rule->place);
}

/* ---- the flows of the packet before ---- */

static __always_inline __u64 weir_address_differs(const __be32 one[4], const __be32 other[4], bool is_ipv6)
{
	if (!is_ipv6)
		return one[0] ^ other[0];
	return (weir_half(one, 0) ^ weir_half(other, 0)) | (weir_half(one, 1) ^ weir_half(other, 1));
}

#define WEIR_DIFFERS_ADDRESS(member) weir_address_differs(pkt->member, memory->member, pkt->is_ipv6)
#define WEIR_DIFFERS_NUMBER(member) (pkt->member ^ memory->member)
#define WEIR_DIFFERS_PORT WEIR_DIFFERS_NUMBER
#define WEIR_DIFFERS_VLAN WEIR_DIFFERS_NUMBER
#define WEIR_DIFFERS_PROTOCOL(member) 0 /* the rules would not be the same */

/* Has the packet the same flows as the one before it, in the same tick? Family, protocol and rules are the same. */
static __always_inline bool weir_is_same_flow(const struct weir_scratch *s)
{
	const struct weir_flow_memory *memory = &s->flow_memory;
	const struct weir_packet *pkt = &s->packet;
	__u64 differs = 0;

	if (!s->flows_and_one || memory->entry != s->entry)
		return false;
#define WEIR_DIFFERS(constant, name, member, part, form)                                                               \
	differs |= config.asked_fields & WEIR_MATCH_##part ? WEIR_DIFFERS_##form(member) : 0;
	WEIR_KEY_FIELDS(WEIR_DIFFERS)
	return !differs;
}

#define WEIR_REMEMBER_ADDRESS(member) __builtin_memcpy(memory->member, pkt->member, sizeof(memory->member))
#define WEIR_REMEMBER_NUMBER(member) memory->member = pkt->member
#define WEIR_REMEMBER_PORT WEIR_REMEMBER_NUMBER
#define WEIR_REMEMBER_VLAN WEIR_REMEMBER_NUMBER
#define WEIR_REMEMBER_PROTOCOL(member)

static __always_inline void weir_remember_flow(struct weir_scratch *s)
{
	struct weir_flow_memory *memory = &s->flow_memory;
	const struct weir_packet *pkt = &s->packet;

	s->known = 0;
	s->flows_and_one = 1;
	memory->entry = s->entry;
#define WEIR_REMEMBER(constant, name, member, part, form)                                                              \
	if (config.asked_fields & WEIR_MATCH_##part) {                                                                 \
		WEIR_REMEMBER_##form(member);                                                                          \
	}
	WEIR_KEY_FIELDS(WEIR_REMEMBER)
}

/* ---- the id ---- */

/* Tag 0 means an empty row, so no flow has it. The tag of a narrow or medium row ends with the number of its window
 * spec.
 */
static __always_inline struct weir_flow_id weir_flow_id(struct weir_scratch *s, const struct weir_rule *rule,
							const enum weir_width wide)
{
	__u64 hash = weir_flow_hash(s, rule);
	struct weir_flow_id id;

	if (wide == WEIR_WIDE) {
		id.tag = hash >> 32;
		if (id.tag == 0)
			id.tag = 1;
		id.set = hash & (config.sizes[WEIR_TABLE_WIDE_FLOWS] - 1);
	} else {
		id.tag = hash >> 32 & ~(WEIR_SPECS_NARROW - 1u);
		if (id.tag == 0)
			id.tag = WEIR_SPECS_NARROW;
		id.tag |= rule->spec & (WEIR_SPECS_NARROW - 1u);
		id.set = hash &
			 ((wide ? config.sizes[WEIR_TABLE_MEDIUM_FLOWS] : config.sizes[WEIR_TABLE_NARROW_FLOWS]) - 1);
	}
	return id;
}

#define WEIR_PAGE_SETS(wide) OF_WIDTH(wide, WEIR_NARROW_PAGE_SETS, WEIR_MEDIUM_PAGE_SETS, WEIR_WIDE_PAGE_SETS)

static __always_inline __u32 weir_other_set(const struct weir_flow_id *id, const enum weir_width wide)
{
	return WEIR_OTHER_SET(id->set, id->tag, WEIR_PAGE_SETS(wide));
}

#endif
