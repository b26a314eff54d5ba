/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room sharing: one limit for many hosts, this host's part (docs/cluster.md): the connection to the store (store.h),
 * and the controller's work for rules with clusterMode. Each round it says to the ledger what is wanted, and pushes the
 * share that the answer gives. The steps are cluster/share.h's; here are the clock, the maps and the messages.
 */
#ifndef WEIR_SHARING_SHARING_H
#define WEIR_SHARING_SHARING_H

#include <poll.h>
#include <stdint.h>

#include "base/diag.h"
#include "cluster/share.h"
#include "instance/instance.h"

struct weir_sharing;

/* What it reads and writes, beside the descriptions. */
#define WEIR_SHARING_TABLES                                                                                            \
	(WEIR_TABLE_BIT(WEIR_TABLE_SHARES) | WEIR_TABLE_BIT(WEIR_TABLE_RULE_COUNTERS) |                                \
	 WEIR_TABLE_BIT(WEIR_TABLE_RESOURCE_COUNTERS))

/*
 * Bring *sharing in line with the instance as it is now: at the start (*sharing is NULL), and after each reload. It
 * stays or becomes NULL when hosts share no rule. Rules go on with the share that they have: one that is pushed
 * already, by a controller before this one, holds until it ends.
 */
int weir_sharing_follow(struct weir_sharing **sharing, const struct weir_instance *instance, struct weir_diag *diag);
void weir_sharing_free(struct weir_sharing *sharing);

/* What to poll for, and until when: weir_sharing_step() is to be called when either comes. NULL: nothing. */
struct pollfd weir_sharing_poll(const struct weir_sharing *sharing);
uint64_t weir_sharing_due_ns(const struct weir_sharing *sharing);

/* Take what has come, say what is due, push what has changed. Warns when the store is missed, and when it is back. */
void weir_sharing_step(struct weir_sharing *sharing, struct weir_diag *diag);

/* The program limits nobody any more: give all shares back, and tell the ledger, for half a second at most. */
#define WEIR_SHARING_LEAVE_NS 500000000ull
void weir_sharing_leave(struct weir_sharing *sharing);

/* How many rules. */
uint32_t weir_sharing_rule_count(const struct weir_sharing *sharing);

/* ---- looking on ---- */

/* Units per interval that the program admits by this entry of map `shares`. */
uint64_t weir_share_in_force(const struct weir_shared_threshold *shared, uint64_t now_ns);

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
