/* SPDX-License-Identifier: GPL-2.0-only */
/* The hash of a flow under a rule, computed from its key as in bpf/packet/flow.h. For code that looks for a flow by its
 * key.
 */
#ifndef WEIR_TABLES_FLOW_HASH_H
#define WEIR_TABLES_FLOW_HASH_H

#include <stdint.h>
#include <string.h>

#include "weir_abi.h"

/* `seed` has the 16 words of an instance. */
static inline uint64_t weir_hash_flow(const __u64 *seed, uint32_t rule_slot, uint32_t spec,
				      const struct weir_flow_key *key)
{
	uint32_t words[sizeof(*key) / sizeof(uint32_t)];
	uint64_t sum = seed[0] + (uint64_t)(spec * WEIR_RULE_SLOTS_MAX + rule_slot) * seed[1];

	memcpy(words, key, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sum += words[i] * seed[2 + i];
	sum ^= sum >> 32;
	sum *= seed[14];
	sum ^= sum >> 29;
	sum *= seed[15];
	return sum ^ sum >> 32;
}

/* The id of a flow's rows (WEIR_FLOW_OWNER), computed as by weir_flow_id() in bpf/packet/flow.h. Not for narrow rows.
 */
static inline uint64_t weir_flow_owner(const struct weir_instance_info *info, const struct weir_rule_info *rule,
				       uint32_t rule_slot, const struct weir_flow_key *key)
{
	uint64_t hash = weir_hash_flow(info->seed, rule_slot, rule->spec, key);
	uint32_t tag = (uint32_t)(hash >> 32);

	if (rule->storage == WEIR_STORAGE_WIDE)
		return WEIR_FLOW_OWNER(tag ?: 1, (uint32_t)hash & (info->tables[WEIR_TABLE_WIDE_FLOWS].size - 1));
	tag &= ~(WEIR_SPECS_NARROW - 1u);
	tag = (tag ?: WEIR_SPECS_NARROW) | (rule->spec & (WEIR_SPECS_NARROW - 1u));
	return WEIR_FLOW_OWNER(tag, (uint32_t)hash & (info->tables[WEIR_TABLE_MEDIUM_FLOWS].size - 1));
}

/* ---- its position in tables shared by all CPUs, as in bpf/kinds/flow_set.h ---- */

/* The tag of the flow's entry; 0 marks an empty way. */
static inline uint32_t weir_shared_tag(uint64_t hash)
{
	return hash >> 32 ? hash >> 32 : 1;
}

/* The flow's set in a table with this number of sets, which is a power of two. */
static inline uint32_t weir_shared_set(uint64_t hash, uint32_t sets)
{
	return (uint32_t)hash & (sets - 1);
}

#endif
