/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every map, but list_* (lists.h), listed_prefixes (timed.h) and pace_counters (pace.h); and the configuration in
 * .rodata. weir_abi.h describes their contents, and whether the instance or a generation owns them. Sizes of 1 are
 * placeholders that the loader replaces.
 */
#ifndef WEIR_MAPS_H
#define WEIR_MAPS_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "weir_abi.h"
#include "weir_prefixes.h"
#include "weir_timed.h"
#include "hook.h"
#include "scratch.h"

const volatile struct weir_config config = {};
struct weir_generation generation = {};

enum {
	WEIR_KINDS_WITH_FLOW_SETS = 0
#define SHARED_KIND(identifier, ...) | 1 << WEIR_KIND_##identifier
#define KIND(...)
#include "weir_kinds.def"
};

/* Does the load use this optional part of the program? The verifier knows config, and removes the code of unused parts.
 */
#define WEIR_PART_MEDIUM (config.storages >> WEIR_STORAGE_MEDIUM & 1)
#define WEIR_PART_WIDE (config.storages & (1 << WEIR_STORAGE_WIDE | 1 << WEIR_STORAGE_LONE))
#define WEIR_PART_KIND(identifier) (config.kinds >> WEIR_KIND_##identifier & 1) /* KIND(THROTTLE): of weir_kinds.def */
/* Is the rule of this kind? The verifier removes what follows in a load without such rules. */
#define WEIR_IS_KIND(rule, identifier) (WEIR_PART_KIND(identifier) && (rule)->kind == WEIR_KIND_##identifier)
#define WEIR_PART_OTHER_KINDS (config.kinds & ~(1 << WEIR_KIND_WINDOW))
#define WEIR_PART_OCCUPY WEIR_PART_KIND(OCCUPY)
#define WEIR_PART_CONNECTIONS WEIR_PART_KIND(CONNECTIONS)
#define WEIR_PART_SHARED_CONNECTIONS (config.shares_connections)
#define WEIR_PART_BREAKERS WEIR_PART_KIND(BREAKER)
#define WEIR_PART_CLOSING (WEIR_PART_CONNECTIONS || WEIR_PART_BREAKERS) /* weir_verify_closing() */
#define WEIR_PART_SYSTEM_RULES (config.system_rules)
#define WEIR_PART_TRACKER (config.has_tracker) /* the hidden rule that follows connections */
#define WEIR_PART_PENALTIES (config.penalises)
#define WEIR_PART_BARS (config.bars)
#define WEIR_PART_WARM_UP (config.warms_flows)
#define WEIR_PART_FLOW_SETS                                                                                            \
	(config.kinds & WEIR_KINDS_WITH_FLOW_SETS || WEIR_PART_CONNECTIONS || WEIR_PART_BREAKERS ||                    \
	 config.penalises || config.warms_flows)
#define WEIR_PART_GHOSTS (config.sizes[WEIR_TABLE_GHOSTS])
#define WEIR_PART_OVERFLOW (config.has_overflow)
#define WEIR_PART_SHADOWS (config.has_shadows)
#define WEIR_PART_OVERRIDES (config.has_overrides)
#define WEIR_PART_OVERFLOW_WINDOWS (config.overflow_classes)
#define WEIR_PART_LISTS (config.has_lists)
#define WEIR_PART_TIMED_ENTRIES (config.has_timed)
#define WEIR_PART_ANSWERS (config.answers)
#define WEIR_PART_COOKIES (config.answers >> WEIR_ON_BLOCK_COOKIE & 1)
#define WEIR_PART_RETURNED_COOKIES (WEIR_PART_COOKIES && WEIR_PART_CONNECTIONS)
/* Where answers are all there is to do after a verdict, a packet that passes makes no call for them. */
#define WEIR_ACTS_AFTER(verdict)                                                                                       \
	(!WEIR_PART_ANSWERS || config.paces || config.answered_count || (verdict) == WEIR_VERDICT_BLOCK)
#define WEIR_PART_EVENTS (!config.is_virtual)
#define WEIR_PART_HARNESS (config.is_virtual)
#define WEIR_PART_LABELS (config.label_first)
#define WEIR_PART_PREFIXES (config.match_fields & (WEIR_MATCH_SOURCE | WEIR_MATCH_DESTINATION) || WEIR_PART_LABELS)
#define WEIR_PART_MANY_RESOURCES (!config.has_only_words)	  /* more than one word of a vector names */
#define WEIR_PART_SEVERAL_RESOURCES (config.packet_resources > 1) /* may match one packet */
#define WEIR_PART_EXCEPTS (config.has_excepts)			  /* some are without others */
#define WEIR_PART_SEVERAL_RULES (config.packet_rules > 1)	  /* may meet on one packet */
#define WEIR_PART_OUT_OF_LINE (config.asks_out_of_line)		  /* weir_try_rules() */

