/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which flow does a row belong to? Rows and entries hold only a flow's hash. The key itself is known for flows that
 * were dropped (bpf/observe/top_drops.h), and for samples of the others (bpf/observe/key_samples.h). For flows.c.
 */
#ifndef WEIR_STATE_FLOW_KEYS_H
#define WEIR_STATE_FLOW_KEYS_H

#include "instance/instance.h"
#include "state/rows.h"

/* Where flows are kept; each place has its own tables. */
enum weir_flow_place {
	WEIR_FLOW_NARROW = WEIR_ROWS_NARROW,
	WEIR_FLOW_MEDIUM = WEIR_ROWS_MEDIUM,
	WEIR_FLOW_WIDE = WEIR_ROWS_WIDE,
	WEIR_FLOW_OF_KIND, /* plus the kind's number: a kind whose flows all CPUs share */
};

/* A flow whose key is known. */
struct weir_named_flow {
	enum weir_flow_place place;
	uint32_t tag, set; /* set: from weir_canonical_set() */
	uint32_t rule_slot;
	struct weir_flow_key key;
};

struct weir_flow_keys {
	struct weir_named_flow *flow; /* `count` entries, sorted by their place in the tables */
	size_t count;
};

/* A flow with rows has two candidate sets; this returns the same number for both. */
uint32_t weir_canonical_set(enum weir_flow_place place, uint32_t set, uint32_t tag);

/* The hidden rule whose window this rule reads (AssociatedResource), or NULL. */
const struct weir_rule_info *weir_shadow_of(const struct weir_instance *instance, const struct weir_rule_info *rule);

/* Returns 0, or -errno and leaves *ret_keys untouched. Free it with weir_flow_keys_free(). */
int weir_flow_keys_read(const struct weir_instance *instance, int cpus, struct weir_flow_keys *ret_keys);
void weir_flow_keys_free(struct weir_flow_keys *keys);

/* The flow at this position, or NULL. */
const struct weir_named_flow *weir_flow_keys_find(const struct weir_flow_keys *keys, enum weir_flow_place place,
						  uint32_t set, uint32_t tag);

#endif
