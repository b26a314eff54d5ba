/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flows that are followed, in bounded memory: each is of a group (a series, or a service). When the table is full,
 * the groups with most flows keep every second of their flows, chosen by their hashes, then every fourth, and so on:
 * percentiles stay those of a fair sample, and every flow that is still followed has all its packets.
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
	uint32_t capture; /* which one its window is of */
	struct weir_flow_peaks peaks;
};

struct weir_flow_table;

/* Flows that are followed at most: some 300 bytes each. Chosen so that a million need no sampling, and 500 MB do. */
#define WEIR_FOLLOWED_MAX 1100000u

/* NULL: no memory. groups: their numbers are below this. */
struct weir_flow_table *weir_flow_table_new(uint32_t groups, uint32_t flows_max);
void weir_flow_table_free(struct weir_flow_table *table);

static inline void weir_flow_table_freep(struct weir_flow_table **table)
{
	weir_flow_table_free(*table);
}

#define WEIR_NOT_FOLLOWED UINT32_MAX

/* The place of the flow of this key, new if need be, with 0; or WEIR_NOT_FOLLOWED. -ENOMEM. */
int weir_flow_table_find(struct weir_flow_table *table, uint32_t group, const struct weir_flow_key *key, uint64_t hash,
			 uint32_t *ret_place);

uint32_t weir_flow_table_count(const struct weir_flow_table *table);
struct weir_followed *weir_flow_table_at(const struct weir_flow_table *table, uint32_t place);

/* Some flows were left out: places are not what they were before. */
bool weir_flow_table_is_sampled(const struct weir_flow_table *table);

/* Places of all flows, in order of their groups: those of a group begin where those of the groups before end. The
 * caller frees them; NULL: no memory.
 */
uint32_t *weir_flow_table_by_group(const struct weir_flow_table *table);

/* One in so many of the group's flows is followed: 1, 2, 4 ... */
uint32_t weir_flow_table_one_in(const struct weir_flow_table *table, uint32_t group);

/* Flows of the group that are followed. */
uint32_t weir_flow_table_group_count(const struct weir_flow_table *table, uint32_t group);

#endif
