/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room store: one limit for many hosts, this host's part (docs/cluster.md): the connection to the store (store.h), and
 * the controller's work for rules with clusterMode. In each round it sends the host's demand to the ledger, and
 * publishes the share in the answer. share.h of room shares has the steps; this room adds the clock, the maps and the
 * messages.
 */
#ifndef WEIR_STORE_SHARING_H
#define WEIR_STORE_SHARING_H

#include <stdint.h>

#include "control/controller.h"
#include "instance/instance.h"
#include "shares/share.h"

/* The tables that sharing reads and writes, besides the descriptions. */
#define WEIR_SHARING_TABLES                                                                                            \
	(WEIR_TABLE_BIT(WEIR_TABLE_SHARES) | WEIR_TABLE_BIT(WEIR_TABLE_RULE_COUNTERS) |                                \
	 WEIR_TABLE_BIT(WEIR_TABLE_RESOURCE_COUNTERS))

/* The most time that leave() may take. */
#define WEIR_SHARING_LEAVE_NS 500000000ull

/*
 * The calls for the controller. Rules continue with the share that they have: one that an earlier controller has
 * published stays in force until it ends. step() warns when the store is lost, and when it is back. leave() informs the
 * ledger, for half a second at most.
 */
extern const struct weir_sharing_calls weir_sharing_calls;

/* ---- reading from outside ---- */

/* The name of a process in the ledger. Map `shares` has it as a number. */
void weir_sharing_process(uint64_t number, char process[WEIR_CLUSTER_NAME_CHARS]);

/* A rule's terms, in a cluster that had `hosts` hosts last. */
struct weir_share_terms weir_sharing_terms(const struct weir_cluster_info *cluster, const struct weir_rule_info *info,
					   int64_t hosts);

/* The name of this host in the ledger. */
void weir_sharing_host(const struct weir_cluster_info *cluster, char host[WEIR_CLUSTER_WORD_CHARS]);

/* The key of a rule's ledger in the store. Rules with the same name count together if they have the same interval and
 * unit.
 */
#define WEIR_LEDGER_KEY_CHARS 256
void weir_sharing_key(const struct weir_cluster_info *cluster, const struct weir_rule_info *rule,
		      char key[WEIR_LEDGER_KEY_CHARS]);

#endif
