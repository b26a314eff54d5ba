/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flows that are tracked, in bounded memory. Each belongs to a group (a series, or a service). When the table is
 * full, the groups with the most flows keep only every second flow, chosen by hash, then every fourth, and so on:
 * percentiles remain those of a fair sample, and every flow that is still tracked has all its packets.
 */
#ifndef WEIR_PEAKS_FLOW_TABLE_H
#define WEIR_PEAKS_FLOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "peaks/peaks.h"
#include "weir_state.h"

struct weir_followed {
	struct weir_flow_key key;
	uint64_t hash; /* of its key */
	uint32_t group;
	uint32_t capture; /* the capture that its window belongs to */
	struct weir_flow_peaks peaks;
};

struct weir_flow_table;

/* Most flows that are tracked, at some 300 bytes each. Chosen so that a million flows need no sampling, and fit into
 * 500 MB.
 */
#define WEIR_FOLLOWED_MAX 1100000u

/* NULL: no memory. Group numbers are below `groups`. */
struct weir_flow_table *weir_flow_table_new(uint32_t groups, uint32_t flows_max);
void weir_flow_table_free(struct weir_flow_table *table);

static inline void weir_flow_table_freep(struct weir_flow_table **table)
{
	weir_flow_table_free(*table);
}

#define WEIR_NOT_FOLLOWED UINT32_MAX

/* Returns 0 and the index of this key's flow, which is added if it is new; or WEIR_NOT_FOLLOWED, or -ENOMEM. */
int weir_flow_table_find(struct weir_flow_table *table, uint32_t group, const struct weir_flow_key *key, uint64_t hash,
			 uint32_t *ret_place);

uint32_t weir_flow_table_count(const struct weir_flow_table *table);
struct weir_followed *weir_flow_table_at(const struct weir_flow_table *table, uint32_t place);

/* True if some flows have been dropped from the table, so that earlier indexes are no longer valid. */
bool weir_flow_table_is_sampled(const struct weir_flow_table *table);

/* Indexes of all flows, ordered by group: those of one group follow directly after those of the previous one. The
 * caller frees the array; NULL: no memory.
 */
uint32_t *weir_flow_table_by_group(const struct weir_flow_table *table);

/* The sampling ratio of the group: one in 1, 2, 4 ... of its flows is tracked. */
uint32_t weir_flow_table_one_in(const struct weir_flow_table *table, uint32_t group);

/* Number of tracked flows in the group. */
uint32_t weir_flow_table_group_count(const struct weir_flow_table *table, uint32_t group);

#endif
