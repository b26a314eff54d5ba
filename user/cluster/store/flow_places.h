/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the program finds what single flows that hosts share have more or less: places in map `flow_shares`; and what
 * came of each, in `flow_demands`. For shared_flows.c, which knows which flows there are.
 */
#ifndef WEIR_STORE_FLOW_PLACES_H
#define WEIR_STORE_FLOW_PLACES_H

#include "instance/instance.h"
#include "shares/share.h"

struct weir_flow_places {
	struct weir_instance_info info;
	struct weir_rule_info *rules; /* by slot */
	struct weir_flow_share_set *sets;
	int demands_fd, cpus;
};

/* A flow that is to have a place. */
struct weir_placed_flow {
	uint32_t slot; /* of its rule */
	struct weir_flow_key key;
	const char *name; /* in the store */
};

void weir_flow_places_init(struct weir_flow_places *places);
void weir_flow_places_free(struct weir_flow_places *places);

/* Bring them in line with the instance as it is now. Without `sets`, the program knows of no flow that is shared. */
int weir_flow_places_follow(struct weir_flow_places *places, const struct weir_instance *instance);

/* The flow's place, which a controller before this one may have given it, or a free one. WEIR_FLOW_SHARES: none. */
uint32_t weir_flow_places_find(const struct weir_flow_places *places, const struct weir_placed_flow *flow);

/* Does this place have the flow already? */
bool weir_flow_places_has(const struct weir_flow_places *places, uint32_t place, const struct weir_placed_flow *flow);

/* What a place has in force, whoever's it is. */
void weir_flow_places_read(const struct weir_flow_places *places, uint32_t place,
			   struct weir_share_schedule *ret_schedule);

/* Give the flow a place that was found for it, with its schedule; and take one away. */
void weir_flow_places_give(struct weir_flow_places *places, uint32_t place, const struct weir_placed_flow *flow,
			   const struct weir_share *share, uint64_t now_ns);
void weir_flow_places_take(struct weir_flow_places *places, uint32_t place);

/* Put a schedule in force. Returns what was in force until now. */
uint64_t weir_flow_places_push(struct weir_flow_places *places, uint32_t place, const struct weir_share *share,
			       uint64_t now_ns);

/* Units that came since the instance was attached. -errno: they cannot be read. */
int weir_flow_places_offered(const struct weir_flow_places *places, uint32_t place, uint64_t *ret_units);

/* Free what a controller before this one has left, when its schedule is over; and write into `shares` how many
 * places each rule has. is_ours: by place.
 */
void weir_flow_places_tidy(struct weir_flow_places *places, const bool is_ours[WEIR_FLOW_SHARES],
			   struct weir_shared_threshold *shares, uint64_t now_ns);

#endif
