/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose is it? Rows and entries hold a flow's hash; its key is known in the clear of flows that were dropped
 * (bpf/observe/top_drops.h), and of samples of the others (bpf/observe/key_samples.h). For flows.c.
 */
#ifndef WEIR_STATE_FLOW_KEYS_H
#define WEIR_STATE_FLOW_KEYS_H

#include "instance/instance.h"

/* Where flows are kept, each in its own tables. */
enum weir_flow_place {
	WEIR_FLOW_NARROW,
	WEIR_FLOW_MEDIUM,
	WEIR_FLOW_WIDE,
	WEIR_FLOW_OF_KIND, /* and its number: of a kind whose flows all CPUs share */
};

/* One whose key is known. */
struct weir_named_flow {
	enum weir_flow_place place;
	uint32_t tag, set; /* set: as weir_canonical_set() has it */
	uint32_t rule_slot;
	struct weir_flow_key key;
};

struct weir_flow_keys {
	struct weir_named_flow *flow; /* count of them, sorted by where they are */
	size_t count;
};

/* A flow with rows has two candidate sets; both give the same number. */
uint32_t weir_canonical_set(enum weir_flow_place place, uint32_t set, uint32_t tag);

/* The hidden rule whose window this rule reads (AssociatedResource), or NULL. */
const struct weir_rule_info *weir_shadow_of(const struct weir_instance *instance, const struct weir_rule_info *rule);

/* 0, or -errno and *ret_keys is untouched; weir_flow_keys_free() frees it. */
int weir_flow_keys_read(const struct weir_instance *instance, int cpus, struct weir_flow_keys *ret_keys);
void weir_flow_keys_free(struct weir_flow_keys *keys);

/* The flow that is there, or NULL. */
const struct weir_named_flow *weir_flow_keys_find(const struct weir_flow_keys *keys, enum weir_flow_place place,
						  uint32_t set, uint32_t tag);

#endif
