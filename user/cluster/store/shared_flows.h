/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Single flows that hosts share, of rules with a flow key (docs/cluster.md, "Rules with a flow key"): which ones, found
 * where they were dropped and in what the ledgers list, and what each is to have (where: flow_places.h). For sharing.c,
 * which has the rules and the messages.
 */
#ifndef WEIR_STORE_SHARED_FLOWS_H
#define WEIR_STORE_SHARED_FLOWS_H

#include "instance/instance.h"
#include "shares/flow.h"
#include "shares/flow_name.h"
#include "store/store.h"

/* For one rule, at a time. What each costs the store stands in docs/cluster.md. */
#define WEIR_SHARED_FLOWS_MAX 64

struct weir_sharing_flows;

/* What a flow's rule is to it. */
struct weir_flow_rule {
	uint32_t slot;
	const char *ledger; /* its key in the store */
	const struct weir_share *share;
};

struct weir_shared_flow {
	uint32_t slot; /* of its rule */
	struct weir_flow_key key;
	char name[WEIR_FLOW_NAME_CHARS], sealed[WEIR_FLOW_SEALED_CHARS];
	struct weir_flow_part flow;
	uint32_t place; /* flow_places.h */
	bool is_listed; /* by its rule's ledger; else it ends */
	uint64_t dropped_ns;
	uint64_t asked_ns; /* when the message that is under way was made; 0: it is not in it */
	uint64_t offered;  /* units since the instance was attached */
};

/* A flow that this host wants to be shared. */
struct weir_wanted_flow {
	uint32_t slot;
	uint64_t lack; /* units per interval that it would lose without its own ledger */
	char name[WEIR_FLOW_NAME_CHARS], sealed[WEIR_FLOW_SEALED_CHARS];
};

/* The secret is read from the file that the cluster names. Without one, or with one that cannot be read, of which is
 * warned, no flow is shared.
 */
int weir_sharing_flows_open(const struct weir_cluster_info *cluster, struct weir_sharing_flows **ret_flows,
			    struct weir_diag *diag);
void weir_sharing_flows_free(struct weir_sharing_flows *flows);

/* Bring the maps in line with the instance as it is now. */
int weir_sharing_flows_follow(struct weir_sharing_flows *flows, const struct weir_instance *instance);

/* Does this rule share flows at all? */
bool weir_sharing_flows_shares(const struct weir_sharing_flows *flows, const struct weir_rule_info *rule);

/* Look for flows that are dropped, count what came of those that are shared, and forget what is over. Call it while no
 * message is under way.
 */
void weir_sharing_flows_look(struct weir_sharing_flows *flows, const struct weir_flow_rule *rules, size_t count,
			     uint64_t now_ns);

/* Those that are shared, or were; those that are listed take part in messages. */
struct weir_shared_flow *weir_sharing_flows_all(struct weir_sharing_flows *flows, size_t *ret_count);
const struct weir_wanted_flow *weir_sharing_flows_wanted(const struct weir_sharing_flows *flows, size_t *ret_count);

/* What the ledger of a rule lists: names and sealed keys by turns. */
void weir_sharing_flows_take_list(struct weir_sharing_flows *flows, const struct weir_flow_rule *rule,
				  const struct weir_reply *list, uint64_t now_ns);

/* The rule is not shared any more, or is another's. WEIR_FLOWS_ANY: all. */
#define WEIR_FLOWS_ANY UINT32_MAX
void weir_sharing_flows_drop(struct weir_sharing_flows *flows, uint32_t slot);

/* For all flows of a rule, the most that is given up. */
uint64_t weir_sharing_flows_lent(const struct weir_sharing_flows *flows, uint32_t slot);

/* Put all schedules in force, and how many flows each rule has into its entry of map `shares`. */
void weir_sharing_flows_push(struct weir_sharing_flows *flows, struct weir_shared_threshold *shares, uint64_t now_ns);

/* When a schedule changes by itself; UINT64_MAX: never. */
uint64_t weir_sharing_flows_next_ns(const struct weir_sharing_flows *flows);

#endif
