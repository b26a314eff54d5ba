/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whose is it? Rows and entries hold a flow's hash; its key is known in the clear of flows that were dropped
 * (bpf/offenders.h), and of samples of the others (bpf/talkers.h). For flows.c.
 */
#ifndef WEIR_STATE_KNOWN_H
#define WEIR_STATE_KNOWN_H

#include "instance/instance.h"

/* Where flows are kept, each in its own tables. */
enum weir_flow_place {
	WEIR_FLOW_NARROW,
	WEIR_FLOW_MEDIUM,
	WEIR_FLOW_WIDE,
	WEIR_FLOW_BORROWING,
	WEIR_FLOW_TOKENS,
	WEIR_FLOW_PLANNED,
};

/* One whose key is known. */
struct weir_known_flow {
	enum weir_flow_place place;
	uint32_t tag, set; /* set: as weir_canonical_set() has it */
	uint32_t rule_slot;
	struct weir_flow_key key;
};

struct weir_known {
	struct weir_known_flow *flow; /* count of them, sorted by where they are */
	size_t count;
};

/* A flow with rows has two candidate sets; both give the same number. */
uint32_t weir_canonical_set(enum weir_flow_place place, uint32_t set, uint32_t tag);

/* The hidden rule whose window this rule reads (AssociatedResource), or NULL. */
const struct weir_rule_info *weir_meter_of(const struct weir_instance *instance, const struct weir_rule_info *rule);

/* 0, or -errno and *ret_known is untouched; weir_known_free() frees it. */
int weir_known_read(const struct weir_instance *instance, int cpus, struct weir_known *ret_known);
void weir_known_free(struct weir_known *known);

/* The flow that is there, or NULL. */
const struct weir_known_flow *weir_known_find(const struct weir_known *known, enum weir_flow_place place, uint32_t set,
					      uint32_t tag);

#endif
