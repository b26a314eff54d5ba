/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What happens to a cluster, as its host sees it, in the instance's journal: the store lost and back, leases that
 * ended, hosts that come, fall silent or leave, ledgers that were lost. If the same happens to many rules at once,
 * one line is written. The hosts are read from the ledgers now and then, one after the other (HGETALL), beside the
 * messages of the protocol, which have no need of it.
 */
#ifndef WEIR_STORE_CLUSTER_EVENTS_H
#define WEIR_STORE_CLUSTER_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "instance/instance.h"
#include "shares/membership.h"
#include "store/store.h"

/* Rules to which something has happened since the last report: how many, and one of them. */
struct weir_cluster_events_rules {
	uint32_t count;
	char rule[WEIR_NAME_BYTES];
};

/* Zeroed except for the names, it has nothing to report. */
struct weir_cluster_events {
	char instance[WEIR_INSTANCE_NAME_BYTES];
	char host[WEIR_CLUSTER_WORD_CHARS]; /* this one, of which there is no news */
	struct weir_cluster_events_rules alone, leased, ledgers;
	struct weir_membership membership;
	uint64_t looked_ns; /* 0: not yet */
	uint32_t looks;	    /* the next is at the ledger of this number, modulo their count */
};

void weir_cluster_events_add(struct weir_cluster_events_rules *rules, const char *rule);
void weir_cluster_events_of_store(const struct weir_cluster_events *events, const char *address, const char *trouble);
void weir_cluster_events_of_name(const struct weir_cluster_events *events, bool is_taken);
/* Write what was added. */
void weir_cluster_events_tell(struct weir_cluster_events *events);

/* Is it time to look at a ledger? Once a second, and less often when there are many hosts, who all do so. */
bool weir_cluster_events_is_due(const struct weir_cluster_events *events, uint64_t now_ns);
/* The ledger of this number, as HGETALL has it; anything else is ignored. */
void weir_cluster_events_take_ledger(struct weir_cluster_events *events, uint32_t ledger,
				     const struct weir_reply *reply);

#endif
