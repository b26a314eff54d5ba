/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room store: one limit for many hosts, this host's part (docs/cluster.md): the connection to the store (store.h), and
 * the controller's work for rules with clusterMode. In each round it sends the host's demand to the ledger, and
 * publishes the share in the answer. share.h of room shares has the steps; this room adds the clock, the maps and the
 * messages.
 */
#ifndef WEIR_STORE_SHARING_H
#define WEIR_STORE_SHARING_H

#include <poll.h>
#include <stdint.h>

#include "base/diag.h"
#include "instance/instance.h"
#include "shares/share.h"

/* The tables that sharing reads and writes, besides the descriptions. */
#define WEIR_SHARING_TABLES                                                                                            \
	(WEIR_TABLE_BIT(WEIR_TABLE_SHARES) | WEIR_TABLE_BIT(WEIR_TABLE_TOTALS) |                                       \
	 WEIR_TABLE_BIT(WEIR_TABLE_RULE_COUNTERS) | WEIR_TABLE_BIT(WEIR_TABLE_RESOURCE_COUNTERS))

/* The most time that leave() may take. */
#define WEIR_SHARING_LEAVE_NS 500000000ull

/*
 * The controller's part (control/calculator.h says what each is for). Rules continue with the share that they have: one
 * that an earlier controller has published stays in force until it ends. step() warns when the store is lost, and when
 * it is back. leave() informs the ledger, for half a second at most.
 */
int weir_sharing_follow(void **state, const struct weir_instance *instance, struct weir_diag *diag);
void weir_sharing_free(void *state);
struct pollfd weir_sharing_poll(const void *state);
uint64_t weir_sharing_due_ns(const void *state);
void weir_sharing_step(void *state, struct weir_diag *diag);
void weir_sharing_leave(void *state);
uint32_t weir_sharing_rule_count(const void *state);

/* ---- reading from outside ---- */

/* The name of a process in the ledger. Map `shares` has it as a number. */
void weir_sharing_process(uint64_t number, char process[WEIR_CLUSTER_NAME_CHARS]);

/* A rule's terms, in a cluster that had `hosts` hosts last. */
struct weir_share_terms weir_sharing_terms(const struct weir_cluster_info *cluster, const struct weir_rule_info *info,
					   int64_t hosts);

/* The key of a rule's ledger in the store. Rules with the same name count together if they have the same interval and
 * unit.
 */
#define WEIR_LEDGER_KEY_CHARS 256
void weir_sharing_key(const struct weir_cluster_info *cluster, const struct weir_rule_info *rule,
		      char key[WEIR_LEDGER_KEY_CHARS]);

/*
 * Lets a host leave properly if there is no controller any more to do so: the command that detaches informs the
 * ledgers, in the name of the process that they know. The message is
 * prepared while the instance still exists; NULL: there is nothing to say, or no memory.
 */
void *weir_farewell_prepare(const struct weir_instance *instance);

/* The program no longer limits anything: inform the ledgers, for half a second at most. */
void weir_farewell_say(const void *prepared);
void weir_farewell_free(void *prepared);

#endif