/* A global function of an optional part begins with this. It RETURNS `answer` if the load does not use the part, or if
 * an argument that the function needs is missing. Linux 6.1 verifies each global function by itself, called or not,
 * with any arguments. Without this, a load with one keyed rule took 634,477 of the million instructions that the
 * verifier follows; with it, 102,797 (clang 14). In a part that is used, only two or three instructions of this remain.
 */
#define WEIR_GLOBAL(part, needs, answer)                                                                               \
	do {                                                                                                           \
		if (!(WEIR_PART_##part) || !(needs))                                                                   \
			return answer;                                                                                 \
	} while (0)

#define WEIR_MAP(map_name, map_type, entries, value_type, map_options)                                                 \
	struct {                                                                                                       \
		__uint(type, map_type);                                                                                \
		__uint(max_entries, entries);                                                                          \
		__uint(map_flags, map_options);                                                                        \
		__type(key, __u32);                                                                                    \
		__type(value, value_type);                                                                             \
	} map_name SEC(".maps")

/* the generation, beside the struct of that name; and its thresholds, among the tables */
WEIR_MAP(vectors, BPF_MAP_TYPE_ARRAY, 1, struct weir_vector, BPF_F_RDONLY_PROG);
/* Userspace adds interfaces when they appear (user/lib/kernel/instance/newcomers.c); until then they take no memory. */
WEIR_MAP(interfaces, BPF_MAP_TYPE_HASH, 64, __u32, BPF_F_RDONLY_PROG | BPF_F_NO_PREALLOC);

WEIR_MAP(prefix_nodes, BPF_MAP_TYPE_ARRAY, 1, struct weir_prefix_node, BPF_F_RDONLY_PROG);

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_RDONLY_PROG);
	__type(key, struct weir_override_key);
	__type(value, struct weir_override_units);
} overrides SEC(".maps");

/* the instance */
#define TABLE(identifier, map_name, map_type, map_key, map_value, flags, ...)                                          \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_##map_type);                                                                 \
		__uint(max_entries, 1);                                                                                \
		__uint(map_flags, flags);                                                                              \
		__type(key, map_key);                                                                                  \
		__type(value, map_value);                                                                              \
	} map_name SEC(".maps");
#define WEIR_TABLES_BUT_PACE
#include "weir_tables.def"
#undef TABLE

/* the program's own */
WEIR_MAP(clocks, BPF_MAP_TYPE_PERCPU_ARRAY, WEIR_WINDOW_SPECS_MAX, struct weir_clock, 0);
/* Not mapped by any process; the flag only keeps sets from crossing cache lines. */
WEIR_MAP(notes, BPF_MAP_TYPE_ARRAY, 1, struct weir_notes, BPF_F_MMAPABLE);
WEIR_MAP(harness, BPF_MAP_TYPE_ARRAY, 1, struct weir_harness, BPF_F_MMAPABLE);

static __always_inline __u32 weir_this_cpu(struct weir_scratch *s)
{
	if (unlikely(!s->cpu_and_one))
		s->cpu_and_one = bpf_get_smp_processor_id() + 1;
	return s->cpu_and_one - 1;
}

/* Entries of the generation's tables. The mask is for the verifier: core/compile refuses larger ones. The pointer
 * is opaque so that clang keeps it. Otherwise clang computes the address of each field again, in three instructions
 * instead of one, and uses more of the stack, which is scarce (kernel 6.1 counts 32 bytes for each call).
 */
static __always_inline const struct weir_rule *weir_rule(__u32 place)
{
	const struct weir_rule *rule;

	OPAQUE(place);
	rule = &generation.rules[place & (WEIR_RULES_MAX - 1)];
	OPAQUE(rule);
	return rule;
}

/* Does the rule decide by rows of its own flow, so that shortcuts apply? */
static __always_inline bool weir_keeps_rows(const struct weir_rule *rule)
{
	return rule->kind == WEIR_KIND_WINDOW;
}

static __always_inline const struct weir_resource *weir_resource(__u32 place)
{
	const struct weir_resource *resource;

	OPAQUE(place);
	resource = &generation.resources[place & (WEIR_RESOURCES_MAX - 1)];
	OPAQUE(resource);
	return resource;
}

#endif
