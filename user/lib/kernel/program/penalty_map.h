/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The penalty tables of a program, memory-mapped: which flows are penalised, and ending penalties while the program
 * runs. Nothing here begins a penalty: only the program does that.
 */
#ifndef WEIR_PROGRAM_PENALTY_MAP_H
#define WEIR_PROGRAM_PENALTY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "program/object.h"

struct weir_penalties {
	struct weir_penalty_set *sets;	 /* set_count */
	struct weir_penalised *keys;	 /* set_count * WEIR_FLOW_WAYS */
	struct weir_rule_penalty *rules; /* rule_slots */
	uint32_t set_count, rule_slots;
};

/* Map the three tables. 0, or -errno with nothing mapped. The unmap function accepts a struct that is all zero. */
int weir_penalties_map(struct weir_penalties *ret_penalties, const struct weir_tables *tables, bool writes);
void weir_penalties_unmap(struct weir_penalties *penalties);

/* A running penalty. */
struct weir_penalty {
	uint32_t rule_slot;
	bool is_noted;		  /* rule_slot and key are known; not so while another CPU writes them */
	struct weir_flow_key key; /* meaningless if the rule has no key */
	uint64_t left_ns;
	uint32_t lasts_ms;
	/* Where the penalty is stored. */
	__u64 *word;
	__u64 seen;
	uint32_t tag;
};

/* Call `visit` for each penalty that is running at now_ns. `rules` are the rules by slot. */
typedef void weir_penalty_visit(const struct weir_penalty *penalty, void *data);
void weir_penalties_visit(const struct weir_penalties *penalties, const struct weir_rule_info *rules, uint64_t now_ns,
			  weir_penalty_visit *visit, void *data);

/* End the penalty, unless it has already ended, and forget how long it was. Returns whether this call ended it. The
 * program's CPUs notice within WEIR_RELEASE_NS.
 */
bool weir_penalty_end(const struct weir_penalty *penalty);

/* Forget everything about flows of these slots, which will get other rules. */
void weir_penalties_forget(const struct weir_penalties *penalties, const bool *is_slot_forgotten);

#endif
