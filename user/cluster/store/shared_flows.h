/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Single flows that hosts share, of rules with a flow key (docs/cluster.md, "Rules with a flow key"): finding them,
 * among dropped flows and in the lists of the ledgers, and what each should have (flow_places.h says where that is
 * stored). For sharing.c, which has the rules and the messages.
 */
#ifndef WEIR_STORE_SHARED_FLOWS_H
#define WEIR_STORE_SHARED_FLOWS_H

#include "instance/instance.h"
#include "shares/flow.h"
#include "shares/flow_name.h"
#include "store/store.h"

/* For one rule, at a time. docs/cluster.md says what each costs the store. */
#define WEIR_SHARED_FLOWS_MAX 64

struct weir_sharing_flows;

/* The rule of a flow. */
struct weir_flow_rule {
	uint32_t slot;
	const char *ledger; /* the ledger's key in the store */
	const struct weir_share *share;
};

struct weir_shared_flow {
	uint32_t slot; /* slot of its rule */
	struct weir_flow_key key;
	char name[WEIR_FLOW_NAME_CHARS], sealed[WEIR_FLOW_SEALED_CHARS];
	struct weir_flow_part flow;
	uint32_t place; /* flow_places.h */
	bool is_listed; /* in the list of its rule's ledger; otherwise it ends */
	uint64_t dropped_ns;
	uint64_t asked_ns; /* when the current message was built; 0: the flow is not in it */
	uint64_t offered;  /* units since the instance was attached */
};

/* A flow that this host wants to share. */
struct weir_wanted_flow {
	uint32_t slot;
	uint64_t lack; /* units per interval that the flow would lose without its own ledger */
	char name[WEIR_FLOW_NAME_CHARS], sealed[WEIR_FLOW_SEALED_CHARS];
};

/* Reads the secret from the file that the cluster's settings name. Without a secret no flow is shared; if the file
 * cannot be read, a warning says so.
 */
int weir_sharing_flows_open(const struct weir_cluster_info *cluster, struct weir_sharing_flows **ret_flows,
			    struct weir_diag *diag);
void weir_sharing_flows_free(struct weir_sharing_flows *flows);

/* Update the maps for the present state of the instance. */
int weir_sharing_flows_follow(struct weir_sharing_flows *flows, const struct weir_instance *instance);

/* Does this rule share flows at all? */
bool weir_sharing_flows_shares(const struct weir_sharing_flows *flows, const struct weir_rule_info *rule);

/* Find dropped flows, measure the demand of the shared ones, and forget those that are over. Call this while no message
 * is under way.
 */
void weir_sharing_flows_look(struct weir_sharing_flows *flows, const struct weir_flow_rule *rules, size_t count,
			     uint64_t now_ns);

/* All flows that are, or were, shared; those in a ledger's list take part in messages. */
struct weir_shared_flow *weir_sharing_flows_all(struct weir_sharing_flows *flows, size_t *ret_count);
const struct weir_wanted_flow *weir_sharing_flows_wanted(const struct weir_sharing_flows *flows, size_t *ret_count);

/* Take the list of a rule's ledger: alternating names and sealed keys. */
void weir_sharing_flows_take_list(struct weir_sharing_flows *flows, const struct weir_flow_rule *rule,
				  const struct weir_reply *list, uint64_t now_ns);

/* The rule is no longer shared, or its slot has another rule. WEIR_FLOWS_ANY: all rules. */
#define WEIR_FLOWS_ANY UINT32_MAX
void weir_sharing_flows_drop(struct weir_sharing_flows *flows, uint32_t slot);

/* The largest amount that any flow of the rule has given up. */
uint64_t weir_sharing_flows_lent(const struct weir_sharing_flows *flows, uint32_t slot);

/* Put all schedules in force, and write the number of flows of each rule into its entry in map `shares`. */
void weir_sharing_flows_push(struct weir_sharing_flows *flows, struct weir_shared_threshold *shares, uint64_t now_ns);

/* When a schedule next changes by itself; UINT64_MAX: never. */
uint64_t weir_sharing_flows_next_ns(const struct weir_sharing_flows *flows);

#endif
