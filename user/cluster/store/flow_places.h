/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the program finds the differences of single flows that hosts share: places in map `flow_shares`, and the demand
 * of each flow in `flow_demands`. For shared_flows.c, which knows which flows are shared.
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

/* A flow that needs a place. */
struct weir_placed_flow {
	uint32_t slot; /* slot of its rule */
	struct weir_flow_key key;
	const char *name; /* its name in the store */
};

void weir_flow_places_init(struct weir_flow_places *places);
void weir_flow_places_free(struct weir_flow_places *places);

/* Update for the present state of the instance. Without `sets`, the program knows no shared flow. */
int weir_flow_places_follow(struct weir_flow_places *places, const struct weir_instance *instance);

/* The place of the flow, which an earlier controller may have assigned, or a free place. WEIR_FLOW_SHARES: none. */
uint32_t weir_flow_places_find(const struct weir_flow_places *places, const struct weir_placed_flow *flow);

/* Does this place already belong to the flow? */
bool weir_flow_places_has(const struct weir_flow_places *places, uint32_t place, const struct weir_placed_flow *flow);

/* The schedule in force at a place, whichever flow the place belongs to. */
void weir_flow_places_read(const struct weir_flow_places *places, uint32_t place,
			   struct weir_share_schedule *ret_schedule);

/* Assign a place that was found for the flow, with its schedule; and free a place. */
void weir_flow_places_give(struct weir_flow_places *places, uint32_t place, const struct weir_placed_flow *flow,
			   const struct weir_share *share, uint64_t now_ns);
void weir_flow_places_take(struct weir_flow_places *places, uint32_t place);

/* Put a schedule in force. Returns the units that were in force until now. */
uint64_t weir_flow_places_push(struct weir_flow_places *places, uint32_t place, const struct weir_share *share,
			       uint64_t now_ns);

/* Units offered since the instance was attached. -errno: they cannot be read. */
int weir_flow_places_offered(const struct weir_flow_places *places, uint32_t place, uint64_t *ret_units);

/* Free the places that an earlier controller has left and whose schedule is over, and write into `shares` how many
 * places each rule has. is_ours is indexed by place.
 */
void weir_flow_places_tidy(struct weir_flow_places *places, const bool is_ours[WEIR_FLOW_SHARES],
			   struct weir_shared_threshold *shares, uint64_t now_ns);

#endif
