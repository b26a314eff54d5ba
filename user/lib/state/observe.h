/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The current flows that all CPUs share: one function for each kind of limit (include/weir_kinds.def), each in its own
 * file. For flows.c, which finds out whose flows they are. They are read while packets are still counted. Where a kind
 * keeps them, and what an element of theirs says, is here for 'weir explain' as well.
 */
#ifndef WEIR_STATE_OBSERVE_H
#define WEIR_STATE_OBSERVE_H

#include <stddef.h>

#include "instance/instance.h"
#include "kind/kind.h"

#define WEIR_SLOT_UNKNOWN 0xffffffffu

struct weir_observed {
	uint32_t slot;			     /* of the rule; WEIR_SLOT_UNKNOWN: it may belong to several */
	bool is_sure;			     /* it belongs to no other rule, whatever was recorded */
	uint32_t tag, set;		     /* of the flow; 0 for a whole resource */
	uint64_t units, occupied, threshold; /* with the same meaning as in struct weir_flow_use (flows.h) */
	bool has_threshold;		     /* false: the rule's threshold applies, or its override's */
	bool is_wait;
};

/* Pass each flow that has used anything to `add`. `allowed` is what each rule allows now, by place. Returns 0 or
 * -errno.
 */
typedef void weir_observed_add(const struct weir_observed *found, void *data);
typedef int weir_observe(const struct weir_instance *instance, const uint64_t *allowed, weir_observed_add *add,
			 void *data);

/* Where flows are that all CPUs share: an element at the slot of a rule without a flow key, or in a way of a set. */
struct weir_flow_tables {
	enum weir_table_id lone, flows;
	size_t offset, bytes; /* of the elements in a set, which begins with a struct weir_flow_set */
};
#define WEIR_FLOW_TABLES(lone_table, flow_table, type, member)                                                         \
	((struct weir_flow_tables){WEIR_TABLE_##lone_table, WEIR_TABLE_##flow_table, offsetof(struct type, member),    \
				   sizeof(((struct type *)NULL)->member[0])})
#define WEIR_TAT_TABLES WEIR_FLOW_TABLES(THROTTLED_RESOURCES, THROTTLED_FLOWS, weir_throttle_set, last)
#define WEIR_TOKEN_TABLES WEIR_FLOW_TABLES(TOKEN_RESOURCES, TOKEN_FLOWS, weir_token_set, bucket)
#define WEIR_OCCUPY_TABLES WEIR_FLOW_TABLES(OCCUPY_RESOURCES, OCCUPY_FLOWS, weir_occupy_set, flow)
#define WEIR_BREAKER_TABLES WEIR_FLOW_TABLES(LONE_BREAKERS, BREAKERS, weir_breaker_set, breaker)
#define WEIR_PENALTY_TABLES WEIR_FLOW_TABLES(PENALISED_RULES, PENALISED_FLOWS, weir_penalty_set, until)

static inline const void *weir_flow_element(const struct weir_flow_tables *tables, const void *set, int way)
{
	return (const char *)set + tables->offset + way * tables->bytes;
}

/* Does any rule have this kind? */
bool weir_kind_is_used(const struct weir_instance *instance, enum weir_kind_id kind);

/*
 * Call `look` for the element of each rule of this kind without a flow key (tag 0, its slot), and of each flow (slot
 * unknown, its tag and set). now_ns was read after the element; otherwise flows would seem fuller than they ever were.
 */
typedef void weir_observe_look(const void *element, uint64_t now_ns, struct weir_observed *found, void *data);
int weir_observe_tables(const struct weir_instance *instance, enum weir_kind_id kind,
			const struct weir_flow_tables *tables, weir_observe_look *look, void *data);

/* Units of one bucket of an occupy window. Buckets are numbered as in the program, which starts one ring before time
 * zero.
 */
uint64_t weir_occupy_units(const struct weir_occupy_window *flow, uint32_t tag, const struct weir_rule_info *rule,
			   uint64_t bucket);

#define SHARED_KIND(identifier, name, ...) weir_observe weir_observe_##name;
#define KIND(...)
#include "weir_kinds.def"

#endif
