/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room store: one limit for many hosts, this host's part (docs/cluster.md): the connection to the store (store.h),
 * and the controller's work for rules with clusterMode. Each round it says to the ledger what is wanted, and pushes the
 * share that the answer gives. The steps are shares/share.h's; here are the clock, the maps and the messages.
 */
#ifndef WEIR_STORE_SHARING_H
#define WEIR_STORE_SHARING_H

#include <stdint.h>

#include "control/controller.h"
#include "instance/instance.h"
#include "shares/share.h"

/* What it reads and writes, beside the descriptions. */
#define WEIR_SHARING_TABLES                                                                                            \
	(WEIR_TABLE_BIT(WEIR_TABLE_SHARES) | WEIR_TABLE_BIT(WEIR_TABLE_RULE_COUNTERS) |                                \
	 WEIR_TABLE_BIT(WEIR_TABLE_RESOURCE_COUNTERS))

/* How long leave() may take. */
#define WEIR_SHARING_LEAVE_NS 500000000ull

/*
 * What the controller calls. Rules continue with the share that they have: one that is pushed already, by a controller
 * before this one, holds until it ends. step() warns when the store is missed, and when it is back; leave() informs the
 * ledger, for half a second at most.
 */
extern const struct weir_sharing_calls weir_sharing_calls;

/* ---- looking on ---- */

/* By what a process calls itself there: map `shares` has it as a number. */
void weir_sharing_process(uint64_t number, char process[WEIR_CLUSTER_NAME_CHARS]);

/* What a rule says, of a cluster that had so many hosts last. */
struct weir_share_terms weir_sharing_terms(const struct weir_cluster_info *cluster, const struct weir_rule_info *info,
					   int64_t hosts);

/* The name of this host, as the ledger knows it. */
void weir_sharing_host(const struct weir_cluster_info *cluster, char host[WEIR_CLUSTER_WORD_CHARS]);

/* The key of a rule's ledger in the store. Rules of one name count together if they have one interval and unit. */
#define WEIR_LEDGER_KEY_CHARS 256
void weir_sharing_key(const struct weir_cluster_info *cluster, const struct weir_rule_info *rule,
		      char key[WEIR_LEDGER_KEY_CHARS]);

#endif
